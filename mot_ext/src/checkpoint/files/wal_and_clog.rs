//! What a checkpoint asks of PostgreSQL's WAL and commit log: which transactions have committed,
//! and that what was written down is durable there.
//!
//! The engine's writer calls it after its walk over the rows, on the thread that called the writer,
//! never on those that it started. All of it may raise.
use crate::pg::worker::shutdown_asked;
use crate::pg::{self, checkpointer, interrupts};
use crate::shared_memory;
use crate::shared_memory::server_phase::is_of_old_timeline;
use crate::transaction::clock::{self, PgClock};
use mot_engine::pause::{Point, reach};
use mot_engine::{Clock, EngineError, Lsn, Xid};
use pgrx::prelude::*;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long a checkpoint on a standby waits for replay to pass its newest row before it is given up
/// and tried again.
const REPLAY_WAIT: Duration = Duration::from_secs(30);

/// Why an attempt is given up that is no failure: the next one is for another timeline.
pub const RECOVERY_ENDED: &str = "the recovery has ended";

/// The commit log has all transactions from here on. May raise.
pub fn clog_begins() -> Xid {
    clock::widen(pg::version::oldest_clog_xid())
}

/// Those of `open` that have committed, certainly all whose commit record is before the redo
/// position: whose commit is under way is waited for, as the server's own checkpoint does before it
/// writes the commit log. May raise.
///
/// A transaction that the commit log knew no more when the walk began, which is below `known_from`,
/// stays open; while the server runs it is cut off far behind what the reclaimer has resolved. A
/// standby may replay a cut behind the walk: what is older is resolved first
/// (`recovery::commit_log`), but the walk did not see that. So the attempt fails where one of
/// `open` is between the two, and the next walk sees it.
pub(super) fn committed_among(open: &[Xid], known_from: Xid) -> Result<Vec<Xid>, EngineError> {
    if open.is_empty() {
        return Ok(Vec::new());
    }
    reach(Point::CheckpointBeforeOutcomes);
    // SAFETY: reads shared state; never raises. What was replayed is in the commit log.
    if !unsafe { pg_sys::RecoveryInProgress() } {
        checkpointer::wait_for_commits_under_way();
    }
    let oldest = clog_begins();
    if open.iter().any(|xid| (known_from..oldest).contains(xid)) {
        return Err(EngineError::CheckpointNotNow {
            what: "the commit log was cut off beside it",
        });
    }
    let has_committed = |xid: &Xid| *xid >= oldest && PgClock.did_commit(*xid);
    Ok(open.iter().copied().filter(has_committed).collect())
}

/// Makes the WAL inserted so far durable, at least up to `rows`, and answers up to where it is. For
/// a checkpoint at `redo`.
pub(super) fn flush(redo: Lsn, rows: Lsn) -> Result<Lsn, EngineError> {
    // SAFETY: reads shared state; never raises.
    match unsafe { pg_sys::RecoveryInProgress() } {
        true => flush_replayed(redo, rows),
        false => Ok(flush_inserted()),
    }
}

fn flush_inserted() -> Lsn {
    // SAFETY: positions are shared. May raise.
    unsafe {
        let insert = Lsn(pg_sys::GetXLogInsertRecPtr());
        pg_sys::XLogFlush(pg::wal_pages().end_of_last_record(insert).0);
        Lsn(pg_sys::GetFlushRecPtr(std::ptr::null_mut()))
    }
}

/// Rows of the record that is being applied are ahead of the replay position until it is done. (A
/// redo position may stay ahead: at the end of recovery the server inserts records of its own
/// before its checkpoint.)
fn flush_replayed(redo: Lsn, rows: Lsn) -> Result<Lsn, EngineError> {
    let start = Instant::now();
    loop {
        // The walk may have come behind that.
        if is_of_old_timeline(redo) {
            return Err(EngineError::CheckpointNotNow {
                what: RECOVERY_ENDED,
            });
        }
        // SAFETY: a position that is shared.
        let replayed = Lsn(unsafe { pg_sys::GetXLogReplayRecPtr(std::ptr::null_mut()) });
        if replayed >= rows || shared_memory::control().redo_ended.load(Ordering::SeqCst) {
            return Ok(replayed.max(flush_record()));
        }
        if shutdown_asked() || start.elapsed() > REPLAY_WAIT {
            return Err(EngineError::CheckpointNotNow {
                what: "replay is held up in the middle of a record",
            });
        }
        interrupts::sleep_ms(1);
    }
}

/// Lets no recovery end before the record that is being replayed, and answers where that ends: it
/// may be in the commit log already, where we have read it.
fn flush_record() -> Lsn {
    // SAFETY: a position that is shared. XLogFlush in recovery raises the minimum recovery point
    // instead; it may raise an error.
    unsafe {
        let end = pg_sys::GetCurrentReplayRecPtr(std::ptr::null_mut());
        pg_sys::XLogFlush(end);
        Lsn(end)
    }
}
