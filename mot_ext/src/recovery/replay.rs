//! Replay in the startup process: the engine's replayer with its threads, what they wait for, and
//! how they end with the process.
//!
//! - Threads (`mot_engine/src/recovery/README.md`) start when they are first needed, and know only
//!   the engine. They end before the process does, in a callback of its exit, also at a FATAL in
//!   the middle of a record.
//! - `apply` and `drain` wait for memory if need be: visibly and interruptibly.
//! - Readers of a standby call `wait_until_applied` (`transaction/applied.rs`) once they have their
//!   snapshot.
use super::{ended, stall};
use crate::errors::{self, or_raise};
use crate::pg::local::ProcessLocal;
use crate::pg::text::show_lsn;
use crate::pg::worker::shutdown_asked;
use crate::pg::{self, interrupts};
use crate::shared_memory::server_phase::server_is_stopping;
use crate::shared_memory::{self, settings};
use crate::transaction::clock::{EndedClock, PgClock, fresh_horizon};
use crate::transaction::session;
use mot_engine::recovery::{HandOver, ParallelReplayer, Stopper, resolve_gone_indexes};
use mot_engine::transaction::free_pending;
use mot_engine::{Clock, Engine, EngineError, Lsn, Session, State, Xid};
use pgrx::prelude::*;
use std::cell::UnsafeCell;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How often a replay that waits for memory looks again, in milliseconds.
const FULL_POLL_MS: i64 = 200;
/// Most bytes of records under way in threads: while readers wait for them, and else.
const READERS_BYTES_MAX: usize = 1 << 20;
const BYTES_MAX: usize = 8 << 20;
/// With so many bytes received and not replayed, a standby has fallen behind.
const AHEAD_BYTES: u64 = 256 << 10;

/// Records of row locks that are kept without a look whether they are needed.
const LOCK_RECORDS_MIN: u64 = 1024;

/// Ends the threads at process exit.
static STOPPER: Mutex<Option<Stopper>> = Mutex::new(None);

/// The replayer of this process.
pub struct Replay {
    replayer: ParallelReplayer,
    engine: Engine,
    has_reported: bool,
    /// Records of row locks that were needed at the last check.
    lock_records: u64,
}

impl Replay {
    /// For the startup process, or the process that reads WAL in its place.
    pub fn new() -> Replay {
        let engine = shared_memory::engine().expect("preloaded");
        let threads = settings::load_threads();
        let mut replayer = ParallelReplayer::new(engine, settings::replay_threads(), threads);
        replayer.set_next_xid(|| Xid(pg::next_full_xid()));
        Replay {
            replayer,
            engine,
            has_reported: false,
            lock_records: 0,
        }
    }

    /// Applies one record or hands it over, and stops recovery if one cannot be applied. While the
    /// arena is full it waits, interruptibly: on a standby queries may end that keep versions, and
    /// everywhere the server stays as it is until an administrator has read why.
    pub fn apply(&mut self, session: &Session, data: &[u8], end: Lsn, xid: Xid) {
        let has_readers = has_readers();
        let how = HandOver {
            is_ahead: is_ahead(end),
            bytes_max: if has_readers {
                READERS_BYTES_MAX
            } else {
                BYTES_MAX
            },
            has_readers,
        };
        self.until_done(session, end, |replayer| {
            replayer.apply(session, data, end, xid, how, &mut pause)
        });
        if !self.has_reported {
            self.report_threads();
        }
        let kept = self.engine.kept_lock_records();
        if !has_readers && kept > LOCK_RECORDS_MIN + 2 * self.lock_records {
            self.lock_records = drop_ended_locks(session);
        }
        let progress = &shared_memory::control().recovery;
        progress
            .bytes_replayed
            .fetch_add(data.len() as u64, Ordering::Relaxed);
    }

    /// Waits until everything is applied.
    pub fn drain(&mut self, session: &Session) {
        let end = self.engine.replay_handed();
        self.until_done(session, end, |replayer| replayer.drain(&mut pause));
    }

    /// The commit log will know no more of transactions below `below` from the record on that ends
    /// at `at`: what they left is resolved first.
    pub fn resolve_below(&mut self, session: &Session, clock: &impl Clock, below: Xid, at: Lsn) {
        self.drain(session);
        let threads = settings::load_threads();
        match self.replayer.resolve_below(session, clock, below, threads) {
            Ok(resolved) => ereport!(
                PgLogLevel::DEBUG1,
                PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
                format!(
                    "mot judged {resolved} row versions of transactions before {}",
                    below.0
                )
            ),
            Err(error) => errors::replay_stops(&show_lsn(at), error),
        }
    }

