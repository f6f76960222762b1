//! The relations of an execution: core counts on their entries what is read and changed, and DDL
//! finds the open ones in use.
//!
//! An execution that no other code finds under way opens nothing: it counts through entries
//! of the relation cache that it found before. Core frees an entry that is not open when it is
//! invalidated. The callback that follows moves `relation::generation` on.
use crate::pg::argument::Argument;
use crate::pg::relation::Relation;
use crate::table_am::{RowChange, RowCounts, first_row_changed};
use crate::transaction::relation;
use pgrx::pg_sys;
use std::ptr::null_mut;

/// A table and the index that is scanned, as the relation cache had them.
#[derive(Clone, Copy)]
pub struct Entries {
    /// `relation::generation` before they were looked up.
    generation: u64,
    /// NULL: not looked up yet.
    table: pg_sys::Relation,
    index: pg_sys::Relation,
}

impl Entries {
    /// Not looked up yet.
    pub const NONE: Entries = Entries {
        generation: 0,
        table: null_mut(),
        index: null_mut(),
    };

    /// Whether no entry can have been freed since.
    fn are_live(&self) -> bool {
        !self.table.is_null() && self.generation == relation::generation()
    }
}

/// What an execution has open, and where it counts.
#[derive(Clone, Copy)]
pub struct Opened {
    /// NULL where it is not open.
    table: pg_sys::Relation,
    index: pg_sys::Relation,
    /// They outlive an execution that fails.
    counts: RowCounts,
}

impl Opened {
    /// Nothing is open.
    pub const NONE: Opened = Opened {
        table: null_mut(),
        index: null_mut(),
        counts: RowCounts::NONE,
    };

    /// Opens a locked table, and its index if that is valid, and notes their entries.
    ///
    /// # Safety
    /// Both are locked.
    pub unsafe fn open(table: pg_sys::Oid, index: pg_sys::Oid, entries: &mut Entries) -> Opened {
        let generation = relation::generation();
        // SAFETY: both are locked, so they exist.
        unsafe {
            let table = pg_sys::RelationIdGetRelation(table);
            let index = match index {
                pg_sys::InvalidOid => null_mut(),
                index => pg_sys::RelationIdGetRelation(index),
            };
            *entries = Entries {
                generation,
                table,
                index,
            };
            Opened {
                table,
                index,
                counts: RowCounts::of(Relation::enter(table), Argument::of(index)),
            }
        }
    }

    /// Nothing is open, but counted by the entries; `None` if those may be gone.
    pub fn closed(entries: &Entries) -> Option<Opened> {
        entries.are_live().then(|| Opened {
            // SAFETY: the entries are live.
            counts: unsafe {
                RowCounts::of(Relation::enter(entries.table), Argument::of(entries.index))
            },
            ..Opened::NONE
        })
    }

    /// The open table.
    pub fn table(&self) -> pg_sys::Relation {
        self.table
    }

    /// Closes what is open. After an error PostgreSQL's resource owner does.
    pub unsafe fn close(&mut self) {
        // SAFETY: open relations, or NULL.
        unsafe {
            for relation in [self.index, self.table] {
                if !relation.is_null() {
                    pg_sys::RelationClose(relation);
                }
            }
        }
        *self = Opened::NONE;
    }

    /// Counts a scan that begins.
    pub fn count_scan(&self) {
        // SAFETY: of this transaction, if any.
        unsafe { self.counts.scan_begins() };
    }

    /// Counts rows that the scan has given; after an error, too.
    pub fn count_found(&self, rows: u64) {
        // SAFETY: of this transaction, if any.
        unsafe { self.counts.add(rows as i64) };
    }

    /// Counts a row of `table` that was changed.
    ///
    /// # Safety
    /// The table is locked, and the one of this execution.
    #[inline]
    pub unsafe fn count_change(&self, table: pg_sys::Oid, change: RowChange) {
        // SAFETY: the counters are of this transaction, if any.
        if unsafe { self.counts.add_change(change) } {
            return;
        }
        relation::LockedRelation::closed(table).with(|opened| first_row_changed(opened, change));
    }
}
