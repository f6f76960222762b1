//! Changed and deleted rows.

use super::KeysUnchanged;
use super::examine::{Found, examine};
use super::insert::check_length;
use super::{Fresh, Kind, Transaction};
use crate::clock::Clock;
use crate::errors::EngineError;
use crate::ids::{CommandId, Ordinal, RowId, Xid};
use crate::key::{encode_row, encode_row_if_any, key_attributes_unchanged};
use crate::memory::{Purpose, Urgency};
use crate::pause::{Point, reach};
use crate::row::{EMPTY_BODY, Head, LockStrength, MOVED_AWAY_BODY, VersionRef, block_bytes, flags};
use crate::session::Session;
use crate::sync::is_broken;
use crate::table::TableRef;

/// What became of an update or delete.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub enum Written {
    /// Installed.
    Done(VersionRef),
    /// Wait for this transaction, then call again.
    Busy(Xid),
    /// A newer committed state than the one seen.
    Changed,
    /// Deleted by a committed transaction.
    Gone,
    /// The transaction itself changed the row after what was seen; the command that did.
    SelfModified(CommandId),
}

impl Transaction {
    /// Puts a new state on a row. `seen` is the state the caller bases it on. `enter` makes the
    /// index entries.
    #[allow(clippy::too_many_arguments)]
    pub fn update(
        &mut self,
        session: &Session,
        clock: &impl Clock,
        table: TableRef,
        row_id: RowId,
        seen: VersionRef,
        body: &[u8],
        xid: Xid,
        cid: CommandId,
    ) -> Result<Written, EngineError> {
        check_length(body)?;
        let _pin = session.local.pin();
        let changed = changed_keys(session, table, seen.body(), body)?;
        let change = Change::to(body, changed, seen, clock);
        self.put(session, clock, table, row_id, seen, change, xid, cid)
    }

    /// As `update`, to a state that differs from `seen` in columns alone that no index had when
    /// `unchanged` was made ([`Session::keys_unchanged`]). Keys are compared only if an index has
    /// come since.
    #[allow(clippy::too_many_arguments)]
    pub fn update_non_key(
        &mut self,
        session: &Session,
        clock: &impl Clock,
        table: TableRef,
        row_id: RowId,
        seen: VersionRef,
        body: &[u8],
        xid: Xid,
        cid: CommandId,
        unchanged: KeysUnchanged,
    ) -> Result<Written, EngineError> {
        check_length(body)?;
        let _pin = session.local.pin();
        let changed = if unchanged.is_still(table) {
            0
        } else {
            changed_keys(session, table, seen.body(), body)?
        };
        let change = Change::to(body, changed, seen, clock);
        self.put(session, clock, table, row_id, seen, change, xid, cid)
    }

    /// Puts another image of a state on its row: an own one, of which the tail alone changes. It
    /// has the command and the ordinal of the one seen, so all that names or sees that finds it.
    /// It goes with the subtransaction that made it, and the one seen is back.
    pub fn replace_own(
        &mut self,
        session: &Session,
        clock: &impl Clock,
        (table, row_id): (TableRef, RowId),
        (seen, body): (VersionRef, &[u8]),
        xid: Xid,
    ) -> Result<Written, EngineError> {
        assert!(!seen.is_known_committed() && clock.is_current(seen.xid()));
        check_length(body)?;
        let _pin = session.local.pin();
        let changed = changed_keys(session, table, seen.body(), body)?;
        let change = Change {
            ordinal: Some(seen.ordinal()),
            ..Change::to(body, changed, seen, clock)
        };
        self.put(session, clock, table, row_id, seen, change, xid, seen.cid())
    }

    /// The row lock that an update to a state takes: a transaction that waits for the row, or locks
    /// a newer state of it first, is to take the same.
    pub fn strength_of_update(
        session: &Session,
        table: TableRef,
        seen: VersionRef,
        body: &[u8],
    ) -> Result<LockStrength, EngineError> {
        let _pin = session.local.pin();
        Ok(strength_of(changed_keys(
            session,
            table,
            seen.body(),
            body,
        )?))
    }

    /// Deletes a row. May use the arena's reserve.
    #[allow(clippy::too_many_arguments)]
    pub fn delete(
        &mut self,
        session: &Session,
        clock: &impl Clock,
        table: TableRef,
        row_id: RowId,
        seen: VersionRef,
        xid: Xid,
        cid: CommandId,
    ) -> Result<Written, EngineError> {
        self.end_row(session, clock, table, row_id, seen, &EMPTY_BODY, xid, cid)
    }

    /// As `delete`, of a row that goes to another partition: a transaction that waited for it
    /// learns so ([`Session::is_moved_away`]).
    #[allow(clippy::too_many_arguments)]
    pub fn delete_moved_away(
        &mut self,
        session: &Session,
        clock: &impl Clock,
        table: TableRef,
        row_id: RowId,
        seen: VersionRef,
        xid: Xid,
        cid: CommandId,
    ) -> Result<Written, EngineError> {
        self.end_row(
            session,
            clock,
            table,
            row_id,
            seen,
            &MOVED_AWAY_BODY,
            xid,
            cid,
        )
    }

