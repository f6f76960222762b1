//! Index scans by a comparison of rows, `(a, b) > (1, 2)`, on 15 to 17: core's own scan, below a
//! node that hands its rows on.
//!
//! When core's executor makes such a condition into scan keys it looks whether the index is a
//! btree, or raises. So the scan is made while its indexes are shown as btrees, wherever it is
//! made: with the query, in a worker, or for a re-evaluation (EvalPlanQual).
use crate::index_am::flips;
use crate::pg::guard::guarded;
use crate::pg::local::ProcessLocal;
use pgrx::pg_sys::NodeTag::{T_BitmapHeapScanState, T_IndexScanState};
use pgrx::prelude::*;
use pgrx::{PgList, pg_sys};
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
unsafe fn create(_plan: *mut pg_sys::CustomScan) -> *mut pg_sys::Node {
    // SAFETY: zeroed memory of the node's size, in the query's memory context.
    unsafe {
        let node =
            pg_sys::palloc0(size_of::<pg_sys::CustomScanState>()).cast::<pg_sys::CustomScanState>();
        (*node).ss.ps.type_ = pg_sys::NodeTag::T_CustomScanState;
        (*node).methods = &raw const EXECUTION.0;
        node.cast()
    }
}

/// `BeginCustomScan`.
unsafe fn begin(node: *mut pg_sys::CustomScanState, estate: *mut pg_sys::EState, flags: c_int) {
    // SAFETY: as core calls it; the plan has the indexes' oids, and the tables are locked.
    unsafe {
        let plan = (*node).ss.ps.plan.cast::<pg_sys::CustomScan>();
        let indexes = PgList::<pg_sys::Oid>::from_pg((*plan).custom_private);
        let indexes: Vec<_> = indexes.iter_oid().collect();
        let flips = flips::show(&indexes, pg_sys::AccessShareLock as pg_sys::LOCKMODE);
        let below = pg_sys::ExecInitNode((*plan).scan.plan.lefttree, estate, flags);
        flips.end();
        (*node).ss.ps.lefttree = below;
        take_rows_of(node, below);
    }
}

/// Says of the node what holds of the one below: its rows are that one's.
unsafe fn take_rows_of(node: *mut pg_sys::CustomScanState, below: *mut pg_sys::PlanState) {
    // SAFETY: the caller's nodes, initialized; scans are cast by their tags.
    unsafe {
        let scan = &mut (*node).ss;
        let mut is_fixed = false;
        let kind = pg_sys::ExecGetResultSlotOps(below, &raw mut is_fixed);
        if scan.ps.ps_ProjInfo.is_null() {
            scan.ps.resultops = kind;
            scan.ps.resultopsfixed = is_fixed;
            scan.ps.resultopsset = true;
        } else {
            // Core has made it for rows in a slot of this node's.
            scan.ps.scanops = kind;
            scan.ps.scanopsfixed = is_fixed;
            scan.ps.scanopsset = true;
            pg_sys::ExecAssignScanProjectionInfoWithVarno(scan, pg_sys::INDEX_VAR as c_int);
        }
        // WHERE CURRENT OF asks the scan of a table for its row.
        if matches!((*below).type_, T_IndexScanState | T_BitmapHeapScanState) {
            let below = below.cast::<pg_sys::ScanState>();
            scan.ss_currentRelation = (*below).ss_currentRelation;
            scan.ss_ScanTupleSlot = (*below).ss_ScanTupleSlot;
        }
    }
}

/// `ExecCustomScan`: a plain frame, for an error jumps over it.
#[allow(ffi_unwind_calls)]
unsafe extern "C-unwind" fn execute(
    node: *mut pg_sys::CustomScanState,
) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: as core calls it; each running node has its function.
    unsafe {
        let below = (*node).ss.ps.lefttree;
        if !(*below).chgParam.is_null() {
            begin_anew(below);
        }
        let Some(next) = (*below).ExecProcNode else {
            return std::ptr::null_mut();
        };
        let row = next(below);
        match row.is_null() || (*node).ss.ps.ps_ProjInfo.is_null() {
            true => row,
            false => projected(node, row),
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn begin_anew(below: *mut pg_sys::PlanState) {
    // SAFETY: the caller's running node.
    unsafe { pg_sys::ExecReScan(below) };
}

/// The node's columns, of a row of the node below.
#[pg_guard]
unsafe extern "C-unwind" fn projected(
    node: *mut pg_sys::CustomScanState,
    row: *mut pg_sys::TupleTableSlot,
) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: the caller's node, which projects, and a row or an empty slot.
    unsafe {
        if (*row).tts_flags & pg_sys::TTS_FLAG_EMPTY as u16 != 0 {
            return std::ptr::null_mut();
        }
        let context = (*node).ss.ps.ps_ExprContext;
        pg_sys::MemoryContextReset((*context).ecxt_per_tuple_memory);
        (*context).ecxt_scantuple = row;
        pg_sys::ExecProject((*node).ss.ps.ps_ProjInfo)
    }
}

/// `EndCustomScan`.
unsafe fn end(node: *mut pg_sys::CustomScanState) {
    // SAFETY: as core calls it.
    unsafe { pg_sys::ExecEndNode((*node).ss.ps.lefttree) };
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
    }
}
