//! Removes versions of one row, and the index entries that only these needed. Frees the row id when
//! nothing is left.

use super::tail::{cut_replaced, cut_tail, outdates};
use crate::engine::State;
use crate::errors::EngineError;
use crate::ids::{RowId, Xid};
use crate::index::RemainingKeys;
use crate::key::KeyBuffer;
use crate::memory::Purpose;
use crate::pause::{Point, reach};
use crate::row::{
    Anchor, Head, LatchedAnchor, VersionRef, counted_as_top, counted_early, flags, unlink,
};
use crate::session::{OldSnapshots, Session};
use crate::sync::is_broken;
use crate::table::{IndexRef, TableRef};
use std::sync::atomic::{AtomicI64, Ordering};

/// Versions taken out in one go. More are taken in further rounds, so that a latch is held shortly
/// and no memory is needed.
const ROUND: usize = 32;

/// What a round takes out of a latched chain.
pub(crate) struct Taken {
    versions: [Option<VersionRef>; ROUND],
    count: usize,
    /// Another process is cleaning the row.
    busy: bool,
    /// Entries must be removed.
    cleaning: bool,
    /// Something had to be left for another round, or for the sweeper.
    full: bool,
    refused: bool,
    /// The log is being replayed: see `Uncounted`.
    replaying: bool,
    uncounted: Uncounted,
}

/// What counters have of transactions that were rolled back after all.
///
/// - A prepared one was counted as if it replaced the committed state below it, whatever came on
///   top later.
/// - While the log is replayed, each state is counted as if it replaced the one below it, whatever
///   becomes of that: in sum, the states on top of their chains count. So it matters only if one is
///   taken out that is on top.
#[derive(Default)]
pub(super) struct Uncounted {
    rows: i64,
    row_bytes: i64,
    stale_versions: i64,
}

impl Uncounted {
    /// Notes a version that was just unlinked; what was below it still is (`next` of an unlinked
    /// version stays).
    pub(super) fn add(&mut self, version: VersionRef, counts_as_top: bool) {
        let now = version.flags();
        let (base, rows, row_bytes) = if now & flags::ABORTED == 0 || version.is_lock() {
            return;
        } else if counts_as_top {
            counted_as_top(version)
        } else if now & flags::COUNTED_EARLY != 0 {
            counted_early(version)
        } else {
            return;
        };
        self.rows += rows;
        self.row_bytes += row_bytes;
        self.stale_versions += i64::from(base.is_some());
    }

    pub(super) fn take_back(&self, table: TableRef) {
        let counters = table.counters();
        let take = |counter: &AtomicI64, count: i64| {
            if count != 0 {
                counter.fetch_sub(count, Ordering::Relaxed);
            }
        };
        take(&counters.rows, self.rows);
        take(&counters.row_bytes, self.row_bytes);
        take(&counters.stale_versions, self.stale_versions);
    }
}

impl Taken {
    /// Takes a version out, unless the round is full or its entries cannot be removed now.
    pub(crate) fn take(&mut self, head: &mut Head, version: VersionRef) {
        if self.count == ROUND {
            self.full = true;
            return;
        }
        let has_keys = version.has_keys();
        let needs_cleaning =
            has_keys && (head.has(Head::KEYS_MOVED) || !other_keys(*head, version));
        if needs_cleaning && self.busy {
            self.refused = true;
            return;
        }
        let counts_as_top = self.replaying && head.newest_data() == Some(version);
        if unlink(head, version) {
            self.uncounted.add(version, counts_as_top);
            self.cleaning |= needs_cleaning;
            self.versions[self.count] = Some(version);
            self.count += 1;
        }
    }

    fn iter(&self) -> impl Iterator<Item = VersionRef> {
        self.versions[..self.count].iter().copied().flatten()
    }
}

