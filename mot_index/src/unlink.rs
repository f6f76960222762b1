//! Unlinking leaves, inner nodes and layers that have become empty.
//!
//! A writer that removes the last entry of a leaf owns the leaf's latch, and unlinks the leaf
//! before it releases the latch. So no empty leaf is ever seen unlatched. Latches are taken in one
//! order: lower layers before upper ones, children before parents, a leaf before its left
//! neighbour. No writer waits for a latch against that order, so no writer waits for ever.
//!
//! An unlinked node is dirty from before its links are handed over until it is marked as deleted.
//! After the hand-over its own links are not maintained: a leaf that they name may be unlinked
//! without an update of these links.

use crate::descend::{Goal, reach_leaf};
use crate::memory::Memory;
use crate::node::Node;
use crate::permutation::Permutation;
use crate::slice::{LAYER, LONGER, SLICE_BYTES, cut};
use crate::split::Chain;
use crate::sync::{Ordering, Wait, is_broken};
use crate::tree::Tree;
use crate::update::Site;
use crate::version::{CHANGE, SPLIT, is_deleted, is_inner, same_range};

impl<'a, M: Memory> Tree<'a, M> {
    /// Unlinks a leaf that the caller owns and that has no entry. With the leaf it unlinks all that
    /// becomes empty above. `key` is a key that the leaf covers. Releases all latches.
    pub(crate) fn remove_empty(&self, key: &[u8], mut site: Site<'a>) {
        loop {
            let slice = cut(&key[site.offset..]).0;
            if !site.leaf.is(site.root) && !self.unlink_leaf(site.root, site.leaf, slice) {
                return;
            }
            // The layer is empty, and its root is an empty leaf that this writer owns.
            let root = site.root;
            let Some(offset) = site.offset.checked_sub(SLICE_BYTES) else {
                self.root.node.store(0, Ordering::Release);
                self.delete(root);
                return;
            };
            let (upper, position) = self.latch_upper(key, offset, root);
            upper
                .leaf
                .set_permutation(upper.leaf.permutation().remove(position));
            self.delete(root);
            if upper.leaf.permutation().count() > 0 {
                upper.leaf.version.unlatch(CHANGE);
                return;
            }
            site = upper;
        }
    }

    /// Latches the leaf whose entry leads to the layer of `lower`, an owned root. `offset` is how
    /// many bytes of the key the layers above that leaf use.
    fn latch_upper(&self, key: &[u8], offset: usize, lower: &Node) -> (Site<'a>, usize) {
        let mut wait = Wait::new();
        loop {
            if let Some(site) = self.try_latch_upper(key, offset) {
                let leaf = site.leaf;
                let permutation = leaf.permutation();
                if let Some(slot) = layer_slot(leaf, permutation, cut(&key[offset..]).0)
                    && leaf.value(slot) == lower.address()
                    && let Some(position) = permutation.position(slot)
                {
                    return (site, position);
                }
                leaf.version.unlatch(0);
            }
            wait.once();
        }
    }

