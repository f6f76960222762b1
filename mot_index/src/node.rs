//! Nodes: 288 bytes, the same for leaves and inner nodes.
//!
//! A node is a version word, a second word and 34 cells, all 64-bit atomics. The cells mean one
//! thing in a leaf and another in an inner node; the version says which. Because both have one
//! size, the root of a layer never moves: when it splits, its content goes to a new node and it
//! becomes the inner node above; when one child is left, the child's content comes back.
//!
//! Contract: cells are stored to only by the owner of the node's latch (or before the node is
//! published), with one exception: a leaf's `previous` belongs to the owner of the *left
//! neighbour's* latch. Whoever reads without the latch validates the version before an address that
//! was read is followed: until then it may be something else than an address.

use crate::bag::Bag;
use crate::lanes::{self, LANES};
use crate::permutation::{LEAF_ENTRIES, Permutation};
use crate::slice::{LAYER, LONGER, SUFFIX, class_of_kind};
use crate::sync::{AtomicU64, Ordering, is_broken, prefetch};
use crate::version::{self, Seen, Version};
use core::alloc::Layout;
use core::cmp;
use core::ptr::NonNull;

/// Separators an inner node holds; it has one child more. Sixteen make it as large as a leaf.
pub(crate) const INNER_KEYS: usize = 16;
const CELLS: usize = 34;

// Cells of a leaf.
const KINDS: usize = 0;
const BAG: usize = 1;
const NEXT: usize = 2;
const PREVIOUS: usize = 3;
const KEYS: usize = 4;
const VALUES: usize = KEYS + LEAF_ENTRIES;

// Cells of an inner node.
const SEPARATORS: usize = 0;
const CHILDREN: usize = INNER_KEYS;

/// Entries of a leaf of which not all lines are asked for ahead.
const SMALL_LEAF: usize = 3;

/// Bits of a kind in the kinds cell; slot 15's field names the slot that was filled last.
const KIND_BITS: usize = 4;
const KIND: u64 = 0xF;
/// A bit for each slot.
const ALL_SLOTS: u32 = (1 << LEAF_ENTRIES) - 1;
/// The "slot filled last" of a leaf that has none.
pub(crate) const NO_SLOT: usize = LEAF_ENTRIES;

/// A leaf or an inner node. See the module.
#[repr(C, align(32))]
pub(crate) struct Node {
    pub(crate) version: Version,
    /// A leaf's permutation; an inner node's number of separators.
    word: AtomicU64,
    cells: [AtomicU64; CELLS],
}

/// Bytes of a node, which a [`crate::Memory`] should be able to hand out without waste: with the
/// next larger power of two the tree would be nearly twice as large.
pub const NODE_BYTES: usize = 288;

const _: () = {
    assert!(size_of::<Node>() == NODE_BYTES);
    assert!(VALUES + LEAF_ENTRIES == CELLS);
    assert!(CHILDREN + INNER_KEYS < CELLS);
    // Addresses are kept in 64-bit cells.
    assert!(size_of::<usize>() == 8);
};

/// The layout of every node.
pub(crate) const NODE_LAYOUT: Layout = Layout::new::<Node>();

/// What a search in a leaf found.
pub(crate) enum Place {
    /// The entry of this slice, class and suffix, or the one that leads to the layer where it would be; at this position and in this slot.
    At(usize, usize),
    /// No such entry; it would go to this position.
    Before(usize),
}

/// A set of slots.
#[derive(Clone, Copy)]
pub(crate) struct Slots(u32);

impl Slots {
    #[inline]
    pub(crate) fn first(self) -> Option<usize> {
        (self.0 != 0).then_some(self.0.trailing_zeros() as usize)
    }

    #[inline]
    pub(crate) fn count(self) -> usize {
        self.0.count_ones() as usize
    }
}

impl Iterator for Slots {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        let slot = self.first()?;
        self.0 &= self.0 - 1;
        Some(slot)
    }
}

impl Node {
    /// The node at an address read from a cell; `None` for 0.
    ///
    /// # Safety
    /// `address` is 0 or that of a node which is not freed during `'p`: it was read from a node
    /// under a validated version (or under the latch), in an epoch that is pinned for `'p`.
    #[inline(always)]
    pub(crate) unsafe fn at<'p>(address: u64) -> Option<&'p Node> {
        let ptr = core::ptr::with_exposed_provenance::<Node>(address as usize);
        // SAFETY: the caller's promise; nodes are only ever shared, their fields are atomics.
        unsafe { ptr.as_ref() }
    }

    /// Makes an empty leaf of raw memory. `flags` is the version to start with.
    ///
    /// # Safety
    /// `block` is a block of [`NODE_LAYOUT`] that nobody else uses and that is not freed in `'p`.
    pub(crate) unsafe fn create<'p>(block: NonNull<u8>, flags: u64) -> &'p Node {
        let ptr = block.cast::<Node>();
        let node = Node {
            version: Version::new(flags),
            word: AtomicU64::new(Permutation::EMPTY.0),
            cells: [const { AtomicU64::new(0) }; CELLS],
        };
        // SAFETY: the caller's promise: the block is ours, of the right size and alignment.
        let node = unsafe {
            ptr.write(node);
            ptr.as_ref()
        };
        let _ = ptr.as_ptr().expose_provenance();
        node.reset_leaf();
        node
    }

