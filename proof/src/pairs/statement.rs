//! The statement of a pair.

use super::pair::{Means, Pair, Place, Reach, Second, Shape, Subject, Width};
use super::text::Keys;

/// The second statement while it is put together.
pub struct Statement<'a> {
    pair: &'a Pair,
    name: &'a str,
    rows: Vec<Keys>,
    at: usize,
}

impl<'a> Statement<'a> {
    /// That of a pair whose first thing a function of this name does, if one does.
    pub fn new(pair: &'a Pair, name: &'a str) -> Statement<'a> {
        Statement {
            pair,
            name,
            rows: pair.proposed(),
            at: pair.at(),
        }
    }
    /// Where the first thing is asked for, if not by a trigger.
    fn place(&self) -> Option<Place> {
        match self.pair.reach {
            Reach::Asked(_, place) => Some(place),
            _ => None,
        }
    }

    fn is_with(&self) -> bool {
        matches!(self.pair.reach, Reach::Asked(Means::With, _))
    }

    /// An expression that asks for it.
    fn call(&self) -> String {
        if self.is_with() {
            "(SELECT count(*) FROM part)".to_owned()
        } else {
            format!("{}()", self.name)
        }
    }

    /// The same, at one of several rows, whose id is `id`.
    fn call_at(&self, id: &str, at: i32) -> String {
        let call = self.call();
        if self.rows.len() == 1 {
            call
        } else {
            format!("CASE WHEN {id} = {at} THEN {call} ELSE 0 END")
        }
    }

    fn at_row(&self) -> i32 {
        self.rows[self.at].0
    }

    /// The new text of a row.
    fn name_text(&self) -> &'static str {
        match self.pair.width {
            Width::LongSecond => "repeat('o', 200)",
            _ => "'outer'",
        }
    }

    fn values(&self) -> String {
        let rows: Vec<String> = self
            .rows
            .iter()
            .enumerate()
            .map(|(place, (id, n))| {
                let name = self.name_text();
                if self.place() == Some(Place::Proposed) && place == self.at {
                    format!("({id}, {} || {name}, {n})", self.call())
                } else {
                    format!("({id}, {name}, {n})")
                }
            })
            .collect();
        rows.join(", ")
    }

    /// What is joined with, behind a word or comma.
    fn joined(&self, before: &str) -> String {
        if self.place() != Some(Place::From) {
            String::new()
        } else if self.is_with() {
            format!("{before} (SELECT count(*) AS c FROM part) p")
        } else {
            format!("{before} {}() p", self.name)
        }
    }

    /// A condition behind those of its ids.
    fn condition(&self) -> String {
        match self.place() {
            Some(Place::Where) => format!("{} >= 0", self.call_at("t.id", self.at_row())),
            _ => "true".to_owned(),
        }
    }

    fn ids(&self) -> String {
        let ids: Vec<String> = self.rows.iter().map(|(id, _)| id.to_string()).collect();
        format!("t.id IN ({})", ids.join(", "))
    }

    fn assignments(&self, row: &str) -> String {
        let call = match self.place() {
            Some(Place::Set) => format!("{} || ", self.call_at("t.id", self.at_row())),
            _ => String::new(),
        };
        let keys = match (self.pair.second, self.pair.subject) {
            (Second::Move, Subject::Key) => format!("id = {}, ", self.rows[0].1),
            (Second::Move, _) => "id = t.id + 4, ".to_owned(),
            (Second::Update, Subject::Number) => format!("n = {}, ", self.rows[0].1),
            _ => String::new(),
        };
        let name = format!("{call}{row} || left(t.name, 3)");
        match self.pair.width {
            // As long as what INSERT proposes, and yet another text.
            Width::Even => format!("{keys}name = reverse(left({name}, 5))"),
            _ => format!("{keys}name = {name}"),
        }
    }

    /// What is returned: the old or new row, around what is asked.
    fn returned(&self) -> String {
        let is_moved = self.pair.second == Second::Move && self.pair.subject != Subject::Key;
        let at = self.at_row() + if is_moved { 4 } else { 0 };
        match self.place() {
            Some(Place::Returning) => format!("t.name, {}, t.*", self.call_at("t.id", at)),
            _ => "t.*".to_owned(),
        }
    }

    fn returning(&self) -> String {
        match self.pair.shape {
            Shape::Quiet => String::new(),
            _ => format!(" RETURNING {}", self.returned()),
        }
    }

    /// Its text.
    pub fn text(&self) -> String {
        let first = self.pair.first_text();
        let part = match (self.is_with(), self.pair.first.is_lock()) {
            (false, _) => String::new(),
            (true, true) => format!("WITH part AS ({first}) "),
            (true, false) => format!("WITH part AS ({first} RETURNING id) "),
        };
        let target = self.pair.target();
        let statement = match self.pair.second {
            Second::Insert => self.insert(target),
            Second::UpsertById | Second::UpsertByNumber => self.upsert(target),
            Second::DoNothing => format!(
                "INSERT INTO {target} AS t VALUES {} ON CONFLICT DO NOTHING{}",
                self.values(),
                self.returning()
            ),
            Second::Update | Second::Move => format!(
                "UPDATE {target} AS t SET {}{} WHERE {} AND {}{}",
                self.assignments(self.name_text()),
                self.joined(" FROM"),
                self.ids(),
                self.condition(),
                self.returning()
            ),
            Second::Delete => format!(
                "DELETE FROM {target} AS t{} WHERE {} AND {}{}",
                self.joined(" USING"),
                self.ids(),
                self.condition(),
                self.returning()
            ),
            Second::LockUpdate | Second::LockKeyShare => self.lock(target),
        };
        format!("{part}{statement}")
    }

    fn insert(&self, target: &str) -> String {
        let values = self.values();
        let source = match self.place() {
            Some(Place::From) => format!(
                "SELECT v.* FROM (VALUES {values}) v (id, name, n){}",
                self.joined(",")
            ),
            Some(Place::Where) => format!(
                "SELECT v.* FROM (VALUES {values}) v (id, name, n) WHERE {} >= 0",
                self.call_at("v.id", self.at_row())
            ),
            _ => format!("VALUES {values}"),
        };
        format!("INSERT INTO {target} AS t {source}{}", self.returning())
    }

    fn upsert(&self, target: &str) -> String {
        let arbiter = match self.pair.second {
            Second::UpsertByNumber => "n",
            _ => "id",
        };
        format!(
            "INSERT INTO {target} AS t VALUES {} ON CONFLICT ({arbiter}) DO UPDATE SET {} WHERE {}{}",
            self.values(),
            self.assignments("excluded.name"),
            self.condition(),
            self.returning()
        )
    }

    fn lock(&self, target: &str) -> String {
        let strength = match self.pair.second {
            Second::LockKeyShare => "KEY SHARE",
            _ => "UPDATE",
        };
        format!(
            "SELECT {} FROM {target} AS t{} WHERE {} AND {} FOR {strength} OF t",
            self.returned(),
            self.joined(","),
            self.ids(),
            self.condition()
        )
    }
}
