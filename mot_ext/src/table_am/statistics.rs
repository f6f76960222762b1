//! Core's cumulative statistics: what heapam counts, by the functions and counters that its macros
//! use. The rows that index scans fetch are counted by core, under the index.
use crate::pg;
use crate::pg::version::table_am as version;
use mot_engine::VersionRef;
use pgrx::pg_sys;

/// The counters of a relation, where they are kept.
unsafe fn counters<'a>(relation: pg_sys::Relation) -> Option<&'a mut pg_sys::PgStat_TableCounts> {
    // SAFETY: an open relation (caller), whose entry core makes at the first count.
    unsafe {
        if (*relation).pgstat_info.is_null() {
            if !(*relation).pgstat_enabled {
                return None;
            }
            pg_sys::pgstat_assoc_relation(relation);
        }
        Some(version::counts(&mut *(*relation).pgstat_info))
    }
}

/// Whether it is known where rows of a relation are counted, or that they are not.
#[inline]
pub unsafe fn is_counting_known(relation: pg_sys::Relation) -> bool {
    // SAFETY: an open relation (caller).
    unsafe { !(*relation).pgstat_info.is_null() || !(*relation).pgstat_enabled }
}

/// A scan of all rows, or an index scan, begins.
pub unsafe fn scan_begins(relation: pg_sys::Relation) {
    // SAFETY: the caller's open relation.
    if let Some(counters) = unsafe { counters(relation) } {
        version::count_scan(counters);
    }
}

/// A scan of all rows gives a row.
#[inline]
pub unsafe fn row_read(relation: pg_sys::Relation) {
    // SAFETY: the caller's open relation.
    unsafe { rows_read(relation, 1) };
}

/// A scan of all rows gives rows, or drops them by its conditions.
#[inline]
pub unsafe fn rows_read(relation: pg_sys::Relation, rows: i64) {
    // SAFETY: the caller's open relation.
    if let Some(counters) = unsafe { counters(relation) } {
        version::count_rows_read(counters, rows);
    }
}

/// A bitmap scan gives a row.
#[inline]
pub unsafe fn row_fetched(relation: pg_sys::Relation) {
    // SAFETY: the caller's open relation.
    if let Some(counters) = unsafe { counters(relation) } {
        version::count_rows_fetched(counters, 1);
    }
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

    /// Of entries of the relation cache; no index is NULL.
    ///
    /// # Safety
    /// Both entries are live: open, or not invalidated since they were.
    pub unsafe fn of(table: pg_sys::Relation, index: pg_sys::Relation) -> RowCounts {
        // SAFETY: a plain variable; live entries (caller).
        unsafe {
            if !pg_sys::pgstat_track_counts {
                return RowCounts::NONE;
            }
            let table = status(table);
            // As core counts index scans: on the index alone.
            let scanned = match index.is_null() {
                true => table,
                false => status(index),
            };
            RowCounts { table, scanned }
        }
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
unsafe fn status(relation: pg_sys::Relation) -> *mut pg_sys::PgStat_TableStatus {
    // SAFETY: a live entry (caller).
    unsafe {
        if (*relation).pgstat_info.is_null() {
            // Core decides it when it opens a relation. An entry that was only found lacks that.
            pg_sys::pgstat_init_relation(relation);
            if (*relation).pgstat_enabled {
                pg_sys::pgstat_assoc_relation(relation);
            }
        }
        (*relation).pgstat_info
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
pub unsafe fn row_changed(relation: pg_sys::Relation, change: RowChange) {
    // SAFETY: the caller's open relation.
    unsafe {
        let table = (*relation).pgstat_info;
        let counts = RowCounts {
            table,
            scanned: table,
        };
        if table.is_null() || !counts.add_change(change) {
            first_row_changed(relation, change);
        }
    }
}

/// Counts the first row of a (sub)transaction, by core's function.
pub unsafe fn first_row_changed(relation: pg_sys::Relation, change: RowChange) {
    // SAFETY: the caller's open relation.
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
pub unsafe fn rows_added(relation: pg_sys::Relation) -> i64 {
    // SAFETY: the caller's open relation; the levels of the transaction hang on each other.
    unsafe {
        let mut added = 0;
        // An entry of the relation cache that was made anew has not found its counters yet.
        if counters(relation).is_none() {
            return added;
        }
        let mut level = (*(*relation).pgstat_info).trans;
        while !level.is_null() {
            added += (*level).tuples_inserted - (*level).tuples_deleted;
            level = (*level).upper;
        }
        added
    }
}
