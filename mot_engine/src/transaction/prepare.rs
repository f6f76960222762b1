//! Two-phase commit: a transaction is logged, given up by its session, and ended later by any
//! session.
//!
//! Protocol (the caller's part is in `mot_ext/src/transaction/xact.rs`):
//!
//! 1. Before PostgreSQL prepares: `log_locks`, then `log`, as before a commit. Anything may still
//!    fail; then `abort`.
//! 2. When it has prepared: `give_up`. The transaction is running for every session from before
//!    this until it is ended, and no session can end it before this is done. So the versions are
//!    still this transaction's own, and no other puts one on top.
//! 3. From then on no session owns versions and definitions: the clock says what became of them, as
//!    after a crash. Others wait for the transaction as for any other. When it is ended, the
//!    process that meets a version resolves it. The rows are marked for the sweeper, which removes
//!    what was rolled back, with its index entries and FULL_IMAGE_NEXT, and row locks.
//!
//! - **Counters** count it as committed at once, since no code of its own runs at the end. The
//!   versions are flagged COUNTED_EARLY. The process that removes a flagged one that was rolled
//!   back corrects the counters (`reclaim/clean.rs`).
//! - **After a restart** the same versions come from the log or a checkpoint, and
//!   `recovery::finish` leaves them open. They are then held with the strength of a key change,
//!   whatever it was: stronger than needed, never weaker.
//! - **Row locks** on rows that the transaction then changed are held by the versions, too. The
//!   others (`bare_locks`) are logged in records of their own and kept until the transaction has
//!   ended (`kept_locks.rs`).
//! - **Definitions** keep the ids of their makers and droppers, and the clock says whether they
//!   exist. The sweeping process resolves them (`reclaim/given_up.rs`).

use super::commit::{Counts, base_below, last_own, live_bytes, trim};
use super::examine::{data_below, newest_data};
use super::kept_locks::Unlisted;
use super::lock::lock_entry;
use super::log::{Mark, append};
use super::pinned::Pinned;
use super::{Fresh, Kind, Log, Operation, Own, Transaction};
use crate::errors::EngineError;
use crate::ids::Xid;
use crate::log::{LOCKS_PER_RECORD, RowLock, write_locks};
use crate::memory::Urgency;
use crate::pause::{Point, reach};
use crate::row::{Head, LockStrength, flags};
use crate::session::Session;
use crate::sync::is_broken;
use crate::table::TableRef;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Puts row locks of a prepared transaction back after a restart. Nothing happens where one is
/// there. Before any session writes.
pub(super) fn put_back(session: &Session, locks: &[RowLock], xid: Xid) -> Result<(), EngineError> {
    let runs = locks.chunk_by(|one, other| one.table == other.table);
    for run in runs {
        // None: the table was dropped, so the transaction has ended.
        let Some(walk) = session.catalog().hold(run[0].table) else {
            continue;
        };
        for lock in run {
            hold_row_lock(session, walk.table(), lock, xid)?;
        }
    }
    Ok(())
}

fn hold_row_lock(
    session: &Session,
    table: TableRef,
    lock: &RowLock,
    xid: Xid,
) -> Result<(), EngineError> {
    let _pin = session.local.pin();
    let Some(anchor) = table.anchor(lock.row_id) else {
        return Ok(());
    };
    let mut fresh = Fresh::none(session);
    loop {
        let head = anchor.head();
        // Not a row: its transaction has ended, so that others could remove it.
        if head.newest_data().is_none() || is_held(head, lock.strength, xid) {
            return Ok(());
        }
        let entry = match fresh.version() {
            Some(entry) => entry,
            None => fresh.insert(lock_entry(session, lock.strength, xid, Urgency::Reserve)?),
        };
        entry.set_next(head);
        let locked = head
            .with_address(entry.address())
            .with_flags(Head::HAS_LOCKS);
        if anchor.publish(head, locked) {
            fresh.keep();
            // So that the sweeper takes it out when its transaction has ended.
            table.set_dirty(lock.row_id);
            return Ok(());
        }
        anchor.wait_unlatched();
    }
}

/// Whether the transaction has such a lock entry in the chain.
fn is_held(head: Head, strength: LockStrength, xid: Xid) -> bool {
    let mut at = head.version();
    while let Some(version) = at {
        if version.is_lock() && version.xid() == xid && version.strength() >= strength {
            return true;
        }
        at = version.next();
    }
    false
}

