//! How much memory an index takes.

use crate::clock::Clock;
use crate::engine::State;
use crate::errors::EngineError;
use crate::memory::Urgency;
use crate::reclaim::Quiet;
use crate::session::Session;
use crate::table::{IndexRef, TableRef};
use mot_index::Tree;

/// Whether a lock of the caller's keeps a table's indexes from being changed by anybody.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Still(pub bool);

impl Session {
    /// Bytes of an index's nodes, counted by walking all of them. With `Still(true)` the caller holds at least ShareLock on the table, so that
    /// with the sweeper kept out nobody changes the tree. Then this is not pinned: a walk through a large tree would keep everybody from reusing
    /// memory. A standby's replay holds no lock.
    pub fn index_bytes(
        &self,
        clock: &impl Clock,
        table: TableRef,
        index: IndexRef,
        is_still: Still,
    ) -> Result<u64, EngineError> {
        let _quiet = Quiet::begin(table);
        let may_change = is_still == Still(false) || self.engine().state() == State::Replaying;
        let _pin = may_change.then(|| self.local.pin());
        let memory = self.tree_memory(Urgency::Ordinary);
        // SAFETY: pinned, or nobody changes the tree (caller, `_quiet`): no node that is reached is given back.
        let tree = unsafe { Tree::new(&index.storage().root, &memory) };
        match tree.verify_while(&mut || !clock.is_cancelled()) {
            Ok(Some(stats)) => Ok(stats.bytes_used),
            Ok(None) => Err(EngineError::Cancelled),
            Err(corruption) => Err(EngineError::Corrupt {
                what: corruption.what,
            }),
        }
    }
}
