//! Aggregates over a scan of a table, as a node of core's: a custom scan of no relation, with the
//! scan's node below.
use super::filtered_scan;
use crate::executor::aggregate::{Aggregation, RowSource, check_rights};
use crate::pg::executor::exec_scan;
use crate::pg::guard::guarded;
use crate::pg::list::{items, list};
use crate::pg::local::ProcessLocal;
use crate::pg::version;
use crate::{errors, storage};
use pgrx::PgMemoryContexts;
use pgrx::pg_sys;
use std::ffi::{CStr, c_int};
use std::sync::LazyLock;

/// The node's name, in EXPLAIN and for parallel workers.
pub const NAME: &CStr = c"MOT Aggregate";

/// By what core makes the plan's node a running one.
pub static METHODS: LazyLock<ProcessLocal<pg_sys::CustomScanMethods>> = LazyLock::new(|| {
    ProcessLocal(pg_sys::CustomScanMethods {
        CustomName: NAME.as_ptr(),
        CreateCustomScanState: Some(guarded!(create(plan))),
    })
});

static EXECUTION: LazyLock<ProcessLocal<pg_sys::CustomExecMethods>> = LazyLock::new(|| {
    ProcessLocal(pg_sys::CustomExecMethods {
        CustomName: NAME.as_ptr(),
        BeginCustomScan: Some(guarded!(begin(node, estate, flags))),
        ExecCustomScan: Some(execute),
        EndCustomScan: Some(guarded!(end(node))),
        ReScanCustomScan: Some(guarded!(rescan(node))),
        ExplainCustomScan: Some(guarded!(explain(node, ancestors, state))),
        ..Default::default()
    })
});

/// The node as core holds it: core's part first.
#[repr(C)]
struct Node {
    core: pg_sys::CustomScanState,
    /// NULL when the node was only initialized for EXPLAIN.
    state: *mut Aggregation,
}

/// The running node.
unsafe fn state<'a>(node: *mut pg_sys::ScanState) -> &'a mut Aggregation {
    // SAFETY: Begin has put it there (caller); it lives as long as the query's memory context.
    unsafe { &mut *(*node.cast::<Node>()).state }
}

/// The scan below.
unsafe fn source(below: *mut pg_sys::ScanState) -> &'static mut dyn RowSource {
    // SAFETY: a node of `plan_nodes/filtered_scan.rs` that runs.
    unsafe { filtered_scan::state(below) }
}

/// `CreateCustomScanState`.
unsafe fn create(_plan: *mut pg_sys::CustomScan) -> *mut pg_sys::Node {
    // SAFETY: zeroed memory of the node's size, in the query's memory context.
    unsafe {
        let node = pg_sys::palloc0(size_of::<Node>()).cast::<Node>();
        (*node).core.ss.ps.type_ = pg_sys::NodeTag::T_CustomScanState;
        (*node).core.methods = &raw const EXECUTION.0;
        node.cast()
    }
}

/// What the node's columns are.
unsafe fn targets(node: *mut pg_sys::CustomScanState) -> *mut pg_sys::List {
    // SAFETY: a node of a plan of ours (caller).
    unsafe { (*(*node).ss.ps.plan.cast::<pg_sys::CustomScan>()).custom_scan_tlist }
}

/// `BeginCustomScan`.
unsafe fn begin(node: *mut pg_sys::CustomScanState, estate: *mut pg_sys::EState, flags: c_int) {
    // SAFETY: as core calls it; the current memory context is the query's.
    unsafe {
        let below = (*(*node).ss.ps.plan).lefttree;
        (*node).ss.ps.lefttree = pg_sys::ExecInitNode(below, estate, flags);
        check_rights(targets(node));
        if flags as u32 & pg_sys::EXEC_FLAG_EXPLAIN_ONLY != 0 {
            return;
        }
        let below = (*node).ss.ps.lefttree.cast::<pg_sys::ScanState>();
        let table = (*below).ss_currentRelation;
        if !storage::is_table(table) {
            errors::planned_method_changed(&storage::name_of(table));
        }
        let aggregation = Aggregation::new(below, source, targets(node));
        (*node.cast::<Node>()).state =
            PgMemoryContexts::For((*estate).es_query_cxt).leak_and_drop_on_delete(aggregation);
    }
}

