//! The open relations of an execution: core counts on their entries what is read and changed, and
//! DDL finds them in use.
use crate::storage;
use crate::table_am::{RowCounts, row_deleted, row_inserted, row_updated};
use pgrx::pg_sys;

/// A table and the index that is scanned, both open; NULL where there is none.
#[derive(Clone, Copy)]
pub struct Opened {
    table: pg_sys::Relation,
    index: pg_sys::Relation,
    /// Of rows that are found. They outlive an execution that fails.
    counts: RowCounts,
}

impl Opened {
    /// Nothing is open.
    pub const NONE: Opened = Opened {
        table: std::ptr::null_mut(),
        index: std::ptr::null_mut(),
        counts: RowCounts::NONE,
    };

    /// Opens a locked table, and its index if that is valid.
    pub unsafe fn open(table: pg_sys::Oid, index: pg_sys::Oid) -> Opened {
        // SAFETY: both are locked, so they exist.
        unsafe {
            let table = pg_sys::RelationIdGetRelation(table);
            let index = match index {
                pg_sys::InvalidOid => std::ptr::null_mut(),
                index => pg_sys::RelationIdGetRelation(index),
            };
            let counts = match storage::is_table(table) {
                true => RowCounts::of(table, index),
                false => RowCounts::NONE,
            };
            Opened {
                table,
                index,
                counts,
            }
        }
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

    /// Nothing is open, but counted where this execution counts. The caller sees to it that it is
    /// of this transaction, and that no relation has changed since.
    pub fn counts_alone(counts: RowCounts) -> Opened {
        Opened {
            counts,
            ..Opened::NONE
        }
    }

    /// Where rows are counted, until the transaction ends or the relation cache tells of a change.
    pub fn counts(&self) -> RowCounts {
        self.counts
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

    /// Counts a row that was inserted.
    pub unsafe fn count_insert(&self) {
        // SAFETY: an open table.
        unsafe { row_inserted(self.table) };
    }

    /// Counts a row that was changed or deleted.
    pub unsafe fn count_change(&self, is_delete: bool) {
        // SAFETY: an open table.
        unsafe {
            match is_delete {
                true => row_deleted(self.table),
                false => row_updated(self.table),
            }
        }
    }
}
