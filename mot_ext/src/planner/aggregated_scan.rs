//! Aggregates inside a scan of all rows (`plan_nodes/aggregated_scan.rs`), beside core's Agg over
//! such a scan.
//!
//! Offered for all rows of a table, or those that conditions let pass of which the filter can do
//! the first. Each parallel worker adds up by itself what it reads, and core's nodes above add
//! those up.
use super::aggregate::{cost, groups, is_of_whole_table, targets};
use super::filtered_scan::{self, Filtering};
use super::workers;
use crate::pg::guard::guarded;
use crate::pg::list::{cells, list};
use crate::pg::local::ProcessLocal;
use crate::pg::version;
use crate::plan_nodes::aggregated_scan::{METHODS, NAME};
use crate::storage;
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::ffi::c_void;
use std::sync::LazyLock;

static PATHS: LazyLock<ProcessLocal<pg_sys::CustomPathMethods>> = LazyLock::new(|| {
    ProcessLocal(pg_sys::CustomPathMethods {
        CustomName: NAME.as_ptr(),
        PlanCustomPath: Some(guarded!(plan(root, rel, path, targets, clauses, plans))),
        ReparameterizeCustomPathByChild: None,
    })
});

/// Whether aggregates of a query can be offered, by its plain fields.
///
/// # Safety
/// The planner's own structures. So for the others here.
#[inline]
pub unsafe fn may_be_offered(
    root: *mut pg_sys::PlannerInfo,
    stage: pg_sys::UpperRelationKind::Type,
    input: *mut pg_sys::RelOptInfo,
) -> bool {
    // SAFETY: the caller's.
    unsafe {
        stage == pg_sys::UpperRelationKind::UPPERREL_GROUP_AGG
            && (*input).lateral_relids.is_null()
            && pg_sys::enable_seqscan
            && is_of_whole_table(root, input)
    }
}

/// Offers aggregates inside the scan of a table of ours.
#[pg_guard]
pub unsafe extern "C-unwind" fn offer(
    root: *mut pg_sys::PlannerInfo,
    input: *mut pg_sys::RelOptInfo,
    output: *mut pg_sys::RelOptInfo,
    extra: *mut c_void,
) {
    // SAFETY: the planner's own structures; the table is locked.
    unsafe {
        let entry = *(*root).simple_rte_array.add((*input).relid as usize);
        if (*entry).inh
            || !(*entry).tablesample.is_null()
            || !storage::is_mot_table((*entry).relid)
            || pg_sys::is_dummy_rel(input)
        {
            return;
        }
        let Some(filtering) = Filtering::of(root, input, (*entry).relid) else {
            return;
        };
        // Planning has made it a list.
        let having = (*(*root).parse).havingQual;
        let Some(targets) = targets(root, input, output, having) else {
            return;
        };
        let is_grouped = !(*(*root).parse).groupClause.is_null();
        let groups = match is_grouped {
            true => match groups(root, input, (*input).rows, targets) {
                Some(groups) => groups,
                None => return,
            },
            false => 1.0,
        };
        let below = filtering.cost_in_place(input);
        let scan = filtered_scan::path_of_no_columns(input, &below);
        let cost = cost(output, targets, below, groups);
        let path = path(output, scan, &cost, list(&[targets, having.cast()]));
        pg_sys::add_path(output, path.cast());
        if !is_grouped {
            offer_to_workers(root, input, output, extra.cast(), &filtering);
        }
    }
}

/// Offers aggregates that workers and leader compute by themselves, below core's nodes that put
/// them together.
unsafe fn offer_to_workers(
    root: *mut pg_sys::PlannerInfo,
    input: *mut pg_sys::RelOptInfo,
    output: *mut pg_sys::RelOptInfo,
    extra: *mut pg_sys::GroupPathExtraData,
    filtering: &Filtering,
) {
    // SAFETY: the planner's own structures. Core has made the relation of parts where it has looked
    // for paths of its own.
    unsafe {
        let can_be_parts = (*extra).flags as u32 & pg_sys::GROUPING_CAN_PARTIAL_AGG != 0;
        if !can_be_parts || !(*extra).partial_costs_set || !(*output).consider_parallel {
            return;
        }
        let kind = pg_sys::UpperRelationKind::UPPERREL_PARTIAL_GROUP_AGG;
        let parts = pg_sys::fetch_upper_rel(root, kind, (*output).relids);
        if (*parts).reltarget.is_null() || (*(*parts).reltarget).exprs.is_null() {
            return;
        }
        let Some((workers, processes)) = workers::of_scan(input) else {
            return;
        };
        let Some(targets) = targets(root, input, parts, std::ptr::null_mut()) else {
            return;
        };
        let whole = filtering.cost_in_place(input);
        let below = version::Cost {
            rows: pg_sys::clamp_row_est(whole.rows / processes),
            startup: whole.startup,
            total: whole.startup + (whole.total - whole.startup) / processes,
        };
        let scan = filtered_scan::path_of_no_columns(input, &below);
        (*scan).path.parallel_aware = true;
        (*scan).path.parallel_workers = workers;
        let cost = cost(parts, targets, below, 1.0);
        let no_having = std::ptr::null_mut();
        let part = path(
            parts,
            scan,
            &cost,
            list::<pg_sys::List>(&[targets, no_having]),
        );
        (*part).path.parallel_workers = workers;
        let mut rows = f64::from(workers);
        let gather = pg_sys::create_gather_path(
            root,
            parts,
            part.cast(),
            (*parts).reltarget,
            std::ptr::null_mut(),
            &raw mut rows,
        );
        let whole = pg_sys::create_agg_path(
            root,
            output,
            gather.cast(),
            (*output).reltarget,
            pg_sys::AggStrategy::AGG_PLAIN,
            pg_sys::AggSplit::AGGSPLIT_FINAL_DESERIAL,
            std::ptr::null_mut(),
            (*(*root).parse).havingQual.cast(),
            &raw const (*extra).agg_final_costs,
            1.0,
        );
        pg_sys::add_path(output, whole.cast());
    }
}

/// A path of what is made of a scan's rows.
unsafe fn path(
    rel: *mut pg_sys::RelOptInfo,
    scan: *mut pg_sys::CustomPath,
    cost: &version::Cost,
    private: *mut pg_sys::List,
) -> *mut pg_sys::CustomPath {
    // SAFETY: zeroed memory of the node's size in the planner's memory context.
    unsafe {
        let path = filtered_scan::new_path(rel, (*rel).reltarget, cost);
        (*path).path.parallel_safe = (*rel).consider_parallel && (*scan).path.parallel_safe;
        (*path).flags = pg_sys::CUSTOMPATH_SUPPORT_PROJECTION;
        (*path).custom_paths = list(&[scan]);
        (*path).custom_private = private;
        (*path).methods = &raw const PATHS.0;
        path
    }
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
    // SAFETY: as core calls it: a path that was made above, and zeroed memory of the node's size.
    unsafe {
        let private = cells::<pg_sys::List>((*path).custom_private);
        let node = pg_sys::palloc0(size_of::<pg_sys::CustomScan>()).cast::<pg_sys::CustomScan>();
        (*node).scan.plan.type_ = pg_sys::NodeTag::T_CustomScan;
        (*node).scan.plan.targetlist = targets;
        (*node).scan.plan.qual = private[1];
        // Core hands the parameters that change on to the node below.
        (*node).scan.plan.lefttree = cells::<pg_sys::Plan>(plans)[0];
        (*node).custom_scan_tlist = private[0];
        (*node).flags = (*path).flags;
        (*node).methods = &raw const METHODS.0;
        node.cast()
    }
}