    /// Puts a tombstone with this body on a row.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    fn end_row(
        &mut self,
        session: &Session,
        clock: &impl Clock,
        table: TableRef,
        row_id: RowId,
        seen: VersionRef,
        body: &[u8],
        xid: Xid,
        cid: CommandId,
    ) -> Result<Written, EngineError> {
        let change = Change::to_nothing(body);
        let _pin = session.local.pin();
        self.put(session, clock, table, row_id, seen, change, xid, cid)
    }

    #[allow(clippy::too_many_arguments)]
    fn put(
        &mut self,
        session: &Session,
        clock: &impl Clock,
        table: TableRef,
        row_id: RowId,
        seen: VersionRef,
        change: Change<'_>,
        xid: Xid,
        cid: CommandId,
    ) -> Result<Written, EngineError> {
        self.begin_operation(table.key(), xid)?;
        let _charge = session.charge(table);
        let Some(anchor) = table.anchor(row_id) else {
            return Ok(Written::Gone);
        };
        let is_own =
            |version: VersionRef| !version.is_known_committed() && clock.is_current(version.xid());
        let mut fresh = Fresh::none(session);
        loop {
            let head = anchor.head();
            let known = self.known.of(table, row_id);
            let held = match examine(head, seen, change.strength, known, clock) {
                Found::Clear { held } => held,
                Found::Busy(xid) => return Ok(Written::Busy(xid)),
                Found::Changed => return Ok(Written::Changed),
                Found::Gone => return Ok(Written::Gone),
                Found::SelfModified(cid) => return Ok(Written::SelfModified(cid)),
            };
            let is_first = fresh.version().is_none();
            if is_first && is_own(seen) {
                self.own_rows
                    .make_room(session, table, row_id, seen, is_own)?;
            }
            let version = match fresh.version() {
                Some(version) => version,
                None => fresh.insert(change.allocate(session, xid, cid)?),
            };
            // Each time: what is below may have changed since the last attempt.
            if is_first || !is_broken("rows: the ordinal of another attempt") {
                let below = head.newest_data();
                let next = below.map_or(Ordinal(0), |below| below.ordinal().next());
                version.put_ordinal(change.ordinal.unwrap_or(next));
            }
            reach(Point::WriteBeforePublish);
            version.set_next(head);
            let moved = if change.flags & flags::KEYS_CHANGED != 0 {
                Head::KEYS_MOVED
            } else {
                0
            };
            if anchor.publish(head, head.with_address(version.address()).with_flags(moved)) {
                fresh.keep();
                self.push(change.kind, table, row_id, version.address());
                self.own_rows.put(table, row_id, version);
                self.known
                    .put(table, row_id, head, version, change.strength, held);
                return Ok(Written::Done(version));
            }
            // The row is latched, or was changed: resolve anew.
            anchor.wait_unlatched();
        }
    }
}

/// The transaction's own earlier state is cut out at commit: what it did to unique keys, the later
/// state says in its place.
fn key_change_of_own(seen: VersionRef, clock: &impl Clock) -> u32 {
    let key_change = seen.flags() & (flags::UNIQUE_KEYS_CHANGED | flags::COMMITTED);
    if key_change == flags::UNIQUE_KEYS_CHANGED && clock.is_current(seen.xid()) {
        flags::UNIQUE_KEYS_CHANGED
    } else {
        0
    }
}

struct Change<'a> {
    kind: Kind,
    body: &'a [u8],
    /// `None`: the one behind that of the state below.
    ordinal: Option<Ordinal>,
    flags: u32,
    strength: LockStrength,
    urgency: Urgency,
}

impl<'a> Change<'a> {
    /// To another state, of which these keys differ from those of `seen`.
    fn to(body: &'a [u8], changed: u32, seen: VersionRef, clock: &impl Clock) -> Self {
        Change {
            kind: Kind::Update,
            body,
            ordinal: None,
            flags: changed | key_change_of_own(seen, clock),
            strength: strength_of(changed),
            urgency: Urgency::Ordinary,
        }
    }

    /// To the row's end, of which the body has nothing but a note.
    fn to_nothing(body: &'a [u8]) -> Self {
        Change {
            kind: Kind::Delete,
            body,
            ordinal: None,
            flags: flags::TOMBSTONE,
            strength: LockStrength::Update,
            urgency: Urgency::Reserve,
        }
    }

    fn allocate(
        &self,
        session: &Session,
        xid: Xid,
        cid: CommandId,
    ) -> Result<VersionRef, EngineError> {
        let bytes = block_bytes(self.body.len());
        let block = session.local.allocate(bytes, Purpose::Rows, self.urgency)?;
        // SAFETY: the block is fresh and large enough.
        Ok(unsafe { VersionRef::write(block, self.body, xid, cid, self.flags) })
    }
}

/// The row lock of an update that changes these keys.
fn strength_of(changed: u32) -> LockStrength {
    if changed & flags::UNIQUE_KEYS_CHANGED != 0 {
        LockStrength::Update
    } else {
        LockStrength::NoKeyUpdate
    }
}

/// Which keys differ between two rows, as version flags.
///
/// As on heap tables, a lock of a row's key keeps its values as they are. So a value of a unique
/// index that is written otherwise (1.0 and 1.00) is another one to lockers, though its key is the
/// same: ON UPDATE CASCADE passes it on to the rows whose inserters hold those locks.
fn changed_keys(
    session: &Session,
    table: TableRef,
    old: &[u8],
    new: &[u8],
) -> Result<u32, EngineError> {
    let mut changed = 0;
    for index in table.all_indexes() {
        let definition = session.definition(index)?;
        if key_attributes_unchanged(definition, old, new)? {
            continue;
        }
        if index.is_key() {
            changed |= flags::UNIQUE_KEYS_CHANGED;
        }
        let differs = session.with_keys(|keys| {
            let [old_key, new_key, ..] = keys;
            encode_row_if_any(definition, old, old_key)?;
            // As in `enter`.
            if index.is_unresolved() || index.is_dead() {
                encode_row_if_any(definition, new, new_key)?;
            } else {
                encode_row(definition, new, new_key)?;
            }
            Ok::<_, EngineError>(old_key.as_slice() != new_key.as_slice())
        })?;
        if differs {
            changed |= flags::KEYS_CHANGED;
        }
    }
    Ok(changed)
}
