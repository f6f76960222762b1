//! Suffix bags: what is behind the slice of keys that are alone on it.
//!
//! A bag belongs to one leaf and holds the suffixes of its entries of kind `SUFFIX`, found by slot.
//! It is a block of its own, sized for what it holds, so that leaves of short keys pay nothing.
//!
//! ```text
//! 0..2   size of the block in units of 4 bytes
//! 2..4   units used
//! 4..64  for each slot: where its suffix begins (units, high half) and its length (bytes)
//! 64..   suffixes, appended
//! ```
//!
//! Contract: only the owner of the leaf's latch appends. Bytes of a suffix never change once its
//! slot's word is stored, and words always lie within the block, so a reader in an epoch in which
//! the bag was reachable may read whatever a word says; whether it belongs to the entry the reader
//! means is for the leaf's version to tell. What is given up stays until the bag is rebuilt.

use crate::memory::{Memory, OutOfMemory};
use crate::node::Node;
use crate::permutation::{LEAF_ENTRIES, Permutation};
use crate::slice::{MAX_KEY_BYTES, SUFFIX};
use crate::sync::{AtomicU16, AtomicU32, Ordering, prefetch};
use core::alloc::Layout;
use core::ptr::NonNull;

const UNIT_BYTES: usize = 4;
const ALIGN_BYTES: usize = 16;
/// Blocks are multiples of this, to fall into few size classes.
const GRAIN_BYTES: usize = 32;

/// Suffixes of a few entries, or half of those of a full leaf.
const FEW_BYTES: usize = 192;

#[repr(C)]
struct Header {
    size_units: u16,
    used_units: AtomicU16,
    slots: [AtomicU32; LEAF_ENTRIES],
}

const HEADER_BYTES: usize = size_of::<Header>();
const MAX_BYTES: usize = u16::MAX as usize * UNIT_BYTES / GRAIN_BYTES * GRAIN_BYTES;

const _: () = {
    assert!(HEADER_BYTES == 64);
    assert!(HEADER_BYTES + LEAF_ENTRIES * MAX_KEY_BYTES <= MAX_BYTES);
    assert!(MAX_KEY_BYTES <= u16::MAX as usize);
};

/// A bag, or rather its address.
#[derive(Clone, Copy)]
pub(crate) struct Bag(NonNull<u8>);

impl Bag {
    /// The bytes a suffix takes in a bag.
    pub(crate) fn stored_bytes(suffix_bytes: usize) -> usize {
        suffix_bytes.next_multiple_of(UNIT_BYTES)
    }

    /// The bag at an address read from a leaf; `None` for 0.
    ///
    /// # Safety
    /// `address` is 0 or that of a bag which is not freed while the result is used: it was read
    /// from a leaf under a validated version or its latch, in the epoch that is still pinned.
    #[inline]
    pub(crate) unsafe fn at(address: u64) -> Option<Bag> {
        let ptr = core::ptr::with_exposed_provenance_mut::<u8>(address as usize);
        NonNull::new(ptr).map(Bag)
    }

    pub(crate) fn address(self) -> u64 {
        self.0.addr().get() as u64
    }

    /// Brings the bag at an address nearer as far as it is read with a few entries; 0 is no bag.
    #[inline]
    pub(crate) fn prefetch(address: u64) {
        if address != 0 {
            prefetch(address, HEADER_BYTES + FEW_BYTES);
        }
    }

    #[inline]
    fn header<'b>(self) -> &'b Header {
        // SAFETY: a `Bag` is made only of blocks `create` has initialised, and only while they are
        // not freed; all fields but the constant size are atomics.
        unsafe { self.0.cast::<Header>().as_ref() }
    }

    /// A new bag with room for `suffix_bytes` bytes of suffixes (each rounded by [`Bag::stored_bytes`]).
    pub(crate) fn create<M: Memory>(memory: &M, suffix_bytes: usize) -> Result<Bag, OutOfMemory> {
        let bytes = (HEADER_BYTES + suffix_bytes)
            .next_multiple_of(GRAIN_BYTES)
            .min(MAX_BYTES);
        debug_assert!(bytes >= HEADER_BYTES + suffix_bytes);
        let block = memory.allocate(Self::layout_of(bytes)).ok_or(OutOfMemory)?;
        let header = Header {
            size_units: (bytes / UNIT_BYTES) as u16,
            used_units: AtomicU16::new((HEADER_BYTES / UNIT_BYTES) as u16),
            slots: [const { AtomicU32::new(0) }; LEAF_ENTRIES],
        };
        // SAFETY: the block is ours alone, large enough and aligned for the header.
        unsafe { block.cast::<Header>().write(header) };
        let _ = block.as_ptr().expose_provenance();
        Ok(Bag(block))
    }

    fn layout_of(bytes: usize) -> Layout {
        Layout::from_size_align(bytes, ALIGN_BYTES).expect("bags are far smaller than isize::MAX")
    }

    /// The layout the bag was allocated with.
    pub(crate) fn layout(self) -> Layout {
        Self::layout_of(self.bytes())
    }

