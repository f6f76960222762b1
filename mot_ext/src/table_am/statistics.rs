//! Core's cumulative statistics: what heapam counts, by the functions and counters that its macros
//! use. The rows that index scans fetch are counted by core, under the index.
use crate::pg;
use crate::pg::relation::Relation;
use crate::pg::version::table_am as version;
use mot_engine::VersionRef;
use pgrx::pg_sys;
use std::ptr::NonNull;

/// Where a relation is counted, if it is; core makes it at the first count.
fn counters(relation: Relation<'_>) -> Option<NonNull<pg_sys::PgStat_TableStatus>> {
    let entry = relation.as_ptr();
    // SAFETY: an open relation.
    unsafe {
        if (*entry).pgstat_info.is_null() {
            if !(*entry).pgstat_enabled {
                return None;
            }
            pg_sys::pgstat_assoc_relation(entry);
        }
        NonNull::new((*entry).pgstat_info)
    }
}

/// Counts something of a relation, if it is counted.
#[inline]
fn count(relation: Relation<'_>, count: impl FnOnce(&mut pg_sys::PgStat_TableCounts)) {
    if let Some(mut status) = counters(relation) {
        // SAFETY: the counters of an open relation, to which nobody holds a reference.
        count(version::counts(unsafe { status.as_mut() }));
    }
}

/// Whether it is known where rows of a relation are counted, or that they are not.
#[inline]
pub fn is_counting_known(relation: Relation<'_>) -> bool {
    let entry = relation.as_ptr();
    // SAFETY: an open relation.
    unsafe { !(*entry).pgstat_info.is_null() || !(*entry).pgstat_enabled }
}

/// A scan of all rows, or an index scan, begins.
pub fn scan_begins(relation: Relation<'_>) {
    count(relation, version::count_scan);
}

/// A scan of all rows gives a row.
#[inline]
pub fn row_read(relation: Relation<'_>) {
    rows_read(relation, 1);
}

/// A scan of all rows gives rows, or drops them by its conditions.
#[inline]
pub fn rows_read(relation: Relation<'_>, rows: i64) {
    count(relation, |counts| version::count_rows_read(counts, rows));
}

/// A bitmap scan gives a row.
#[inline]
pub fn row_fetched(relation: Relation<'_>) {
    count(relation, |counts| version::count_rows_fetched(counts, 1));
}

/// Where a statement counts what it reads and changes. Core keeps these counters until the
/// transaction ends, whether the relations are open or not.
#[derive(Clone, Copy)]
pub struct RowCounts {
    /// Of the table; NULL where nothing is counted.
    table: *mut pg_sys::PgStat_TableStatus,
    /// Of the index that is scanned, or of the table.
    scanned: *mut pg_sys::PgStat_TableStatus,
}

impl RowCounts {
    /// Nothing is counted.
    pub const NONE: RowCounts = RowCounts {
        table: std::ptr::null_mut(),
        scanned: std::ptr::null_mut(),
    };

    /// Of entries of the relation cache. Both are open, or not invalidated since they were.
    pub fn of(table: Relation<'_>, index: Option<Relation<'_>>) -> RowCounts {
        // SAFETY: a plain variable of this process.
        if unsafe { !pg_sys::pgstat_track_counts } {
            return RowCounts::NONE;
        }
        let table = status(table);
        // As core counts index scans: on the index alone.
        let scanned = index.map_or(table, status);
        RowCounts { table, scanned }
    }

    /// Counts a scan that begins.
    ///
    /// # Safety
    /// In the transaction in which this was made.
    pub unsafe fn scan_begins(&self) {
        // SAFETY: the caller's transaction continues.
        if let Some(scanned) = unsafe { self.scanned.as_mut() } {
            version::count_scan(version::counts(scanned));
        }
    }

    /// Counts rows that the scan has found.
    ///
    /// # Safety
    /// In the transaction in which this was made.
    pub unsafe fn add(&self, rows: i64) {
        // SAFETY: the caller's transaction continues.
        if let Some(scanned) = unsafe { self.scanned.as_mut() } {
            let counters = version::counts(scanned);
            version::count_rows_read(counters, rows);
            if self.scanned != self.table {
                version::count_rows_fetched(counters, rows);
            }
        }
    }

