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
use crate::pg::{interrupts, title};
use crate::session;
use crate::settings;
use crate::shmem;
use crate::workers::load;
use mot_engine::memory::ArenaFull;
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
}

/// Applies one record, and stops recovery if the record cannot be applied. While the arena is full it waits, interruptibly: on a standby
/// queries may end that keep versions, and everywhere the server stays as it is until an administrator has read why.
pub fn apply(session: &Session, replayer: &mut Replayer, data: &[u8], end: Lsn, xid: Xid) {
    let mut waiting: Option<Waiting> = None;
    let mut has_made_room = false;
    loop {
        match replayer.apply(session, data, end, xid) {
            Ok(()) => return,
            Err(EngineError::ArenaFull(_)) if !has_made_room => {
                has_made_room = true;
                make_room(session);
            }
            Err(EngineError::ArenaFull(full)) => {
                waiting
                    .get_or_insert_with(|| Waiting::begin(end))
                    .report(end, full);
                interrupts::sleep_ms(FULL_POLL_MS);
                interrupts::handle_startup_interrupts();
                make_room(session);
                shmem::control()
                    .recovery
                    .stalled_ms
                    .fetch_add(FULL_POLL_MS as u64, Ordering::Relaxed);
            }
            Err(error) => errors::replay_stops(&show_lsn(end), error),
        }
    }
}

/// Replay waits for memory, visibly, as long as this lives.
struct Waiting {
    title_before: String,
    reported: Option<Instant>,
}

impl Waiting {
    fn begin(end: Lsn) -> Waiting {
        let title_before = title::current();
        title::show(&format!("waiting for mot.max_memory at {}", show_lsn(end)));
        let stats = &shmem::control().recovery;
        stats.waits_for_memory.store(true, Ordering::Relaxed);
        Waiting {
            title_before,
            reported: None,
        }
    }

    fn report(&mut self, end: Lsn, full: ArenaFull) {
        if self.reported.is_none_or(|at| at.elapsed() >= FULL_REPORT) {
            self.reported = Some(Instant::now());
            errors::report_replay_waits(&show_lsn(end), full, has_readers());
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        title::show(&self.title_before);
        let stats = &shmem::control().recovery;
        stats.waits_for_memory.store(false, Ordering::Relaxed);
    }
}

/// Whether statements may run beside replay. The startup process itself lets them in, so the answer holds until it goes on.
fn has_readers() -> bool {
    // SAFETY: reads a shared flag; never raises.
    unsafe { pg_sys::HotStandbyActive() }
}

/// Removes superseded versions that replay left. As long as nobody reads (crash recovery, a standby before it is consistent or without
/// hot_standby) everything superseded by a transaction whose commit was replayed is dead, for later snapshots see that commit. Then the
/// reclaim worker does it, under the readers' horizon.
fn make_room(session: &Session) {
    if has_readers() {
        return;
    }
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
