//! Making a layer for keys that share a slice and all go on behind it, when they have become too many for the leaf.
//!
//! If all of them share further slices, a chain of layers is made, each but the last a leaf with one
//! entry. In the last they part, so no slice has more of them there than may stay in a leaf: one leaf holds
//! them all. The chain is complete before it is published by one change of the leaf above.

use crate::bag::{Bag, with_reserve};
use crate::memory::{Memory, OutOfMemory};
use crate::node::Node;
use crate::permutation::{LEAF_ENTRIES, Permutation};
use crate::slice::{LAYER, LONGER, SLICE_BYTES, SUFFIX, SUFFIXES_OF_A_SLICE, cut, shared_layers};
use crate::tree::Tree;

/// As many keys as make a layer.
pub(crate) const LAYER_KEYS: usize = SUFFIXES_OF_A_SLICE + 1;

const _: () = assert!(LAYER_KEYS > 1 && LAYER_KEYS <= LEAF_ENTRIES);

/// A layer that nobody else has seen.
pub(crate) struct NewLayer<'a> {
    pub(crate) root: &'a Node,
    /// The leaf in which the keys part, and the slot of the new one.
    leaf: &'a Node,
    slot: usize,
}

impl<'a> NewLayer<'a> {
    /// A layer of entries in strictly ascending order, of which the one numbered `new` is still to get its value.
    pub(crate) fn create<M: Memory>(
        tree: &Tree<'a, M>,
        entries: &[(&[u8], u64); LAYER_KEYS],
        new: usize,
    ) -> Result<Self, OutOfMemory> {
        let path = entries[0].0;
        // What the first and the last have in common, those between them have, too.
        let chained = shared_layers(path, entries[LAYER_KEYS - 1].0);
        let leaf = create_leaf(tree, entries, chained * SLICE_BYTES)?;
        leaf.set_kinds(leaf.kinds().with_last(new));
        let mut root = leaf;
        for at in (0..chained).rev() {
            let Ok(above) = tree.create_node(0) else {
                tree.free_subtree(root);
                return Err(OutOfMemory);
            };
            above.fill(0, cut(&path[at * SLICE_BYTES..]).0, LAYER, root.address());
            above.set_permutation(Permutation::first(1));
            root = above;
        }
        Ok(NewLayer {
            root,
            leaf,
            slot: new,
        })
    }

    /// Sets the new key's value.
    pub(crate) fn set_value(&self, value: u64) {
        self.leaf.set_value(self.slot, value);
    }
}

/// A leaf of entries, each in the slot of its number; their first `offset` bytes are in the layers above.
fn create_leaf<'a, M: Memory>(
    tree: &Tree<'a, M>,
    entries: &[(&[u8], u64); LAYER_KEYS],
    offset: usize,
) -> Result<&'a Node, OutOfMemory> {
    let leaf = tree.create_node(0)?;
    let bytes = entries
        .iter()
        .map(|(key, _)| Bag::stored_bytes((key.len() - offset).saturating_sub(SLICE_BYTES)))
        .sum();
    let mut bag = None;
    if bytes > 0 {
        match Bag::create(tree.memory, with_reserve(bytes, entries.len())) {
            Ok(created) => bag = Some(created),
            Err(full) => {
                tree.free_node(leaf);
                return Err(full);
            }
        }
    }
    for (slot, (key, value)) in entries.iter().enumerate() {
        let rest = &key[offset..];
        let (slice, class) = cut(rest);
        if class == LONGER {
            leaf.fill(slot, slice, SUFFIX, *value);
            let bag = bag.as_mut().expect("a longer key has a bag");
            bag.put(slot, &rest[SLICE_BYTES..]);
        } else {
            leaf.fill(slot, slice, class, *value);
        }
    }
    leaf.set_bag(bag.map_or(0, Bag::cell));
    leaf.set_permutation(Permutation::first(entries.len()));
    Ok(leaf)
}
