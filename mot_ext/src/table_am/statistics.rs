//! Core's cumulative statistics: what heapam counts, by the functions and counters that its macros
//! use. The rows that index scans fetch are counted by core, under the index.
use crate::pg;
use crate::pg::version::table_am as version;
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

/// Where rows are counted that a scan of a table gives, by an index or of all. Core keeps these
/// counters until the transaction ends, whether the relations are open or not.
#[derive(Clone, Copy)]
pub struct RowCounts {
    table: *mut pg_sys::PgStat_TableCounts,
    index: *mut pg_sys::PgStat_TableCounts,
}

impl RowCounts {
    /// Nothing is counted.
    pub const NONE: RowCounts = RowCounts {
        table: std::ptr::null_mut(),
        index: std::ptr::null_mut(),
    };

    /// Of open relations; no index is NULL.
    pub unsafe fn of(table: pg_sys::Relation, index: pg_sys::Relation) -> RowCounts {
        let pointer = |relation| {
            // SAFETY: the caller's open relation.
            let found = unsafe { counters(relation) };
            found.map_or(std::ptr::null_mut(), std::ptr::from_mut)
        };
        match index.is_null() {
            true => RowCounts {
                table: pointer(table),
                ..RowCounts::NONE
            },
            // As core counts index scans: on the index alone.
            false => RowCounts {
                index: pointer(index),
                ..RowCounts::NONE
            },
        }
    }

    /// Whether there is something to count on.
    pub fn is_any(&self) -> bool {
        !self.table.is_null() || !self.index.is_null()
    }

    /// Counts a scan that begins.
    ///
    /// # Safety
    /// In the transaction in which the relations were open.
    pub unsafe fn scan_begins(&self) {
        let scanned = match self.index.is_null() {
            true => self.table,
            false => self.index,
        };
        // SAFETY: the caller's transaction goes on.
        if let Some(counters) = unsafe { scanned.as_mut() } {
            version::count_scan(counters);
        }
    }

    /// Counts rows that were found.
    ///
    /// # Safety
    /// In the transaction in which the relations were open.
    pub unsafe fn add(&self, rows: i64) {
        // SAFETY: the caller's transaction goes on.
        unsafe {
            if let Some(counters) = self.table.as_mut() {
                version::count_rows_read(counters, rows);
            }
            if let Some(counters) = self.index.as_mut() {
                version::count_rows_read(counters, rows);
                version::count_rows_fetched(counters, rows);
            }
        }
    }
}

/// The counters of the current (sub)transaction, if a change was counted in it before.
unsafe fn level<'a>(relation: pg_sys::Relation) -> Option<&'a mut pg_sys::PgStat_TableXactStatus> {
    // SAFETY: an open relation (caller); its counters, and those of its levels, live as long as the
    // transaction.
    unsafe {
        let level = (*relation).pgstat_info.as_ref()?.trans.as_mut()?;
        (level.nest_level == pg::nest_level()).then_some(level)
    }
}

/// A row was inserted: core's counter, by core's function for the first row of a (sub)transaction.
#[inline]
pub unsafe fn row_inserted(relation: pg_sys::Relation) {
    // SAFETY: the caller's open relation.
    unsafe {
        match level(relation) {
            Some(level) => level.tuples_inserted += 1,
            None => pg_sys::pgstat_count_heap_insert(relation, 1),
        }
    }
}

/// The same of a row that was changed.
#[inline]
pub unsafe fn row_updated(relation: pg_sys::Relation) {
    // SAFETY: the caller's open relation.
    unsafe {
        match level(relation) {
            Some(level) => level.tuples_updated += 1,
            None => version::count_update(relation),
        }
    }
}

/// The same of a row that was deleted.
#[inline]
pub unsafe fn row_deleted(relation: pg_sys::Relation) {
    // SAFETY: the caller's open relation.
    unsafe {
        match level(relation) {
            Some(level) => level.tuples_deleted += 1,
            None => pg_sys::pgstat_count_heap_delete(relation),
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
