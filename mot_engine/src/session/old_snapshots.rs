//! What a few old snapshots need of a row, where all others see something newer.
//!
//! The horizon alone says: below the newest committed state under it nothing is needed. While one
//! snapshot is kept for an hour the horizon stands still, and every state since would stay. But
//! no snapshot sees most of these states: the old snapshot is too old for them, the others too new.
//!
//! The caller gives the sweeper two things
//! ([`Session::set_old_snapshots`](crate::Session::set_old_snapshots)):
//!
//! - the exact bounds of old snapshots, as PostgreSQL reads them: all below `xmin` had ended,
//!   nothing from `xmax` on had begun;
//! - `recent`: every other snapshot, now and from now on, sees all that was committed by
//!   transactions below it.
//!
//! A committed state V is needed by no snapshot if two things hold. A newer one W of its row is
//! committed and below `recent`. And each old snapshot either sees W (W below its `xmin`) or cannot
//! see V (V not below its `xmax`). States for which the bounds do not decide stay: at most those of
//! transactions that ran when the snapshot was taken. W itself may be removed by the same rule:
//! a snapshot that sees W sees the state for whose sake W was removed.
//!
//! - A state that changed a unique key stays: a KEY SHARE locker that comes from an old state
//!   passes over other changes, and must meet this one.
//! - An old snapshot of a SERIALIZABLE transaction must not be given: that transaction must meet
//!   the versions that replaced what it sees. It counts for `recent`.
//! - Only the sweeper knows of old snapshots; writers prune by the horizon.

use crate::ids::Xid;
use crate::row::{VersionRef, flags};

/// Bounds of an old snapshot.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub struct OldSnapshot {
    /// Every transaction below had ended.
    pub xmin: Xid,
    /// No transaction from here on had begun.
    pub xmax: Xid,
}

/// The readers as of an earlier moment. The default says nothing: only the horizon counts.
#[derive(Clone, Eq, PartialEq, Debug, Default)]
pub struct OldSnapshots {
    /// Every snapshot that is not listed sees what was committed by transactions below this.
    pub recent: Xid,
    /// The others, each with its bounds.
    pub snapshots: Vec<OldSnapshot>,
}

impl OldSnapshots {
    /// Whether `version`, committed, is seen by no snapshot because of `newer`, a committed state
    /// above it below `recent`.
    pub(crate) fn pass_over(&self, version: VersionRef, newer: Xid) -> bool {
        debug_assert!(newer < self.recent);
        version.flags() & flags::UNIQUE_KEYS_CHANGED == 0
            && self
                .snapshots
                .iter()
                .all(|old| newer < old.xmin || version.xid() >= old.xmax)
    }
}