    /// Latches the leaf that covers the key in the layer at `offset`. `None` if the path to it
    /// changes.
    fn try_latch_upper(&self, key: &[u8], offset: usize) -> Option<Site<'a>> {
        let mut root = self.first_layer()?;
        for at in (0..=offset).step_by(SLICE_BYTES) {
            let (slice, class) = cut(&key[at..]);
            debug_assert!(class == LONGER);
            let (leaf, seen) = reach_leaf(root, Goal::Slice(slice))?;
            if at == offset {
                leaf.version.latch();
                if same_range(seen, leaf.version.owned()) {
                    return Some(Site { leaf, root, offset });
                }
                leaf.version.unlatch(0);
                return None;
            }
            let address = leaf.value(layer_slot(leaf, leaf.permutation(), slice)?);
            if !leaf.is_still(seen) {
                return None;
            }
            // SAFETY: read under a validated version in the pinned epoch (`Tree::new`).
            root = unsafe { Node::at(address) }?;
        }
        None
    }

    /// Unlinks an owned, empty leaf that is not the root of its layer. Returns whether the layer is
    /// then empty. If it is, its root, now an empty leaf, is latched.
    fn unlink_leaf(&self, root: &'a Node, leaf: &'a Node, slice: u64) -> bool {
        let previous = self.latch_previous(leaf);
        let mut chain = Chain::new();
        chain.push(leaf);
        loop {
            let parent = self.latch_parent(root, slice, chain.top());
            chain.push(parent);
            // A parent without another child is unlinked as well.
            if parent.count() > 0 || parent.is(root) {
                break;
            }
        }
        let top = chain.pop().expect("the chain has a parent");
        // This comes before two other steps, for two reasons.
        //
        // - It comes before the links are handed over and the left neighbour's latch is released.
        //   After that, a neighbour below another parent, which these links still name, may be
        //   unlinked and freed. A reader that pins later and reaches a clean leaf would follow
        //   these links.
        // - It comes before the parent's latch is released. After that, the leaves that were beside
        //   this one may move entries to each other. A scan that comes from this leaf must notice
        //   (`redistribute.rs`).
        if !is_broken("index: dirty before others redistribute past an unlinked leaf") {
            chain.iter().for_each(|node| node.version.make_dirty());
        }
        // The pair (previous, its next) belongs to the latch of the left leaf. This writer owns
        // both left leaves.
        let next = leaf.next();
        // SAFETY: `leaf`, owned by us, keeps its right neighbour from being unlinked.
        if let Some(next) = unsafe { Node::at(next) } {
            next.set_previous(leaf.previous());
        }
        if let Some(previous) = previous {
            previous.set_next(next);
            noted::hand_over(leaf);
            previous.version.unlatch(0);
        }
        top.version.make_dirty();
        let layer_is_empty = top.count() == 0;
        let mut pulled = None;
        if layer_is_empty {
            debug_assert!(top.is(root) && next == 0);
            top.become_leaf();
            top.version.make_clean(SPLIT);
        } else {
            top.remove_child(top.route(slice));
            if top.is(root) {
                pulled = pull_up(top);
            }
            let count = if pulled.is_some() { SPLIT } else { CHANGE };
            top.version.unlatch(count);
        }
        // All nodes are unlatched before the first is retired: retiring may take its time, and
        // readers that have met a dirty node wait.
        for node in chain.iter() {
            node.version.unlatch_deleted();
        }
        while let Some(node) = chain.pop() {
            self.retire_deleted(node);
        }
        if let Some(child) = pulled {
            // Its bag, if any, now belongs to the root.
            self.retire_node(child);
        }
        layer_is_empty
    }

    /// Latches the left neighbour of an owned leaf, if there is one.
    pub(crate) fn latch_previous(&self, leaf: &Node) -> Option<&'a Node> {
        let mut wait = Wait::new();
        loop {
            // SAFETY: the neighbour of a leaf that is in the list is in the list at that moment,
            // and the pinned epoch keeps it (`Tree::new`).
            let previous = unsafe { Node::at(leaf.previous()) }?;
            previous.version.latch();
            let now = previous.version.owned();
            if !is_deleted(now) && !is_inner(now) && previous.next() == leaf.address() {
                return Some(previous);
            }
            previous.version.unlatch(0);
            wait.once();
        }
    }

    /// Marks an unlinked node as deleted, releases its latch and retires it.
    fn delete(&self, node: &Node) {
        node.version.unlatch_deleted();
        self.retire_deleted(node);
    }

    /// Retires a node that is marked as deleted, and its bag. No thread changes the node any more.
    fn retire_deleted(&self, node: &Node) {
        let bag = if is_inner(node.version.stable()) {
            0
        } else {
            node.bag()
        };
        self.retire_bag(bag);
        self.retire_node(node);
    }
}

/// Takes the content of a dirty root's only child into the root, if the root has only one child and
/// that child's latch is free. The latch is only tried, because it is against the order. Returns
/// the child, marked as deleted and still to be retired.
fn pull_up(root: &Node) -> Option<&Node> {
    if root.count() > 0 {
        return None;
    }
    // SAFETY: the child of an owned node.
    let child = unsafe { Node::at(root.child(0)) }.expect("an inner node has children");
    if !child.version.try_latch() {
        return None;
    }
    root.take_content(child);
    child.version.unlatch_deleted();
    Some(child)
}

/// The slot of the entry that leads to the layer of a slice. Without the latch the result must be
/// validated.
fn layer_slot(leaf: &Node, permutation: Permutation, slice: u64) -> Option<usize> {
    let kinds = leaf.kinds();
    let slot = leaf.longer(permutation, kinds, slice).first()?;
    (kinds.of(slot) == LAYER).then_some(slot)
}

/// For tests: whether leaves being unlinked were dirty when their links were handed over.
#[cfg(test)]
mod noted {
    use crate::node::Node;
    use core::cell::Cell;

    thread_local! {
        static HANDED_OVER: Cell<[usize; 2]> = const { Cell::new([0; 2]) };
    }

    pub(super) fn hand_over(leaf: &Node) {
        HANDED_OVER.with(|noted| {
            let mut now = noted.get();
            now[usize::from(leaf.version.is_dirty())] += 1;
            noted.set(now);
        });
    }

    /// How many were clean, and how many dirty, on this thread.
    pub(super) fn handed_over() -> [usize; 2] {
        HANDED_OVER.with(Cell::get)
    }
}

/// Outside of tests nothing is noted.
#[cfg(not(test))]
mod noted {
    pub(super) fn hand_over(_: &crate::node::Node) {}
}

#[cfg(test)]
#[path = "unlink_tests.rs"]
mod tests;
