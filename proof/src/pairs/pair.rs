//! What a pair is: what a command does to a row first, how it comes to that, and what it does next.

use std::fmt;

/// What is done first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum First {
    Insert,
    Update,
    /// A row gets another key.
    Move,
    Delete,
    /// INSERT ... ON CONFLICT DO UPDATE of a row that is there.
    Upsert,
    LockUpdate,
    LockKeyShare,
}

/// What the statement itself does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Second {
    Insert,
    Update,
    /// A row gets another key.
    Move,
    Delete,
    LockUpdate,
    LockKeyShare,
    /// ON CONFLICT (id) DO UPDATE.
    UpsertById,
    /// ON CONFLICT (n) DO UPDATE: by the other unique key.
    UpsertByNumber,
    /// ON CONFLICT DO NOTHING.
    DoNothing,
}

/// Where the statement asks for what is done first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A relation that it joins with.
    From,
    /// A value of the row that INSERT proposes.
    Proposed,
    Set,
    Where,
    Returning,
}

/// What the statement asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Means {
    /// A WITH part.
    With,
    /// A volatile function.
    Sql,
    PlPgSql,
}

/// An event of a row trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    Insert,
    Update,
    Delete,
}

/// How the command comes to what is done first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    Asked(Means, Place),
    Before(Event),
    After(Event),
}

/// Which row that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The one of the statement.
    Same,
    /// One that has, or gets, the key that the statement gives its row.
    Key,
    /// The same of the other unique key.
    Number,
    /// Another one of the table: nothing but memory is shared.
    Other,
    /// One of another table.
    Aside,
}

/// How many rows the statement has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    One,
    /// Two. At the first one the second one is worked on, which the statement has not come to.
    Ahead,
    /// Two. At the second one the first one is worked on, which the statement is done with.
    Behind,
}

/// Lengths of the texts: bytes of another row show where memory is used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    Even,
    LongFirst,
    LongSecond,
    /// A long one, whose bytes are no text's length: who takes them for one reads beyond its
    /// memory.
    Wild,
}

/// What the statement names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Table,
    /// Nothing is returned, and what is done stays.
    Quiet,
    /// A table with an AFTER trigger, so that its rows are changed one by one.
    Watched,
    /// A table with a BEFORE trigger that changes the row, and a generated column.
    Guarded,
    View,
    Partitioned,
}

/// A pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    pub first: First,
    pub reach: Reach,
    pub second: Second,
    pub subject: Subject,
    pub rows: Rows,
    pub width: Width,
    pub shape: Shape,
}

impl First {
    /// It only locks.
    pub fn is_lock(self) -> bool {
        matches!(self, First::LockUpdate | First::LockKeyShare)
    }

    /// A key is in use afterwards that was not before.
    pub fn takes_key(self) -> bool {
        matches!(self, First::Insert | First::Move)
    }
}

impl Second {
    /// SELECT ... FOR.
    pub fn is_lock(self) -> bool {
        matches!(self, Second::LockUpdate | Second::LockKeyShare)
    }

    /// INSERT ... ON CONFLICT DO UPDATE.
    pub fn is_upsert(self) -> bool {
        matches!(self, Second::UpsertById | Second::UpsertByNumber)
    }

    /// An INSERT of any kind.
    pub fn is_insert(self) -> bool {
        self.is_upsert() || matches!(self, Second::Insert | Second::DoNothing)
    }
}

impl Pair {
    /// The statement is a transaction of its own. Others are rolled back.
    pub fn commits(&self) -> bool {
        self.shape == Shape::Quiet
    }
}

impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reach::Asked(means, place) => write!(f, "{means:?} in {place:?}"),
            Reach::Before(event) => write!(f, "BEFORE {event:?}"),
            Reach::After(event) => write!(f, "AFTER {event:?}"),
        }
    }
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Pair {
            first,
            reach,
            second,
            subject,
            rows,
            width,
            shape,
        } = self;
        write!(
            f,
            "{first:?} by {reach}, {second:?} of {shape:?}: {subject:?}, {rows:?}, {width:?}"
        )
    }
}
