//! Prefetches what a scan will read, so that its misses overlap.
//!
//! Nothing here advances a scan. What is read of a leaf may be stale, and what is only prefetched
//! need not be valid. As everywhere, an address is followed only after a validation of what it was
//! read from.

use super::{Frame, layer_at, slot_at};
use crate::bag::Bag;
use crate::descend::{Goal, PrefetchBeside, reach_leaf_by};
use crate::direction::Direction;
use crate::node::Node;
use crate::slice::LAYER;

/// Layers prefetched in front of the one being read. Each is a miss of its own, and few of their
/// entries are read.
const LAYERS_AHEAD: usize = 4;
/// Of so many of these layers, which were prefetched before, the suffixes are prefetched too. So is
/// the rest, if they have many entries.
const LAYERS_NEAR: usize = 2;
/// About how many entries a layer beside the edge of a scan has. Those prefetched should be read.
const ENTRIES_A_LAYER: usize = 16;
/// Prefetching leaves pays from so many leaves still wanted.
pub(super) const LEAVES_WORTH_PREFETCHING: usize = 3;

impl Frame<'_> {
    /// Prefetches layers that follow the one into which the edge of a scan leads, if the scan is
    /// long enough to reach them.
    pub(crate) fn prefetch_behind_edge(&mut self, direction: Direction, room: usize) {
        self.prefetch_layers(direction, room / ENTRIES_A_LAYER);
    }

    /// Prefetches layers that follow the one just read, also beyond the end of the leaf. Prefetches
    /// also the content of the next ones, which were prefetched before.
    pub(super) fn prefetch_layers(&mut self, direction: Direction, room: usize) {
        let kinds = self.leaf.kinds();
        let ahead = self.read + LAYERS_AHEAD.min(room);
        let end = ahead.min(self.limit);
        for number in self.layers_prefetched.max(self.read)..end {
            let slot = self.slot(number, direction);
            if kinds.of(slot) == LAYER {
                Node::prefetch_small_leaf(self.leaf.value(slot));
            }
        }
        for number in self.read..self.layers_prefetched.min(self.read + LAYERS_NEAR).min(end) {
            let slot = self.slot(number, direction);
            if kinds.of(slot) == LAYER {
                let address = self.leaf.value(slot);
                if self.leaf.is_still(self.seen) {
                    layer_at(address).prefetch_content();
                }
            }
        }
        self.layers_prefetched = self.layers_prefetched.max(end);
        if ahead > self.limit && !self.covers_end {
            self.prefetch_layers_beside(direction, ahead - self.limit);
        }
    }

    /// Prefetches the suffixes of the next leaf, which was prefetched before, if this leaf has any.
    /// The next leaf may be anything by now: no address is followed.
    #[inline]
    pub(super) fn prefetch_suffixes_beside(&self, direction: Direction) {
        if self.leaf.bag() != 0
            // SAFETY: read under a validated version in the epoch that is still pinned
            // (`Tree::new`).
            && let Some(leaf) = unsafe { Node::at(self.neighbour(direction)) }
        {
            Bag::prefetch(leaf.bag());
        }
    }

    /// Prefetches the layers of the first entries of the next leaf. That may be anything by now: no
    /// address is followed.
    pub(super) fn prefetch_layers_beside(&mut self, direction: Direction, entries: usize) {
        // SAFETY: read under a validated version in the epoch that is still pinned (`Tree::new`).
        let Some(leaf) = (unsafe { Node::at(self.neighbour(direction)) }) else {
            return;
        };
        let (permutation, kinds) = (leaf.permutation(), leaf.kinds());
        let end = entries.min(permutation.count());
        for number in self.layers_prefetched_beside..end {
            let slot = slot_at(permutation, number, direction);
            if kinds.of(slot) == LAYER {
                Node::prefetch_small_leaf(leaf.value(slot));
            }
        }
        self.layers_prefetched_beside = self.layers_prefetched_beside.max(end);
    }

    /// Prefetches the leaves after this one by descending to it once more. That is cheaper than a
    /// wait for each of so many.
    pub(super) fn prefetch_leaves(&mut self, direction: Direction, wanted: usize) {
        if self.permutation.count() == 0 {
            return;
        }
        let slice = self.leaf.key(self.slot(0, direction));
        let mut beside = PrefetchBeside::new(direction, wanted, self.end);
        // Only the prefetched leaves matter: a reader that follows the links sees itself what has
        // changed.
        if reach_leaf_by(self.root, Goal::Slice(slice), &mut beside).is_some() {
            self.leaves_prefetched = beside.leaves;
        }
    }
}
