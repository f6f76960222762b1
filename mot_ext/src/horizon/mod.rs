//! Who still needs old row versions. README.md has the protocol and the proof.
mod holders;
mod survey;
mod tell;

pub use survey::survey;
#[cfg(debug_assertions)]
pub use tell::plant_stale;
pub use tell::{Told, tell};

use crate::pg::version::local_transaction_of as local_xid;
use crate::shmem;
use pgrx::pg_sys;

/// PostgreSQL's array of processes that may have snapshots; prepared transactions lie behind it.
fn processes() -> &'static [pg_sys::PGPROC] {
    // SAFETY: laid out at server start and never moved; what changes in it is read through volatile loads.
    unsafe {
        let all = &*pg_sys::ProcGlobal;
        std::slice::from_raw_parts(all.allProcs, all.allProcCount as usize)
    }
}

/// A process's line, by its place among [`processes`]; processes beyond the last line tell nothing.
fn line(place: usize) -> Option<&'static Told> {
    shmem::control().told_snapshots.get(place)
}
