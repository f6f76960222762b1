//! Joining the parts of a tree that several threads have built: see `bulk.rs`.
//!
//! At a cut between two parts, the first layer and the layers below it that the keys on both sides
//! share continue. Parts bring the leaves of such layers. Here, one part after the other, these
//! leaves are chained and get their inner nodes. The address of a layer that ends becomes the value
//! of its entry in the layer above. That is a fifteenth of the work, and one thread does it.

use crate::bulk::{BulkError, EdgeLeaf, LayerBuilder, TreePart};
use crate::memory::{Memory, OutOfMemory};
use crate::node::Node;
use crate::sync::Ordering;
use crate::tree::Tree;
use std::collections::VecDeque;

impl<M: Memory> Tree<'_, M> {
    /// Fills an empty tree from parts. They must be all parts of the same keys in their order, each
    /// built with its neighbours' keys (empty parts are skipped). Returns how many entries there
    /// are. On `Err` nothing was changed. The parts are freed in any case.
    ///
    /// # Panics
    /// If a part was built with other neighbours.
    pub fn join_parts(&self, parts: Vec<TreePart>) -> Result<u64, BulkError> {
        let mut joiner = Joiner {
            tree: *self,
            layers: Vec::new(),
            parts: parts.into_iter().filter(|part| part.entries > 0).collect(),
        };
        if !self.root.is_empty() {
            return Err(BulkError::NotEmpty);
        }
        let entries = joiner.parts.iter().map(TreePart::entries).sum();
        if entries == 0 {
            return Ok(0);
        }
        joiner.layers.push(LayerBuilder::default());
        while !joiner.parts.is_empty() {
            joiner.join_next()?;
        }
        assert_eq!(joiner.layers.len(), 1, "the last part has one behind it");
        let top = joiner.layers[0].top.expect("there are entries").address();
        let cell = &self.root.node;
        match cell.compare_exchange(0, top, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => {
                joiner.layers.clear();
                Ok(entries)
            }
            Err(_) => Err(BulkError::NotEmpty),
        }
    }
}

/// The layers that continue after what is joined, and the parts not joined yet. What is left when
/// this is dropped is freed.
struct Joiner<'a, M: Memory> {
    tree: Tree<'a, M>,
    layers: Vec<LayerBuilder<'a>>,
    parts: VecDeque<TreePart>,
}

impl<M: Memory> Drop for Joiner<'_, M> {
    fn drop(&mut self) {
        for layer in self.layers.drain(..) {
            layer.free(&self.tree);
        }
        for part in self.parts.drain(..) {
            self.tree.free_part(part);
        }
    }
}

impl<M: Memory> Joiner<'_, M> {
    fn join_next(&mut self) -> Result<(), OutOfMemory> {
        let part = self.parts.front_mut().expect("the caller has looked");
        assert_eq!(
            self.layers.len(),
            part.shared_before + 1,
            "a part was built with other neighbours"
        );
        debug_assert_eq!(part.open.len(), part.shared_after + 1);
        // Layers that end in this part, from the deepest on.
        for leaves in &mut part.closed {
            let layer = self.layers.last_mut().expect("as many as are shared");
            add_leaves(&self.tree, layer, leaves)?;
            let top = layer.top.expect("a layer has entries").address();
            // Since the layer began, nothing was added after its entry.
            self.layers[self.layers.len() - 2].set_last_value(top);
            self.layers.pop();
        }
        for (depth, leaves) in part.open.iter_mut().enumerate() {
            if depth == self.layers.len() {
                self.layers.push(LayerBuilder::default());
            }
            add_leaves(&self.tree, &mut self.layers[depth], leaves)?;
        }
        self.parts.pop_front();
        Ok(())
    }
}

/// Moves leaves after those of a layer.
fn add_leaves<'a, M: Memory>(
    tree: &Tree<'a, M>,
    layer: &mut LayerBuilder<'a>,
    leaves: &mut Vec<EdgeLeaf>,
) -> Result<(), OutOfMemory> {
    let mut added = 0;
    let mut outcome = Ok(());
    for leaf in leaves.iter() {
        // SAFETY: the part's own leaf, which no other thread has seen.
        let node = unsafe { Node::at(leaf.address) }.expect("a leaf has an address");
        outcome = layer.add_leaf(tree, leaf.slice, node);
        if outcome.is_err() {
            break;
        }
        added += 1;
    }
    leaves.drain(..added);
    outcome
}
