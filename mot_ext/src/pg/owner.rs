//! The process that runs a transaction, watched without a lock.
//!
//! PostgreSQL keeps a `PGPROC` for every process, at the same place as long as the server lives;
//! another process may take one over, with ids of its own. Two of its fields are read here as they
//! change, each in one load: `xid`, cleared (under ProcArrayLock) at the moment from which
//! every process takes the transaction for ended, and `wait_event_info`, not 0 while the process
//! sleeps.
use crate::pg::local::ProcessLocal;
use pgrx::pg_sys;
use std::cell::Cell;
use std::ffi::c_int;

/// A process that was found running a transaction.
#[derive(Clone, Copy)]
pub struct Owner {
    process: *const pg_sys::PGPROC,
    xid: pg_sys::TransactionId,
}

impl Owner {
    /// The process that runs top-level transaction `xid`; none for one that has ended, is prepared,
    /// or is a subtransaction.
    pub fn find(xid: pg_sys::TransactionId) -> Option<Owner> {
        // SAFETY: reads the process array under its lock; raises nothing that a wait for the
        // transaction would not.
        let pid = unsafe { pg_sys::BackendXidGetPid(xid) };
        if pid == 0 {
            return None;
        }
        let runs_it = |process| Some(Owner { process, xid }).filter(|owner| !owner.has_ended());
        // A known place may be of a process that had this pid before: 15 and 16 leave the pid of
        // one that has ended.
        cached(pid)
            .and_then(runs_it)
            .or_else(|| look_up(pid).and_then(runs_it))
    }

    /// Whether the transaction has ended, for every process; true, too, once it is prepared.
    pub fn has_ended(&self) -> bool {
        // SAFETY: a PGPROC is never unmapped (see above); an aligned field of 32 bits.
        unsafe { (&raw const (*self.process).xid).read_volatile() != self.xid }
    }

    /// Whether its process sleeps: waits for its client, a lock, a device.
    pub fn is_asleep(&self) -> bool {
        // SAFETY: as in `has_ended`.
        unsafe { (&raw const (*self.process).wait_event_info).read_volatile() != 0 }
    }
}

/// Processes met lately, by pid: to find one by its pid PostgreSQL reads every connection.
const PROCESSES_MAX: usize = 64;

static PROCESSES: ProcessLocal<[Cell<(c_int, *const pg_sys::PGPROC)>; PROCESSES_MAX]> =
    ProcessLocal([const { Cell::new((0, std::ptr::null())) }; PROCESSES_MAX]);

fn place(pid: c_int) -> &'static Cell<(c_int, *const pg_sys::PGPROC)> {
    &PROCESSES.0[pid as usize % PROCESSES_MAX]
}

fn cached(pid: c_int) -> Option<*const pg_sys::PGPROC> {
    let (cached, process) = place(pid).get();
    // SAFETY: a PGPROC is never unmapped; an aligned field of 32 bits.
    (cached == pid && unsafe { (&raw const (*process).pid).read_volatile() } == pid)
        .then_some(process)
}

fn look_up(pid: c_int) -> Option<*const pg_sys::PGPROC> {
    // SAFETY: reads the process array under its lock.
    let process: *const _ = unsafe { pg_sys::BackendPidGetProc(pid) };
    if process.is_null() {
        return None;
    }
    place(pid).set((pid, process));
    Some(process)
}

/// Plants a place of a process that has ended for the next look-up of `pid`, as 15 and 16 leave one
/// behind when the system gives a pid out again.
#[cfg(debug_assertions)]
pub fn plant_ended(pid: c_int) {
    // SAFETY: integers, pointers and lists of no members: zero is a valid PGPROC; it stays as long
    // as this process.
    let ended = Box::leak(Box::new(unsafe { std::mem::zeroed::<pg_sys::PGPROC>() }));
    ended.pid = pid;
    place(pid).set((pid, ended));
}
