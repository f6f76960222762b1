//! Suffix bags: the rest of keys after a slice that they share with few others.
//!
//! A bag belongs to one leaf and holds the suffixes of its entries of kind `SUFFIX`, found by slot.
//! It is a block of its own, sized for its content, so that leaves of short keys pay nothing.
//!
//! ```text
//! 0..4   size of the block in bytes
//! 4..64  for each slot: where its suffix begins (units of 4 bytes, high half),
//!        and its length (bytes)
//! 64..   room, then suffixes, each put before the one put last
//! ```
//!
//! The leaf's cell names the bag: its address in the low 48 bits, and above them how many units of
//! room are left. Room ends where the suffixes begin. So a writer knows from the leaf alone whether
//! a suffix fits and where it goes. An insert stores to the bag, loads nothing from it, and need
//! not wait for a miss.
//!
//! Contract: only the owner of the leaf's latch adds suffixes, and stores the cell with the room
//! that is left then. Bytes of a suffix never change once its slot's word is stored, and words
//! always lie within the block. So a reader in an epoch in which the bag was reachable may read
//! whatever a word names. Only the leaf's version says whether the word belongs to the entry that
//! the reader means. Unused suffixes stay until the bag is rebuilt.

use crate::memory::{Memory, OutOfMemory};
use crate::permutation::LEAF_ENTRIES;
use crate::slice::MAX_KEY_BYTES;
use crate::sync::{AtomicU32, Ordering, prefetch_all};
use core::alloc::Layout;
use core::ptr::NonNull;

const UNIT_BYTES: usize = 4;
const ALIGN_BYTES: usize = 16;
/// Blocks are multiples of this, so that there are few size classes.
const GRAIN_BYTES: usize = 32;

/// Suffixes of a few entries, or half of those of a full leaf.
const FEW_BYTES: usize = 192;

/// A bag is made for so many entries at least: those that share a slice are seldom more.
const LEAST_ENTRIES: usize = 4;
/// No more than this is reserved for entries to come, unless a quarter of the content is more.
const RESERVE_BYTES_MAX: usize = 1024;

/// The bits of a leaf's cell that are the bag's address. Those above are its room.
const ADDRESS_BITS: u32 = 48;
const ADDRESS: u64 = (1 << ADDRESS_BITS) - 1;

#[repr(C)]
struct Header {
    size_bytes: u32,
    slots: [AtomicU32; LEAF_ENTRIES],
}

const HEADER_BYTES: usize = size_of::<Header>();
const MAX_BYTES: usize = u16::MAX as usize * UNIT_BYTES / GRAIN_BYTES * GRAIN_BYTES;
/// Bytes of suffixes that a bag has at most.
pub(crate) const CONTENT_BYTES_MAX: usize = MAX_BYTES - HEADER_BYTES;

const _: () = {
    assert!(HEADER_BYTES == 64);
    assert!(HEADER_BYTES + LEAF_ENTRIES * MAX_KEY_BYTES <= MAX_BYTES);
    assert!(MAX_KEY_BYTES <= u16::MAX as usize);
    // Every multiple of four in a block, and its room, is a number of units of 16 bits.
    assert!(MAX_BYTES / UNIT_BYTES <= u16::MAX as usize);
};

/// A bag as a leaf's cell names it: its address, and how much room it had when the cell was read.
#[derive(Clone, Copy)]
pub(crate) struct Bag {
    block: NonNull<u8>,
    room_units: u16,
}

impl Bag {
    /// The bytes a suffix takes in a bag.
    pub(crate) fn stored_bytes(suffix_bytes: usize) -> usize {
        suffix_bytes.next_multiple_of(UNIT_BYTES)
    }

    /// The bag a leaf's cell names; `None` for 0.
    ///
    /// # Safety
    /// `cell` is 0 or names a bag that is not freed while the result is used. It was read from a
    /// leaf under a validated version or its latch, in the epoch that is still pinned.
    #[inline]
    pub(crate) unsafe fn at(cell: u64) -> Option<Bag> {
        let ptr = core::ptr::with_exposed_provenance_mut::<u8>((cell & ADDRESS) as usize);
        Some(Bag {
            block: NonNull::new(ptr)?,
            room_units: (cell >> ADDRESS_BITS) as u16,
        })
    }

