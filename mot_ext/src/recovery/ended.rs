//! Which transactions have ended in the log that is being replayed, and how: for a replay that
//! needs memory, or a place for an index, while no session reads.
//!
//! The server that wrote the log took out at once what an ended transaction left to take out:
//! states that a committed one superseded, and what a rolled-back one had logged (PREPARE
//! TRANSACTION and ROLLBACK PREPARED; a failure behind PRE_COMMIT). So it had its room again.
//! Replay mostly need not know: outcomes are asked for when it has ended, and beside readers by the
//! reclaimer. Where it needs that room, it must.
//!
//! # Invariant
//!
//! No transaction is taken for ended here whose end is not in the log up to where replay is.
//!
//! Readers may join at a later position of this replay. Their snapshots see each commit that was
//! replayed by then, so a state that such a commit superseded is dead to all of them. A commit that
//! was not replayed yet they may not see: PostgreSQL counts the transaction as running.
//!
//! # Where it is known from
//!
//! - **The commit and abort records.** PostgreSQL calls no extension for them, so, as in
//!   `commit_log.rs`, our function is called before that resource manager's own. A record names the
//!   transaction and its subtransactions (rows from a checkpoint bear their ids). Behind it the log
//!   has nothing more of them.
//! - **The records of the running transactions**, for all that are older than the oldest of these.
//!   Every checkpoint of PostgreSQL's writes one before its record, and a server that works one
//!   every 15 seconds. So they name those whose end is before the position from which is
//!   replayed, and of those that a server lost in a crash of its own. Prepared transactions count
//!   as running.
//! - **The commit log, of the latter alone.** Their commit records lie before, so the bits of those
//!   that committed are set: by replay, or by the server that wrote the checkpoint. Only then can
//!   the others be called rolled back.
//! - What committed before replay begins is called committed in the rows by then: the tables'
//!   checkpoint says which it was, or the gap behind it. Nothing has to be asked.
//!
//! # Why not the commit log of all
//!
//! Its files may be of a later moment than the replayed log.
//!
//! - After a crash they are ahead by commits that are to be replayed. A standby with `hot_standby =
//!   off` writes them, and its minimum recovery point stays behind. If it is lost, and started with
//!   `on`, it can be read at that point. A commit bit is no reason then: the superseded state is
//!   what readers see, until the commit record is replayed (ha/t/038).
//! - "Aborted" may be said of a transaction of which more is to be replayed. An abort is not
//!   flushed before it is written there, so a bit can be all that a crash has left of it, and the
//!   id be given out again. Such bits go when a recovery ends, to which a standby has not come.
//! - A file can be cut off, or not reach as far as an id that a checkpoint has.
//!
//! # The rest
//!
//! - No resource manager replays a gap. It is read with its ends (`recovery::load::replay_gap`),
//!   and the process that reads it continues with the log behind it. (Where the checkpoint worker
//!   reads it and the startup process continues, the standby has readers.) What runs in it is not
//!   examined: the rows of transactions that committed in a gap are resolved when all of it is in.
//! - With readers PostgreSQL knows which transactions run, and nothing is kept here.
//! - A bit is kept for each transaction that has ended since the oldest one that runs, and nothing
//!   older: the commit log has that. Where no record says which run (`wal_level = minimal`), it is
//!   one for each since the commit log was cut off.
//! - When a recovery ends, PostgreSQL itself takes the commit log for the truth: a prepared
//!   transaction that is committed there is dropped as stale. So `finish_after_replay` does the
//!   same.
use super::commit_log::ReplacedRedo;
use super::reader::{self, End};
use super::replay;
use super::xid_set::XidSet;
use crate::pg;
use crate::transaction::clock::{is_marked_committed, widen};
use mot_engine::Xid;
use pgrx::prelude::*;
use std::mem::offset_of;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

/// The transactions that have ended, as the log's records of ends say.
struct EndedTransactions {
    committed: XidSet,
    rolled_back: XidSet,
}

impl EndedTransactions {
    const fn new() -> EndedTransactions {
        EndedTransactions {
            committed: XidSet::new(),
            rolled_back: XidSet::new(),
        }
    }

