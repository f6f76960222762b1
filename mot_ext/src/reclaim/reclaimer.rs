//! The reclaimer: keeps the shared horizon fresh, and removes what no writer meets again.
//!
//! - The horizon says below which transaction ids superseded versions are dead to every snapshot;
//!   writers prune under it themselves. It is PostgreSQL's own
//!   (`transaction::clock::fresh_horizon`), which on a standby includes the standby's readers.
//! - This process frees dropped tables and indexes, some in each round (and so does a replay that
//!   no session reads beside and that needs the room: this process does not run then).
//! - Starts when the server is consistent: before that a standby does not know which transactions
//!   are running on the primary, and a running one's versions would be taken for an aborted one's.
//! - An error (the commit log cannot be read) is logged; the next round tries again.
use super::idle_sleep;
use crate::checkpoint::files;
use crate::errors::{self, or_raise};
use crate::pg::worker::{reload_if_asked, shutdown_asked};
use crate::pg::{self, interrupts, report};
use crate::shared_memory::settings;
use crate::transaction::clock::{PgClock, fresh_horizon, oldest_active};
use crate::transaction::horizon::{outcome_bound, survey, sweep_requests};
use crate::transaction::session;
use crate::transaction::wal_log::WalLog;
use mot_engine::pause::{Point, reach};
use mot_engine::recovery::{self, AppliedHorizon};
use mot_engine::{Clock, Log, Lsn, Session, State, Xid, transaction};
use pgrx::prelude::*;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// The pause after an idle round is as many times longer than that after a busy one.
const IDLE_PAUSE_FACTOR: i64 = 25;
/// While an old snapshot holds the horizon back, all rows changed since wait, and are visited again
/// and again: a tenth of a processor at most. Processor time: a sweep that had to wait for one on a
/// busy machine would be paused for as many times longer.
const OLD_PAUSE_FACTOR: u32 = 10;
/// The same of sweeps for the commit log's sake alone, while the horizon is older than the commit
/// log's bound (`outcome_bound`): something else holds it back, or `vacuum_defer_cleanup_age` (15)
/// does and it would never move.
const RESOLVE_PAUSE_FACTOR: u32 = 100;
/// Sweeps after the horizon has stopped: a transaction below it leaves the ProcArray a moment
/// before it passes its rows to this process. On an idle server nothing else would ever move the
/// horizon past them. (The first of them takes the horizon to where it stops.)
const QUIET_SWEEPS: u32 = 2;
/// While a large table is freed the horizon is taken no more often than this: a question to all of
/// the ProcArray, where a stretch takes less than a millisecond.
const HORIZON_EVERY: Duration = Duration::from_millis(50);
/// Longest sleep in which no session wakes this process, in milliseconds: one may wait for a
/// sweep.
const LOOK_MS: i64 = 500;
/// Pause after an error, in milliseconds.
const ERROR_PAUSE_MS: i64 = 5_000;

#[pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn mot_reclaimer_main(_arg: pg_sys::Datum) {
    crate::pg::worker::begin();
    // TransactionIdIsInProgress passes over the caller's own place in the ProcArray. A process that
    // is not in it has another process's place, whose transaction is taken for an aborted one.
    pg::enter_proc_array();
    let session = session::join_uncounted();
    // SAFETY: registered once; runs before the process leaves the ProcArray (callbacks run last in,
    // first out).
    unsafe { pg_sys::before_shmem_exit(Some(on_exit), pg_sys::Datum::from(0)) };
    outcome_bound::begin_to_show(outcome_bound::Worker::Reclaimer);
    let mut reclaimer = Reclaimer {
        has_settled: false,
        sweeps_left: 0,
        applied: AppliedHorizon::default(),
        swept_below: Xid::NONE,
        next_resolve_at: Instant::now(),
        has_reported: false,
        recent: Xid::NONE,
        next_old_check_at: Instant::now(),
        seen: (Xid::NONE, None),
        can_be_woken: false,
    };
    while !shutdown_asked() {
        reload_if_asked();
        let nap_ms = i64::from(settings::RECLAIM_NAPTIME_MS.get());
        let long_ms = nap_ms * IDLE_PAUSE_FACTOR;
        let (pause_ms, may_be_woken) = match pg::catch(|| reclaimer.round(session)) {
            Ok(true) => (nap_ms, false),
            Ok(false) => (long_ms, reclaimer.can_be_woken),
            Err(_) if shutdown_asked() => break,
            Err(error) => {
                session.reset();
                if let Some(number) = sweep_requests::newest() {
                    sweep_requests::answer(number);
                }
                // SAFETY: clears what a record under construction left in this process.
                unsafe { pg_sys::XLogResetInsertion() };
                let text = format!("mot could not reclaim row versions: {error}");
                report::error_without_jump(&text, "");
                (ERROR_PAUSE_MS, false)
            }
        };
        #[cfg(debug_assertions)]
        crate::transaction::pauses::flush_if_asked(session);
        if may_be_woken {
            let has_news = || pg::catch(|| reclaimer.has_news(session)).unwrap_or(false);
            idle_sleep::sleep(nap_ms, pause_ms, has_news);
        } else {
            sleep_unless_asked(pause_ms);
        }
    }
    // Not 0, which would mean "never start again": an administrator may have ended just this
    // worker. SAFETY: ends the process; its exit callbacks leave the engine.
    unsafe { pg_sys::proc_exit(1) };
}

