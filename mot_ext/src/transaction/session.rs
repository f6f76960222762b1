//! This process's access to the engine: one `Session`, joined at first use.
//!
//! - One per process, in process-local memory, never made in the postmaster (children inherit
//!   "none").
//! - It leaves in an on_shmem_exit callback. Those run after the before_shmem_exit callbacks, of
//!   which one aborts the transaction that is still open at a FATAL. Our abort callback needs the
//!   session.
//! - It is counted among the participants that the last checkpoint waits for, from before it joins
//!   until it has left. A WAL sender lives on until PostgreSQL's own last checkpoint, which comes
//!   after ours. So it is counted only while its transaction has written (`join_to_write`), and may
//!   read at any time.
//! - While tables are loaded after a clean start, the server already takes connections. A statement
//!   waits here, interruptibly.
use crate::errors;
use crate::pg::local::ProcessLocal;
use crate::pg::{self, interrupts};
use crate::shared_memory::{self, settings};
use mot_engine::engine::ConflictCounters;
use mot_engine::{Engine, EngineError, Session, State};
use pgrx::prelude::*;
use std::cell::{Cell, UnsafeCell};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

struct SessionState {
    session: UnsafeCell<Option<Session>>,
    /// The engine has been seen ready: it stays so as long as this process lives.
    ready: Cell<bool>,
    /// This process is among the participants that the last checkpoint waits for.
    counted: Cell<bool>,
    /// `leave` will be called at process exit, for a client's session.
    leaves: Cell<bool>,
}

static STATE: ProcessLocal<SessionState> = ProcessLocal(SessionState {
    session: UnsafeCell::new(None),
    ready: Cell::new(false),
    counted: Cell::new(false),
    leaves: Cell::new(false),
});

/// How the tables are loaded where there are no workers: a function of `recovery`, which is above
/// this room.
static LOAD_SINGLE_USER: OnceLock<fn() -> Result<(), String>> = OnceLock::new();

/// Names the function that loads the tables at the first statement in single-user mode. Called
/// once, by `_PG_init`.
pub fn load_in_single_user_mode_by(load: fn() -> Result<(), String>) {
    LOAD_SINGLE_USER.get_or_init(|| load);
}

/// How often a waiting statement looks whether the load is done, in milliseconds.
const LOAD_POLL_MS: i64 = 20;

/// This process's session with the engine, whose tables are loaded.
///
/// Raises 55000 when the library is not preloaded, 57P03 when the load takes longer than
/// `mot.load_timeout`, XX001 when it failed.
pub fn session() -> &'static Session {
    if STATE.ready.get()
        && let Some(session) = existing()
    {
        return session;
    }
    wait_until_loaded();
    let session = join();
    STATE.ready.set(true);
    session
}

/// Whether the tables could not be loaded, so that every use of them is refused.
pub fn is_refused() -> bool {
    shared_memory::engine().is_some_and(|engine| engine.state() == State::Failed)
}

/// The session if this process has one already. Calls nothing, so callbacks that must not fail may
/// use it.
pub fn existing() -> Option<&'static Session> {
    // SAFETY: one thread; the cell is only written in `join` (when it is empty) and at process
    // exit.
    unsafe { (*STATE.session.get()).as_ref() }
}

/// This backend's session, whatever the state of the tables; counted among those the last
/// checkpoint waits for, unless it is a WAL sender's.
pub fn join() -> &'static Session {
    if let Some(session) = existing() {
        return session;
    }
    if shared_memory::engine().is_none() {
        errors::not_preloaded();
    }
    if !STATE.leaves.replace(true) {
        // SAFETY: registered once per process; the callback takes no argument.
        unsafe { pg_sys::on_shmem_exit(Some(leave), pg_sys::Datum::from(0)) };
    }
    if !is_wal_sender() {
        count();
    }
    if is_closing() {
        errors::closing();
    }
    store(Engine::join_for_client)
}

/// The session, before the first write of a transaction. A WAL sender is counted from here on; it
/// is ended if the last checkpoint is about to be written, or is.
pub fn join_to_write() -> &'static Session {
    let session = join();
    if is_wal_sender() && count() && is_closing() {
        errors::closing();
    }
    session
}

/// A transaction that has written is over: everything of it is logged, and its rows have their
/// hints. Calls nothing.
pub fn end_write() {
    if is_wal_sender() {
        uncount();
    }
}

