//! When the worker writes a checkpoint, which of PostgreSQL's may pass without one, and what a
//! failure does.
//!
//! Called from a turn at the gate, between its opening and its closing, and (`finish`) when no
//! process is left that could log.
use super::{TURN_MS, Worker};
use crate::checkpoint::shutdown::{
    keeps_wal, keeps_wal_alone, let_limited_slot_go, may_exit_uncovered, must_exit,
    recovery_may_checkpoint,
};
use crate::checkpoint::{base_backups, files, gate, restartpoint};
use crate::pg::text::show_lsn;
use crate::pg::{self, interrupts, report, slot};
use crate::shared_memory::server_phase::{
    has_restartpoints, hot_standby_active, is_of_old_timeline, recovery_in_progress,
    recovery_state, server_is_stopping,
};
use crate::transaction::session;
use crate::{errors, shared_memory, upgrade};
use mot_engine::checkpoint::Manifest;
use mot_engine::pause::{Point, reach};
use mot_engine::{EngineError, Lsn, State};
use pgrx::prelude::*;
use std::sync::atomic::Ordering;
use std::time::Instant;

impl Worker {
    /// Writes a checkpoint if PostgreSQL's redo position has passed the covered one. False: it
    /// failed, or a failed one is still to be tried again.
    pub(super) fn cover(&mut self, redo: Lsn) -> bool {
        if redo.0 <= shared_memory::control().covered.load(Ordering::SeqCst)
            || !may_checkpoint()
            || self.may_lag()
            || is_of_old_timeline(redo)
        {
            return true;
        }
        if self
            .retry_checkpoint_at
            .is_some_and(|at| Instant::now() < at)
        {
            return false;
        }
        self.write(redo, false)
    }

    /// Whether PostgreSQL's checkpoint may complete before ours. The last one of a crash recovery
    /// may: the first statement waits for it, and ours may have to write everything. Until ours
    /// follows, right after, a start reads the WAL between the two itself; so the slot must surely
    /// keep it, and the checkpoint that was loaded must not say that there is nothing to read. A
    /// checkpoint that a backup may begin from is always a later one: it waits as ever. A standby
    /// that is promoted waits for no checkpoint; an archive recovery that reaches its end waits
    /// for ours.
    fn may_lag(&self) -> bool {
        if recovery_state() != pg_sys::RecoveryState::RECOVERY_STATE_CRASH || !self.slot_is_counted
        {
            return false;
        }
        keeps_wal() && shared_memory::control().gap_is_read.load(Ordering::SeqCst)
    }

    /// Whether PostgreSQL's checkpoint may complete although ours has failed: the WAL between the
    /// two is kept, and no backup begins with it. (A standby's backups begin with restartpoints,
    /// which have a gate of their own.) Not in the turn that has made the slot: PostgreSQL may have
    /// asked the slots before.
    pub(super) fn may_pass_uncovered(&self) -> bool {
        !self.slot_is_new && keeps_wal() && (recovery_in_progress() || !base_backups::may_begin())
    }

    fn write(&mut self, redo: Lsn, last: bool) -> bool {
        let control = shared_memory::control();
        let write = || {
            if !last {
                reach(Point::CheckpointAfterRedo);
            }
            files::write(redo, last)
        };
        let error = match pg::catch(write) {
            Ok(Ok(())) => {
                self.retry_checkpoint_at = None;
                control.covered.store(redo.0, Ordering::SeqCst);
                if let Err(error) = pg::catch(|| slot::advance(redo)) {
                    self.shut_again();
                    ereport!(
                        PgLogLevel::WARNING,
                        PgSqlErrorCode::ERRCODE_INTERNAL_ERROR,
                        format!("mot could not advance its replication slot: {error}")
                    );
                }
                return true;
            }
            Ok(Err(EngineError::CheckpointNotNow { what })) if what == files::RECOVERY_ENDED => {
                session::reset_after_error();
                return true;
            }
            Ok(Err(error)) => error.to_string(),
            Err(error) => {
                self.shut_again();
                error
            }
        };
        if pg::is_orphaned() {
            // That was why. SAFETY: ends the process, as a sleep would do now; its exit callbacks
            // leave the gate and the engine.
            unsafe { pg_sys::proc_exit(1) };
        }
        session::reset_after_error();
        self.retry_checkpoint_at = Some(Instant::now() + files::RETRY);
        control.checkpoint.failed.fetch_add(1, Ordering::Relaxed);
        report::error_without_jump(
            &format!("mot checkpoint at redo {} failed: {error}", show_lsn(redo)),
            if !keeps_wal() {
                match must_exit() && server_is_stopping() && !may_exit_uncovered() {
                    true => errors::HINT_CHECKPOINT_FAILED_SHUTDOWN_WAITS,
                    false => errors::HINT_CHECKPOINT_FAILED_GATE_SHUT,
                }
            } else if base_backups::may_begin() {
                errors::HINT_CHECKPOINT_FAILED_BACKUP_WAITS
            } else {
                errors::HINT_CHECKPOINT_FAILED
            },
        );
        false
    }

