//! The sessions that may be copying the checkpoint files while the server runs: as long as one may,
//! no old generation is removed.
//!
//! A copier lists the directory first and reads its files later; a generation that it has seen must
//! still be there then, or the copy has a manifest without rows, or nothing at all.
//!
//! | copier | how it is known |
//! |---|---|
//! | pg_basebackup | its WAL sender is in the state BACKUP |
//! | a backup by `pg_backup_start` | the session that called it, to `pg_backup_stop` or its end |
//! | pg_rewind from this server | a session that called `pg_read_binary_file`, until its end |
//!
//! Copies of files, snapshots and backup programs call `pg_backup_start`. pg_rewind reads the
//! control file by `pg_read_binary_file` before it lists anything.
//!
//! Sessions are noticed by the object access hook, which fires when a plan that calls the function
//! is set up: before it runs.
//! - A session counts itself once (`Control::copiers`), in shared memory, and takes itself out at
//!   its end in any case.
//! - The worker removes a generation only after it has seen the count at 0. A session that counts
//!   itself later lists later, and finds the generations that stay.
//!
//! A backup brings the WAL from the redo position of the checkpoint that it begins with, and no
//! slot: no such checkpoint may complete before ours covers its redo position (`backup_start`). A
//! WAL sender is in the state BACKUP, a session among the beginners, before it asks for that
//! checkpoint.
use super::backup_start;
use crate::pg::hook::Previous;
use crate::pg::local::ProcessLocal;
use crate::pg::version::local_transaction_of;
use crate::{errors, shared_memory};
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::sync::atomic::Ordering;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Copying {
    No,
    /// Until PostgreSQL says that this session's backup is over.
    Backup,
    /// Until this session ends.
    Files,
}

struct BackupState {
    copying: Cell<Copying>,
    /// Among the beginners.
    begins: Cell<bool>,
    registered: Cell<bool>,
}

static PREVIOUS: Previous<pg_sys::object_access_hook_type> = Previous::new(None);

static STATE: ProcessLocal<BackupState> = ProcessLocal(BackupState {
    copying: Cell::new(Copying::No),
    begins: Cell::new(false),
    registered: Cell::new(false),
});

/// Installs the hook; called once, while the server preloads libraries.
pub fn init() {
    // SAFETY: single-threaded at load time.
    unsafe { PREVIOUS.install(&raw mut pg_sys::object_access_hook, Some(object_access)) };
}

/// Called for every function of every plan: a plain frame that reads one integer first.
#[allow(ffi_unwind_calls)]
unsafe extern "C-unwind" fn object_access(
    access: pg_sys::ObjectAccessType::Type,
    class: pg_sys::Oid,
    object: pg_sys::Oid,
    sub_object: c_int,
    argument: *mut c_void,
) {
    // SAFETY: the arguments are PostgreSQL's own; nothing to drop is in this frame.
    unsafe {
        if let Some(previous) = PREVIOUS.get() {
            previous(access, class, object, sub_object, argument);
        }
        if access == pg_sys::ObjectAccessType::OAT_FUNCTION_EXECUTE {
            called(object);
        }
    }
}

#[inline]
unsafe fn called(function: pg_sys::Oid) {
    let copying = match function.to_u32() {
        pg_sys::F_PG_BACKUP_START => Copying::Backup,
        pg_sys::F_PG_READ_BINARY_FILE_TEXT
        | pg_sys::F_PG_READ_BINARY_FILE_TEXT_INT8_INT8
        | pg_sys::F_PG_READ_BINARY_FILE_TEXT_INT8_INT8_BOOL => Copying::Files,
        _ => return,
    };
    // SAFETY: a guarded function of this module.
    unsafe { begin(copying == Copying::Files) };
}

#[pg_guard]
unsafe extern "C-unwind" fn begin(until_exit: bool) {
    if shared_memory::engine().is_none() {
        return;
    }
    if !until_exit {
        backup_start::wait_as_session();
    }
    if !STATE.registered.replace(true) {
        // SAFETY: registered once per process; the callbacks live as long as the library, which is
        // never unloaded.
        unsafe {
            pg_sys::on_shmem_exit(Some(on_exit), pg_sys::Datum::from(0));
            pg_sys::RegisterXactCallback(Some(on_transaction), std::ptr::null_mut());
        }
    }
    if STATE.copying.get() == Copying::No {
        shared_memory::control()
            .copiers
            .fetch_add(1, Ordering::SeqCst);
    }
    if until_exit {
        STATE.copying.set(Copying::Files);
    } else if STATE.copying.get() == Copying::No {
        STATE.copying.set(Copying::Backup);
    }
    if !until_exit && !STATE.begins.replace(true) {
        shared_memory::control()
            .beginners
            .fetch_add(1, Ordering::SeqCst);
    }
}

fn end() {
    if STATE.copying.replace(Copying::No) != Copying::No {
        shared_memory::control()
            .copiers
            .fetch_sub(1, Ordering::SeqCst);
    }
}