/// `ExecCustomScan`: a plain frame, for an error jumps over it.
unsafe extern "C-unwind" fn execute(
    node: *mut pg_sys::CustomScanState,
) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: as core calls it.
    unsafe {
        exec_scan(
            node.cast(),
            Some(guarded!(access(node))),
            Some(guarded!(recheck(node, slot))),
        )
    }
}

/// The next row, in the node's slot.
unsafe fn access(node: *mut pg_sys::ScanState) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: as core calls it: a node of ours that runs.
    unsafe {
        let memory = (*(*node).ps.ps_ExprContext).ecxt_per_tuple_memory;
        let old = pg_sys::MemoryContextSwitchTo(memory);
        let slot = state(node).iterate((*node).ss_ScanTupleSlot);
        pg_sys::MemoryContextSwitchTo(old);
        slot
    }
}

/// In a re-evaluation (EvalPlanQual) core asks here for a node of no relation: a subquery's, whose
/// rows are computed again.
unsafe fn recheck(node: *mut pg_sys::ScanState, _slot: *mut pg_sys::TupleTableSlot) -> bool {
    // SAFETY: as core calls it.
    unsafe { (*access(node)).tts_flags & pg_sys::TTS_FLAG_EMPTY as u16 == 0 }
}

/// `EndCustomScan`.
unsafe fn end(node: *mut pg_sys::CustomScanState) {
    // SAFETY: as core calls it.
    unsafe {
        if !(*node.cast::<Node>()).state.is_null() {
            state(node.cast()).end();
        }
        pg_sys::ExecEndNode((*node).ss.ps.lefttree);
    }
}

/// `ReScanCustomScan`. The scan below begins anew when it is asked for rows if a parameter of its
/// changed, and else here.
unsafe fn rescan(node: *mut pg_sys::CustomScanState) {
    // SAFETY: as core calls it, for a node that runs.
    unsafe {
        let below = (*node).ss.ps.lefttree;
        if (*below).chgParam.is_null() {
            pg_sys::ExecReScan(below);
        }
        state(node.cast()).rewind();
        pg_sys::ExecScanReScan(&raw mut (*node).ss);
    }
}

/// `ExplainCustomScan`: keys and aggregates; passes over the rows, if there were several.
unsafe fn explain(
    node: *mut pg_sys::CustomScanState,
    ancestors: *mut pg_sys::List,
    es: *mut pg_sys::ExplainState,
) {
    // SAFETY: as core calls it; both are lists of what the plan has.
    unsafe {
        let context =
            pg_sys::set_deparse_context_plan((*es).deparse_cxt, (*node).ss.ps.plan, ancestors);
        let is_prefixed = version::tables_explained(es) > 1 || (*es).verbose;
        for (label, of_aggregates) in [(c"Group Key", false), (c"Aggregates", true)] {
            let texts: Vec<_> = items::<pg_sys::TargetEntry>(targets(node))
                .into_iter()
                .map(|target| (*target).expr.cast::<pg_sys::Node>())
                .filter(|node| ((**node).type_ == pg_sys::NodeTag::T_Aggref) == of_aggregates)
                .map(|node| pg_sys::deparse_expression(node, context, is_prefixed, false))
                .collect();
            if !texts.is_empty() {
                pg_sys::ExplainPropertyList(label.as_ptr(), list(&texts), es);
            }
        }
        if (*es).analyze && !(*node.cast::<Node>()).state.is_null() {
            let passes = state(node.cast()).passes_over_rows();
            if passes > 1 {
                let label = c"Passes".as_ptr();
                pg_sys::ExplainPropertyInteger(label, std::ptr::null(), passes.into(), es);
            }
        }
    }
}