/// Whether the chain has another version with keys. If KEYS_MOVED is not set they are the same
/// keys.
fn other_keys(head: Head, version: VersionRef) -> bool {
    let mut at = head.version();
    while let Some(other) = at {
        if other != version && other.has_keys() {
            return true;
        }
        at = other.next();
    }
    false
}

/// Lets `choose` take versions out of the row's latched chain (called again while rounds are full),
/// removes the index entries that only they needed, retires them, and gives the row id back if the
/// chain is empty then. `choose` may change the head's flags; it asks no `Clock`. The caller is
/// pinned. Returns how many versions were taken out.
pub(crate) fn clean_row(
    session: &Session,
    table: TableRef,
    row_id: RowId,
    mut choose: impl FnMut(&mut Head, &mut Taken),
) -> usize {
    debug_assert!(session.local.is_pinned());
    let Some(anchor) = table.anchor(row_id) else {
        return 0;
    };
    let mut total = 0;
    loop {
        let mut latched = anchor.latch();
        let mut head = latched.head;
        if head.is_free() {
            return total;
        }
        let mut taken = Taken {
            versions: [None; ROUND],
            count: 0,
            busy: head.has(Head::CLEANING),
            cleaning: false,
            full: false,
            refused: false,
            replaying: session.engine().state() == State::Replaying,
            uncounted: Uncounted::default(),
        };
        choose(&mut head, &mut taken);
        head = without_stale_lock_flag(head);
        if taken.cleaning {
            head = head.with_flags(Head::CLEANING);
        }
        if taken.count > 0 {
            leave(table, row_id, latched, head);
        } else {
            latched.head = head;
            drop(latched);
        }
        if taken.cleaning {
            finish_cleaning(session, table, row_id, anchor, &taken);
        }
        let mut superseded = 0;
        for version in taken.iter() {
            superseded += i64::from(version.flags() & (flags::LOCK_ONLY | flags::ABORTED) == 0);
            // SAFETY: unlinked above under the latch, by us alone.
            unsafe {
                session
                    .local
                    .retire(version.block(), version.block_bytes(), Purpose::Rows)
            };
        }
        total += taken.count;
        if superseded > 0 {
            let stale = &table.counters().stale_versions;
            stale.fetch_sub(superseded, Ordering::Relaxed);
        }
        taken.uncounted.take_back(table);
        if taken.refused {
            table.set_dirty(row_id);
        }
        if !taken.full || taken.count == 0 {
            return total;
        }
    }
}

/// Removes the entries of what was taken out, ends the CLEANING, and gives the row id back if its
/// chain is empty.
fn finish_cleaning(
    session: &Session,
    table: TableRef,
    row_id: RowId,
    anchor: &Anchor,
    taken: &Taken,
) {
    reach(Point::UnlinkBeforeEntries);
    let mut complete = true;
    for version in taken.iter() {
        complete &= remove_entries(session, table, row_id, version).is_ok();
    }
    end_cleaning(table, row_id, anchor, complete);
}

/// An entry whose key could not be computed is still there, and must not lead to another row. So
/// the row id stays unused for ever. Only replay on a standby puts another row there, because the
/// primary did. So a reader that comes from an entry compares keys.
const ENTRY_STAYS: u64 = Head::ENTRY_LEFT | Head::KEYS_MOVED;

/// Stores the head of a chain after something was taken out of it under this latch: without that
/// the row id may be in its taker's hands, empty, too. If nothing is left of the row, and no
/// process is cleaning it, the row id is given back: a row lock may go last, after the states.
pub(crate) fn leave(table: TableRef, row_id: RowId, mut latched: LatchedAnchor<'_>, head: Head) {
    // As in `end_cleaning`.
    let is_listed = lists_free_row_ids(table);
    let is_cleaned = head.has(Head::CLEANING) && !is_broken("reclaim: the row id of a cleaner");
    let gives_away = head.may_be_given_away() && !is_cleaned;
    latched.head = if gives_away { Head::empty() } else { head };
    drop(latched);
    if gives_away && is_listed {
        crate::table::free_row_id(table, row_id);
    }
}

