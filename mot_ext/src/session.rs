//! This process's part in the engine: one `Session`, joined at first use.
//!
//! - One per process, in process-local memory, never made in the postmaster (children inherit "none").
//! - Left in an on_shmem_exit callback: those run after the before_shmem_exit ones, of which one aborts the transaction that
//!   is still open at a FATAL; our abort callback needs the session.
//! - While tables are still being loaded (after a clean start the server already takes connections) a statement waits here,
//!   interruptibly.
use crate::errors;
use crate::pg::interrupts;
use crate::settings;
use crate::shmem;
use mot_engine::{Session, State};
use pgrx::prelude::*;
use std::cell::UnsafeCell;
use std::time::{Duration, Instant};

struct Local {
    session: UnsafeCell<Option<Session>>,
    /// The engine has been seen ready: it stays so as long as this process lives.
    ready: std::cell::Cell<bool>,
}

// SAFETY: PostgreSQL's processes run its code, and ours, on one thread; helper threads make sessions of their own and never
// come here (pgrx's thread check stands before every setting that is read on the slow path).
unsafe impl Sync for Local {}

static LOCAL: Local = Local {
    session: UnsafeCell::new(None),
    ready: std::cell::Cell::new(false),
};

/// How often a waiting statement looks whether the load is done, in milliseconds.
const LOAD_POLL_MS: i64 = 20;

/// This process's session with the engine, whose tables are loaded.
///
/// Raises 55000 when the library is not preloaded, 57P03 when the load takes longer than `mot.load_timeout`, XX001 when it
/// failed.
pub fn session() -> &'static Session {
    if LOCAL.ready.get() {
        if let Some(session) = existing() {
            return session;
        }
    }
    wait_until_loaded();
    let session = join();
    LOCAL.ready.set(true);
    session
}

/// The session if this process has one already. Calls nothing, so callbacks that must not fail may use it.
pub fn existing() -> Option<&'static Session> {
    // SAFETY: one thread; the cell is only written in `join` (when it is empty) and at process exit.
    unsafe { (*LOCAL.session.get()).as_ref() }
}

/// This process's session, whatever the state of the tables: for workers and recovery.
pub fn join() -> &'static Session {
    if let Some(session) = existing() {
        return session;
    }
    let Some(engine) = shmem::engine() else {
        errors::not_preloaded()
    };
    let session = engine.join().unwrap_or_else(|error| errors::raise(error));
    // SAFETY: one thread, and nobody holds a reference into the empty cell.
    unsafe { *LOCAL.session.get() = Some(session) };
    shmem::control()
        .participants
        .fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    // SAFETY: registered once per process; the callback takes no argument.
    unsafe { pg_sys::on_shmem_exit(Some(leave), pg_sys::Datum::from(0)) };
    existing().expect("the session was just stored")
}

/// Gives up the session at process exit, after the open transaction has been aborted.
#[pg_guard]
unsafe extern "C-unwind" fn leave(_code: std::ffi::c_int, _arg: pg_sys::Datum) {
    LOCAL.ready.set(false);
    // SAFETY: the process is exiting: no frame below holds the reference any more.
    if let Some(session) = unsafe { (*LOCAL.session.get()).take() } {
        drop(session);
        shmem::control()
            .participants
            .fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
    }
}

/// Unpins what an error left pinned; called in abort callbacks and by workers after an error.
pub fn reset_after_error() {
    if let Some(session) = existing() {
        session.reset();
    }
}

fn wait_until_loaded() {
    let Some(engine) = shmem::engine() else {
        errors::not_preloaded()
    };
    let timeout_ms = settings::LOAD_TIMEOUT_MS.get();
    let start = Instant::now();
    let mut told = false;
    loop {
        match engine.state() {
            State::Ready | State::Replaying => return,
            State::Failed => errors::load_failed(&shmem::control().failure()),
            State::Empty | State::Loading => {}
        }
        if timeout_ms > 0 && start.elapsed() >= Duration::from_millis(timeout_ms as u64) {
            errors::still_loading(timeout_ms);
        }
        if !told && start.elapsed() > Duration::from_secs(1) {
            ereport!(
                PgLogLevel::LOG,
                PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
                "waiting for memory-optimized tables to be loaded"
            );
            told = true;
        }
        interrupts::sleep_ms(LOAD_POLL_MS);
        interrupts::check_for_interrupts();
    }
}