    /// The leaf's cell for the bag as it is now.
    pub(crate) fn cell(self) -> u64 {
        self.block.addr().get() as u64 | u64::from(self.room_units) << ADDRESS_BITS
    }

    /// Prefetches as much of the bag that a cell names as is read with a few entries; 0 is no bag.
    #[inline]
    pub(crate) fn prefetch(cell: u64) {
        if cell != 0 {
            let header = cell & ADDRESS;
            let room = (cell >> ADDRESS_BITS) * UNIT_BYTES as u64;
            prefetch_all(header, HEADER_BYTES);
            prefetch_all(header + room + HEADER_BYTES as u64, FEW_BYTES);
        }
    }

    /// Prefetches what an insert of a suffix stores to. If the suffix does not fit, prefetches what
    /// is then copied.
    #[inline]
    pub(crate) fn prefetch_to_put(cell: u64, suffix_bytes: usize) {
        let room = (cell >> ADDRESS_BITS) as usize * UNIT_BYTES;
        match room.checked_sub(Bag::stored_bytes(suffix_bytes)) {
            Some(left) => {
                let header = cell & ADDRESS;
                prefetch_all(header, HEADER_BYTES);
                prefetch_all(header + (HEADER_BYTES + left) as u64, suffix_bytes);
            }
            None => Bag::prefetch(cell),
        }
    }

    #[inline]
    fn header<'b>(self) -> &'b Header {
        // SAFETY: a `Bag` is made only of blocks that `create` has initialised, and only while they
        // are not freed. All fields but the constant size are atomics.
        unsafe { self.block.cast::<Header>().as_ref() }
    }

    /// A new bag with room for `suffix_bytes` bytes of suffixes (each rounded by
    /// [`Bag::stored_bytes`]).
    pub(crate) fn create<M: Memory>(memory: &M, suffix_bytes: usize) -> Result<Bag, OutOfMemory> {
        let bytes = (HEADER_BYTES + suffix_bytes)
            .next_multiple_of(GRAIN_BYTES)
            .min(MAX_BYTES);
        debug_assert!(bytes >= HEADER_BYTES + suffix_bytes);
        let layout = Self::layout_of(bytes);
        let block = memory.allocate(layout).ok_or(OutOfMemory)?;
        if block.addr().get() as u64 > ADDRESS {
            // Of no use: no known system returns such addresses unasked.
            // SAFETY: the block is new and ours alone.
            unsafe { memory.free(block, layout) };
            return Err(OutOfMemory);
        }
        let header = Header {
            size_bytes: bytes as u32,
            slots: [const { AtomicU32::new(0) }; LEAF_ENTRIES],
        };
        // SAFETY: the block is ours alone, large enough and aligned for the header.
        unsafe { block.cast::<Header>().write(header) };
        let _ = block.as_ptr().expose_provenance();
        Ok(Bag {
            block,
            room_units: ((bytes - HEADER_BYTES) / UNIT_BYTES) as u16,
        })
    }

    fn layout_of(bytes: usize) -> Layout {
        Layout::from_size_align(bytes, ALIGN_BYTES).expect("bags are far smaller than isize::MAX")
    }

    /// The layout the bag was allocated with.
    pub(crate) fn layout(self) -> Layout {
        Self::layout_of(self.bytes())
    }

    pub(crate) fn block(self) -> NonNull<u8> {
        self.block
    }

    pub(crate) fn bytes(self) -> usize {
        self.header().size_bytes as usize
    }

    /// Where the suffixes begin.
    fn begin(self) -> usize {
        HEADER_BYTES + usize::from(self.room_units) * UNIT_BYTES
    }

    /// Where the suffix of a slot is, to be read with [`Bag::suffix`] after validation.
    #[inline]
    pub(crate) fn word(self, slot: usize) -> u32 {
        self.header().slots[slot].load(Ordering::Acquire)
    }

    /// The suffix that a word of this bag names.
    ///
    /// # Safety
    /// `word` was read from this bag, and the bag is not freed during `'b`.
    #[inline]
    pub(crate) unsafe fn suffix<'b>(self, word: u32) -> &'b [u8] {
        // SAFETY: a stored word lies within the block. Its bytes were written before the word was
        // stored (release, acquire) and are never written again.
        unsafe {
            let from = self.block.as_ptr().add(word_begin(word));
            core::slice::from_raw_parts(from, word_length(word))
        }
    }

