//! Ranges between two values that a plan does not know.
//!
//! PostgreSQL takes a prepared statement's generic plan if that costs no more than the plans for
//! known values did, planning included. `BETWEEN $1 AND $2` is a two-hundredth of the table to
//! core. So a statement that reads a hundred rows of a million looks cheaper planned anew each
//! time. It is, 50 µs each time, and neither its plan states nor a compiled form can ever be used
//! again. Rows in memory are read in less time than that. So where knowing the values could not
//! change the plan, the range is taken to be short.
//!
//! It could not change the plan if
//! - the index answers all the table's conditions, so that no other reads fewer rows, and
//! - no other index gives an order that the query asks for, and
//! - the query is one SELECT, UPDATE or DELETE of this table: no join, subquery, LIMIT, cursor, nor
//!   a `min` or `max` that an index might give.
//!
//! What is left to the values is whether so many rows pay parallel workers, or are grouped by
//! hashing or sorting.
//!
//! Core has no hook between its estimate of a table's rows and the paths, so an index says it when
//! it is asked for its costs.
use crate::pg::list::cells;
use pgrx::pg_sys::{self, NodeTag::*};

/// Rows of such a range. With a sort on top it still costs less than the planning of a query of one
/// table does, in core's reckoning.
const ROWS_MAX: f64 = 50.0;

/// Strategies of btree that bound a range from above and from below.
const LESS: [i32; 2] = [
    pg_sys::BTLessStrategyNumber as i32,
    pg_sys::BTLessEqualStrategyNumber as i32,
];
const GREATER: [i32; 2] = [
    pg_sys::BTGreaterEqualStrategyNumber as i32,
    pg_sys::BTGreaterStrategyNumber as i32,
];

/// The rows that a path is to count, if it reads such a range.
///
/// # Safety
/// The planner's own structures, a path over an index of ours with its conditions.
pub unsafe fn rows(root: *mut pg_sys::PlannerInfo, path: *const pg_sys::IndexPath) -> Option<f64> {
    // SAFETY: the caller's.
    unsafe {
        let rel = (*path).path.parent;
        let is_long = (*path).path.param_info.is_null() && (*rel).rows > ROWS_MAX;
        (is_long
            && is_whole_query(root, rel)
            && is_between_unknowns(root, path)
            && !another_orders(root, path))
        .then_some(ROWS_MAX)
    }
}

/// Whether the query is nothing but a scan of this relation, all of it, and what is made of its
/// rows.
unsafe fn is_whole_query(root: *mut pg_sys::PlannerInfo, rel: *mut pg_sys::RelOptInfo) -> bool {
    // SAFETY: the planner's own structures.
    unsafe {
        let query = &*(*root).parse;
        (*root).query_level == 1
            && (*root).parent_root.is_null()
            && (*(*root).glob).subplans.is_null()
            && query.cteList.is_null()
            && query.limitCount.is_null()
            && query.limitOffset.is_null()
            && (*root).tuple_fraction == 0.0
            && !has_min_max_path(root)
            && (*rel).reloptkind == pg_sys::RelOptKind::RELOPT_BASEREL
            && pg_sys::bms_membership((*root).all_baserels) == pg_sys::BMS_Membership::BMS_SINGLETON
    }
}

/// Whether core has found a way to a `min` or `max` by an index: it looks for one before it looks
/// at the table.
unsafe fn has_min_max_path(root: *mut pg_sys::PlannerInfo) -> bool {
    // SAFETY: the planner's own structures.
    unsafe {
        let grouped = (*root).upper_rels[pg_sys::UpperRelationKind::UPPERREL_GROUP_AGG as usize];
        cells::<pg_sys::RelOptInfo>(grouped)
            .iter()
            .any(|rel| !(**rel).pathlist.is_null())
    }
}

/// Whether the index answers all clauses, by equalities and a range between unknown values.
unsafe fn is_between_unknowns(
    root: *mut pg_sys::PlannerInfo,
    path: *const pg_sys::IndexPath,
) -> bool {
    // SAFETY: the planner's own structures: an index clause has the clause that it is made of, and
    // conditions of the index.
    unsafe {
        let index = &*(*path).indexinfo;
        let clauses = cells::<pg_sys::IndexClause>((*path).indexclauses);
        let own = cells::<pg_sys::RestrictInfo>((*(*path).path.parent).baserestrictinfo);
        let is_answered = |clause: &*mut pg_sys::RestrictInfo| {
            let answers =
                |with: &&*mut pg_sys::IndexClause| (***with).rinfo == *clause && !(***with).lossy;
            clauses.iter().any(|with| answers(&with))
        };
        if !own.iter().all(is_answered) {
            return false;
        }
        let (mut from, mut to) = (false, false);
        for clause in clauses {
            let family = *index.opfamily.add((**clause).indexcol as usize);
            for condition in cells::<pg_sys::RestrictInfo>((**clause).indexquals) {
                let expression = (**condition).clause.cast::<pg_sys::Node>();
                if (*expression).type_ != T_OpExpr {
                    // `= ANY` asks for many ranges; so may a comparison of rows.
                    return false;
                }
                let call = expression.cast::<pg_sys::OpExpr>();
                let strategy = pg_sys::get_op_opfamily_strategy((*call).opno, family);
                let is_unknown = is_unknown(root, pg_sys::get_rightop(expression.cast()));
                from |= is_unknown && GREATER.contains(&strategy);
                to |= is_unknown && LESS.contains(&strategy);
            }
        }
        from && to
    }
}

/// Whether not even an estimate can be had of a value: a parameter of a generic plan.
unsafe fn is_unknown(root: *mut pg_sys::PlannerInfo, value: *mut pg_sys::Node) -> bool {
    // SAFETY: an argument of the planner's; what comes back is a node.
    unsafe {
        if (*value).type_ == T_Const {
            return false;
        }
        (*pg_sys::estimate_expression_value(root, value)).type_ != T_Const
    }
}

/// Whether another index than the path's has an order to offer.
unsafe fn another_orders(root: *mut pg_sys::PlannerInfo, path: *const pg_sys::IndexPath) -> bool {
    // SAFETY: the planner's own structures.
    unsafe {
        let rel = (*path).path.parent;
        let orders = |index: &*mut pg_sys::IndexOptInfo| {
            let is_ordered = |direction| {
                let keys = pg_sys::build_index_pathkeys(root, *index, direction);
                !pg_sys::truncate_useless_pathkeys(root, rel, keys).is_null()
            };
            *index != (*path).indexinfo
                && !(**index).sortopfamily.is_null()
                && (is_ordered(pg_sys::ScanDirection::ForwardScanDirection)
                    || is_ordered(pg_sys::ScanDirection::BackwardScanDirection))
        };
        pg_sys::has_useful_pathkeys(root, rel)
            && cells::<pg_sys::IndexOptInfo>((*rel).indexlist)
                .iter()
                .any(orders)
    }
}
