//! The ways to scan a table: all rows, or through an index, each also with values from other tables of a join.
//!
//! Costs are in core's unit and its own settings, so that joins with heap tables are weighed rightly. There are no pages: what a
//! heap pays for a page, a memory row pays as a cache miss, far below `cpu_tuple_cost`. An index's order is offered as pathkeys,
//! both ways, as far as the key's byte order is the collation's order.
mod order;
mod outer;

use super::by_row;
use super::conditions::{self, Condition, Match, Test};
use super::parallel;
use super::private::{self, Key, cells, list, list_of};
use super::short_range;
use crate::pg::version::{self, Cost};
pub use order::has_useful_order;
use order::useful_order;
use outer::outer_sets;
use pgrx::pg_sys;

/// Walking to the next row in slot order: anchors and rows mostly lie one behind the other. In `cpu_tuple_cost`s.
const NEXT_ROW_COST: f64 = 0.5;
/// Following an index entry to its row: one or two cache misses. In `cpu_tuple_cost`s.
pub const ENTRY_TO_ROW_COST: f64 = 2.0;
/// One step down a tree, in `cpu_operator_cost`s; a node has some 15 entries.
const DESCENT_STEP_COST: f64 = 4.0;
const NODE_FANOUT: f64 = 15.0;
/// By how much core takes one cost for clearly more than another (`STD_FUZZ_FACTOR`).
const CLEARLY: f64 = 1.01;

/// `fdw_private` of a path: the executor's part, the arguments, the clauses answered wholly, and all answered ones as expressions.
pub struct PathPrivate {
    pub plan: *mut pg_sys::List,
    pub arguments: *mut pg_sys::List,
    pub exact: *mut pg_sys::List,
    pub rechecks: *mut pg_sys::List,
}

impl PathPrivate {
    unsafe fn to_list(&self) -> *mut pg_sys::List {
        // SAFETY: lists are nodes; a NULL list is an empty one.
        unsafe { list(&[self.plan, self.arguments, self.exact, self.rechecks]) }
    }

    /// Reads a path's `fdw_private`.
    pub unsafe fn from_list(made: *mut pg_sys::List) -> PathPrivate {
        // SAFETY: made by `to_list`, four cells.
        let parts = unsafe { cells::<pg_sys::List>(made) };
        PathPrivate {
            plan: parts[0],
            arguments: parts[1],
            exact: parts[2],
            rechecks: parts[3],
        }
    }
}

/// A path's keys that come from a partitioned table, where the join is done partition by partition (`enable_partitionwise_join`): they come from `child` then.
pub unsafe fn reparameterize_by_child(
    root: *mut pg_sys::PlannerInfo,
    made: *mut pg_sys::List,
    child: *mut pg_sys::RelOptInfo,
) -> *mut pg_sys::List {
    // SAFETY: the planner's own structures; a path of ours, which others may still use as it is: the adjusted lists are copies.
    unsafe {
        let path = PathPrivate::from_list(made);
        let adjusted = |list: *mut pg_sys::List| {
            version::adjust_to_child(root, list.cast(), child).cast::<pg_sys::List>()
        };
        PathPrivate {
            plan: path.plan,
            arguments: adjusted(path.arguments),
            exact: adjusted(path.exact),
            rechecks: adjusted(path.rechecks),
        }
        .to_list()
    }
}

pub unsafe fn get_foreign_paths(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    _relid: pg_sys::Oid,
) {
    // SAFETY: the planner's own structures.
    unsafe {
        let lateral = (*rel).lateral_relids;
        if by_row::add_path(root, rel, lateral) {
            return;
        }
        let own = cells::<pg_sys::RestrictInfo>((*rel).baserestrictinfo);
        let indexes = cells::<pg_sys::IndexOptInfo>((*rel).indexlist);
        let is_ordered = !indexes.is_empty() && pg_sys::has_useful_pathkeys(root, rel);
        let ways: Vec<Way> = indexes
            .iter()
            .filter_map(|index| Way::find(root, rel, *index, own, is_ordered))
            .collect();
        add_row_path(root, rel, lateral, &ways);
        for way in &ways {
            if way.is_forward {
                add_index_path(root, rel, way, false, way.forward, lateral);
            }
            if !way.backward.is_null() {
                add_index_path(root, rel, way, true, way.backward, lateral);
            }
        }
        for outer in outer_sets(root, rel, indexes) {
            let outer = pg_sys::bms_union(outer, lateral);
            let info = pg_sys::get_baserel_parampathinfo(root, rel, outer);
            if info.is_null() {
                continue;
            }
            let mut clauses = own.to_vec();
            clauses.extend(cells::<pg_sys::RestrictInfo>((*info).ppi_clauses));
            for index in indexes {
                add_parameterized_path(root, rel, *index, &clauses, own.len(), outer);
            }
        }
    }
}

