//! Row locks: FOR UPDATE, FOR NO KEY UPDATE, FOR SHARE, FOR KEY SHARE.
//!
//! A lock is an entry in the chain: a version without a state. So it ends with its (sub)transaction
//! by the same rule that resolves versions, and waiting for it is waiting for a transaction.

use super::examine::{Found, examine};
use super::{Fresh, Kind, Transaction};
use crate::clock::Clock;
use crate::errors::EngineError;
use crate::ids::{CommandId, RowId, Xid};
use crate::memory::{Purpose, Urgency};
use crate::pause::{Point, reach};
use crate::row::{EMPTY_BODY, Head, LockStrength, VersionRef, block_bytes, flags};
use crate::session::Session;
use crate::table::TableRef;

/// What became of a row lock.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub enum Locked {
    /// Held.
    Done,
    /// Wait for this transaction, then call again.
    Busy(Xid),
    /// A newer committed state than the one seen.
    Changed,
    /// Deleted by a committed transaction.
    Gone,
    /// The transaction itself changed the row after what was seen; the command that did.
    SelfModified(CommandId),
}

/// What a full arena still has room for: rows are deleted there to make room, and a DELETE locks a
/// row first if a trigger is to see it, or if it was changed meanwhile. So does SELECT FOR UPDATE,
/// which often comes before one. A lock takes what the tombstone does, and both come back when the
/// transaction has ended.
fn urgency(strength: LockStrength) -> Urgency {
    match strength {
        LockStrength::Update => Urgency::Reserve,
        LockStrength::KeyShare | LockStrength::Share | LockStrength::NoKeyUpdate => {
            Urgency::Ordinary
        }
    }
}

/// A lock entry, unpublished.
pub(super) fn lock_entry(
    session: &Session,
    strength: LockStrength,
    xid: Xid,
    urgency: Urgency,
) -> Result<VersionRef, EngineError> {
    // Of a prepared transaction, whose locks are taken again, nothing was reserved.
    if xid > Xid::MAX {
        return Err(EngineError::XidTooHigh { max: Xid::MAX.0 });
    }
    let bytes = block_bytes(EMPTY_BODY.len());
    let block = session.local.allocate(bytes, Purpose::Rows, urgency)?;
    let kind = flags::LOCK_ONLY | (strength as u32) << flags::STRENGTH_SHIFT;
    // SAFETY: the block is fresh and large enough.
    Ok(unsafe { VersionRef::write(block, &EMPTY_BODY, xid, CommandId(0), kind) })
}

impl Transaction {
    /// Whether this transaction has locked or changed the row, so that others may be waiting for
    /// it. Walks its operations: for the waiting path only.
    pub fn holds(&self, table: TableRef, row_id: RowId) -> bool {
        self.operations.iter().any(|held| {
            (held.kind() == Kind::Lock || held.kind().is_data())
                && held.table == table
                && held.row_id() == row_id
        })
    }

    /// What keeps the transaction from locking a row in the state seen; `None`: nothing. It changes
    /// nothing, so the transaction needs no id.
    pub fn obstacle(
        &self,
        session: &Session,
        clock: &impl Clock,
        table: TableRef,
        row_id: RowId,
        seen: VersionRef,
        strength: LockStrength,
    ) -> Option<Locked> {
        let _pin = session.local.pin();
        let Some(anchor) = table.anchor(row_id) else {
            return Some(Locked::Gone);
        };
        let known = self.known.of(table, row_id);
        refusal(examine(anchor.head(), seen, strength, known, clock))
    }

    /// Locks a row in the state seen, until the (sub)transaction ends. May use the arena's reserve,
    /// as `delete` does, where it is as strong.
    #[allow(clippy::too_many_arguments)]
    pub fn lock(
        &mut self,
        session: &Session,
        clock: &impl Clock,
        table: TableRef,
        row_id: RowId,
        seen: VersionRef,
        strength: LockStrength,
        xid: Xid,
    ) -> Result<Locked, EngineError> {
        self.begin_operation(table.key(), xid)?;
        let _charge = session.charge(table);
        let _pin = session.local.pin();
        let Some(anchor) = table.anchor(row_id) else {
            return Ok(Locked::Gone);
        };
        let mut fresh = Fresh::none(session);
        loop {
            let head = anchor.head();
            let known = self.known.of(table, row_id);
            let found = examine(head, seen, strength, known, clock);
            if matches!(found, Found::Clear { held } if held >= Some(strength)) {
                return Ok(Locked::Done);
            }
            if let Some(refusal) = refusal(found) {
                return Ok(refusal);
            }
            let entry = match fresh.version() {
                Some(entry) => entry,
                None => fresh.insert(lock_entry(session, strength, xid, urgency(strength))?),
            };
            reach(Point::LockBeforePublish);
            entry.set_next(head);
            if anchor.publish(
                head,
                head.with_address(entry.address())
                    .with_flags(Head::HAS_LOCKS),
            ) {
                fresh.keep();
                if !head.has(Head::HAS_LOCKS)
                    && let Some(newest) = head.version()
                    && !newest.ends_locks()
                {
                    debug_assert!(!newest.is_lock());
                    newest.add_flags(flags::NO_LOCKS_BELOW);
                }
                self.push(Kind::Lock, table, row_id, entry.address());
                return Ok(Locked::Done);
            }
            anchor.wait_unlatched();
        }
    }
}

/// The answer to a locker that is not to have the row; `None`: it may have it.
fn refusal(found: Found) -> Option<Locked> {
    match found {
        Found::Clear { .. } => None,
        Found::Busy(xid) => Some(Locked::Busy(xid)),
        Found::Changed => Some(Locked::Changed),
        Found::Gone => Some(Locked::Gone),
        Found::SelfModified(cid) => Some(Locked::SelfModified(cid)),
    }
}
