//! Nodes: inner nodes and wide leaves of 288 bytes, narrow leaves of 208.
//!
//! A node is a version word, a second word and 34 cells, all 64-bit atomics. The cells mean one
//! thing in a leaf and another in an inner node; the version says which. Because both have one
//! size, the root of a layer never moves. When the root splits, its content goes to a new node and
//! the root becomes the inner node above. When one child is left, the child's content comes back.
//!
//! A leaf that is no root may be *narrow*, smaller by a quarter, if its slices share half of their
//! bits (`node/narrow.rs`). A narrow leaf begins like the others, up to its fourth cell. A block is
//! narrow or not for as long as it lives.
//!
//! Contract: only the owner of the node's latch stores to cells (or the thread that makes the node,
//! before it is published). There is one exception: a leaf's `previous` belongs to the owner of the
//! *left neighbour's* latch. A reader without the latch validates the version before it follows an
//! address. Until then what it read may be something else than an address.

mod inner;
mod kinds;
mod leaf;
mod narrow;
mod wide;

pub(crate) use kinds::Kinds;
pub(crate) use leaf::{EntriesOfLeaf, Form, NO_SLOT, Place, by_form};
pub use narrow::MAX_VALUE;
pub(crate) use narrow::Window;

use crate::bag::Bag;
use crate::permutation::{LEAF_ENTRIES, Permutation};
use crate::sync::{AtomicU64, Ordering, prefetch};
use crate::version::{self, NARROW, Seen, Version};
use core::alloc::Layout;
use core::ptr::NonNull;
use leaf::{BAG, KINDS, NEXT, PREVIOUS};
use narrow::Narrow;
use wide::{KEYS, VALUES};

/// Separators an inner node holds; it has one child more. Sixteen make it as large as a leaf.
pub(crate) const INNER_KEYS: usize = 16;
/// Cells of every node but a narrow leaf.
const CELLS: usize = 34;
/// Cells of the smallest node: a narrow leaf has the size of a node with so many.
const LEAST_CELLS: usize = 24;

/// A leaf of at most so many entries is small: not all of its lines are prefetched.
const SMALL_LEAF: usize = 3;

/// A leaf or an inner node. See the module.
#[repr(C, align(16))]
pub(crate) struct Node {
    pub(crate) version: Version,
    /// A leaf's permutation; an inner node's number of separators.
    word: AtomicU64,
    /// As many as the smallest node has room for. [`Node::cell`] reaches the cells after them.
    cells: [AtomicU64; LEAST_CELLS],
}

/// The block of a node with all its cells.
#[repr(C, align(32))]
struct Whole {
    node: Node,
    others: [AtomicU64; CELLS - LEAST_CELLS],
}

/// Set in the addresses of narrow leaves that cells keep, so that a prefetch knows how large the
/// node is. Blocks are aligned to more than this bit.
const NARROW_TAG: u64 = 1;
/// By how many bytes the prefetch of the end moves back in a narrow leaf. It is a power of two, so
/// that the end is in one of the leaf's own lines.
const TAG_BYTES: u64 = 128;

/// Bytes of a node that is no narrow leaf. A [`crate::Memory`] should be able to allocate them
/// without waste: with the next larger power of two the tree would be nearly twice as large.
pub const NODE_BYTES: usize = 288;
/// Bytes of a narrow leaf. A [`crate::Memory`] should be able to allocate these without waste, too.
pub const NARROW_LEAF_BYTES: usize = 208;

const _: () = {
    assert!(size_of::<Whole>() == NODE_BYTES);
    assert!(size_of::<Node>() == NARROW_LEAF_BYTES && size_of::<Narrow>() == NARROW_LEAF_BYTES);
    assert!(align_of::<Node>() >= align_of::<Narrow>());
    assert!(align_of::<Node>() as u64 > NARROW_TAG);
    assert!(NODE_BYTES - TAG_BYTES as usize <= NARROW_LEAF_BYTES);
    // Addresses are kept in 64-bit cells.
    assert!(size_of::<usize>() == 8);
};

