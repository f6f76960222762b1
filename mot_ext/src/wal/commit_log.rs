//! PostgreSQL cuts its commit log off, and a recovery must not have to ask for what was in it.
//!
//! What became of a replayed transaction nobody tells a resource manager; the commit log is asked when replay has ended, or by readers and the
//! reclaimer of a standby. But VACUUM cuts the commit log off where no heap table needs it any more, and replay does the same where the log says so. From
//! then on a recovery reads "not committed" of older transactions: their rows, of transactions that have committed, would be taken out.
//!
//! 1. **Replay.** PostgreSQL calls nobody before it replays CLOG_TRUNCATE, so this module stands before its resource manager's function in the table
//!    that our own is registered in: what older transactions left is judged first (`ParallelReplayer::judge_below`). They had all ended when VACUUM cut
//!    there, and what they had to log, commit records included, lies before.
//! 2. **The gap**, which we read before PostgreSQL begins to replay (`workers::load::replay_gap`): the outcomes of its transactions are in files
//!    that may be gone by now. Commit records of the gap are read, too, then ([`Outcomes`]).
use super::replay::Replay;
use super::rmgr;
use crate::clock::widen;
use crate::pg;
use mot_engine::{Clock, Lsn, Session, Xid};
use pgrx::prelude::*;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;

type RedoFunction = Option<unsafe extern "C-unwind" fn(*mut pg_sys::XLogReaderState)>;

struct Previous(Cell<RedoFunction>);

// SAFETY: written once, in the postmaster, before it starts any process.
unsafe impl Sync for Previous {}

static PREVIOUS: Previous = Previous(Cell::new(None));

/// Stands before the commit log's own function; called once, while the server preloads libraries.
pub fn init() {
    // SAFETY: the postmaster (or the only process) alone, before anything is replayed. Core's entries are there from the server's start.
    unsafe {
        let all = (&raw mut pg_sys::RmgrTable).cast::<pg_sys::RmgrData>();
        let entry = all.add(pg_sys::RmgrIds::RM_CLOG_ID as usize);
        PREVIOUS.0.set((*entry).rm_redo);
        (*entry).rm_redo = Some(redo);
    }
}

/// A plain frame: errors of PostgreSQL's own function travel as without this library.
#[allow(ffi_unwind_calls)]
unsafe extern "C-unwind" fn redo(record: *mut pg_sys::XLogReaderState) {
    // SAFETY: PostgreSQL hands over a reader that stands on a decoded record; nothing to drop is in this frame.
    unsafe {
        let info = u32::from((*(*record).record).header.xl_info) & !pg_sys::XLR_INFO_MASK;
        if info == pg_sys::CLOG_TRUNCATE {
            judge_first(record);
        }
        if let Some(previous) = PREVIOUS.0.get() {
            previous(record);
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn judge_first(record: *mut pg_sys::XLogReaderState) {
    // SAFETY: the record is one of a truncation, which holds this; it need not be aligned.
    let (truncation, end) = unsafe {
        let data = (*(*record).record).main_data;
        (
            data.cast::<pg_sys::xl_clog_truncate>().read_unaligned(),
            Lsn((*record).EndRecPtr),
        )
    };
    rmgr::judge_below(widen(truncation.oldestXact), end);
}

/// Transactions to a file of the commit log (`SLRU_PAGES_PER_SEGMENT` pages of two bits each).
const XIDS_PER_FILE: u64 = pg_sys::BLCKSZ as u64 * 4 * 32;
/// Files there can be, and then the first number comes again.
const FILES: u64 = (1 << 32) / XIDS_PER_FILE;

/// Transactions to a word, and words to a part, of [`Outcomes`].
const WORD_XIDS: u64 = u64::BITS as u64;
const PART_WORDS: u64 = 512;

/// What the commit log had of a gap's transactions and may have no more: a bit for each one that committed.
pub struct Outcomes {
    /// The commit log has all from here on.
    below: Xid,
    /// Nothing is replayed behind the gap.
    is_all: bool,
    parts: BTreeMap<u64, Box<[u64; PART_WORDS as usize]>>,
}

impl Outcomes {
    /// None are known yet. Looks which files are there.
    pub fn of_files(is_all: bool) -> Outcomes {
        let mut first = pg::next_full_xid() / XIDS_PER_FILE;
        for _ in 0..FILES {
            let is_there = |file: u64| Path::new(&format!("pg_xact/{:04X}", file % FILES)).exists();
            if first == 0 || !is_there(first - 1) {
                break;
            }
            first -= 1;
        }
        Outcomes {
            below: Xid(first * XIDS_PER_FILE),
            is_all,
            parts: BTreeMap::new(),
        }
    }

    /// Whether commit records are of interest.
    pub fn are_wanted(&self) -> bool {
        self.below > Xid(0)
    }

    /// A transaction or subtransaction committed.
    pub fn add(&mut self, xid: Xid) {
        if xid >= self.below {
            return;
        }
        let (part, word, bit) = place(xid);
        let part = self.parts.entry(part);
        part.or_insert_with(|| Box::new([0; PART_WORDS as usize]))[word] |= bit;
    }

    /// Tells the rows, when the gap up to `at` is in. Those of other transactions stay open if replay goes on, which may have their commit records; else
    /// they did not commit.
    pub fn tell(&self, replay: &mut Replay, session: &Session, at: Lsn) {
        if self.are_wanted() && (self.is_all || !self.parts.is_empty()) {
            replay.judge_below(session, self, self.below, at);
        }
    }
}

/// Part, word in it, and bit in that.
fn place(xid: Xid) -> (u64, usize, u64) {
    let word = xid.0 / WORD_XIDS;
    (
        word / PART_WORDS,
        (word % PART_WORDS) as usize,
        1 << (xid.0 % WORD_XIDS),
    )
}

impl Clock for Outcomes {
    fn is_current(&self, _xid: Xid) -> bool {
        false
    }

    fn is_in_progress(&self, xid: Xid) -> bool {
        !self.is_all && !self.did_commit(xid)
    }

    fn did_commit(&self, xid: Xid) -> bool {
        let (part, word, bit) = place(xid);
        let part = self.parts.get(&part);
        part.is_some_and(|part| part[word] & bit != 0)
    }
}
