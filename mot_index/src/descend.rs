//! Descents: from the root of a layer to a leaf, by reads only.
//!
//! A descent goes hand over hand: it takes a child's version before it validates the parent's. So
//! at one moment the parent covered the key, and the child was the parent's choice for the key.
//! From then on the child's own version says when the child may no longer cover the key.

use crate::bag::Bag;
use crate::direction::Direction;
use crate::memory::Memory;
use crate::node::Node;
use crate::slice::{LONGER, SLICE_BYTES, SUFFIX, cut};
use crate::sync::is_broken;
use crate::tree::Tree;
use crate::version::{Seen, is_deleted, is_inner, same_range};

/// Which leaf of a layer a descent ends in.
#[derive(Clone, Copy)]
pub(crate) enum Goal {
    /// The leaf that covers the slice.
    Slice(u64),
    First,
    Last,
}

impl Goal {
    #[inline(always)]
    fn index_in(self, node: &Node) -> usize {
        match self {
            Goal::Slice(slice) => node.route(slice),
            Goal::First => 0,
            Goal::Last => node.count(),
        }
    }
}

/// What a descent does with the parent of its leaf, before it goes to the leaf. It gets the parent,
/// the version under which it was the parent, and the child's index.
pub(crate) trait AtParent {
    fn visit(&mut self, parent: &Node, seen: Seen, index: usize);
}

/// Nothing.
pub(crate) struct PassBy;

impl AtParent for PassBy {
    #[inline(always)]
    fn visit(&mut self, _: &Node, _: Seen, _: usize) {}
}

/// Prefetches the leaves beside the one that a scan begins with, so that their misses overlap. By
/// their own links they would come one by one.
pub(crate) struct PrefetchBeside {
    pub(crate) direction: Direction,
    /// How many are prefetched at most, and then how many were.
    pub(crate) leaves: usize,
    /// The slice in which the scan ends in this layer, if it does.
    pub(crate) end: Option<u64>,
    /// Whether no leaf after the one reached covers anything before the end. That holds as long as
    /// the leaf is not split and moves nothing to a neighbour, both of which are counted. Any other
    /// change only makes the range grow.
    pub(crate) covers_end: bool,
}

impl PrefetchBeside {
    pub(crate) fn new(direction: Direction, leaves: usize, end: Option<&[u8]>) -> Self {
        PrefetchBeside {
            direction,
            leaves,
            end: end.map(|end| cut(end).0),
            covers_end: false,
        }
    }
}

impl AtParent for PrefetchBeside {
    #[inline]
    fn visit(&mut self, parent: &Node, seen: Seen, index: usize) {
        let edge = match self.direction {
            Direction::Forward => parent.count(),
            Direction::Backward => 0,
        };
        let last = self.end.map_or(edge, |end| parent.route(end));
        let there = match self.direction {
            Direction::Forward => last.saturating_sub(index),
            Direction::Backward => index.saturating_sub(last),
        };
        // At the parent's edge the end may lie in another parent's leaves. Otherwise a separator
        // lies between the end and the next leaf, if the separators read here are those by which
        // the leaf was chosen. The parent's version was validated after the leaf's was taken, so it
        // must still be the same.
        self.covers_end = last != edge
            && there == 0
            && (parent.is_still(seen) || is_broken("index: validating where a range ends"));
        self.leaves = self.leaves.min(there);
        for distance in 1..=self.leaves {
            Node::prefetch(parent.child(match self.direction {
                Direction::Forward => index + distance,
                Direction::Backward => index - distance,
            }));
        }
    }
}

/// The leaf of a layer that is the goal, and its clean version at a moment when it was the goal.
/// `None` if the layer is gone: then the caller starts at the first layer again.
#[inline(always)]
pub(crate) fn reach_leaf(root: &Node, goal: Goal) -> Option<(&Node, Seen)> {
    reach_leaf_by(root, goal, &mut PassBy)
}

/// The same, with something to do at the leaf's parent.
#[inline(always)]
pub(crate) fn reach_leaf_by<'a>(
    root: &'a Node,
    goal: Goal,
    at_parent: &mut impl AtParent,
) -> Option<(&'a Node, Seen)> {
    'layer: loop {
        let mut node = root;
        let mut seen = node.version.stable();
        if is_deleted(seen) {
            return None;
        }
        while is_inner(seen) {
            let index = goal.index_in(node);
            let address = node.child(index);
            let still = node.is_still(seen);
            if still {
                Node::prefetch(address);
                // SAFETY: read under a validated version in the pinned epoch (`Tree::new`).
                let child = unsafe { Node::at(address) }.expect("an inner node has children");
                let child_seen = child.version.stable();
                if node.is_still(seen) {
                    if is_deleted(child_seen) {
                        continue 'layer;
                    }
                    if !is_inner(child_seen) {
                        at_parent.visit(node, seen, index);
                    }
                    node = child;
                    seen = child_seen;
                    continue;
                }
            }
            let now = node.version.stable();
            if !same_range(seen, now) {
                continue 'layer;
            }
            seen = now;
        }
        return Some((node, seen));
    }
}