/// Sleeps so long, or until a session waits for a sweep.
fn sleep_unless_asked(pause_ms: i64) {
    let mut left_ms = pause_ms;
    while left_ms > 0 && sweep_requests::newest().is_none() && !shutdown_asked() {
        let now_ms = left_ms.min(LOOK_MS);
        interrupts::sleep_ms(now_ms);
        left_ms -= now_ms;
    }
}

struct Reclaimer {
    /// Every row was visited once since recovery ended: nothing of lost transactions is left.
    has_settled: bool,
    /// Rounds that sweep although the horizon has not moved.
    sweeps_left: u32,
    /// Below this definitions may be resolved while replay continues.
    applied: AppliedHorizon,
    /// The horizon when the last sweep began.
    swept_below: Xid,
    /// No sweep for the bound alone before this.
    next_resolve_at: Instant,
    /// Rows whose transactions' outcomes are lost were met, and reported.
    has_reported: bool,
    /// Below this, what is between old snapshots and all others was swept for.
    recent: Xid,
    /// No sweep for that again before this.
    next_old_check_at: Instant,
    /// The horizon of the last round, and the bound below which it could resolve rows.
    seen: (Xid, Option<Xid>),
    /// Nothing but the commit log's bound held the horizon back at the last round: what sessions
    /// leave behind can be taken out soon.
    can_be_woken: bool,
}

impl Reclaimer {
    /// Sweeps every table. Returns how many groups of rows an index build or a check kept it out
    /// of.
    fn sweep(&mut self, session: &Session) -> u64 {
        let mut kept_out = 0;
        let clock = SweepClock::new();
        for walk in session.tables() {
            let done = session.sweep(&clock, walk.table(), !self.has_settled, end_if_asked);
            kept_out += done.groups_kept_out;
        }
        if kept_out > 0 {
            // A session was in the way, maybe of every sweep since the horizon stopped.
            self.sweeps_left = QUIET_SWEEPS;
        }
        if let Some(xid) = clock.lost.get()
            && !self.has_reported
        {
            errors::report_lost_outcome(xid.0);
            self.has_reported = true;
        }
        self.has_settled = true;
        kept_out
    }

    /// One round; false if there was nothing to do.
    fn round(&mut self, session: &Session) -> bool {
        let state = session.engine().state();
        self.can_be_woken = false;
        // Before anything is read that a sweep depends on.
        let asked = sweep_requests::newest();
        if !matches!(state, State::Ready | State::Replaying) {
            asked.into_iter().for_each(sweep_requests::answer);
            return false;
        }
        let found = self.look(session);
        if !self.takes_a_sweep(&found, asked) {
            return free_without_sweep(session);
        }
        reach(Point::ReclaimAfterHorizon);
        let time_before = processor_time();
        if state == State::Replaying {
            self.resolve_beside_replay(session, found.horizon);
        }
        reach(Point::ReclaimBeforeFree);
        let freed = free_pending(session);
        let kept_out = self.sweep(session);
        self.swept_below = found.sweeps_below;
        if kept_out == 0 {
            raise_outcome_bound(session, found.resolvable_below);
        }
        asked.into_iter().for_each(sweep_requests::answer);
        session.memory().collect_all(end_if_asked);
        self.postpone_next(
            processor_time().saturating_sub(time_before),
            found.has_old_work,
        );
        // While a session is in the way the bound stays, however often this is tried.
        let has_raised = found.raises_bound && kept_out == 0;
        found.has_moved || found.has_old_work || has_raised || freed > 0
    }