    /// Counts a changed row. False: core's function for open relations has to, as it does for the
    /// first one of each (sub)transaction.
    ///
    /// # Safety
    /// In the transaction in which this was made.
    #[inline]
    pub unsafe fn add_change(&self, change: RowChange) -> bool {
        // SAFETY: the caller's transaction continues.
        unsafe {
            if self.table.is_null() {
                return true;
            }
            let Some(level) = level(self.table) else {
                return false;
            };
            match change {
                RowChange::Insert => level.tuples_inserted += 1,
                RowChange::Update => level.tuples_updated += 1,
                RowChange::UpdateBesideKeys => {
                    level.tuples_updated += 1;
                    version::count_beside_keys(version::counts(&mut *self.table));
                }
                RowChange::Delete => level.tuples_deleted += 1,
            }
        }
        true
    }
}

/// Where a relation is counted; NULL: nowhere.
fn status(relation: Relation<'_>) -> *mut pg_sys::PgStat_TableStatus {
    let entry = relation.as_ptr();
    // SAFETY: a live entry.
    unsafe {
        if (*entry).pgstat_info.is_null() {
            // Core decides it when it opens a relation. An entry that was only found lacks that.
            pg_sys::pgstat_init_relation(entry);
            if (*entry).pgstat_enabled {
                pg_sys::pgstat_assoc_relation(entry);
            }
        }
        (*entry).pgstat_info
    }
}

/// What was done to a row.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum RowChange {
    Insert,
    Update,
    /// No index needed a new entry.
    UpdateBesideKeys,
    Delete,
}

impl RowChange {
    /// An update that has put this version on a row.
    pub fn update_to(version: VersionRef) -> RowChange {
        match version.changed_keys() {
            true => RowChange::Update,
            false => RowChange::UpdateBesideKeys,
        }
    }
}

/// The counters of the current (sub)transaction, if a change was counted in it before.
unsafe fn level<'a>(
    status: *mut pg_sys::PgStat_TableStatus,
) -> Option<&'a mut pg_sys::PgStat_TableXactStatus> {
    // SAFETY: the counters of a relation (caller), and those of its levels, live as long as the
    // transaction.
    unsafe {
        let level = (*status).trans.as_mut()?;
        (level.nest_level == pg::nest_level()).then_some(level)
    }
}

/// A row was changed: core's counter, by core's function for the first row of a (sub)transaction.
#[inline]
pub fn row_changed(relation: Relation<'_>, change: RowChange) {
    // SAFETY: an open relation.
    let table = unsafe { (*relation.as_ptr()).pgstat_info };
    let counts = RowCounts {
        table,
        scanned: table,
    };
    // SAFETY: the counters of an open relation are this transaction's.
    if table.is_null() || unsafe { !counts.add_change(change) } {
        first_row_changed(relation, change);
    }
}

/// So many rows are inserted.
pub fn rows_inserted(relation: Relation<'_>, rows: i64) {
    // SAFETY: an open relation.
    unsafe { pg_sys::pgstat_count_heap_insert(relation.as_ptr(), rows) };
}

/// Counts the first row of a (sub)transaction, by core's function.
pub fn first_row_changed(relation: Relation<'_>, change: RowChange) {
    let relation = relation.as_ptr();
    // SAFETY: an open relation.
    unsafe {
        match change {
            RowChange::Insert => pg_sys::pgstat_count_heap_insert(relation, 1),
            RowChange::Update => version::count_update(relation),
            RowChange::UpdateBesideKeys => version::count_update_beside_keys(relation),
            RowChange::Delete => pg_sys::pgstat_count_heap_delete(relation),
        }
    }
}

/// Rows that the open transaction has added to a table so far, deleted ones taken off.
pub fn rows_added(relation: Relation<'_>) -> i64 {
    // An entry of the relation cache that was made anew has not found its counters yet.
    let Some(status) = counters(relation) else {
        return 0;
    };
    // SAFETY: the counters of an open relation.
    let mut level = unsafe { (*status.as_ptr()).trans };
    let mut added = 0;
    // SAFETY: NULL, or a level of the transaction; they hang on each other.
    while let Some(changes) = unsafe { level.as_ref() } {
        added += changes.tuples_inserted - changes.tuples_deleted;
        level = changes.upper;
    }
    added
}
