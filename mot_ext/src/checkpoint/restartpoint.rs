//! The gate for restartpoints: a checkpoint on a standby does not read the delay flags (`gate`),
//! so it is held at the slot `mot`.
//!
//! A restartpoint fixes its redo position R, then writes everything, slots first, and completes. To
//! write a slot that is dirty it takes the slot's I/O lock. Only its owner dirties the slot `mot`,
//! and that is the checkpoint worker, which
//!
//! - keeps the slot dirty and holds its I/O lock while the standby can be read;
//! - checks at each turn whether a process waits for the lock *before* it reads R: R is then the
//!   waiter's or a later one's;
//! - lets the waiter through when its own checkpoint covers R, or when it cannot write one (the
//!   slot keeps the WAL then).
//!
//! So a backup of a standby finds a checkpoint of ours that is not older than PostgreSQL's: the
//! WAL that a base backup brings along is enough for it. Before the standby can be read no process
//! can copy it through the server, and nothing is held.
//!
//! The lock is only ever taken by this worker and by the checkpointer; the worker takes no lock
//! while it holds it that the waiting checkpointer has (that one has ReplicationSlotAllocationLock,
//! shared). Others do take that one: a session that makes or drops a slot, a session with a
//! temporary one at its end, too. They wait with the restartpoint, and no signal ends that. So a
//! shutdown, which waits for sessions, lets the restartpoint through (`Worker::turn`); otherwise it
//! is as long as the gate is shut (README.md, limits).
use crate::pg::version::NO_WAITER;
use pgrx::pg_sys;

/// The I/O lock of this process's slot.
fn lock() -> Option<*mut pg_sys::LWLock> {
    // SAFETY: a plain variable of this process; the slot lives in shared memory.
    unsafe {
        let slot = pg_sys::MyReplicationSlot;
        (!slot.is_null()).then(|| &raw mut (*slot).io_in_progress_lock)
    }
}

fn is_mine(lock: *mut pg_sys::LWLock) -> bool {
    // SAFETY: reads this process's list of locks.
    unsafe { pg_sys::LWLockHeldByMe(lock) }
}

/// Whether the gate is shut: no restartpoint completes before this process lets it.
pub fn is_shut() -> bool {
    lock().is_some_and(is_mine)
}

/// Whether a restartpoint waits at the gate. Called before the redo position is read.
pub fn is_waiting() -> bool {
    lock().is_some_and(|lock| {
        // SAFETY: a lock in shared memory; an old answer costs the waiter one turn.
        is_mine(lock) && unsafe { (&raw const (*lock).waiters.head).read_volatile() } != NO_WAITER
    })
}

/// Shuts the gate, if this process has the slot.
pub fn shut() {
    let Some(lock) = lock() else {
        return;
    };
    if is_mine(lock) {
        return;
    }
    // SAFETY: this process has the slot, so it stays; waits for a slot's write at most. An error,
    // later, releases the lock (`pg::catch`). A waiter goes through then, and the worker ends
    // each process that might begin a backup from there (`Worker::shut_again`).
    unsafe {
        pg_sys::LWLockAcquire(lock, pg_sys::LWLockMode::LW_EXCLUSIVE);
        pg_sys::ReplicationSlotMarkDirty();
    }
}

/// Opens it: a restartpoint that waits continues.
pub fn open() {
    if let Some(lock) = lock()
        && is_mine(lock)
    {
        // SAFETY: held by this process.
        unsafe { pg_sys::LWLockRelease(lock) };
    }
}
