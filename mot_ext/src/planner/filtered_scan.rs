//! Scans of all rows whose conditions are evaluated where the rows lie
//! (`plan_nodes/filtered_scan.rs`), beside core's SeqScan.
//!
//! Both cost for pages what core says. A row that the filter drops is never put into a slot and
//! taken apart there, and the filter's conditions take a part of what core's take. A row that it
//! lets pass costs what core's costs. If there are conditions that the filter cannot do, core
//! evaluates all of them again. So where the filter's part drops few rows, core's scan is cheaper.
use super::costs::names_place;
use super::workers;
use crate::executor::filter::Compiler;
use crate::pg::guard::guarded;
use crate::pg::list::{cells, list, list_of};
use crate::pg::local::ProcessLocal;
use crate::pg::version::{self, Cost};
use crate::plan_nodes::filtered_scan::METHODS;
use crate::shared_memory::settings::{COMPILED_STATEMENTS, CompiledStatements};
use crate::storage;
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::sync::LazyLock;

/// Of `cpu_tuple_cost`: what a row costs that is evaluated in place.
const IN_PLACE: f64 = 0.4;
/// Of what conditions cost core: what they cost the filter.
const FILTERED: f64 = 0.25;
/// Up to so many `cpu_operator_cost`s core takes a leakproof condition for one that may come first,
/// whatever a security barrier says.
const CHEAP_LEAKPROOF: f64 = 10.0;
static PATHS: LazyLock<ProcessLocal<pg_sys::CustomPathMethods>> = LazyLock::new(|| {
    ProcessLocal(pg_sys::CustomPathMethods {
        CustomName: crate::plan_nodes::filtered_scan::NAME.as_ptr(),
        PlanCustomPath: Some(guarded!(plan(root, rel, path, targets, clauses, plans))),
        ReparameterizeCustomPathByChild: None,
    })
});

/// Whether a filter can be of use for a relation, by its plain fields.
///
/// # Safety
/// The planner's own structures. So for the others here.
#[inline]
pub unsafe fn may_be_offered(
    rel: *mut pg_sys::RelOptInfo,
    entry: *mut pg_sys::RangeTblEntry,
) -> bool {
    // SAFETY: the caller's.
    unsafe {
        let is_single = matches!(
            (*rel).reloptkind,
            pg_sys::RelOptKind::RELOPT_BASEREL | pg_sys::RelOptKind::RELOPT_OTHER_MEMBER_REL
        );
        !(*rel).baserestrictinfo.is_null()
            && is_single
            && (*entry).rtekind == pg_sys::RTEKind::RTE_RELATION
            && !(*entry).inh
            && (*entry).tablesample.is_null()
            && (*rel).lateral_relids.is_null()
            && pg_sys::enable_seqscan
    }
}

/// Offers the scan, and one that parallel workers share, if the filter can do the first conditions
/// of a table of ours.
#[pg_guard]
pub unsafe extern "C-unwind" fn offer(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    entry: *mut pg_sys::RangeTblEntry,
) {
    // SAFETY: the planner's own structures; the table is locked.
    unsafe {
        if COMPILED_STATEMENTS.get() == CompiledStatements::Off
            || !may_be_kept(rel)
            || !storage::is_mot_table((*entry).relid)
            || pg_sys::is_dummy_rel(rel)
        {
            return;
        }
        let Some(filtering) = Filtering::of(root, rel, (*entry).relid) else {
            return;
        };
        if !filtering.has_any {
            return;
        }
        let cost = filtering.cost(rel);
        let whole = new_path(rel, (*rel).reltarget, &cost);
        pg_sys::add_path(rel, whole.cast());
        if let Some((workers, processes)) = workers::of_scan(rel) {
            let part = Cost {
                rows: pg_sys::clamp_row_est(cost.rows / processes),
                startup: cost.startup,
                total: cost.startup + (cost.total - cost.startup) / processes,
            };
            let partial = new_path(rel, (*rel).reltarget, &part);
            (*partial).path.parallel_aware = true;
            (*partial).path.parallel_workers = workers;
            pg_sys::add_partial_path(rel, partial.cast());
        }
    }
}

