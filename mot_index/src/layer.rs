//! Making a layer for keys that share a slice and all continue after it. It is made when such keys
//! become too many for the leaf. It is also made when they are as many as may stay, and the leaf is
//! full.
//!
//! If all of them share further slices, a chain of layers is made. Each layer but the last is a
//! leaf with one entry. In the last layer the keys part, so no slice has more of them there than
//! may stay in a leaf. So one leaf holds them all. The chain is complete before one change of the
//! leaf above publishes it.

use crate::bag::{Bag, with_reserve};
use crate::memory::{Memory, OutOfMemory};
use crate::node::{NO_SLOT, Node};
use crate::permutation::{LEAF_ENTRIES, Permutation};
use crate::slice::{LAYER, LONGER, SLICE_BYTES, SUFFIX, SUFFIXES_OF_A_SLICE, cut, shared_layers};
use crate::suffixes::{has_suffixes, owned_suffix};
use crate::sync::is_broken;
use crate::tree::Tree;
use crate::version::CHANGE;

/// As many keys as make a layer.
pub(crate) const LAYER_KEYS: usize = SUFFIXES_OF_A_SLICE + 1;

const _: () = assert!(LAYER_KEYS > 1 && LAYER_KEYS <= LEAF_ENTRIES);

/// A layer that no other thread has seen.
pub(crate) struct NewLayer<'a> {
    pub(crate) root: &'a Node,
    /// The leaf in which the keys part, and the slot of the new one.
    leaf: &'a Node,
    slot: usize,
}

impl<'a> NewLayer<'a> {
    /// Makes a layer of entries in strictly ascending order. The entry numbered `new` is still to
    /// get its value.
    pub(crate) fn create<M: Memory>(
        tree: &Tree<'a, M>,
        entries: &[(&[u8], u64)],
        new: usize,
    ) -> Result<Self, OutOfMemory> {
        debug_assert!(entries.len() > 1 && entries.len() <= LAYER_KEYS);
        let path = entries[0].0;
        // What the first and the last key have in common, those between have too.
        let chained = shared_layers(path, entries[entries.len() - 1].0);
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

    /// Replaces `count` suffixes of one slice with the layer. The first of them is at position
    /// `first` of a leaf that the caller owns. The leaf is left dirty, and the caller then counts a
    /// change. Returns the cell of the bag that the leaf no longer uses, or 0.
    pub(crate) fn replace(&self, leaf: &Node, first: usize, count: usize) -> u64 {
        if !is_broken("index: dirty while suffixes move to a layer") {
            leaf.version.make_dirty();
        }
        let permutation = leaf.permutation();
        let slot = permutation.slot(first);
        leaf.set_value(slot, self.root.address());
        leaf.set_kinds(leaf.kinds().with(slot, LAYER));
        let left = (1..count).fold(permutation, |left, _| left.remove(first + 1));
        leaf.set_permutation(left);
        // Unused suffixes of a bag go when it is rebuilt. But a bag of which nothing is used may
        // never be rebuilt.
        if has_suffixes(leaf) {
            return 0;
        }
        let given_up = leaf.bag();
        leaf.set_bag(0);
        given_up
    }
}

impl<'a, M: Memory> Tree<'a, M> {
    /// Makes room in a full leaf that the caller owns: moves a slice's suffixes, as many as may
    /// stay, to a layer of their own. `false` if no slice has so many. One more such suffix would
    /// make the layer anyway, and a leaf cut because of entries that soon leave stays nearly empty.
    /// On `Err` nothing was changed.
    pub(crate) fn move_some(&self, leaf: &Node) -> Result<bool, OutOfMemory> {
        const COUNT: usize = SUFFIXES_OF_A_SLICE;
        let (permutation, kinds) = (leaf.permutation(), leaf.kinds());
        if !kinds.may_have_suffixes() {
            return Ok(false);
        }
        let slot = |position: usize| permutation.slot(position);
        let first = (0..=LEAF_ENTRIES - COUNT).find(|first| {
            kinds.of(slot(*first)) == SUFFIX
                && leaf.key(slot(*first)) == leaf.key(slot(first + COUNT - 1))
        });
        let Some(first) = first else {
            return Ok(false);
        };
        let mut entries = [(&[][..], 0); COUNT];
        for (entry, position) in entries.iter_mut().zip(first..) {
            let slot = slot(position);
            *entry = (owned_suffix(leaf, slot), leaf.value(slot));
        }
        let layer = NewLayer::create(self, &entries, NO_SLOT)?;
        let given_up = layer.replace(leaf, first, COUNT);
        leaf.version.make_clean(CHANGE);
        self.retire_bag(given_up);
        Ok(true)
    }
}

/// Makes a leaf of entries, each in the slot of its number. Their first `offset` bytes are in the
/// layers above.
fn create_leaf<'a, M: Memory>(
    tree: &Tree<'a, M>,
    entries: &[(&[u8], u64)],
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
