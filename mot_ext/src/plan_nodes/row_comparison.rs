//! Index scans by a comparison of rows, `(a, b) > (1, 2)`, on 15 to 17: core's own scan, below a
//! node that hands its rows on.
//!
//! When core's executor makes such a condition into scan keys it looks whether the index is a
//! btree, or raises. So the scan is made while its indexes are shown as btrees, wherever it is
//! made: with the query, in a worker, or for a re-evaluation (EvalPlanQual).
use crate::index_am::flips;
use crate::pg::guard::guarded;
use crate::pg::local::ProcessLocal;
use crate::pg::node::{Node, make_custom_scan};
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::ffi::{CStr, c_int};
use std::sync::LazyLock;

/// The node's name, in EXPLAIN and for parallel workers.
pub const NAME: &CStr = c"MOT Row Comparison";

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
        ..Default::default()
    })
});

/// `CreateCustomScanState`.
fn create(_plan: *mut pg_sys::CustomScan) -> *mut pg_sys::Node {
    // SAFETY: the callbacks take nodes without a state. The context is the query's.
    let node = unsafe { make_custom_scan::<()>(&raw const EXECUTION.0) };
    node.any().as_ptr()
}

/// `BeginCustomScan`.
fn begin(node: Node<'_, pg_sys::CustomScanState>, estate: Node<'_, pg_sys::EState>, flags: c_int) {
    let indexes = node.custom_plan().private_oids();
    // SAFETY: the plan has the indexes' oids, and their tables are locked.
    let flips = unsafe { flips::show(&indexes, pg_sys::AccessShareLock as pg_sys::LOCKMODE) };
    let below = node.begin_below(estate, flags);
    flips.end();
    node.give_rows_of(below);
    if let Some(scan) = scan_of(below) {
        node.stand_for(scan);
    }
}

/// The same as a scan that WHERE CURRENT OF asks for its row; `None`: it is none.
fn scan_of<'p>(below: Node<'p, pg_sys::PlanState>) -> Option<Node<'p, pg_sys::ScanState>> {
    let by_index = below.cast::<pg_sys::IndexScanState>();
    let by_bitmap = below.cast::<pg_sys::BitmapHeapScanState>();
    by_index
        .map(|scan| scan.ss())
        .or(by_bitmap.map(|scan| scan.ss()))
}

/// `ExecCustomScan`: a plain frame, for an error jumps over it.
#[allow(ffi_unwind_calls)]
unsafe extern "C-unwind" fn execute(
    node: *mut pg_sys::CustomScanState,
) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: as core calls it.
    let node: Node<'_, pg_sys::CustomScanState> = unsafe { Node::enter(node) };
    let below = node.below();
    if below.chgParam() {
        begin_anew(below);
    }
    // SAFETY: each running node has its function, and gives NULL, or a slot that is its own.
    let row = unsafe {
        match (*below.as_ptr()).ExecProcNode {
            Some(next) => Node::enter_if_any(next(below.as_ptr())),
            None => None,
        }
    };
    match (row, node.ss().ps().ps_ProjInfo()) {
        (None, _) => std::ptr::null_mut(),
        (Some(row), None) => row.as_ptr(),
        // SAFETY: the node projects rows of the one below.
        (Some(row), Some(projection)) => unsafe { projected(node, projection, row) },
    }
}

#[pg_guard]
extern "C-unwind" fn begin_anew(below: Node<'_, pg_sys::PlanState>) {
    below.begin_anew();
}

/// The node's columns, of a row of the node below, or of an empty slot.
#[pg_guard]
unsafe extern "C-unwind" fn projected(
    node: Node<'_, pg_sys::CustomScanState>,
    projection: Node<'_, pg_sys::ProjectionInfo>,
    row: Node<'_, pg_sys::TupleTableSlot>,
) -> *mut pg_sys::TupleTableSlot {
    if row.is_empty() {
        return std::ptr::null_mut();
    }
    let context = node.ss().ps().context();
    // SAFETY: nothing of the row before is in it any more.
    unsafe { context.empty() };
    context.show(row);
    // SAFETY: the node's own projection, over the row that its context has.
    unsafe { pg_sys::ExecProject(projection.as_ptr()) }
}

/// `EndCustomScan`.
fn end(node: Node<'_, pg_sys::CustomScanState>) {
    // SAFETY: the node below is not asked any more.
    unsafe { node.end_below() };
}

/// `ReScanCustomScan`. The scan below begins anew when it is asked for rows if a parameter of its
/// changed, and else here.
fn rescan(node: Node<'_, pg_sys::CustomScanState>) {
    node.begin_below_anew();
}
