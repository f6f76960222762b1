//! Whether the arena is at rest: nobody is in it, and nobody went away in the middle of something.
//!
//! Contract: asked by the one process that is left (or has just begun). Only such an arena may be
//! taken over by another server; the answer to any other is `Region::reset`.

use super::arena::Memory;

/// What is not as it is when nobody is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArenaUnrest {
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
    /// What keeps the arena from being taken over; nothing if it is at rest.
    pub fn unrest(self) -> Option<ArenaUnrest> {
        let epochs = self.epoch_report();
        let header = self.header();
        let latches_are_free = header.chunk_pool.is_at_rest()
            && header.orphans.is_at_rest()
            && self.centers().all(|center| center.is_at_rest());
        if epochs.participants > 0 {
            Some(ArenaUnrest::Participants(epochs.participants))
        } else if epochs.oldest_pinned.is_some() {
            Some(ArenaUnrest::Pinned)
        } else if !latches_are_free {
            Some(ArenaUnrest::Latched)
        } else if epochs.lost_bytes > 0 {
            Some(ArenaUnrest::Lost(epochs.lost_bytes))
        } else {
            None
        }
    }
}
