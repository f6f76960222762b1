//! Where nodes live and how they are freed: the one thing that a tree asks of its surroundings.

use core::alloc::Layout;
use core::fmt;
use core::ptr::NonNull;

/// Where nodes live and how they are freed.
///
/// A tree asks for three kinds of blocks. Nodes are [`crate::NODE_BYTES`] bytes, aligned to 32.
/// Narrow leaves are [`crate::NARROW_LEAF_BYTES`] bytes, aligned to 16. Suffix bags are a multiple
/// of 32 bytes, aligned to 16. Every block is freed with the layout it was allocated with. A tree
/// uses addresses of 48 bits only, which are all that systems return unasked. With a greater
/// address the tree acts as if memory were full.
pub trait Memory {
    /// A block for `layout`, its content undefined; `None` when memory is full.
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>>;

    /// Frees a block at once.
    ///
    /// # Safety
    /// `ptr` came from [`Memory::allocate`] with this layout and is freed once. No other thread can
    /// still reach it.
    unsafe fn free(&self, ptr: NonNull<u8>, layout: Layout);

    /// Frees a block once every reader that is pinned now has unpinned.
    ///
    /// Must not fail and must not free before the calling thread itself unpins.
    ///
    /// # Safety
    /// `ptr` came from [`Memory::allocate`] with this layout and is freed once. No thread that pins
    /// from now on can reach it.
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
