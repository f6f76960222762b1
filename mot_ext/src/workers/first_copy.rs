//! Base backups of a standby wait until one can be whole.
//!
//! A base backup begins at PostgreSQL's redo position R and brings the WAL from there on. While the standby can be read our checkpoint is never behind R
//! (`restartpoint`). When it has just begun it may be: R moved while nobody could read (`hot_standby = off`, a restartpoint during the start), or the
//! server was a primary that was lost right after a recovery. The slot keeps the WAL between the two, and a backup has neither. Restoring it would fail,
//! perhaps months later. So whoever may take one waits until the worker says that its checkpoint covers R and that it holds restartpoints:
//!
//! - a WAL sender at the end of its authentication: PostgreSQL lets nobody in between its command BASE_BACKUP and the first file. So a cascaded standby
//!   waits, too; both are told to come again (57P03) rather than run into `authentication_timeout`;
//! - a session that calls `pg_backup_start` (`copies`): as long as it likes to.
//!
//! The worker says so anew at each turn: not while its checkpoints fail (a full disk; a restartpoint goes on then, see `restartpoint`), nor from its
//! end, whatever ended it, to the first good turn of the next one. One window is left: a checkpoint of ours that fails in the restartpoint that
//! a backup begins with, after it was let in.
//!
//! Nobody waits on a primary, after a promotion, or on a server on which the worker never began (no room among `max_worker_processes`). Where the tables
//! could not be loaded it is not worth waiting: the failure is raised.
use crate::errors;
use crate::pg::interrupts;
use crate::shmem;
use mot_engine::State;
use pgrx::pg_sys;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use std::cell::Cell;
use std::ffi::c_int;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long a WAL sender waits: half of what PostgreSQL gives an authentication by default, and no more than half of what it is given here.
const PATIENCE: Duration = Duration::from_secs(30);
const POLL_MS: i64 = 20;

type AuthenticationHook = Option<unsafe extern "C-unwind" fn(*mut pg_sys::Port, c_int)>;

#[allow(ffi_unwind_calls)]
unsafe extern "C-unwind" {
    static mut ClientAuthentication_hook: AuthenticationHook;
}

struct Previous(Cell<AuthenticationHook>);
// SAFETY: written once in the postmaster while it loads libraries; each process runs PostgreSQL's code on one thread.
unsafe impl Sync for Previous {}
static PREVIOUS: Previous = Previous(Cell::new(None));

/// Installs the hook; called once, while the server preloads libraries.
pub fn init() {
    // SAFETY: single-threaded at load time.
    unsafe {
        PREVIOUS.0.set(ClientAuthentication_hook);
        ClientAuthentication_hook = Some(authenticated);
    }
}

/// A plain frame: the previous hook's errors travel as without this library.
#[allow(ffi_unwind_calls)]
unsafe extern "C-unwind" fn authenticated(port: *mut pg_sys::Port, status: c_int) {
    const STATUS_OK: c_int = 0;
    // SAFETY: the arguments are PostgreSQL's own; nothing to drop is in this frame.
    unsafe {
        if let Some(previous) = PREVIOUS.0.get() {
            previous(port, status);
        }
        if status == STATUS_OK && pg_sys::am_walsender && !pg_sys::am_db_walsender {
            wait_as_sender();
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn wait_as_sender() {
    // SAFETY: a plain setting, in seconds.
    let given = Duration::from_secs(unsafe { pg_sys::AuthenticationTimeout }.max(0) as u64);
    let patience = PATIENCE.min(given / 2);
    let start = Instant::now();
    while !may_begin() {
        if start.elapsed() > patience {
            come_again();
        }
        interrupts::sleep_ms(POLL_MS);
        interrupts::check_for_interrupts();
    }
}

/// Ends a WAL sender whose standby takes longer for its checkpoint than a client may be kept waiting.
fn come_again() -> ! {
    ErrorReport::new(
        PgSqlErrorCode::ERRCODE_CANNOT_CONNECT_NOW,
        "this standby's checkpoint of memory-optimized tables is behind PostgreSQL's",
        pgrx::function_name!(),
    )
    .set_detail("Until the next one is complete a base backup of it would lack WAL; cascaded standbys wait, too. The first one after a start may take long.")
    .set_hint("Try again when mot.stat_progress_checkpoint is empty; if its checkpoints fail, the server log says why. mot.checkpoint_bandwidth, if set, makes it slow: ending the worker (mot.stat_checkpoint.worker_pid) lets it finish at full speed.")
    .report(PgLogLevel::FATAL);
    unreachable!("a report of level FATAL ends the process")
}

/// In a session that is about to call `pg_backup_start`. Interruptible.
pub fn wait_as_session() {
    while !may_begin() {
        interrupts::sleep_ms(POLL_MS);
        interrupts::check_for_interrupts();
    }
}

/// Raises why the tables could not be loaded: there will be no checkpoint then.
fn may_begin() -> bool {
    let Some(engine) = shmem::engine() else {
        return true;
    };
    let control = shmem::control();
    if control.copies_are_whole.load(Ordering::SeqCst)
        // SAFETY: reads shared state; never raises.
        || !unsafe { pg_sys::RecoveryInProgress() }
    {
        return true;
    }
    if engine.state() == State::Failed {
        errors::load_failed(&control.failure());
    }
    control.checkpoint.worker_pid.load(Ordering::Relaxed) == 0
}
