//! Which transactions have ended in the log that is being replayed, for a replay that needs memory or a place while nobody reads: what of them did not commit
//! was rolled back.
//!
//! The server that wrote the log took what they had logged out of its tables at once (PREPARE TRANSACTION and ROLLBACK PREPARED; a failure behind
//! PRE_COMMIT), and had its room again. Replay mostly need not know: verdicts are asked for when it has ended, and beside readers by the reclaimer. Where
//! it needs that room, it must.
//!
//! - **The records of the rollbacks tell it**, and PostgreSQL calls nobody for them. So, as in `commit_log.rs`, our function stands before that resource manager's
//!   own. A record names the transaction and its subtransactions (rows from a checkpoint bear their ids), and behind it the log has nothing more of them.
//! - **So do the records of the running transactions**, for all that are older than the oldest of these: also for those whose rollback lies before the position from which is
//!   replayed, and those that a server lost in a crash of its own. Every checkpoint of PostgreSQL's writes one right before its record, and a server that works one every
//!   15 seconds. Prepared transactions count as running, and the commit record of one that does not run any more lies before: the commit log has it if it was replayed, and
//!   what committed before that (a checkpoint tells, or the gap) is called committed in the rows by now.
//! - **The commit log alone does not.** Its files are of a later moment than the log's (a crash): "aborted" may be said of a transaction of which more is to be
//!   replayed. An abort is not flushed before it is written there, so a bit can be all that a crash has left of it, and the id be given out again; such bits go when a
//!   recovery ends, which a server that goes on as a standby has not come to. And a file can be cut off, or not reach as far as an id that a checkpoint has.
//! - A gap, which no resource manager replays, is read with its rollbacks (`workers::load::replay_gap`), and whoever reads it goes on with the
//!   log behind it. (Where the checkpoint worker reads it and the startup process goes on, the standby has readers.) What runs in it is not looked at: who has committed in a gap, the rows are told when all of it is in.
//! - With readers PostgreSQL knows who runs, and nothing is kept here.
//! - Where the commit log is cut off everything older is judged, and forgotten here. So it is a bit for each transaction in between at most, where some were
//!   rolled back.
use super::commit_log::Previous;
use super::reader;
use super::replay;
use super::xid_set::XidSet;
use crate::clock::widen;
use mot_engine::Xid;
use pgrx::prelude::*;
use std::mem::offset_of;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Were rolled back.
static KNOWN: Mutex<XidSet> = Mutex::new(XidSet::new());
/// All below have ended.
static ENDED_BELOW: AtomicU64 = AtomicU64::new(0);

static PREVIOUS: Previous = Previous::new();
static PREVIOUS_OF_RUNNING: Previous = Previous::new();

/// Stands before PostgreSQL's own functions for the ends of transactions and for those that run; called once, while the server preloads libraries.
pub fn init() {
    // SAFETY: the postmaster (or the only process) alone, before anything is replayed.
    unsafe {
        PREVIOUS.stand_before(pg_sys::RmgrIds::RM_XACT_ID, redo);
        PREVIOUS_OF_RUNNING.stand_before(pg_sys::RmgrIds::RM_STANDBY_ID, redo_running);
    }
}

/// A transaction or subtransaction was rolled back, says the log at the place that replay has come to.
pub fn add(xid: Xid) {
    known().add(xid);
}

/// Whether the log, as far as it is replayed, says that a transaction or subtransaction has ended, for one that is not known to have committed: then it did not.
pub fn has(xid: Xid) -> bool {
    xid.0 < ENDED_BELOW.load(Ordering::Relaxed) || known().has(xid)
}

/// What transactions below `below` left is judged.
pub fn forget_below(below: Xid) {
    known().forget_below(below);
}

fn known() -> MutexGuard<'static, XidSet> {
    KNOWN.lock().unwrap_or_else(|lock| lock.into_inner())
}

/// A plain frame: errors of PostgreSQL's own function travel as without this library.
#[allow(ffi_unwind_calls)]
unsafe extern "C-unwind" fn redo(record: *mut pg_sys::XLogReaderState) {
    // SAFETY: PostgreSQL hands over a reader that stands on a decoded record; nothing to drop is in this frame.
    unsafe {
        if reader::is_rollback(record) {
            note(record);
        }
        if let Some(previous) = PREVIOUS.get() {
            previous(record);
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn note(record: *mut pg_sys::XLogReaderState) {
    if replay::has_readers() {
        *known() = XidSet::new();
        return;
    }
    // SAFETY: the record is one of a rollback.
    unsafe { reader::tell_rollback(record, |xid| add(widen(xid))) };
}

/// As `redo`.
#[allow(ffi_unwind_calls)]
unsafe extern "C-unwind" fn redo_running(record: *mut pg_sys::XLogReaderState) {
    // SAFETY: PostgreSQL hands over a reader that stands on a decoded record; nothing to drop is in this frame.
    unsafe {
        if u32::from((*(*record).record).header.xl_info) & !pg_sys::XLR_INFO_MASK
            == pg_sys::XLOG_RUNNING_XACTS
        {
            note_running(record);
        }
        if let Some(previous) = PREVIOUS_OF_RUNNING.get() {
            previous(record);
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn note_running(record: *mut pg_sys::XLogReaderState) {
    const AT: usize = offset_of!(pg_sys::xl_running_xacts, oldestRunningXid);
    // SAFETY: the record is one of running transactions, and has this; it need not be aligned.
    let oldest = unsafe {
        let data = (*(*record).record).main_data.cast::<u8>();
        data.add(AT)
            .cast::<pg_sys::TransactionId>()
            .read_unaligned()
    };
    ENDED_BELOW.fetch_max(widen(oldest).0, Ordering::Relaxed);
}
