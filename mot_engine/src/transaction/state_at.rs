//! What a tuple id names: a row id and the ordinal of one of its row's states.
//!
//! Ordinals of the states of a chain that are not aborted rise from old to new. An own state's
//! image has the ordinal of that state. So two of the others are the same only if the row was
//! changed [`ORDINALS`](crate::ids::ORDINALS) times in between. A transaction that changes a row so
//! often itself names its later states otherwise ([`Alias`](crate::transaction::Alias)). Which one
//! a tuple id means follows from its holder:
//!
//! 1. The snapshots': what a scan has handed out.
//! 2. The transaction's own: states that it made, the one that it replaced first, and the first
//!    state at or below each of its row locks. A trigger, RETURNING or a re-evaluation asks for
//!    these, when the snapshots see others by now.
//! 3. The newest committed state: what a look at the row's present has just read.
//!
//! Both of the first two are examined. If they have two states of one ordinal, others have
//! committed so many changes in between, and to prefer either would lose an update: `Overtaken`.

use super::OwnRow;
use crate::clock::{Clock, Snapshot};
use crate::ids::{Ordinal, RowId};
use crate::row::{self, Head, TxnStatus, VersionRef, resolve_maker};
use crate::session::Session;
use crate::table::TableRef;

/// What a tuple id names.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub enum StateAt {
    /// No state that counts for the asker, or the row's end.
    None,
    /// This one.
    One(VersionRef),
    /// One of several, of which others have committed the newer.
    Overtaken,
}

/// In which order own states are met.
#[derive(Copy, Clone)]
enum Order {
    NewestFirst,
    OldestFirst,
}

/// States of one ordinal.
#[derive(Copy, Clone, Default)]
struct Matching {
    newest: Option<VersionRef>,
    are_several: bool,
}

impl Matching {
    /// Adds an own state. Of two with one ordinal one is the other's image
    /// (`Transaction::replace_own`), and the newer one counts: an own state of that ordinal beyond
    /// those has an alias.
    fn add_own(&mut self, version: VersionRef, order: Order) {
        self.newest = match (self.newest, order) {
            (Some(newest), Order::NewestFirst) => Some(newest),
            _ => Some(version),
        };
    }

    fn add(&mut self, version: VersionRef) {
        self.are_several |= self.newest.is_some_and(|newest| newest != version);
        self.newest = self.newest.or(Some(version));
    }
}

impl Session {
    /// Whether a key of some index differs between two states of a row, the older one of which is
    /// in the chain below the newer one. Both are kept by the caller.
    pub fn have_keys_changed(&self, older: VersionRef, newer: VersionRef) -> bool {
        let _pin = self.local.pin();
        let chain = std::iter::successors(Some(newer), VersionRef::next);
        chain
            .take_while(|version| *version != older)
            .any(|version| !version.is_lock() && version.changed_keys())
    }

    /// The state of the row that tuple ids name by this ordinal, for a transaction that has it from
    /// one of these snapshots, or from its own changes and locks. Never a tombstone.
    ///
    /// The first snapshot is the one by which the id was read, where that is known. An own state
    /// that it sees is named, though an older one may have the ordinal: no other transaction
    /// changes the row then. `listed` is what the asker has made of the row, if that is listed
    /// ([`own_row`](crate::Transaction::own_row)).
    ///
    /// What a snapshot sees stays valid while it is registered, an own state until its savepoint or
    /// transaction ends, and what the transaction replaced, or locked more strongly than KEY SHARE,
    /// until the transaction ends. Any other one is valid while the caller is pinned, or has a
    /// snapshot registered that was taken before this call (row/README.md).
    pub fn state_at<S: Snapshot>(
        &self,
        clock: &impl Clock,
        table: TableRef,
        row_id: RowId,
        ordinal: Ordinal,
        listed: Option<&OwnRow>,
        snapshots: &[Option<&S>],
    ) -> StateAt {
        let _pin = self.local.pin();
        let Some(anchor) = table.anchor(row_id) else {
            return StateAt::None;
        };
        let is_named = |seen: VersionRef| {
            let has_alias = || listed.is_some_and(|own| own.alias(seen).is_some());
            seen.ordinal() == ordinal && !has_alias()
        };
        if let Some(Some(reading)) = snapshots.first()
            && let Some(seen) = row::visible(anchor, *reading)
            && is_named(seen)
            && !seen.is_known_committed()
            && clock.is_current(seen.xid())
        {
            return StateAt::One(seen);
        }
        let mut named = Matching::default();
        for snapshot in snapshots.iter().copied().flatten() {
            let seen = row::visible(anchor, snapshot);
            if let Some(seen) = seen.filter(|seen| is_named(*seen)) {
                named.add(seen);
            }
        }
        let own = Own::of_chain(anchor.head(), listed, clock, ordinal);
        named.are_several |= own.named.are_several;
        if let Some(version) = own.named.newest {
            named.add(version);
        }
        if named.are_several {
            return StateAt::Overtaken;
        }
        match named.newest.or(own.newest_committed) {
            Some(version) if !version.is_tombstone() => StateAt::One(version),
            _ => StateAt::None,
        }
    }
}

/// What a chain has for a transaction, without a snapshot.
struct Own {
    /// What it made, replaced or locked.
    named: Matching,
    /// The newest committed state, if that has the ordinal.
    newest_committed: Option<VersionRef>,
}

impl Own {
    /// Pinned. The walk ends below the newest committed state where no lock can lie further down.
    /// It begins below what is listed: whatever own lock is above was put on a listed state.
    fn of_chain(head: Head, listed: Option<&OwnRow>, clock: &impl Clock, ordinal: Ordinal) -> Own {
        let has_locks = head.has(Head::HAS_LOCKS);
        let mut found = Own {
            named: Matching::default(),
            newest_committed: None,
        };
        let mut has_met_committed = false;
        let of_list = listed.map(|own| own.named(ordinal));
        of_list
            .into_iter()
            .flatten()
            .for_each(|own| found.named.add_own(own, Order::OldestFirst));
        // What comes next is what the transaction replaced, or what it locked.
        let mut is_named = listed.is_some();
        let mut at = match listed {
            Some(own) => own.oldest().next(),
            None => head.version(),
        };
        while let Some(version) = at {
            at = version.next();
            match resolve_maker(version, clock) {
                TxnStatus::Mine if version.is_lock() => is_named = true,
                TxnStatus::Mine => {
                    is_named = true;
                    if version.ordinal() == ordinal {
                        found.named.add_own(version, Order::NewestFirst);
                    }
                }
                TxnStatus::Committed if !version.is_lock() => {
                    let matching = (version.ordinal() == ordinal).then_some(version);
                    if let Some(version) = matching.filter(|_| is_named) {
                        found.named.add(version);
                    }
                    if !std::mem::replace(&mut has_met_committed, true) {
                        found.newest_committed = matching;
                    }
                    is_named = false;
                    if !has_locks || version.ends_locks() {
                        break;
                    }
                }
                TxnStatus::Committed | TxnStatus::Aborted | TxnStatus::Running => {}
            }
        }
        found
    }
}
