//! The resource manager: what PostgreSQL calls when it replays, shows or identifies our records.
//!
//! - `rm_startup` runs when PostgreSQL has found a record to replay, before the first one; not at all after a clean
//!   shutdown. It loads the newest checkpoint, waits until the checkpoint worker stands at its gate, and reads the WAL
//!   between that checkpoint and PostgreSQL's redo position itself if there is any.
//! - `rm_redo` applies one record; a row that already has it is skipped, so replay may begin anywhere.
//! - `rm_cleanup` runs when replay has ended. Recovery is not over for PostgreSQL yet: its last checkpoint follows.
//! - An error in any of them is FATAL for the startup process: the server does not start, and says why. Nothing is skipped.
use super::reader::{self, show_lsn};
use super::{RMGR_ID, RMGR_NAME};
use crate::clock::{self, PgClock};
use crate::errors;
use crate::pg;
use crate::pg::interrupts;
use crate::session;
use crate::settings;
use crate::shmem;
use crate::workers::load;
use mot_engine::recovery::Replayer;
use mot_engine::{Clock, EngineError, Lsn, Session, State, Xid};
use pgrx::prelude::*;
use std::cell::UnsafeCell;
use std::ffi::{CStr, c_char};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long replay waits for the checkpoint worker to come up. The postmaster starts it within a second; without it
/// recovery goes on, and the slot's WAL serves in place of the gate.
const WORKER_WAIT: Duration = Duration::from_secs(20);
/// How often a replay that waits for memory looks again, in milliseconds.
const FULL_POLL_MS: i64 = 200;
/// How often a replay that waits for memory says so.
const FULL_REPORT: Duration = Duration::from_secs(5);

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
    rm_decode: None,
}));

/// Registers the resource manager while the server preloads libraries.
pub fn init() {
    // SAFETY: the flag is set by the postmaster; the table is static; PostgreSQL refuses a second registration by FATAL.
    unsafe {
        if pg_sys::process_shared_preload_libraries_in_progress {
            pg_sys::RegisterCustomRmgr(RMGR_ID, RMGR.0.get());
        }
    }
}

struct Redo(UnsafeCell<Option<Replayer>>);

// SAFETY: used by the startup process (or the single-user process) alone, on one thread.
unsafe impl Sync for Redo {}

static REPLAYER: Redo = Redo(UnsafeCell::new(None));

fn replayer() -> &'static mut Replayer {
    // SAFETY: see `Redo`; no caller keeps the reference across a callback of PostgreSQL.
    unsafe { (*REPLAYER.0.get()).get_or_insert_with(|| Replayer::new(settings::load_threads())) }
}

#[pg_guard]
unsafe extern "C-unwind" fn startup() {
    let control = shmem::control();
    control.redo_began.store(true, Ordering::SeqCst);
    if pg::is_under_postmaster() {
        // The worker must hold its gate before this recovery's last checkpoint; the postmaster sleeps until it is told.
        pg::poke_postmaster();
    }
    // SAFETY: reads a shared position; never raises.
    let redo = Lsn(unsafe { pg_sys::GetXLogReplayRecPtr(std::ptr::null_mut()) });
    let loaded = load::load().and_then(|manifest| match manifest {
        Some(manifest) => load::replay_gap(&manifest, replayer(), redo),
        None => Ok(()),
    });
    if let Err(error) = loaded {
        errors::load_stops_start(&error);
    }
    if pg::is_under_postmaster() {
        wait_for_gate();
    }
    shmem::engine()
        .expect("preloaded")
        .set_state(State::Replaying);
}

fn wait_for_gate() {
    let start = Instant::now();
    while !shmem::control().gate_is_held.load(Ordering::SeqCst) {
        if start.elapsed() > WORKER_WAIT {
            errors::tell(
                PgLogLevel::WARNING,
                PgSqlErrorCode::ERRCODE_INSUFFICIENT_RESOURCES,
                "the checkpoint worker of mot did not start in time".into(),
                "Recovery goes on. Is max_worker_processes large enough?",
            );
            return;
        }
        interrupts::sleep_ms(10);
        interrupts::handle_startup_interrupts();
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn redo(record: *mut pg_sys::XLogReaderState) {
    // SAFETY: PostgreSQL hands over a reader that stands on a decoded record of ours.
    let (data, end, xid) = unsafe {
        (
            reader::own_data(record),
            Lsn((*record).EndRecPtr),
            (*(*record).record).header.xl_xid,
        )
    };
    let stats = &shmem::control().recovery;
    apply(
        session::join_uncounted(),
        replayer(),
        data,
        end,
        clock::widen(xid),
    );
    stats.records_replayed.fetch_add(1, Ordering::Relaxed);
    stats.replayed_lsn.store(end.0, Ordering::Relaxed);
    // After the record is applied: see `files::write`.
    let logged = &shmem::control().logged;
    if !logged.load(Ordering::Relaxed) {
        logged.store(true, Ordering::SeqCst);
    }
}

/// Applies one record; waits while the arena is full, and stops recovery if the record cannot be applied.
pub fn apply(session: &Session, replayer: &mut Replayer, data: &[u8], end: Lsn, xid: Xid) {
    let mut reported: Option<Instant> = None;
    loop {
        match replayer.apply(session, data, end, xid) {
            Ok(()) => return,
            Err(EngineError::ArenaFull(_)) => {
                if reported.is_none_or(|at| at.elapsed() >= FULL_REPORT) {
                    reported = Some(Instant::now());
                    errors::report_replay_waits(&show_lsn(end));
                }
                make_room(session);
                interrupts::sleep_ms(FULL_POLL_MS);
                interrupts::handle_startup_interrupts();
                shmem::control()
                    .recovery
                    .stalled_ms
                    .fetch_add(FULL_POLL_MS as u64, Ordering::Relaxed);
            }
            Err(error) => errors::replay_stops(&show_lsn(end), error),
        }
    }
}

/// Removes superseded versions that replay left. In crash recovery nobody reads, so everything superseded by a committed
/// transaction is dead; on a standby the reclaim worker does it, under the standby's horizon.
fn make_room(session: &Session) {
    // SAFETY: a plain variable of the startup process; false in every other.
    if unsafe { pg_sys::ArchiveRecoveryRequested } {
        return;
    }
    session.engine().raise_horizon(Xid(pg::next_full_xid()));
    for walk in session.tables() {
        session.sweep(
            &DuringReplay,
            walk.table(),
            true,
            interrupts::handle_startup_interrupts,
        );
    }
    session.memory().collect();
}

/// The clock while replay goes on: a transaction is finished if its commit record was replayed; the others may yet commit.
struct DuringReplay;

impl Clock for DuringReplay {
    fn is_current(&self, _xid: Xid) -> bool {
        false
    }

    fn is_in_progress(&self, xid: Xid) -> bool {
        !PgClock.did_commit(xid)
    }

    fn did_commit(&self, xid: Xid) -> bool {
        PgClock.did_commit(xid)
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn cleanup() {
    let control = shmem::control();
    if let Err(error) = load::finish_after_replay() {
        errors::load_stops_start(&error);
    }
    control.redo_ended.store(true, Ordering::SeqCst);
    if !pg::is_under_postmaster() {
        crate::workers::checkpointer::checkpoint_single_user();
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn describe(
    buffer: pg_sys::StringInfo,
    record: *mut pg_sys::XLogReaderState,
) {
    // SAFETY: PostgreSQL hands over a reader that stands on a decoded record of ours.
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
