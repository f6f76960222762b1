//! The ways to scan a table: all rows, or through an index, each also with values from other tables of a join.
//!
//! Costs are in core's unit and its own settings, so that joins with heap tables are weighed rightly. There are no pages: what a
//! heap pays for a page, a memory row pays as a cache miss, far below `cpu_tuple_cost`. An index's order is offered as pathkeys,
//! both ways, as far as the key's byte order is the collation's order.
use super::by_row;
use super::conditions::{self, Match, Test};
use super::parallel;
use super::plan;
use super::private::{self, Key, items, list};
use super::short_range;
use crate::keys;
use crate::pg::version;
use pgrx::pg_sys;
use pgrx::prelude::*;

/// Walking to the next row in slot order: anchors and rows mostly lie one behind the other. In `cpu_tuple_cost`s.
const NEXT_ROW_COST: f64 = 0.5;
/// Following an index entry to its row: one or two cache misses. In `cpu_tuple_cost`s.
pub const ENTRY_TO_ROW_COST: f64 = 2.0;
/// One step down a tree, in `cpu_operator_cost`s; a node has some 15 entries.
const DESCENT_STEP_COST: f64 = 4.0;
const NODE_FANOUT: f64 = 15.0;
/// Sets of outer relations tried for parameterized paths; more only cost planning time.
const OUTER_SETS_MAX: usize = 16;

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
        let parts = unsafe { items::<pg_sys::List>(made) };
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
        add_row_path(root, rel, lateral);
        let indexes = items::<pg_sys::IndexOptInfo>((*rel).indexlist);
        let own = items::<pg_sys::RestrictInfo>((*rel).baserestrictinfo);
        for index in &indexes {
            add_index_paths(root, rel, *index, &own, lateral);
        }
        for outer in outer_sets(root, rel, &indexes) {
            let outer = pg_sys::bms_union(outer, lateral);
            let info = pg_sys::get_baserel_parampathinfo(root, rel, outer);
            if info.is_null() {
                continue;
            }
            let mut clauses = own.clone();
            clauses.extend(items::<pg_sys::RestrictInfo>((*info).ppi_clauses));
            for index in &indexes {
                add_parameterized_path(root, rel, *index, &clauses, own.len(), outer);
            }
        }
    }
}

unsafe fn add_row_path(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    outer: pg_sys::Relids,
) {
    // SAFETY: the planner's own structures.
    unsafe {
        let private = PathPrivate {
            plan: private::encode(pg_sys::InvalidOid, false, &[]),
            arguments: std::ptr::null_mut(),
            exact: std::ptr::null_mut(),
            rechecks: std::ptr::null_mut(),
        };
        let filter = (*rel).baserestrictcost;
        let per_row = pg_sys::cpu_tuple_cost * (1.0 + NEXT_ROW_COST) + filter.per_tuple;
        let cost = filter.startup + (*rel).tuples * per_row;
        if (*rel).consider_parallel && outer.is_null() {
            let private = PathPrivate {
                plan: private::encode(pg_sys::InvalidOid, false, &[]),
                ..private
            };
            parallel::add_path(root, rel, filter.startup, cost, private.to_list());
        }
        add(
            root,
            rel,
            filter.startup,
            cost,
            std::ptr::null_mut(),
            outer,
            private,
        );
    }
}

/// Paths with the relation's own clauses, in each useful order.
unsafe fn add_index_paths(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    index: *mut pg_sys::IndexOptInfo,
    clauses: &[*mut pg_sys::RestrictInfo],
    outer: pg_sys::Relids,
) {
    // SAFETY: the planner's own structures.
    unsafe {
        let found = conditions::match_index(root, rel, index, clauses);
        let forward = useful_order(
            root,
            rel,
            index,
            pg_sys::ScanDirection::ForwardScanDirection,
        );
        if !found.conditions.is_empty() || !forward.is_null() {
            add_index_path(root, rel, index, &found, false, forward, outer);
        }
        let backward = useful_order(
            root,
            rel,
            index,
            pg_sys::ScanDirection::BackwardScanDirection,
        );
        if !backward.is_null() {
            add_index_path(root, rel, index, &found, true, backward, outer);
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
            add_index_path(root, rel, index, &found, false, std::ptr::null_mut(), outer);
        }
    }
}

