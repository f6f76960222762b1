//! Queries and paths.
use pgrx::pg_sys;

/// Has no privilege asked for on the result relation of a query.
#[cfg_attr(feature = "pg15", allow(unused_variables))]
pub unsafe fn ask_no_privilege(query: *mut pg_sys::Query, target: *mut pg_sys::RangeTblEntry) {
    // SAFETY: fresh nodes of the caller's.
    unsafe {
        #[cfg(feature = "pg15")]
        {
            (*target).requiredPerms = 0;
        }
        #[cfg(not(feature = "pg15"))]
        {
            let info = pg_sys::addRTEPermissionInfo(&raw mut (*query).rteperminfos, target);
            (*info).requiredPerms = 0;
        }
    }
}

/// Has a finished plan's tables looked at and changed whatever the user's privileges: as if the first superuser's were asked.
pub unsafe fn ask_none_of_plan(plan: *mut pg_sys::PlannedStmt) {
    let superuser = pg_sys::Oid::from(pg_sys::BOOTSTRAP_SUPERUSERID);
    // SAFETY: a fresh plan of the caller's; both lists are of what is named.
    unsafe {
        #[cfg(feature = "pg15")]
        for entry in pgrx::PgList::<pg_sys::RangeTblEntry>::from_pg((*plan).rtable).iter_ptr() {
            (*entry).checkAsUser = superuser;
        }
        #[cfg(not(feature = "pg15"))]
        for info in pgrx::PgList::<pg_sys::RTEPermissionInfo>::from_pg((*plan).permInfos).iter_ptr()
        {
            (*info).checkAsUser = superuser;
        }
    }
}

/// An empty comparison of rows, with btree's number for what it asks.
pub unsafe fn row_comparison(number: u32) -> *mut pg_sys::RowCompareExpr {
    // SAFETY: zeroed memory of the node's size in the current memory context.
    unsafe {
        let bytes = size_of::<pg_sys::RowCompareExpr>();
        let row = pg_sys::palloc0(bytes).cast::<pg_sys::RowCompareExpr>();
        (*row).xpr.type_ = pg_sys::NodeTag::T_RowCompareExpr;
        #[cfg(not(feature = "pg18"))]
        {
            (*row).rctype = number as pg_sys::RowCompareType::Type;
        }
        #[cfg(feature = "pg18")]
        {
            (*row).cmptype = number as pg_sys::CompareType::Type;
        }
        row
    }
}

/// A function that `expression_tree_mutator` calls for the parts of an expression.
pub type Mutator =
    unsafe extern "C-unwind" fn(*mut pg_sys::Node, *mut std::ffi::c_void) -> *mut pg_sys::Node;

/// A copy of an expression with its parts as the mutator gives them.
pub unsafe fn mutate(
    node: *mut pg_sys::Node,
    mutator: Mutator,
    context: *mut std::ffi::c_void,
) -> *mut pg_sys::Node {
    // SAFETY: an expression, and a mutator for its parts (caller). In 15 the function is declared without its parameters, and called with them.
    unsafe {
        #[cfg(feature = "pg15")]
        return pg_sys::expression_tree_mutator(
            node,
            Some(std::mem::transmute::<
                Mutator,
                unsafe extern "C-unwind" fn() -> *mut pg_sys::Node,
            >(mutator)),
            context,
        );
        #[cfg(not(feature = "pg15"))]
        return pg_sys::expression_tree_mutator_impl(node, Some(mutator), context);
    }
}

/// A copy of expressions over a partitioned or inherited table as they are over one of its children: `child` at any depth.
pub unsafe fn adjust_to_child(
    root: *mut pg_sys::PlannerInfo,
    node: *mut pg_sys::Node,
    child: *mut pg_sys::RelOptInfo,
) -> *mut pg_sys::Node {
    // SAFETY: the planner's own structures (caller).
    unsafe {
        #[cfg(feature = "pg15")]
        return pg_sys::adjust_appendrel_attrs_multilevel(
            root,
            node,
            (*child).relids,
            (*child).top_parent_relids,
        );
        #[cfg(not(feature = "pg15"))]
        return pg_sys::adjust_appendrel_attrs_multilevel(root, node, child, (*child).top_parent);
    }
}

