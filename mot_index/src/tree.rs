//! The root of a tree in shared memory, and the handle that uses it.

use crate::bag::Bag;
use crate::memory::{Memory, OutOfMemory};
use crate::node::{MAX_VALUE, NARROW_LAYOUT, NODE_LAYOUT, Node, Window};
use crate::sync::{AtomicU64, Ordering, is_broken};

/// The root of a tree: what is in shared memory besides the nodes. All zero bytes are an empty
/// tree.
#[repr(C)]
#[derive(Default)]
pub struct TreeRoot {
    /// The address of the root of the first layer; 0 when the tree is empty. A thread that brings a
    /// node sets it from 0; the owner of that node's latch sets it to 0.
    pub(crate) node: AtomicU64,
}

impl TreeRoot {
    /// An empty tree.
    pub const fn new() -> Self {
        TreeRoot {
            node: AtomicU64::new(0),
        }
    }

    /// Whether the tree has no entry.
    pub fn is_empty(&self) -> bool {
        self.node.load(Ordering::Acquire) == 0
    }

    /// The root of the first layer. For handles: their caller is pinned (`Tree::new`).
    #[inline]
    pub(crate) fn first_layer(&self) -> Option<&Node> {
        // SAFETY: the root holds 0 or a node that was reachable at this moment, in the epoch the
        // caller has pinned (`Tree::new`).
        unsafe { Node::at(self.node.load(Ordering::Acquire)) }
    }
}

/// A handle on a tree: a root and the memory its nodes live in.
pub struct Tree<'a, M: Memory> {
    pub(crate) root: &'a TreeRoot,
    pub(crate) memory: &'a M,
}

impl<M: Memory> Clone for Tree<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M: Memory> Copy for Tree<'_, M> {}

impl<'a, M: Memory> Tree<'a, M> {
    /// A handle on the tree at `root`.
    ///
    /// # Safety
    /// - Whenever a method of the handle (or of a copy of it) runs, the calling thread is pinned in
    ///   the epoch of `memory`. It is pinned from before the call until after it. Between two calls
    ///   it need not be pinned: nothing the tree returns points into nodes.
    /// - All handles on one root use the same memory, mapped at the same address.
    /// - The bytes at `root` are changed by nothing but such handles.
    pub unsafe fn new(root: &'a TreeRoot, memory: &'a M) -> Self {
        Tree { root, memory }
    }

    /// The memory the nodes live in.
    pub fn memory(&self) -> &'a M {
        self.memory
    }

    /// The root of the first layer.
    #[inline]
    pub(crate) fn first_layer(&self) -> Option<&'a Node> {
        self.root.first_layer()
    }

    /// A new empty leaf with these version flags, which may become anything.
    pub(crate) fn create_node(&self, flags: u64) -> Result<&'a Node, OutOfMemory> {
        self.create_leaf(None, flags)
    }

    /// A new empty leaf with these version flags: a narrow one, if there is a window, which must
    /// never be the root of a layer.
    pub(crate) fn create_leaf(
        &self,
        window: Option<Window>,
        flags: u64,
    ) -> Result<&'a Node, OutOfMemory> {
        let layout = if window.is_some() {
            NARROW_LAYOUT
        } else {
            NODE_LAYOUT
        };
        let block = self.memory.allocate(layout).ok_or(OutOfMemory)?;
        debug_assert!(block.addr().get().is_multiple_of(layout.align()));
        if block.addr().get() as u64 > MAX_VALUE {
            // Narrow leaves have no room for such an address, if the node becomes the root of a
            // layer. No known system returns one unasked. SAFETY: the block is new and ours alone.
            unsafe { self.memory.free(block, layout) };
            return Err(OutOfMemory);
        }
        // SAFETY: the block is new and ours. It is freed only after it was unlinked and every
        // reader of this epoch is gone. Or it is freed by us while no other thread has seen it.
        Ok(unsafe { Node::create(block, window, flags) })
    }

    /// Frees a node that no other thread has seen.
    pub(crate) fn free_node(&self, node: &Node) {
        // SAFETY: our callers pass nodes from `create_node` that were never published, once.
        unsafe { self.memory.free(node.block(), node.layout()) }
    }

    /// Retires a node that was unlinked and marked as deleted.
    pub(crate) fn retire_node(&self, node: &Node) {
        if is_broken("index: waiting for readers before a node is freed") {
            return self.free_node(node);
        }
        // SAFETY: our callers have unlinked the node from its parent and its neighbours, and mark
        // it as deleted once. So no thread that pins from now on can reach it.
        unsafe { self.memory.retire(node.block(), node.layout()) }
    }

    /// Frees a bag that no other thread has seen.
    pub(crate) fn free_bag(&self, bag: Bag) {
        // SAFETY: our callers pass bags that were never put into a published leaf, once.
        unsafe { self.memory.free(bag.block(), bag.layout()) }
    }

    /// Retires the bag that the cell of no leaf names any more; 0 is no bag.
    pub(crate) fn retire_bag(&self, cell: u64) {
        // SAFETY: our callers have just replaced the leaf's cell that named it under its latch (or
        // have deleted the leaf). So no thread that pins from now on can reach the bag.
        unsafe {
            if let Some(bag) = Bag::at(cell) {
                self.memory.retire(bag.block(), bag.layout());
            }
        }
    }
}
