//! A process's garbage: blocks it retired and may not free yet.
//!
//! Contract: process-local. New blocks are open; `seal` stamps all open ones with the current epoch
//! (one fence for the batch, not one per block). A sealed block may be freed when the epoch is
//! `EPOCHS_TO_SAFETY` further. Stamps ascend.

use super::account::Purpose;
use super::epoch::EPOCHS_TO_SAFETY;
use std::collections::VecDeque;
use std::ptr::NonNull;

/// A block that was made unreachable.
#[derive(Clone, Copy, Debug)]
pub(super) struct Retired {
    pub(super) at: NonNull<u8>,
    pub(super) bytes: usize,
    pub(super) purpose: Purpose,
}

#[derive(Default)]
pub(super) struct Garbage {
    blocks: VecDeque<Retired>,
    /// Sealed batches, oldest first: stamp and number of blocks.
    batches: VecDeque<(u64, usize)>,
    /// Blocks at the end not sealed yet.
    open: usize,
    bytes: usize,
}

impl Garbage {
    /// Adds an open block; gives it back if the process has no memory for it.
    pub(super) fn push(&mut self, retired: Retired) -> Result<(), Retired> {
        if self.blocks.try_reserve(1).is_err() || self.batches.try_reserve(1).is_err() {
            return Err(retired);
        }
        self.blocks.push_back(retired);
        self.bytes += retired.bytes;
        self.open += 1;
        Ok(())
    }

    /// Stamps the open blocks. `push` has reserved the place.
    pub(super) fn seal(&mut self, stamp: u64) {
        if self.open == 0 {
            return;
        }
        match self.batches.back_mut() {
            Some((last, blocks)) if *last == stamp => *blocks += self.open,
            _ => self.batches.push_back((stamp, self.open)),
        }
        self.open = 0;
    }

    /// The oldest block, if it may be freed in epoch `now`.
    pub(super) fn pop_free(&mut self, now: u64) -> Option<Retired> {
        let &(stamp, _) = self.batches.front()?;
        let early = u64::from(crate::sync::is_broken("epochs: the second epoch"));
        if stamp + EPOCHS_TO_SAFETY - early > now {
            return None;
        }
        self.pop().map(|(retired, _)| retired)
    }

    /// Whether `pop` has something to give.
    pub(super) fn has_sealed(&self) -> bool {
        !self.batches.is_empty()
    }

    /// The oldest sealed block and its stamp.
    pub(super) fn pop(&mut self) -> Option<(Retired, u64)> {
        let (stamp, blocks) = self.batches.front_mut()?;
        let stamp = *stamp;
        *blocks -= 1;
        if *blocks == 0 {
            self.batches.pop_front();
        }
        let retired = self.blocks.pop_front()?;
        self.bytes -= retired.bytes;
        Some((retired, stamp))
    }

    pub(super) fn blocks(&self) -> usize {
        self.blocks.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn retired(bytes: usize) -> Retired {
        Retired {
            at: NonNull::dangling(),
            bytes,
            purpose: Purpose::Other,
        }
    }

    #[test]
    fn freed_two_epochs_after_the_seal_in_order() {
        let mut garbage = Garbage::default();
        garbage.push(retired(1)).unwrap();
        garbage.push(retired(2)).unwrap();
        assert!(garbage.pop_free(100).is_none(), "open blocks are not freed");
        garbage.seal(5);
        garbage.push(retired(3)).unwrap();
        garbage.seal(6);
        assert_eq!((garbage.blocks(), garbage.bytes()), (3, 6));
        assert!(garbage.pop_free(6).is_none());
        assert_eq!(garbage.pop_free(7).map(|r| r.bytes), Some(1));
        assert_eq!(garbage.pop_free(7).map(|r| r.bytes), Some(2));
        assert!(garbage.pop_free(7).is_none());
        let known = |found: Option<(Retired, u64)>| found.map(|(r, stamp)| (r.bytes, stamp));
        assert!(garbage.has_sealed());
        assert_eq!(known(garbage.pop()), Some((3, 6)));
        assert!(!garbage.has_sealed());
        assert_eq!((garbage.blocks(), garbage.bytes()), (0, 0));
    }
}