    fn until_done(
        &mut self,
        session: &Session,
        end: Lsn,
        mut attempt: impl FnMut(&mut ParallelReplayer) -> Result<(), EngineError>,
    ) {
        let mut waiting: Option<Waiting> = None;
        let (mut has_made_room, mut has_settled) = (false, false);
        loop {
            let error = match attempt(&mut self.replayer) {
                Ok(()) => return,
                Err(error) => error,
            };
            // A thread may stand at an earlier record.
            let at = self.replayer.failed_at().unwrap_or(end);
            match error {
                EngineError::ArenaFull(_) if !has_made_room => {
                    has_made_room = true;
                    make_room(session);
                }
                EngineError::ArenaFull(full) => {
                    waiting
                        .get_or_insert_with(|| Waiting::begin(at))
                        .0
                        .report(at, full);
                    interrupts::sleep_ms(FULL_POLL_MS);
                    pause();
                    make_room(session);
                    shared_memory::control()
                        .recovery
                        .stalled_ms
                        .fetch_add(FULL_POLL_MS as u64, Ordering::Relaxed);
                }
                EngineError::TooManyIndexes { .. } if !has_settled => {
                    has_settled = true;
                    make_places(session);
                }
                error => errors::replay_stops(&show_lsn(at), error),
            }
        }
    }

    /// Once threads run: registers what ends them with the process, and reports them. Or reports
    /// why they could not start.
    fn report_threads(&mut self) {
        if let Some(error) = self.replayer.take_start_error() {
            self.has_reported = true;
            errors::log_message(
                PgLogLevel::WARNING,
                PgSqlErrorCode::ERRCODE_INSUFFICIENT_RESOURCES,
                format!("mot replays without threads, since it could not start them: {error}"),
                "Replay goes on in the startup process. Is a limit on processes or threads reached?",
            );
        }
        let Some(stopper) = self.replayer.stopper() else {
            return;
        };
        self.has_reported = true;
        *stopping() = Some(stopper);
        // SAFETY: registered once per process; the callback takes no argument.
        unsafe { pg_sys::before_shmem_exit(Some(stop_at_exit), pg_sys::Datum::from(0)) };
        ereport!(
            PgLogLevel::DEBUG1,
            PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
            format!("mot replays with {} threads", self.engine.replay_workers())
        );
    }
}

fn stopping() -> std::sync::MutexGuard<'static, Option<Stopper>> {
    STOPPER.lock().unwrap_or_else(|lock| lock.into_inner())
}

#[pg_guard]
unsafe extern "C-unwind" fn stop_at_exit(_code: std::ffi::c_int, _arg: pg_sys::Datum) {
    let stopper = stopping().take();
    if let Some(stopper) = stopper {
        stopper.stop();
    }
}

/// Between two looks: the startup process may have to end or to read its settings; the worker that
/// replays the gap after a clean start ends with the server. One that alone was asked to end
/// replays first: it would leave the tables half replayed, and the server as failed.
fn pause() {
    interrupts::handle_startup_interrupts();
    if !interrupts::is_startup_process() && shutdown_asked() && server_is_stopping() {
        errors::worker_ends();
    }
}

/// Whether more of the log than this record waits to be replayed. Crash recovery and a replay from
/// an archive read what is there; a standby that streams is behind if it has received clearly more.
fn is_ahead(end: Lsn) -> bool {
    if settings::REPLAY_HAND_OVER.get() == settings::ReplayHandOver::Always {
        return true;
    }
    // SAFETY: reads a shared position under a spinlock; never raises. Before streaming it is behind
    // `end`.
    let received =
        unsafe { pg_sys::GetWalRcvFlushRecPtr(std::ptr::null_mut(), std::ptr::null_mut()) };
    received < end.0 || received - end.0 > AHEAD_BYTES
}

/// This process waits for memory, and shows it, as long as this lives.
struct Waiting(stall::Waiting);

impl Waiting {
    fn begin(end: Lsn) -> Waiting {
        let stats = &shared_memory::control().recovery;
        stats.waits_for_memory.store(true, Ordering::Relaxed);
        Waiting(stall::Waiting::begin(end))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let stats = &shared_memory::control().recovery;
        stats.waits_for_memory.store(false, Ordering::Relaxed);
    }
}

/// Whether statements may run beside replay. The process that replays lets them in, so the answer
/// holds until it continues: the startup process by making the standby one that can be read; the
/// worker, which replays the gap of a standby that can be read already (`load_standby`), by the
/// state behind Loading. Transactions of that gap ended before the standby began, so snapshots that
/// are there see all of them.
pub fn has_readers() -> bool {
    let is_loading =
        || shared_memory::engine().is_some_and(|engine| engine.state() == State::Loading);
    // SAFETY: reads a shared flag; never raises.
    unsafe { pg_sys::HotStandbyActive() && !is_loading() }
}

