//! The resource manager: what PostgreSQL calls when it replays, shows or identifies our records.
//!
//! - `rm_startup` runs when PostgreSQL has found a record to replay, before the first one. After a
//!   clean shutdown a primary has none. It loads the newest checkpoint, unless the worker has (a
//!   standby may have been read before). If there never was a checkpoint, it writes an empty one.
//!   It then reads the WAL between the checkpoint and PostgreSQL's redo position, if there is any,
//!   and waits until the checkpoint worker holds its gate.
//! - `rm_redo` applies one record, or hands it over to threads (`replay`). A row that already has
//!   the record is skipped, so replay may begin anywhere at or before our checkpoint's redo
//!   position. Behind it, a difference would lack its base.
//! - `rm_cleanup` runs when replay has ended, and waits until everything is applied. Recovery is
//!   not over for PostgreSQL yet: unlogged relations become empty, and its last checkpoint follows.
//! - An error in any of them is FATAL for the startup process: the server does not start, and says
//!   why. Nothing is skipped.
use super::replay::{self, Stopwatch, replayer};
use super::{commit_log, ended, load, reader};
use crate::checkpoint::recovery_end;
use crate::decoding::read::decode;
use crate::pg::local::ProcessLocal;
use crate::pg::{self, interrupts, slot, unlogged};
use crate::transaction::wal_log::RMGR_ID;
use crate::transaction::{clock, session};
use crate::{errors, shared_memory};
use mot_engine::{Lsn, State};
use pgrx::prelude::*;
use std::cell::UnsafeCell;
use std::ffi::{CStr, c_char};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Name of the resource manager in pg_waldump and error messages.
const RMGR_NAME: &CStr = c"mot";

/// How long replay waits for the checkpoint worker to come up. The postmaster starts it within a
/// second; without it recovery continues if the slot's WAL serves in place of the gate. If there is
/// none (`max_replication_slots = 0`, `wal_level = minimal`) it waits on, and says so each time:
/// PostgreSQL's checkpoints would remove WAL of which no checkpoint of ours has the rows.
const WORKER_WAIT: Duration = Duration::from_secs(20);

struct Table(UnsafeCell<pg_sys::RmgrData>);

// SAFETY: written once, in the postmaster, before PostgreSQL reads it.
unsafe impl Sync for Table {}

static RMGR: Table = Table(UnsafeCell::new(pg_sys::RmgrData {
    rm_name: RMGR_NAME.as_ptr(),
    rm_redo: Some(redo),
    rm_desc: Some(describe),
    rm_identify: Some(identify),
    rm_startup: Some(startup),
    rm_cleanup: Some(cleanup),
    rm_mask: None,
    rm_decode: Some(decode),
}));

/// Registers the resource manager while the server preloads libraries.
pub fn init() {
    // SAFETY: the flag is set by the postmaster; the table is static; PostgreSQL refuses a second
    // registration by FATAL.
    unsafe {
        if pg_sys::process_shared_preload_libraries_in_progress {
            pg_sys::RegisterCustomRmgr(RMGR_ID, RMGR.0.get());
            commit_log::init();
            ended::init();
        }
    }
}

static STOPWATCH: ProcessLocal<UnsafeCell<Stopwatch>> =
    ProcessLocal(UnsafeCell::new(Stopwatch::new()));

#[pg_guard]
unsafe extern "C-unwind" fn startup() {
    let control = shared_memory::control();
    control
        .replays_in
        .store(std::process::id(), Ordering::SeqCst);
    control.redo_began.store(true, Ordering::SeqCst);
    if pg::is_under_postmaster() {
        // The worker must hold its gate before this recovery's last checkpoint; the postmaster
        // sleeps until it is woken.
        pg::poke_postmaster();
    }
    // SAFETY: reads a shared position; never raises.
    let redo = Lsn(unsafe { pg_sys::GetXLogReplayRecPtr(std::ptr::null_mut()) });
    let loaded = if load::claim() {
        load::load_for_replay(replayer(), redo)
    } else {
        load::wait_for_worker()
    };
    if let Err(error) = loaded {
        errors::load_stops_start(&error);
    }
    if pg::is_under_postmaster() {
        wait_for_gate();
    }
    shared_memory::engine()
        .expect("preloaded")
        .set_state(State::Replaying);
}

