//! Which transactions were rolled back in the log that is being replayed, for a replay that needs memory or a place while nobody reads.
//!
//! The server that wrote the log took what they had logged out of its tables at once (PREPARE TRANSACTION and ROLLBACK PREPARED; a failure behind
//! PRE_COMMIT), and had its room again. Replay mostly need not know: verdicts are asked for when it has ended, and beside readers by the reclaimer. Where
//! it needs that room, it must.
//!
//! - **The records of the rollbacks tell it**, and PostgreSQL calls nobody for them. So, as in `commit_log.rs`, our function stands before that resource manager's
//!   own. A record names the transaction and its subtransactions (rows from a checkpoint bear their ids), and behind it the log has nothing more of them.
//! - **The commit log does not.** Its files are of a later moment than the log's (a crash): "aborted" may be said of a transaction of which more is to be
//!   replayed. An abort is not flushed before it is written there, so a bit can be all that a crash has left of it, and the id be given out again; such bits go when a
//!   recovery ends, which a server that goes on as a standby has not come to. And a file can be cut off, or not reach as far as an id that a checkpoint has.
//! - What the server lost in a crash of its own, and never rolled back, is not in here: it stays open until replay has ended.
//! - A gap, which no resource manager replays, is read with its rollbacks (`workers::load::replay_gap`), and whoever reads it goes on with the log behind it.
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
use std::sync::{Mutex, MutexGuard};

static KNOWN: Mutex<XidSet> = Mutex::new(XidSet::new());

static PREVIOUS: Previous = Previous::new();

/// Stands before PostgreSQL's own function for the ends of transactions; called once, while the server preloads libraries.
pub fn init() {
    // SAFETY: the postmaster (or the only process) alone, before anything is replayed.
    unsafe { PREVIOUS.stand_before(pg_sys::RmgrIds::RM_XACT_ID, redo) };
}

/// A transaction or subtransaction was rolled back, says the log at the place that replay has come to.
pub fn add(xid: Xid) {
    known().add(xid);
}

/// Whether the log, as far as it is replayed, says that a transaction or subtransaction was rolled back.
pub fn has(xid: Xid) -> bool {
    known().has(xid)
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
