//! One layer of a tree being built: a leaf being filled after all others, and the right spine of
//! the inner nodes above.
//!
//! At any moment the nodes below `top` are a proper tree and can be freed. The same holds for the
//! leaves in `edge`, if the layer continues beyond the part. No other thread finds the nodes before
//! the tree is whole, so no thread waits for their latches. `bulk.rs` fills the layer from keys,
//! `join.rs` from leaves that parts have made.

use super::EdgeLeaf;
use crate::bag::Bag;
use crate::memory::{Memory, OutOfMemory};
use crate::node::{INNER_KEYS, Node, Window};
use crate::permutation::{LEAF_ENTRIES, Permutation};
use crate::slice::{LAYER, SUFFIX};
use crate::tree::Tree;
use crate::version::{DIRTY, LATCHED};

/// One layer being built.
#[derive(Default)]
pub(crate) struct LayerBuilder<'a> {
    /// The leaf being filled. Its bag is made when it is complete.
    leaf: Option<&'a Node>,
    /// The last inner node of each level, from the lowest on.
    spine: Vec<&'a Node>,
    /// The node above all others.
    pub(crate) top: Option<&'a Node>,
    /// Only if the layer continues beyond the part: its leaves, which get no inner nodes.
    pub(super) edge: Option<Vec<EdgeLeaf>>,
    /// The suffixes of `leaf`, one after the other, and where the suffix of each slot ends.
    suffixes: Vec<u8>,
    suffix_ends: [usize; LEAF_ENTRIES],
}

impl<'a> LayerBuilder<'a> {
    pub(super) fn edge() -> Self {
        LayerBuilder {
            edge: Some(Vec::new()),
            ..LayerBuilder::default()
        }
    }

    /// Frees all of the layer, which no other thread has seen.
    pub(crate) fn free<M: Memory>(self, tree: &Tree<'a, M>) {
        match (self.edge, self.top) {
            (Some(leaves), _) => tree.free_leaves(&leaves),
            (None, Some(top)) => tree.free_subtree(top),
            (None, None) => {}
        }
    }

    /// Appends an entry after all others.
    pub(super) fn append<M: Memory>(
        &mut self,
        tree: &Tree<'a, M>,
        slice: u64,
        kind: u64,
        suffix: &[u8],
        value: u64,
    ) -> Result<(), OutOfMemory> {
        let leaf = match self.leaf {
            Some(leaf) if leaf.permutation().is_full() => {
                self.begin_leaf(tree, Some(leaf), slice)?
            }
            Some(leaf) if leaf.holds(slice) => leaf,
            Some(leaf) => self.widen_last(tree, leaf)?,
            None => self.begin_leaf(tree, None, slice)?,
        };
        let slot = leaf.permutation().count();
        leaf.fill(slot, slice, kind, value);
        self.suffixes.extend_from_slice(suffix);
        self.suffix_ends[slot] = self.suffixes.len();
        leaf.set_permutation(Permutation::first(slot + 1));
        Ok(())
    }