/// The path over all rows, if none of the `ways` has the planner drop it at once.
unsafe fn add_row_path(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    outer: pg_sys::Relids,
    ways: &[Way],
) {
    // SAFETY: the planner's own structures.
    unsafe {
        let filter = (*rel).baserestrictcost;
        let per_row = pg_sys::cpu_tuple_cost * (1.0 + NEXT_ROW_COST) + filter.per_tuple;
        let cost = Cost {
            rows: (*rel).rows,
            startup: filter.startup,
            total: filter.startup + (*rel).tuples * per_row,
        };
        let private = || PathPrivate {
            plan: private::encode(pg_sys::InvalidOid, false, std::iter::empty()),
            arguments: std::ptr::null_mut(),
            exact: std::ptr::null_mut(),
            rechecks: std::ptr::null_mut(),
        };
        if (*rel).consider_parallel && outer.is_null() {
            let private = || private().to_list();
            parallel::add_path(root, rel, cost.startup, cost.total, private);
        }
        let counts_startup = if outer.is_null() {
            (*rel).consider_startup
        } else {
            (*rel).consider_param_startup
        };
        let is_beaten = ways.iter().any(|way| {
            cost.total > way.cost.total * CLEARLY
                && (!counts_startup || way.cost.startup <= cost.startup * CLEARLY)
        });
        if !is_beaten {
            let none = std::ptr::null_mut();
            add(root, rel, cost.startup, cost.total, none, outer, private());
        }
    }
}

/// What an index offers: which clauses it answers, in which useful orders its rows come, at what cost.
struct Way {
    index: *mut pg_sys::IndexOptInfo,
    found: Match,
    /// Whether it is offered forward; the order may be of no use then.
    is_forward: bool,
    forward: *mut pg_sys::List,
    /// NULL: not offered backward.
    backward: *mut pg_sys::List,
    cost: Cost,
}

impl Way {
    /// With the relation's own clauses, in each useful order; `None`: neither clauses nor order.
    unsafe fn find(
        root: *mut pg_sys::PlannerInfo,
        rel: *mut pg_sys::RelOptInfo,
        index: *mut pg_sys::IndexOptInfo,
        clauses: &[*mut pg_sys::RestrictInfo],
        is_ordered: bool,
    ) -> Option<Way> {
        // SAFETY: the planner's own structures.
        unsafe {
            let found = conditions::match_index(root, rel, index, clauses);
            let order = |direction| {
                if is_ordered {
                    useful_order(root, rel, index, direction)
                } else {
                    std::ptr::null_mut()
                }
            };
            let forward = order(pg_sys::ScanDirection::ForwardScanDirection);
            let backward = order(pg_sys::ScanDirection::BackwardScanDirection);
            let is_forward = !found.conditions.is_empty() || !forward.is_null();
            if !is_forward && backward.is_null() {
                return None;
            }
            let cost = index_cost(root, rel, &found);
            Some(Way {
                index,
                found,
                is_forward,
                forward,
                backward,
                cost,
            })
        }
    }
}

/// A path with clauses of which those behind the first `own` need values of other relations.
unsafe fn add_parameterized_path(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    index: *mut pg_sys::IndexOptInfo,
    clauses: &[*mut pg_sys::RestrictInfo],
    own: usize,
    outer: pg_sys::Relids,
) {
    // SAFETY: the planner's own structures.
    unsafe {
        let found = conditions::match_index(root, rel, index, clauses);
        let uses_outer = found
            .conditions
            .iter()
            .any(|condition| !clauses[..own].contains(&condition.clause));
        if uses_outer {
            let none = std::ptr::null_mut();
            let way = Way {
                index,
                cost: index_cost(root, rel, &found),
                found,
                is_forward: true,
                forward: none,
                backward: none,
            };
            add_index_path(root, rel, &way, false, none, outer);
        }
    }
}

