//! The reclaimer while it sleeps for long: a word of the control block (`reclaim/idle_sleep.rs`).
use pgrx::pg_sys;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The process that sleeps; null at start.
#[repr(C)]
pub struct Sleeper(AtomicPtr<pg_sys::PGPROC>);

impl Sleeper {
    /// This process is going to sleep.
    pub fn begin(&self) {
        // SAFETY: a plain variable of this process: its place among PostgreSQL's processes, whose
        // memory stays.
        self.0.store(unsafe { pg_sys::MyProc }, Ordering::SeqCst);
    }

    /// This process does not sleep any more. True: a session has taken it off before, and has set
    /// its latch or is about to.
    pub fn end(&self) -> bool {
        self.0
            .swap(std::ptr::null_mut(), Ordering::SeqCst)
            .is_null()
    }

    /// Wakes the process that sleeps, if there is one.
    pub fn wake(&self) {
        if self.0.load(Ordering::SeqCst).is_null() {
            return;
        }
        let process = self.0.swap(std::ptr::null_mut(), Ordering::SeqCst);
        if !process.is_null() {
            // SAFETY: a place among PostgreSQL's processes. Should it be another process's by now,
            // that one is woken for nothing, which does no harm.
            unsafe { pg_sys::SetLatch(&raw mut (*process).procLatch) };
        }
    }
}