    /// Begins a new leaf after the full one, and moves entries of the same slice into it. The
    /// first leaf of a layer may become its root, and is wide.
    fn begin_leaf<M: Memory>(
        &mut self,
        tree: &Tree<'a, M>,
        full: Option<&'a Node>,
        slice: u64,
    ) -> Result<&'a Node, OutOfMemory> {
        let Some(old) = full else {
            return self.hang_in(tree, None, slice);
        };
        // The next entries are probably like the last ones.
        let window = old.window_with(slice);
        let kept = (0..LEAF_ENTRIES)
            .take_while(|slot| old.key(*slot) < slice)
            .count();
        let ends = self.suffix_ends;
        old.set_permutation(Permutation::first(kept));
        self.finish_leaf(tree)?;
        let new = self.hang_in(tree, window, slice)?;
        let from = ends[kept - 1];
        self.suffixes.drain(..from);
        self.suffix_ends = [0; LEAF_ENTRIES];
        for (slot, end) in ends.into_iter().enumerate().skip(kept) {
            let kind = old.kinds().of(slot);
            // An entry for a layer would have been the slice's last.
            debug_assert!(kind < LAYER);
            new.fill(slot - kept, slice, kind, old.value(slot));
            self.suffix_ends[slot - kept] = end - from;
        }
        new.set_permutation(Permutation::first(LEAF_ENTRIES - kept));
        Ok(new)
    }

    /// A new leaf after all others.
    fn hang_in<M: Memory>(
        &mut self,
        tree: &Tree<'a, M>,
        window: Option<Window>,
        slice: u64,
    ) -> Result<&'a Node, OutOfMemory> {
        let new = tree.create_leaf(window, 0)?;
        if let Err(full) = self.add_leaf(tree, slice, new) {
            tree.free_node(new);
            return Err(full);
        }
        Ok(new)
    }

    /// Replaces the last leaf with a wide one. The last leaf is narrow, and so not the first.
    fn widen_last<M: Memory>(
        &mut self,
        tree: &Tree<'a, M>,
        narrow: &'a Node,
    ) -> Result<&'a Node, OutOfMemory> {
        let wide = tree.create_node(LATCHED | DIRTY)?;
        narrow.version.latch();
        wide.take_content(narrow);
        wide.version.unlatch(0);
        if let Some(leaves) = &mut self.edge {
            leaves.last_mut().expect("it is in there").address = wide.address();
        } else {
            let parent = self.spine.first().expect("another leaf is before it");
            parent.set_child(parent.count(), wide.address());
        }
        // SAFETY: a leaf of this layer, which no other thread has seen.
        let previous = unsafe { Node::at(narrow.previous()) };
        previous
            .expect("another leaf is before it")
            .set_next(wide.address());
        tree.free_node(narrow);
        self.leaf = Some(wide);
        Ok(wide)
    }

    /// Where the suffix of a slot of `leaf` begins among all the suffixes.
    fn suffix_begin(&self, slot: usize) -> usize {
        slot.checked_sub(1)
            .map_or(0, |before| self.suffix_ends[before])
    }

    /// Sets the value of the last entry.
    pub(crate) fn set_last_value(&self, value: u64) {
        let leaf = self.leaf.expect("a layer has entries");
        leaf.set_value(leaf.permutation().count() - 1, value);
    }

    /// Adds a leaf after all others; `slice` is its first entry's.
    pub(crate) fn add_leaf<M: Memory>(
        &mut self,
        tree: &Tree<'a, M>,
        slice: u64,
        leaf: &'a Node,
    ) -> Result<(), OutOfMemory> {
        if let Some(leaves) = &mut self.edge {
            leaves.try_reserve(1).map_err(|_| OutOfMemory)?;
            leaves.push(EdgeLeaf {
                slice,
                address: leaf.address(),
            });
        } else if self.top.is_none() {
            self.top = Some(leaf);
        } else {
            self.attach(tree, 0, slice, leaf)?;
        }
        if let Some(old) = self.leaf {
            old.set_next(leaf.address());
            leaf.set_previous(old.address());
        }
        self.leaf = Some(leaf);
        Ok(())
    }

    /// Makes the bag of the complete leaf.
    pub(super) fn finish_leaf<M: Memory>(&mut self, tree: &Tree<'a, M>) -> Result<(), OutOfMemory> {
        let Some(leaf) = self.leaf else {
            return Ok(());
        };
        let count = leaf.permutation().count();
        if self.suffix_begin(count) == 0 || leaf.bag() != 0 {
            return Ok(());
        }
        let suffix = |slot: usize| &self.suffixes[self.suffix_begin(slot)..self.suffix_ends[slot]];
        let bytes = (0..count)
            .map(|slot| Bag::stored_bytes(suffix(slot).len()))
            .sum();
        let mut bag = Bag::create(tree.memory, bytes)?;
        for slot in 0..count {
            if leaf.kinds().of(slot) == SUFFIX {
                bag.put(slot, suffix(slot));
            }
        }
        leaf.set_bag(bag.cell());
        Ok(())
    }

    /// Adds a node after all others of its level (0: leaves).
    fn attach<M: Memory>(
        &mut self,
        tree: &Tree<'a, M>,
        level: usize,
        separator: u64,
        node: &Node,
    ) -> Result<(), OutOfMemory> {
        let Some(parent) = self.spine.get(level) else {
            let top = self.top.expect("a second node is hung in");
            let parent = new_inner(tree, top.address())?;
            parent.insert_child(separator, node.address());
            self.spine.push(parent);
            self.top = Some(parent);
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
