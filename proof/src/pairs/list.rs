//! All pairs.

use super::pair::{Event, First, Means, Pair, Place, Reach, Rows, Second, Shape, Subject, Width};

const FIRSTS: [First; 7] = [
    First::Insert,
    First::Update,
    First::Move,
    First::Delete,
    First::Upsert,
    First::LockUpdate,
    First::LockKeyShare,
];
const SECONDS: [Second; 9] = [
    Second::Insert,
    Second::Update,
    Second::Move,
    Second::Delete,
    Second::LockUpdate,
    Second::LockKeyShare,
    Second::UpsertById,
    Second::UpsertByNumber,
    Second::DoNothing,
];
const MEANS: [Means; 3] = [Means::With, Means::Sql, Means::PlPgSql];
const PLACES: [Place; 5] = [
    Place::From,
    Place::Proposed,
    Place::Set,
    Place::Where,
    Place::Returning,
];
const EVENTS: [Event; 3] = [Event::Insert, Event::Update, Event::Delete];
const SUBJECTS: [Subject; 5] = [
    Subject::Same,
    Subject::Key,
    Subject::Number,
    Subject::Other,
    Subject::Aside,
];
const ROWS: [Rows; 3] = [Rows::One, Rows::Ahead, Rows::Behind];
const WIDTHS: [Width; 4] = [
    Width::Even,
    Width::LongFirst,
    Width::LongSecond,
    Width::Wild,
];
const SHAPES: [Shape; 6] = [
    Shape::Table,
    Shape::Quiet,
    Shape::Watched,
    Shape::Guarded,
    Shape::View,
    Shape::Partitioned,
];

impl Second {
    fn has(self, place: Place) -> bool {
        match place {
            Place::From => !self.is_upsert() && self != Second::DoNothing,
            Place::Proposed => self.is_insert(),
            Place::Set => self.is_upsert() || matches!(self, Second::Update | Second::Move),
            Place::Where => self != Second::DoNothing,
            Place::Returning => true,
        }
    }

    fn fires(self, event: Event) -> bool {
        match event {
            Event::Insert => self.is_insert(),
            Event::Update => self.is_upsert() || matches!(self, Second::Update | Second::Move),
            Event::Delete => self == Second::Delete,
        }
    }

    /// Whether it gives its row a key that can be somebody else's.
    fn wants(self, subject: Subject) -> bool {
        match subject {
            Subject::Key => self.is_insert() || self == Second::Move,
            Subject::Number => self.is_insert() || self == Second::Update,
            Subject::Same | Subject::Other | Subject::Aside => true,
        }
    }
}

impl Reach {
    fn all() -> impl Iterator<Item = Reach> {
        let asked = MEANS
            .into_iter()
            .flat_map(|means| PLACES.map(|place| Reach::Asked(means, place)));
        let fired = EVENTS
            .into_iter()
            .flat_map(|event| [Reach::Before(event), Reach::After(event)]);
        asked.chain(fired)
    }

    fn fits(self, second: Second) -> bool {
        match self {
            Reach::Asked(_, place) => second.has(place),
            Reach::Before(event) | Reach::After(event) => second.fires(event),
        }
    }
}

impl Pair {
    /// Whether there is such a pair, and whether it says more than its neighbours.
    fn is_wanted(&self) -> bool {
        self.reach.fits(self.second)
            && self.second.wants(self.subject)
            && self.has_rows()
            && self.fits_shape()
            && self.fits_width()
    }

    fn has_rows(&self) -> bool {
        let joins = matches!(self.reach, Reach::Asked(_, Place::From));
        // A lock of a row that nothing else is done to.
        let is_apart =
            self.first.is_lock() && matches!(self.subject, Subject::Other | Subject::Aside);
        match (self.rows, self.subject) {
            _ if is_apart => false,
            (Rows::One, _) => true,
            // A relation that is joined with is read before the first row.
            _ if joins => false,
            // What is inserted first cannot be the row that the statement found.
            (_, Subject::Same) => self.first != First::Insert || self.second == Second::Insert,
            (Rows::Ahead, Subject::Other | Subject::Aside) => true,
            _ => false,
        }
    }