/// The layout of every node that is no narrow leaf.
pub(crate) const NODE_LAYOUT: Layout = Layout::new::<Whole>();
/// That of narrow leaves.
pub(crate) const NARROW_LAYOUT: Layout = Layout::new::<Node>();

impl Node {
    /// The node at an address read from a cell; `None` for 0.
    ///
    /// # Safety
    /// `address` is 0, or the address of a node that is not freed during `'p`. It was read from a
    /// node under a validated version (or under the latch), in an epoch that is pinned for `'p`.
    #[inline(always)]
    pub(crate) unsafe fn at<'p>(address: u64) -> Option<&'p Node> {
        let address = address & !NARROW_TAG;
        let ptr = core::ptr::with_exposed_provenance::<Node>(address as usize);
        // SAFETY: the caller's promise; nodes are only ever shared, their fields are atomics.
        unsafe { ptr.as_ref() }
    }

    /// Makes an empty leaf of raw memory: a narrow one, if there is a window. The version begins as
    /// `flags`.
    ///
    /// # Safety
    /// `block` has the layout [`NODE_LAYOUT`], or [`NARROW_LAYOUT`] for a narrow leaf. No other
    /// thread uses it, and it is not freed in `'p`.
    pub(crate) unsafe fn create<'p>(
        block: NonNull<u8>,
        window: Option<Window>,
        flags: u64,
    ) -> &'p Node {
        let narrow = if window.is_some() { NARROW } else { 0 };
        let node = Node {
            version: Version::new(flags | narrow),
            word: AtomicU64::new(Permutation::EMPTY.0),
            cells: [const { AtomicU64::new(0) }; LEAST_CELLS],
        };
        let ptr = block.cast::<Node>();
        // SAFETY: the caller's promise: the block is ours, of the right size and alignment.
        let node = unsafe {
            ptr.write(node);
            match window {
                Some(window) => Narrow::begin(block, window),
                None => (&raw mut (*block.cast::<Whole>().as_ptr()).others)
                    .write([const { AtomicU64::new(0) }; CELLS - LEAST_CELLS]),
            }
            ptr.as_ref()
        };
        // Exposes all of the block: the reference covers only a part of it.
        let _ = block.as_ptr().expose_provenance();
        node.reset_leaf();
        node
    }

    /// The layout of the node's block.
    pub(crate) fn layout(&self) -> Layout {
        if self.version.is_narrow() {
            NARROW_LAYOUT
        } else {
            NODE_LAYOUT
        }
    }

    /// What cells store for this node, and what [`Node::at`] takes.
    #[inline(always)]
    pub(crate) fn address(&self) -> u64 {
        let address = core::ptr::from_ref(self).addr() as u64;
        if self.version.is_narrow() {
            address | NARROW_TAG
        } else {
            address
        }
    }

    /// The node's block.
    pub(crate) fn block(&self) -> NonNull<u8> {
        let address = core::ptr::from_ref(self).addr();
        NonNull::new(core::ptr::with_exposed_provenance_mut(address))
            .expect("a node has an address")
    }

    #[inline(always)]
    pub(crate) fn is(&self, other: &Node) -> bool {
        core::ptr::eq(self, other)
    }

    /// Prefetches all lines of the node at an address.
    #[inline(always)]
    pub(crate) fn prefetch(address: u64) {
        // The tag is in the first line as well.
        prefetch(address, NARROW_LEAF_BYTES);
        // The last line is prefetched without a branch: that of a narrow leaf was prefetched above,
        // like the others.
        let to_last = NODE_BYTES as u64 - 1 - (address & NARROW_TAG) * TAG_BYTES;
        prefetch(address.wrapping_add(to_last), 1);
    }

    /// Prefetches the node's version and its second word.
    #[inline(always)]
    pub(crate) fn prefetch_head(address: u64) {
        prefetch(address, 16);
    }

    /// Prefetches the content of a layer's root, if it is a leaf of [`SMALL_LEAF`] entries or
    /// fewer.
    #[inline(always)]
    pub(crate) fn prefetch_small_leaf(address: u64) {
        prefetch(address, 8 * (2 + KEYS + SMALL_LEAF));
        prefetch(
            address.wrapping_add(8 * (2 + VALUES as u64)),
            8 * SMALL_LEAF,
        );
    }

    /// Prefetches the suffixes of a node that may be a leaf. If it is no small leaf, prefetches
    /// also what `prefetch_small_leaf` left out.
    #[inline]
    pub(crate) fn prefetch_content(&self) {
        // If the node is an inner node, a prefetch by its separator does no harm.
        Bag::prefetch(self.bag());
        if self.permutation().count() > SMALL_LEAF {
            Node::prefetch(self.address());
        }
    }

    /// The node as a narrow leaf, if it is one.
    #[inline(always)]
    fn narrow(&self) -> Option<&Narrow> {
        if !self.version.is_narrow() {
            return None;
        }
        let ptr = core::ptr::from_ref(self).cast::<Narrow>();
        // SAFETY: `create` made the block a narrow leaf, of the same size and the same first cells.
        // It stays one for as long as the node lives.
        Some(unsafe { &*ptr })
    }

    /// A cell of a node that is no narrow leaf.
    #[inline(always)]
    fn cell(&self, cell: usize) -> &AtomicU64 {
        assert!(cell < CELLS);
        debug_assert!(!self.version.is_narrow());
        let offset = core::mem::offset_of!(Node, cells) + cell * size_of::<AtomicU64>();
        let address = core::ptr::from_ref(self).addr() + offset;
        // SAFETY: the block of such a node has all cells, and `create` has exposed all of it. It
        // lives as long as the node.
        unsafe { &*core::ptr::with_exposed_provenance::<AtomicU64>(address) }
    }

    /// One of the first cells, which every node has.
    #[inline(always)]
    fn load(&self, cell: usize) -> u64 {
        self.cells[cell].load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn load_address(&self, cell: usize) -> u64 {
        self.cells[cell].load(Ordering::Acquire)
    }

    #[inline(always)]
    fn store(&self, cell: usize, word: u64) {
        self.cells[cell].store(word, Ordering::Release);
    }
}

