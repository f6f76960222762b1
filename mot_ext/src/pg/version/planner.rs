//! Queries and paths.
use crate::pg::node::{Any, Node};
use pgrx::pg_sys;

/// What a scan is expected to cost.
pub struct Cost {
    pub rows: f64,
    pub startup: f64,
    pub total: f64,
}

impl Cost {
    /// What each of so many processes takes that share the scan.
    pub fn shared(&self, processes: f64) -> Cost {
        Cost {
            // SAFETY: plain arithmetic.
            rows: unsafe { pg_sys::clamp_row_est(self.rows / processes) },
            startup: self.startup,
            total: self.startup + (self.total - self.startup) / processes,
        }
    }
}

/// Whether a column is the row's own, and not RETURNING's `old` or `new`, which 18 has.
pub fn is_of_the_row(_column: &pg_sys::Var) -> bool {
    #[cfg(not(feature = "pg18"))]
    return true;
    #[cfg(feature = "pg18")]
    return _column.varreturningtype == pg_sys::VarReturningType::VAR_RETURNING_DEFAULT;
}

/// The tables, functions and subqueries of a statement that is explained: with more than one,
/// columns are shown with theirs.
pub unsafe fn tables_explained(es: *mut pg_sys::ExplainState) -> i32 {
    // SAFETY: the state of an EXPLAIN under way (caller).
    unsafe {
        // Without the entry for GROUP BY.
        #[cfg(feature = "pg18")]
        return (*es).rtable_size;
        #[cfg(not(feature = "pg18"))]
        if (*es).rtable.is_null() {
            0
        } else {
            (*(*es).rtable).length
        }
    }
}

/// How many values a list is expected to have.
pub fn length_of_list(_root: Node<'_, pg_sys::PlannerInfo>, list: Any<'_>) -> f64 {
    // SAFETY: an expression of the planner's.
    unsafe {
        #[cfg(any(feature = "pg15", feature = "pg16"))]
        return f64::from(pg_sys::estimate_array_length(list.as_ptr()));
        #[cfg(not(any(feature = "pg15", feature = "pg16")))]
        pg_sys::estimate_array_length(_root.as_ptr(), list.as_ptr())
    }
}

/// Whether a path that gives its rows in no order, and costs so much, can be one that the planner
/// keeps. It keeps none of which this says no, so that one need not be made.
pub fn may_be_kept(rel: Node<'_, pg_sys::RelOptInfo>, cost: &Cost) -> bool {
    let (no_order, no_outer) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: the planner's own structure. No path is disabled.
    unsafe {
        pg_sys::add_path_precheck(
            rel.as_ptr(),
            #[cfg(feature = "pg18")]
            0,
            cost.startup,
            cost.total,
            no_order,
            no_outer,
        )
    }
}
