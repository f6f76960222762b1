//! Base backups wait until one can be whole.
//!
//! A base backup begins at PostgreSQL's redo position R and brings the WAL from there on. While the
//! standby can be read our checkpoint is never behind R (`restartpoint`). When it has just begun it
//! may be: R moved while no session could read (`hot_standby = off`, a restartpoint during the
//! start), or the server was a primary that was lost right after a recovery. The slot keeps the WAL
//! between the two, and a backup has neither. Restoring it would fail, perhaps months later. So a
//! process that may take one waits until the worker says that its checkpoint covers R and that it
//! holds restartpoints:
//!
//! - a WAL sender at the end of its authentication: PostgreSQL calls no extension between its
//!   command BASE_BACKUP and the first file. So a cascaded standby waits, too, and a logical
//!   subscriber, whose connection may say BASE_BACKUP as well; all are asked to try again (57P03)
//!   rather than run into `authentication_timeout`;
//! - a session that calls `pg_backup_start` (`copies`): as long as it likes to.
//!
//! The worker says so anew at each turn: not while its checkpoints fail (a full disk; a
//! restartpoint continues then, see `restartpoint`), nor from its end, whatever ended it, to the
//! first good turn of the next one. A restartpoint whose checkpoint of ours fails does not continue
//! while a process that was let in before has asked for a backup. When it does continue, WAL
//! senders that were let in and do not stream yet are ended, and a process that slipped through and
//! begins a backup from it all the same is, too; so are they if an error has opened the gate
//! (`restartpoint`).
//!
//! A primary's checkpoint waits for ours at the gate, but not for ever if ours fails: the slot
//! keeps the WAL. While a process may be about to begin a backup (`base_backups::may_begin`) it
//! does wait, and the backup with it, cancellable: for the disk to have room again, for instance.
//! That is for the worker to do, so:
//!
//! - while the worker does not stand at the gate, WAL senders and `pg_backup_start` wait for it, as
//!   above;
//! - a worker that is asked to end stays while a process may be about to begin a backup
//!   (`shutdown::must_exit`);
//! - whatever else makes it leave, or keeps it from writing a checkpoint at all (the tables could
//!   not be loaded, the server shuts down), WAL senders with a base backup are ended; streaming
//!   ones are not. A worker that begins looks whether one has slipped through;
//! - a session gets an error when the transaction with its `pg_backup_start` commits.
//!
//! No process waits on a server on which the worker never began (no room among
//! `max_worker_processes`). Where the tables could not be loaded it is not worth waiting: the
//! failure is raised, to a primary's sessions, and on a standby to all.
use crate::pg::hook::Previous;
use crate::pg::{self, interrupts};
use crate::{errors, shared_memory};
use mot_engine::State;
use pgrx::pg_sys;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use std::ffi::c_int;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long a WAL sender waits: half of what PostgreSQL gives an authentication by default, and no
/// more than half of what it is given here.
const PATIENCE: Duration = Duration::from_secs(30);
const POLL_MS: i64 = 20;

type AuthenticationHook = Option<unsafe extern "C-unwind" fn(*mut pg_sys::Port, c_int)>;

#[allow(ffi_unwind_calls)]
unsafe extern "C-unwind" {
    static mut ClientAuthentication_hook: AuthenticationHook;
}

static PREVIOUS: Previous<AuthenticationHook> = Previous::new(None);

/// Installs the hook; called once, while the server preloads libraries.
pub fn init() {
    // SAFETY: single-threaded at load time.
    unsafe { PREVIOUS.install(&raw mut ClientAuthentication_hook, Some(authenticated)) };
}

/// A plain frame: the previous hook's errors travel as without this library.
#[allow(ffi_unwind_calls)]
unsafe extern "C-unwind" fn authenticated(port: *mut pg_sys::Port, status: c_int) {
    const STATUS_OK: c_int = 0;
    // SAFETY: the arguments are PostgreSQL's own; nothing to drop is in this frame.
    unsafe {
        if let Some(previous) = PREVIOUS.get() {
            previous(port, status);
        }
        if status == STATUS_OK && pg_sys::am_walsender {
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
            refuse_for_now();
        }
        interrupts::sleep_ms(POLL_MS);
        interrupts::check_for_interrupts();
    }
}

/// Ends a WAL sender whose standby takes longer for its checkpoint than a client may be kept
/// waiting.
fn refuse_for_now() -> ! {
    // SAFETY: reads shared state; never raises.
    if !unsafe { pg_sys::RecoveryInProgress() } {
        ErrorReport::new(
            PgSqlErrorCode::ERRCODE_CANNOT_CONNECT_NOW,
            "the checkpoint worker of memory-optimized tables is not running",
            pgrx::function_name!(),
        )
        .set_detail("A base backup that begins without it would lack WAL; standbys and subscribers wait, too.")
        .set_hint(
            "PostgreSQL starts it again after a second; if that fails, the server log says why.",
        )
        .report(PgLogLevel::FATAL);
    }
    ErrorReport::new(
        PgSqlErrorCode::ERRCODE_CANNOT_CONNECT_NOW,
        "this standby's checkpoint of memory-optimized tables is behind PostgreSQL's",
        pgrx::function_name!(),
    )
    .set_detail("Until the next one is complete a base backup of it would lack WAL; cascaded standbys and \
        subscribers wait, too. The first one after a start may take long.")
    .set_hint("Try again when mot.stat_progress_checkpoint is empty; if its checkpoints fail, the server log \
        says why. mot.checkpoint_bandwidth, if set, makes it slow: ending the worker \
        (mot.stat_checkpoint.worker_pid) lets it finish at full speed.")
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
    let Some(engine) = shared_memory::engine() else {
        return true;
    };
    let control = shared_memory::control();
    let has_begun = control.checkpoint.worker_pid.load(Ordering::Relaxed) != 0;
    let has_failed = engine.state() == State::Failed;
    // SAFETY: reads shared state; never raises.
    if !unsafe { pg_sys::RecoveryInProgress() } {
        // SAFETY: a plain variable of this process.
        if has_failed && !unsafe { pg_sys::am_walsender } {
            errors::load_failed(&control.failure());
        }
        return control.gate_is_held.load(Ordering::SeqCst) || !has_begun;
    }
    if control.base_backups_are_whole.load(Ordering::SeqCst) {
        return true;
    }
    if has_failed {
        errors::load_failed(&control.failure());
    }
    !has_begun
}

/// Whether the newest complete checkpoint of PostgreSQL's is not behind ours: a copy that begins
/// with it has all its WAL.
pub fn is_covered() -> bool {
    pg::completed_redo() <= shared_memory::control().covered.load(Ordering::SeqCst)
}

/// In a session, after `pg_backup_start` and before the transaction commits: the backup is whole,
/// or an error says that it is not. With a worker at the gate it is.
pub fn check_beginning() {
    while shared_memory::control()
        .checkpoint
        .worker_pid
        .load(Ordering::Relaxed)
        != 0
        && !is_covered()
    {
        // On a primary our checkpoint may have to wait for what this transaction has logged.
        // SAFETY: reads shared state; never raises.
        if !unsafe { pg_sys::RecoveryInProgress() } {
            errors::backup_not_whole();
        }
        interrupts::sleep_ms(POLL_MS);
        interrupts::check_for_interrupts();
    }
}
