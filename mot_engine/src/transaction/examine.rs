//! What a writer or locker finds at a row: heapam's HeapTupleSatisfiesUpdate over a chain.

use crate::clock::Clock;
use crate::ids::{CommandId, RowId, Xid};
use crate::row::{Anchor, Head, LockStrength, TxnStatus, VersionRef, flags, resolve_maker};
use crate::table::TableRef;

/// What is in the way.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub(super) enum Found {
    /// Nothing: the newest state is the one the caller saw. `held`: the strongest lock the
    /// transaction already has on the row.
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

/// Rows of which it is known what is below the transaction's own states.
const ROWS_KNOWN: usize = 8;

/// Where walks for locks may end. Below a state that the transaction put on a row nothing comes in
/// while it is there, so what was found then is true. Else a transaction that locks a row and
/// changes it again and again would walk all its states each time.
#[derive(Default)]
pub(super) struct Known {
    rows: [Option<KnownRow>; ROWS_KNOWN],
    /// Most transactions know of none, and have none to forget.
    is_used: bool,
}

#[derive(Copy, Clone)]
pub(super) struct KnownRow {
    table: TableRef,
    row_id: RowId,
    /// A state of the transaction's own, which is not looked into.
    state: VersionRef,
    /// Nothing below is in the way of this or anything weaker.
    strength: LockStrength,
    /// The strongest lock the transaction has below.
    held: Option<LockStrength>,
}

impl Known {
    fn place(row_id: RowId) -> usize {
        row_id.0 as usize % ROWS_KNOWN
    }

    pub(super) fn of(&self, table: TableRef, row_id: RowId) -> Option<KnownRow> {
        self.rows[Known::place(row_id)].filter(|row| row.table == table && row.row_id == row_id)
    }

    /// The transaction put a state upon `head`, for which nothing stood in the way of its strength.
    pub(super) fn put(
        &mut self,
        table: TableRef,
        row_id: RowId,
        head: Head,
        state: VersionRef,
        strength: LockStrength,
        held: Option<LockStrength>,
    ) {
        if !head.has(Head::HAS_LOCKS) {
            return;
        }
        let before = self.of(table, row_id);
        let is_upon = before.filter(|row| head.version() == Some(row.state));
        // What it holds was in the way of no other when it took it, and of all others'
        // since.
        let strength = held.map_or(strength, |held| held.max(strength));
        self.is_used = true;
        self.rows[Known::place(row_id)] = Some(KnownRow {
            table,
            row_id,
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
/// What does not conflict is passed over. A KEY SHARE lock is none of a change's business that left
/// the keys alone, whether it has committed or not. Such a locker finds the state it saw below.
///
/// Locks may lie below the newest state: those of KEY SHARE, which a change puts itself upon. The
/// walk for them ends where a state says that there are no more, or where `known` does; else each
/// writer of a hot row, which always has a lock, would walk all its states since the horizon.
///
/// One that is in the way is waited for only if the row is still as it was seen. One that has
/// changed stays changed, however the other ends: whether another transaction did that, or this
/// one.
pub(super) fn examine(
    head: Head,
    seen: VersionRef,
    strength: LockStrength,
    known: Option<KnownRow>,
    clock: &impl Clock,
) -> Found {
    let known = known.filter(|row| strength <= row.strength);
    let known_at = |version| known.filter(|row| row.state == version);
    let in_the_way = |of: VersionRef| strength.conflicts(of.strength()).then(|| of.xid());
    let mut held = None;
    let mut busy = None;
    let mut is_as_seen = false;
    let mut has_passed_committed = false;
    let mut at = head.version();
    while let Some(version) = at {
        at = version.next();
        if is_as_seen && !version.is_lock() {
            if let Some(row) = known_at(version) {
                held = held.max(row.held);
                break;
            }
            if version.ends_locks() {
                break;
            }
            continue;
        }
        let status = resolve_maker(version, clock);
        if version.is_lock() {
            match status {
                TxnStatus::Running => busy = busy.or(in_the_way(version)),
                TxnStatus::Mine => held = held.max(Some(version.strength())),
                _ => {}
            }
            continue;
        }
        match status {
            TxnStatus::Aborted => continue,
            TxnStatus::Running => {
                busy = busy.or(in_the_way(version));
                continue;
            }
            TxnStatus::Mine if is_as_own(version, seen, clock) => {
                held = held.max(Some(version.strength()))
            }
            TxnStatus::Mine => return own_change(seen, version, strength, clock),
            TxnStatus::Committed if version.is_or_replaces(seen) => {}
            TxnStatus::Committed if version.is_tombstone() => return Found::Gone,
            TxnStatus::Committed if !strength.conflicts(version.strength()) => {
                has_passed_committed = true;
                continue;
            }
            TxnStatus::Committed => return Found::Changed,
        }
        is_as_seen = true;
        if let Some(row) = known_at(version) {
            held = held.max(row.held);
            break;
        }
        if !head.has(Head::HAS_LOCKS) || version.ends_locks() {
            break;
        }
    }
    match busy {
        Some(xid) => Found::Busy(xid),
        None if is_as_seen => Found::Clear { held },
        None if has_passed_committed => Found::Changed,
        None => Found::Gone,
    }
}

/// Whether an own state is the one seen, or its image.
fn is_as_own(version: VersionRef, seen: VersionRef, clock: &impl Clock) -> bool {
    version == seen
        || (!version.is_lock()
            && version.is_own_image_of(seen)
            && clock.is_current(version.xid())
            && clock.is_current(seen.xid()))
}

/// What is found where this transaction has changed the row since `seen`; `newest` is its newest
/// state. As in heapam:
///
/// - A writer gets the command that changed what was seen (its cmax), though a later one may
///   have changed the row again.
/// - Where another transaction changed it first, the states are followed to their end. The row is
///   deleted, or the writer gets the command of the newest.
/// - A KEY SHARE locker follows no change of another that left the keys alone. It locks what was
///   seen, and the own state above holds that lock.
fn own_change(
    seen: VersionRef,
    newest: VersionRef,
    strength: LockStrength,
    clock: &impl Clock,
) -> Found {
    let (mut first, mut at) = (newest.cid(), newest.next());
    let mut has_passed_committed = false;
    while let Some(version) = at {
        if version.is_or_replaces(seen) && has_passed_committed {
            let held = Some(newest.strength());
            return Found::Clear { held };
        }
        if version.is_or_replaces(seen) || is_as_own(version, seen, clock) {
            return Found::SelfModified(first);
        }
        at = version.next();
        if version.is_lock() {
            continue;
        }
        match resolve_maker(version, clock) {
            TxnStatus::Mine => first = version.cid(),
            TxnStatus::Aborted => {}
            TxnStatus::Committed if !strength.conflicts(version.strength()) => {
                has_passed_committed = true;
            }
            TxnStatus::Running | TxnStatus::Committed => break,
        }
    }
    if newest.is_tombstone() {
        Found::Gone
    } else {
        Found::SelfModified(newest.cid())
    }
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

/// The newest data version below `version` that is not known to be aborted. A writer resolved all
/// it passed over, so what is aborted is known.
pub(super) fn data_below(version: VersionRef) -> Option<VersionRef> {
    data_from(version.next())
}
