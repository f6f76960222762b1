//! Building a tree from sorted keys, bottom up.
//!
//! A key belongs in the deepest layer that it shares with more neighbours than may stay in a leaf
//! together ([`SUFFIXES_OF_A_SLICE`]). So keys are held back until as many after them are known
//! (`held.rs`). Each layer being built (`bulk/layer.rs`) has a leaf being filled and the right
//! spine of its inner nodes. At any moment it is a proper tree below its top, so that after a
//! failure all of it can be freed like any tree. Nothing is visible to other threads before the
//! last step.
//!
//! Several threads build one tree in parts. Each thread takes a range of the keys. It also gets the
//! two keys next to that range, which say how many layers the part shares with its neighbours. Of a
//! layer that continues in a neighbouring part, a part makes only the leaves; `join.rs` puts inner
//! nodes above them. A part does not know how many keys of such a layer its neighbour has. So the
//! slices shared by the two keys on either side of a cut always lead to layers, even to a layer of
//! two keys.

mod layer;

use crate::held::{Held, Ready};
use crate::memory::{Memory, OutOfMemory};
use crate::node::Node;
use crate::slice::{
    LAYER, LONGER, MAX_KEY_BYTES, SLICE_BYTES, SUFFIX, compare, cut, shared_layers,
};
use crate::tree::Tree;
use crate::update::assert_value;
use core::cmp::Ordering;
use core::fmt;

pub(crate) use layer::LayerBuilder;

/// Why a tree could not be built. It is as empty (or as full) as before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BulkError {
    /// The memory was full.
    OutOfMemory,
    /// The key at this position (from 0) is not greater than the one before it.
    OutOfOrder(u64),
    /// The key at this position is longer than [`MAX_KEY_BYTES`].
    KeyTooLong(u64),
    /// No part of a tree may begin (or, at the end of the part, end) at this position: see
    /// [`may_part`].
    Inseparable(u64),
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
            BulkError::Inseparable(at) => {
                write!(f, "a tree cannot be cut into parts at key {at}")
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
    /// Builds an empty tree from entries in strictly ascending order of their keys, and returns how
    /// many entries there were. Nodes are filled completely. On `Err` nothing has changed.
    ///
    /// # Panics
    /// If a value is greater than [`crate::MAX_VALUE`].
    pub fn bulk_load<K: AsRef<[u8]>>(
        &self,
        entries: impl IntoIterator<Item = (K, u64)>,
    ) -> Result<u64, BulkError> {
        if !self.root.is_empty() {
            return Err(BulkError::NotEmpty);
        }
        let part = self.build_part(None, entries, None)?;
        self.join_parts(vec![part])
    }

    /// Builds a part of a tree, to be joined with those before and after it: see
    /// [`Tree::join_parts`]. `before` is the last key of the part before, `after` the first key of
    /// the next part. [`may_part`] must allow the cuts there. On `Err` nothing has changed.
    ///
    /// # Panics
    /// If a value is greater than [`crate::MAX_VALUE`].
    pub fn build_part<K: AsRef<[u8]>>(
        &self,
        before: Option<&[u8]>,
        entries: impl IntoIterator<Item = (K, u64)>,
        after: Option<&[u8]>,
    ) -> Result<TreePart, BulkError> {
        let mut loader = Loader {
            tree: *self,
            after,
            layers: Vec::new(),
            begun_before: 0,
            closed: Vec::new(),
        };
        let mut held = Held::new(after);
        let mut part = TreePart::default();
        for (key, value) in entries {
            let bytes = key.as_ref();
            if bytes.len() > MAX_KEY_BYTES {
                return Err(BulkError::KeyTooLong(part.entries));
            }
            assert_value(value);
            let previous = held.last().or(before);
            let (order, shared) = previous.map_or((Ordering::Less, 0), |key| compare(key, bytes));
            if order.is_ge() {
                return Err(BulkError::OutOfOrder(part.entries));
            }
            if part.entries == 0 {
                if before.is_some_and(|before| !may_part(before, bytes)) {
                    return Err(BulkError::Inseparable(0));
                }
                part.shared_before = shared;
                loader.begun_before = shared + 1;
                loader.layers.resize_with(shared + 1, LayerBuilder::edge);
            }
            part.entries += 1;
            if let Some(ready) = held.hold(key, value, shared) {
                loader.place(&ready)?;
            }
        }
        let Some(last) = held.last() else {
            return Ok(part);
        };
        if after.is_some_and(|after| last >= after) {
            return Err(BulkError::OutOfOrder(part.entries));
        }
        if after.is_some_and(|after| !may_part(last, after)) {
            return Err(BulkError::Inseparable(part.entries));
        }
        let shared = after.map_or(0, |after| shared_layers(last, after));
        while let Some(ready) = held.release(shared) {
            loader.place(&ready)?;
            if held.last().is_none() {
                loader.finish(ready.key.as_ref())?;
            }
        }
        part.shared_after = shared;
        part.closed = core::mem::take(&mut loader.closed);
        part.open = loader
            .layers
            .drain(..)
            .map(|layer| layer.edge.expect("what is open goes on behind the part"))
            .collect();
        Ok(part)
    }

    /// Frees a part that will not be joined.
    pub fn free_part(&self, part: TreePart) {
        for leaves in part.closed.into_iter().chain(part.open) {
            self.free_leaves(&leaves);
        }
    }

    pub(crate) fn free_leaves(&self, leaves: &[EdgeLeaf]) {
        for leaf in leaves {
            // SAFETY: the part's own leaf, which no other thread has seen; each is freed once.
            let node = unsafe { Node::at(leaf.address) }.expect("a leaf has an address");
            self.free_subtree(node);
        }
    }
}

