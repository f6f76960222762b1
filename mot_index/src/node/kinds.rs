//! The kinds of a leaf's entries.

use super::NO_SLOT;
use crate::permutation::LEAF_ENTRIES;
#[cfg(doc)]
use crate::slice::SUFFIX;
use crate::slice::{LAYER, SLICE_BYTES};

/// Bits of a kind in the kinds cell. The field of slot 15 names the slot that was filled last.
const KIND_BITS: usize = 4;
const KIND: u64 = 0xF;
/// The kind of a key that ends with its slice, in all slots.
const WHOLE_SLICES: u64 = 0x0888_8888_8888_8888;

const _: () = assert!(WHOLE_SLICES & KIND == SLICE_BYTES as u64);

/// The kinds of a leaf's entries by slot, and the slot that was filled last.
#[derive(Clone, Copy)]
pub(crate) struct Kinds(pub(super) u64);

impl Kinds {
    /// The kinds of a leaf without entries. Slots that were never filled have the kind that most
    /// entries have.
    pub(super) const NONE: Kinds =
        Kinds((NO_SLOT as u64) << (KIND_BITS * LEAF_ENTRIES) | WHOLE_SLICES);

    #[inline]
    pub(crate) fn of(self, slot: usize) -> u64 {
        (self.0 >> (KIND_BITS * slot)) & KIND
    }

    /// Whether all entries end with their slices. A removed entry counts until its slot is used
    /// again.
    #[inline(always)]
    pub(crate) fn are_whole_slices(self) -> bool {
        (self.0 ^ WHOLE_SLICES) << KIND_BITS == 0
    }

    /// Whether an entry may lead to a layer. A removed entry counts until its slot is used again.
    #[inline]
    pub(crate) fn may_have_layers(self) -> bool {
        // Of all kinds only `LAYER`, 1010, has these two bits.
        const HIGHEST: u64 = 0x0888_8888_8888_8888;
        self.0 & self.0 << 2 & HIGHEST != 0
    }

    /// Whether an entry may have a suffix. A removed entry counts here, too.
    #[inline]
    pub(crate) fn may_have_suffixes(self) -> bool {
        // Of all kinds only `SUFFIX`, 1001, has these two bits.
        const HIGHEST: u64 = 0x0888_8888_8888_8888;
        self.0 & self.0 << 3 & HIGHEST != 0
    }

    pub(crate) fn with(self, slot: usize, kind: u64) -> Self {
        debug_assert!(slot < LEAF_ENTRIES && kind <= LAYER);
        Kinds(self.0 & !(KIND << (KIND_BITS * slot)) | kind << (KIND_BITS * slot))
    }

    /// The slot that was filled last, or [`NO_SLOT`].
    pub(crate) fn last(self) -> usize {
        self.of(LEAF_ENTRIES) as usize
    }

    pub(crate) fn with_last(self, slot: usize) -> Self {
        const SHIFT: usize = KIND_BITS * LEAF_ENTRIES;
        Kinds(self.0 & !(KIND << SHIFT) | (slot as u64) << SHIFT)
    }
}
