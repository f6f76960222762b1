//! Reading the entries of a leaf into a batch.

use crate::bag::Bag;
use crate::direction::Direction;
use crate::entries::{Entries, Suffix};
use crate::node::{EntriesOfLeaf, Form, Node, Place, by_form};
use crate::permutation::Permutation;
use crate::slice::{LAYER, SLICE_BYTES, SUFFIX};
use crate::version::Seen;
use core::cmp::Ordering;
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
    /// The bag of the leaf, which has one. `None` if the leaf has changed.
    #[inline]
    pub(super) fn bag(&self) -> Option<Bag> {
        let cell = self.leaf.bag();
        if !self.leaf.is_still(self.seen) {
            return None;
        }
        // SAFETY: read under a validated version in the epoch that is still pinned (`Tree::new`).
        Some(unsafe { Bag::at(cell) }.expect("a leaf with a suffix has a bag"))
    }

    /// The suffix of a slot in a bag of this leaf. The version says later whether the suffix is the
    /// entry's: an entry that existed when the bag was the leaf's has its suffix in it.
    #[inline]
    pub(super) fn suffix(&self, bag: Bag, slot: usize) -> Suffix<'a> {
        // SAFETY: the epoch in which the bag was read is still pinned (`Tree::new`). A word names
        // bytes within the bag that never change, whosever they are, and the bytes after them were
        // added before them.
        unsafe {
            let word = bag.word(slot);
            Suffix::among(bag.suffix(word), bag.readable(word))
        }
    }

    /// Where in the leaf the rest of a key is, or would be, in a bag that is read under the leaf's
    /// version. To be validated: the place means nothing if the leaf has changed.
    #[inline]
    pub(super) fn search(&self, slice: u64, class: u64, suffix: &[u8]) -> Place {
        let mut bag = None;
        self.leaf.search(self.permutation, slice, class, |slot| {
            // Without a bag the leaf has changed, whatever the result is.
            let bag = bag.get_or_insert_with(|| self.bag());
            bag.map_or(Ordering::Less, |bag| {
                self.suffix(bag, slot).bytes.cmp(suffix)
            })
        })
    }

    /// Appends entries, counted in the direction, to a batch until that is full or an entry leads
    /// to a layer. All of it is to be validated. `None` if the leaf has changed.
    #[inline(never)]
    pub(super) fn put_into(
        &self,
        entries: &mut Entries,
        numbers: Range<usize>,
        direction: Direction,
    ) -> Option<Put<'a>> {
        let leaf = self.leaf;
        let kinds = leaf.kinds();
        let (mut read, count) = (numbers.start, numbers.end);
        let mut layer = 0;
        let mut suffix: &[u8] = &[];
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
                    let bag = self.bag()?;
                    let mut slots = slots_from(self.permutation, read, direction);
                    read += by_form!(leaf, leaf => entries.push_longer(count - read, || {
                        let slot = slots.next().filter(|slot| kinds.of(*slot) == SUFFIX)?;
                        let found = self.suffix(bag, slot);
                        suffix = found.bytes;
                        Some((leaf.key(slot), found, leaf.value(slot)))
                    }));
                }
                SLICE if kinds.are_whole_slices() => {
                    let mut slots = slots_from(self.permutation, read, direction);
                    let mut next = || slots.next().expect("slots without an end");
                    read += by_form!(leaf, leaf => entries.push_whole(count - read, || {
                        let slot = next();
                        (leaf.key(slot), leaf.value(slot))
                    }));
                }
                0..=SLICE => {
                    let slot = |number| slot_at(self.permutation, read + number, direction);
                    read += by_form!(leaf, leaf => entries.push_run(count - read, |number| {
                        let slot = slot(number);
                        (leaf.key(slot), kinds.of(slot), leaf.value(slot))
                    }));
                }
                // No leaf any more.
                _ => return None,
            }
        }
        Some(Put {
            read,
            layer,
            suffix,
        })
    }
}

/// How far appending entries to a batch went.
pub(super) struct Put<'a> {
    /// The number of the first entry not read.
    pub(super) read: usize,
    /// The address of the layer that the last entry read leads to, or 0.
    pub(super) layer: u64,
    /// The last entry's suffix, if it has one.
    pub(super) suffix: &'a [u8],
}

/// The slot of an entry, counted in the direction of a scan.
#[inline(always)]
pub(super) fn slot_at(permutation: Permutation, number: usize, direction: Direction) -> usize {
    permutation.slot(match direction {
        Direction::Forward => number,
        Direction::Backward => permutation.count() - 1 - number,
    })
}

/// The slots of entries from one on, counted in the direction of a scan.
#[inline(always)]
fn slots_from(
    permutation: Permutation,
    number: usize,
    direction: Direction,
) -> impl Iterator<Item = usize> {
    match direction {
        Direction::Forward => permutation.slots_from(number, true),
        Direction::Backward => permutation.slots_from(permutation.count() - 1 - number, false),
    }
}
