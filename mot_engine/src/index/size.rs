//! How much memory an index takes.

use crate::clock::{Clock, check_cancelled};
use crate::errors::EngineError;
use crate::memory::Urgency;
use crate::session::Session;
use crate::table::IndexRef;
use mot_index::{Measure, Tree};

/// Leaves visited under one pin: a walk through a large tree would keep everybody from reusing
/// memory.
const LEAVES_PER_PIN: usize = 256;

impl Session {
    /// Bytes of an index's nodes, counted by walking all of them. The index exists for the caller,
    /// who holds a lock on its table, be it AccessShareLock: writers, and a standby's replay, may
    /// change it meanwhile. Then the nodes that they split or move may be missing or count twice.
    pub fn index_bytes(&self, clock: &impl Clock, index: IndexRef) -> Result<u64, EngineError> {
        let mut measure = Measure::new();
        while self.measure_more(index, &mut measure) {
            check_cancelled(clock)?;
        }
        Ok(measure.bytes())
    }

    /// The same at a transaction's end, of an index that nobody changes.
    pub(crate) fn bytes_of_nodes(&self, index: IndexRef) -> u64 {
        let mut measure = Measure::new();
        while self.measure_more(index, &mut measure) {}
        measure.bytes()
    }

    /// `false`: that was all.
    fn measure_more(&self, index: IndexRef, measure: &mut Measure) -> bool {
        let memory = self.tree_memory(Urgency::Ordinary);
        let _pin = self.local.pin();
        // SAFETY: pinned while it is used.
        let tree = unsafe { Tree::new(&index.storage().root, &memory) };
        tree.measure(measure, LEAVES_PER_PIN)
    }
}