    #[inline(always)]
    pub(crate) fn address(&self) -> u64 {
        (self as *const Node).addr() as u64
    }

    #[inline(always)]
    pub(crate) fn is(&self, other: &Node) -> bool {
        core::ptr::eq(self, other)
    }

    /// Brings all lines of the node at an address nearer.
    #[inline(always)]
    pub(crate) fn prefetch(address: u64) {
        prefetch(address, NODE_BYTES);
    }

    /// The same of its version and its second word.
    #[inline(always)]
    pub(crate) fn prefetch_head(address: u64) {
        prefetch(address, 16);
    }

    /// The same of what a leaf of [`SMALL_LEAF`] entries or fewer has.
    #[inline(always)]
    pub(crate) fn prefetch_small_leaf(address: u64) {
        prefetch(address, 8 * (2 + KEYS + SMALL_LEAF));
        prefetch(
            address.wrapping_add(8 * (2 + VALUES as u64)),
            8 * SMALL_LEAF,
        );
    }

    /// Brings the suffixes of what may be a leaf nearer, and what `prefetch_small_leaf` left out of one with more entries.
    #[inline]
    pub(crate) fn prefetch_content(&self) {
        // An inner node's separator, should this be one, does no harm.
        Bag::prefetch(self.bag());
        if self.permutation().count() > SMALL_LEAF {
            Node::prefetch(self.address());
        }
    }

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

/// As a leaf.
impl Node {
    /// Makes the node an empty leaf without a bag or neighbours.
    pub(crate) fn reset_leaf(&self) {
        self.set_permutation(Permutation::EMPTY);
        self.store(KINDS, (NO_SLOT as u64) << (KIND_BITS * LEAF_ENTRIES));
        self.store(BAG, 0);
        self.store(NEXT, 0);
        self.store(PREVIOUS, 0);
    }

    #[inline]
    pub(crate) fn permutation(&self) -> Permutation {
        Permutation(self.word.load(Ordering::Acquire))
    }

    #[inline]
    pub(crate) fn set_permutation(&self, permutation: Permutation) {
        let order = if is_broken("index: the release of an entry") {
            Ordering::Relaxed
        } else {
            Ordering::Release
        };
        self.word.store(permutation.0, order);
    }

    /// All kinds at once.
    #[inline]
    pub(crate) fn kinds(&self) -> Kinds {
        Kinds(self.load(KINDS))
    }

    pub(crate) fn set_kinds(&self, kinds: Kinds) {
        self.store(KINDS, kinds.0);
    }

    #[inline]
    pub(crate) fn key(&self, slot: usize) -> u64 {
        debug_assert!(slot < LEAF_ENTRIES);
        self.load(KEYS + slot)
    }

    pub(crate) fn set_key(&self, slot: usize, slice: u64) {
        debug_assert!(slot < LEAF_ENTRIES);
        self.store(KEYS + slot, slice);
    }

    #[inline]
    pub(crate) fn value(&self, slot: usize) -> u64 {
        debug_assert!(slot < LEAF_ENTRIES);
        self.load_address(VALUES + slot)
    }

    pub(crate) fn set_value(&self, slot: usize, value: u64) {
        debug_assert!(slot < LEAF_ENTRIES);
        self.store(VALUES + slot, value);
    }

    #[inline]
    /// What names the leaf's bag and its room, or 0. See `bag.rs`.
    pub(crate) fn bag(&self) -> u64 {
        self.load_address(BAG)
    }

    pub(crate) fn set_bag(&self, cell: u64) {
        self.store(BAG, cell);
    }

    pub(crate) fn next(&self) -> u64 {
        self.load_address(NEXT)
    }

    pub(crate) fn set_next(&self, address: u64) {
        self.store(NEXT, address);
    }

    pub(crate) fn previous(&self) -> u64 {
        self.load_address(PREVIOUS)
    }

    pub(crate) fn set_previous(&self, address: u64) {
        self.store(PREVIOUS, address);
    }

    /// Fills a slot that no reader looks at yet.
    pub(crate) fn fill(&self, slot: usize, slice: u64, kind: u64, value: u64) {
        self.set_key(slot, slice);
        self.set_value(slot, value);
        self.set_kinds(self.kinds().with(slot, kind).with_last(slot));
    }

    /// The sixteen cells that begin with the leaf's slices; the last is no slice.
    #[inline(always)]
    fn slices(&self) -> &[AtomicU64; LANES] {
        self.cells[KEYS..].first_chunk().expect("so many cells")
    }

