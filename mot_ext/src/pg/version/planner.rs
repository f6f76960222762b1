//! Queries and paths.
use pgrx::pg_sys;

/// What a scan is expected to cost.
pub struct Cost {
    pub rows: f64,
    pub startup: f64,
    pub total: f64,
}

/// Whether RETURNING asks for old values.
#[cfg(feature = "pg18")]
pub unsafe fn returns_old_values(returning: *mut pg_sys::List) -> bool {
    let mut depth = crate::pg::depth::Depth::default();
    // SAFETY: a list of the planner's expressions.
    unsafe { asks_for_old(returning.cast(), (&raw mut depth).cast()) }
}

/// Whether the relation's RETURNING asks for old values.
#[cfg(feature = "pg18")]
pub unsafe fn returns_old(info: *const pg_sys::ResultRelInfo) -> bool {
    // SAFETY: an initialized result relation.
    unsafe {
        let returning = (*info).ri_projectReturning;
        !returning.is_null()
            && u32::from((*returning).pi_state.flags) & pg_sys::EEO_FLAG_HAS_OLD != 0
    }
}

/// The walker: true ends the walk.
#[cfg(feature = "pg18")]
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn asks_for_old(
    node: *mut pg_sys::Node,
    depth: *mut std::ffi::c_void,
) -> bool {
    use crate::pg::depth::is_found_below;
    use pg_sys::NodeTag::{T_ReturningExpr, T_Var};
    if node.is_null() {
        return false;
    }
    // SAFETY: an expression; casts by tag.
    unsafe {
        match (*node).type_ {
            T_Var => {
                (*node.cast::<pg_sys::Var>()).varreturningtype
                    == pg_sys::VarReturningType::VAR_RETURNING_OLD
            }
            // A virtual column's expression.
            T_ReturningExpr if (*node.cast::<pg_sys::ReturningExpr>()).retold => true,
            _ => is_found_below(depth.cast(), node, asks_for_old, depth),
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

/// The tables, functions and subqueries of a statement that is explained: with more than one, columns are shown with theirs.
pub unsafe fn tables_explained(es: *mut pg_sys::ExplainState) -> i32 {
    // SAFETY: the state of an EXPLAIN under way (caller).
    unsafe {
        // Without the entry that stands for GROUP BY.
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

/// Whether a path that costs so much can be one that the planner keeps. It keeps none of which this says no, so that one need not be made.
pub unsafe fn may_be_kept(
    rel: *mut pg_sys::RelOptInfo,
    cost: &Cost,
    order: *mut pg_sys::List,
    outer: pg_sys::Relids,
) -> bool {
    // SAFETY: the planner's own structures (caller). No path is disabled.
    unsafe {
        pg_sys::add_path_precheck(
            rel,
            #[cfg(feature = "pg18")]
            0,
            cost.startup,
            cost.total,
            order,
            outer,
        )
    }
}
