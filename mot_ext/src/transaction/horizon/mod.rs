//! Which processes still need old row versions. README.md has the protocol and the proof.
mod holders;
pub mod outcome_bound;
mod publish;
mod survey;
pub mod sweep_requests;

#[cfg(debug_assertions)]
pub use publish::plant_stale;
pub use publish::publish;
pub use survey::survey;

use crate::pg::version::local_transaction_of as local_xid;
use crate::shared_memory::{self, PublishedSnapshot};
use pgrx::pg_sys;

/// PostgreSQL's array of processes that may have snapshots; prepared transactions lie behind it.
fn processes() -> &'static [pg_sys::PGPROC] {
    // SAFETY: laid out at server start and never moved; what changes in it is read through volatile
    // loads.
    unsafe {
        let all = &*pg_sys::ProcGlobal;
        std::slice::from_raw_parts(all.allProcs, all.allProcCount as usize)
    }
}

/// ProcArrayLock's place in MainLWLockArray (`storage/lwlocknames.h`).
const PROC_ARRAY_LOCK: usize = 4;

/// Runs `work` while no transaction ends, no snapshot is taken, and no process comes or goes. It
/// must not raise, nor take long.
fn while_still<R>(work: impl FnOnce() -> R) -> R {
    // SAFETY: PostgreSQL's own lock; an error before its release would be cleaned up by the caller
    // (`pg::catch`), and none can come.
    let lock = unsafe { &raw mut (*pg_sys::MainLWLockArray.add(PROC_ARRAY_LOCK)).lock };
    // SAFETY: as above.
    unsafe { pg_sys::LWLockAcquire(lock, pg_sys::LWLockMode::LW_EXCLUSIVE) };
    let result = work();
    // SAFETY: taken above.
    unsafe { pg_sys::LWLockRelease(lock) };
    result
}

/// A process's line, by its place among [`processes`]; processes beyond the last line publish
/// nothing.
fn line(place: usize) -> Option<&'static PublishedSnapshot> {
    shared_memory::control().published_snapshots.get(place)
}
