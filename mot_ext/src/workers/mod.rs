//! Background workers: one holds PostgreSQL's checkpoints at their gates and writes ours, one removes dead row versions; a third begins only
//! where there is something to do for it (`orphans`).
//! README.md beside this file describes the gate protocol.
mod beginning;
pub mod checkpointer;
pub mod copies;
pub mod files;
mod first_copy;
pub mod gate;
mod leave;
pub mod load;
pub mod nap;
mod orphans;
pub mod reclaimer;
pub mod restartpoint;
pub mod stage;
mod watch;

use pgrx::prelude::*;
use std::ffi::CStr;

/// Seconds after which the postmaster starts a worker again that ended with an error.
const RESTART_S: i32 = 1;

/// Registers the workers while the server preloads libraries.
pub fn init() {
    // SAFETY: a plain flag that the postmaster sets before it calls any _PG_init.
    if !unsafe { pg_sys::process_shared_preload_libraries_in_progress } {
        return;
    }
    files::refuse_link();
    copies::init();
    first_copy::init();
    register(
        c"mot checkpointer",
        c"mot_checkpointer_main",
        pg_sys::BgWorkerStartTime::BgWorkerStart_PostmasterStart,
    );
    // Not before a standby is consistent: before that the server does not know which transactions are running, and a
    // version of a running one would be taken for an aborted one's.
    register(
        c"mot reclaimer",
        c"mot_reclaimer_main",
        pg_sys::BgWorkerStartTime::BgWorkerStart_ConsistentState,
    );
}

fn register(name: &CStr, function: &CStr, start: pg_sys::BgWorkerStartTime::Type) {
    let mut worker = describe(name, function, start);
    // SAFETY: the postmaster copies the description.
    unsafe { pg_sys::RegisterBackgroundWorker(&mut worker) };
}

fn describe(
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
fn begin() {
    crate::pg::interrupts::take_worker_signals();
}

/// Reads the configuration again if a SIGHUP asked for it.
fn reload_if_asked() {
    // SAFETY: plain variables of this process; the signal handler only sets the flag. May raise.
    unsafe {
        if pg_sys::ConfigReloadPending != 0 {
            pg_sys::ConfigReloadPending = 0;
            pg_sys::ProcessConfigFile(pg_sys::GucContext::PGC_SIGHUP);
        }
    }
}

/// Whether the postmaster has told this worker to end.
pub(crate) fn shutdown_asked() -> bool {
    // SAFETY: a plain variable that the signal handler sets.
    unsafe { (&raw const pg_sys::ShutdownRequestPending).read_volatile() != 0 }
}