    fn fits_shape(&self) -> bool {
        let is_with = matches!(self.reach, Reach::Asked(Means::With, _));
        match self.shape {
            Shape::Table => true,
            // Of one row: what is put back comes in another order of rows.
            Shape::Quiet => {
                self.rows == Rows::One
                    && !self.second.is_lock()
                    && !matches!(self.reach, Reach::Asked(_, Place::Returning))
            }
            // Tables with such triggers are there as they are.
            Shape::Watched => is_with || matches!(self.reach, Reach::Asked(Means::PlPgSql, _)),
            // A function has memory of its own: what is behind the names makes no difference to it.
            Shape::Guarded | Shape::View => is_with,
            // MOT partitions refuse ON CONFLICT DO UPDATE by their parent.
            Shape::Partitioned => is_with && !self.second.is_upsert(),
        }
    }

    fn fits_width(&self) -> bool {
        let is_with = matches!(self.reach, Reach::Asked(Means::With, _));
        let is_simple = !matches!(self.shape, Shape::View | Shape::Partitioned);
        let is_one = is_simple && self.rows == Rows::One;
        match self.width {
            Width::LongFirst => true,
            Width::Even => is_one && is_with,
            Width::LongSecond => is_one && is_with && self.shape != Shape::Quiet,
            Width::Wild => {
                let is_beside = matches!(self.subject, Subject::Other | Subject::Aside);
                is_one && is_with && is_beside && self.first == First::Insert
            }
        }
    }
}

/// All pairs, in the order in which they run: those that may end a server last.
pub fn all() -> Vec<Pair> {
    let pairs = [Pair {
        first: First::Insert,
        reach: Reach::Before(Event::Insert),
        second: Second::Insert,
        subject: Subject::Same,
        rows: Rows::One,
        width: Width::Even,
        shape: Shape::Table,
    }];
    let pairs = each_with(&pairs, SHAPES, |pair, shape| pair.shape = shape);
    let pairs = each_with(&pairs, SECONDS, |pair, second| pair.second = second);
    let pairs = each_with(&pairs, FIRSTS, |pair, first| pair.first = first);
    let pairs = each_with(&pairs, Reach::all(), |pair, reach| pair.reach = reach);
    let pairs = each_with(&pairs, SUBJECTS, |pair, subject| pair.subject = subject);
    let pairs = each_with(&pairs, ROWS, |pair, rows| pair.rows = rows);
    let mut pairs = each_with(&pairs, WIDTHS, |pair, width| pair.width = width);
    pairs.retain(Pair::is_wanted);
    pairs.sort_by_key(|pair| (pair.width == Width::Wild, pair.commits()));
    pairs
}

/// Each pair with each of some values.
fn each_with<T: Copy>(
    pairs: &[Pair],
    values: impl IntoIterator<Item = T>,
    set: impl Fn(&mut Pair, T),
) -> Vec<Pair> {
    let values: Vec<T> = values.into_iter().collect();
    let mut all = Vec::with_capacity(pairs.len() * values.len());
    for pair in pairs {
        for value in &values {
            let mut pair = *pair;
            set(&mut pair, *value);
            all.push(pair);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_pair_has_a_name_of_its_own() {
        let pairs = all();
        let names: BTreeSet<String> = pairs.iter().map(Pair::to_string).collect();
        assert_eq!(names.len(), pairs.len());
    }

    #[test]
    fn each_first_thing_meets_each_statement_by_each_reach_that_it_has() {
        let pairs = all();
        for first in FIRSTS {
            for second in SECONDS {
                for reach in Reach::all().filter(|reach| reach.fits(second)) {
                    let is_there = pairs.iter().any(|pair| {
                        (pair.first, pair.second, pair.reach) == (first, second, reach)
                    });
                    assert!(is_there, "{first:?} by {reach}, {second:?}");
                }
            }
        }
    }

    #[test]
    fn statements_are_the_same_in_every_run() {
        let texts = |pairs: &[Pair]| -> Vec<String> {
            pairs
                .iter()
                .map(|pair| pair.texts("first").second)
                .collect()
        };
        let pairs = all();
        assert_eq!(texts(&pairs), texts(&all()));
    }

    #[test]
    fn pairs_that_may_end_a_server_come_last() {
        let pairs = all();
        let wild = pairs
            .iter()
            .position(|pair| pair.width == Width::Wild)
            .unwrap();
        assert!(pairs[wild..].iter().all(|pair| pair.width == Width::Wild));
    }
}