    /// The last checkpoint, at shutdown: PostgreSQL's follows when every process is gone but WAL
    /// senders, which write nothing of ours any more.
    pub(super) fn finish(&mut self) {
        let control = shared_memory::control();
        control.closing.store(true, Ordering::SeqCst);
        let mut ended = Vec::new();
        loop {
            let is_waiting = control.participants.load(Ordering::SeqCst) > 0;
            if !is_waiting && !recovery_may_checkpoint() {
                break;
            }
            if is_waiting {
                // The postmaster has asked all others to end.
                base_backups::end_transactions_of_senders(&mut ended);
            }
            if recovery_in_progress() && !has_restartpoints() {
                let_limited_slot_go();
            }
            // A checkpoint of PostgreSQL's may still be under way.
            self.turn();
            interrupts::sleep_ms(TURN_MS);
        }
        let engine = shared_memory::engine().expect("preloaded");
        if engine.state() == State::Ready && !recovery_in_progress() {
            let _held = gate::open_turn();
            // SAFETY: reads a shared position; never raises. No writer is left, so everything
            // logged is before it.
            let end = Lsn(unsafe { pg_sys::GetXLogInsertRecPtr() });
            if self.write_last(end) {
                match files::fingerprint() {
                    Ok(newest) => {
                        let generation = newest.map_or(0, |(generation, _)| generation);
                        control.final_generation.store(generation, Ordering::SeqCst);
                    }
                    Err(error) => report::error_without_jump(
                        &error.to_string(),
                        "The checkpoint is complete; the next start loads it as without mot.warm_restart.",
                    ),
                }
            } else {
                ereport!(
                    PgLogLevel::WARNING,
                    PgSqlErrorCode::ERRCODE_IO_ERROR,
                    "mot could not write its last checkpoint; the next start replays the WAL that its slot \
                     keeps, and finds unlogged tables empty"
                );
            }
        }
        upgrade::leave_notes(checkpoint_of_next_start);
        restartpoint::open();
        gate::leave();
    }

    /// Writes the last checkpoint: as often as it takes where the slot does not keep the WAL, which
    /// PostgreSQL's last one would remove. False: it failed, and the slot does.
    fn write_last(&mut self, end: Lsn) -> bool {
        while !self.write(end, true) {
            if keeps_wal_alone() {
                return false;
            }
            while self
                .retry_checkpoint_at
                .is_some_and(|at| Instant::now() < at)
            {
                interrupts::sleep_ms(TURN_MS);
            }
        }
        true
    }
}

/// The checkpoint that the next start loads; an error if that start would refuse it.
fn checkpoint_of_next_start() -> Result<Option<Manifest>, String> {
    let control = shared_memory::control();
    if shared_memory::engine().expect("preloaded").state() == State::Failed {
        return Err(control.failure());
    }
    let disk = files::open().map_err(|error| error.to_string())?;
    let newest = files::newest(&disk, None).map_err(|error| error.to_string())?;
    match newest {
        Some(manifest) if slot::is_ahead_of(manifest.redo) => {
            Err("there was a newer checkpoint".into())
        }
        newest => Ok(newest),
    }
}

/// Whether the state of the tables may be written down, and the server can say which transactions
/// are running.
///
/// Read after the redo position: a state that says "replayed" then speaks of everything before it.
pub(super) fn may_checkpoint() -> bool {
    let control = shared_memory::control();
    match shared_memory::engine().expect("preloaded").state() {
        State::Ready => true,
        State::Replaying => control.redo_ended.load(Ordering::SeqCst) || hot_standby_active(),
        State::Empty | State::Loading | State::Failed => false,
    }
}
