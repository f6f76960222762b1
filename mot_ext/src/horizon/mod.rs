//! Who still needs old row versions. README.md has the protocol and the proof.
mod holders;
mod survey;
mod tell;

pub use survey::survey;
pub use tell::{Told, tell};

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

/// The local transaction id of a process; 0 outside transactions.
fn local_xid(process: &pg_sys::PGPROC) -> u32 {
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    let field = &raw const process.lxid;
    #[cfg(any(feature = "pg17", feature = "pg18"))]
    let field = &raw const process.vxid.lxid;
    // SAFETY: an aligned word that its process writes.
    unsafe { field.read_volatile() }
}

/// A process's line, by its place among [`processes`]; processes beyond the last line tell nothing.
fn line(place: usize) -> Option<&'static Told> {
    shmem::control().told_snapshots.get(place)
}