#[allow(clippy::too_many_arguments)]
unsafe fn add_index_path(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    index: *mut pg_sys::IndexOptInfo,
    found: &Match,
    backward: bool,
    order: *mut pg_sys::List,
    outer: pg_sys::Relids,
) {
    // SAFETY: the planner's own structures.
    unsafe {
        let conditions = &found.conditions;
        let mut keys = Vec::new();
        let mut arguments = Vec::new();
        for condition in conditions {
            keys.push(Key {
                column: condition.column,
                test: condition.test,
                argument_type: condition.argument_type,
            });
            if condition.test.has_argument() {
                arguments.push(condition.argument);
            }
            for further in &condition.further {
                keys.push(Key {
                    column: further.column,
                    test: Test::RowGoesOn,
                    argument_type: further.argument_type,
                });
                arguments.push(further.argument);
            }
        }
        let exact: Vec<_> = conditions
            .iter()
            .filter(|condition| condition.is_exact)
            .map(|condition| condition.clause)
            .collect();
        let answered: Vec<_> = conditions
            .iter()
            .map(|condition| condition.clause)
            .collect();
        let answered = list(&answered);
        let rechecks: Vec<_> = conditions
            .iter()
            .map(|condition| condition.expression)
            .collect();
        let selectivity = if found.is_one_row {
            1.0 / (*rel).tuples.max(1.0)
        } else {
            pg_sys::clauselist_selectivity(
                root,
                answered,
                (*rel).relid as i32,
                pg_sys::JoinType::JOIN_INNER,
                std::ptr::null_mut(),
            )
        };
        let mut rows = ((*rel).tuples * selectivity).max(1.0).round();
        let own = items::<pg_sys::RestrictInfo>((*rel).baserestrictinfo);
        if short_range::answers_all(found, &own) {
            rows = rows.min((*rel).rows);
        }
        let searches = array_lengths(root, conditions);
        let steps = (*rel).tuples.max(2.0).log(NODE_FANOUT).ceil();
        let descent = searches * steps * DESCENT_STEP_COST * pg_sys::cpu_operator_cost;
        let filter = (*rel).baserestrictcost;
        let filters = (own.len() as f64 - exact.len() as f64).max(0.0);
        let per_row = pg_sys::cpu_index_tuple_cost
            + pg_sys::cpu_tuple_cost * ENTRY_TO_ROW_COST
            + filters * pg_sys::cpu_operator_cost;
        let startup = filter.startup + steps * DESCENT_STEP_COST * pg_sys::cpu_operator_cost;
        let total = filter.startup + descent + rows * per_row;
        let private = PathPrivate {
            plan: private::encode((*index).indexoid, backward, &keys),
            arguments: list(&arguments),
            exact: list(&exact),
            rechecks: list(&rechecks),
        };
        add(root, rel, startup, total, order, outer, private);
    }
}

/// How many keys the `= ANY` tests ask for.
unsafe fn array_lengths(
    root: *mut pg_sys::PlannerInfo,
    conditions: &[conditions::Condition],
) -> f64 {
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
        let info = pg_sys::get_baserel_parampathinfo(root, rel, outer);
        let rows = if info.is_null() {
            (*rel).rows
        } else {
            (*info).ppi_rows
        };
        let cost = version::Cost {
            rows,
            startup,
            total,
        };
        let path = version::foreign_path(root, rel, cost, order, outer, private.to_list());
        pg_sys::add_path(rel, path.cast());
    }
}

/// Whether the query can use the order of an index's rows.
pub unsafe fn has_useful_order(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    index: *mut pg_sys::IndexOptInfo,
) -> bool {
    [
        pg_sys::ScanDirection::ForwardScanDirection,
        pg_sys::ScanDirection::BackwardScanDirection,
    ]
    .into_iter()
    // SAFETY: the planner's own structures.
    .any(|direction| unsafe { !useful_order(root, rel, index, direction).is_null() })
}