/// Whether a tree may be cut into parts between two neighbouring keys. Entries that share a slice
/// stay in one leaf. So no cut is allowed where one key is the other one followed by zero bytes
/// (and perhaps more).
pub fn may_part(before: &[u8], after: &[u8]) -> bool {
    let depth = shared_layers(before, after) * SLICE_BYTES;
    cut(&before[depth..]).0 != cut(&after[depth..]).0
}

/// A part of a tree, built by [`Tree::build_part`]. Only [`Tree::join_parts`] and
/// [`Tree::free_part`] free its nodes.
#[must_use]
#[derive(Default)]
pub struct TreePart {
    pub(crate) entries: u64,
    /// How many layers below the first its first key shares with the part before, and its last key
    /// with the next part.
    pub(crate) shared_before: usize,
    pub(crate) shared_after: usize,
    /// The leaves of layers that began before the part and end in it, the deepest first.
    pub(crate) closed: Vec<Vec<EdgeLeaf>>,
    /// The leaves of layers that continue after the part, by depth. Where a layer begins in the
    /// part, the last entry of the layer above leads to it. The value of that entry is still to be
    /// set.
    pub(crate) open: Vec<Vec<EdgeLeaf>>,
}

impl TreePart {
    /// How many entries it has.
    pub fn entries(&self) -> u64 {
        self.entries
    }
}

/// A leaf that waits for its inner nodes.
#[derive(Clone, Copy)]
pub(crate) struct EdgeLeaf {
    /// The slice of its first entry.
    pub(crate) slice: u64,
    pub(crate) address: u64,
}

/// The layers being built, from the first to the deepest. Dropping the loader frees the layers left
/// in it.
struct Loader<'a, 'k, M: Memory> {
    tree: Tree<'a, M>,
    /// The key after the part.
    after: Option<&'k [u8]>,
    layers: Vec<LayerBuilder<'a>>,
    /// How many of them began before the part.
    begun_before: usize,
    closed: Vec<Vec<EdgeLeaf>>,
}

impl<M: Memory> Drop for Loader<'_, '_, M> {
    fn drop(&mut self) {
        for layer in self.layers.drain(..) {
            layer.free(&self.tree);
        }
        for leaves in self.closed.drain(..) {
            self.tree.free_leaves(&leaves);
        }
    }
}

impl<M: Memory> Loader<'_, '_, M> {
    /// Puts a key into its layer. Opens the layers down to it first, and then completes those that
    /// end with the key.
    fn place<K: AsRef<[u8]>>(&mut self, ready: &Ready<K>) -> Result<(), OutOfMemory> {
        let (key, value, depth) = (ready.key.as_ref(), ready.value, ready.depth);
        while self.layers.len() <= depth {
            let goes_on = self
                .after
                .is_some_and(|after| shared_layers(key, after) >= self.layers.len());
            self.layers.push(if goes_on {
                LayerBuilder::edge()
            } else {
                LayerBuilder::default()
            });
        }
        let rest = &key[depth * SLICE_BYTES..];
        let (slice, class) = cut(rest);
        debug_assert_eq!(self.layers.len(), depth + 1);
        let layer = self.layers.last_mut().expect("opened above");
        if class == LONGER {
            layer.append(&self.tree, slice, SUFFIX, &rest[SLICE_BYTES..], value)?;
        } else {
            layer.append(&self.tree, slice, class, &[], value)?;
        }
        self.close_layers(key, ready.shared)
    }

    /// Completes all layers deeper than `depth`; `key` is the last one placed.
    fn close_layers(&mut self, key: &[u8], depth: usize) -> Result<(), OutOfMemory> {
        while self.layers.len() > depth + 1 {
            let last = self.layers.len() - 1;
            let layer = &mut self.layers[last];
            layer.finish_leaf(&self.tree)?;
            if layer.edge.is_none() {
                let top = layer.top.expect("a layer has entries").address();
                self.enter_layer(key, last, top)?;
            }
            if let Some(leaves) = self.layers.pop().and_then(|layer| layer.edge) {
                // The layer began before the part, and its entry is there.
                self.closed.push(leaves);
                self.begun_before = self.layers.len();
            }
        }
        Ok(())
    }

    /// Adds the entry for the layer at `depth` to the layer above it.
    fn enter_layer(&mut self, key: &[u8], depth: usize, top: u64) -> Result<(), OutOfMemory> {
        let slice = cut(&key[(depth - 1) * SLICE_BYTES..]).0;
        self.layers[depth - 1].append(&self.tree, slice, LAYER, &[], top)
    }

    /// Completes the part, whose last key is `key`. Layers that begin here and continue after the
    /// part get their entry already, because it must lie beside others of the same slice.
    fn finish(&mut self, key: &[u8]) -> Result<(), OutOfMemory> {
        for depth in (self.begun_before..self.layers.len()).rev() {
            self.enter_layer(key, depth, 0)?;
        }
        for layer in &mut self.layers {
            layer.finish_leaf(&self.tree)?;
        }
        Ok(())
    }
}