/// Frees what the server that wrote the log had freed by then, and removes versions that replay
/// left: superseded ones, and those that were rolled back. As long as no session reads (crash
/// recovery, a standby before it is consistent or without hot_standby) everything superseded by a
/// transaction whose commit was replayed is dead, for later snapshots see that commit. Then the
/// reclaimer does it, under the readers' horizon.
fn make_room(session: &Session) {
    if has_readers() {
        return;
    }
    free_pending(session, interrupts::handle_startup_interrupts);
    drop_ended_locks(session);
    session.while_nobody_reads(|| {
        for walk in session.tables() {
            session.sweep(
                &DuringReplay,
                walk.table(),
                true,
                interrupts::handle_startup_interrupts,
            );
        }
    });
    session.memory().collect();
}

/// Drops row locks of transactions that have ended where replay is, while no session reads. The
/// number of records that are left.
fn drop_ended_locks(session: &Session) -> u64 {
    or_raise(session.drop_ended_locks(|xid| !DuringReplay.is_in_progress(xid)))
}

/// Has indexes go whose places the server that wrote the log could use again by then. With readers
/// PostgreSQL knows which of the log's transactions run, as far as it is replayed; before that only
/// their ends say.
fn make_places(session: &Session) {
    if has_readers() {
        fresh_horizon();
        resolve_gone_indexes(session, &PgClock);
    } else {
        resolve_gone_indexes(session, &DuringReplay);
    }
}

/// The clock while replay runs and no session reads: a transaction has ended if the log says so, up
/// to where replay is. All others may yet commit, whatever the commit log says of them (`ended`).
struct DuringReplay;

impl Clock for DuringReplay {
    fn is_current(&self, _xid: Xid) -> bool {
        false
    }

    fn is_in_progress(&self, xid: Xid) -> bool {
        !self.did_commit(xid) && !ended::was_rolled_back(xid)
    }

    fn did_commit(&self, xid: Xid) -> bool {
        ended::did_commit(xid)
    }
}

static REPLAYER: ProcessLocal<UnsafeCell<Option<Replay>>> = ProcessLocal(UnsafeCell::new(None));

/// The replay of this process.
pub(super) fn replayer() -> &'static mut Replay {
    // SAFETY: the startup process's one thread; no caller keeps the reference across a callback of
    // PostgreSQL.
    unsafe { (*REPLAYER.0.get()).get_or_insert_with(Replay::new) }
}

/// Resolves what transactions below `below` left; they have ended where the log is, before the
/// record that ends at `at`.
pub(super) fn resolve_below(below: Xid, at: Lsn) {
    replayer().resolve_below(session::join_uncounted(), &EndedClock, below, at);
    ended::forget_below(below);
}

/// Replay is over. With the replayer its threads end.
pub(super) fn end() {
    // SAFETY: as for `replayer`.
    unsafe { *REPLAYER.0.get() = None };
}

/// Adds up how long replay was at work: pauses in which no record came are not counted.
pub struct Stopwatch {
    last: Option<Instant>,
}

impl Stopwatch {
    /// A longer time without a record is a pause.
    const PAUSE: Duration = Duration::from_millis(100);

    pub const fn new() -> Stopwatch {
        Stopwatch { last: None }
    }

    /// A record that came at `began` is done.
    pub fn record_done(&mut self, began: Instant) {
        let now = Instant::now();
        let from = self
            .last
            .filter(|last| began.duration_since(*last) < Self::PAUSE)
            .unwrap_or(began);
        self.last = Some(now);
        let worked = now.duration_since(from).as_micros() as u64;
        let total = &shared_memory::control().recovery.replay_us;
        total.fetch_add(worked, Ordering::Relaxed);
    }
}

/// Says in the server log what was replayed.
pub fn report(engine: Engine) {
    let stats = &shared_memory::control().recovery;
    let changes = engine.progress().changes_replayed.load(Ordering::Relaxed);
    if changes == 0 {
        return;
    }
    ereport!(
        PgLogLevel::LOG,
        PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
        format!(
            "mot replay complete: {} row changes in {} records, {} bytes; {} threads; at work for {:.3} s",
            changes,
            stats.records_replayed.load(Ordering::Relaxed),
            stats.bytes_replayed.load(Ordering::Relaxed),
            engine.replay_workers(),
            stats.replay_us.load(Ordering::Relaxed) as f64 / 1e6,
        )
    );
}
