//! How much memory an index takes.

use crate::clock::{Clock, check_cancelled};
use crate::errors::EngineError;
use crate::memory::Urgency;
use crate::session::Session;
use crate::table::IndexRef;
use mot_index::{Measure, Tree};

/// Rounds of [`LEAVES_PER_PIN`] in which an index is counted before its size is estimated, and
/// places of a large one that are examined, each for a round.
const ESTIMATE_ROUNDS: usize = 8;

/// Leaves visited under one pin: a walk through a large tree would keep all processes from reusing
/// memory.
const LEAVES_PER_PIN: usize = 256;

impl Session {
    /// Bytes of an index's nodes, counted by walking all of them. The index exists for the caller,
    /// which holds a lock on its table, be it AccessShareLock: writers, and a standby's replay, may
    /// change it meanwhile. Then the nodes that they split or move may be missing or count twice.
    pub fn index_bytes(&self, clock: &impl Clock, index: IndexRef) -> Result<u64, EngineError> {
        let mut measure = Measure::new();
        while self.measure_more(index, &mut measure) {
            check_cancelled(clock)?;
        }
        Ok(measure.bytes())
    }

    /// The same at a transaction's end, of an index that no session changes.
    pub(crate) fn bytes_of_nodes(&self, index: IndexRef) -> u64 {
        let mut measure = Measure::new();
        while self.measure_more(index, &mut measure) {}
        measure.bytes()
    }

    /// The same in a short time, under the same lock: of a large index some leaves are counted, and
    /// stand for the others. They lie apart, for a part of an index may have been emptied. What the
    /// index has beside its nodes is in it: it is never 0.
    pub fn index_bytes_estimate(&self, index: IndexRef) -> u64 {
        let mut whole = Measure::new();
        if (0..ESTIMATE_ROUNDS).any(|_| !self.measure_more(index, &mut whole)) {
            return whole.bytes() + IndexRef::STORAGE_BYTES;
        }
        let mut parts = {
            let memory = self.tree_memory(Urgency::Ordinary);
            let _pin = self.local.pin();
            // SAFETY: pinned while it is used.
            let tree = unsafe { Tree::new(&index.storage().root, &memory) };
            tree.walks_apart(ESTIMATE_ROUNDS)
        };
        for part in &mut parts {
            self.measure_more(index, part);
        }
        let mut bytes: u64 = parts.iter().map(Measure::bytes).sum();
        let mut counted: u64 = parts.iter().map(Measure::entries).sum();
        if counted == 0 {
            // Those leaves have been emptied.
            bytes = whole.bytes();
            counted = whole.entries().max(1);
        }
        let all = index.entry_count_estimate().max(counted);
        let nodes = u128::from(bytes) * u128::from(all) / u128::from(counted);
        (nodes as u64).max(whole.bytes()) + IndexRef::STORAGE_BYTES
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
