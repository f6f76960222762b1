//! Aggregates inside the scans of foreign tables: the node above the scan's (`executor/aggregate`).
use super::private::{self, items, list};
use super::scan::{keep, state as scan_state};
use crate::executor::aggregate::{Aggregation, RowSource, check_rights};
use crate::pg::version;
use crate::planner::aggregate::{cost, groups, is_of_whole_table, targets};
use pgrx::pg_sys;
use pgrx::pg_sys::NodeTag::{T_ForeignPath, T_ProjectionPath};
use std::ffi::c_void;

/// Of the scan's cost: what it costs to look at rows by the group, and to put none into a slot. (Measured: bench/BOUNDS.md.)
const BY_THE_GROUP: f64 = 0.6;

/// Whether a relation of the planner is what aggregates give.
pub unsafe fn is_path(rel: *mut pg_sys::RelOptInfo) -> bool {
    // SAFETY: the planner's own structure.
    unsafe { (*rel).reloptkind == pg_sys::RelOptKind::RELOPT_UPPER_REL }
}

pub unsafe fn get_foreign_upper_paths(
    root: *mut pg_sys::PlannerInfo,
    stage: pg_sys::UpperRelationKind::Type,
    input: *mut pg_sys::RelOptInfo,
    output: *mut pg_sys::RelOptInfo,
    _extra: *mut c_void,
) {
    // SAFETY: the planner's own structures.
    unsafe {
        // For workers: what each adds up by itself. Core's nodes above add those up, and have the conditions of HAVING.
        let is_partial = match stage {
            pg_sys::UpperRelationKind::UPPERREL_GROUP_AGG => false,
            pg_sys::UpperRelationKind::UPPERREL_PARTIAL_GROUP_AGG => true,
            _ => return,
        };
        if !is_path(output) || !is_of_whole_table(root, input) {
            return;
        }
        let (paths, having) = match is_partial {
            true => ((*input).partial_pathlist, std::ptr::null_mut()),
            // Planning has made it a list.
            false => ((*input).pathlist, (*(*root).parse).havingQual),
        };
        let Some(below) = cheapest(input, paths) else {
            return;
        };
        let Some(targets) = targets(root, input, output, having) else {
            return;
        };
        let groups = if (*(*root).parse).groupClause.is_null() {
            1.0
        } else {
            let Some(groups) = groups(root, input, (*below).rows, targets).filter(|_| !is_partial)
            else {
                return;
            };
            groups
        };
        let begin = (*below).startup_cost;
        let cost_below = version::Cost {
            rows: (*below).rows,
            startup: begin,
            total: begin + ((*below).total_cost - begin) * BY_THE_GROUP,
        };
        let cost = cost(output, targets, cost_below, groups);
        let private = list(&[targets, having.cast()]);
        let path = version::foreign_upper_path(root, output, cost, below, private);
        (*path).path.parallel_safe = (*output).consider_parallel && (*below).parallel_safe;
        (*path).path.parallel_workers = (*below).parallel_workers;
        if !is_partial {
            pg_sys::add_path(output, path.cast());
        } else if (*path).path.parallel_safe {
            pg_sys::add_partial_path(output, path.cast());
        }
    }
}

/// The cheapest scan that needs nothing from elsewhere. (A table with children is no single scan.)
unsafe fn cheapest(
    input: *mut pg_sys::RelOptInfo,
    paths: *mut pg_sys::List,
) -> Option<*mut pg_sys::Path> {
    // SAFETY: the planner's own structures; casts by tag.
    unsafe {
        items::<pg_sys::Path>(paths)
            .into_iter()
            .map(|path| match (*path).type_ {
                T_ProjectionPath => (*path.cast::<pg_sys::ProjectionPath>()).subpath,
                _ => path,
            })
            .filter(|path| {
                let path = &**path;
                path.type_ == T_ForeignPath && path.parent == input && path.param_info.is_null()
            })
            .min_by(|one, other| (**one).total_cost.total_cmp(&(**other).total_cost))
    }
}

