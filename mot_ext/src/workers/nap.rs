//! The reclaimer's long naps, and who ends them.
//!
//! With nothing to do it looks around twice a second. A burst that begins in such a nap would leave all it supersedes until the nap is over, and writers would
//! prune below a horizon of before it. So whoever has left some rows behind looks whether it naps, and wakes it: for a busy server that is one look at a word that
//! nobody writes, once in so many rows. Few changes now and then wake nobody.
use super::shutdown_asked;
use crate::pg::interrupts;
use crate::shmem;
use mot_engine::Session;
use pgrx::pg_sys;
use std::cell::Cell;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Rows that a session leaves behind between two looks.
const ROWS_BETWEEN_LOOKS: u64 = 64;

/// Who naps. In shared memory; nobody at start.
#[repr(C)]
pub struct Napping(AtomicPtr<pg_sys::PGPROC>);

struct Looked(Cell<u64>);
// SAFETY: PostgreSQL's processes run this code on one thread.
unsafe impl Sync for Looked {}
/// What this process's session had left behind when it looked last.
static LOOKED: Looked = Looked(Cell::new(0));

/// Naps as long as `long_ms` while nothing happens. When a session wakes this process, or did so just before, it sleeps `short_ms` from then on: what was
/// committed a moment ago is dead to everybody a moment later.
pub fn nap(short_ms: i64, long_ms: i64) {
    let napping = &shmem::control().napping.0;
    // SAFETY: a plain variable of this process: its place among PostgreSQL's processes, whose memory stays.
    napping.store(unsafe { pg_sys::MyProc }, Ordering::SeqCst);
    interrupts::sleep_ms(long_ms);
    // Taken: by a session, which has set the latch, or is about to. A signal sets it, too, and takes nothing.
    let is_taken = napping
        .swap(std::ptr::null_mut(), Ordering::SeqCst)
        .is_null();
    if is_taken && !shutdown_asked() {
        interrupts::sleep_ms(short_ms);
    }
}

/// A session has committed.
#[inline]
pub fn after_commit(session: &Session) {
    let left = session.rows_left_behind();
    if left.wrapping_sub(LOOKED.0.get()) >= ROWS_BETWEEN_LOOKS {
        LOOKED.0.set(left);
        look();
    }
}

fn look() {
    let napping = &shmem::control().napping.0;
    // What it read of a nap that begins right now is as good a moment later: the next look is not far in a burst.
    if napping.load(Ordering::Relaxed).is_null() {
        return;
    }
    let process = napping.swap(std::ptr::null_mut(), Ordering::SeqCst);
    if !process.is_null() {
        // SAFETY: a place among PostgreSQL's processes. Should it be another process's by now, that one is woken for nothing, which all bear with.
        unsafe { pg_sys::SetLatch(&raw mut (*process).procLatch) };
    }
}
