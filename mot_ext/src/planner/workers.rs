//! How many parallel workers share a scan of all rows, by core's own reckoning.
use pgrx::pg_sys;

/// What the leader does beside reading, for each worker, as a part of its time
/// (`get_parallel_divisor`).
const LEADER_SHARE_LOST: f64 = 0.3;

/// The workers of a scan of the relation, and among how many processes that divides it; `None`: it
/// is not shared.
///
/// # Safety
/// The planner's own structure.
pub unsafe fn of_scan(rel: *mut pg_sys::RelOptInfo) -> Option<(i32, f64)> {
    // SAFETY: the caller's, and plain variables of this process.
    unsafe {
        if !(*rel).consider_parallel {
            return None;
        }
        let pages = f64::from((*rel).pages);
        let most = pg_sys::max_parallel_workers_per_gather;
        let workers = pg_sys::compute_parallel_worker(rel, pages, -1.0, most);
        if workers <= 0 {
            return None;
        }
        let mut processes = f64::from(workers);
        if pg_sys::parallel_leader_participation {
            processes += (1.0 - LEADER_SHARE_LOST * f64::from(workers)).max(0.0);
        }
        Some((workers, processes))
    }
}
