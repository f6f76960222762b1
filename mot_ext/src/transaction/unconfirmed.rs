//! The row of INSERT ... ON CONFLICT that is neither confirmed nor taken back
//! (`table_am/speculative.rs`).
use mot_engine::{IndexRef, Slot, TableRef, VersionRef};
use std::cell::Cell;

/// Such a row: the transaction's last operation, so there is one.
#[derive(Clone, Copy)]
pub struct Unconfirmed {
    pub table: TableRef,
    pub row: Slot,
    pub version: VersionRef,
    pub entered: Entries,
}

/// In which indexes the row is.
#[derive(Clone, Copy)]
pub enum Entries {
    /// In so many, one after the other.
    Some(usize),
    /// In all.
    All,
    /// In none: another row has its key in this one.
    Refused(IndexRef),
}

struct Row(Cell<Option<Unconfirmed>>);

// SAFETY: PostgreSQL's processes run this code on one thread.
unsafe impl Sync for Row {}

static ROW: Row = Row(Cell::new(None));

/// The row, if there is one.
pub fn get() -> Option<Unconfirmed> {
    ROW.0.get()
}

/// The row, which is confirmed or taken back now.
pub fn take() -> Option<Unconfirmed> {
    ROW.0.take()
}

/// Another row, or what has become of this one.
pub fn set(row: Unconfirmed) {
    ROW.0.set(Some(row));
}

/// The (sub)transaction ended by an error: what was unconfirmed went with it.
pub fn forget() {
    ROW.0.set(None);
}
