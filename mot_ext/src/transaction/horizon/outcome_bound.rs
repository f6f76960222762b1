//! The bound below which PostgreSQL may truncate its commit log, because no outcome will be asked
//! for. README.md, "Outcomes that are still asked for".
//!
//! - `below` only rises, except in `withdraw`. The end of recovery, or the checkpoint worker,
//!   publishes the first bound, and the reclaimer all others.
//! - The bound is stored as the `xmin` in the PGPROCs of both workers, which have no snapshots of
//!   their own. So one of them may be started again. It is stored under ProcArrayLock, so that the
//!   places are still those workers'.
//! - A server that runs for `pg_upgrade` shows none. There VACUUM runs in the new cluster alone,
//!   before that has tables, and `pg_upgrade` relies on it to freeze every row of its catalogs.
use super::{processes, while_still};
use crate::shared_memory::{self, OutcomeBound};
use crate::transaction::clock::narrow;
use crate::upgrade;
use mot_engine::Xid;
use pgrx::pg_sys;
use std::sync::atomic::{AtomicU32, Ordering};

/// The workers that show the bound.
#[derive(Clone, Copy)]
pub enum Worker {
    Checkpointer,
    Reclaimer,
}

/// Under ProcArrayLock.
fn show(bound: &OutcomeBound) {
    let xmin = match upgrade::is_binary_upgrade() {
        true => pg_sys::InvalidTransactionId,
        false => narrow(Xid(bound.below.load(Ordering::Relaxed))),
    };
    for place in shown_by().into_iter().flatten() {
        // SAFETY: a worker's PGPROC: it takes its place out of `shown_by`, under the lock that we
        // have, before it leaves the array. It writes its xmin at no other time, and others read it
        // as one word.
        unsafe {
            let process = (*pg_sys::ProcGlobal).allProcs.add(place);
            (&raw mut (*process).xmin).write_volatile(xmin);
        }
    }
}

/// From now on no outcome below this is asked for. May take ProcArrayLock; raises nothing.
pub fn publish(below: Xid) {
    if below <= published() {
        return;
    }
    let bound = &shared_memory::control().outcome_bound;
    while_still(|| {
        bound.below.fetch_max(below.0, Ordering::Relaxed);
        show(bound);
    });
}

/// The published bound; `Xid::NONE`: there is none.
pub fn published() -> Xid {
    Xid(shared_memory::control()
        .outcome_bound
        .below
        .load(Ordering::Relaxed))
}

/// Whether a bound is published.
pub fn is_published() -> bool {
    published() != Xid::NONE
}

/// The tables could not be loaded, and nothing resolves rows before a restart, which reads the
/// outcomes from the WAL: VACUUM is not to wait for that.
pub fn withdraw() {
    if !is_published() {
        return;
    }
    let bound = &shared_memory::control().outcome_bound;
    while_still(|| {
        bound.below.store(0, Ordering::Relaxed);
        show(bound);
    });
}

/// From now on this process shows the published bound. It is in the ProcArray, never takes a
/// snapshot, and calls [`end_to_show`] at its exit.
pub fn begin_to_show(worker: Worker) {
    let bound = &shared_memory::control().outcome_bound;
    // SAFETY: this process's own PGPROC; it is one of the array.
    let place = unsafe { pg_sys::MyProc.offset_from(processes().as_ptr()) };
    while_still(|| {
        bound.shown_by[worker as usize].store(place as u32 + 1, Ordering::Relaxed);
        show(bound);
    });
}

/// Called before a process that shows the bound leaves the ProcArray. The other one continues to
/// show it, and the next one will.
pub fn end_to_show(worker: Worker) {
    let bound = &shared_memory::control().outcome_bound;
    while_still(|| bound.shown_by[worker as usize].store(0, Ordering::Relaxed));
}

/// Whether the reclaimer runs.
pub fn is_reclaimer_running() -> bool {
    shown_by()[Worker::Reclaimer as usize].is_some()
}

/// The places of the processes that show the bound.
pub(super) fn shown_by() -> [Option<usize>; 2] {
    let place = |shown_by: &AtomicU32| (shown_by.load(Ordering::Relaxed) as usize).checked_sub(1);
    shared_memory::control()
        .outcome_bound
        .shown_by
        .each_ref()
        .map(place)
}