/// Whether the planner would keep the scan, or one that workers share, if it cost the least that it
/// can. Most statements that come unprepared look a key up, and no scan of all rows is kept.
unsafe fn may_be_kept(rel: *mut pg_sys::RelOptInfo) -> bool {
    // SAFETY: the planner's own structures.
    unsafe {
        let startup = (*rel).baserestrictcost.startup;
        let rows = (*rel).tuples * pg_sys::cpu_tuple_cost * IN_PLACE;
        let least = Cost {
            rows: (*rel).rows,
            startup,
            total: startup + rows,
        };
        let (no_order, no_outer) = (std::ptr::null_mut(), std::ptr::null_mut());
        version::may_be_kept(rel, &least, no_order, no_outer)
            || workers::of_scan(rel).is_some_and(|(_, processes)| {
                cells::<pg_sys::Path>((*rel).pathlist).iter().all(|path| {
                    !(**path).param_info.is_null() || (**path).total_cost > rows / processes
                })
            })
    }
}

/// The scan for a node above that reads rows where they lie, and asks for no column in a slot.
pub unsafe fn path_of_no_columns(
    rel: *mut pg_sys::RelOptInfo,
    cost: &Cost,
) -> *mut pg_sys::CustomPath {
    // SAFETY: the planner's own structures.
    unsafe { new_path(rel, pg_sys::create_empty_pathtarget(), cost) }
}

/// What the filter does of a relation's conditions.
pub struct Filtering {
    /// There are conditions.
    has_any: bool,
    /// It does all of them.
    is_whole: bool,
    /// What those cost core for a row that it does.
    per_row: f64,
    /// The part of the rows that it lets pass.
    passing: f64,
}

/// A condition, with what core sorts conditions by.
struct Clause {
    restriction: *mut pg_sys::RestrictInfo,
    security_level: u32,
    cost: f64,
}

impl Filtering {
    /// `None`: the first condition takes core.
    pub unsafe fn of(
        root: *mut pg_sys::PlannerInfo,
        rel: *mut pg_sys::RelOptInfo,
        table: pg_sys::Oid,
    ) -> Option<Filtering> {
        // SAFETY: the planner's own structures; the table is locked.
        unsafe {
            let clauses = in_order(root, rel);
            if clauses.iter().any(|clause| asks_by_place(rel, clause)) {
                return None;
            }
            let opened = pg_sys::table_open(table, pg_sys::NoLock as pg_sys::LOCKMODE);
            let mut compiler = Compiler::new((*rel).relid, (*opened).rd_att);
            let taken = clauses
                .iter()
                .take_while(|clause| {
                    let expression = (*clause.restriction).clause;
                    compiler.condition(expression.cast()).is_some()
                })
                .count();
            pg_sys::table_close(opened, pg_sys::NoLock as pg_sys::LOCKMODE);
            if taken == 0 && !clauses.is_empty() {
                return None;
            }
            let is_whole = taken == clauses.len();
            let first = &clauses[..taken];
            let passing = match is_whole {
                true => (*rel).rows / (*rel).tuples.max(1.0),
                false => pg_sys::clauselist_selectivity(
                    root,
                    list_of(first.iter().map(|clause| clause.restriction)),
                    (*rel).relid as i32,
                    pg_sys::JoinType::JOIN_INNER,
                    std::ptr::null_mut(),
                ),
            };
            Some(Filtering {
                has_any: taken > 0,
                is_whole,
                per_row: first.iter().map(|clause| clause.cost).sum(),
                passing: passing.min(1.0),
            })
        }
    }

    /// What the scan costs whose rows go into a slot.
    unsafe fn cost(&self, rel: *mut pg_sys::RelOptInfo) -> Cost {
        // SAFETY: the planner's own structures.
        unsafe {
            let into_slot = pg_sys::cpu_tuple_cost * (1.0 - IN_PLACE);
            let target = (*(*rel).reltarget).cost;
            let mut cost = self.cost_in_place(rel);
            cost.startup += target.startup;
            cost.total += target.startup
                + (*rel).tuples * self.passing * into_slot
                + (*rel).rows * target.per_tuple;
            cost
        }
    }

    /// What the scan costs of which rows are read where they lie. Where core evaluates conditions
    /// again, it does that in a slot.
    pub unsafe fn cost_in_place(&self, rel: *mut pg_sys::RelOptInfo) -> Cost {
        // SAFETY: the planner's own structures.
        unsafe {
            let conditions = (*rel).baserestrictcost;
            let again = match self.is_whole {
                true => 0.0,
                false => conditions.per_tuple,
            };
            let looked_at = pg_sys::cpu_tuple_cost * IN_PLACE + self.per_row * FILTERED;
            let rows = (*rel).tuples * (looked_at + self.passing * again);
            Cost {
                rows: (*rel).rows,
                startup: conditions.startup,
                total: conditions.startup + rows,
            }
        }
    }
}

