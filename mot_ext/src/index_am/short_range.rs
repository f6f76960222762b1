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
use crate::pg::node::{Any, Node};
use pgrx::pg_sys::NodeTag::{T_Const, T_Var};
use pgrx::pg_sys::{self, IndexOptInfo, IndexPath, OpExpr, PlannerInfo, RelOptInfo, RestrictInfo};

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
pub fn rows(root: Node<'_, PlannerInfo>, path: Node<'_, IndexPath>) -> Option<f64> {
    let rel = path.path().relation();
    let is_long = !path.path().param_info() && rel.rows() > ROWS_MAX;
    (is_long
        && is_whole_query(root, rel)
        && is_between_unknowns(root, path)
        && !another_orders(root, path))
    .then_some(ROWS_MAX)
}

/// Whether the range that a path reads ends at a value of an outer query, of a subquery that is
/// evaluated before, or of a row of another relation.
pub fn ends_at_outer_value(root: Node<'_, PlannerInfo>, path: Node<'_, IndexPath>) -> bool {
    path.conditions().any(|(column, condition)| {
        let Some(call) = condition.cast::<OpExpr>() else {
            return false;
        };
        let strategy = strategy_of(path, column, call);
        let is_range = LESS.contains(&strategy) || GREATER.contains(&strategy);
        let ends_outside = |value| is_of_outer(value) && is_unknown(root, value);
        is_range && call.args().get(1).is_some_and(ends_outside)
    })
}

/// Whether a value is computed, by operators and functions, of one that another part of the plan
/// has.
fn is_of_outer(value: Any<'_>) -> bool {
    if let Some(parameter) = value.cast::<pg_sys::Param>() {
        return parameter.paramkind() == pg_sys::ParamKind::PARAM_EXEC;
    }
    if let Some(call) = value.cast::<OpExpr>() {
        return call.args().iter().any(is_of_outer);
    }
    if let Some(call) = value.cast::<pg_sys::FuncExpr>() {
        return call.args().iter().any(is_of_outer);
    }
    match value.cast::<pg_sys::RelabelType>() {
        Some(labelled) => labelled.arg().is_some_and(is_of_outer),
        None => value.tag() == T_Var,
    }
}

fn strategy_of(path: Node<'_, IndexPath>, column: i16, call: Node<'_, OpExpr>) -> i32 {
    let family = path.index().key_column(column as usize).family;
    // SAFETY: a catalog look-up.
    unsafe { pg_sys::get_op_opfamily_strategy(call.opno(), family) }
}

/// Whether the query is nothing but a scan of this relation, all of it, and what is made of its
/// rows.
fn is_whole_query(root: Node<'_, PlannerInfo>, rel: Node<'_, RelOptInfo>) -> bool {
    let query = root.query();
    root.query_level() == 1
        && !root.parent_root()
        && !root.has_subplans()
        && !query.cteList()
        && !query.limitCount()
        && !query.limitOffset()
        && root.tuple_fraction() == 0.0
        && !has_min_max_path(root)
        && rel.reloptkind() == pg_sys::RelOptKind::RELOPT_BASEREL
        && root.is_of_one_table()
}

/// Whether core has found a way to a `min` or `max` by an index: it looks for one before it looks
/// at the table.
fn has_min_max_path(root: Node<'_, PlannerInfo>) -> bool {
    root.made_relations(pg_sys::UpperRelationKind::UPPERREL_GROUP_AGG)
        .iter()
        .any(|rel| !rel.pathlist().is_empty())
}

/// Whether the index answers all clauses, by equalities and a range between unknown values.
fn is_between_unknowns(root: Node<'_, PlannerInfo>, path: Node<'_, IndexPath>) -> bool {
    let is_answered = |clause: Node<'_, RestrictInfo>| {
        path.indexclauses()
            .iter()
            .any(|with| with.rinfo() == Some(clause) && !with.lossy())
    };
    let own = path.path().relation().baserestrictinfo();
    if !own.iter().all(is_answered) {
        return false;
    }
    let (mut from, mut to) = (false, false);
    for (column, condition) in path.conditions() {
        // `= ANY` asks for many ranges; so may a comparison of rows.
        let Some(call) = condition.cast::<OpExpr>() else {
            return false;
        };
        let strategy = strategy_of(path, column, call);
        let value = call.args().get(1);
        let is_unknown = value.is_some_and(|value| is_unknown(root, value));
        from |= is_unknown && GREATER.contains(&strategy);
        to |= is_unknown && LESS.contains(&strategy);
    }
    from && to
}

/// Whether not even an estimate can be had of a value: a parameter of a generic plan.
fn is_unknown<'p>(root: Node<'p, PlannerInfo>, value: Any<'p>) -> bool {
    value.tag() != T_Const && root.estimated(value).tag() != T_Const
}

/// Whether another index than the path's has an order to offer.
fn another_orders(root: Node<'_, PlannerInfo>, path: Node<'_, IndexPath>) -> bool {
    let rel = path.path().relation();
    let orders = |index: Node<'_, IndexOptInfo>| {
        let is_wanted = |direction| root.wants_order_of((rel, index), direction);
        index != path.index()
            && index.sortopfamily()
            && (is_wanted(pg_sys::ScanDirection::ForwardScanDirection)
                || is_wanted(pg_sys::ScanDirection::BackwardScanDirection))
    };
    root.wants_order(rel) && rel.indexlist().iter().any(orders)
}
