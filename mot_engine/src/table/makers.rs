//! The creator and the dropper of a table or an index, and how that is resolved.
//!
//! A definition's two ids are those of transactions, and 0 when resolved. As a rule the session
//! whose transaction it was resolves them. Of a transaction that its session gave up (PREPARE), or
//! that a restart found, no session would. Such an id has a bit in `given_up`:
//!
//! - The bit is set while the transaction cannot have ended, or before any session works, by the
//!   process that gives it up. From then on no other writes that id's word for this transaction.
//! - The sweeping process resolves ids with a bit, as soon as the clock says that they have ended
//!   (`reclaim/given_up.rs`). It never takes a bit off: the bit of an id that is 0 means nothing.
//! - Another transaction may drop a definition as soon as an earlier drop was rolled back. It takes
//!   the bit off before it stores its own id. So a process that reads id first and bit then, and
//!   finds the bit, has an id that was given up.

use crate::clock::Clock;
use crate::ids::Xid;
use crate::sync::is_broken;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// No session resolves the creator.
const CREATED: u32 = 1;
/// No session resolves the dropper.
const DROPPED: u32 = 2;

/// The words of a table or an index.
pub(crate) struct Makers<'a> {
    pub(super) created: &'a AtomicU64,
    pub(super) dropped: &'a AtomicU64,
    pub(super) given_up: &'a AtomicU32,
}

/// What became of the transaction named by a definition's word.
pub(crate) enum Outcome {
    /// None, or it is not to be asked about yet.
    Open,
    /// It committed.
    Committed,
    /// It did not.
    Aborted,
}

/// What became of a transaction below `below`; 0 is none.
pub(crate) fn outcome(xid: u64, clock: &impl Clock, below: Xid) -> Outcome {
    let xid = Xid(xid);
    if !xid.is_some() || xid >= below || clock.is_current(xid) || clock.is_in_progress(xid) {
        Outcome::Open
    } else if clock.did_commit(xid) {
        Outcome::Committed
    } else {
        Outcome::Aborted
    }
}

/// What was found of a definition.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum DefinitionStatus {
    /// It is gone for good.
    Gone,
    /// Some transaction of its words has not ended.
    Open,
    /// It is there for good.
    Resolved,
}

impl Makers<'_> {
    /// Resolves what transactions below `below` did.
    pub(crate) fn resolve(&self, clock: &impl Clock, below: Xid) -> DefinitionStatus {
        let created = self.created.load(Ordering::Acquire);
        let dropped = self.dropped.load(Ordering::Acquire);
        self.resolve_as(created, dropped, clock, below)
    }

    /// Resolves what was given up and has ended.
    pub(crate) fn resolve_given_up(&self, clock: &impl Clock) -> DefinitionStatus {
        let created = self.created.load(Ordering::Acquire);
        let dropped = self.dropped.load(Ordering::Acquire);
        // Behind the ids: see the module.
        let given_up = match is_broken("definitions: whose session resolves them") {
            true => CREATED | DROPPED,
            false => self.given_up.load(Ordering::Acquire),
        };
        let only = |xid: u64, bit: u32| if given_up & bit != 0 { xid } else { 0 };
        let (created, dropped) = (only(created, CREATED), only(dropped, DROPPED));
        self.resolve_as(created, dropped, clock, Xid(u64::MAX))
    }

    fn resolve_as(
        &self,
        created: u64,
        dropped: u64,
        clock: &impl Clock,
        below: Xid,
    ) -> DefinitionStatus {
        let creation = outcome(created, clock, below);
        let drop = outcome(dropped, clock, below);
        if matches!(creation, Outcome::Aborted) || matches!(drop, Outcome::Committed) {
            return DefinitionStatus::Gone;
        }
        // Unless another transaction is there by now.
        let clear = |word: &AtomicU64, xid: u64| {
            let _ = word.compare_exchange(xid, 0, Ordering::AcqRel, Ordering::Relaxed);
        };
        let mut open = u64::from(created != 0) + u64::from(dropped != 0);
        if matches!(creation, Outcome::Committed) {
            clear(self.created, created);
            open -= 1;
        }
        if matches!(drop, Outcome::Aborted) {
            clear(self.dropped, dropped);
            open -= 1;
        }
        match open {
            0 => DefinitionStatus::Resolved,
            _ => DefinitionStatus::Open,
        }
    }

    /// The current transaction drops it.
    pub(crate) fn set_dropped(&self, dropped_lsn: &AtomicU64, xid: Xid) {
        dropped_lsn.store(0, Ordering::Release);
        if !is_broken("definitions: the mark of an older drop") {
            self.given_up.fetch_and(!DROPPED, Ordering::AcqRel);
        }
        self.dropped.store(xid.0, Ordering::Release);
    }

    /// The session of its creator gives the creation up.
    pub(crate) fn give_up_creation(&self) {
        self.given_up.fetch_or(CREATED, Ordering::AcqRel);
    }

    /// The session of its dropper gives the drop up.
    pub(crate) fn give_up_drop(&self) {
        self.given_up.fetch_or(DROPPED, Ordering::AcqRel);
    }

    /// Whether a transaction created or dropped it that is not known to have ended.
    pub(crate) fn has_open(&self) -> bool {
        self.created.load(Ordering::Acquire) | self.dropped.load(Ordering::Acquire) != 0
    }
}
