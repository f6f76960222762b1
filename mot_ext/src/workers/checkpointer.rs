//! The checkpoint worker: loads the tables after a clean start, reports replay threads without
//! memory, waits at the gate, writes a checkpoint whenever PostgreSQL's redo position has passed
//! the one that is covered, and the last one at shutdown.
//!
//! - Has no database connection and never opens a transaction: it touches no catalog.
//! - A failed checkpoint is an ERROR line in the log and a retry. While the slot keeps the WAL,
//!   PostgreSQL's checkpoint completes meanwhile; without a slot (wal_level = minimal), or with one
//!   whose WAL the server may take away (max_slot_wal_keep_size), it is held, since nothing else
//!   would keep the WAL. So is the server's shutdown then.
//! - The last checkpoint of a crash recovery completes before ours if the slot keeps the WAL
//!   (`may_lag`).
//! - Writes nothing while the state is Failed, Empty or Loading, so that no good checkpoint is
//!   replaced by a partial one.
mod cover;

use crate::checkpoint::shutdown::{may_exit_uncovered, must_exit};
use crate::checkpoint::{backup_start, base_backups, files, gate, restartpoint};
use crate::errors;
use crate::pg::checkpointer::Checkpointer;
use crate::pg::{self, interrupts, slot};
use crate::reclaim::orphans;
use crate::recovery::load;
use crate::recovery::stall::StallWatch;
use crate::shared_memory;
use crate::shared_memory::server_phase::{
    has_ended_beside_timeline, hot_standby_active, recovery_in_progress, replays_an_archive,
    server_is_stopping,
};
use crate::shared_memory::test_switch::{self, Step};
use crate::transaction::horizon::outcome_bound;
use crate::transaction::session;
use cover::may_checkpoint;
use mot_engine::{Lsn, State};
use pgrx::prelude::*;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long a standby lets no WAL sender in before a restartpoint passes by a checkpoint that
/// failed: the one let in last is among the senders by then, where it is found.
const LAST_LET_IN: Duration = Duration::from_secs(1);

/// Length of a turn at the gate: what a PostgreSQL checkpoint may wait longer than without us, in
/// milliseconds.
const TURN_MS: i64 = 10;

#[pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn mot_checkpointer_main(_arg: pg_sys::Datum) {
    crate::pg::worker::begin();
    session::join_uncounted();
    // Of a former life of this worker.
    let control = shared_memory::control();
    control
        .base_backups_are_whole
        .store(false, Ordering::SeqCst);
    control.slot_is_settled.store(false, Ordering::SeqCst);
    gate::hold();
    // No process held the gate before.
    if !backup_start::is_covered() {
        base_backups::end_base_backups();
    }
    // SAFETY: registered once; runs before the process leaves the ProcArray (callbacks run last in,
    // first out).
    unsafe { pg_sys::before_shmem_exit(Some(on_exit), pg_sys::Datum::from(0)) };
    outcome_bound::begin_to_show(outcome_bound::Worker::Checkpointer);
    control
        .checkpoint
        .worker_pid
        .store(std::process::id(), Ordering::Relaxed);
    let mut worker = Worker {
        slot_is_counted: false,
        slot_is_new: false,
        retry_checkpoint_at: None,
        retry_slot_at: None,
        slot_delay: test_switch::Delay::of(Step::PromptSlot),
        was_shut: false,
        no_sender_since: Some(Instant::now()),
        stalls: StallWatch::default(),
        orphans: orphans::Watch::default(),
    };
    while !must_exit() {
        crate::pg::worker::reload_if_asked();
        worker.turn();
        interrupts::sleep_ms(TURN_MS);
    }
    if server_is_stopping() {
        worker.finish();
    }
    // Not 0, which would mean "never start again": an administrator may have ended just this
    // worker. SAFETY: ends the process; its exit callbacks leave the gate and the engine.
    unsafe { pg_sys::proc_exit(1) };
}

#[pg_guard]
unsafe extern "C-unwind" fn on_exit(_code: std::ffi::c_int, _arg: pg_sys::Datum) {
    // Before restartpoints may pass: they do when the slot's lock goes with this process.
    shared_memory::control()
        .base_backups_are_whole
        .store(false, Ordering::SeqCst);
    base_backups::end_base_backups_to_come();
    outcome_bound::end_to_show(outcome_bound::Worker::Checkpointer);
    // The postmaster is gone. The checkpointer may not have noticed: waiting at our gate, it would
    // complete a checkpoint that removes WAL.
    if pg::is_postmaster_gone()
        && !slot::keeps_wal_alone()
        && let Some(checkpointer) = Checkpointer::find()
    {
        checkpointer.end_at_once();
    }
    gate::leave();
}

