//! From a chosen path to a plan node.
use super::aggregate;
use super::paths::PathPrivate;
use super::private::{cells, list};
use pgrx::pg_sys;

pub unsafe fn get_foreign_plan(
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
        if aggregate::is_path(rel) {
            return aggregate::plan(path, targets, outer_plan);
        }
        let private_lists = PathPrivate::from_list((*path).fdw_private);
        let exact = cells::<pg_sys::RestrictInfo>(private_lists.exact);
        let mut filters = Vec::new();
        for clause in cells::<pg_sys::RestrictInfo>(clauses) {
            if !(**clause).pseudoconstant && !is_answered(*clause, exact) {
                filters.push((**clause).clause);
            }
        }
        pg_sys::make_foreignscan(
            targets,
            list(&filters),
            (*rel).relid,
            private_lists.arguments,
            private_lists.plan,
            std::ptr::null_mut(),
            private_lists.rechecks,
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
