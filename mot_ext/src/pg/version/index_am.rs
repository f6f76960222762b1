//! Index access methods: what differs in their description.
use crate::pg::index_scan::IndexScan;
use pgrx::pg_sys;

/// `BTNProcs` of access/nbtree.h.
pub const BTREE_SUPPORT_FUNCTIONS: u16 = if cfg!(feature = "pg18") { 6 } else { 5 };

/// `BTOPTIONS_PROC` of access/nbtree.h.
pub const BTREE_OPTIONS_FUNCTION: u16 = 5;

/// Begins a scan of all that an index has.
///
/// # Safety
/// An open table, an open index of it, and a snapshot that stays registered or is none that has to
/// be.
pub unsafe fn begin_scan_of_all(
    table: pg_sys::Relation,
    index: pg_sys::Relation,
    snapshot: pg_sys::Snapshot,
) -> pg_sys::IndexScanDesc {
    // SAFETY: the caller's.
    unsafe {
        let scan = pg_sys::index_beginscan(
            table,
            index,
            snapshot,
            #[cfg(feature = "pg18")]
            std::ptr::null_mut(),
            0,
            0,
        );
        pg_sys::index_rescan(scan, std::ptr::null_mut(), 0, std::ptr::null_mut(), 0);
        scan
    }
}

/// Whether core takes the rows of an index scan for ordered where a list is sought behind the
/// index's first column.
pub const LISTS_KEEP_ORDER: bool = cfg!(any(feature = "pg17", feature = "pg18"));

/// Whether core asks which access method an index has, where it could ask what the method can: for
/// ON CONFLICT, for comparisons of rows, for REFRESH MATERIALIZED VIEW CONCURRENTLY, and for the
/// height of a tree (up to 17).
pub const ASKS_FOR_BTREE: bool = cfg!(not(feature = "pg18"));

/// Counts searches of an index scan for EXPLAIN ANALYZE (since 18).
#[inline]
pub fn count_searches(_scan: IndexScan<'_>, _searches: u64) {
    #[cfg(feature = "pg18")]
    // SAFETY: a live scan; core gives it counters where it wants them.
    unsafe {
        let counters = (*_scan.as_ptr()).instrument;
        if !counters.is_null() {
            (*counters).nsearches += _searches;
        }
    }
}

#[cfg(feature = "pg18")]
#[allow(ffi_unwind_calls)]
unsafe extern "C-unwind" {
    fn bttranslatestrategy(strategy: u16, family: pg_sys::Oid) -> pg_sys::CompareType::Type;
    fn bttranslatecmptype(comparison: pg_sys::CompareType::Type, family: pg_sys::Oid) -> u16;
}

/// Says what 18 does not take for granted of an index with btree's classes.
#[cfg_attr(not(feature = "pg18"), allow(unused_variables))]
pub fn describe(routine: &mut pg_sys::IndexAmRoutine) {
    #[cfg(feature = "pg18")]
    {
        routine.amconsistentequality = true;
        routine.amconsistentordering = true;
        routine.amtranslatestrategy = Some(bttranslatestrategy);
        routine.amtranslatecmptype = Some(bttranslatecmptype);
    }
}
