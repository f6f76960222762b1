//! The scan shared by the leader and its parallel workers, as core's SeqScan is.
use super::state;
use crate::pg::node::Node;
use pgrx::pg_sys;
use std::ffi::c_void;

/// `EstimateDSMCustomScan`.
pub fn estimate(
    node: Node<'_, pg_sys::CustomScanState>,
    _context: *mut pg_sys::ParallelContext,
) -> pg_sys::Size {
    let scan = node.ss();
    let (relation, snapshot) = (scan.relation().as_ptr(), scan.ps().estate().es_snapshot());
    // SAFETY: an open relation, and the query's snapshot.
    unsafe { pg_sys::table_parallelscan_estimate(relation, snapshot) }
}

/// `InitializeDSMCustomScan`: the leader begins, before it launches workers.
pub unsafe fn initialize(
    node: Node<'_, pg_sys::CustomScanState>,
    _context: *mut pg_sys::ParallelContext,
    shared: *mut c_void,
) {
    let scan = node.ss();
    let (relation, snapshot) = (scan.relation().as_ptr(), scan.ps().estate().es_snapshot());
    // SAFETY: memory as large as was asked for, for the query's snapshot.
    unsafe { pg_sys::table_parallelscan_initialize(relation, shared.cast(), snapshot) };
    // SAFETY: it is initialized.
    unsafe { begin(scan, shared) };
}

/// `ReInitializeDSMCustomScan`: the leader begins again, when all workers have ended.
pub unsafe fn reinitialize(
    node: Node<'_, pg_sys::CustomScanState>,
    _context: *mut pg_sys::ParallelContext,
    shared: *mut c_void,
) {
    let relation = node.ss().relation().as_ptr();
    // SAFETY: what was initialized.
    unsafe { pg_sys::table_parallelscan_reinitialize(relation, shared.cast()) };
}

/// `InitializeWorkerCustomScan`: a worker joins.
pub unsafe fn join(
    node: Node<'_, pg_sys::CustomScanState>,
    _contents: *mut pg_sys::shm_toc,
    shared: *mut c_void,
) {
    // SAFETY: as core calls it, with what the leader has initialized.
    unsafe { begin(node.ss(), shared) };
}

/// Begins the scan in a process.
///
/// # Safety
/// A node of ours that runs, and the shared memory that the leader has initialized for it.
unsafe fn begin(scan: Node<'_, pg_sys::ScanState>, shared: *mut c_void) {
    let relation = scan.relation().as_ptr();
    // SAFETY: the caller's; the state is used here alone.
    unsafe { state(scan).rows = pg_sys::table_beginscan_parallel(relation, shared.cast()) };
}
