//! Wide leaves: entries of a whole slice and a whole value, in cells.

use super::leaf::{EntriesOfLeaf, HEAD_CELLS};
use super::{CELLS, Node};
use crate::permutation::LEAF_ENTRIES;
use crate::simd::{self, LANES};
use crate::sync::{AtomicU64, Ordering};

pub(super) const KEYS: usize = HEAD_CELLS;
pub(super) const VALUES: usize = KEYS + LEAF_ENTRIES;

const _: () = assert!(VALUES + LEAF_ENTRIES == CELLS);

/// A node as a wide leaf.
#[derive(Clone, Copy)]
pub(crate) struct Wide<'n>(pub(super) &'n Node);

impl Wide<'_> {
    /// The sixteen cells that begin with the slices; the last is no slice.
    #[inline(always)]
    fn slices(&self) -> &[AtomicU64; LANES] {
        self.0.cells[KEYS..].first_chunk().expect("so many cells")
    }
}

impl EntriesOfLeaf for Wide<'_> {
    #[inline(always)]
    fn holds(&self, _: u64) -> bool {
        true
    }

    #[inline(always)]
    fn key(&self, slot: usize) -> u64 {
        self.0.load(KEYS + slot)
    }

    fn set_key(&self, slot: usize, slice: u64) {
        self.0.store(KEYS + slot, slice);
    }

    #[inline(always)]
    fn value(&self, slot: usize) -> u64 {
        self.0.cell(VALUES + slot).load(Ordering::Acquire)
    }

    fn set_value(&self, slot: usize, value: u64) {
        self.0.cell(VALUES + slot).store(value, Ordering::Release);
    }

    #[inline(always)]
    fn first_and_differing(&self) -> [u64; 2] {
        let first = self.key(0);
        let differing = (1..LEAF_ENTRIES).fold(0, |bits, slot| bits | (self.key(slot) ^ first));
        [first, differing]
    }

    #[inline(always)]
    fn equal(&self, slice: u64) -> u32 {
        simd::equal(self.slices(), slice)
    }

    #[inline(always)]
    fn equal_and_at_most(&self, slice: u64) -> (u32, u32) {
        simd::equal_and_at_most(self.slices(), slice)
    }
}
