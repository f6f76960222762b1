//! Making a layer for two keys that share a slice and both go on behind it.
//!
//! If they share further slices, a chain of layers is made, each but the last a leaf with one
//! entry. The chain is complete before it is published by one change of the entry above.

use crate::bag::{Bag, with_reserve};
use crate::memory::{Memory, OutOfMemory};
use crate::node::Node;
use crate::permutation::Permutation;
use crate::slice::{LAYER, LONGER, SLICE_BYTES, SUFFIX, cut, shared_layers};
use crate::tree::Tree;

/// A layer that nobody else has seen.
pub(crate) struct NewLayer<'a> {
    pub(crate) root: &'a Node,
    /// The leaf in which the two keys part, and the slot of the new one.
    leaf: &'a Node,
    slot: usize,
}

impl<'a> NewLayer<'a> {
    /// A layer in which `old` has the value `old_value` and `new`, another key, a value that is
    /// still to be set.
    pub(crate) fn create<M: Memory>(
        tree: &Tree<'a, M>,
        old: &[u8],
        old_value: u64,
        new: &[u8],
    ) -> Result<Self, OutOfMemory> {
        let chained = shared_layers(old, new);
        let (leaf, slot) = create_pair(
            tree,
            &old[chained * SLICE_BYTES..],
            old_value,
            &new[chained * SLICE_BYTES..],
        )?;
        let mut root = leaf;
        for at in (0..chained).rev() {
            let Ok(above) = tree.create_node(0) else {
                tree.free_subtree(root);
                return Err(OutOfMemory);
            };
            above.fill(0, cut(&new[at * SLICE_BYTES..]).0, LAYER, root.address());
            above.set_permutation(Permutation::first(1));
            root = above;
        }
        Ok(NewLayer { root, leaf, slot })
    }

    /// Sets the new key's value.
    pub(crate) fn set_value(&self, value: u64) {
        self.leaf.set_value(self.slot, value);
    }
}

/// A leaf with two entries, and the slot of the second key given.
fn create_pair<'a, M: Memory>(
    tree: &Tree<'a, M>,
    old: &[u8],
    old_value: u64,
    new: &[u8],
) -> Result<(&'a Node, usize), OutOfMemory> {
    let leaf = tree.create_node(0)?;
    let suffix_bytes = |rest: &[u8]| Bag::stored_bytes(rest.len().saturating_sub(SLICE_BYTES));
    let bytes = suffix_bytes(old) + suffix_bytes(new);
    let mut bag = None;
    if bytes > 0 {
        match Bag::create(tree.memory, with_reserve(bytes, 2)) {
            Ok(created) => bag = Some(created),
            Err(full) => {
                tree.free_node(leaf);
                return Err(full);
            }
        }
    }
    let new_first = cut(new) < cut(old);
    let pair = if new_first {
        [(new, 0), (old, old_value)]
    } else {
        [(old, old_value), (new, 0)]
    };
    for (slot, (rest, value)) in pair.into_iter().enumerate() {
        let (slice, class) = cut(rest);
        if class == LONGER {
            leaf.fill(slot, slice, SUFFIX, value);
            let bag = bag.as_mut().expect("a longer key has a bag");
            bag.put(slot, &rest[SLICE_BYTES..]);
        } else {
            leaf.fill(slot, slice, class, value);
        }
    }
    leaf.set_bag(bag.map_or(0, Bag::cell));
    leaf.set_permutation(Permutation::first(2));
    let slot = usize::from(!new_first);
    leaf.set_kinds(leaf.kinds().with_last(slot));
    Ok((leaf, slot))
}
