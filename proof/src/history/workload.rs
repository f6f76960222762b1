//! What transactions do: draws of keys and of statements' forms.
//!
//! Few keys are in use at a time, so that transactions meet; a key that was written often enough is
//! left for a new one, so that values stay short and there are first writes, which are what a
//! predicate read can miss.

use super::record::Kind;
use super::tables::{GROUP, Tables};
use rand::Rng;
use rand::rngs::SmallRng;
use std::sync::{Mutex, PoisonError};

/// Keys in use at a time.
const ACTIVE: usize = 6;

/// Writes to a key before another takes its place.
const WRITES_PER_KEY: u32 = 20;

/// Keys of a range.
const RANGE: u64 = 5;

/// The keys in use, with the writes each has had.
pub struct Keys {
    active: Mutex<Vec<(u64, u32)>>,
}

impl Default for Keys {
    fn default() -> Self {
        Keys {
            active: Mutex::new((0..ACTIVE as u64).map(|key| (key, 0)).collect()),
        }
    }
}

impl Keys {
    /// One to read.
    pub fn to_read(&self, rng: &mut SmallRng) -> u64 {
        let active = self.active.lock().unwrap_or_else(PoisonError::into_inner);
        active[rng.random_range(0..ACTIVE)].0
    }

    /// One to write.
    pub fn to_write(&self, rng: &mut SmallRng) -> u64 {
        let mut active = self.active.lock().unwrap_or_else(PoisonError::into_inner);
        let next = active.iter().map(|(key, _)| key + 1).max().unwrap_or(0);
        let place = rng.random_range(0..ACTIVE);
        let (key, writes) = &mut active[place];
        let chosen = *key;
        *writes += 1;
        if *writes >= WRITES_PER_KEY {
            (*key, *writes) = (next, 0);
        }
        chosen
    }

    /// One above every key there is.
    pub fn end(&self) -> u64 {
        let active = self.active.lock().unwrap_or_else(PoisonError::into_inner);
        active.iter().map(|(key, _)| key + 1).max().unwrap_or(0)
    }
}

/// A step of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Reads a key.
    Read(ReadForm, u64),
    /// Reads some keys of all tables in one statement.
    ReadSeveral([u64; 3]),
    /// Reads the keys of a table from the first to the last.
    ReadRange(RangeForm, &'static str, u64, u64),
    /// Reads a group's keys of a table.
    ReadGroup(&'static str, u64),
    /// Writes to a key.
    Write(WriteForm, u64),
    /// Writes to all rows of a group.
    WriteGroup(&'static str, u64),
}

/// Ways to read a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadForm {
    Plain,
    Prepared,
    /// With this row lock.
    Locking(&'static str),
    SkipLocked,
}

/// Ways to read a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeForm {
    Plain,
    Cursor,
    /// A condition that no index answers.
    WholeTable,
}

/// Ways to write to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteForm {
    Upsert,
    Update,
    Prepared,
    Function,
    /// Reads the value and puts back a new one, made by the client: what was written between is
    /// lost, unless the level or a row lock keeps others away.
    ReadThenReplace,
    /// Deletes the row and puts in one with the same key.
    DeleteThenInsert,
    /// Changes the value only if it is still the one read before.
    CompareAndSet,
}

const ROW_LOCKS: [&str; 4] = [
    "FOR UPDATE",
    "FOR NO KEY UPDATE",
    "FOR SHARE",
    "FOR KEY SHARE",
];

/// Draws a step. In a transaction of `one_statement` only those that are one.
pub fn draw(
    rng: &mut SmallRng,
    keys: &Keys,
    tables: Tables,
    kind: Kind,
    reads_only: bool,
    one_statement: bool,
) -> Step {
    let names = tables.names();
    let table = names[rng.random_range(0..names.len())].0;
    if reads_only || rng.random_ratio(9, 20) {
        let key = keys.to_read(rng);
        return match rng.random_range(0..20) {
            0..=5 => Step::Read(ReadForm::Plain, key),
            6..=9 => Step::Read(ReadForm::Prepared, key),
            10..=11 if !reads_only => {
                Step::Read(ReadForm::Locking(ROW_LOCKS[rng.random_range(0..4)]), key)
            }
            12 if !reads_only => Step::Read(ReadForm::SkipLocked, key),
            10..=13 => Step::ReadSeveral([key, keys.to_read(rng), keys.to_read(rng)]),
            14..=16 => {
                let first = key.saturating_sub(rng.random_range(0..RANGE));
                let form = match rng.random_range(0..10) {
                    0 => RangeForm::WholeTable,
                    1..=3 if !one_statement => RangeForm::Cursor,
                    _ => RangeForm::Plain,
                };
                Step::ReadRange(form, table, first, first + RANGE - 1)
            }
            _ => Step::ReadGroup(table, key / GROUP),
        };
    }
    let key = keys.to_write(rng);
    if one_statement {
        return Step::Write(
            if rng.random() {
                WriteForm::Upsert
            } else {
                WriteForm::Function
            },
            key,
        );
    }
    match rng.random_range(0..20) {
        0..=2 => Step::Write(WriteForm::Upsert, key),
        3..=5 => Step::Write(WriteForm::Update, key),
        6..=9 => Step::Write(WriteForm::Prepared, key),
        10..=11 => Step::Write(WriteForm::Function, key),
        12..=14 => Step::Write(WriteForm::ReadThenReplace, key),
        15..=16 => Step::Write(WriteForm::DeleteThenInsert, key),
        17..=18 if kind == Kind::Register => Step::Write(WriteForm::CompareAndSet, key),
        17..=18 => Step::Write(WriteForm::ReadThenReplace, key),
        _ => Step::WriteGroup(table, key / GROUP),
    }
}
