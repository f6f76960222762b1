//! The scan shared by the leader and its parallel workers, as core's SeqScan is.
use super::state;
use pgrx::pg_sys;
use std::ffi::c_void;

/// `EstimateDSMCustomScan`.
pub unsafe fn estimate(
    node: *mut pg_sys::CustomScanState,
    _context: *mut pg_sys::ParallelContext,
) -> pg_sys::Size {
    // SAFETY: as core calls it.
    unsafe {
        let snapshot = (*(*node).ss.ps.state).es_snapshot;
        pg_sys::table_parallelscan_estimate((*node).ss.ss_currentRelation, snapshot)
    }
}

/// `InitializeDSMCustomScan`: the leader begins, before it launches workers.
pub unsafe fn initialize(
    node: *mut pg_sys::CustomScanState,
    _context: *mut pg_sys::ParallelContext,
    shared: *mut c_void,
) {
    // SAFETY: as core calls it, with memory as large as was asked for.
    unsafe {
        let relation = (*node).ss.ss_currentRelation;
        let snapshot = (*(*node).ss.ps.state).es_snapshot;
        pg_sys::table_parallelscan_initialize(relation, shared.cast(), snapshot);
        state(node.cast()).rows = pg_sys::table_beginscan_parallel(relation, shared.cast());
    }
}

/// `ReInitializeDSMCustomScan`: the leader begins again, when all workers have ended.
pub unsafe fn reinitialize(
    node: *mut pg_sys::CustomScanState,
    _context: *mut pg_sys::ParallelContext,
    shared: *mut c_void,
) {
    // SAFETY: as core calls it, with what was initialized.
    unsafe {
        pg_sys::table_parallelscan_reinitialize((*node).ss.ss_currentRelation, shared.cast());
    }
}

/// `InitializeWorkerCustomScan`: a worker joins.
pub unsafe fn join(
    node: *mut pg_sys::CustomScanState,
    _contents: *mut pg_sys::shm_toc,
    shared: *mut c_void,
) {
    // SAFETY: as core calls it, with what the leader has initialized.
    unsafe {
        let relation = (*node).ss.ss_currentRelation;
        state(node.cast()).rows = pg_sys::table_beginscan_parallel(relation, shared.cast());
    }
}
