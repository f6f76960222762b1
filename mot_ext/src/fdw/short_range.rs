//! Ranges between two values that a plan does not know.
//!
//! PostgreSQL takes a prepared statement's generic plan if that costs no more than the plans for known values did, planning included.
//! `BETWEEN $1 AND $2` is a two-hundredth of the table to core, so a statement that reads a hundred rows of a million looks cheaper planned
//! anew each time: it is, 50 µs each time, and neither its plan states nor a compiled form can ever be used again. Rows in
//! memory are read in less time than that. So where knowing the values could not change the plan, the range is taken to be short.
//!
//! It could not change the plan if
//! - one index answers all the table's conditions, so that no other reads fewer rows, and
//! - no other index gives an order that the query asks for, and
//! - the query is one SELECT, UPDATE or DELETE of this table: no join, subquery, LIMIT, cursor, nor a `min` or `max` that an index might give.
//!
//! What is left to the values is whether so many rows pay parallel workers, or are grouped by hashing or sorting.
use super::conditions::{self, Match, Test};
use super::paths;
use super::private::cells;
use pgrx::pg_sys;

/// Rows of such a range. With a sort on top it still costs less than the planning of a query of one table does, in core's reckoning.
const ROWS_MAX: f64 = 50.0;

/// The estimate for a relation whose clauses were estimated already.
pub unsafe fn bound(root: *mut pg_sys::PlannerInfo, rel: *mut pg_sys::RelOptInfo) {
    // SAFETY: the planner's own structures.
    unsafe {
        if (*rel).rows > ROWS_MAX && is_whole_query(root, rel) && is_between_unknowns(root, rel) {
            (*rel).rows = ROWS_MAX;
        }
    }
}

/// Whether the query is nothing but a scan of this relation, all of it, and what is made of its rows.
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

/// Whether core has found a way to a `min` or `max` by an index: it looks for one before it looks at the table.
unsafe fn has_min_max_path(root: *mut pg_sys::PlannerInfo) -> bool {
    // SAFETY: the planner's own structures.
    unsafe {
        let grouped = (*root).upper_rels[pg_sys::UpperRelationKind::UPPERREL_GROUP_AGG as usize];
        cells::<pg_sys::RelOptInfo>(grouped)
            .iter()
            .any(|rel| !(**rel).pathlist.is_null())
    }
}

/// Whether an index answers all clauses, the last ones by a range between unknown values, and no other has an order to offer.
unsafe fn is_between_unknowns(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
) -> bool {
    // SAFETY: the planner's own structures.
    unsafe {
        let clauses = cells::<pg_sys::RestrictInfo>((*rel).baserestrictinfo);
        let indexes = cells::<pg_sys::IndexOptInfo>((*rel).indexlist);
        let answers = |index: &&*mut pg_sys::IndexOptInfo| {
            let found = conditions::match_index(root, rel, **index, clauses);
            answers_all(&found, clauses)
                && has_unknown(root, &found, |test| {
                    matches!(test, Test::Greater | Test::GreaterEqual)
                })
                && has_unknown(root, &found, |test| {
                    matches!(test, Test::Less | Test::LessEqual)
                })
        };
        let Some(chosen) = indexes.iter().find(answers) else {
            return false;
        };
        let orders = |index: &*mut pg_sys::IndexOptInfo| {
            index != chosen && paths::has_useful_order(root, rel, *index)
        };
        !indexes.iter().any(orders)
    }
}

/// Whether the index reads no row that another condition drops. (`= ANY` asks for many ranges.)
pub fn answers_all(found: &Match, clauses: &[*mut pg_sys::RestrictInfo]) -> bool {
    let is_answered = |clause: &*mut pg_sys::RestrictInfo| {
        found.conditions.iter().any(|condition| {
            condition.clause == *clause && condition.is_exact && condition.test != Test::AnyOf
        })
    };
    clauses.iter().all(is_answered)
}

/// Whether a condition of this kind compares with a value that not even an estimate can be had of: a parameter of a generic plan.
unsafe fn has_unknown(
    root: *mut pg_sys::PlannerInfo,
    found: &Match,
    is_wanted: impl Fn(Test) -> bool,
) -> bool {
    found.conditions.iter().any(|condition| {
        // SAFETY: an argument of the planner's; what comes back is a node.
        is_wanted(condition.test)
            && unsafe {
                let argument = condition.argument.cast::<pg_sys::Node>();
                if (*argument).type_ == pg_sys::NodeTag::T_Const {
                    return false;
                }
                let known = pg_sys::estimate_expression_value(root, argument);
                (*known).type_ != pg_sys::NodeTag::T_Const
            }
    })
}
