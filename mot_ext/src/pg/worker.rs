//! Background workers as PostgreSQL describes, starts and stops them.
use super::interrupts;
use pgrx::pg_sys;
use std::ffi::CStr;

/// Seconds after which the postmaster starts a worker again that ended with an error.
const RESTART_S: i32 = 1;

/// A worker of this library that has shared memory and no database.
pub fn describe(
    name: &CStr,
    function: &CStr,
    start: pg_sys::BgWorkerStartTime::Type,
) -> pg_sys::BackgroundWorker {
    let mut worker = pg_sys::BackgroundWorker {
        bgw_flags: pg_sys::BGWORKER_SHMEM_ACCESS as i32,
        bgw_start_time: start,
        bgw_restart_time: RESTART_S,
        ..Default::default()
    };
    copy(&mut worker.bgw_name, name);
    copy(&mut worker.bgw_type, name);
    copy(&mut worker.bgw_library_name, c"mot");
    copy(&mut worker.bgw_function_name, function);
    worker
}

fn copy(to: &mut [std::ffi::c_char], from: &CStr) {
    let bytes = from.to_bytes_with_nul();
    assert!(bytes.len() <= to.len());
    for (to, from) in to.iter_mut().zip(bytes) {
        *to = *from as std::ffi::c_char;
    }
}

/// What every worker does first: signals as PostgreSQL's own workers take them.
pub fn begin() {
    interrupts::take_worker_signals();
}

/// Reads the configuration again if a SIGHUP asked for it.
pub fn reload_if_asked() {
    // SAFETY: plain variables of this process; the signal handler only sets the flag. May raise.
    unsafe {
        if pg_sys::ConfigReloadPending != 0 {
            pg_sys::ConfigReloadPending = 0;
            pg_sys::ProcessConfigFile(pg_sys::GucContext::PGC_SIGHUP);
        }
    }
}

/// Whether the postmaster has asked this worker to end.
pub fn shutdown_asked() -> bool {
    // SAFETY: a plain variable that the signal handler sets.
    unsafe { (&raw const pg_sys::ShutdownRequestPending).read_volatile() != 0 }
}
