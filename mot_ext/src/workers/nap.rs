//! The reclaimer's long naps, and who ends them.
//!
//! With nothing to do it looks around twice a second. A burst that begins in such a nap would leave all it supersedes until the nap is over, and writers would
//! prune below a horizon of before it. So whoever has left some rows behind looks whether it naps, and wakes it: for a busy server that is one look at a word that
//! nobody writes, once in so many rows. Few changes now and then wake nobody; nor does anybody where an old snapshot or transaction holds the horizon, for then it
//! would find that it can do nothing.
use super::shutdown_asked;
use crate::pg::interrupts;
use crate::shmem;
use mot_engine::Session;
use mot_engine::pause::{Point, reach};
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
/// committed a moment ago is dead to everybody a moment later. `has_news` says whether something has happened since it was last looked: who committed
/// then saw nobody nap, and wakes nobody. It must not raise.
pub fn nap(short_ms: i64, long_ms: i64, has_news: impl FnOnce() -> bool) {
    let napping = &shmem::control().napping.0;
    reach(Point::ReclaimBeforeNap);
    // SAFETY: a plain variable of this process: its place among PostgreSQL's processes, whose memory stays.
    napping.store(unsafe { pg_sys::MyProc }, Ordering::SeqCst);
    if has_news() {
        napping.store(std::ptr::null_mut(), Ordering::SeqCst);
        interrupts::sleep_ms(short_ms);
        return;
    }
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
    // Behind the end of this session's transaction, as the nap's beginning is before its last look at what has ended: one of the two sees the other.
    if napping.load(Ordering::SeqCst).is_null() {
        return;
    }
    let process = napping.swap(std::ptr::null_mut(), Ordering::SeqCst);
    if !process.is_null() {
        // SAFETY: a place among PostgreSQL's processes. Should it be another process's by now, that one is woken for nothing, which all bear with.
        unsafe { pg_sys::SetLatch(&raw mut (*process).procLatch) };
    }
}