/// A condition of a base relation's own, as the planner keeps it.
pub unsafe fn make_restriction(
    root: *mut pg_sys::PlannerInfo,
    clause: *mut pg_sys::Expr,
    security_level: u32,
) -> *mut pg_sys::RestrictInfo {
    let none = std::ptr::null_mut();
    // SAFETY: the planner's own structures (caller). What stands between `is_pushed_down` and the level says in 15 that it is not
    // delayed by an outer join, later that it is no clone; then that it is not pseudoconstant.
    unsafe {
        pg_sys::make_restrictinfo(
            root,
            clause,
            true,
            false,
            #[cfg(not(feature = "pg15"))]
            false,
            false,
            security_level,
            none,
            none,
            none,
        )
    }
}

/// How many elements an array expression is expected to have.
#[cfg_attr(any(feature = "pg15", feature = "pg16"), allow(unused_variables))]
pub unsafe fn array_length(root: *mut pg_sys::PlannerInfo, array: *mut pg_sys::Node) -> f64 {
    // SAFETY: an expression of array type (caller).
    unsafe {
        #[cfg(any(feature = "pg15", feature = "pg16"))]
        return f64::from(pg_sys::estimate_array_length(array));
        #[cfg(any(feature = "pg17", feature = "pg18"))]
        return pg_sys::estimate_array_length(root, array);
    }
}

/// What a scan is expected to cost.
pub struct Cost {
    pub rows: f64,
    pub startup: f64,
    pub total: f64,
}

/// A path for a scan of the relation.
pub unsafe fn foreign_path(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    cost: Cost,
    order: *mut pg_sys::List,
    outer: pg_sys::Relids,
    private: *mut pg_sys::List,
) -> *mut pg_sys::ForeignPath {
    // SAFETY: the planner's own structures (caller). No path is disabled, and none stands for a join that has conditions of its own.
    unsafe {
        pg_sys::create_foreignscan_path(
            root,
            rel,
            std::ptr::null_mut(),
            cost.rows,
            #[cfg(feature = "pg18")]
            0,
            cost.startup,
            cost.total,
            order,
            outer,
            std::ptr::null_mut(),
            #[cfg(any(feature = "pg17", feature = "pg18"))]
            std::ptr::null_mut(),
            private,
        )
    }
}

/// A path for what is made of a scan's rows, over a path of the scan.
pub unsafe fn foreign_upper_path(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    cost: Cost,
    below: *mut pg_sys::Path,
    private: *mut pg_sys::List,
) -> *mut pg_sys::ForeignPath {
    // SAFETY: the planner's own structures (caller). No path is disabled but by what is below, and none stands for a join.
    unsafe {
        pg_sys::create_foreign_upper_path(
            root,
            rel,
            (*rel).reltarget,
            cost.rows,
            #[cfg(feature = "pg18")]
            (*below).disabled_nodes,
            cost.startup,
            cost.total,
            std::ptr::null_mut(),
            below,
            #[cfg(any(feature = "pg17", feature = "pg18"))]
            std::ptr::null_mut(),
            private,
        )
    }
}

/// Whether RETURNING asks for old values, as it can since 18.
#[cfg(not(feature = "pg18"))]
pub unsafe fn returns_old_values(_returning: *mut pg_sys::List) -> bool {
    false
}

/// Whether RETURNING asks for old values.
#[cfg(feature = "pg18")]
pub unsafe fn returns_old_values(returning: *mut pg_sys::List) -> bool {
    let mut depth = crate::pg::depth::Depth::default();
    // SAFETY: a list of the planner's expressions.
    unsafe { asks_for_old(returning.cast(), (&raw mut depth).cast()) }
}

/// Whether the relation's RETURNING asks for old values; before 18 nobody can.
#[cfg(not(feature = "pg18"))]
pub unsafe fn returns_old(_info: *const pg_sys::ResultRelInfo) -> bool {
    false
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

/// Whether a column stands above an outer join that may have made it NULL; nodes say so since 16.
pub fn may_be_made_null(_column: &pg_sys::Var) -> bool {
    #[cfg(feature = "pg15")]
    return false;
    #[cfg(not(feature = "pg15"))]
    return !_column.varnullingrels.is_null();
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