    fn forget_below(&mut self, below: Xid) {
        self.committed.forget_below(below);
        self.rolled_back.forget_below(below);
    }
}

static ENDED: Mutex<EndedTransactions> = Mutex::new(EndedTransactions::new());
/// All below have ended.
static ENDED_BELOW: AtomicU64 = AtomicU64::new(0);

static CORE_REDO: ReplacedRedo = ReplacedRedo::new();
static CORE_REDO_OF_RUNNING: ReplacedRedo = ReplacedRedo::new();

/// Puts functions before PostgreSQL's own functions for the ends of transactions and for those that
/// run; called once, while the server preloads libraries.
pub fn init() {
    // SAFETY: the postmaster (or the only process) alone, before anything is replayed.
    unsafe {
        CORE_REDO.stand_before(pg_sys::RmgrIds::RM_XACT_ID, redo);
        CORE_REDO_OF_RUNNING.stand_before(pg_sys::RmgrIds::RM_STANDBY_ID, redo_running);
    }
}

/// A transaction or subtransaction has ended, says the log at the place that replay has reached.
pub fn add(xid: Xid, end: End) {
    let mut ended = ended();
    match end {
        End::Committed => ended.committed.add(xid),
        End::RolledBack => ended.rolled_back.add(xid),
    }
}

/// Whether the log, as far as it is replayed, says that a transaction or subtransaction has
/// committed. Not for what committed before replay began. May raise.
pub fn did_commit(xid: Xid) -> bool {
    if xid.0 >= ENDED_BELOW.load(Ordering::Relaxed) {
        return ended().committed.has(xid);
    }
    // A checkpoint may have rows of ids that the log does not name; the commit log need have no
    // place for these.
    xid.0 < pg::next_full_xid() && is_marked_committed(xid)
}

/// Whether the log, as far as it is replayed, says that a transaction or subtransaction has ended,
/// for one that is not known to have committed: then it did not.
pub fn was_rolled_back(xid: Xid) -> bool {
    xid.0 < ENDED_BELOW.load(Ordering::Relaxed) || ended().rolled_back.has(xid)
}

/// What transactions below `below` left is resolved.
pub fn forget_below(below: Xid) {
    ended().forget_below(below);
}

fn ended() -> MutexGuard<'static, EndedTransactions> {
    ENDED.lock().unwrap_or_else(|lock| lock.into_inner())
}

/// A plain frame: errors of PostgreSQL's own function travel as without this library.
#[allow(ffi_unwind_calls)]
unsafe extern "C-unwind" fn redo(record: *mut pg_sys::XLogReaderState) {
    // SAFETY: PostgreSQL hands over a reader positioned at a decoded record; nothing to drop is in
    // this frame.
    unsafe {
        if reader::end_of(record).is_some() {
            note(record);
        }
        if let Some(previous) = CORE_REDO.get() {
            previous(record);
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn note(record: *mut pg_sys::XLogReaderState) {
    if replay::has_readers() {
        *ended() = EndedTransactions::new();
        return;
    }
    // SAFETY: the record is one of PostgreSQL's transactions.
    unsafe { reader::each_end(record, |xid, end| add(widen(xid), end)) };
}

/// As `redo`.
#[allow(ffi_unwind_calls)]
unsafe extern "C-unwind" fn redo_running(record: *mut pg_sys::XLogReaderState) {
    // SAFETY: PostgreSQL hands over a reader positioned at a decoded record.
    let info = u32::from(unsafe { (*(*record).record).header.xl_info });
    if info & !pg_sys::XLR_INFO_MASK == pg_sys::XLOG_RUNNING_XACTS {
        // SAFETY: the record is one of running transactions; nothing to drop is in this frame.
        unsafe { note_running(record) };
    }
    if let Some(previous) = CORE_REDO_OF_RUNNING.get() {
        // SAFETY: as core calls it; nothing to drop is in this frame.
        unsafe { previous(record) };
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
    let oldest = widen(oldest);
    ENDED_BELOW.fetch_max(oldest.0, Ordering::Relaxed);
    // From here on the commit log is asked about them.
    forget_below(oldest);
}
