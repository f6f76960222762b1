//! Two-phase commit: a transaction is logged, given up by its session, and ended later by anybody.
//!
//! Protocol (the caller's part is in `mot_ext/src/xact.rs`):
//!
//! 1. Before PostgreSQL prepares: `refuses_prepare`, then `log`, as before a commit. Anything may still fail; then `abort`.
//! 2. When it has prepared: `give_up`. The transaction is in progress for everybody from before this until it is ended, and nobody
//!    can end it before this is done. So the versions are still this transaction's own, and nobody puts one on top.
//! 3. From then on the versions are nobody's work any more: the clock judges them, as after a crash. Others wait for the transaction as for
//!    any other; when it is ended, whoever meets a version settles its hint, and the sweeper (the rows are marked for it) takes out
//!    what was rolled back, with its index entries and FULL_IMAGE_NEXT, and row locks.
//!
//! - **Counters** count it as committed at once, since nobody of its own comes by at the end. The versions are flagged COUNTED_EARLY;
//!   whoever takes out a flagged one that was rolled back takes the count back (`reclaim/clean.rs`).
//! - **After a restart** the same versions come from the log or a checkpoint, and `recovery::finish` leaves them open. They are then
//!   held with the strength of a key change, whatever it was: stronger than needed, never weaker.
//! - **Row locks** are not logged. One on a row that the transaction then changed is held by the version, too. Another would be lost by
//!   a restart, so such a transaction is refused.
//! - **Definitions** are refused: they would have to be doomed or settled by who ends the transaction.

use super::commit::{Counts, base_below, last_own, live_bytes, trim};
use super::examine::{data_below, newest_data};
use super::{Kind, Operation, Own, Transaction};
use crate::pause::{Point, reach};
use crate::row::flags;
use crate::session::Session;

/// Why a transaction cannot be prepared.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum PrepareRefusal {
    /// It created or dropped a table or an index.
    Definitions,
    /// It holds a lock on a row that it did not change.
    RowLocks,
}

impl Transaction {
    /// Whether something would be lost if this transaction were prepared.
    pub fn refuses_prepare(&self, session: &Session) -> Option<PrepareRefusal> {
        let is_definition =
            |operation: &Operation| !operation.kind().is_data() && operation.kind() != Kind::Lock;
        if self.operations.iter().any(is_definition) {
            return Some(PrepareRefusal::Definitions);
        }
        let _pin = session.local.pin();
        let is_bare = |operation: &Operation| {
            operation.kind() == Kind::Lock && !is_changed(&self.own, operation)
        };
        self.operations
            .iter()
            .any(is_bare)
            .then_some(PrepareRefusal::RowLocks)
    }

    /// The transaction is prepared: it is no longer this session's. Cannot fail.
    pub fn give_up(&mut self, session: &Session) {
        reach(Point::PrepareBeforeGivingUp);
        let pin = session.local.pin();
        let mut counts = Counts::default();
        for operation in &self.operations {
            if operation.kind().is_data() {
                let grown = give_up_row(session, &self.own, operation);
                counts.add(operation, grown);
            }
            operation.table.set_dirty(operation.slot());
        }
        counts.flush();
        drop(pin);
        self.clear();
    }
}

/// Whether the row's newest state is this transaction's.
fn is_changed(own: &Own, operation: &Operation) -> bool {
    operation
        .table
        .anchor(operation.slot())
        .and_then(newest_data)
        .is_some_and(|newest| own.has(newest.xid()))
}

/// Leaves only a row's last state. Returns by how much the bytes of live rows will change.
fn give_up_row(session: &Session, own: &Own, operation: &Operation) -> i64 {
    let Some(version) = operation
        .table
        .anchor(operation.slot())
        .and_then(|anchor| last_own(anchor, own))
        .filter(|version| version.address() == operation.address())
    else {
        // An earlier state: cut out together with the last one.
        return 0;
    };
    let base = base_below(version, own);
    if data_below(version) != base {
        trim(session, operation.table, own, version);
    }
    version.add_flags(flags::COUNTED_EARLY);
    live_bytes(version) - base.map_or(0, live_bytes)
}
