//! Building a tree from sorted keys, bottom up.
//!
//! Every key is held back until its successor is known, for the two together say in which layer it
//! belongs: as deep as it shares whole slices with a neighbour. Each layer being built has a leaf
//! being filled and the right spine of its inner nodes; at any moment it is a proper tree below its
//! top, so that after a failure all of it can be freed like any tree. Nothing is visible to others
//! before the last step.

use crate::bag::Bag;
use crate::memory::{Memory, OutOfMemory};
use crate::node::{INNER_KEYS, Node};
use crate::permutation::{LEAF_ENTRIES, Permutation};
use crate::slice::{LAYER, LONGER, MAX_KEY_BYTES, SLICE_BYTES, SUFFIX, cut, shared_layers};
use crate::sync::Ordering;
use crate::tree::Tree;
use crate::version::{DIRTY, LATCHED};
use core::fmt;

/// Why a tree could not be built. It is as empty (or as full) as before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BulkError {
    /// The memory was full.
    OutOfMemory,
    /// The key at this position (from 0) is not greater than the one before it.
    OutOfOrder(u64),
    /// The key at this position is longer than [`MAX_KEY_BYTES`].
    KeyTooLong(u64),
    /// The tree already has entries.
    NotEmpty,
}

impl fmt::Display for BulkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BulkError::OutOfMemory => OutOfMemory.fmt(f),
            BulkError::OutOfOrder(at) => write!(f, "key {at} is not greater than the one before"),
            BulkError::KeyTooLong(at) => {
                write!(f, "key {at} is longer than {MAX_KEY_BYTES} bytes")
            }
            BulkError::NotEmpty => f.write_str("the tree is not empty"),
        }
    }
}

impl core::error::Error for BulkError {}

impl From<OutOfMemory> for BulkError {
    fn from(_: OutOfMemory) -> Self {
        BulkError::OutOfMemory
    }
}

impl<M: Memory> Tree<'_, M> {
    /// Builds an empty tree from entries in strictly ascending order of their keys and returns how
    /// many there were. Nodes are filled completely. On `Err` nothing was changed.
    pub fn bulk_load<K: AsRef<[u8]>>(
        &self,
        entries: impl IntoIterator<Item = (K, u64)>,
    ) -> Result<u64, BulkError> {
        if !self.root.is_empty() {
            return Err(BulkError::NotEmpty);
        }
        let mut loader = Loader {
            tree: *self,
            layers: Vec::new(),
        };
        let mut held: Option<(K, u64)> = None;
        // How many layers the key held back shares with the one before it.
        let mut shared_before = 0;
        let mut count = 0;
        for (key, value) in entries {
            let bytes = key.as_ref();
            if bytes.len() > MAX_KEY_BYTES {
                return Err(BulkError::KeyTooLong(count));
            }
            if let Some((held, held_value)) = &held {
                let held = held.as_ref();
                if held >= bytes {
                    return Err(BulkError::OutOfOrder(count));
                }
                let shared = shared_layers(held, bytes);
                loader.place(held, *held_value, shared_before.max(shared))?;
                loader.close_layers(held, shared)?;
                shared_before = shared;
            }
            held = Some((key, value));
            count += 1;
        }
        if let Some((held, value)) = &held {
            loader.place(held.as_ref(), *value, shared_before)?;
            loader.close_layers(held.as_ref(), 0)?;
            loader.publish()?;
        }
        Ok(count)
    }
}

/// The layers being built, from the first to the deepest; what is left in it when it is dropped is
/// freed.
struct Loader<'a, M: Memory> {
    tree: Tree<'a, M>,
    layers: Vec<LayerBuilder<'a>>,
}

impl<M: Memory> Drop for Loader<'_, M> {
    fn drop(&mut self) {
        for layer in self.layers.drain(..) {
            self.tree.free_subtree(layer.top);
        }
    }
}

impl<M: Memory> Loader<'_, M> {
    /// Puts a key into the layer at `depth`, opening the layers down to it.
    fn place(&mut self, key: &[u8], value: u64, depth: usize) -> Result<(), OutOfMemory> {
        while self.layers.len() <= depth {
            self.layers.push(LayerBuilder::create(&self.tree)?);
        }
        let rest = &key[depth * SLICE_BYTES..];
        let (slice, class) = cut(rest);
        let layer = self.layers.last_mut().expect("opened above");
        if class == LONGER {
            layer.append(&self.tree, slice, SUFFIX, &rest[SLICE_BYTES..], value)
        } else {
            layer.append(&self.tree, slice, class, &[], value)
        }
    }

    /// Completes all layers deeper than `depth`; `key` is the last one placed.
    fn close_layers(&mut self, key: &[u8], depth: usize) -> Result<(), OutOfMemory> {
        while self.layers.len() > depth + 1 {
            let last = self.layers.len() - 1;
            let layer = &mut self.layers[last];
            layer.finish_leaf(&self.tree)?;
            let root = layer.top.address();
            let slice = cut(&key[(last - 1) * SLICE_BYTES..]).0;
            self.layers[last - 1].append(&self.tree, slice, LAYER, &[], root)?;
            self.layers.pop();
        }
        Ok(())
    }

    fn publish(&mut self) -> Result<(), BulkError> {
        self.layers[0].finish_leaf(&self.tree)?;
        let address = self.layers[0].top.address();
        let cell = &self.tree.root.node;
        match cell.compare_exchange(0, address, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => {
                self.layers.clear();
                Ok(())
            }
            Err(_) => Err(BulkError::NotEmpty),
        }
    }
}