/// Whether a condition has core look rows up by their tuple ids: its own scan does that. For WHERE
/// CURRENT OF there is no other.
unsafe fn asks_by_place(rel: *mut pg_sys::RelOptInfo, clause: &Clause) -> bool {
    // SAFETY: the planner's own structures.
    unsafe {
        let condition = (*clause.restriction).clause.cast::<pg_sys::Node>();
        (*condition).type_ == pg_sys::NodeTag::T_CurrentOfExpr
            || names_place(condition, (*rel).relid)
    }
}

/// The conditions in the order in which core evaluates them (`order_qual_clauses`).
unsafe fn in_order(root: *mut pg_sys::PlannerInfo, rel: *mut pg_sys::RelOptInfo) -> Vec<Clause> {
    // SAFETY: the planner's own structures.
    unsafe {
        let cheap = CHEAP_LEAKPROOF * pg_sys::cpu_operator_cost;
        let mut clauses: Vec<_> = cells::<pg_sys::RestrictInfo>((*rel).baserestrictinfo)
            .iter()
            .filter(|clause| !(***clause).pseudoconstant)
            .map(|&restriction| {
                let mut cost = pg_sys::QualCost::default();
                pg_sys::cost_qual_eval_node(&raw mut cost, restriction.cast(), root);
                let may_be_first = (*restriction).leakproof && cost.per_tuple < cheap;
                Clause {
                    restriction,
                    security_level: match may_be_first {
                        true => 0,
                        false => (*restriction).security_level,
                    },
                    cost: cost.per_tuple,
                }
            })
            .collect();
        clauses.sort_by(|one, other| {
            let levels = one.security_level.cmp(&other.security_level);
            levels.then(one.cost.total_cmp(&other.cost))
        });
        clauses
    }
}

/// A path for the scan, or for what is made of it.
pub unsafe fn new_path(
    rel: *mut pg_sys::RelOptInfo,
    target: *mut pg_sys::PathTarget,
    cost: &Cost,
) -> *mut pg_sys::CustomPath {
    // SAFETY: zeroed memory of the node's size in the planner's memory context.
    unsafe {
        let path = pg_sys::palloc0(size_of::<pg_sys::CustomPath>()).cast::<pg_sys::CustomPath>();
        (*path).path.type_ = pg_sys::NodeTag::T_CustomPath;
        (*path).path.pathtype = pg_sys::NodeTag::T_CustomScan;
        (*path).path.parent = rel;
        (*path).path.pathtarget = target;
        (*path).path.parallel_safe = (*rel).consider_parallel;
        (*path).path.rows = cost.rows;
        (*path).path.startup_cost = cost.startup;
        (*path).path.total_cost = cost.total;
        (*path).flags =
            pg_sys::CUSTOMPATH_SUPPORT_BACKWARD_SCAN | pg_sys::CUSTOMPATH_SUPPORT_PROJECTION;
        (*path).methods = &raw const PATHS.0;
        path
    }
}

/// `PlanCustomPath`: the conditions come in the order in which core evaluates them.
unsafe fn plan(
    _root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    path: *mut pg_sys::CustomPath,
    targets: *mut pg_sys::List,
    clauses: *mut pg_sys::List,
    _plans: *mut pg_sys::List,
) -> *mut pg_sys::Plan {
    // SAFETY: as core calls it: the planner's own structures, and zeroed memory of the node's size.
    unsafe {
        let conditions: Vec<_> = cells::<pg_sys::RestrictInfo>(clauses)
            .iter()
            .filter(|clause| !(***clause).pseudoconstant)
            .map(|clause| (**clause).clause)
            .collect();
        let scan = pg_sys::palloc0(size_of::<pg_sys::CustomScan>()).cast::<pg_sys::CustomScan>();
        (*scan).scan.plan.type_ = pg_sys::NodeTag::T_CustomScan;
        (*scan).scan.plan.targetlist = targets;
        (*scan).scan.plan.qual = list(&conditions);
        (*scan).scan.scanrelid = (*rel).relid;
        (*scan).flags = (*path).flags;
        (*scan).methods = &raw const METHODS.0;
        scan.cast()
    }
}
