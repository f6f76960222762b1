//! Where nodes live and how they are given back: the one thing a tree asks of its surroundings.

use core::alloc::Layout;
use core::fmt;
use core::ptr::NonNull;

/// Where nodes live and how they are given back.
///
/// A tree asks for three kinds of blocks: nodes ([`crate::NODE_BYTES`] bytes, aligned to 32),
/// narrow leaves ([`crate::NARROW_LEAF_BYTES`] bytes, aligned to 16) and suffix bags (a multiple of
/// 32 bytes, aligned to 16). Every block is given back with the layout it was asked with. A tree
/// uses addresses of 48 bits only, for more is as if memory were full: that is all that systems
/// hand out unasked.
pub trait Memory {
    /// A block for `layout`, its content undefined; `None` when memory is full.
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>>;

    /// Gives a block back at once.
    ///
    /// # Safety
    /// `ptr` came from [`Memory::allocate`] with this layout, is given back once, and nobody else
    /// can still reach it.
    unsafe fn free(&self, ptr: NonNull<u8>, layout: Layout);

    /// Gives a block back once every reader that is pinned now has unpinned.
    ///
    /// Must not fail and must not free before the calling thread itself unpins.
    ///
    /// # Safety
    /// `ptr` came from [`Memory::allocate`] with this layout, is given back once, and nobody who
    /// pins from now on can reach it.
    unsafe fn retire(&self, ptr: NonNull<u8>, layout: Layout);
}

/// The memory was full; nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory;

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the memory of the index is full")
    }
}

impl core::error::Error for OutOfMemory {}