/// Ends the CLEANING: everything is removed, or not all of it (`complete`).
pub(super) fn end_cleaning(table: TableRef, row_id: RowId, anchor: &Anchor, complete: bool) {
    reach(Point::UnlinkBeforeRowId);
    let is_listed = lists_free_row_ids(table);
    let mut latched = anchor.latch();
    latched.head = latched.head.without_flags(Head::CLEANING);
    if !complete {
        latched.head = latched.head.with_flags(ENTRY_STAYS);
    }
    if !latched.head.may_be_given_away() {
        return;
    }
    latched.head = Head::empty();
    drop(latched);
    if is_listed {
        crate::table::free_row_id(table, row_id);
    }
}

/// Whether the table's freed row ids are listed at once. Asked before the row id becomes empty: the
/// end of a replay lists those that are by then, with the sweeper kept out.
fn lists_free_row_ids(table: TableRef) -> bool {
    table.storage().lists_free.load(Ordering::Acquire) != 0
}

/// Removes the entries of a version that is no longer in its chain, unless another version there
/// has the key.
fn remove_entries(
    session: &Session,
    table: TableRef,
    row_id: RowId,
    version: VersionRef,
) -> Result<(), EngineError> {
    if version.is_tombstone() || version.is_lock() {
        return Ok(());
    }
    let mut key = KeyBuffer::new();
    let mut scratch = KeyBuffer::new();
    let mut outcome = Ok(());
    for index in table.all_indexes() {
        let keys = [&mut key, &mut scratch];
        let removed = remove_entry(session, table, row_id, version, index, keys, None);
        if removed.is_err() {
            outcome = removed;
        }
    }
    outcome
}

/// Removes the entry of a version that is no longer in its chain, and has keys, from one index.
pub(super) fn remove_entry(
    session: &Session,
    table: TableRef,
    row_id: RowId,
    version: VersionRef,
    index: IndexRef,
    [key, scratch]: [&mut KeyBuffer; 2],
    remaining: Option<&RemainingKeys>,
) -> Result<(), EngineError> {
    // One that is too long never had an entry.
    let has_null = session.encode_key_if_any(index, version.body(), key)?.0;
    if key.is_empty() {
        return Ok(());
    }
    crate::index::remove_key(
        session, table, index, has_null, key, scratch, row_id, remaining,
    )
}

/// The head without HAS_LOCKS if its chain has no lock entry. Latched. If it has some, the state
/// below them all is told so ([`flags::NO_LOCKS_BELOW`]): a row that always has locks is not walked
/// to its end each time.
pub(crate) fn without_stale_lock_flag(head: Head) -> Head {
    if !head.has(Head::HAS_LOCKS) {
        return head;
    }
    let mut has_locks = false;
    let mut below_locks = None;
    let mut at = head.version();
    while let Some(version) = at {
        if version.is_lock() {
            has_locks = true;
            below_locks = None;
        } else {
            below_locks = below_locks.or(Some(version));
            if version.ends_locks() {
                break;
            }
        }
        at = version.next();
    }
    if !has_locks {
        return head.without_flags(Head::HAS_LOCKS);
    }
    if let Some(version) = below_locks.filter(|version| !version.ends_locks()) {
        version.add_flags(flags::NO_LOCKS_BELOW);
    }
    head
}

/// What a chain has for the reclaimer, by hints alone.
fn removable(
    table: TableRef,
    head: Head,
    horizon: Xid,
    old: &OldSnapshots,
    mut each: impl FnMut(VersionRef),
) {
    let mut below_needed = false;
    // The nearest committed state above that all snapshots see but old ones.
    let mut newer: Option<Xid> = None;
    let mut at = head.version();
    while let Some(version) = at {
        at = version.next();
        let now = version.flags();
        if now & flags::LOCK_ONLY != 0 {
            if now & (flags::COMMITTED | flags::ABORTED) != 0 && version.xid() < horizon {
                each(version);
            }
        } else if now & flags::ABORTED != 0 || below_needed {
            each(version);
        } else if now & flags::COMMITTED != 0 {
            let outdates = outdates(table, version, horizon);
            below_needed = version.xid() < horizon && outdates;
            if newer.is_some_and(|newer| old.pass_over(version, newer)) {
                each(version);
            }
            if version.xid() < old.recent && outdates {
                newer = Some(version.xid());
            }
        }
    }
}

