//! Waiting that a signal can end: latch sleeps for backends, the startup process and workers, and
//! the signals of workers.
use super::version;
use pgrx::pg_sys;
use std::ffi::c_int;

#[allow(ffi_unwind_calls)]
unsafe extern "C-unwind" {
    fn SignalHandlerForShutdownRequest(signal: c_int);
    fn SignalHandlerForConfigReload(signal: c_int);
    fn die(signal: c_int);
}

/// What ended a sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Woken {
    Timeout,
    Latch,
}

/// Sleeps until the process latch is set or `timeout_ms` have passed; leaves at once when the
/// postmaster is gone. Does not check for interrupts: the caller decides when to raise.
pub fn sleep_ms(timeout_ms: i64) -> Woken {
    let death = if super::is_under_postmaster() {
        pg_sys::WL_EXIT_ON_PM_DEATH
    } else {
        0
    };
    let events = pg_sys::WL_LATCH_SET | pg_sys::WL_TIMEOUT | death;
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

/// Raises a pending cancel, termination or other interrupt of a backend or worker.
pub fn check_for_interrupts() {
    pgrx::check_for_interrupts!();
}

/// Whether [`check_for_interrupts`] has something to do. Never raises.
pub fn is_pending() -> bool {
    // SAFETY: a plain variable of this process that a signal handler sets, so it is read anew each
    // time.
    unsafe { (&raw const pg_sys::InterruptPending).read_volatile() != 0 }
}

/// Whether [`check_for_interrupts`] would end the statement now. Never raises.
pub fn is_cancel_pending() -> bool {
    // SAFETY: plain variables of this process; a signal handler sets the pending ones, so they are
    // read anew each time.
    unsafe {
        let is_set = |flag: *const pg_sys::sig_atomic_t| flag.read_volatile() != 0;
        let can_raise = pg_sys::InterruptHoldoffCount == 0 && pg_sys::CritSectionCount == 0;
        can_raise
            && is_set(&raw const pg_sys::InterruptPending)
            && (is_set(&raw const pg_sys::ProcDiePending)
                || version::is_transaction_overdue()
                || (is_set(&raw const pg_sys::QueryCancelPending)
                    && pg_sys::QueryCancelHoldoffCount == 0))
    }
}

/// Whether this process is the one that replays the log.
pub fn is_startup_process() -> bool {
    // SAFETY: a plain variable of this process.
    unsafe { pg_sys::MyBackendType == pg_sys::BackendType::B_STARTUP }
}

/// In the startup process: does what it does between records (ends it at shutdown, reads the
/// configuration again). In any other process: nothing.
pub fn handle_startup_interrupts() {
    // SAFETY: a plain variable of this process; the function belongs to the startup process and may
    // end it by proc_exit.
    unsafe {
        if is_startup_process() {
            version::process_startup_interrupts();
        }
    }
}

/// SIGTERM asks a worker to end, SIGHUP to read the configuration again; both wake its latch.
pub fn take_worker_signals() {
    // SAFETY: PostgreSQL's own handlers; a worker begins with its signals blocked.
    unsafe {
        version::set_signal_handler(libc::SIGTERM, Some(SignalHandlerForShutdownRequest));
        version::set_signal_handler(libc::SIGHUP, Some(SignalHandlerForConfigReload));
        pg_sys::BackgroundWorkerUnblockSignals();
    }
}

/// For a worker that runs transactions: SIGTERM ends it at its next check for interrupts, as it
/// ends a backend.
pub fn take_backend_signals() {
    // SAFETY: PostgreSQL's own handler; a worker begins with its signals blocked.
    unsafe {
        version::set_signal_handler(libc::SIGTERM, Some(die));
        pg_sys::BackgroundWorkerUnblockSignals();
    }
}
