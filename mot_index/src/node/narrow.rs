//! Narrow leaves: entries of ten bytes instead of sixteen, if all slices of the leaf are alike
//! except for 32 bits.
//!
//! The slices of a leaf lie close to each other. If they are whole numbers, assigned in some order
//! or drawn from a few billion, only their lower halves differ. Slices of four-byte columns differ
//! in the upper half. Slices of two such columns (an order, a line of it) differ in the lower bits
//! of both halves.
//!
//! Such a leaf keeps the bits that its slices share once (its [`Window`]). Of each slice it keeps
//! the 32 bits in which they may differ. Of values it keeps 48 bits, as no value has more
//! ([`MAX_VALUE`]). Eight times 32 bits are compared at once where a wide leaf compares four
//! slices.
//!
//! ```text
//! 0..48     as in every leaf: version, permutation, kinds, bag, next, previous
//! 48..56    what the slices share; zeros in the window
//! 56..116   15 slices' bits in the window
//! 116..176  15 values, the lower 32 bits
//! 176..206  15 values, the upper 16 bits
//! 206, 207  by how many bits each half of the window is shifted
//! ```
//!
//! A leaf is made narrow when a full one is split (or a tree is built). All its slices and the one
//! to come must fit (`split.rs`, `bulk.rs`). A key that does not fit may come later. Then a wide
//! leaf takes the place of the narrow one (`widen.rs`), at most once for each split. The root of a
//! layer is never narrow, as it may become an inner node.
//!
//! For its users it differs from a wide leaf in two points:
//! - A value is two stores. So the replacement of a value that readers may look at is a change that
//!   they must notice (`Node::replace_value`).
//! - What the slices share never changes, so it is no atomic.

use super::leaf::{EntriesOfLeaf, HEAD_CELLS};
use crate::permutation::LEAF_ENTRIES;
use crate::simd::{LANES, halves};
use crate::sync::{AtomicU16, AtomicU32, AtomicU64, Ordering};
use core::ptr::NonNull;

/// Bits of a slice in each half of a window.
const HALF_BITS: u32 = u16::BITS;

/// Where the halves of a window may lie, in the order in which they are tried. Over the lower half
/// of a slice, for numbers of eight bytes. Over the upper half, for numbers of four bytes, after
/// which are zeros. Over the lower parts of both halves, for two of those. And in between, for text
/// that begins alike.
const SHIFTS: [[u8; 2]; 6] = [[0, 16], [32, 48], [0, 32], [8, 24], [16, 32], [24, 40]];

/// The greatest value of an entry. Narrow leaves have room for it, and it is greater than any
/// address.
pub const MAX_VALUE: u64 = (1 << (u32::BITS + u16::BITS)) - 1;

/// What slices share that are alike except for two times 16 bits, and where those bits are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    /// Zeros in the window.
    shared: u64,
    /// The shifts of the lower half and of the upper one.
    shifts: [u8; 2],
}

impl Window {
    /// The first window outside of which some slices do not differ, if there is one. `first` is one
    /// of the slices, and `differing` has ones where any other differs from it.
    pub(crate) fn by(first: u64, differing: u64) -> Option<Self> {
        let window = |shifts: [u8; 2]| Window { shared: 0, shifts };
        let found =
            (SHIFTS.into_iter().map(window)).find(|window| differing & !window.mask() == 0)?;
        Some(Window {
            shared: first & !found.mask(),
            ..found
        })
    }

    /// Ones in the window.
    #[inline(always)]
    fn mask(self) -> u64 {
        let [lower, upper] = self.shifts;
        u64::from(u16::MAX) << lower | u64::from(u16::MAX) << upper
    }

    /// Whether a slice is like the others outside of the window.
    #[inline(always)]
    pub(crate) fn holds(self, slice: u64) -> bool {
        slice & !self.mask() == self.shared
    }

    /// The bits of a slice in the window.
    #[inline(always)]
    fn part(self, slice: u64) -> u32 {
        let [lower, upper] = self.shifts.map(|shift| (slice >> shift) as u16);
        u32::from(upper) << HALF_BITS | u32::from(lower)
    }

    /// The slice that has these bits in the window. A greater part has a greater slice.
    #[inline(always)]
    fn slice(self, part: u32) -> u64 {
        let [lower, upper] = self.shifts;
        self.shared | u64::from(part as u16) << lower | u64::from(part >> HALF_BITS) << upper
    }

