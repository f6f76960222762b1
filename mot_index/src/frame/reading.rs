//! Reading the entries of a leaf into a batch.

use crate::bag::Bag;
use crate::batch::{Direction, Entries};
use crate::node::Node;
use crate::permutation::Permutation;
use crate::slice::{LAYER, SLICE_BYTES, SUFFIX};
use crate::version::Seen;
use core::ops::Range;

/// The kind of a key that ends with its slice.
const SLICE: u64 = SLICE_BYTES as u64;

/// A leaf as it is read: which entries, and under which version.
#[derive(Clone, Copy)]
pub(super) struct Reading<'a> {
    pub(super) leaf: &'a Node,
    /// The leaf's version when the permutation was read.
    pub(super) seen: Seen,
    pub(super) permutation: Permutation,
}

impl<'a> Reading<'a> {
    /// The bag of the leaf, which has one; `None` if the leaf has changed.
    #[inline]
    pub(super) fn bag(&self) -> Option<Bag> {
        let cell = self.leaf.bag();
        if !self.leaf.is_still(self.seen) {
            return None;
        }
        // SAFETY: read under a validated version in the epoch that is still pinned (`Tree::new`).
        Some(unsafe { Bag::at(cell) }.expect("a leaf with a suffix has a bag"))
    }

    /// The suffix of a slot in a bag of this leaf. Whether it is the entry's is for the version to tell, later: an entry that was there when
    /// the bag was the leaf's has it in there.
    #[inline]
    pub(super) fn suffix(&self, bag: Bag, slot: usize) -> &'a [u8] {
        // SAFETY: the epoch in which the bag was read is still pinned (`Tree::new`); a word names bytes within the bag
        // that never change, whosever they are.
        unsafe { bag.suffix(bag.word(slot)) }
    }

    /// Puts entries, counted in the direction, into a batch until that is full or one of them leads to a layer: which is the first not read, and
    /// the layer's address or 0. All of it is to be validated; `None` if the leaf has changed.
    #[inline(always)]
    pub(super) fn put_into(
        &self,
        entries: &mut Entries,
        numbers: Range<usize>,
        direction: Direction,
    ) -> Option<(usize, u64)> {
        let leaf = self.leaf;
        let kinds = leaf.kinds();
        let (mut read, count) = (numbers.start, numbers.end);
        let mut layer = 0;
        let mut bag = None;
        if read == 0 {
            Bag::prefetch(leaf.bag());
        }
        while read < count && layer == 0 && !entries.is_full() {
            let slot = slot_at(self.permutation, read, direction);
            match kinds.of(slot) {
                LAYER => {
                    layer = leaf.value(slot);
                    read += 1;
                }
                SUFFIX => {
                    let from = match bag {
                        Some(bag) => bag,
                        None => *bag.insert(self.bag()?),
                    };
                    entries.push(leaf.key(slot), self.suffix(from, slot), leaf.value(slot));
                    read += 1;
                }
                0..=SLICE => {
                    read += entries.push_run(count - read, |number| {
                        let slot = slot_at(self.permutation, read + number, direction);
                        (leaf.key(slot), kinds.of(slot), leaf.value(slot))
                    });
                }
                // No leaf any more.
                _ => return None,
            }
        }
        Some((read, layer))
    }
}

/// The slot of an entry, counted in the direction of a scan.
#[inline(always)]
pub(super) fn slot_at(permutation: Permutation, number: usize, direction: Direction) -> usize {
    permutation.slot(match direction {
        Direction::Forward => number,
        Direction::Backward => permutation.count() - 1 - number,
    })
}
