//! Which transaction replaced, deleted or locked a state: what `xmax` of a heap tuple says.

use super::Session;
use crate::clock::Clock;
use crate::ids::{CommandId, RowId, Xid};
use crate::row::{TxnStatus, VersionRef, resolve_maker};
use crate::table::TableRef;

/// Whose work lies upon a state.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub enum Upon {
    /// Of no transaction that counts.
    Nothing,
    /// A row lock that is held.
    Lock(Xid),
    /// A newer state, or the row's end.
    State(Xid, CommandId),
}

impl Session {
    /// What is upon the newest state of the row that is the named one: the next state, unfinished
    /// ones included, or else a row lock. A lock of the asker's own goes before others.
    pub fn upon(
        &self,
        clock: &impl Clock,
        table: TableRef,
        row_id: RowId,
        is_named: impl Fn(VersionRef) -> bool,
    ) -> Upon {
        let _pin = self.local.pin();
        let mut at = table
            .anchor(row_id)
            .and_then(|anchor| anchor.head().version());
        let mut upon = Upon::Nothing;
        let mut is_own = false;
        while let Some(version) = at {
            at = version.next();
            let status = resolve_maker(version, clock);
            match (status, version.is_lock()) {
                (TxnStatus::Aborted, _) | (TxnStatus::Committed, true) => {}
                (_, true) => {
                    let is_better = upon == Upon::Nothing || status == TxnStatus::Mine && !is_own;
                    if is_better && !matches!(upon, Upon::State(..)) {
                        is_own = status == TxnStatus::Mine;
                        upon = Upon::Lock(version.xid());
                    }
                }
                (_, false) if !version.is_tombstone() && is_named(version) => return upon,
                (_, false) => upon = Upon::State(version.xid(), version.cid()),
            }
        }
        Upon::Nothing
    }
}
