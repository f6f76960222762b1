//! Rows that are in place, and neither confirmed nor taken back: of INSERT ... ON CONFLICT
//! (`table_am/speculative.rs`), and of a COPY that is to fail for them (`table_am/insert.rs`).
//!
//! While a row is one, core computes keys of expressions. Their functions may write such rows, too,
//! and may catch errors. So this is a stack, and an error takes those rows off it that its
//! (sub)transaction has put there.
use crate::pg;
use crate::pg::local::ProcessLocal;
use mot_engine::{IndexRef, RowId, TableRef, VersionRef};
use std::cell::RefCell;

/// Such a row.
#[derive(Clone, Copy)]
pub struct Unconfirmed {
    pub table: TableRef,
    pub row: RowId,
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
    /// Another row has its key in this one.
    Refused(IndexRef),
}

/// A row, and the nesting level of the (sub)transaction that made it.
struct Made {
    row: Unconfirmed,
    level: i32,
}

static ROWS: ProcessLocal<RefCell<Vec<Made>>> = ProcessLocal(RefCell::new(Vec::new()));

/// The newest row, if there is one.
pub fn get() -> Option<Unconfirmed> {
    ROWS.0.borrow().last().map(|made| made.row)
}

/// The newest row, which is confirmed or taken back now.
pub fn take() -> Option<Unconfirmed> {
    ROWS.0.borrow_mut().pop().map(|made| made.row)
}

/// A new row.
pub fn begin(row: Unconfirmed) {
    let level = pg::nest_level();
    ROWS.0.borrow_mut().push(Made { row, level });
}

/// The newest row is in these indexes now.
pub fn set_entered(entered: Entries) {
    if let Some(made) = ROWS.0.borrow_mut().last_mut() {
        made.row.entered = entered;
    }
}

/// The subtransaction of this level ended by an error: what it made is gone.
pub fn forget(level: i32) {
    ROWS.0.borrow_mut().retain(|made| made.level < level);
}

/// The transaction ended by an error.
pub fn forget_all() {
    ROWS.0.borrow_mut().clear();
}
