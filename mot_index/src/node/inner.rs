//! A node as an inner node: separators, and children between them.

use super::{CELLS, INNER_KEYS, Node};
use crate::simd;
use crate::sync::Ordering;

const SEPARATORS: usize = 0;
const CHILDREN: usize = INNER_KEYS;

const _: () = assert!(CHILDREN + INNER_KEYS < CELLS);

impl Node {
    #[inline]
    pub(crate) fn count(&self) -> usize {
        // A reader may hold a leaf by now, whose permutation is in the same place.
        (self.word.load(Ordering::Acquire) as usize).min(INNER_KEYS)
    }

    pub(crate) fn set_count(&self, count: usize) {
        debug_assert!(count <= INNER_KEYS);
        self.word.store(count as u64, Ordering::Release);
    }

    #[inline]
    pub(crate) fn separator(&self, index: usize) -> u64 {
        self.load(SEPARATORS + index)
    }

    pub(crate) fn set_separator(&self, index: usize, slice: u64) {
        debug_assert!(index < INNER_KEYS);
        self.store(SEPARATORS + index, slice);
    }

    #[inline]
    pub(crate) fn child(&self, index: usize) -> u64 {
        self.cell(CHILDREN + index).load(Ordering::Acquire)
    }

    pub(crate) fn set_child(&self, index: usize, address: u64) {
        debug_assert!(index <= INNER_KEYS);
        self.cell(CHILDREN + index)
            .store(address, Ordering::Release);
    }

    /// The index of the child that covers a slice: separators are the least slices right of them.
    #[inline(always)]
    pub(crate) fn route(&self, slice: u64) -> usize {
        let cells = self.cells[SEPARATORS..]
            .first_chunk()
            .expect("so many cells");
        let behind = !simd::at_most(cells, slice) | 1 << self.count();
        behind.trailing_zeros() as usize
    }

    /// Inserts a child that covers what its left neighbour covered from `separator` on. The owner
    /// has made the node dirty.
    pub(crate) fn insert_child(&self, separator: u64, address: u64) {
        let count = self.count();
        let index = self.route(separator);
        debug_assert!(count < INNER_KEYS);
        for at in (index..count).rev() {
            self.set_separator(at + 1, self.separator(at));
            self.set_child(at + 2, self.child(at + 1));
        }
        self.set_separator(index, separator);
        self.set_child(index + 1, address);
        self.set_count(count + 1);
    }

    /// Removes the child at `index`. A neighbour covers its range from now on. The owner has made
    /// the node dirty.
    pub(crate) fn remove_child(&self, index: usize) {
        let count = self.count();
        debug_assert!(count > 0 && index <= count);
        for at in index.max(1)..count {
            self.set_separator(at - 1, self.separator(at));
        }
        for at in index..count {
            self.set_child(at, self.child(at + 1));
        }
        self.set_count(count - 1);
    }
}