fn wait_for_gate() {
    let mut logged_at = Instant::now();
    while !shared_memory::control().gate_is_held.load(Ordering::SeqCst) {
        if logged_at.elapsed() > WORKER_WAIT {
            logged_at = Instant::now();
            let covered = Lsn(shared_memory::control().covered.load(Ordering::SeqCst));
            let may_go_on = slot::reaches_back_to(covered) && slot::stays_idle();
            errors::report_no_worker(may_go_on);
            if may_go_on {
                return;
            }
        }
        interrupts::sleep_ms(10);
        interrupts::handle_startup_interrupts();
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn redo(record: *mut pg_sys::XLogReaderState) {
    // SAFETY: PostgreSQL hands over a reader positioned at a decoded record of ours.
    let (data, named, end, xid) = unsafe {
        (
            reader::own_data(record),
            reader::named_xid(record),
            Lsn((*record).EndRecPtr),
            (*(*record).record).header.xl_xid,
        )
    };
    if let Some(named) = named {
        pg::observe_xid(named);
    }
    let began = Instant::now();
    replayer().apply(session::join_uncounted(), data, end, clock::widen(xid));
    // SAFETY: the startup process's one thread.
    unsafe { (*STOPWATCH.0.get()).record_done(began) };
    let stats = &shared_memory::control().recovery;
    stats.records_replayed.fetch_add(1, Ordering::Relaxed);
    stats.replayed_lsn.store(end.0, Ordering::Relaxed);
}

#[pg_guard]
unsafe extern "C-unwind" fn cleanup() {
    let control = shared_memory::control();
    let began = Instant::now();
    replayer().drain(session::join_uncounted());
    // SAFETY: the startup process's one thread.
    unsafe { (*STOPWATCH.0.get()).record_done(began) };
    replay::report(shared_memory::engine().expect("preloaded"));
    replay::end();
    remove_undone_files();
    if pg::is_under_postmaster() {
        // While the tables are not ready: from then on the worker may be in the midst of a
        // checkpoint.
        recovery_end::wait_for_slot();
    }
    if let Err(error) = load::finish_after_replay() {
        errors::load_stops_start(&error);
    }
    control.redo_ended.store(true, Ordering::SeqCst);
    if !pg::is_under_postmaster() {
        recovery_end::checkpoint_single_user();
    }
}

/// Removes the files of unlogged relations that replay has made init forks of again. PostgreSQL
/// copies the init forks next, and stops the server where a file is in the way.
///
/// It removed those that had an init fork before replay. A rollback takes the init fork away, and
/// leaves an empty file until the next checkpoint. If the server is lost before the rollback is in
/// the log, replay makes the init fork again. Plain PostgreSQL does not start then.
fn remove_undone_files() {
    // SAFETY: this is the startup process (or the single-user one), inside recovery.
    unsafe { unlogged::remove_all_but_init_forks() };
}

#[pg_guard]
unsafe extern "C-unwind" fn describe(
    buffer: pg_sys::StringInfo,
    record: *mut pg_sys::XLogReaderState,
) {
    // SAFETY: PostgreSQL hands over a reader positioned at a decoded record of ours.
    let text = mot_engine::log::describe(unsafe { reader::own_data(record) });
    // SAFETY: the buffer is PostgreSQL's; the bytes live for the call.
    unsafe {
        pg_sys::appendBinaryStringInfo(buffer, text.as_ptr().cast(), text.len() as i32);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn identify(_info: u8) -> *const c_char {
    const NAME: &CStr = c"CHANGES";
    NAME.as_ptr()
}