    /// Raises the shared horizon, resolves what prepared transactions have left, and finds what
    /// there is to sweep for.
    fn look(&mut self, session: &Session) -> Work {
        let engine = session.engine();
        // Versions superseded by a committed transaction below this are dead to every snapshot.
        let horizon = fresh_horizon();
        // Nothing more is dead than at the last round if the horizon has not moved.
        let has_moved = horizon > self.swept_below;
        engine.raise_horizon(horizon);
        let sweeps_below = engine.horizon();
        self.can_be_woken = horizon >= outcome_bound::published();
        let has_old_work = self.survey_old_snapshots(session, horizon);
        let resolvable_below = resolved_after_sweep(session);
        // What had ended by then is resolved before the bound is raised.
        resolve_prepared(session);
        self.seen = (horizon, resolvable_below);
        // The commit log's bound is what holds the horizon back. If something else does, a new
        // bound would change little.
        let holds_back =
            horizon >= outcome_bound::published() || Instant::now() >= self.next_resolve_at;
        Work {
            horizon,
            sweeps_below,
            resolvable_below,
            has_moved,
            has_old_work,
            raises_bound: holds_back
                && resolvable_below.is_some_and(|below| below > outcome_bound::published()),
        }
    }

    /// Whether this round sweeps. Counts the sweeps that follow the horizon's last move.
    fn takes_a_sweep(&mut self, found: &Work, asked: Option<u64>) -> bool {
        if found.has_moved {
            self.sweeps_left = QUIET_SWEEPS;
            return true;
        }
        if self.sweeps_left > 0 {
            self.sweeps_left -= 1;
            return true;
        }
        found.has_old_work || found.raises_bound || !self.has_settled || asked.is_some()
    }

    /// Resolves definitions whose transactions have ended in the log that is replayed, and drops
    /// row locks of such transactions.
    fn resolve_beside_replay(&mut self, session: &Session, horizon: Xid) {
        self.applied.raise(session.engine(), horizon);
        recovery::resolve_definitions(session, &PgClock, self.applied);
        let below = self.applied.below();
        or_raise(session.drop_ended_locks(|xid| xid < below));
    }

    /// Sets when a sweep may come again for old snapshots, or for the bound alone, after one that
    /// took so much processor time.
    fn postpone_next(&mut self, took: Duration, had_old_work: bool) {
        let now = Instant::now();
        if had_old_work {
            self.next_old_check_at = now + took * OLD_PAUSE_FACTOR;
        }
        self.next_resolve_at = now + took * RESOLVE_PAUSE_FACTOR;
    }

    /// Whether transactions have ended since the last round looked.
    fn has_news(&self, session: &Session) -> bool {
        let (horizon, resolvable_below) = self.seen;
        fresh_horizon() > horizon || resolved_after_sweep(session) > resolvable_below
    }

    /// Reads what old snapshots see, if one of them holds the horizon back and it is time for it,
    /// and tells it to the session for its next sweep. False: there is nothing new to know.
    fn survey_old_snapshots(&mut self, session: &Session, horizon: Xid) -> bool {
        // The commit log's bound comes a sweep behind, and holds the horizon back where nothing
        // else does.
        if horizon >= outcome_bound::published() || Instant::now() < self.next_old_check_at {
            return false;
        }
        let Some(old) = survey() else {
            return false;
        };
        let is_new = old.recent > horizon && old.recent > self.recent && !old.snapshots.is_empty();
        if is_new {
            self.recent = old.recent;
            session.set_old_snapshots(old);
        }
        is_new
    }
}

/// What a round finds before it sweeps.
struct Work {
    /// Superseded versions below are dead to every snapshot.
    horizon: Xid,
    /// The shared horizon, below which the sweep removes.
    sweeps_below: Xid,
    /// Below which no outcome has to be asked for after the sweep.
    resolvable_below: Option<Xid>,
    /// The horizon is past that of the last sweep.
    has_moved: bool,
    /// Old snapshots are known of which the last sweep did not know.
    has_old_work: bool,
    /// The commit log's bound can rise, and it is time for that.
    raises_bound: bool,
}

/// The clock of sweeps: a transaction that the commit log knows no more counts as running, so that
/// one row whose outcome is lost does not keep all others from it.
struct SweepClock {
    known_from: Xid,
    /// The oldest such transaction met.
    lost: Cell<Option<Xid>>,
}

