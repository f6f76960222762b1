//! Replay and the truncation of PostgreSQL's commit log: outcomes are read before they are gone.
//!
//! No callback informs a resource manager what became of a replayed transaction. The commit log is
//! asked when replay has ended, or by readers and the reclaimer of a standby. But VACUUM truncates
//! the commit log where no heap table needs it any more, and replay does the same where the log
//! says so. After that a recovery reads "not committed" for older transactions, and would remove
//! rows that are committed.
//!
//! 1. **Replay.** PostgreSQL calls no extension before it replays CLOG_TRUNCATE. So a function of
//!    this module is called before its resource manager's own, in the table in which ours is
//!    registered. It first resolves what older transactions left
//!    (`ParallelReplayer::resolve_below`). They had all ended when VACUUM truncated there, and what
//!    they had to log, commit records included, is before that.
//! 2. **The gap**, which we read before PostgreSQL begins to replay (`recovery::load::replay_gap`).
//!    The files with the outcomes of its transactions may be gone, or be there again without them,
//!    because a recovery makes a file anew in which it has something to write. So the files say
//!    nothing about the gap. Its commit records do, and so do its CLOG_TRUNCATE records
//!    ([`Outcomes`]).
use super::replay::{self, Replay};
use super::xid_set::XidSet;
use crate::pg;
use crate::transaction::clock::widen;
use mot_engine::{Clock, Lsn, Session, Xid};
use pgrx::prelude::*;
use std::cell::Cell;
use std::path::Path;

type RedoFunction = unsafe extern "C-unwind" fn(*mut pg_sys::XLogReaderState);

/// What a resource manager of PostgreSQL replays with, where a function of ours comes before it.
pub(super) struct ReplacedRedo(Cell<Option<RedoFunction>>);

// SAFETY: written once, in the postmaster, before it starts any process.
unsafe impl Sync for ReplacedRedo {}

impl ReplacedRedo {
    /// None yet.
    pub(super) const fn new() -> ReplacedRedo {
        ReplacedRedo(Cell::new(None))
    }

    /// Puts `redo` in the place of the function of the resource manager with number `id`, which it
    /// is to call.
    ///
    /// # Safety
    /// Called once, by the postmaster (or the only process), before anything is replayed.
    pub(super) unsafe fn stand_before(&self, id: u32, redo: RedoFunction) {
        // SAFETY: the caller's promise. Core's entries are there from the server's start.
        unsafe {
            let all = (&raw mut pg_sys::RmgrTable).cast::<pg_sys::RmgrData>();
            let entry = all.add(id as usize);
            self.0.set((*entry).rm_redo);
            (*entry).rm_redo = Some(redo);
        }
    }

    /// PostgreSQL's function.
    pub(super) fn get(&self) -> Option<RedoFunction> {
        self.0.get()
    }
}

static CORE_REDO: ReplacedRedo = ReplacedRedo::new();

/// Puts a function before the commit log's own, once, while the server preloads libraries.
pub fn init() {
    // SAFETY: the postmaster (or the only process) alone, before anything is replayed.
    unsafe { CORE_REDO.stand_before(pg_sys::RmgrIds::RM_CLOG_ID, redo) };
}

