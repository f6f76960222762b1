//! Freeing a whole tree, or a part that no other thread has seen, at once.

use crate::bag::Bag;
use crate::memory::Memory;
use crate::node::Node;
use crate::slice::LAYER;
use crate::sync::Ordering;
use crate::tree::Tree;
use crate::version::is_inner;

impl<M: Memory> Tree<'_, M> {
    /// Empties the tree and frees every node at once, without an epoch.
    ///
    /// # Safety
    /// No other thread uses the tree during the call, and no thread that used it before is still
    /// pinned.
    pub unsafe fn clear(&self) {
        // SAFETY: the caller's.
        while !unsafe { self.clear_some(usize::MAX, |_| ()) } {}
    }

    /// Frees about so many nodes, the last ones first, and passes the values in them to `value`,
    /// each once. Returns true if the tree is empty now. Until then it can only be cleared further:
    /// its nodes say themselves what is left of them. That holds also when `value` or the memory
    /// unwinds. The value or the nodes being handled may then be lost, but none is passed or freed
    /// twice.
    ///
    /// # Safety
    /// No other thread uses the tree from the first of these calls to the last one. No thread that
    /// used it before is still pinned.
    pub unsafe fn clear_some(&self, nodes: usize, mut value: impl FnMut(u64)) -> bool {
        // From the root to the last node: layers in leaves' last entries, children in inner nodes'
        // last places.
        let mut path: Vec<u64> = self.first_layer().map(Node::address).into_iter().collect();
        let mut left = nodes;
        while let Some(&address) = path.last() {
            if left == 0 {
                return false;
            }
            // SAFETY: addresses of nodes of this tree, none of them freed. A node is freed only
            // after it is taken out of the node that names it.
            let node = unsafe { Node::at(address) }.expect("children and layers have addresses");
            if is_inner(node.version.stable()) {
                path.push(node.child(node.count()));
                continue;
            }
            if let Some(layer) = take_values(node, &mut value) {
                path.push(layer);
                continue;
            }
            left -= 1;
            // The node that names it forgets it before it is freed. An inner node that names
            // nothing more goes with it.
            let mut kept = path.len() - 1;
            loop {
                let Some(above) = kept.checked_sub(1).map(|at| path[at]) else {
                    self.root.node.store(0, Ordering::Release);
                    break;
                };
                // SAFETY: as above.
                let above = unsafe { Node::at(above) }.expect("a node of the path");
                if !is_inner(above.version.stable()) {
                    let permutation = above.permutation();
                    above.set_permutation(permutation.truncate(permutation.count() - 1));
                    break;
                }
                if above.count() > 0 {
                    above.set_count(above.count() - 1);
                    break;
                }
                kept -= 1;
            }
            for forgotten in path.drain(kept..).rev() {
                // SAFETY: as above. The node that named it has forgotten it, so that it is freed
                // here and nowhere else.
                let forgotten = unsafe { Node::at(forgotten) }.expect("a node of the path");
                self.free_forgotten(forgotten);
            }
        }
        true
    }

    /// Frees a node and everything below it. The caller has made sure that no other thread can
    /// reach any of it.
    pub(crate) fn free_subtree(&self, top: &Node) {
        let mut left = vec![top.address()];
        while let Some(address) = left.pop() {
            // SAFETY: addresses of nodes below `top`, each reached once and not freed yet. No other
            // thread changes them.
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
            }
            self.free_forgotten(node);
        }
    }

    /// Frees a node that no other thread can reach, and its bag.
    fn free_forgotten(&self, node: &Node) {
        if !is_inner(node.version.stable()) {
            // SAFETY: the bag of a leaf that no other thread can reach.
            if let Some(bag) = unsafe { Bag::at(node.bag()) } {
                self.free_bag(bag);
            }
        }
        self.free_node(node);
    }
}

/// Passes the values of a leaf to `value`, from the last on, up to a layer. That is then the leaf's
/// last entry.
fn take_values(leaf: &Node, value: &mut impl FnMut(u64)) -> Option<u64> {
    let permutation = leaf.permutation();
    let kinds = leaf.kinds();
    for position in (0..permutation.count()).rev() {
        let slot = permutation.slot(position);
        if kinds.of(slot) != LAYER {
            // Forgotten first: if `value` unwinds, a later call must not pass the same value again.
            leaf.set_permutation(permutation.truncate(position));
            value(leaf.value(slot));
        } else if leaf.value(slot) != 0 {
            leaf.set_permutation(permutation.truncate(position + 1));
            return Some(leaf.value(slot));
        }
    }
    None
}