    /// The greatest part whose slice is less than this one, which the window does not hold. `None`
    /// if all are greater.
    #[cold]
    fn greatest_before(self, slice: u64) -> Option<u32> {
        let foreign = (slice ^ self.shared) & !self.mask();
        // The highest bit outside of the window in which the slice differs from the others decides.
        // Bits of the window above it come first.
        let bit = foreign.ilog2();
        let below = (self.mask() & ((1 << bit) - 1)).count_ones();
        let lower = (1_u64 << below) - 1;
        let part = u64::from(self.part(slice));
        let greatest = if slice >> bit & 1 == 1 {
            // All slices with the same bits above are less, whatever their lower bits are.
            part | lower
        } else {
            (part & !lower).checked_sub(1)?
        };
        Some(greatest as u32)
    }
}

/// A narrow leaf. See the module.
#[repr(C)]
pub(crate) struct Narrow {
    head: [AtomicU64; 2 + HEAD_CELLS],
    shared: u64,
    /// First the parts of slices, then the lower halves of values: a comparison of sixteen parts
    /// reads one of the latter.
    halves: [AtomicU32; 2 * LEAF_ENTRIES],
    upper: [AtomicU16; LEAF_ENTRIES],
    shifts: [u8; 2],
}

const _: () = assert!(LANES <= 2 * LEAF_ENTRIES);

impl Narrow {
    /// Makes a narrow leaf of a block that has the first cells of a leaf, and zeros after them.
    ///
    /// # Safety
    /// The block is as large as a `Narrow`, and no other thread uses it.
    pub(super) unsafe fn begin(block: NonNull<u8>, window: Window) {
        let narrow = block.cast::<Narrow>().as_ptr();
        // SAFETY: the caller's promise.
        unsafe {
            (&raw mut (*narrow).shared).write(window.shared);
            (&raw mut (*narrow).shifts).write(window.shifts);
        }
    }

    #[inline(always)]
    fn window(&self) -> Window {
        Window {
            shared: self.shared,
            shifts: self.shifts,
        }
    }

    fn parts(&self) -> &[AtomicU32; LANES] {
        self.halves.first_chunk().expect("so many halves")
    }
}

/// The entries of a narrow leaf. What the slices share is read once for all of them: after an
/// acquire load it would be loaded again.
#[derive(Clone, Copy)]
pub(crate) struct NarrowEntries<'n> {
    leaf: &'n Narrow,
    window: Window,
}

impl<'n> NarrowEntries<'n> {
    #[inline(always)]
    pub(super) fn of(leaf: &'n Narrow) -> Self {
        NarrowEntries {
            leaf,
            window: leaf.window(),
        }
    }
}

impl EntriesOfLeaf for NarrowEntries<'_> {
    #[inline(always)]
    fn holds(&self, slice: u64) -> bool {
        self.window.holds(slice)
    }

    #[inline(always)]
    fn key(&self, slot: usize) -> u64 {
        let part = self.leaf.halves[slot].load(Ordering::Relaxed);
        self.window.slice(part)
    }

    fn set_key(&self, slot: usize, slice: u64) {
        debug_assert!(self.holds(slice));
        let part = self.window.part(slice);
        self.leaf.halves[slot].store(part, Ordering::Release);
    }

    #[inline(always)]
    fn value(&self, slot: usize) -> u64 {
        let lower = self.leaf.halves[LEAF_ENTRIES + slot].load(Ordering::Acquire);
        let upper = self.leaf.upper[slot].load(Ordering::Acquire);
        u64::from(upper) << u32::BITS | u64::from(lower)
    }

    fn set_value(&self, slot: usize, value: u64) {
        debug_assert!(value <= MAX_VALUE);
        self.leaf.halves[LEAF_ENTRIES + slot].store(value as u32, Ordering::Release);
        self.leaf.upper[slot].store((value >> u32::BITS) as u16, Ordering::Release);
    }

    #[inline(always)]
    fn first_and_differing(&self) -> [u64; 2] {
        let parts = &self.leaf.halves[..LEAF_ENTRIES];
        let part = |slot: usize| parts[slot].load(Ordering::Relaxed);
        let first = part(0);
        let differing = (1..LEAF_ENTRIES).fold(0, |bits, slot| bits | (part(slot) ^ first));
        let slice = self.window.slice(first);
        [slice, self.window.slice(first ^ differing) ^ slice]
    }

    #[inline(always)]
    fn equal(&self, slice: u64) -> u32 {
        if self.holds(slice) {
            halves::equal(self.leaf.parts(), self.window.part(slice))
        } else {
            0
        }
    }

    #[inline(always)]
    fn equal_and_at_most(&self, slice: u64) -> (u32, u32) {
        if self.holds(slice) {
            return halves::equal_and_at_most(self.leaf.parts(), self.window.part(slice));
        }
        let greatest = self.window.greatest_before(slice);
        let at_most = greatest.map_or(0, |part| halves::at_most(self.leaf.parts(), part));
        (0, at_most)
    }
}

#[cfg(test)]
#[path = "narrow_tests.rs"]
mod tests;