impl SweepClock {
    fn new() -> Self {
        SweepClock {
            known_from: files::clog_begins(),
            lost: Cell::new(None),
        }
    }
}

impl Clock for SweepClock {
    fn is_current(&self, xid: Xid) -> bool {
        PgClock.is_current(xid)
    }

    fn is_in_progress(&self, xid: Xid) -> bool {
        let is_lost = xid < self.known_from;
        if is_lost {
            let oldest = self.lost.get().map_or(xid, |lost| lost.min(xid));
            self.lost.set(Some(oldest));
        }
        is_lost || PgClock.is_in_progress(xid)
    }

    fn did_commit(&self, xid: Xid) -> bool {
        PgClock.did_commit(xid)
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn on_exit(_code: std::ffi::c_int, _arg: pg_sys::Datum) {
    outcome_bound::end_to_show(outcome_bound::Worker::Reclaimer);
}

/// Resolves definitions of prepared transactions that have ended, and drops the records of their
/// row locks. PostgreSQL has brought all of them back when its recovery is over.
fn resolve_prepared(session: &Session) {
    // SAFETY: reads shared state; never raises.
    if session.engine().state() != State::Ready || unsafe { pg_sys::RecoveryInProgress() } {
        return;
    }
    session.resolve_given_up(&SweepClock::new());
    or_raise(session.drop_ended_locks(|xid| !PgClock.is_in_progress(xid)));
}

/// The bound that a sweep beginning now may give to the commit log: no outcome below it has to be
/// asked for any more. `None` in recovery, and before the engine is ready. The order of the three
/// questions matters: mot_engine/src/reclaim/unresolved.rs.
fn resolved_after_sweep(session: &Session) -> Option<Xid> {
    // SAFETY: reads shared state; never raises.
    if session.engine().state() != State::Ready || unsafe { pg_sys::RecoveryInProgress() } {
        return None;
    }
    let active = oldest_active();
    let marked = session.engine().oldest_unresolved();
    Some(marked.map_or(active, |marked| marked.min(active)))
}

/// Raises the commit log's bound after a sweep that nothing was kept from, and the horizon, which
/// it held back to where the sweep before began. Writers prune below that.
fn raise_outcome_bound(session: &Session, resolved_below: Option<Xid>) {
    if let Some(below) = resolved_below {
        outcome_bound::publish(below);
        session.engine().raise_horizon(fresh_horizon());
    }
}

/// Processor time that this process has taken.
fn processor_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes `time`. The clock is there on every system PostgreSQL runs on that has our
    // other calls; were it not, no time would pass.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn end_if_asked() {
    if shutdown_asked() {
        errors::worker_ends();
    }
}

/// The server's WAL, for records that no commit follows: standbys shall not wait for one.
struct WrittenSoon;

impl Log for WrittenSoon {
    fn append(&mut self, record: &[u8]) -> Lsn {
        let end = WalLog::default().append(record);
        // SAFETY: asks the WAL writer; never raises.
        unsafe { pg_sys::XLogSetAsyncXactLSN(end.0) };
        end
    }
}

/// The end of a round that does not sweep; false if there was nothing to do.
fn free_without_sweep(session: &Session) -> bool {
    // A dropped table a session walked until now does not wait for the horizon to move.
    let freed = free_pending(session);
    // What was taken out last is free once no session reads it any more.
    session.memory().collect_all(end_if_asked);
    freed > 0
}

/// Frees dropped tables and indexes; with a log record if this server writes a log. Right after
/// recovery it may not yet: a later round frees.
fn free_pending(session: &Session) -> usize {
    // A large table takes its time, in which a shutdown is not to wait, nor what others may prune.
    let mut taken_at = Instant::now();
    let between_stretches = || {
        end_if_asked();
        if taken_at.elapsed() >= HORIZON_EVERY {
            session.engine().raise_horizon(fresh_horizon());
            taken_at = Instant::now();
        }
    };
    if session.engine().state() == State::Replaying {
        return transaction::free_pending(session, between_stretches);
    }
    // SAFETY: reads shared state, and makes this process ready to write WAL once recovery is over.
    if unsafe { pg_sys::RecoveryInProgress() } {
        return 0;
    }
    // Behind the last checkpoint nothing is logged.
    let Some(_counted) = session::Counted::begin() else {
        return 0;
    };
    match transaction::log_and_free_pending(session, &mut WrittenSoon, between_stretches) {
        Ok(freed) => freed,
        Err(error) => errors::raise(error),
    }
}
