//! Walking and trimming a row's chain.
//!
//! Newest first. All functions here need the caller pinned. Resolving a version may call the
//! `Clock`, so none of it happens under a latch. Results are kept in the version's hint flags, on
//! which later walks under a latch may rely.

use super::anchor::{Anchor, Head};
use super::version::{VersionRef, flags};
use crate::clock::{Clock, Snapshot};
use crate::ids::Xid;

/// What became of the transaction that made a version.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub(crate) enum TxnStatus {
    /// This transaction.
    Mine,
    /// Another one that still runs.
    Running,
    /// Committed; the version has its hint.
    Committed,
    /// Aborted or lost in a crash; the version has its hint.
    Aborted,
}

/// Resolves a version's maker, in heapam's order, and keeps the outcome as a hint.
pub(crate) fn resolve_maker(version: VersionRef, clock: &impl Clock) -> TxnStatus {
    let now = version.flags();
    if now & flags::COMMITTED != 0 {
        return TxnStatus::Committed;
    }
    if now & flags::ABORTED != 0 {
        return TxnStatus::Aborted;
    }
    if now & flags::APPLYING != 0 {
        // Its transaction may have ended by now: see recovery/README.md. An outcome would let it be
        // taken out half done.
        return TxnStatus::Running;
    }
    let xid = version.xid();
    if clock.is_current(xid) {
        TxnStatus::Mine
    } else if clock.is_in_progress(xid) {
        TxnStatus::Running
    } else if clock.did_commit(xid) {
        version.add_flags(flags::COMMITTED);
        TxnStatus::Committed
    } else {
        version.add_flags(flags::ABORTED);
        TxnStatus::Aborted
    }
}

/// Whether the snapshot sees this version's maker's work (HeapTupleSatisfiesMVCC on xmin).
pub fn is_visible<S: Snapshot>(version: VersionRef, snapshot: &S) -> bool {
    let now = version.flags();
    if now & flags::ABORTED != 0 {
        return false;
    }
    let xid = version.xid();
    if xid >= snapshot.xmin() {
        if now & flags::COMMITTED == 0
            && let Some(visible) = snapshot.own(xid, version.cid())
        {
            return visible;
        }
        if snapshot.running(xid) {
            return false;
        }
    }
    if now & flags::COMMITTED != 0 {
        return true;
    }
    if snapshot.did_commit(xid) {
        version.add_flags(flags::COMMITTED);
        true
    } else {
        version.add_flags(flags::ABORTED);
        false
    }
}

/// The newest state the snapshot sees; `None` if the row does not exist for it.
#[inline]
pub fn visible<S: Snapshot>(anchor: &Anchor, snapshot: &S) -> Option<VersionRef> {
    /// Of a state that needs no question: known to be committed, and no tombstone,
    /// lock or aborted work.
    const PLAIN: u32 = flags::COMMITTED;
    const TELLING: u32 = PLAIN | flags::ABORTED | flags::TOMBSTONE | flags::LOCK_ONLY;
    let newest = anchor.head().version()?;
    if newest.flags() & TELLING == PLAIN && newest.xid() < snapshot.xmin() {
        return Some(newest);
    }
    visible_in_chain(newest, snapshot)
}

/// As `visible`, walking from the newest state on.
fn visible_in_chain<S: Snapshot>(newest: VersionRef, snapshot: &S) -> Option<VersionRef> {
    let mut at = Some(newest);
    while let Some(version) = at {
        if !version.is_lock() && is_visible(version, snapshot) {
            return (!version.is_tombstone()).then_some(version);
        }
        at = version.next();
    }
    None
}

/// The state of a row now, without a snapshot.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub enum Newest {
    /// No version at all.
    None,
    /// Committed, or made by the caller's transaction.
    Live(VersionRef),
    /// Deleted by a committed transaction or by the caller's.
    Gone,
    /// An unfinished change of another transaction is on top.
    Busy(Xid),
}