    /// The slot of an entry that ends in its slice, in a permutation of this leaf.
    #[inline]
    pub(crate) fn find(&self, permutation: Permutation, slice: u64, class: u64) -> Option<usize> {
        debug_assert!(class < LONGER);
        let mut slots = lanes::equal(self.slices(), slice) & ALL_SLOTS;
        let kinds = self.kinds();
        // Hardly ever more than one: what was removed may still have the slice.
        while slots != 0 {
            let slot = slots.trailing_zeros() as usize;
            if kinds.of(slot) == class && permutation.position(slot).is_some() {
                return Some(slot);
            }
            slots &= slots - 1;
        }
        None
    }

    /// The slots of the entries that go on behind a slice, in a permutation of this leaf: one that leads to a layer, or some with suffixes.
    #[inline(always)]
    pub(crate) fn longer(&self, permutation: Permutation, kinds: Kinds, slice: u64) -> Slots {
        let mut longer = 0;
        for slot in Slots(lanes::equal(self.slices(), slice) & ALL_SLOTS) {
            let is_there = kinds.of(slot) >= SUFFIX && permutation.position(slot).is_some();
            longer |= u32::from(is_there) << slot;
        }
        Slots(longer)
    }

    /// Whether so many entries go on behind a slice, in a permutation of this leaf; for a leaf of which few slots have the slice a look at those.
    #[inline(always)]
    pub(crate) fn has_longer(&self, permutation: Permutation, slice: u64, count: usize) -> bool {
        let equal = Slots(lanes::equal(self.slices(), slice) & ALL_SLOTS);
        equal.count() >= count && self.longer(permutation, self.kinds(), slice).count() == count
    }

    /// Where an entry is or would be, in a permutation of this leaf. `order` says of the slot of an entry of kind `SUFFIX` how its suffix lies to
    /// the one looked for; it is asked only about entries of the slice, and only if the class is [`LONGER`].
    #[inline(always)]
    pub(crate) fn search(
        &self,
        permutation: Permutation,
        slice: u64,
        class: u64,
        mut order: impl FnMut(usize) -> cmp::Ordering,
    ) -> Place {
        let at_most = lanes::at_most(self.slices(), slice) & ALL_SLOTS;
        let mut equal = lanes::equal(self.slices(), slice) & ALL_SLOTS;
        let mut less = at_most & !equal;
        let kinds = self.kinds();
        while equal != 0 {
            let slot = equal.trailing_zeros() as usize;
            let kind = kinds.of(slot);
            let mut lies = class_of_kind(kind).cmp(&class);
            if lies.is_eq()
                && let Some(position) = permutation.position(slot)
            {
                if kind == SUFFIX {
                    lies = order(slot);
                }
                if lies.is_eq() {
                    return Place::At(position, slot);
                }
            }
            less |= u32::from(lies.is_lt()) << slot;
            equal &= equal - 1;
        }
        Place::Before(permutation.count_of(less))
    }
}

/// As an inner node.
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
        self.load_address(CHILDREN + index)
    }

    pub(crate) fn set_child(&self, index: usize, address: u64) {
        debug_assert!(index <= INNER_KEYS);
        self.store(CHILDREN + index, address);
    }

    /// The index of the child that covers a slice: separators are the least slices right of them.
    #[inline(always)]
    pub(crate) fn route(&self, slice: u64) -> usize {
        let cells = self.cells[SEPARATORS..]
            .first_chunk()
            .expect("so many cells");
        let behind = !lanes::at_most(cells, slice) | 1 << self.count();
        behind.trailing_zeros() as usize
    }

    /// Puts in a child that covers what its left neighbour covered from `separator` on. The owner
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

    /// Takes out the child at `index`; a neighbour covers its range from now on. The owner has made
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

/// Reading without the latch.
impl Node {
    /// Whether everything read since `seen` was taken belongs together.
    #[inline]
    pub(crate) fn is_still(&self, seen: Seen) -> bool {
        self.version.is_still(seen)
    }

    /// Makes this node, whose owner has made it dirty or which nobody else has seen, hold what
    /// `other` holds, and take its role.
    pub(crate) fn take_content(&self, other: &Node) {
        self.version
            .set_inner(version::is_inner(other.version.owned()));
        for cell in 0..CELLS {
            self.store(cell, other.load(cell));
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

/// The kinds of a leaf's entries by slot, and the slot that was filled last.
#[derive(Clone, Copy)]
pub(crate) struct Kinds(u64);

impl Kinds {
    #[inline]
    pub(crate) fn of(self, slot: usize) -> u64 {
        (self.0 >> (KIND_BITS * slot)) & KIND
    }

    /// Whether an entry may lead to a layer; one that was taken out counts until its slot is used again.
    #[inline]
    pub(crate) fn may_have_layers(self) -> bool {
        // Of all kinds only `LAYER`, 1010, has these two bits.
        const HIGHEST: u64 = 0x0888_8888_8888_8888;
        self.0 & self.0 << 2 & HIGHEST != 0
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
