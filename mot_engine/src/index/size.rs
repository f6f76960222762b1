//! How much memory an index takes.

use crate::clock::{Clock, check_cancelled};
use crate::errors::EngineError;
use crate::memory::Urgency;
use crate::session::Session;
use crate::table::IndexRef;
use mot_index::{Measure, Tree};

/// Leaves visited under one pin: a walk through a large tree would keep everybody from reusing memory.
const LEAVES_PER_PIN: usize = 256;

impl Session {
    /// Bytes of an index's nodes, counted by walking all of them. The index exists for the caller, who holds a lock on its table, be it
    /// AccessShareLock: writers, and a standby's replay, may change it meanwhile. Then the nodes that they split or move may be missing or count
    /// twice.
    pub fn index_bytes(&self, clock: &impl Clock, index: IndexRef) -> Result<u64, EngineError> {
        let memory = self.tree_memory(Urgency::Ordinary);
        let mut measure = Measure::new();
        loop {
            check_cancelled(clock)?;
            let _pin = self.local.pin();
            // SAFETY: pinned while it is used.
            let tree = unsafe { Tree::new(&index.storage().root, &memory) };
            if !tree.measure(&mut measure, LEAVES_PER_PIN) {
                return Ok(measure.bytes());
            }
        }
    }
}