/// The plan node, over the scan's.
pub unsafe fn plan(
    path: *mut pg_sys::ForeignPath,
    targets: *mut pg_sys::List,
    below: *mut pg_sys::Plan,
) -> *mut pg_sys::ForeignScan {
    // SAFETY: the planner's own structures; a path that was made above.
    unsafe {
        let parts = items::<pg_sys::List>((*path).fdw_private);
        pg_sys::make_foreignscan(
            targets,
            parts[1],
            0,
            std::ptr::null_mut(),
            private::encode(pg_sys::InvalidOid, false, std::iter::empty()),
            parts[0],
            std::ptr::null_mut(),
            below,
        )
    }
}

/// Whether a node computes aggregates. No other of ours is of no relation.
pub unsafe fn is_aggregate(node: *mut pg_sys::ForeignScanState) -> bool {
    // SAFETY: an initialized node.
    unsafe {
        (*(*node).ss.ps.plan.cast::<pg_sys::ForeignScan>())
            .scan
            .scanrelid
            == 0
    }
}

unsafe fn state<'a>(node: *mut pg_sys::ForeignScanState) -> &'a mut Aggregation {
    // SAFETY: Begin stored it there; it lives as long as the query's memory context.
    unsafe { &mut *(*node).fdw_state.cast::<Aggregation>() }
}

unsafe fn source(below: *mut pg_sys::ScanState) -> &'static mut dyn RowSource {
    // SAFETY: a scan's node that went through Begin.
    unsafe { scan_state(below.cast()) }
}

pub unsafe fn begin(node: *mut pg_sys::ForeignScanState, flags: std::ffi::c_int) {
    // SAFETY: an initialized node of a plan of ours, as is the one below it; the current memory context is the query's.
    unsafe {
        let targets = (*(*node).ss.ps.plan.cast::<pg_sys::ForeignScan>()).fdw_scan_tlist;
        check_rights(targets);
        if flags as u32 & pg_sys::EXEC_FLAG_EXPLAIN_ONLY != 0 {
            return;
        }
        let aggregation = Aggregation::new((*node).ss.ps.lefttree.cast(), source, targets);
        (*node).fdw_state = keep(node, aggregation).cast();
    }
}

/// Begins anew. The scan below does so by itself, or when it is asked for rows.
pub unsafe fn rewind(node: *mut pg_sys::ForeignScanState) {
    // SAFETY: a node that went through Begin.
    unsafe { state(node) }.rewind();
}

/// How many passes over the rows GROUP BY took at most in an execution; 0: none, or no GROUP BY.
pub unsafe fn passes_over_rows(node: *mut pg_sys::ForeignScanState) -> u32 {
    // SAFETY: a node that went through Begin, which makes no state for EXPLAIN alone.
    unsafe {
        match (*node).fdw_state.is_null() {
            true => 0,
            false => state(node).passes_over_rows(),
        }
    }
}

/// Ends an execution, before another begins anew.
pub unsafe fn end(node: *mut pg_sys::ForeignScanState) {
    // SAFETY: a node that went through Begin.
    unsafe { state(node).end() }
}

/// The next row; the current memory context is the node's for a row.
pub unsafe fn iterate(node: *mut pg_sys::ForeignScanState) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: a node that went through Begin; its scan slot has a column for each aggregate and each column of GROUP BY.
    unsafe { state(node).iterate((*node).ss.ss_ScanTupleSlot) }
}

/// In a re-evaluation (EvalPlanQual) core asks here for a node of no relation: a subquery's, whose rows are those of the first evaluation.
pub unsafe fn recheck(
    node: *mut pg_sys::ForeignScanState,
    _slot: *mut pg_sys::TupleTableSlot,
) -> bool {
    // SAFETY: a node of ours; the slot is its scan slot.
    unsafe {
        if !is_aggregate(node) {
            return true;
        }
        let memory = (*(*node).ss.ps.ps_ExprContext).ecxt_per_tuple_memory;
        let old = pg_sys::MemoryContextSwitchTo(memory);
        let slot = iterate(node);
        pg_sys::MemoryContextSwitchTo(old);
        (*slot).tts_flags & pg_sys::TTS_FLAG_EMPTY as u16 == 0
    }
}
