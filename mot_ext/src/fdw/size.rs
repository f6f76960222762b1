//! How many rows: from the engine's exact count and PostgreSQL's statistics about values.
use super::private::items;
use crate::clock::widen;
use crate::session;
use mot_engine::{TableRef, Xid};
use pgrx::pg_sys;
use std::sync::atomic::Ordering;

/// Live rows of a table.
pub fn row_count(table: TableRef) -> f64 {
    table.counters().rows.load(Ordering::Relaxed).max(0) as f64
}

/// Live rows' bytes in pages of a heap, the unit other estimates are in.
pub fn pages(table: TableRef) -> u32 {
    let bytes = table.counters().row_bytes.load(Ordering::Relaxed).max(0) as u64;
    bytes
        .div_ceil(u64::from(pg_sys::BLCKSZ))
        .min(u64::from(u32::MAX - 1)) as u32
}

/// Takes the indexes from the planner that lack rows for snapshots as old as this session's oldest one, as core does where `indcheckxmin` is set: a plan
/// made so is kept only until its session's snapshots are younger. The catalog knows of the primary's snapshots alone, these are of a standby's, which
/// go on when it is promoted.
pub unsafe fn leave_out_young_indexes(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    table: TableRef,
) {
    let kept = session::session().indexes_kept_from_older(table);
    if kept.is_empty() {
        return;
    }
    // SAFETY: the planner's own structures, and a plain variable of this process.
    unsafe {
        let oldest = widen(pg_sys::TransactionXmin);
        for index in items::<pg_sys::IndexOptInfo>((*rel).indexlist) {
            let oid = (*index).indexoid.to_u32();
            let is_young = |(of, maker): &(u32, Xid)| *of == oid && *maker >= oldest;
            if kept.iter().any(is_young) {
                (*rel).indexlist = pg_sys::list_delete_ptr((*rel).indexlist, index.cast());
                (*(*root).glob).transientPlan = true;
            }
        }
    }
}
