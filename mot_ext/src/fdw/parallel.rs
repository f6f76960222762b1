//! Parallel queries: a scan of all rows that the leader and its workers share.
//!
//! The planner is offered a partial path for tables of `min_parallel_table_scan_size` and more, as for heap tables. Every process of the query has the plan, and
//! makes a scan of its own at Begin; before the first row the leader puts how far the scan is into the query's shared memory, and each process
//! takes part after part from there. Other scans of ours may run in workers, too, whole: the inner side of a join, a member of a parallel Append.
//!
//! A worker has the leader's snapshot, transaction ids and isolation level from core, so what the engine asks of the clock has the same answers there, rows
//! that the transaction itself wrote included. Workers write nothing: core plans none for statements that do, and refuses ids and commands
//! in them.
//!
//! SERIALIZABLE: nothing is planned parallel. A plan kept from another isolation level may be: the leader then locks the table before it is settled which
//! slots are read, and each process reports what it did not see, on behalf of the leader's transaction, as core's heap scans do in workers.
use super::{scan, serializable};
use crate::pg::version;
use mot_engine::SharedRowScan;
use mot_engine::pause::{Point, reach};
use pgrx::pg_sys;
use std::ffi::c_void;

/// What the leader does beside reading, for each worker, as a part of its time: core's own reckoning (`get_parallel_divisor`).
const LEADER_SHARE_LOST: f64 = 0.3;

pub unsafe fn is_foreign_scan_parallel_safe(
    _root: *mut pg_sys::PlannerInfo,
    _rel: *mut pg_sys::RelOptInfo,
    _entry: *mut pg_sys::RangeTblEntry,
) -> bool {
    !serializable::is_on()
}

/// Offers a scan of all rows shared by as many workers as a heap table of that size would have. `startup` and `total` are what it costs one process.
pub unsafe fn add_path(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    startup: f64,
    total: f64,
    private: impl FnOnce() -> *mut pg_sys::List,
) {
    // SAFETY: the planner's own structures, and a plain variable of this process.
    unsafe {
        // Core says no workers then, and is asked for most tables of most queries.
        let is_small = (*rel).reloptkind == pg_sys::RelOptKind::RELOPT_BASEREL
            && (*rel).rel_parallel_workers == -1
            && f64::from((*rel).pages) < f64::from(pg_sys::min_parallel_table_scan_size);
        if is_small {
            return;
        }
        let workers = pg_sys::compute_parallel_worker(
            rel,
            f64::from((*rel).pages),
            -1.0,
            pg_sys::max_parallel_workers_per_gather,
        );
        if workers <= 0 {
            return;
        }
        let mut processes = f64::from(workers);
        if pg_sys::parallel_leader_participation {
            processes += (1.0 - LEADER_SHARE_LOST * f64::from(workers)).max(0.0);
        }
        let cost = version::Cost {
            rows: ((*rel).rows / processes).round().max(1.0),
            startup,
            total: startup + (total - startup) / processes,
        };
        let nobody = std::ptr::null_mut();
        let path = version::foreign_path(root, rel, cost, std::ptr::null_mut(), nobody, private());
        (*path).path.parallel_aware = true;
        (*path).path.parallel_workers = workers;
        pg_sys::add_partial_path(rel, path.cast());
    }
}

pub unsafe fn estimate_dsm_foreign_scan(
    _node: *mut pg_sys::ForeignScanState,
    _context: *mut pg_sys::ParallelContext,
) -> pg_sys::Size {
    size_of::<SharedRowScan>()
}

/// The leader begins, before it launches workers.
pub unsafe fn initialize_dsm_foreign_scan(
    node: *mut pg_sys::ForeignScanState,
    _context: *mut pg_sys::ParallelContext,
    shared: *mut c_void,
) {
    // SAFETY: core's shared memory, as large as was asked for and aligned to 8; it stays until Shutdown.
    unsafe {
        let shared = shared.cast::<SharedRowScan>();
        shared.write(SharedRowScan::default());
        begin(node, &*shared);
    }
}

/// The leader begins again, when all workers have ended.
pub unsafe fn reinitialize_dsm_foreign_scan(
    node: *mut pg_sys::ForeignScanState,
    _context: *mut pg_sys::ParallelContext,
    shared: *mut c_void,
) {
    // SAFETY: as it was initialized.
    unsafe { begin(node, &*shared.cast::<SharedRowScan>()) }
}

unsafe fn begin(node: *mut pg_sys::ForeignScanState, shared: &'static SharedRowScan) {
    // SAFETY: a node that went through Begin; see the callers.
    unsafe {
        let scan = scan::state(node);
        scan.begin_reading_all();
        shared.begin(scan.table);
        reach(Point::ScanBeforeSharing);
        scan.share(Some(shared));
    }
}

/// A worker joins.
pub unsafe fn initialize_worker_foreign_scan(
    node: *mut pg_sys::ForeignScanState,
    _toc: *mut pg_sys::shm_toc,
    shared: *mut c_void,
) {
    // SAFETY: a node that went through Begin; the leader has initialized what is shared, and keeps it until the worker is gone.
    unsafe { scan::state(node).share(Some(&*shared.cast::<SharedRowScan>())) }
}

/// Before the shared memory goes.
pub unsafe fn shutdown_foreign_scan(node: *mut pg_sys::ForeignScanState) {
    // SAFETY: a node of ours; one that only was explained has no state, one that changes rows has another.
    unsafe {
        let plan = (*node).ss.ps.plan.cast::<pg_sys::ForeignScan>();
        if (*plan).scan.plan.parallel_aware && !(*node).fdw_state.is_null() {
            scan::state(node).share(None);
        }
    }
}

const _: () = assert!(align_of::<SharedRowScan>() <= 8);
