//! Core's cumulative statistics: what heapam counts, by the functions and counters that its macros
//! use.
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
    if let Some(counters) = unsafe { counters(relation) } {
        version::count_row_read(counters);
    }
}

/// An index scan gives a row of the table.
#[inline]
pub unsafe fn row_fetched(relation: pg_sys::Relation) {
    // SAFETY: the caller's open relation.
    if let Some(counters) = unsafe { counters(relation) } {
        version::count_row_fetched(counters);
    }
}

/// Rows that the open transaction has added to a table so far, deleted ones taken off.
pub unsafe fn rows_added(relation: pg_sys::Relation) -> i64 {
    // SAFETY: the caller's open relation; the levels of the transaction hang on each other.
    unsafe {
        let mut added = 0;
        if (*relation).pgstat_info.is_null() {
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
