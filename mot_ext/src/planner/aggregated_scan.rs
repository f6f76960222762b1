//! Aggregates inside a scan of all rows (`plan_nodes/aggregated_scan.rs`), beside core's Agg over
//! such a scan.
//!
//! Offered for all rows of a table, or those that conditions let pass of which the filter can do
//! the first. Each parallel worker adds up by itself what it reads, and core's nodes above add
//! those up.
use super::aggregate::{Targets, cost, groups, is_of_whole_table, targets};
use super::filtered_scan::{self, Filtering};
use super::workers;
use crate::pg::guard::guarded;
use crate::pg::list::{cells, list};
use crate::pg::local::ProcessLocal;
use crate::pg::node::{Any, List, Node};
use crate::pg::version;
use crate::plan_nodes::aggregated_scan::{METHODS, NAME};
use crate::storage;
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::sync::LazyLock;

static PATHS: LazyLock<ProcessLocal<pg_sys::CustomPathMethods>> = LazyLock::new(|| {
    ProcessLocal(pg_sys::CustomPathMethods {
        CustomName: NAME.as_ptr(),
        PlanCustomPath: Some(guarded!(plan(root, rel, path, targets, clauses, plans))),
        ReparameterizeCustomPathByChild: None,
    })
});

/// Whether aggregates of a query can be offered, by its plain fields.
#[inline]
pub fn may_be_offered(
    root: Node<'_, pg_sys::PlannerInfo>,
    input: Node<'_, pg_sys::RelOptInfo>,
) -> bool {
    !input.lateral_relids() && filtered_scan::is_seqscan_enabled() && is_of_whole_table(root, input)
}

/// Offers aggregates inside the scan of a table of ours, which is locked.
///
/// # Safety
/// No view of the output's paths is used after that: core may free them.
#[pg_guard]
pub unsafe extern "C-unwind" fn offer(
    root: Node<'_, pg_sys::PlannerInfo>,
    input: Node<'_, pg_sys::RelOptInfo>,
    output: Node<'_, pg_sys::RelOptInfo>,
    extra: Node<'_, pg_sys::GroupPathExtraData>,
) {
    let entry = root.entry(input);
    if entry.inh()
        || entry.tablesample()
        || !storage::is_mot_table(entry.relid())
        || filtered_scan::is_empty(input)
    {
        return;
    }
    let Some(filtering) = Filtering::of(root, input, entry.relid()) else {
        return;
    };
    let having = root.query().havingQual();
    let Some(targets) = targets(root, input, output, having) else {
        return;
    };
    let is_grouped = !root.query().groupClause().is_empty();
    let groups = match is_grouped {
        true => match groups(root, input, targets) {
            Some(groups) => groups,
            None => return,
        },
        false => 1.0,
    };
    let below = filtering.cost_in_place(input);
    // SAFETY: a path with the relation's own structures.
    let scan = unsafe { Node::new(filtered_scan::path_of_no_columns(input, &below)) };
    let cost = cost(output, targets, below, groups);
    // SAFETY: a path of the relation, with structures of the planner's. It is not used any more,
    // and no other one is (caller).
    unsafe {
        let path = Node::new(path(output, scan, &cost, private(targets, having)));
        pg_sys::add_path(output.as_ptr(), path.path().as_ptr());
        if !is_grouped {
            offer_to_workers(root, input, output, extra, &filtering);
        }
    }
}

/// Offers aggregates that workers and leader compute by themselves, below core's nodes that put
/// them together.
///
/// # Safety
/// As for [`offer`].
unsafe fn offer_to_workers(
    root: Node<'_, pg_sys::PlannerInfo>,
    input: Node<'_, pg_sys::RelOptInfo>,
    output: Node<'_, pg_sys::RelOptInfo>,
    extra: Node<'_, pg_sys::GroupPathExtraData>,
    filtering: &Filtering,
) {
    let can_be_parts = extra.flags() as u32 & pg_sys::GROUPING_CAN_PARTIAL_AGG != 0;
    if !can_be_parts || !extra.partial_costs_set() || !output.consider_parallel() {
        return;
    }
    let kind = pg_sys::UpperRelationKind::UPPERREL_PARTIAL_GROUP_AGG;
    // SAFETY: the planner's own structures. Core has made the relation of parts where it has looked
    // for paths of its own.
    let parts = unsafe {
        Node::enter(pg_sys::fetch_upper_rel(
            root.as_ptr(),
            kind,
            output.relids(),
        ))
    };
    if parts
        .reltarget()
        .is_none_or(|target| target.exprs().is_empty())
    {
        return;
    }
    let Some((workers, processes)) = workers::of_scan(input) else {
        return;
    };
    let Some(targets) = targets(root, input, parts, None) else {
        return;
    };
    let below = filtering.cost_in_place(input).shared(processes);
    let mut scan = filtered_scan::path_of_no_columns(input, &below);
    scan.path.parallel_aware = true;
    scan.path.parallel_workers = workers;
    let cost = cost(parts, targets, below, 1.0);
    // SAFETY: paths of the relations, with structures of the planner's. The last one is not used
    // any more, and no other one of the output is (caller).
    unsafe {
        let mut part = path(parts, Node::new(scan), &cost, private(targets, None));
        part.path.parallel_workers = workers;
        let gathered = gathered(root, parts, Node::new(part), f64::from(workers));
        let whole = put_together(root, output, gathered, extra);
        pg_sys::add_path(output.as_ptr(), whole);
    }
}