/// The transaction with `pg_backup_start` is over, so its checkpoint is, too.
fn end_beginning() {
    if STATE.begins.replace(false) {
        shared_memory::control()
            .beginners
            .fetch_sub(1, Ordering::SeqCst);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn on_exit(_code: c_int, _arg: pg_sys::Datum) {
    end_beginning();
    end();
}

#[pg_guard]
unsafe extern "C-unwind" fn on_transaction(event: pg_sys::XactEvent::Type, _arg: *mut c_void) {
    // SAFETY: reads a variable of this process.
    let status = || unsafe { pg_sys::get_backup_status() };
    match event {
        pg_sys::XactEvent::XACT_EVENT_PRE_COMMIT | pg_sys::XactEvent::XACT_EVENT_PRE_PREPARE
            if STATE.begins.get()
                && status() == pg_sys::SessionBackupState::SESSION_BACKUP_RUNNING =>
        {
            backup_start::check_beginning();
        }
        pg_sys::XactEvent::XACT_EVENT_COMMIT
        | pg_sys::XactEvent::XACT_EVENT_ABORT
        | pg_sys::XactEvent::XACT_EVENT_PREPARE => {
            end_beginning();
            if STATE.copying.get() == Copying::Backup
                && status() == pg_sys::SessionBackupState::SESSION_BACKUP_NONE
            {
                end();
            }
        }
        _ => {}
    }
}

/// Whether a backup may be copying the files of checkpoints.
pub fn may_be_under_way() -> bool {
    shared_memory::control().copiers.load(Ordering::SeqCst) > 0 || base_backup_is_running()
}

/// Whether a process may be waiting for the checkpoint that a backup begins with. A base backup
/// counts until its end: nothing shows when it has begun.
pub fn may_begin() -> bool {
    shared_memory::control().beginners.load(Ordering::SeqCst) > 0 || base_backup_is_running()
}

pub fn base_backup_is_running() -> bool {
    let is_backup = |sender: &(i32, pg_sys::WalSndState::Type)| {
        sender.1 == pg_sys::WalSndState::WALSNDSTATE_BACKUP
    };
    senders().any(|sender| is_backup(&sender))
}

/// Ends the base backups of WAL senders, which could not be restored, and says so in the log.
pub fn end_base_backups() {
    end_senders(|_, state| state == pg_sys::WalSndState::WALSNDSTATE_BACKUP);
}

/// Also WAL senders that may yet begin one: those that do not stream.
pub fn end_base_backups_to_come() {
    end_senders(|pid, state| {
        state == pg_sys::WalSndState::WALSNDSTATE_BACKUP
            || (state == pg_sys::WalSndState::WALSNDSTATE_STARTUP && !is_in_transaction(pid))
    });
}

/// Ends the WAL senders that run SQL in a transaction, each once, when the server shuts down.
/// PostgreSQL does the same, but only when our workers are gone: the checkpoint worker would wait
/// for those that have written for ever. A sender that streams stays, also in the transactions in
/// which it decodes. (One that has sent a base backup is still called so.)
pub fn end_transactions_of_senders(ended: &mut Vec<i32>) {
    for (pid, state) in senders() {
        let runs_sql = matches!(
            state,
            pg_sys::WalSndState::WALSNDSTATE_STARTUP | pg_sys::WalSndState::WALSNDSTATE_BACKUP
        );
        if runs_sql && is_in_transaction(pid) && !ended.contains(&pid) {
            ended.push(pid);
            // SAFETY: a signal to a process of this server, as pg_terminate_backend sends it.
            unsafe { libc::kill(pid, libc::SIGTERM) };
        }
    }
}

/// Whether a WAL sender is in a transaction, where BASE_BACKUP is refused: a subscriber's that
/// copies a table, perhaps for hours, or a client's that runs SQL.
fn is_in_transaction(pid: i32) -> bool {
    // SAFETY: looks through the ProcArray under its lock; the process may end, its PGPROC stays.
    unsafe {
        let process = pg_sys::BackendPidGetProc(pid);
        !process.is_null()
            && (*process).databaseId != pg_sys::InvalidOid
            && local_transaction_of(&*process) != 0
    }
}

fn end_senders(is_meant: impl Fn(i32, pg_sys::WalSndState::Type) -> bool) {
    for (pid, _) in senders().filter(|(pid, state)| is_meant(*pid, *state)) {
        // SAFETY: a signal to a process of this server, as pg_terminate_backend sends it.
        if unsafe { libc::kill(pid, libc::SIGTERM) } == 0 {
            errors::report_base_backup_ended(pid);
        }
    }
}

/// WAL senders: process and state.
fn senders() -> impl Iterator<Item = (i32, pg_sys::WalSndState::Type)> {
    // SAFETY: plain variables of this process; the array is in shared memory.
    let (first, count) = unsafe {
        let first = (&raw const (*pg_sys::WalSndCtl).walsnds).cast::<pg_sys::WalSnd>();
        (first, pg_sys::max_wal_senders as usize)
    };
    let senders = (0..count).map(move |at| {
        // SAFETY: the array has so many elements; a torn read is only an old or a new state.
        unsafe {
            let sender = first.add(at);
            (
                (&raw const (*sender).pid).read_volatile(),
                (&raw const (*sender).state).read_volatile(),
            )
        }
    });
    senders.filter(|(pid, _)| *pid != 0)
}
