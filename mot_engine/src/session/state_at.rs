//! What a tuple id names: a slot and the ordinal of one of its row's states.
//!
//! Ordinals of the states of a chain that are not aborted rise from old to new, so two of them are
//! the same only if the row was changed [`ORDINALS`](crate::ids::ORDINALS) times in between. Which
//! one a tuple id means follows from who has it:
//!
//! 1. The asking snapshot's own: what a scan has handed out.
//! 2. Of the asking transaction's concern: states that it made, the one that it replaced first, and
//!    what it may have locked. A trigger, a deferred constraint or RETURNING asks for these, when
//!    the snapshot sees others by now. If two of them have the ordinal, nothing here tells which
//!    one is meant.
//! 3. The newest one that counts for everybody.

use super::Session;
use crate::clock::{Clock, Snapshot};
use crate::ids::{Ordinal, Slot};
use crate::row::{self, Head, Judged, VersionRef, flags, judge_maker};
use crate::table::TableRef;

/// What a tuple id names.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub enum StateAt {
    /// No state that counts for the asker, or the row's end.
    None,
    /// This one.
    One(VersionRef),
    /// One of several that the asking transaction made, replaced or locked.
    Ambiguous,
}

/// States of one ordinal.
#[derive(Copy, Clone, Default)]
struct Matching {
    newest: Option<VersionRef>,
    are_several: bool,
}

impl Matching {
    fn add(&mut self, version: VersionRef) {
        self.are_several |= self.newest.is_some_and(|newest| newest != version);
        self.newest = self.newest.or(Some(version));
    }

    fn add_all(&mut self, others: Matching) {
        if let Some(version) = others.newest {
            self.add(version);
        }
        self.are_several |= others.are_several;
    }
}

impl Session {
    /// The state of the row that has this ordinal: the one that `snapshot` sees, or one that the
    /// transaction made, replaced or locked, or else the newest that is neither aborted nor
    /// another's unfinished work. Never a tombstone.
    ///
    /// What the snapshot sees stays valid while it is registered, an own state until its savepoint
    /// or transaction ends, and what the transaction replaced, or locked more strongly than KEY
    /// SHARE, until the transaction ends. Any other one is only valid while the caller is pinned:
    /// whoever does not know which of these it is pins before the call, and copies.
    pub fn state_at<S: Snapshot>(
        &self,
        clock: &impl Clock,
        table: TableRef,
        slot: Slot,
        ordinal: Ordinal,
        snapshot: Option<&S>,
    ) -> StateAt {
        let _pin = self.local.pin();
        let Some(anchor) = table.anchor(slot) else {
            return StateAt::None;
        };
        if let Some(snapshot) = snapshot
            && let Some(seen) = row::visible(anchor, snapshot)
            && seen.ordinal() == ordinal
        {
            return StateAt::One(seen);
        }
        of_chain(anchor.head(), clock, ordinal)
    }
}

/// Without a snapshot. Pinned.
fn of_chain(head: Head, clock: &impl Clock, ordinal: Ordinal) -> StateAt {
    const TELLING: u32 =
        flags::COMMITTED | flags::ABORTED | flags::TOMBSTONE | flags::LOCK_ONLY | flags::APPLYING;
    let has_locks = head.has(Head::HAS_LOCKS);
    if let Some(newest) = head.version()
        && !has_locks
        && newest.flags() & TELLING == flags::COMMITTED
        && newest.ordinal() == ordinal
    {
        return StateAt::One(newest);
    }
    // Of the transaction's concern; committed, and of its concern if it has a lock below; the
    // newest committed one.
    let (mut concerned, mut unless_locked) = (Matching::default(), Matching::default());
    let mut committed = None;
    // What comes next is what the transaction replaced, or what it locked.
    let mut is_concerned = false;
    let mut at = head.version();
    while let Some(version) = at {
        at = version.next();
        let verdict = judge_maker(version, clock);
        let is_match = !version.is_lock() && version.ordinal() == ordinal;
        match verdict {
            Judged::Mine if version.is_lock() => {
                concerned.add_all(std::mem::take(&mut unless_locked));
                is_concerned = true;
            }
            Judged::Mine => {
                is_concerned = true;
                if is_match {
                    concerned.add(version);
                }
            }
            Judged::Committed if !version.is_lock() => {
                if is_match && is_concerned {
                    concerned.add(version);
                } else if is_match {
                    unless_locked.add(version);
                    committed = committed.or(Some(version));
                }
                is_concerned = false;
                let may_be_more = has_locks && !version.ends_locks();
                if !may_be_more && (concerned.newest.is_some() || committed.is_some()) {
                    break;
                }
            }
            Judged::Committed | Judged::Aborted | Judged::Running => {}
        }
    }
    if concerned.are_several {
        return StateAt::Ambiguous;
    }
    match concerned.newest.or(committed) {
        Some(version) if !version.is_tombstone() => StateAt::One(version),
        _ => StateAt::None,
    }
}