    /// How many bytes, from the beginning of the suffix that a word of this bag names, are in the
    /// block and never stored to again. They are those of the suffix and of what was added before
    /// it. A word that was never stored names no bytes, and the bytes at its place mean nothing.
    #[inline]
    pub(crate) fn readable(self, word: u32) -> usize {
        self.bytes() - word_begin(word)
    }

    /// Whether a word names a suffix within what the bag has used; for checks.
    pub(crate) fn holds(self, word: u32) -> bool {
        let (begin, length) = (word_begin(word), word_length(word));
        length > 0 && begin >= self.begin() && begin + length <= self.bytes()
    }

    /// Bytes after the room: those of suffixes in use, and of unused ones.
    pub(crate) fn used_bytes(self) -> usize {
        self.bytes() - self.begin()
    }

    /// Whether the room lies within the block; for checks.
    pub(crate) fn is_sound(self) -> bool {
        self.begin() <= self.bytes()
    }

    pub(crate) fn has_room(self, suffix_bytes: usize) -> bool {
        Bag::stored_bytes(suffix_bytes) <= usize::from(self.room_units) * UNIT_BYTES
    }

    /// Makes `suffix` the suffix of a slot. Only for the owner of the leaf, which calls `has_room`
    /// before and stores the cell afterwards.
    pub(crate) fn put(&mut self, slot: usize, suffix: &[u8]) {
        assert!(
            self.has_room(suffix.len()),
            "a bag was not made large enough"
        );
        self.room_units -= (Bag::stored_bytes(suffix.len()) / UNIT_BYTES) as u16;
        let begin = self.begin();
        // SAFETY: the room asserted above is within the block, and no stored word names it yet.
        unsafe {
            let to = self.block.as_ptr().add(begin);
            core::ptr::copy_nonoverlapping(suffix.as_ptr(), to, suffix.len());
        }
        let word = ((begin / UNIT_BYTES) as u32) << 16 | suffix.len() as u32;
        self.header().slots[slot].store(word, Ordering::Release);
    }

    /// Copies the suffixes of all slots of another bag in one piece. The caller made this bag,
    /// which is empty and has the room, and owns the other one's leaf.
    pub(crate) fn put_all_of(&mut self, other: Bag) {
        let (begin, other_bytes) = (other.begin(), other.bytes());
        let used = other_bytes - begin;
        assert!(self.has_room(used), "a bag was not made large enough");
        self.room_units -= (used / UNIT_BYTES) as u16;
        // SAFETY: the used part of one block, which no thread changes, and as much room in another,
        // as asserted above.
        unsafe {
            let from = other.block.as_ptr().add(begin);
            let to = self.block.as_ptr().add(self.begin());
            core::ptr::copy_nonoverlapping(from, to, used);
        }
        // Both bags end with the suffix that was added first.
        let farther = ((self.bytes() - other_bytes) / UNIT_BYTES) as u32;
        for slot in 0..LEAF_ENTRIES {
            let word = other.word(slot);
            if word != 0 {
                self.header().slots[slot].store(word + (farther << 16), Ordering::Release);
            }
        }
    }
}

/// Where the suffix begins that a word names.
#[inline]
fn word_begin(word: u32) -> usize {
    (word >> 16) as usize * UNIT_BYTES
}

/// The length of the suffix that a word names.
#[inline]
pub(crate) fn word_length(word: u32) -> usize {
    (word & 0xFFFF) as usize
}

/// What to allocate for the suffixes of so many entries of a leaf, `bytes` bytes, when more will
/// come. It is enough for twice as many entries like them, or for a full leaf, within
/// [`RESERVE_BYTES_MAX`]. A bag of short suffixes is rebuilt once or twice until then.
pub(crate) fn with_reserve(bytes: usize, entries: usize) -> usize {
    let wanted = (2 * entries).clamp(LEAST_ENTRIES, LEAF_ENTRIES);
    let more = bytes * wanted.saturating_sub(entries) / entries.max(1);
    let most = RESERVE_BYTES_MAX.max(bytes / 4);
    (bytes + more.min(most)).min(CONTENT_BYTES_MAX).max(bytes)
}

#[cfg(test)]
#[path = "bag_tests.rs"]
mod tests;
