//! Taking out leaves, inner nodes and layers that hold nothing any more.
//!
//! Whoever takes the last entry out of a leaf owns its latch and unlinks it before giving the latch
//! back, so no empty leaf is ever seen unlatched. Latches are taken in one order: lower layers
//! before upper ones, children before parents, a leaf before its left neighbour. Nobody waits for
//! one against that order, so nobody waits for ever. What goes is dirty from before its links are
//! handed over until it is marked as deleted: its own links are nobody's from then on, and a leaf
//! they name may go without this one's being told.

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
    /// Unlinks a leaf the caller owns and that has no entry, and with it all that becomes empty
    /// above. `key` is one the leaf covers. Gives all latches back.
    pub(crate) fn remove_empty(&self, key: &[u8], mut site: Site<'a>) {
        loop {
            let slice = cut(&key[site.offset..]).0;
            if !site.leaf.is(site.root) && !self.unlink_leaf(site.root, site.leaf, slice) {
                return;
            }
            // The layer is empty, and its root an empty leaf that we own.
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

    /// Latches the leaf whose entry is the layer of `lower`, an owned root; `offset` is how many
    /// bytes of the key the layers above that leaf use.
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

    /// Latches the leaf that covers the key in the layer at `offset`, unless the way there changes.
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

    /// Unlinks an owned, empty leaf that is not the root of its layer. Returns whether the layer
    /// is empty then; if so its root, an empty leaf now, is latched.
    fn unlink_leaf(&self, root: &'a Node, leaf: &'a Node, slice: u64) -> bool {
        let previous = self.latch_previous(leaf);
        let mut chain = Chain::new();
        chain.push(leaf);
        loop {
            let parent = self.latch_parent(root, slice, chain.top());
            chain.push(parent);
            // A parent of no other child goes as well.
            if parent.count() > 0 || parent.is(root) {
                break;
            }
        }
        let top = chain.pop().expect("the chain has a parent");
        // Before the links are handed over and the left neighbour's latch given back: from then on
        // a neighbour below another parent may be unlinked and freed, which these links still name,
        // and who pins later and comes to a clean leaf would follow them. And before the parent's
        // latch is given back: from then on the leaves that were beside this one may move
        // entries to each other, and a scan that comes from this one must notice
        // (`redistribute.rs`).
        if !is_broken("index: dirty before others redistribute past an unlinked leaf") {
            chain.iter().for_each(|node| node.version.make_dirty());
        }
        // The pair (previous, its next) belongs to the latch of the left leaf: ours, both of them.
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
        // All of them before the first is retired: that may take its time, and who has met one that
        // is dirty waits.
        for node in chain.iter() {
            node.version.unlatch_deleted();
        }
        while let Some(node) = chain.pop() {
            self.retire_deleted(node);
        }
        if let Some(child) = pulled {
            // Its bag, if any, is the root's now.
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

    /// Marks an unlinked node as deleted, gives its latch back and retires it.
    fn delete(&self, node: &Node) {
        node.version.unlatch_deleted();
        self.retire_deleted(node);
    }

    /// Retires a node that is marked as deleted, which nobody changes any more, and its bag.
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

/// Takes the content of a dirty root's only child into the root, if it has only one and that is
/// free. A latch is only tried for here, as it is against the order. Returns the child, marked as
/// deleted and still to be retired.
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

/// The slot of the entry that leads to the layer of a slice; without the latch to be validated.
fn layer_slot(leaf: &Node, permutation: Permutation, slice: u64) -> Option<usize> {
    let kinds = leaf.kinds();
    let slot = leaf.longer(permutation, kinds, slice).first()?;
    (kinds.of(slot) == LAYER).then_some(slot)
}

/// What tests want to know: whether leaves that go were dirty when their links were handed over.
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

/// Nothing is noted but in tests.
#[cfg(not(test))]
mod noted {
    pub(super) fn hand_over(_: &crate::node::Node) {}
}

#[cfg(test)]
#[path = "unlink_tests.rs"]
mod tests;