impl Transaction {
    /// Logs the row locks that a restart would lose, as work of the top-level transaction `xid`,
    /// and keeps the records.
    pub fn log_locks(
        &mut self,
        session: &Session,
        xid: Xid,
        log: &mut impl Log,
    ) -> Result<(), EngineError> {
        let locks = self.bare_locks(session)?;
        let mut record = Vec::new();
        for some in locks.chunks(LOCKS_PER_RECORD) {
            write_locks(&mut record, some)?;
            // Before it is logged, since nothing may fail behind that.
            let kept = Unlisted::new(session, &record, Urgency::Ordinary)?;
            let lsn = log.held(|log| {
                let _mark = Mark::raise(session);
                let lsn = append(session, log, &record);
                kept.list(lsn, xid);
                lsn
            });
            let last_lsn = &session.engine().root().last_lsn;
            last_lsn.fetch_max(lsn.0, Ordering::AcqRel);
        }
        Ok(())
    }

    /// The row locks that neither a version nor the log holds: a restart would lose them.
    /// Ascending, each once.
    fn bare_locks(&self, session: &Session) -> Result<Vec<RowLock>, EngineError> {
        let _pin = session.local.pin();
        let mut found = Vec::new();
        for operation in &self.operations {
            let is_temporary = operation.table.key().is_temporary();
            if operation.kind() != Kind::Lock || is_temporary || is_changed(&self.own, operation) {
                continue;
            }
            let anchor = operation.table.anchor(operation.row_id());
            let Some(entry) = anchor.and_then(|anchor| self.own.find(anchor.head(), operation))
            else {
                continue;
            };
            found
                .try_reserve(1)
                .map_err(|_| EngineError::OutOfProcessMemory)?;
            found.push(RowLock {
                table: operation.table.id(),
                strength: entry.strength(),
                row_id: operation.row_id(),
            });
        }
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    /// The transaction is prepared: it is no longer this session's. Cannot fail.
    pub fn give_up(&mut self, session: &Session) {
        reach(Point::PrepareBeforeGivingUp);
        let mut pinned = Pinned::begin(session);
        let mut counts = Counts::default();
        let mut has_defined = false;
        for operation in &self.operations {
            pinned.step();
            match operation.kind() {
                Kind::Insert | Kind::Update | Kind::Delete => {
                    let grown = give_up_row(session, &self.own, operation);
                    counts.add(operation, self.grown(operation, grown));
                }
                Kind::Lock => {}
                Kind::CreateTable => operation.table.makers().give_up_creation(),
                Kind::DropTable => operation.table.makers().give_up_drop(),
                Kind::CreateIndex => operation.index().makers().give_up_creation(),
                Kind::DropIndex => operation.index().makers().give_up_drop(),
            }
            if !operation.kind().is_of_row() {
                has_defined = true;
            } else if !is_broken("prepare: the dirty bit of what it gives up") {
                operation.table.set_dirty(operation.row_id());
            }
        }
        self.give_up_own_tables(&mut pinned, &mut counts);
        if has_defined && !is_broken("prepare: the definitions that it gives up") {
            session.leave_definitions_open();
        }
        counts.flush();
        pinned.end(Duration::ZERO);
        self.clear();
    }
}

/// Whether the row's newest state is this transaction's.
fn is_changed(own: &Own, operation: &Operation) -> bool {
    operation
        .table
        .anchor(operation.row_id())
        .and_then(newest_data)
        .is_some_and(|newest| own.has(newest.xid()))
}

/// Leaves only a row's last state. Returns by how much the bytes of live rows will change.
fn give_up_row(session: &Session, own: &Own, operation: &Operation) -> i64 {
    let Some(version) = operation
        .table
        .anchor(operation.row_id())
        .and_then(|anchor| last_own(anchor, own))
        .filter(|version| version.address() == operation.address())
    else {
        // An earlier state: cut out together with the last one.
        return 0;
    };
    let base = base_below(version, own);
    if data_below(version) != base {
        trim(session, operation.table, operation.row_id(), own, version);
    }
    version.add_flags(flags::COUNTED_EARLY);
    live_bytes(version) - base.map_or(0, live_bytes)
}
