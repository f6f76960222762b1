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
use crate::pg::local::ProcessLocal;
use crate::pg::node::{Any, List, Node};
use crate::pg::relation::{self, NO_LOCK};
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
#[inline]
pub fn may_be_offered(
    rel: Node<'_, pg_sys::RelOptInfo>,
    entry: Node<'_, pg_sys::RangeTblEntry>,
) -> bool {
    let is_single = matches!(
        rel.reloptkind(),
        pg_sys::RelOptKind::RELOPT_BASEREL | pg_sys::RelOptKind::RELOPT_OTHER_MEMBER_REL
    );
    !rel.baserestrictinfo().is_empty()
        && is_single
        && entry.rtekind() == pg_sys::RTEKind::RTE_RELATION
        && !entry.inh()
        && !entry.tablesample()
        && !rel.lateral_relids()
        && is_seqscan_enabled()
}

/// Whether scans of all rows are wanted.
#[inline]
pub fn is_seqscan_enabled() -> bool {
    // SAFETY: a setting.
    unsafe { pg_sys::enable_seqscan }
}

/// Offers the scan, and one that parallel workers share, if the filter can do the first conditions
/// of a table of ours, which is locked.
///
/// # Safety
/// No view of the relation's paths is used after that: core may free them.
#[pg_guard]
pub unsafe extern "C-unwind" fn offer(
    root: Node<'_, pg_sys::PlannerInfo>,
    rel: Node<'_, pg_sys::RelOptInfo>,
    entry: Node<'_, pg_sys::RangeTblEntry>,
) {
    if COMPILED_STATEMENTS.get() == CompiledStatements::Off
        || !may_be_kept(rel)
        || !storage::is_mot_table(entry.relid())
        || is_empty(rel)
    {
        return;
    }
    let Some(filtering) = Filtering::of(root, rel, entry.relid()) else {
        return;
    };
    if !filtering.has_any {
        return;
    }
    let cost = filtering.cost(rel);
    // SAFETY: a path with the relation's own structures. It is not used any more, and no other one
    // is (caller).
    unsafe {
        let whole = Node::new(path(rel, rel.target(), &cost));
        pg_sys::add_path(rel.as_ptr(), whole.path().as_ptr());
    }
    if let Some((workers, processes)) = workers::of_scan(rel) {
        let mut partial = path(rel, rel.target(), &cost.shared(processes));
        partial.path.parallel_aware = true;
        partial.path.parallel_workers = workers;
        // SAFETY: the same of the relation's partial paths.
        unsafe {
            let partial = Node::new(partial);
            pg_sys::add_partial_path(rel.as_ptr(), partial.path().as_ptr());
        }
    }
}

/// Whether core knows that a relation has no rows.
pub fn is_empty(rel: Node<'_, pg_sys::RelOptInfo>) -> bool {
    // SAFETY: the planner's own structure.
    unsafe { pg_sys::is_dummy_rel(rel.as_ptr()) }
}

/// Whether the planner would keep the scan, or one that workers share, if it cost the least that it
/// can. Most statements that come unprepared look a key up, and no scan of all rows is kept.
fn may_be_kept(rel: Node<'_, pg_sys::RelOptInfo>) -> bool {
    let startup = rel.baserestrictcost().startup;
    let rows = rel.tuples() * row_cost() * IN_PLACE;
    let least = Cost {
        rows: rel.rows(),
        startup,
        total: startup + rows,
    };
    version::may_be_kept(rel, &least)
        || workers::of_scan(rel).is_some_and(|(_, processes)| {
            rel.pathlist()
                .iter()
                .all(|path| path.param_info() || path.total_cost() > rows / processes)
        })
}

/// What a row costs core.
fn row_cost() -> f64 {
    // SAFETY: a setting.
    unsafe { pg_sys::cpu_tuple_cost }
}

/// The scan for a node above that reads rows where they lie, and asks for no column in a slot.
pub fn path_of_no_columns(rel: Node<'_, pg_sys::RelOptInfo>, cost: &Cost) -> pg_sys::CustomPath {
    // SAFETY: a new node of the planner's.
    let none = unsafe { Node::enter(pg_sys::create_empty_pathtarget()) };
    path(rel, none, cost)
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
struct Clause<'p> {
    restriction: Node<'p, pg_sys::RestrictInfo>,
    security_level: u32,
    cost: f64,
}

impl Filtering {
    /// `None`: the first condition takes core. The table is locked.
    pub fn of(
        root: Node<'_, pg_sys::PlannerInfo>,
        rel: Node<'_, pg_sys::RelOptInfo>,
        table: pg_sys::Oid,
    ) -> Option<Filtering> {
        let clauses = in_order(root, rel);
        let asks_by_place = |clause: &Clause| asks_by_place(rel, clause.restriction.condition());
        if clauses.iter().any(asks_by_place) {
            return None;
        }
        let taken = relation::with(table, NO_LOCK, |opened| {
            let mut compiler = Compiler::new(rel.relid(), opened.row_type());
            let is_ours = |clause: &&Clause| {
                let condition = clause.restriction.condition().as_ptr();
                // SAFETY: a condition over the table, whose row type the compiler has.
                unsafe { compiler.condition(condition) }.is_some()
            };
            clauses.iter().take_while(is_ours).count()
        });
        if taken == 0 && !clauses.is_empty() {
            return None;
        }
        let is_whole = taken == clauses.len();
        let first = &clauses[..taken];
        let passing = match is_whole {
            true => rel.rows() / rel.tuples().max(1.0),
            false => root.selectivity(rel, List::of(first.iter().map(|clause| clause.restriction))),
        };
        Some(Filtering {
            has_any: taken > 0,
            is_whole,
            per_row: first.iter().map(|clause| clause.cost).sum(),
            passing: passing.min(1.0),
        })
    }

