//! Resolves transactions during replay, before the server truncates its commit log.
//!
//! Replay asks for no outcomes; `finish`, the sweeper and readers ask later. But the log also says
//! where the server that wrote it truncated its commit log. After that record is replayed, a
//! recovery would read "not committed" for all older transactions. So the replaying process
//! resolves what they left, right before.
//!
//! Contract: all that the log has of transactions below `below` is applied, and they have ended
//! there. Readers and the sweeper may run beside it: the result is a hint, which all may set.

use super::finish::{Finished, resolve_definitions_below};
use super::look::{look_at_row_ids, note};
use crate::clock::Clock;
use crate::errors::EngineError;
use crate::ids::{RowId, Xid};
use crate::row::{Anchor, Head, TxnStatus, VersionRef, flags, resolve_maker};
use crate::session::Session;
use crate::table::TableRef;

/// Resolves what transactions below `below` made and no process has resolved: versions, tables and
/// indexes. What the clock takes for running stays open. `threads` look for it; the clock is asked
/// by the caller's thread alone. Returns how many versions got their hint.
pub(super) fn resolve_below(
    session: &Session,
    clock: &impl Clock,
    below: Xid,
    threads: usize,
) -> Result<u64, EngineError> {
    resolve_definitions_below(session, clock, below, &mut Finished::default());
    let mut resolved = 0;
    for walk in session.tables() {
        let table = walk.table();
        for row_id in open_row_ids(session, table, below, threads)? {
            let _pin = session.local.pin();
            let Some(anchor) = table.anchor(row_id) else {
                continue;
            };
            for version in versions(anchor).filter(|version| is_open(*version, below)) {
                match resolve_maker(version, clock) {
                    TxnStatus::Running | TxnStatus::Mine => {}
                    TxnStatus::Committed | TxnStatus::Aborted => resolved += 1,
                }
            }
            // The sweeper may have passed by when there was nothing to take out yet.
            table.set_dirty(row_id);
        }
    }
    Ok(resolved)
}

/// A row's versions, newest first. The caller is pinned.
fn versions(anchor: &Anchor) -> impl Iterator<Item = VersionRef> {
    std::iter::successors(anchor.head().version(), |version| version.next())
}

fn is_open(version: VersionRef, below: Xid) -> bool {
    version.flags() & (flags::COMMITTED | flags::ABORTED) == 0 && version.xid() < below
}

/// The rows with a version that is to be resolved.
fn open_row_ids(
    session: &Session,
    table: TableRef,
    below: Xid,
    threads: usize,
) -> Result<Vec<RowId>, EngineError> {
    let found = look_at_row_ids(
        session,
        table,
        threads,
        |row_id, anchor, open: &mut Vec<RowId>| {
            if anchor.head().has(Head::QUIESCENT)
                || !versions(anchor).any(|version| is_open(version, below))
            {
                return Ok(());
            }
            note(open, row_id)
        },
    )?;
    Ok(found.into_iter().flatten().collect())
}
