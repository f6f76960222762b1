//! How many parallel workers share a scan of all rows, by core's own reckoning.
use crate::pg::node::Node;
use pgrx::pg_sys;

/// What the leader does beside reading, for each worker, as a part of its time
/// (`get_parallel_divisor`).
const LEADER_SHARE_LOST: f64 = 0.3;

/// How many workers core gives to a scan of the relation's pages.
pub fn for_pages(rel: Node<'_, pg_sys::RelOptInfo>) -> i32 {
    let pages = f64::from(rel.pages());
    // SAFETY: the planner's own structure; a setting.
    unsafe {
        let most = pg_sys::max_parallel_workers_per_gather;
        pg_sys::compute_parallel_worker(rel.as_ptr(), pages, -1.0, most)
    }
}

/// The workers of a scan of the relation, and among how many processes that divides it; `None`: it
/// is not shared.
pub fn of_scan(rel: Node<'_, pg_sys::RelOptInfo>) -> Option<(i32, f64)> {
    if !rel.consider_parallel() {
        return None;
    }
    let workers = for_pages(rel);
    if workers <= 0 {
        return None;
    }
    let mut processes = f64::from(workers);
    // SAFETY: a setting.
    if unsafe { pg_sys::parallel_leader_participation } {
        processes += (1.0 - LEADER_SHARE_LOST * f64::from(workers)).max(0.0);
    }
    Some((workers, processes))
}