/// What a leaf has for the rest of a key.
pub(crate) enum Found<'a> {
    Nothing,
    Value(u64),
    /// The root of the layer that holds all longer keys of the slice.
    Layer(&'a Node),
}

/// Looks for the rest of a key in a leaf. `None` if the leaf was split or deleted meanwhile. `seen`
/// follows harmless changes.
#[inline]
pub(crate) fn look_up<'a>(leaf: &'a Node, seen: &mut Seen, rest: &[u8]) -> Option<Found<'a>> {
    let (slice, class) = cut(rest);
    loop {
        let found = if class < LONGER {
            let found = match leaf.find(leaf.permutation(), slice, class) {
                None => Found::Nothing,
                Some(value) => Found::Value(value),
            };
            leaf.is_still(*seen).then_some(found)
        } else {
            look_up_longer(leaf, *seen, slice, &rest[SLICE_BYTES..])
        };
        if found.is_some() {
            return found;
        }
        let now = leaf.version.stable();
        if !same_range(*seen, now) {
            return None;
        }
        *seen = now;
    }
}

/// The leaf changed while it was read.
pub(crate) struct Changed;

/// The root of the layer for keys that continue after the slice, if the leaf has one. `None` is
/// not validated: the caller then latches the leaf, and nothing says that there still is no layer.
#[inline(always)]
pub(crate) fn look_for_layer(
    leaf: &Node,
    seen: Seen,
    slice: u64,
) -> Result<Option<&Node>, Changed> {
    let permutation = leaf.permutation();
    let kinds = leaf.kinds();
    let layer =
        (leaf.longer(permutation, kinds, slice).first()).filter(|first| kinds.of(*first) != SUFFIX);
    let Some(slot) = layer else {
        return Ok(None);
    };
    let address = leaf.value(slot);
    if !leaf.is_still(seen) {
        return Err(Changed);
    }
    // SAFETY: read under a validated version in the pinned epoch (`Tree::new`).
    Ok(unsafe { Node::at(address) })
}

/// Looks for a key that continues after a slice. `None` if the leaf changed.
///
/// The slots that have such entries are read first, and validated before the bag's address is
/// followed. From then on, as long as the version stands, these slots are the entries they were.
/// The version is validated once more after all comparisons. Between two of them a slot may have
/// been reused for another key, or all such entries may have moved to a layer. Then the comparisons
/// count for nothing.
#[inline]
fn look_up_longer<'a>(leaf: &'a Node, seen: Seen, slice: u64, suffix: &[u8]) -> Option<Found<'a>> {
    let permutation = leaf.permutation();
    let kinds = leaf.kinds();
    let slots = leaf.longer(permutation, kinds, slice);
    let Some(first) = slots.first() else {
        return leaf.is_still(seen).then_some(Found::Nothing);
    };
    if kinds.of(first) != SUFFIX {
        let address = leaf.value(first);
        if !leaf.is_still(seen) {
            return None;
        }
        // SAFETY: read under a validated version in the pinned epoch (`Tree::new`).
        let root = unsafe { Node::at(address) }.expect("a layer has a root");
        return Some(Found::Layer(root));
    }
    let cell = leaf.bag();
    // Prefetches the suffix together with the header that says where it is, not after it.
    Bag::prefetch(cell);
    if !leaf.is_still(seen) && !is_broken("index: validating before a bag is followed") {
        return None;
    }
    // SAFETY: read under a validated version in the pinned epoch (`Tree::new`).
    let bag = unsafe { Bag::at(cell) }?;
    let mut found = Found::Nothing;
    for slot in slots {
        // SAFETY: the word is the bag's, which the pinned epoch keeps.
        if unsafe { bag.suffix(bag.word(slot)) } == suffix {
            found = Found::Value(leaf.value(slot));
            break;
        }
    }
    let is_still = leaf.is_still(seen) || is_broken("index: validating behind a suffix");
    is_still.then_some(found)
}

impl<'a, M: Memory> Tree<'a, M> {
    /// The value of a key.
    #[inline]
    pub fn get(&self, key: &[u8]) -> Option<u64> {
        'tree: loop {
            let mut root = self.first_layer()?;
            let mut rest = key;
            'layer: loop {
                let goal = Goal::Slice(cut(rest).0);
                let Some((leaf, mut seen)) = reach_leaf(root, goal) else {
                    continue 'tree;
                };
                match look_up(leaf, &mut seen, rest) {
                    None => continue 'layer,
                    Some(Found::Nothing) => return None,
                    Some(Found::Value(value)) => return Some(value),
                    Some(Found::Layer(layer)) => {
                        Node::prefetch(layer.address());
                        root = layer;
                        rest = &rest[SLICE_BYTES..];
                    }
                }
            }
        }
    }
}
