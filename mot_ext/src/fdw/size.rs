//! How many rows: from the engine's exact count and PostgreSQL's statistics about values.
use super::private::items;
use super::{by_row, conditions, short_range};
use crate::clock::widen;
use crate::{errors, relation, session};
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

pub unsafe fn get_foreign_rel_size(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    relid: pg_sys::Oid,
) {
    // SAFETY: the planner's own structures; the relation is locked since parse analysis.
    unsafe {
        // Core refuses one of the table itself; that of a table which it inherits from comes here, and core would forget it.
        let entry = *(*root).simple_rte_array.add((*rel).relid as usize);
        if !(*entry).tablesample.is_null() {
            errors::unsupported(
                "samples (TABLESAMPLE) of tables that memory-optimized tables inherit from",
                "Take the sample of the heap tables one by one (FROM ONLY), or use a condition such as random() < 0.01.",
            );
        }
        let table = relation::table_of(relid);
        leave_out_young_indexes(root, rel, table);
        (*rel).tuples = row_count(table);
        (*rel).pages = pages(table);
        by_row::replace_current_of(root, rel, relid);
        pg_sys::set_baserel_size_estimates(root, rel);
        if (*rel).rows > 1.0 && conditions::finds_one_row(root, rel) {
            (*rel).rows = 1.0;
        }
        short_range::bound(root, rel);
    }
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