/// One layer being built.
struct LayerBuilder<'a> {
    /// The leaf being filled. Its bag is made when it is complete.
    leaf: &'a Node,
    /// The last inner node of each level, from the lowest on.
    spine: Vec<&'a Node>,
    /// The node above all others.
    top: &'a Node,
    /// The suffixes of `leaf`, one behind the other, and where those of each slot end.
    suffixes: Vec<u8>,
    suffix_ends: [usize; LEAF_ENTRIES],
}

impl<'a> LayerBuilder<'a> {
    fn create<M: Memory>(tree: &Tree<'a, M>) -> Result<Self, OutOfMemory> {
        let leaf = tree.create_node(0)?;
        Ok(LayerBuilder {
            leaf,
            spine: Vec::new(),
            top: leaf,
            suffixes: Vec::new(),
            suffix_ends: [0; LEAF_ENTRIES],
        })
    }

    /// Appends an entry behind all others.
    fn append<M: Memory>(
        &mut self,
        tree: &Tree<'a, M>,
        slice: u64,
        kind: u64,
        suffix: &[u8],
        value: u64,
    ) -> Result<(), OutOfMemory> {
        if self.leaf.permutation().is_full() {
            self.begin_leaf(tree, slice)?;
        }
        let slot = self.leaf.permutation().count();
        self.leaf.fill(slot, slice, kind, value);
        self.suffixes.extend_from_slice(suffix);
        self.suffix_ends[slot] = self.suffixes.len();
        self.leaf.set_permutation(Permutation::first(slot + 1));
        Ok(())
    }

    /// Goes on in a new leaf, into which entries of the same slice move along.
    fn begin_leaf<M: Memory>(&mut self, tree: &Tree<'a, M>, slice: u64) -> Result<(), OutOfMemory> {
        self.finish_leaf(tree)?;
        let old = self.leaf;
        let new = tree.create_node(0)?;
        if let Err(full) = self.attach(tree, 0, slice, new) {
            tree.free_node(new);
            return Err(full);
        }
        old.set_next(new.address());
        new.set_previous(old.address());
        let kept = (0..LEAF_ENTRIES)
            .take_while(|slot| old.key(*slot) < slice)
            .count();
        for slot in kept..LEAF_ENTRIES {
            // An entry that goes on behind the slice would have been the slice's last.
            debug_assert!(old.kinds().of(slot) < SUFFIX);
            new.fill(slot - kept, slice, old.kinds().of(slot), old.value(slot));
        }
        old.set_permutation(Permutation::first(kept));
        new.set_permutation(Permutation::first(LEAF_ENTRIES - kept));
        self.leaf = new;
        self.suffixes.clear();
        self.suffix_ends = [0; LEAF_ENTRIES];
        Ok(())
    }

    /// Gives the complete leaf its bag.
    fn finish_leaf<M: Memory>(&mut self, tree: &Tree<'a, M>) -> Result<(), OutOfMemory> {
        if self.suffixes.is_empty() || self.leaf.bag() != 0 {
            return Ok(());
        }
        let count = self.leaf.permutation().count();
        let suffix = |slot: usize| {
            let begin = if slot == 0 {
                0
            } else {
                self.suffix_ends[slot - 1]
            };
            &self.suffixes[begin..self.suffix_ends[slot]]
        };
        let bytes = (0..count)
            .map(|slot| Bag::stored_bytes(suffix(slot).len()))
            .sum();
        let bag = Bag::create(tree.memory, bytes)?;
        for slot in 0..count {
            if self.leaf.kinds().of(slot) == SUFFIX {
                bag.put(slot, suffix(slot));
            }
        }
        self.leaf.set_bag(bag.address());
        Ok(())
    }

    /// Hangs a node in behind all others of its level (0: leaves).
    fn attach<M: Memory>(
        &mut self,
        tree: &Tree<'a, M>,
        level: usize,
        separator: u64,
        node: &Node,
    ) -> Result<(), OutOfMemory> {
        let Some(parent) = self.spine.get(level) else {
            let parent = new_inner(tree, self.top.address())?;
            parent.insert_child(separator, node.address());
            self.spine.push(parent);
            self.top = parent;
            return Ok(());
        };
        if parent.count() < INNER_KEYS {
            parent.insert_child(separator, node.address());
            return Ok(());
        }
        let parent = new_inner(tree, node.address())?;
        if let Err(full) = self.attach(tree, level + 1, separator, parent) {
            tree.free_node(parent);
            return Err(full);
        }
        self.spine[level] = parent;
        Ok(())
    }
}

/// A new inner node with one child.
fn new_inner<'a, M: Memory>(tree: &Tree<'a, M>, child: u64) -> Result<&'a Node, OutOfMemory> {
    let node = tree.create_node(LATCHED | DIRTY)?;
    node.become_inner(child);
    node.version.unlatch(0);
    Ok(node)
}