struct Worker {
    /// The slot was held before replay had ended, so the last checkpoint of the recovery keeps the
    /// slot's WAL. (PostgreSQL asks the slots before it reaches the gate.)
    slot_is_counted: bool,
    /// This turn has made the slot.
    slot_is_new: bool,
    retry_checkpoint_at: Option<Instant>,
    retry_slot_at: Option<Instant>,
    /// Turns by which a test delays the slot.
    slot_delay: test_switch::Delay,
    /// The gate for restartpoints was shut when this turn began, and has been since.
    was_shut: bool,
    /// Since when no WAL sender is let in; None: they are.
    no_sender_since: Option<Instant>,
    stalls: StallWatch,
    orphans: orphans::Watch,
}

impl Worker {
    /// Tries to cover a redo position until it does, or PostgreSQL's checkpoint may pass without.
    fn cover_or_be_passable(&mut self, redo: Lsn) {
        // Without a slot that surely keeps it nothing else keeps the WAL that a failed checkpoint
        // leaves needed, and a backup does not bring it along: the gate stays shut until a try
        // succeeds, also when the server shuts down.
        while !self.cover(redo) && !self.may_pass_uncovered() && !may_exit_uncovered() {
            interrupts::sleep_ms(TURN_MS);
            crate::pg::worker::reload_if_asked();
            self.stalls.look();
        }
    }

    /// One turn at the gate.
    fn turn(&mut self) {
        let restartpoint_waits = restartpoint::is_waiting();
        self.was_shut = restartpoint::is_shut();
        let began_uncovered = has_gate() && !backup_start::is_covered();
        let redo = gate::open_turn();
        self.stalls.look();
        keep_commit_log();
        self.load_without_redo();
        self.hold_slot();
        self.cover_or_be_passable(redo);
        let is_covered = redo.0 <= shared_memory::control().covered.load(Ordering::SeqCst);
        // On a standby no process is let in that would begin one meanwhile: one that did has
        // slipped through, and has copied files of before this turn.
        let may_run = if recovery_in_progress() {
            !began_uncovered
        } else {
            is_covered
        };
        if !may_run && base_backups::base_backup_is_running() {
            base_backups::end_base_backups();
        }
        gate::close_turn();
        // A crash recovery has none, and the slot's lock would only keep its last checkpoint. Nor
        // does one that has ended: no checkpoint of ours comes before it is on its new timeline
        // (`is_of_old_timeline`), and PostgreSQL's first one there would wait behind a
        // restartpoint. A backup that has begun with that fails at the promotion.
        let is_guarded = recovery_in_progress()
            && replays_an_archive()
            && may_checkpoint()
            && !has_ended_beside_timeline();
        // Every restartpoint that completes after `redo` was read waits for us, if the gate was
        // shut before. (Without a slot there is no gate.) Reported before the gate opens: a
        // restartpoint that continues although our checkpoint failed is one that no backup may
        // begin from.
        let control = shared_memory::control();
        let are_whole = is_guarded && (self.was_shut || !slot::is_held()) && is_covered;
        control
            .base_backups_are_whole
            .store(are_whole, Ordering::SeqCst);
        self.no_sender_since = match self.no_sender_since {
            _ if are_whole => None,
            None => Some(Instant::now()),
            since => since,
        };
        // At a shutdown it waits for no backup, which fails then: a session whose end
        // `finish` waits for may wait behind that restartpoint, and so may the backup's own WAL
        // sender, where no signal ends them (`restartpoint`).
        let waits_for_backup = base_backups::may_begin() && !control.closing.load(Ordering::SeqCst);
        let may_pass = is_covered || (self.lets_nobody_in() && !waits_for_backup);
        if (restartpoint_waits && may_pass) || !is_guarded {
            if is_guarded && !is_covered {
                // They would get this restartpoint, and begin with it.
                base_backups::end_base_backups_to_come();
            }
            restartpoint::open();
        }
        if is_guarded {
            restartpoint::shut();
            if has_gate() && !backup_start::is_covered() && base_backups::base_backup_is_running() {
                base_backups::end_base_backups();
            }
        }
        if !crate::pg::worker::shutdown_asked() {
            self.orphans.look();
        }
    }

    /// Whether no process has been let in for so long that each before is known.
    fn lets_nobody_in(&self) -> bool {
        self.no_sender_since
            .is_some_and(|since| since.elapsed() > LAST_LET_IN)
    }

    /// After an error: with all locks of this process it has given up the gate's, and a
    /// restartpoint that waited there continues, covered or not. No backup may begin from it.
    fn shut_again(&mut self) {
        if !self.was_shut || restartpoint::is_shut() {
            return;
        }
        self.was_shut = false;
        shared_memory::control()
            .base_backups_are_whole
            .store(false, Ordering::SeqCst);
        base_backups::end_base_backups_to_come();
        restartpoint::shut();
    }

