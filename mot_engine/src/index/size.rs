//! How much memory an index takes.

use crate::clock::Clock;
use crate::errors::EngineError;
use crate::memory::Urgency;
use crate::reclaim::Quiet;
use crate::session::Session;
use crate::table::{IndexRef, TableRef};
use mot_index::Tree;

impl Session {
    /// Bytes of an index's nodes, counted by walking all of them. The caller holds at least ShareLock on the table, so that the tree stands
    /// still; the sweeper is kept out meanwhile.
    pub fn index_bytes(
        &self,
        clock: &impl Clock,
        table: TableRef,
        index: IndexRef,
    ) -> Result<u64, EngineError> {
        let _quiet = Quiet::begin(table);
        let _pin = self.local.pin();
        let memory = self.tree_memory(Urgency::Ordinary);
        // SAFETY: pinned for the whole call.
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
