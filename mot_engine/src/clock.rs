//! Traits for what became of a transaction, and for what a snapshot sees. PostgreSQL answers in the
//! server, a scripted model in tests.
//!
//! Implementations may call PostgreSQL and may unwind with a PostgreSQL error. The engine therefore
//! never calls them while it holds a latch. It may be pinned: unwinding releases a pin.

use crate::errors::EngineError;
use crate::ids::{CommandId, Xid};

/// Outcomes of transactions, for writers and reclaim.
pub trait Clock {
    /// This transaction or one of its live subtransactions.
    fn is_current(&self, xid: Xid) -> bool;
    /// Running anywhere. Must be asked before [`Clock::did_commit`], as heapam does.
    fn is_in_progress(&self, xid: Xid) -> bool;
    /// The commit log's outcome of a transaction that is not in progress.
    fn did_commit(&self, xid: Xid) -> bool;
    /// The user wants the running statement ended. Asked between the steps of long work, with no
    /// latch held; the work is then given up with [`EngineError::Cancelled`].
    fn is_cancelled(&self) -> bool {
        false
    }
}

/// Gives long work up if its user no longer wants it.
pub(crate) fn check_cancelled(clock: &impl Clock) -> Result<(), EngineError> {
    if clock.is_cancelled() {
        Err(EngineError::Cancelled)
    } else {
        Ok(())
    }
}

/// What a statement sees. The rule, as HeapTupleSatisfiesMVCC: a version below `xmin` is resolved
/// by its outcome alone; an own one is visible if an earlier command made it; one by a transaction
/// running at snapshot time is invisible; else its outcome decides.
pub trait Snapshot {
    /// Every transaction below this is finished.
    fn xmin(&self) -> Xid;
    /// For a version of the current transaction: whether it was made before the snapshot's command.
    /// `None`: not mine.
    fn own(&self, xid: Xid, cid: CommandId) -> Option<bool>;
    /// Was running (or not begun) when the snapshot was taken.
    fn running(&self, xid: Xid) -> bool;
    /// The commit log's outcome of a transaction that was not running.
    fn did_commit(&self, xid: Xid) -> bool;
    /// Whether it sees rows that were made after it, as one that is no moment in time does.
    fn sees_younger(&self) -> bool {
        false
    }
    /// Whether it may resolve rows before they are asked for, as one may that is registered and
    /// answers the same whenever it is asked.
    fn may_resolve_early(&self) -> bool {
        true
    }
    /// A scan has found nothing to see for a while, in a table that was emptied or a queue whose
    /// head no sweep has reached yet, and continues. Called unpinned and with no latch held, so
    /// that memory can be reclaimed meanwhile; may unwind, which ends the scan where it is.
    #[inline]
    fn between_groups(&self) {}
}

/// What is committed, or one's own, whenever it is examined. Nothing is kept for it: what it shows
/// is to be resolved again before it is used.
pub struct Now<'a, C>(pub &'a C);

impl<C: Clock> Snapshot for Now<'_, C> {
    fn xmin(&self) -> Xid {
        Xid::NONE
    }

    fn own(&self, xid: Xid, _command: CommandId) -> Option<bool> {
        self.0.is_current(xid).then_some(true)
    }

    fn running(&self, xid: Xid) -> bool {
        self.0.is_in_progress(xid)
    }

    fn did_commit(&self, xid: Xid) -> bool {
        self.0.did_commit(xid)
    }

    fn sees_younger(&self) -> bool {
        true
    }

    fn may_resolve_early(&self) -> bool {
        false
    }
}

/// A clock for callers that never ask one: replay checks no uniqueness.
pub(crate) enum NoClock {}

impl Clock for NoClock {
    fn is_current(&self, _: Xid) -> bool {
        match *self {}
    }
    fn is_in_progress(&self, _: Xid) -> bool {
        match *self {}
    }
    fn did_commit(&self, _: Xid) -> bool {
        match *self {}
    }
}
