//! The reclaim worker: keeps the shared horizon fresh, and removes what no writer meets again.
//!
//! - The horizon says below which transaction ids superseded versions are dead to everybody; writers prune under it
//!   themselves. It is PostgreSQL's own (`GetOldestNonRemovableTransactionId`), which on a standby includes the standby's
//!   readers.
//! - This process frees dropped tables and indexes, some in each round (and so does a replay that nobody reads beside and that needs the
//!   room: this process does not run then).
//! - Starts when the server is consistent: before that a standby does not know which transactions are running on the
//!   primary, and a running one's versions would be taken for an aborted one's.
//! - An error (the commit log cannot be read) is logged; the next round tries again.
use super::{reload_if_asked, shutdown_asked};
use crate::clock::{PgClock, fresh_horizon};
use crate::errors;
use crate::horizon::survey;
use crate::pg::{self, interrupts, report};
use crate::session;
use crate::settings;
use crate::wal::emit::WalLog;
use mot_engine::pause::{Point, reach};
use mot_engine::recovery::{self, Settled};
use mot_engine::{Log, Lsn, Session, State, Xid, transaction};
use pgrx::prelude::*;
use std::time::{Duration, Instant};

/// An idle round is as many times longer than a busy one.
const IDLE_ROUNDS: i64 = 25;
/// While an old snapshot holds the horizon back, all rows changed since wait, and are visited again and again: a tenth of a processor at
/// most. Processor time: a sweep that had to wait for one on a busy machine would be paused for as many times longer.
const OLD_PAUSE_FACTOR: u32 = 10;
/// Sweeps after the horizon has come to stand: a transaction below it leaves the ProcArray a moment before it tells the sweeper of its
/// rows. On an idle server nothing else would ever move the horizon past them.
const QUIET_SWEEPS: u32 = 2;
/// Pause after an error, in milliseconds.
const ERROR_PAUSE_MS: i64 = 5_000;

#[pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn mot_reclaimer_main(_arg: pg_sys::Datum) {
    super::begin();
    // TransactionIdIsInProgress passes over the caller's own place in the ProcArray. A process that is not in it has somebody
    // else's place, whose transaction would be taken for an aborted one.
    pg::enter_proc_array();
    let session = session::join_uncounted();
    let mut reclaimer = Reclaimer {
        has_settled: false,
        sweeps_left: 0,
        settled: Settled::default(),
        recent: Xid::NONE,
        minds_again_at: Instant::now(),
    };
    while !shutdown_asked() {
        reload_if_asked();
        let nap_ms = i64::from(settings::RECLAIM_NAPTIME_MS.get());
        let pause_ms = match pg::catch(|| reclaimer.round(session)) {
            Ok(true) => nap_ms,
            Ok(false) => nap_ms * IDLE_ROUNDS,
            Err(_) if shutdown_asked() => break,
            Err(error) => {
                session.reset();
                // SAFETY: clears what a record under construction left in this process.
                unsafe { pg_sys::XLogResetInsertion() };
                let text = format!("mot could not reclaim row versions: {error}");
                report::error_without_jump(&text, "");
                ERROR_PAUSE_MS
            }
        };
        #[cfg(debug_assertions)]
        crate::pauses::flush_if_asked(session);
        interrupts::sleep_ms(pause_ms);
    }
    // Not 0, which would mean "never start again": an administrator may have ended just this worker.
    // SAFETY: ends the process; its exit callbacks leave the engine.
    unsafe { pg_sys::proc_exit(1) };
}

struct Reclaimer {
    /// Every row was looked at once since recovery ended: nothing of lost transactions is left.
    has_settled: bool,
    /// Rounds that sweep although the horizon stands.
    sweeps_left: u32,
    /// Below this definitions may be settled while replay goes on.
    settled: Settled,
    /// Below this, what lies between old snapshots and all others was swept for.
    recent: Xid,
    /// Not before this is swept for that again.
    minds_again_at: Instant,
}

impl Reclaimer {
    /// One round; false if there was nothing to do.
    fn round(&mut self, session: &Session) -> bool {
        let engine = session.engine();
        let state = engine.state();
        if !matches!(state, State::Ready | State::Replaying) {
            return false;
        }
        // Versions superseded by a committed transaction below this are dead to everybody.
        let horizon = fresh_horizon();
        // Nothing more is dead than at the last round if the horizon stands where it stood.
        let has_moved = horizon > engine.horizon();
        engine.raise_horizon(horizon);
        let minds_old = self.mind_old_snapshots(session, horizon);
        if has_moved {
            self.sweeps_left = QUIET_SWEEPS;
        } else if self.sweeps_left > 0 {
            self.sweeps_left -= 1;
        } else if !minds_old && self.has_settled {
            // A dropped table that somebody walked until now does not wait for the horizon to move.
            let freed = free_doomed(session);
            // What was taken out last is free once nobody reads it any more.
            session.memory().collect_all(end_if_asked);
            return freed > 0;
        }
        reach(Point::ReclaimAfterHorizon);
        let time_before = processor_time();
        if state == State::Replaying {
            self.settled.raise(engine, horizon);
            recovery::settle(session, &PgClock, self.settled);
        }
        reach(Point::ReclaimBeforeDoomed);
        let freed = free_doomed(session);
        let mut kept_out = 0;
        for walk in session.tables() {
            let done = session.sweep(&PgClock, walk.table(), !self.has_settled, end_if_asked);
            kept_out += done.groups_kept_out;
        }
        if kept_out > 0 {
            // An index build or a check was in the way, maybe of every sweep since the horizon came to stand.
            self.sweeps_left = QUIET_SWEEPS;
        }
        self.has_settled = true;
        session.memory().collect_all(end_if_asked);
        if minds_old {
            let took = processor_time().saturating_sub(time_before);
            self.minds_again_at = Instant::now() + took * OLD_PAUSE_FACTOR;
        }
        has_moved || minds_old || freed > 0
    }

    /// Looks what old snapshots see, if one of them holds the horizon back, and it is time for it. False: there is nothing new to know.
    fn mind_old_snapshots(&mut self, session: &Session, horizon: Xid) -> bool {
        if Instant::now() < self.minds_again_at {
            return false;
        }
        let Some(old) = survey() else {
            return false;
        };
        let is_new = old.recent > horizon && old.recent > self.recent && !old.told.is_empty();
        if is_new {
            self.recent = old.recent;
            session.mind(old);
        }
        is_new
    }
}

/// Processor time that this process has taken.
fn processor_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes `time`. The clock is there on every system PostgreSQL runs on that has our other calls; were it not, no time would pass.
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

/// Frees dropped tables and indexes; the log is told if this server writes one. Right after recovery it may not yet: a later round frees.
fn free_doomed(session: &Session) -> usize {
    if session.engine().state() == State::Replaying {
        return transaction::free_doomed(session, end_if_asked);
    }
    // SAFETY: reads shared state, and makes this process ready to write WAL once recovery is over.
    if unsafe { pg_sys::RecoveryInProgress() } {
        return 0;
    }
    // Behind the last checkpoint nothing is logged.
    let Some(_counted) = session::Counted::begin() else {
        return 0;
    };
    match transaction::log_and_free_doomed(session, &mut WrittenSoon, end_if_asked) {
        Ok(freed) => freed,
        Err(error) => errors::raise(error),
    }
}
