//! Aggregates over a scan of a table, as a node of core's: a custom scan of no relation, with the
//! scan's node below.
use super::filtered_scan;
use crate::executor::aggregate::{Aggregation, RowSource, check_rights};
use crate::pg::executor::exec_scan;
use crate::pg::guard::guarded;
use crate::pg::local::ProcessLocal;
use crate::pg::memory;
use crate::pg::node::{List, Node, make_custom_scan};
use crate::{errors, storage};
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

/// The running node.
///
/// # Safety
/// A node that `create` has made, and that runs. Nobody else uses its state in `'p`.
unsafe fn state(node: Node<'_, pg_sys::ScanState>) -> &'_ mut Aggregation {
    // SAFETY: the caller's.
    unsafe { node.custom_state() }
}

/// The rows of the scan below.
///
/// # Safety
/// A node of `plan_nodes/filtered_scan.rs` that runs. Nobody else uses its rows in `'p`.
unsafe fn source(below: Node<'_, pg_sys::ScanState>) -> &'_ mut dyn RowSource {
    // SAFETY: the caller's.
    unsafe { filtered_scan::state(below) }
}

/// The scan below.
fn scan_below<'p>(node: Node<'p, pg_sys::CustomScanState>) -> Node<'p, pg_sys::ScanState> {
    let below = node.below().cast::<pg_sys::CustomScanState>();
    below.expect("the node below is a scan of ours").ss()
}

/// `CreateCustomScanState`.
fn create(_plan: *mut pg_sys::CustomScan) -> *mut pg_sys::Node {
    // SAFETY: the callbacks take nodes with this state. The context is the query's.
    let node = unsafe { make_custom_scan::<Aggregation>(&raw const EXECUTION.0) };
    node.any().as_ptr()
}

/// `BeginCustomScan`.
fn begin(node: Node<'_, pg_sys::CustomScanState>, estate: Node<'_, pg_sys::EState>, flags: c_int) {
    node.begin_below(estate, flags);
    let targets = node.custom_plan().custom_scan_tlist();
    check_rights(targets);
    if flags as u32 & pg_sys::EXEC_FLAG_EXPLAIN_ONLY != 0 {
        return;
    }
    let below = scan_below(node);
    let table = below.relation();
    if !storage::is_table(table) {
        errors::planned_method_changed(&table.name_text());
    }
    // SAFETY: the source is the one of such nodes as are below; the memory is the query's.
    // `create` has made the node with this state.
    unsafe { node.keep(Aggregation::new(below, source, targets)) };
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
    unsafe { next(Node::enter(node.cast())) }.as_ptr()
}

/// Puts the next row into the node's slot.
///
/// # Safety
/// A node of ours that runs.
unsafe fn next(node: Node<'_, pg_sys::CustomScanState>) -> Node<'_, pg_sys::TupleTableSlot> {
    let (below, slot) = (scan_below(node), node.ss().slot());
    // SAFETY: the node's state, used here alone; its slot, of a virtual kind; its scan below.
    let iterate = || unsafe { state(node.ss()).iterate(below, slot) };
    // SAFETY: the node's own memory for a row.
    unsafe { memory::within(node.ss().ps().context().ecxt_per_tuple_memory(), iterate) };
    slot
}

/// In a re-evaluation (EvalPlanQual) core asks here for a node of no relation: a subquery's, whose
/// rows are computed again.
unsafe fn recheck(node: *mut pg_sys::ScanState, _slot: *mut pg_sys::TupleTableSlot) -> bool {
    // SAFETY: as core calls it.
    !unsafe { next(Node::enter(node.cast())) }.is_empty()
}

/// `EndCustomScan`.
fn end(node: Node<'_, pg_sys::CustomScanState>) {
    // SAFETY: `create` has made the node with this state, which is used here alone.
    if let Some(state) = unsafe { node.state::<Aggregation>() } {
        state.end();
    }
    // SAFETY: the node below is not asked any more.
    unsafe { node.end_below() };
}

/// `ReScanCustomScan`. The scan below begins anew when it is asked for rows if a parameter of its
/// changed, and else here.
fn rescan(node: Node<'_, pg_sys::CustomScanState>) {
    node.begin_below_anew();
    // SAFETY: a node of ours that runs, whose state is used here alone.
    unsafe { state(node.ss()) }.rewind();
    node.ss().begin_anew();
}

/// `ExplainCustomScan`: keys and aggregates; passes over the rows, if there were several.
fn explain(
    node: Node<'_, pg_sys::CustomScanState>,
    ancestors: List<'_, pg_sys::Node>,
    es: Node<'_, pg_sys::ExplainState>,
) {
    let names = es.names(node.ss().ps(), ancestors);
    let (aggregates, keys): (Vec<_>, Vec<_>) = node
        .custom_plan()
        .custom_scan_tlist()
        .iter()
        .map(|target| target.expression())
        .partition(|expression| expression.tag() == pg_sys::NodeTag::T_Aggref);
    for (label, expressions) in [(c"Group Key", keys), (c"Aggregates", aggregates)] {
        let texts: Vec<_> = expressions.into_iter().map(|it| names.text(it)).collect();
        if !texts.is_empty() {
            es.show_texts(label, &texts);
        }
    }
    // SAFETY: `create` has made the node with this state, which is used here alone.
    let state = unsafe { node.state::<Aggregation>() };
    let passes = state.map_or(0, |state| state.passes_over_rows());
    if es.analyze() && passes > 1 {
        es.show_number(c"Passes", passes.into());
    }
}
