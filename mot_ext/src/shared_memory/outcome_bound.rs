//! Which outcomes of transactions will still be asked for: a part of the control block
//! (`transaction/horizon/README.md`).
use std::sync::atomic::{AtomicU32, AtomicU64};

/// The commit log's bound, in the control block. `shown_by` changes under ProcArrayLock.
#[repr(C)]
pub struct OutcomeBound {
    /// No outcome of a transaction below will be asked for; 0: there is no bound.
    pub below: AtomicU64,
    /// The places of the processes that show it among PostgreSQL's, plus one; 0: it does not run.
    pub shown_by: [AtomicU32; 2],
    /// Sweeps that were asked for, and how many of them are answered
    /// (`transaction/horizon/sweep_requests.rs`).
    pub asked: AtomicU64,
    pub answered: AtomicU64,
}
