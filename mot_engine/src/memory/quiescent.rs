//! Whether the arena is quiescent: no process is in it, and none went away in the middle of
//! something.
//!
//! Contract: asked by the one process that is left (or has just begun). Only such an arena may be
//! taken over by another server; the answer to any other is `Region::reset`.

use super::arena::Memory;

/// What is not as it is when no process is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArenaNotQuiescent {
    #[error("{0} processes did not leave it")]
    Participants(u64),
    #[error("a process that is gone still reads in it")]
    Pinned,
    #[error("a process that is gone holds a latch of it")]
    Latched,
    #[error("{0} bytes of it were given up")]
    Lost(u64),
}

impl Memory {
    /// What keeps the arena from being taken over; nothing if it is quiescent.
    pub fn not_quiescent_because(self) -> Option<ArenaNotQuiescent> {
        let epochs = self.epoch_report();
        let header = self.header();
        let latches_are_free = header.chunk_pool.is_quiescent()
            && header.orphans.is_quiescent()
            && self.centers().all(|center| center.is_quiescent());
        if epochs.participants > 0 {
            Some(ArenaNotQuiescent::Participants(epochs.participants))
        } else if epochs.oldest_pinned.is_some() {
            Some(ArenaNotQuiescent::Pinned)
        } else if !latches_are_free {
            Some(ArenaNotQuiescent::Latched)
        } else if epochs.lost_bytes > 0 {
            Some(ArenaNotQuiescent::Lost(epochs.lost_bytes))
        } else {
            None
        }
    }
}