/// Whether this process is a WAL sender: a connection with `replication=database` runs SQL, too. A
/// fast shutdown ends it only when our workers are gone.
fn is_wal_sender() -> bool {
    // SAFETY: a plain variable of this process, set before it runs anything of ours.
    unsafe { pg_sys::am_walsender }
}

/// Counts this process among those the last checkpoint waits for; false if it was counted already.
fn count() -> bool {
    let is_new = !STATE.counted.replace(true);
    if is_new {
        shared_memory::control()
            .participants
            .fetch_add(1, Ordering::SeqCst);
    }
    is_new
}

fn uncount() {
    if STATE.counted.replace(false) {
        shared_memory::control()
            .participants
            .fetch_sub(1, Ordering::SeqCst);
    }
}

/// After counting: the last checkpoint is written once it has set the flag and then seen the count
/// at 0.
fn is_closing() -> bool {
    shared_memory::control().closing.load(Ordering::SeqCst)
}

/// A process whose session is not counted is, as long as this lives, or until the process exits.
pub struct Counted(());

impl Counted {
    /// None if the last checkpoint is about to be written: nothing may be logged any more.
    pub fn begin() -> Option<Counted> {
        let is_new = count();
        debug_assert!(is_new, "for sessions of `join_uncounted`");
        let counted = Counted(());
        (!is_closing()).then_some(counted)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        uncount();
    }
}

/// The session of a worker or of the startup process: the last checkpoint does not wait for it.
pub fn join_uncounted() -> &'static Session {
    if let Some(session) = existing() {
        return session;
    }
    let session = store(Engine::join);
    // SAFETY: registered once per process; the callback takes no argument.
    unsafe { pg_sys::on_shmem_exit(Some(leave), pg_sys::Datum::from(0)) };
    session
}

fn store(join: impl FnOnce(Engine) -> Result<Session, EngineError>) -> &'static Session {
    let engine = shared_memory::engine().expect("preloaded");
    let session = join(engine).unwrap_or_else(|error| errors::raise(error));
    session.limit_temporary_by(settings::temp_memory_bytes);
    #[cfg(debug_assertions)]
    crate::transaction::pauses::init();
    // SAFETY: one thread, and no code holds a reference into the empty cell.
    unsafe { (*STATE.session.get()).insert(session) }
}

/// Gives up the session at process exit, after the open transaction has been aborted.
#[pg_guard]
unsafe extern "C-unwind" fn leave(_code: std::ffi::c_int, _arg: pg_sys::Datum) {
    STATE.ready.set(false);
    #[cfg(debug_assertions)]
    crate::transaction::pauses::leave();
    // SAFETY: the process is exiting: no frame below holds the reference any more.
    drop(unsafe { (*STATE.session.get()).take() });
    uncount();
}

/// Unpins what an error left pinned; called in abort callbacks and by workers after an error.
pub fn reset_after_error() {
    if let Some(session) = existing() {
        session.reset();
    }
}

fn wait_until_loaded() {
    let Some(engine) = shared_memory::engine() else {
        errors::not_preloaded()
    };
    if !pg::is_under_postmaster()
        && engine.state() == State::Empty
        && let Some(load) = LOAD_SINGLE_USER.get()
        && let Err(error) = load()
    {
        shared_memory::control().set_failure(&error);
        engine.set_state(State::Failed);
    }
    let timeout_ms = settings::LOAD_TIMEOUT_MS.get();
    let start = Instant::now();
    let mut is_logged = false;
    loop {
        match engine.state() {
            State::Ready | State::Replaying => return,
            State::Failed => errors::load_failed(&shared_memory::control().failure()),
            State::Empty | State::Loading => {}
        }
        if timeout_ms > 0 && start.elapsed() >= Duration::from_millis(timeout_ms as u64) {
            errors::still_loading(timeout_ms);
        }
        if !is_logged && start.elapsed() > Duration::from_secs(1) {
            errors::log_message(
                PgLogLevel::LOG,
                PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
                "waiting for memory-optimized tables to be loaded".into(),
                "The view mot.stat_recovery shows how far the load is. If it does not begin: is \
                 max_worker_processes large enough for the workers of mot?",
            );
            is_logged = true;
        }
        interrupts::sleep_ms(LOAD_POLL_MS);
        interrupts::check_for_interrupts();
    }
}

/// Counts a conflict with another transaction.
pub fn count_conflict(which: impl Fn(&ConflictCounters) -> &AtomicU64) {
    let counters = &session().engine().transactions().conflicts;
    which(counters).fetch_add(1, Ordering::Relaxed);
}