/// The order of an index's rows as pathkeys, cut to what the query can use; none where rows are locked for triggers (`plan.rs`): a merge join would
/// believe the order and pass over rows behind one that was moved.
unsafe fn useful_order(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    index: *mut pg_sys::IndexOptInfo,
    direction: pg_sys::ScanDirection::Type,
) -> *mut pg_sys::List {
    // SAFETY: the planner's own structures; the index's column count is put back before anybody else looks.
    unsafe {
        if (*index).sortopfamily.is_null()
            || !pg_sys::has_useful_pathkeys(root, rel)
            || plan::lock_for_triggers(root, rel).is_some()
        {
            return std::ptr::null_mut();
        }
        let columns = (*index).nkeycolumns;
        let is_ordered =
            |at: &i32| keys::is_key_order_collation(*(*index).indexcollations.add(*at as usize));
        (*index).nkeycolumns = (0..columns).take_while(is_ordered).count() as i32;
        let order = pg_sys::build_index_pathkeys(root, index, direction);
        (*index).nkeycolumns = columns;
        pg_sys::truncate_useless_pathkeys(root, rel, order)
    }
}

/// Sets of other relations whose values could be keys here: each that a join clause or an equivalence offers, and their unions.
unsafe fn outer_sets(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    indexes: &[*mut pg_sys::IndexOptInfo],
) -> Vec<pg_sys::Relids> {
    let mut sets: Vec<pg_sys::Relids> = Vec::new();
    // SAFETY: the planner's own structures.
    unsafe {
        if indexes.is_empty() {
            return sets;
        }
        let mut clauses: Vec<*mut pg_sys::RestrictInfo> = items((*rel).joininfo);
        clauses.retain(|clause| pg_sys::join_clause_is_movable_to(*clause, rel));
        if (*rel).has_eclass_joins {
            for index in indexes {
                for column in 0..(**index).nkeycolumns {
                    let mut wanted = Wanted {
                        index: *index,
                        column,
                    };
                    clauses.extend(items::<pg_sys::RestrictInfo>(
                        pg_sys::generate_implied_equalities_for_column(
                            root,
                            rel,
                            Some(is_wanted_member),
                            (&raw mut wanted).cast(),
                            (*rel).lateral_referencers,
                        ),
                    ));
                }
            }
        }
        for clause in clauses {
            let outer = pg_sys::bms_del_member(
                pg_sys::bms_copy((*clause).clause_relids),
                (*rel).relid as i32,
            );
            if outer.is_null() || sets.len() >= OUTER_SETS_MAX {
                continue;
            }
            let known = sets.clone();
            add_set(&mut sets, outer);
            for other in known {
                add_set(&mut sets, pg_sys::bms_union(other, outer));
            }
        }
    }
    sets.truncate(OUTER_SETS_MAX);
    sets
}

unsafe fn add_set(sets: &mut Vec<pg_sys::Relids>, set: pg_sys::Relids) {
    // SAFETY: bitmap sets of the planner.
    let is_known = |known: &pg_sys::Relids| unsafe { pg_sys::bms_equal(*known, set) };
    if !sets.iter().any(is_known) {
        sets.push(set);
    }
}

/// The index column whose equivalences are looked for.
struct Wanted {
    index: *mut pg_sys::IndexOptInfo,
    column: i32,
}

#[pg_guard]
unsafe extern "C-unwind" fn is_wanted_member(
    _root: *mut pg_sys::PlannerInfo,
    _rel: *mut pg_sys::RelOptInfo,
    _class: *mut pg_sys::EquivalenceClass,
    member: *mut pg_sys::EquivalenceMember,
    wanted: *mut std::ffi::c_void,
) -> bool {
    // SAFETY: `wanted` is the Wanted of the caller above, alive during the call.
    unsafe {
        let wanted = &*wanted.cast::<Wanted>();
        pg_sys::match_index_to_operand((*member).em_expr.cast(), wanted.column, wanted.index)
    }
}
