//! Waiting that a signal can end: latch sleeps for backends, the startup process and workers.
use pgrx::pg_sys;

/// What ended a sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Woken {
    Timeout,
    Latch,
}

/// Sleeps until the process latch is set or `timeout_ms` have passed; leaves at once when the postmaster is gone.
/// Does not look at interrupts: the caller decides when an error may be raised.
pub fn sleep_ms(timeout_ms: i64) -> Woken {
    let events = pg_sys::WL_LATCH_SET | pg_sys::WL_TIMEOUT | pg_sys::WL_EXIT_ON_PM_DEATH;
    // SAFETY: MyLatch is valid in every process that runs this code.
    let woken = unsafe {
        pg_sys::WaitLatch(
            pg_sys::MyLatch,
            events as i32,
            timeout_ms,
            pg_sys::PG_WAIT_EXTENSION,
        )
    };
    if woken as u32 & pg_sys::WL_LATCH_SET == 0 {
        return Woken::Timeout;
    }
    // SAFETY: as above.
    unsafe { pg_sys::ResetLatch(pg_sys::MyLatch) };
    Woken::Latch
}

/// Raises a pending cancel, termination or other interrupt of a backend.
pub fn check_for_interrupts() {
    pgrx::check_for_interrupts!();
}
