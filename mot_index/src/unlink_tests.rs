//! What those see who come by while something is unlinked.

use super::*;
use crate::node::NODE_LAYOUT;
use crate::tree::TreeRoot;
use core::alloc::Layout;
use core::cell::{Cell, RefCell};
use core::ptr::NonNull;

/// A memory that gives nothing back, and looks at all nodes whenever something is retired.
#[derive(Default)]
struct Watching {
    nodes: RefCell<Vec<u64>>,
    retired: Cell<usize>,
    /// How often a node was dirty then.
    dirty: Cell<usize>,
}

impl Memory for Watching {
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        // SAFETY: trees ask for blocks of more than zero bytes.
        let block = NonNull::new(unsafe { std::alloc::alloc(layout) })?;
        if layout == NODE_LAYOUT {
            let address = block.as_ptr().expose_provenance() as u64;
            self.nodes.borrow_mut().push(address);
        }
        Some(block)
    }

    unsafe fn free(&self, _: NonNull<u8>, _: Layout) {}

    unsafe fn retire(&self, _: NonNull<u8>, _: Layout) {
        self.retired.set(self.retired.get() + 1);
        for address in self.nodes.borrow().iter() {
            // SAFETY: the address of a node, none of which is ever freed.
            let node = unsafe { Node::at(*address) }.expect("an address");
            self.dirty
                .set(self.dirty.get() + usize::from(node.version.is_dirty()));
        }
    }
}

#[test]
fn nothing_is_retired_while_readers_wait() {
    let (root, memory) = (TreeRoot::new(), Watching::default());
    // SAFETY: one thread, and nothing is ever freed.
    let tree = unsafe { Tree::new(&root, &memory) };
    // Three levels; whole inner nodes become empty.
    let key = |at: u64| [&at.to_be_bytes()[..], b"suffix"].concat();
    for at in 0..2_000 {
        assert_eq!(tree.insert(&key(at), at), Ok(None));
    }
    for at in 0..2_000 {
        assert_eq!(tree.remove(&key(at)), Some(at));
    }
    assert!(root.is_empty());
    assert!(memory.retired.get() > 130);
    assert_eq!(memory.dirty.get(), 0, "readers wait while others retire");
}

/// A neighbour below another parent may be unlinked and freed from then on: who comes to the leaf
/// must not follow its links.
#[test]
fn links_are_handed_over_by_a_dirty_leaf() {
    let (root, memory) = (TreeRoot::new(), Watching::default());
    // SAFETY: one thread, and nothing is ever freed.
    let tree = unsafe { Tree::new(&root, &memory) };
    for at in 0..600_u64 {
        assert_eq!(tree.insert(&at.to_be_bytes(), at), Ok(None));
    }
    // Backward, so that there is a left neighbour.
    for at in (0..600_u64).rev() {
        assert_eq!(tree.remove(&at.to_be_bytes()), Some(at));
    }
    let [clean, dirty] = noted::handed_over();
    assert!(dirty > 30, "{dirty}");
    assert_eq!(clean, 0);
}