/// Core's node that gathers the parts of workers and leader, so many rows.
fn gathered(
    root: Node<'_, pg_sys::PlannerInfo>,
    parts: Node<'_, pg_sys::RelOptInfo>,
    part: Node<'_, pg_sys::CustomPath>,
    mut rows: f64,
) -> *mut pg_sys::Path {
    let target = parts.target().as_ptr();
    let path = part.path().as_ptr();
    // SAFETY: the planner's own structures.
    unsafe {
        pg_sys::create_gather_path(
            root.as_ptr(),
            parts.as_ptr(),
            path,
            target,
            std::ptr::null_mut(),
            &raw mut rows,
        )
        .cast()
    }
}

/// Core's node that makes the whole of parts.
///
/// # Safety
/// A path of the parts.
unsafe fn put_together(
    root: Node<'_, pg_sys::PlannerInfo>,
    output: Node<'_, pg_sys::RelOptInfo>,
    parts: *mut pg_sys::Path,
    extra: Node<'_, pg_sys::GroupPathExtraData>,
) -> *mut pg_sys::Path {
    let having = root.query().havingQual();
    // SAFETY: the planner's own structures, and a path of its own. Planning has made the condition
    // a list.
    unsafe {
        pg_sys::create_agg_path(
            root.as_ptr(),
            output.as_ptr(),
            parts,
            output.target().as_ptr(),
            pg_sys::AggStrategy::AGG_PLAIN,
            pg_sys::AggSplit::AGGSPLIT_FINAL_DESERIAL,
            std::ptr::null_mut(),
            having.map_or(std::ptr::null_mut(), |having| having.as_ptr().cast()),
            &raw const (*extra.as_ptr()).agg_final_costs,
            1.0,
        )
        .cast()
    }
}

/// What a path of ours keeps for its plan: its columns, and the condition of HAVING, which planning
/// has made a list.
fn private(targets: Targets<'_>, having: Option<Any<'_>>) -> *mut pg_sys::List {
    let having = having.map_or(std::ptr::null_mut(), |having| having.as_ptr().cast());
    // SAFETY: a list of two lists, each of them NULL if it is empty.
    unsafe { list::<pg_sys::List>(&[targets.as_ptr(), having]) }
}

/// A path of what is made of a scan's rows.
fn path(
    rel: Node<'_, pg_sys::RelOptInfo>,
    scan: Node<'_, pg_sys::CustomPath>,
    cost: &version::Cost,
    private: *mut pg_sys::List,
) -> pg_sys::CustomPath {
    let mut path = filtered_scan::path(rel, rel.target(), cost);
    path.path.parallel_safe = rel.consider_parallel() && scan.path().parallel_safe();
    path.flags = pg_sys::CUSTOMPATH_SUPPORT_PROJECTION;
    path.custom_paths = List::of(std::iter::once(scan)).as_ptr();
    path.custom_private = private;
    path.methods = &raw const PATHS.0;
    path
}

/// `PlanCustomPath`.
unsafe fn plan(
    _root: *mut pg_sys::PlannerInfo,
    _rel: *mut pg_sys::RelOptInfo,
    path: *mut pg_sys::CustomPath,
    targets: *mut pg_sys::List,
    _clauses: *mut pg_sys::List,
    plans: *mut pg_sys::List,
) -> *mut pg_sys::Plan {
    // SAFETY: as core calls it: a path that was made above, with two lists and one path below.
    let (path, private, below) = unsafe {
        let path = Node::enter(path);
        let private = cells::<pg_sys::List>(path.custom_private());
        (path, private, cells::<pg_sys::Plan>(plans)[0])
    };
    let mut node = pg_sys::CustomScan {
        custom_scan_tlist: private[0],
        flags: path.flags(),
        methods: &raw const METHODS.0,
        ..Default::default()
    };
    node.scan.plan.targetlist = targets;
    node.scan.plan.qual = private[1];
    // Core hands the parameters that change on to the node below.
    node.scan.plan.lefttree = below;
    // SAFETY: a node of what core has passed.
    unsafe { Node::new(node) }.as_ptr().cast()
}