/// The newest state that is not aborted.
pub fn newest(anchor: &Anchor, clock: &impl Clock) -> Newest {
    let mut at = anchor.head().version();
    while let Some(version) = at {
        if !version.is_lock() {
            match resolve_maker(version, clock) {
                TxnStatus::Aborted => {}
                TxnStatus::Running => return Newest::Busy(version.xid()),
                TxnStatus::Mine | TxnStatus::Committed if version.is_tombstone() => {
                    return Newest::Gone;
                }
                TxnStatus::Mine | TxnStatus::Committed => return Newest::Live(version),
            }
        }
        at = version.next();
    }
    Newest::None
}

/// The newest state, or end, that is committed or the caller's own.
pub(crate) fn newest_committed_or_own(anchor: &Anchor, clock: &impl Clock) -> Option<VersionRef> {
    let mut at = anchor.head().version();
    while let Some(version) = at {
        let is_state = !version.is_lock();
        if is_state
            && matches!(
                resolve_maker(version, clock),
                TxnStatus::Mine | TxnStatus::Committed
            )
        {
            return Some(version);
        }
        at = version.next();
    }
    None
}

/// The states of a row from a version on, newest first. Those whose place others took are passed
/// over (`transaction/reform.rs`).
pub(crate) fn states_from(top: Option<VersionRef>) -> impl Iterator<Item = VersionRef> + Clone {
    let mut above: Option<VersionRef> = None;
    std::iter::successors(top, VersionRef::next).filter(move |version| {
        let is_state = !version.is_lock();
        let is_former = above.is_some_and(|above| version.is_former_image_of(above));
        if is_state {
            above = Some(*version);
        }
        is_state && !is_former
    })
}

/// The oldest version any session with a snapshot at or above `horizon` can still see: the newest
/// one that a finished and committed transaction below the horizon made. Relies on hints only.
/// `counts` may pass over one that all snapshots see, where one still reads what it replaced.
pub(crate) fn oldest_needed(
    head: Head,
    horizon: Xid,
    counts: impl Fn(VersionRef) -> bool,
) -> Option<VersionRef> {
    let mut at = head.version();
    while let Some(version) = at {
        if version.xid() < horizon
            && version.flags() & flags::COMMITTED != 0
            && !version.is_lock()
            && counts(version)
        {
            return Some(version);
        }
        at = version.next();
    }
    None
}

/// What a version flagged COUNTED_EARLY adds to its table's counters: the committed state below it,
/// live rows, bytes of them. Its writer has resolved what is below.
pub(crate) fn counted_early(version: VersionRef) -> (Option<VersionRef>, i64, i64) {
    counted_above(version, |below| {
        below.flags() & flags::COMMITTED != 0 && !below.is_lock()
    })
}

/// The same of a replayed version: it was counted as if it replaced whatever state was below it.
pub(crate) fn counted_as_top(version: VersionRef) -> (Option<VersionRef>, i64, i64) {
    counted_above(version, |below| !below.is_lock())
}

fn counted_above(
    version: VersionRef,
    is_base: impl Fn(&VersionRef) -> bool,
) -> (Option<VersionRef>, i64, i64) {
    let live = |version: VersionRef| match version.is_tombstone() {
        true => (0, 0),
        false => (1, version.image_bytes() as i64),
    };
    let mut at = version.next();
    while let Some(below) = at.filter(|below| !is_base(below)) {
        at = below.next();
    }
    let (rows, bytes) = live(version);
    let (rows_before, bytes_before) = at.map_or((0, 0), live);
    (at, rows - rows_before, bytes - bytes_before)
}

/// Takes one version out of a latched chain; `false` if it is not in it. The head to store is
/// returned through `head`.
pub(crate) fn unlink(head: &mut Head, version: VersionRef) -> bool {
    let after = version.next();
    let Some(first) = head.version() else {
        return false;
    };
    if first == version {
        *head = head.with_address(after.map_or(0, VersionRef::address));
        return true;
    }
    let mut at = first;
    while let Some(next) = at.next() {
        if next == version {
            at.replace_next(after);
            return true;
        }
        at = next;
    }
    false
}
