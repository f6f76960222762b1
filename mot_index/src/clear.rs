//! Giving back a whole tree, or a part nobody else has seen, at once.

use crate::bag::Bag;
use crate::memory::Memory;
use crate::node::Node;
use crate::slice::LAYER;
use crate::sync::Ordering;
use crate::tree::Tree;
use crate::version::is_inner;

impl<M: Memory> Tree<'_, M> {
    /// Empties the tree and gives every node back at once, without an epoch.
    ///
    /// # Safety
    /// Nobody else uses the tree during the call, and nobody who used it before is still pinned.
    pub unsafe fn clear(&self) {
        let root = self.first_layer();
        self.root.node.store(0, Ordering::Release);
        if let Some(root) = root {
            self.free_subtree(root);
        }
    }

    /// Frees a node and everything below it. The caller has made sure that nobody else can reach
    /// any of it.
    pub(crate) fn free_subtree(&self, top: &Node) {
        let mut left = vec![top.address()];
        while let Some(address) = left.pop() {
            // SAFETY: addresses of nodes below `top`, each reached once and not freed yet; nobody
            // else changes them.
            let node = unsafe { Node::at(address) }.expect("children and layers have addresses");
            if is_inner(node.version.stable()) {
                left.extend((0..=node.count()).map(|index| node.child(index)));
            } else {
                let permutation = node.permutation();
                let kinds = node.kinds();
                let slots = (0..permutation.count()).map(|position| permutation.slot(position));
                left.extend(
                    slots
                        .filter(|slot| kinds.of(*slot) == LAYER)
                        .map(|slot| node.value(slot))
                        // In a part of a tree, a layer that has not been joined yet.
                        .filter(|layer| *layer != 0),
                );
                // SAFETY: the bag of a leaf nobody else can reach.
                if let Some(bag) = unsafe { Bag::at(node.bag()) } {
                    self.free_bag(bag);
                }
            }
            self.free_node(node);
        }
    }
}