    /// Loads the tables if no redo does it: PostgreSQL calls no resource manager after a clean
    /// shutdown, nor before a standby has a record.
    fn load_without_redo(&self) {
        let Some(step) = Worker::load_step() else {
            return;
        };
        let engine = shared_memory::engine().expect("preloaded");
        let error = match pg::catch(step) {
            Ok(Ok(())) => return,
            Ok(Err(error)) | Err(error) => error,
        };
        if crate::pg::worker::shutdown_asked() && server_is_stopping() {
            // Given up for that reason; nothing is wrong with the files.
            return;
        }
        shared_memory::control().set_failure(&error);
        engine.set_state(State::Failed);
        errors::log_message(
            PgLogLevel::LOG,
            PgSqlErrorCode::ERRCODE_DATA_CORRUPTED,
            format!("mot could not load its tables: {error}"),
            errors::hint_for_failed_load(),
        );
    }

    /// What this process has to do so that statements may run.
    fn load_step() -> Option<fn() -> Result<(), String>> {
        let control = shared_memory::control();
        // Asked to end alone it may stay for long (`must_exit`), and no other process does this:
        // the first writer would wait.
        if control.redo_began.load(Ordering::SeqCst)
            || (crate::pg::worker::shutdown_asked() && server_is_stopping())
        {
            return None;
        }
        // Read first: a recovery that ends after it is met at the next turn.
        let in_recovery = recovery_in_progress();
        if !in_recovery && !outcome_bound::is_published() {
            // It was when this turn asked, so nothing is published yet of what is kept.
            return None;
        }
        match shared_memory::engine().expect("preloaded").state() {
            // Statements run on a standby already, and it may be long until its startup process has
            // a record.
            State::Empty if in_recovery && !hot_standby_active() => None,
            State::Empty if !load::claim() => None,
            State::Empty if in_recovery => Some(load::load_standby),
            State::Empty => Some(load::load_in_worker),
            // Loaded by the step above, perhaps in a former life of this worker.
            State::Replaying if !in_recovery => Some(load::finish_standby),
            _ => None,
        }
    }

    /// Keeps the WAL that recovery would need.
    fn hold_slot(&mut self) {
        self.slot_is_new = false;
        if slot::is_held() || !slot::possible() || !may_use_slots() {
            return;
        }
        if shared_memory::control().closing.load(Ordering::SeqCst) && !slot::is_unlimited() {
            // It was let go.
            return;
        }
        if self.retry_slot_at.is_some_and(|at| Instant::now() < at) {
            return;
        }
        let covered = shared_memory::control().covered.load(Ordering::SeqCst);
        let held = if covered != 0 {
            if self.slot_delay.goes_on() {
                return;
            }
            self.slot_is_new = !slot::reaches_back_to(Lsn(covered));
            pg::catch(|| slot::hold(Lsn(covered)))
        } else if shared_memory::engine().expect("preloaded").state() == State::Failed {
            // The WAL behind the files that could not be loaded may be needed when they are
            // repaired.
            pg::catch(slot::hold_as_is).map(|is_held| {
                if !is_held {
                    self.retry_slot_at = Some(Instant::now() + files::RETRY);
                }
            })
        } else {
            return;
        };
        // Before the end of the replay, which waits for this.
        self.slot_is_counted =
            held.is_ok() && !shared_memory::control().redo_ended.load(Ordering::SeqCst);
        shared_memory::control()
            .slot_is_settled
            .store(true, Ordering::SeqCst);
        if let Err(error) = held {
            self.retry_slot_at = Some(Instant::now() + files::RETRY);
            errors::log_message(
                PgLogLevel::WARNING,
                PgSqlErrorCode::ERRCODE_INSUFFICIENT_RESOURCES,
                format!("mot could not hold its replication slot: {error}"),
                "Without the slot, recovery of memory-optimized tables relies on every checkpoint of mot being \
                 complete. It is tried again.",
            );
        }
    }
}

/// All of the commit log is needed until the reclaimer knows better. Here where there was nothing
/// to replay. The end of a replay publishes the bound itself (`load::finish_after_replay`), before
/// any process can cut the commit log off. Not while the server recovers: a standby's is cut off by
/// what it replays (`recovery::commit_log`), and what it showed would go to its primary, with its
/// feedback.
fn keep_commit_log() {
    if shared_memory::engine().expect("preloaded").state() == State::Failed {
        outcome_bound::withdraw();
    } else if !outcome_bound::is_published() && !recovery_in_progress() {
        outcome_bound::publish(files::clog_begins());
    }
}

/// Whether restartpoints have a gate.
fn has_gate() -> bool {
    recovery_in_progress() && slot::is_held()
}

/// Whether PostgreSQL has read its slots from disk: it has before redo begins, and before a standby
/// can be read.
fn may_use_slots() -> bool {
    shared_memory::control().redo_began.load(Ordering::SeqCst)
        || hot_standby_active()
        || !recovery_in_progress()
}
