//! Wakes the reclaimer from a long sleep (`reclaim/idle_sleep.rs`).
use crate::pg::local::ProcessLocal;
use crate::shared_memory;
use mot_engine::Session;
use std::cell::Cell;

/// Rows that a session leaves behind between two looks.
const ROWS_BETWEEN_LOOKS: u64 = 64;

/// What this process's session had left behind when it looked last.
static LOOKED: ProcessLocal<Cell<u64>> = ProcessLocal(Cell::new(0));

/// A session has committed.
#[inline]
pub fn after_commit(session: &Session) {
    let left = session.rows_left_behind();
    if left.wrapping_sub(LOOKED.0.get()) >= ROWS_BETWEEN_LOOKS {
        LOOKED.0.set(left);
        // Behind the end of this session's transaction, as the reclaimer registers its sleep before
        // its last check of what has ended: one of the two sees the other.
        shared_memory::control().reclaimer_sleeps.wake();
    }
}