/// What a scan by an index costs, whatever its direction.
unsafe fn index_cost(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    found: &Match,
) -> Cost {
    // SAFETY: the planner's own structures.
    unsafe {
        let conditions = &found.conditions;
        let own = cells::<pg_sys::RestrictInfo>((*rel).baserestrictinfo);
        let answers_all = short_range::answers_all(found, own);
        let rows = if answers_all && conditions.len() == own.len() && !found.is_one_row {
            // Neither more nor less is asked for than what the relation's own estimate is of.
            (*rel).rows
        } else {
            let selectivity = if found.is_one_row {
                1.0 / (*rel).tuples.max(1.0)
            } else {
                pg_sys::clauselist_selectivity(
                    root,
                    list_of(conditions.iter().map(|condition| condition.clause)),
                    (*rel).relid as i32,
                    pg_sys::JoinType::JOIN_INNER,
                    std::ptr::null_mut(),
                )
            };
            let rows = ((*rel).tuples * selectivity).max(1.0).round();
            if answers_all {
                rows.min((*rel).rows)
            } else {
                rows
            }
        };
        let exact = conditions
            .iter()
            .filter(|condition| condition.is_exact)
            .count();
        let searches = array_lengths(root, conditions);
        let steps = (*rel).tuples.max(2.0).log(NODE_FANOUT).ceil();
        let descent = searches * steps * DESCENT_STEP_COST * pg_sys::cpu_operator_cost;
        let filter = (*rel).baserestrictcost;
        let filters = (own.len() as f64 - exact as f64).max(0.0);
        let per_row = pg_sys::cpu_index_tuple_cost
            + pg_sys::cpu_tuple_cost * ENTRY_TO_ROW_COST
            + filters * pg_sys::cpu_operator_cost;
        Cost {
            rows,
            startup: filter.startup + steps * DESCENT_STEP_COST * pg_sys::cpu_operator_cost,
            total: filter.startup + descent + rows * per_row,
        }
    }
}

/// The path of a way in one direction, unless the planner would drop it at once.
unsafe fn add_index_path(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    way: &Way,
    backward: bool,
    order: *mut pg_sys::List,
    outer: pg_sys::Relids,
) {
    // SAFETY: the planner's own structures.
    unsafe {
        if !(*rel).pathlist.is_null() && !version::may_be_kept(rel, &way.cost, order, outer) {
            return;
        }
        let conditions = &way.found.conditions;
        let keys = conditions.iter().flat_map(keys_of);
        let arguments = conditions.iter().flat_map(arguments_of);
        let exact = conditions.iter().filter(|condition| condition.is_exact);
        let private = PathPrivate {
            plan: private::encode((*way.index).indexoid, backward, keys),
            arguments: list_of(arguments),
            exact: list_of(exact.map(|condition| condition.clause)),
            rechecks: list_of(conditions.iter().map(|condition| condition.expression)),
        };
        let (startup, total) = (way.cost.startup, way.cost.total);
        add(root, rel, startup, total, order, outer, private);
    }
}

/// The executor's tests of a condition: one, and one for each column that it goes on with.
fn keys_of(condition: &Condition) -> impl Iterator<Item = Key> + Clone {
    let first = Key {
        column: condition.column,
        test: condition.test,
        argument_type: condition.argument_type,
    };
    let further = condition.further.iter().map(|further| Key {
        column: further.column,
        test: Test::RowGoesOn,
        argument_type: further.argument_type,
    });
    std::iter::once(first).chain(further)
}

/// What they compare with.
fn arguments_of(condition: &Condition) -> impl Iterator<Item = *mut pg_sys::Expr> + Clone {
    let first = condition.test.has_argument().then_some(condition.argument);
    let further = condition.further.iter().map(|further| further.argument);
    first.into_iter().chain(further)
}

/// How many keys the `= ANY` tests ask for.
unsafe fn array_lengths(root: *mut pg_sys::PlannerInfo, conditions: &[Condition]) -> f64 {
    conditions
        .iter()
        .filter(|condition| condition.test == Test::AnyOf)
        // SAFETY: an expression of array type.
        .map(|condition| unsafe { version::array_length(root, condition.argument.cast()) })
        .product()
}

/// Offers a path to the planner.
pub unsafe fn add(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    startup: f64,
    total: f64,
    order: *mut pg_sys::List,
    outer: pg_sys::Relids,
    private: PathPrivate,
) {
    // SAFETY: the planner's own structures; `add_path` may free the path it rejects.
    unsafe {
        let rows = if outer.is_null() {
            (*rel).rows
        } else {
            let info = pg_sys::get_baserel_parampathinfo(root, rel, outer);
            if info.is_null() {
                (*rel).rows
            } else {
                (*info).ppi_rows
            }
        };
        let cost = Cost {
            rows,
            startup,
            total,
        };
        let path = version::foreign_path(root, rel, cost, order, outer, private.to_list());
        pg_sys::add_path(rel, path.cast());
    }
}