    pub(crate) fn block(self) -> NonNull<u8> {
        self.0
    }

    pub(crate) fn bytes(self) -> usize {
        usize::from(self.header().size_units) * UNIT_BYTES
    }

    pub(crate) fn used_bytes(self) -> usize {
        usize::from(self.header().used_units.load(Ordering::Relaxed)) * UNIT_BYTES
    }

    /// Where the suffix of a slot is, to be read with [`Bag::suffix`] after validation.
    #[inline]
    pub(crate) fn word(self, slot: usize) -> u32 {
        self.header().slots[slot].load(Ordering::Acquire)
    }

    /// The suffix a word of this bag names.
    ///
    /// # Safety
    /// `word` was read from this bag, and the bag is not freed during `'b`.
    #[inline]
    pub(crate) unsafe fn suffix<'b>(self, word: u32) -> &'b [u8] {
        let offset = (word >> 16) as usize * UNIT_BYTES;
        let length = (word & 0xFFFF) as usize;
        // SAFETY: a stored word lies within the block, its bytes were written before the word was
        // stored (release, acquire) and are never written again.
        unsafe { core::slice::from_raw_parts(self.0.as_ptr().add(offset), length) }
    }

    /// Whether a word names a suffix within what the bag has used; for checks.
    pub(crate) fn holds(self, word: u32) -> bool {
        let begin = (word >> 16) as usize * UNIT_BYTES;
        let length = (word & 0xFFFF) as usize;
        length > 0 && begin >= HEADER_BYTES && begin + length <= self.used_bytes()
    }

    pub(crate) fn has_room(self, suffix_bytes: usize) -> bool {
        self.used_bytes() + Bag::stored_bytes(suffix_bytes) <= self.bytes()
    }

    /// Makes `suffix` the suffix of a slot. Only for the owner of the leaf, who asked `has_room`.
    pub(crate) fn put(self, slot: usize, suffix: &[u8]) {
        assert!(
            self.has_room(suffix.len()),
            "a bag was not made large enough"
        );
        let offset = self.used_bytes();
        // SAFETY: the room asserted above is within the block, and no stored word names it yet.
        unsafe {
            let to = self.0.as_ptr().add(offset);
            core::ptr::copy_nonoverlapping(suffix.as_ptr(), to, suffix.len());
        }
        let used = offset + Bag::stored_bytes(suffix.len());
        let header = self.header();
        header
            .used_units
            .store((used / UNIT_BYTES) as u16, Ordering::Relaxed);
        let word = ((offset / UNIT_BYTES) as u32) << 16 | suffix.len() as u32;
        header.slots[slot].store(word, Ordering::Release);
    }
}

/// The suffix of an entry of kind `SUFFIX` of a leaf the caller owns.
pub(crate) fn owned_suffix(leaf: &Node, slot: usize) -> &[u8] {
    debug_assert!(leaf.kinds().of(slot) == SUFFIX);
    // SAFETY: the owner of the leaf's latch sees its current bag, which only it could retire, and
    // the epoch in which the leaf may be used keeps the bag as well.
    unsafe {
        let bag = Bag::at(leaf.bag()).expect("a leaf with a suffix has a bag");
        bag.suffix(bag.word(slot))
    }
}

/// The bytes the suffixes at some positions of an owned leaf take in a bag.
pub(crate) fn suffix_bytes(
    leaf: &Node,
    permutation: Permutation,
    positions: core::ops::Range<usize>,
) -> usize {
    let kinds = leaf.kinds();
    positions
        .map(|position| permutation.slot(position))
        .filter(|slot| kinds.of(*slot) == SUFFIX)
        .map(|slot| Bag::stored_bytes(owned_suffix(leaf, slot).len()))
        .sum()
}

/// What to allocate for suffixes of `bytes` bytes to which more will come: a quarter more, so that
/// a filling leaf does not rebuild its bag for each entry.
pub(crate) fn with_reserve(bytes: usize) -> usize {
    (bytes + bytes / 4).min(MAX_BYTES - HEADER_BYTES).max(bytes)
}

/// A bag for one more suffix in an owned leaf, if its bag has no room: a copy of what the current
/// bag holds for the leaf's entries, with room for `more` bytes.
pub(crate) fn enlarge<M: Memory>(
    memory: &M,
    leaf: &Node,
    more: usize,
) -> Result<Option<Bag>, OutOfMemory> {
    // SAFETY: as in `owned_suffix`.
    if let Some(bag) = unsafe { Bag::at(leaf.bag()) }
        && bag.has_room(more)
    {
        return Ok(None);
    }
    let permutation = leaf.permutation();
    let kept = suffix_bytes(leaf, permutation, 0..permutation.count());
    let bag = Bag::create(memory, with_reserve(kept + Bag::stored_bytes(more)))?;
    let kinds = leaf.kinds();
    for position in 0..permutation.count() {
        let slot = permutation.slot(position);
        if kinds.of(slot) == SUFFIX {
            bag.put(slot, owned_suffix(leaf, slot));
        }
    }
    Ok(Some(bag))
}
