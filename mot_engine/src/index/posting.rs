//! The slots of a pointed key.
//!
//! A tree value is one slot, shifted left by one, or the address of a posting block with the low bit set. A block has a fixed number of
//! cells; a cell holds a slot or [`EMPTY`]. Cells change only under the leaf's latch; readers load them one by one, which is
//! enough: what they find they judge by the row itself. A block is retired, never freed, when the tree stops pointing to it.

use crate::errors::EngineError;
use crate::ids::Slot;
use crate::memory::{LocalMemory, Purpose, Urgency};
use crate::sync::{AtomicU64, Ordering};
use std::ptr::NonNull;

const EMPTY: u64 = u64::MAX;
const BLOCK_TAG: u64 = 1;

/// A posting block.
#[derive(Copy, Clone)]
pub(crate) struct Posting(NonNull<AtomicU64>);

fn block_bytes(cells: usize) -> usize {
    ((cells + 1) * size_of::<u64>()).next_multiple_of(16)
}

impl Posting {
    /// A block with all cells empty.
    pub(crate) fn allocate(memory: &LocalMemory, cells: usize) -> Result<Posting, EngineError> {
        let block = memory.allocate(block_bytes(cells), Purpose::Index, Urgency::Ordinary)?;
        let words = block.cast::<AtomicU64>();
        // SAFETY: the block is ours and has a word for the count and one for each cell.
        unsafe {
            words.write(AtomicU64::new(cells as u64));
            for cell in 1..=cells {
                words.add(cell).write(AtomicU64::new(EMPTY));
            }
        }
        Ok(Posting(words))
    }

    /// The block of a tree value that has one.
    pub(crate) fn of(value: u64) -> Option<Posting> {
        (value & BLOCK_TAG != 0)
            .then(|| Posting(NonNull::new((value & !BLOCK_TAG) as *mut AtomicU64).expect("tagged")))
    }

    pub(crate) fn value(self) -> u64 {
        self.0.as_ptr() as u64 | BLOCK_TAG
    }

    pub(crate) fn cells<'a>(self) -> &'a [AtomicU64] {
        // SAFETY: a block has a count and as many cells; it is retired, not freed, so it lives while the caller is pinned.
        unsafe {
            let count = self.0.as_ref().load(Ordering::Relaxed) as usize;
            std::slice::from_raw_parts(self.0.as_ptr().add(1), count)
        }
    }

    /// The cells, each a step.
    fn walk<'a>(self) -> impl Iterator<Item = &'a AtomicU64> {
        self.cells().iter().inspect(|_| crate::steps::step())
    }

    /// Puts the slot into an empty cell. Under the leaf's latch.
    pub(crate) fn add(self, slot: Slot) -> bool {
        let empty = self
            .walk()
            .find(|cell| cell.load(Ordering::Relaxed) == EMPTY);
        empty
            .inspect(|cell| cell.store(slot.0, Ordering::Release))
            .is_some()
    }

    /// Puts slots into a block that is not published and large enough.
    pub(crate) fn fill(self, slots: impl Iterator<Item = Slot>) {
        for (cell, slot) in self.walk().zip(slots) {
            cell.store(slot.0, Ordering::Release);
        }
    }

    /// Empties the slot's cell. Under the leaf's latch.
    pub(crate) fn remove(self, slot: Slot) -> bool {
        let its = self
            .walk()
            .find(|cell| cell.load(Ordering::Relaxed) == slot.0);
        its.inspect(|cell| cell.store(EMPTY, Ordering::Release))
            .is_some()
    }

    /// Its slots. Cells change meanwhile, unless the leaf is latched.
    pub(crate) fn slots(self) -> impl Iterator<Item = Slot> {
        self.walk()
            .map(|cell| cell.load(Ordering::Acquire))
            .filter(|slot| *slot != EMPTY)
            .map(Slot)
    }

    /// Its first slots, if it has as many.
    pub(crate) fn first_two(self) -> [Option<Slot>; 2] {
        let mut slots = self.slots();
        std::array::from_fn(|_| slots.next())
    }

    /// # Safety
    /// Never published.
    pub(crate) unsafe fn free(self, memory: &LocalMemory) {
        // SAFETY: allocated with these bytes; unpublished (caller).
        unsafe {
            memory.free(
                self.0.cast(),
                block_bytes(self.cells().len()),
                Purpose::Index,
            )
        };
    }

    /// # Safety
    /// No tree value names it any more.
    pub(crate) unsafe fn retire(self, memory: &LocalMemory) {
        // SAFETY: allocated with these bytes; unreachable for whoever pins from now on (caller).
        unsafe {
            memory.retire(
                self.0.cast(),
                block_bytes(self.cells().len()),
                Purpose::Index,
            )
        };
    }
}

/// A tree value with one slot.
pub(crate) fn inline_value(slot: Slot) -> u64 {
    slot.0 << 1
}

/// Calls `visit` with each slot of a tree value.
pub(crate) fn slots_of(value: u64, mut visit: impl FnMut(Slot)) {
    match Posting::of(value) {
        None => visit(Slot(value >> 1)),
        Some(block) => block.slots().for_each(visit),
    }
}

/// The slot of a tree value that has one and no block.
pub(crate) fn only_slot(value: u64) -> Option<Slot> {
    (value & BLOCK_TAG == 0).then_some(Slot(value >> 1))
}

/// At most so many slots.
pub(crate) fn slots_len(value: u64) -> usize {
    Posting::of(value).map_or(1, |block| block.cells().len())
}