/// Takes out of a row what hints and horizon allow: aborted versions, ended locks, what is below
/// the oldest version needed, and a dead row as a whole. Asks no `Clock`. The caller is
/// pinned.
pub(crate) fn prune_row(session: &Session, table: TableRef, row_id: RowId) -> usize {
    let Some(anchor) = table.anchor(row_id) else {
        return 0;
    };
    let _charge = session.charge(table);
    let mut horizon = session.horizon();
    if crate::sync::is_broken("rows: the horizon") {
        horizon = Xid(u64::MAX);
    }
    if cut_replaced(session, table, anchor, horizon) {
        return 1;
    }
    let old = session.old_snapshots();
    let any = || {
        let mut any = false;
        removable(table, anchor.head(), horizon, &old, |_| any = true);
        any
    };
    let mut removed = 0;
    if any() {
        removed = cut_tail(session, table, row_id, anchor, horizon);
    }
    if any() {
        removed += clean_row(session, table, row_id, |head, taken| {
            let mut now = *head;
            removable(table, *head, horizon, &old, |version| {
                let hints = version.flags();
                if hints & flags::ABORTED != 0 && hints & flags::LOGGED != 0 {
                    now = now.with_flags(Head::FULL_IMAGE_NEXT);
                }
                taken.take(&mut now, version);
            });
            *head = now;
        });
    }
    removed + usize::from(free_dead_row(session, table, row_id, anchor, horizon))
}

/// `prune_row`, for a row that was left with something to do; notes if it has nothing to do then.
/// `false` if it had none already.
pub(crate) fn tidy_row(session: &Session, table: TableRef, row_id: RowId) -> bool {
    let Some(anchor) = table.anchor(row_id) else {
        return false;
    };
    let head = anchor.head();
    if head.version().is_none() || anchor.is_quiescent(head) {
        return false;
    }
    prune_row(session, table, row_id);
    anchor.is_quiescent(anchor.head());
    true
}

/// Takes the tombstone out that is all that is left of a row and that every snapshot sees, and
/// gives the row id back if it may be.
fn free_dead_row(
    session: &Session,
    table: TableRef,
    row_id: RowId,
    anchor: &Anchor,
    horizon: Xid,
) -> bool {
    if dead_tombstone(anchor.head(), horizon).is_none() {
        return false;
    }
    let is_listed = lists_free_row_ids(table);
    let mut latched = anchor.latch();
    let Some(tombstone) = dead_tombstone(latched.head, horizon) else {
        return false;
    };
    latched.head = latched.head.with_address(0);
    let gives_away = latched.head.may_be_given_away();
    if gives_away {
        latched.head = Head::empty();
    }
    drop(latched);
    // SAFETY: just unlinked.
    unsafe {
        session
            .local
            .retire(tombstone.block(), tombstone.block_bytes(), Purpose::Rows)
    };
    reach(Point::UnlinkBeforeFree);
    if gives_away && is_listed {
        crate::table::free_row_id(table, row_id);
    }
    true
}

/// The only version of a chain that no process is cleaning, if it is a tombstone all snapshots see.
fn dead_tombstone(head: Head, horizon: Xid) -> Option<VersionRef> {
    let version = head.version().filter(|_| !head.has(Head::CLEANING))?;
    let now = version.flags();
    let is_dead = now & flags::TOMBSTONE != 0
        && now & flags::COMMITTED != 0
        && version.xid() < horizon
        && version.next().is_none();
    is_dead.then_some(version)
}
