//! What the server is doing, as our workers ask it: whether it recovers, from what, or stops.
use crate::{pg, shared_memory};
use mot_engine::Lsn;
use pgrx::pg_sys;
use std::sync::atomic::Ordering;

/// Whether the whole server shuts down, and not only this worker was asked to end.
pub fn server_is_stopping() -> bool {
    is_ordered_to_stop() || has_stopped_in_recovery()
}

/// The postmaster says so in its lock file, when it was asked to.
fn is_ordered_to_stop() -> bool {
    /// PM_STATUS of `miscadmin.h`: the eighth line.
    const STATUS_LINE: usize = 7;
    match std::fs::read_to_string("postmaster.pid") {
        Ok(text) => text
            .lines()
            .nth(STATUS_LINE)
            .is_some_and(|line| line.trim() == "stopping"),
        // Without the file this is unknown; a last checkpoint too many does no harm.
        Err(_) => true,
    }
}

/// It does not say so where a recovery shuts the server down at its target
/// (`recovery_target_action`): there the process that replays leaves before the recovery is over,
/// and the postmaster makes all others end. Read in this order, since the process that ends
/// a recovery says so before it leaves.
fn has_stopped_in_recovery() -> bool {
    is_replayer_there() == Some(false) && recovery_in_progress()
}

/// Whether the process that replays is there, still; None: it has not begun.
pub fn is_replayer_there() -> Option<bool> {
    let replays_in = shared_memory::control().replays_in.load(Ordering::SeqCst);
    if replays_in == 0 {
        return None;
    }
    // SAFETY: sends no signal, but asks whether there is the process.
    Some(unsafe { libc::kill(replays_in as libc::pid_t, 0) } == 0)
}

/// Whether a checkpoint for the redo position `redo` would be one of the timeline that an archive
/// recovery, or a standby, has reached the end of, and without what had not committed there: that
/// is taken out by then. The server may yet be lost before it is for good on its new timeline, and
/// continue with the old one, where the commits are behind that end.
pub fn is_of_old_timeline(redo: Lsn) -> bool {
    if !has_ended_beside_timeline() {
        return false;
    }
    // SAFETY: reads a shared position, which no longer moves; never raises.
    let end = unsafe { pg_sys::GetXLogReplayRecPtr(std::ptr::null_mut()) };
    redo.0 < end
}

/// Whether such a recovery is between that end and the moment from which its server is on the new
/// timeline whatever happens. (A single process has no other moment for its checkpoint.)
pub fn has_ended_beside_timeline() -> bool {
    shared_memory::control().redo_ends.load(Ordering::SeqCst)
        && replays_an_archive()
        && pg::is_under_postmaster()
}

/// Whether the server recovers, replays as a standby, or has not ended to.
pub fn recovery_in_progress() -> bool {
    // SAFETY: reads shared state; never raises.
    unsafe { pg_sys::RecoveryInProgress() }
}

/// Whether a standby lets readers in.
pub fn hot_standby_active() -> bool {
    // SAFETY: reads a shared flag; never raises.
    unsafe { pg_sys::HotStandbyActive() }
}

/// What the server recovers from.
pub fn recovery_state() -> pg_sys::RecoveryState::Type {
    // SAFETY: reads shared state under a spinlock; never raises.
    unsafe { pg_sys::GetRecoveryState() }
}

/// Whether the server replays as a standby does: its checkpoints are restartpoints.
pub fn has_restartpoints() -> bool {
    replays_an_archive() && !shared_memory::control().redo_ended.load(Ordering::SeqCst)
}

/// Whether the server recovers, or has not ended to, from an archive or as a standby; and not from
/// a crash.
pub fn replays_an_archive() -> bool {
    recovery_state() == pg_sys::RecoveryState::RECOVERY_STATE_ARCHIVE
}