/// Changing what a node is.
impl Node {
    /// Whether everything read since `seen` was taken belongs together.
    #[inline]
    pub(crate) fn is_still(&self, seen: Seen) -> bool {
        self.version.is_still(seen)
    }

    /// Makes this node hold what `other` holds, and take its role. The owner has made this node
    /// dirty, or no other thread has seen it. It is no narrow leaf.
    pub(crate) fn take_content(&self, other: &Node) {
        self.version
            .set_inner(version::is_inner(other.version.owned()));
        if other.version.is_narrow() {
            for cell in [KINDS, BAG, NEXT, PREVIOUS] {
                self.store(cell, other.load(cell));
            }
            for slot in 0..LEAF_ENTRIES {
                self.set_key(slot, other.key(slot));
                self.set_value(slot, other.value(slot));
            }
        } else {
            for cell in 0..CELLS {
                let content = other.cell(cell).load(Ordering::Relaxed);
                self.cell(cell).store(content, Ordering::Release);
            }
        }
        self.word
            .store(other.word.load(Ordering::Relaxed), Ordering::Release);
    }

    /// Makes this dirty node an inner node with one child.
    pub(crate) fn become_inner(&self, child: u64) {
        self.version.set_inner(true);
        self.set_count(0);
        self.set_child(0, child);
    }

    /// Makes this dirty node an empty leaf.
    pub(crate) fn become_leaf(&self) {
        self.version.set_inner(false);
        self.reset_leaf();
    }
}
