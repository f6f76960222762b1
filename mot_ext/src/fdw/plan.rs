//! From a chosen path to a plan node.
use super::paths::PathPrivate;
use super::private::{items, list};
use pgrx::pg_sys;
use pgrx::prelude::*;

#[pg_guard]
pub unsafe extern "C-unwind" fn get_foreign_plan(
    _root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    _relid: pg_sys::Oid,
    path: *mut pg_sys::ForeignPath,
    targets: *mut pg_sys::List,
    clauses: *mut pg_sys::List,
    outer_plan: *mut pg_sys::Plan,
) -> *mut pg_sys::ForeignScan {
    // SAFETY: the planner's own structures; the path is one of ours.
    unsafe {
        let private = PathPrivate::from_list((*path).fdw_private);
        let exact = items::<pg_sys::RestrictInfo>(private.exact);
        let mut filters = Vec::new();
        for clause in items::<pg_sys::RestrictInfo>(clauses) {
            if !(*clause).pseudoconstant && !is_answered(clause, &exact) {
                filters.push((*clause).clause);
            }
        }
        pg_sys::make_foreignscan(
            targets,
            list(&filters),
            (*rel).relid,
            private.arguments,
            private.plan,
            std::ptr::null_mut(),
            private.rechecks,
            outer_plan,
        )
    }
}

/// Whether the index answers the clause, or another clause of the same equivalence.
unsafe fn is_answered(
    clause: *mut pg_sys::RestrictInfo,
    exact: &[*mut pg_sys::RestrictInfo],
) -> bool {
    // SAFETY: the planner's own structures.
    exact.iter().any(|other| unsafe {
        *other == clause
            || (!(*clause).parent_ec.is_null() && (*clause).parent_ec == (**other).parent_ec)
    })
}
