//! What the end of a replay asks of checkpoints.
use super::files;
use crate::pg::{interrupts, slot};
use crate::shared_memory;
use crate::shared_memory::server_phase::replays_an_archive;
use mot_engine::Lsn;
use pgrx::prelude::*;
use std::sync::atomic::Ordering;

/// At the end of a replay: waits until the worker's turn has reached its slot, so that the
/// recovery's last checkpoint need not wait for ours (`Worker::may_lag`). A short replay is over
/// within a turn. Not where the worker is not there, or has nothing to hold a slot for.
pub fn wait_for_slot() {
    let control = shared_memory::control();
    while control.gate_is_held.load(Ordering::SeqCst)
        && control.covered.load(Ordering::SeqCst) != 0
        && slot::possible()
        && !control.closing.load(Ordering::SeqCst)
        && !control.slot_is_settled.load(Ordering::SeqCst)
    {
        interrupts::sleep_ms(1);
        interrupts::handle_startup_interrupts();
    }
}

/// Single-user mode has no workers: after a recovery there, this process writes the checkpoint
/// itself.
pub fn checkpoint_single_user() {
    // SAFETY: reads a shared position; never raises.
    let mut redo = Lsn(unsafe { pg_sys::GetXLogReplayRecPtr(std::ptr::null_mut()) });
    if replays_an_archive() {
        // Where the recovery ends another timeline begins, to which that position would belong: one
        // within the last record, behind which nothing of ours is.
        redo.0 -= 1;
    }
    match files::write(redo, true) {
        Ok(()) => shared_memory::control()
            .covered
            .store(redo.0, Ordering::SeqCst),
        Err(error) => ereport!(
            PgLogLevel::FATAL,
            PgSqlErrorCode::ERRCODE_IO_ERROR,
            format!("mot could not write a checkpoint after recovery in single-user mode: {error}")
        ),
    }
}