    /// What the scan costs whose rows go into a slot.
    fn cost(&self, rel: Node<'_, pg_sys::RelOptInfo>) -> Cost {
        let into_slot = row_cost() * (1.0 - IN_PLACE);
        let target = rel.target().cost();
        let mut cost = self.cost_in_place(rel);
        cost.startup += target.startup;
        cost.total += target.startup
            + rel.tuples() * self.passing * into_slot
            + rel.rows() * target.per_tuple;
        cost
    }

    /// What the scan costs of which rows are read where they lie. Where core evaluates conditions
    /// again, it does that in a slot.
    pub fn cost_in_place(&self, rel: Node<'_, pg_sys::RelOptInfo>) -> Cost {
        let conditions = rel.baserestrictcost();
        let again = match self.is_whole {
            true => 0.0,
            false => conditions.per_tuple,
        };
        let looked_at = row_cost() * IN_PLACE + self.per_row * FILTERED;
        let rows = rel.tuples() * (looked_at + self.passing * again);
        Cost {
            rows: rel.rows(),
            startup: conditions.startup,
            total: conditions.startup + rows,
        }
    }
}

/// Whether a condition has core look rows up by their tuple ids: its own scan does that. For WHERE
/// CURRENT OF there is no other.
fn asks_by_place(rel: Node<'_, pg_sys::RelOptInfo>, condition: Any<'_>) -> bool {
    condition.tag() == pg_sys::NodeTag::T_CurrentOfExpr || names_place(condition, rel.relid())
}

/// The conditions in the order in which core evaluates them (`order_qual_clauses`).
fn in_order<'p>(
    root: Node<'p, pg_sys::PlannerInfo>,
    rel: Node<'p, pg_sys::RelOptInfo>,
) -> Vec<Clause<'p>> {
    // SAFETY: a setting.
    let cheap = CHEAP_LEAKPROOF * unsafe { pg_sys::cpu_operator_cost };
    let mut clauses: Vec<_> = rel
        .baserestrictinfo()
        .iter()
        .filter(|clause| !clause.pseudoconstant())
        .map(|restriction| {
            let cost = cost_of_condition(root, restriction);
            let may_be_first = restriction.leakproof() && cost < cheap;
            Clause {
                restriction,
                security_level: match may_be_first {
                    true => 0,
                    false => restriction.security_level(),
                },
                cost,
            }
        })
        .collect();
    clauses.sort_by(|one, other| {
        let levels = one.security_level.cmp(&other.security_level);
        levels.then(one.cost.total_cmp(&other.cost))
    });
    clauses
}

/// What a condition costs core for a row.
fn cost_of_condition(
    root: Node<'_, pg_sys::PlannerInfo>,
    restriction: Node<'_, pg_sys::RestrictInfo>,
) -> f64 {
    let mut cost = pg_sys::QualCost::default();
    let condition = restriction.any().as_ptr();
    // SAFETY: the planner's own structures.
    unsafe { pg_sys::cost_qual_eval_node(&raw mut cost, condition, root.as_ptr()) };
    cost.per_tuple
}

/// A path for the scan, or for what is made of it.
pub fn path(
    rel: Node<'_, pg_sys::RelOptInfo>,
    target: Node<'_, pg_sys::PathTarget>,
    cost: &Cost,
) -> pg_sys::CustomPath {
    pg_sys::CustomPath {
        path: pg_sys::Path {
            type_: pg_sys::NodeTag::T_CustomPath,
            pathtype: pg_sys::NodeTag::T_CustomScan,
            parent: rel.as_ptr(),
            pathtarget: target.as_ptr(),
            parallel_safe: rel.consider_parallel(),
            rows: cost.rows,
            startup_cost: cost.startup,
            total_cost: cost.total,
            ..Default::default()
        },
        flags: pg_sys::CUSTOMPATH_SUPPORT_BACKWARD_SCAN | pg_sys::CUSTOMPATH_SUPPORT_PROJECTION,
        methods: &raw const PATHS.0,
        ..Default::default()
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
    // SAFETY: as core calls it: the planner's own structures.
    let (rel, path, clauses) = unsafe {
        let clauses = List::<pg_sys::RestrictInfo>::enter(clauses);
        (Node::enter(rel), Node::enter(path), clauses)
    };
    let conditions = clauses
        .iter()
        .filter(|clause| !clause.pseudoconstant())
        .map(|clause| clause.condition());
    let mut scan = pg_sys::CustomScan {
        flags: path.flags(),
        methods: &raw const METHODS.0,
        ..Default::default()
    };
    scan.scan.plan.targetlist = targets;
    scan.scan.plan.qual = List::of(conditions).as_ptr();
    scan.scan.scanrelid = rel.relid();
    // SAFETY: a node of what core has passed, and of a list made here.
    unsafe { Node::new(scan) }.as_ptr().cast()
}
