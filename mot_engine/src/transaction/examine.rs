//! What a writer or locker finds at a row: heapam's HeapTupleSatisfiesUpdate over a chain.

use crate::clock::Clock;
use crate::ids::{CommandId, Slot, Xid};
use crate::row::{Anchor, Head, Judged, LockStrength, VersionRef, flags, judge_maker};
use crate::table::TableRef;

/// What stands in the way.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub(super) enum Found {
    /// Nothing: the newest state is the one the caller saw. `held`: the strongest lock the transaction already has on the row.
    Clear { held: Option<LockStrength> },
    /// Wait for this transaction.
    Busy(Xid),
    /// A newer committed state.
    Changed,
    /// Deleted by a committed transaction.
    Gone,
    /// The transaction itself changed it in this command.
    SelfModified(CommandId),
}

/// Rows of which it is known what lies below the transaction's own states.
const ROWS_KNOWN: usize = 8;

/// Where walks for locks may end: below a state that the transaction put on a row nothing comes in while it is there, so what was found then
/// is true. Else a transaction that locks a row and changes it again and again would walk all its states each time.
#[derive(Default)]
pub(super) struct Known {
    rows: [Option<KnownRow>; ROWS_KNOWN],
    /// Most transactions know of none, and have none to forget.
    is_used: bool,
}

#[derive(Copy, Clone)]
pub(super) struct KnownRow {
    table: TableRef,
    slot: Slot,
    /// A state of the transaction's own, which is not looked into.
    state: VersionRef,
    /// Nothing below stands in the way of this or anything weaker.
    strength: LockStrength,
    /// The strongest lock the transaction has below.
    held: Option<LockStrength>,
}

impl Known {
    fn place(slot: Slot) -> usize {
        slot.0 as usize % ROWS_KNOWN
    }

    pub(super) fn of(&self, table: TableRef, slot: Slot) -> Option<KnownRow> {
        self.rows[Known::place(slot)].filter(|row| row.table == table && row.slot == slot)
    }

    /// The transaction put a state upon `head`, for which nothing stood in the way of its strength.
    pub(super) fn put(
        &mut self,
        table: TableRef,
        slot: Slot,
        head: Head,
        state: VersionRef,
        strength: LockStrength,
        held: Option<LockStrength>,
    ) {
        if !head.has(Head::HAS_LOCKS) {
            return;
        }
        let before = self.of(table, slot);
        let is_upon = before.filter(|row| head.version() == Some(row.state));
        // What it holds stood in the way of nobody else's when it took it, and of all others' since.
        let strength = held.map_or(strength, |held| held.max(strength));
        self.is_used = true;
        self.rows[Known::place(slot)] = Some(KnownRow {
            table,
            slot,
            state,
            strength: is_upon.map_or(strength, |row| row.strength.max(strength)),
            held,
        });
    }

    /// States are taken back, and their memory may be used again.
    pub(super) fn forget(&mut self) {
        if std::mem::take(&mut self.is_used) {
            self.rows = [None; ROWS_KNOWN];
        }
    }
}

/// Examines a chain from `head` for an operation of a strength. Pinned, unlatched.
///
/// What does not conflict is passed over: a KEY SHARE lock is none of a change's business that left the keys alone, whether it has committed
/// or not. Such a locker finds the state it saw below.
///
/// Locks may lie below the newest state: those of KEY SHARE, which a change puts itself upon. The walk for them ends where a state says that
/// there are no more, or where `known` does; else each writer of a hot row, which always has a lock, would walk all its states since the horizon.
///
/// Who stands in the way is waited for only if nothing committed lies between that and what was seen: a row that has changed stays changed, however
/// the other ends, and who may not follow it need not wait to be told.
pub(super) fn examine(
    head: Head,
    seen: VersionRef,
    strength: LockStrength,
    known: Option<KnownRow>,
    clock: &impl Clock,
) -> Found {
    let known = known.filter(|row| strength <= row.strength);
    let known_at = |version| known.filter(|row| row.state == version);
    let mut held = None;
    let mut busy = None;
    let mut settled = None;
    let mut has_passed_committed = false;
    let mut at = head.version();
    while let Some(version) = at {
        at = version.next();
        if settled.is_some() && !version.is_lock() {
            if let Some(row) = known_at(version) {
                held = held.max(row.held);
                break;
            }
            if version.ends_locks() {
                break;
            }
            continue;
        }
        let verdict = judge_maker(version, clock);
        if version.is_lock() {
            match verdict {
                Judged::Running if strength.conflicts(version.strength()) => {
                    busy = busy.or(Some(version.xid()));
                }
                Judged::Mine => held = held.max(Some(version.strength())),
                _ => {}
            }
            continue;
        }
        settled = match verdict {
            Judged::Aborted => None,
            Judged::Running => {
                if strength.conflicts(version.strength()) {
                    busy = busy.or(Some(version.xid()));
                }
                None
            }
            Judged::Mine if version == seen => {
                held = held.max(Some(version.strength()));
                Some(Found::Clear { held })
            }
            Judged::Mine => Some(Found::SelfModified(changed_by(seen, version, clock))),
            Judged::Committed if version == seen => Some(Found::Clear { held }),
            Judged::Committed if version.is_tombstone() => Some(Found::Gone),
            Judged::Committed if !strength.conflicts(version.strength()) => {
                has_passed_committed = true;
                None
            }
            Judged::Committed => Some(Found::Changed),
        };
        if settled.is_none() {
            continue;
        }
        if let Some(row) = known_at(version) {
            held = held.max(row.held);
            break;
        }
        if !head.has(Head::HAS_LOCKS) || version.ends_locks() {
            break;
        }
    }
    match (settled, busy) {
        (Some(found @ (Found::Changed | Found::Gone)), _) => found,
        (_, Some(xid)) => Found::Busy(xid),
        (Some(Found::Clear { .. }), None) => Found::Clear { held },
        (Some(found), None) => found,
        (None, None) if has_passed_committed => Found::Changed,
        (None, None) => Found::Gone,
    }
}

/// The command that a writer is told of where this transaction changed the row after `seen`; `newest` is its newest state. As in heapam: that which changed what was
/// seen (its cmax), though a later one may have changed the row again; where another transaction changed it first, that of the newest, for there heapam follows
/// the states to their end.
fn changed_by(seen: VersionRef, newest: VersionRef, clock: &impl Clock) -> CommandId {
    let (mut first, mut at) = (newest.cid(), newest.next());
    while let Some(version) = at {
        if version == seen {
            return first;
        }
        at = version.next();
        if version.is_lock() {
            continue;
        }
        match judge_maker(version, clock) {
            Judged::Mine => first = version.cid(),
            Judged::Aborted => {}
            Judged::Running | Judged::Committed => break,
        }
    }
    newest.cid()
}

/// The newest data version at or below `at` that is not known to be aborted.
fn data_from(mut at: Option<VersionRef>) -> Option<VersionRef> {
    while let Some(version) = at {
        if version.flags() & (flags::LOCK_ONLY | flags::ABORTED) == 0 {
            return Some(version);
        }
        at = version.next();
    }
    None
}

/// The row's newest data version that is not known to be aborted.
pub(super) fn newest_data(anchor: &Anchor) -> Option<VersionRef> {
    data_from(anchor.head().version())
}

/// The newest data version below `version` that is not known to be aborted. A writer judged all it passed over, so what is aborted is known.
pub(super) fn data_below(version: VersionRef) -> Option<VersionRef> {
    data_from(version.next())
}
