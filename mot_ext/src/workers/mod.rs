//! Background workers. README.md describes them.
//!
//! - One holds PostgreSQL's checkpoints at their gates and writes ours (`checkpointer`).
//! - One removes dead row versions (`reclaim`).
//! - A third begins only where there is something to do for it (`reclaim/orphans.rs`).
//!
//! The checkpoint worker is above `checkpoint`, `recovery` and `reclaim`: it calls each of them in
//! its turns.
pub mod checkpointer;

use crate::checkpoint::{backup_start, base_backups, files};
use crate::pg::worker::describe;
use crate::upgrade;
use pgrx::prelude::*;
use std::ffi::CStr;

/// Registers the workers while the server preloads libraries.
pub fn init() {
    // SAFETY: a plain flag that the postmaster sets before it calls any _PG_init.
    if !unsafe { pg_sys::process_shared_preload_libraries_in_progress } {
        return;
    }
    files::refuse_link();
    upgrade::at_start();
    base_backups::init();
    backup_start::init();
    register(
        c"mot checkpointer",
        c"mot_checkpointer_main",
        pg_sys::BgWorkerStartTime::BgWorkerStart_PostmasterStart,
    );
    // Not before a standby is consistent: before that the server does not know which transactions
    // are running, and a version of a running one would be taken for an aborted one's.
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
