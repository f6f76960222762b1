//! The SQL of a pair. Tables have rows (1, 'first row', 10) to (4, 'fourth row', 40); the names in `tables` are used here.

use super::pair::{First, Means, Pair, Place, Reach, Rows, Second, Shape, Subject, Width};
use super::tables;

/// The keys that rows are given: of the primary key, and of the other one.
type Keys = (i32, i32);

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
    pub fn table(&self) -> &'static str {
        match self.target() {
            tables::VIEW => tables::ITEM,
            name => name,
        }
    }

    /// Both statements, where functions that do the first one are called `name`.
    pub fn texts(&self, name: &str) -> Texts {
        Texts {
            first: self.first_text(),
            second: Statement {
                pair: self,
                name,
                rows: self.proposed(),
                at: self.at(),
            }
            .text(),
            at: self.proposed()[self.at()].0,
        }
    }

    /// The place of the row, among the statement's, at which the first thing is done.
    fn at(&self) -> usize {
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

    fn first_text(&self) -> String {
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
                "INSERT INTO {table} AS t VALUES ({row}, {name}, {row}0) ON CONFLICT (id) DO UPDATE SET name = excluded.name || left(t.name, 2)"
            ),
            First::LockUpdate => format!("SELECT id FROM {table} WHERE id = {row} FOR UPDATE"),
            First::LockKeyShare => format!("SELECT id FROM {table} WHERE id = {row} FOR KEY SHARE"),
        }
    }

    /// The rows that the statement inserts, or whose ids it looks for.
    fn proposed(&self) -> Vec<Keys> {
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

/// The second statement while it is put together.
struct Statement<'a> {
    pair: &'a Pair,
    name: &'a str,
    rows: Vec<Keys>,
    at: usize,
}

impl Statement<'_> {
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

    fn text(&self) -> String {
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
