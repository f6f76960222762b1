//! The SQL of a pair, with the names of `tables`.
//!
//! Tables have rows (1, 'first row', 10) to (4, 'fourth row', 40).

use super::pair::{First, Pair, Reach, Rows, Second, Shape, Subject, Width};
use super::statement::Statement;
use super::tables;

/// The keys that rows are given: of the primary key, and of the other one.
pub type Keys = (i32, i32);

/// The statement of a pair, and what it comes to first.
#[derive(Clone, Debug)]
pub struct Texts {
    /// What is done first, as a statement of its own.
    pub first: String,
    pub second: String,
    /// The row at which a trigger acts.
    pub at: i32,
}

/// A key and what the other unique column has of it.
fn keys(id: i32) -> Keys {
    (id, id * 10)
}

impl Pair {
    /// The table that the statement names.
    pub fn target(&self) -> &'static str {
        match (self.reach, self.shape) {
            (Reach::Before(_), _) => tables::BEFORE,
            (Reach::After(_), _) => tables::AFTER,
            (_, Shape::Table | Shape::Quiet) => tables::ITEM,
            (_, Shape::Watched) => tables::WATCHED,
            (_, Shape::Guarded) => tables::GUARDED,
            (_, Shape::View) => tables::VIEW,
            (_, Shape::Partitioned) => tables::PARTS,
        }
    }

    /// The table that has its rows.
    fn table(&self) -> &'static str {
        match self.target() {
            tables::VIEW => tables::ITEM,
            name => name,
        }
    }

    /// The tables that its rows are in afterwards.
    pub fn touched(&self) -> Vec<&'static str> {
        match self.subject {
            Subject::Aside => vec![self.table(), tables::ASIDE],
            _ => vec![self.table()],
        }
    }

    /// Both statements, where functions that do the first one are called `name`.
    pub fn texts(&self, name: &str) -> Texts {
        Texts {
            first: self.first_text(),
            second: Statement::new(self, name).text(),
            at: self.proposed()[self.at()].0,
        }
    }

    /// The place of the row, among the statement's, at which the first thing is done.
    pub fn at(&self) -> usize {
        usize::from(self.rows == Rows::Behind)
    }

    /// The row that the first thing is done to, if it is there.
    fn subject_row(&self) -> i32 {
        match (self.subject, self.rows) {
            (Subject::Same, Rows::Ahead) if self.second != Second::Insert => 2,
            (Subject::Same, Rows::Behind) if self.second == Second::Insert => 9,
            (Subject::Same, _) => 1,
            _ => 3,
        }
    }

    /// What is done first.
    pub fn first_text(&self) -> String {
        let table = match self.subject {
            Subject::Aside => tables::ASIDE,
            _ => self.table(),
        };
        let row = self.subject_row();
        let name = match self.width {
            Width::Even | Width::LongSecond => "'inner'",
            // Read as the head of a text it is a short one.
            Width::LongFirst => "repeat('!', 200)",
            Width::Wild => "repeat('T', 200)",
        };
        match self.first {
            First::Insert => match self.subject {
                Subject::Same => format!("INSERT INTO {table} VALUES (9, {name}, 90)"),
                Subject::Key => format!("INSERT INTO {table} VALUES (9, {name}, 95)"),
                Subject::Number => format!("INSERT INTO {table} VALUES (8, {name}, 90)"),
                Subject::Other | Subject::Aside => format!(
                    "INSERT INTO {table} SELECT g, {name}, g * 10 FROM generate_series(50, 53) g"
                ),
            },
            First::Update => format!("UPDATE {table} SET name = {name} WHERE id = {row}"),
            First::Move => {
                let set = match self.subject {
                    Subject::Number => "n = 90".to_owned(),
                    Subject::Key => "id = 9".to_owned(),
                    // Stays in its partition.
                    _ => format!("id = {}", row + 8),
                };
                format!("UPDATE {table} SET {set}, name = {name} WHERE id = {row}")
            }
            First::Delete => format!("DELETE FROM {table} WHERE id = {row}"),
            First::Upsert if self.shape == Shape::Partitioned => {
                format!("INSERT INTO {table} VALUES ({row}, {name}, {row}0) ON CONFLICT DO NOTHING")
            }
            First::Upsert => format!(
                "INSERT INTO {table} AS t VALUES ({row}, {name}, {row}0) ON CONFLICT (id) DO UPDATE SET name = \
                 excluded.name || left(t.name, 2)"
            ),
            First::LockUpdate => format!("SELECT id FROM {table} WHERE id = {row} FOR UPDATE"),
            First::LockKeyShare => format!("SELECT id FROM {table} WHERE id = {row} FOR KEY SHARE"),
        }
    }

    /// The rows that the statement inserts, or whose ids it looks for.
    pub fn proposed(&self) -> Vec<Keys> {
        let takes_key = self.first.takes_key();
        let (key, number) = if takes_key { (9, 90) } else { (3, 30) };
        let same = if self.first == First::Insert { 9 } else { 1 };
        let found = match self.rows {
            Rows::One => vec![keys(same)],
            Rows::Ahead | Rows::Behind => vec![keys(1), keys(2)],
        };
        match (self.second, self.subject) {
            (Second::Insert, Subject::Same) => match self.rows {
                Rows::One => vec![keys(same)],
                Rows::Ahead => vec![keys(7), keys(same)],
                Rows::Behind => vec![keys(9), keys(7)],
            },
            (second, Subject::Key) if second.is_insert() => vec![(key, 70)],
            (second, Subject::Number) if second.is_insert() => vec![(7, number)],
            (Second::Insert, _)
            | (Second::UpsertById | Second::UpsertByNumber | Second::DoNothing, Subject::Aside) => {
                match self.rows {
                    Rows::One => vec![keys(7)],
                    Rows::Ahead | Rows::Behind => vec![keys(7), keys(5)],
                }
            }
            (Second::Move, Subject::Key) => vec![(1, key)],
            (Second::Update, Subject::Number) => vec![(1, number)],
            (_, Subject::Other | Subject::Aside) if self.rows == Rows::One => vec![keys(1)],
            _ => found,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::pair::{Event, Means, Place};
    use super::*;

    const PAIR: Pair = Pair {
        first: First::Delete,
        reach: Reach::Asked(Means::With, Place::Set),
        second: Second::UpsertById,
        subject: Subject::Same,
        rows: Rows::One,
        width: Width::LongFirst,
        shape: Shape::Table,
    };

    #[test]
    fn a_part_is_read_in_the_place() {
        assert_eq!(
            PAIR.texts("").second,
            "WITH part AS (DELETE FROM item WHERE id = 1 RETURNING id) \
             INSERT INTO item AS t VALUES (1, 'outer', 10) ON CONFLICT (id) DO UPDATE \
             SET name = (SELECT count(*) FROM part) || excluded.name || left(t.name, 3) \
             WHERE true RETURNING t.*"
        );
    }

    #[test]
    fn a_function_is_called_at_one_of_two_rows() {
        let pair = Pair {
            reach: Reach::Asked(Means::Sql, Place::Where),
            second: Second::Delete,
            rows: Rows::Behind,
            ..PAIR
        };
        let texts = pair.texts("first_1");
        assert_eq!(texts.first, "DELETE FROM item WHERE id = 1");
        assert_eq!(
            texts.second,
            "DELETE FROM item AS t WHERE t.id IN (1, 2) AND \
             CASE WHEN t.id = 2 THEN first_1() ELSE 0 END >= 0 RETURNING t.*"
        );
    }

    #[test]
    fn a_trigger_acts_at_the_row_of_the_statement() {
        let pair = Pair {
            reach: Reach::Before(Event::Insert),
            second: Second::Insert,
            rows: Rows::Ahead,
            ..PAIR
        };
        let texts = pair.texts("");
        assert_eq!(texts.at, 7);
        assert_eq!(
            texts.second,
            "INSERT INTO before_item AS t VALUES (7, 'outer', 70), (1, 'outer', 10) RETURNING t.*"
        );
    }
}