/// A plain frame: errors of PostgreSQL's own function travel as without this library.
#[allow(ffi_unwind_calls)]
unsafe extern "C-unwind" fn redo(record: *mut pg_sys::XLogReaderState) {
    // SAFETY: PostgreSQL hands over a reader positioned at a decoded record; nothing to drop is in
    // this frame.
    unsafe {
        if is_cut(record) {
            resolve_first(record);
        }
        if let Some(previous) = CORE_REDO.get() {
            previous(record);
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn resolve_first(record: *mut pg_sys::XLogReaderState) {
    // SAFETY: the record is one of a truncation.
    let (oldest, end) = unsafe { (oldest_kept(record), Lsn((*record).EndRecPtr)) };
    replay::resolve_below(widen(oldest), end);
}

/// Whether a record of the commit log cuts it off.
///
/// # Safety
/// `record` has a decoded record of PostgreSQL's commit log.
pub unsafe fn is_cut(record: *mut pg_sys::XLogReaderState) -> bool {
    // SAFETY: the caller's promise.
    let info = unsafe { (*(*record).record).header.xl_info };
    u32::from(info) & !pg_sys::XLR_INFO_MASK == pg_sys::CLOG_TRUNCATE
}

/// The oldest transaction that the commit log keeps behind the record, which cuts it off. All older
/// ones had ended before.
///
/// # Safety
/// `record` has a decoded record for which `is_cut` holds.
pub unsafe fn oldest_kept(record: *mut pg_sys::XLogReaderState) -> pg_sys::TransactionId {
    // SAFETY: the caller's promise; the record holds this, and need not be aligned.
    unsafe {
        let data = (*(*record).record).main_data;
        data.cast::<pg_sys::xl_clog_truncate>().read_unaligned()
    }
    .oldestXact
}

/// Transactions to a file of the commit log (`SLRU_PAGES_PER_SEGMENT` pages of two bits each).
const XIDS_PER_FILE: u64 = pg_sys::BLCKSZ as u64 * 4 * 32;
/// Files there can be, and then the first number comes again.
const FILES: u64 = (1 << 32) / XIDS_PER_FILE;

/// What the log itself says of a gap's transactions: a bit for each one that committed in it, and
/// below which id all had ended.
///
/// The checkpoint knows the transactions that had committed before the gap (its list of those that
/// the walk found open). So of a transaction that is open in a row when the gap is in, one of these
/// is true:
/// - its commit record is in the gap: it has a bit, as its subtransactions have, which that record
///   names;
/// - it had ended where the commit log was cut off in the gap, and has no bit: it did not commit.
///   (A prepared one is never below a cut.);
/// - it is prepared, or its commit record is behind the gap: it stays open.
///
/// At most a bit for each transaction of the gap is in memory: 4 KiB for 32,768 of them.
pub struct Outcomes {
    /// All transactions below had ended by the end of the gap, and their commit records, if they
    /// have any, are not behind it.
    ended_below: Xid,
    committed: XidSet,
}

impl Outcomes {
    /// Of a gap behind which PostgreSQL replays, or nothing comes (`is_all`): then all have ended
    /// of which the commit log has no file any more, and no source could be asked about them. None
    /// are known yet.
    ///
    /// Where replay follows, only the gap shows that: a file may be missing that was cut off
    /// behind the gap, and the server's own limit is that of a moment after the position from which
    /// it replays.
    pub fn of_gap(is_all: bool) -> Outcomes {
        Outcomes {
            ended_below: if is_all { files_begin() } else { Xid(0) },
            committed: XidSet::new(),
        }
    }

    /// A transaction or subtransaction committed.
    pub fn add(&mut self, xid: Xid) {
        self.committed.add(xid);
    }

    /// The commit log was cut off: all transactions below had ended.
    pub fn cut(&mut self, below: Xid) {
        self.ended_below = self.ended_below.max(below);
    }

    /// Resolves the rows, when the gap up to `at` is in. The ids of all its transactions are below
    /// `next`.
    pub fn resolve_rows(&self, replay: &mut Replay, session: &Session, next: Xid, at: Lsn) {
        if !self.committed.is_empty() || self.ended_below > Xid(0) {
            replay.resolve_below(session, self, next, at);
        }
    }
}

/// The first transaction of the oldest file of the commit log, of those that reach up to the next
/// id without a break.
fn files_begin() -> Xid {
    let mut first = pg::next_full_xid() / XIDS_PER_FILE;
    for _ in 0..FILES {
        let is_there = |file: u64| Path::new(&format!("pg_xact/{:04X}", file % FILES)).exists();
        if first == 0 || !is_there(first - 1) {
            break;
        }
        first -= 1;
    }
    Xid(first * XIDS_PER_FILE)
}

impl Clock for Outcomes {
    fn is_current(&self, _xid: Xid) -> bool {
        false
    }

    fn is_in_progress(&self, xid: Xid) -> bool {
        xid >= self.ended_below && !self.did_commit(xid)
    }

    fn did_commit(&self, xid: Xid) -> bool {
        self.committed.has(xid)
    }
}
