//! How large a tree is, measured while others change it.
//!
//! A [`Measure`] goes from leaf to leaf and knows its place by slices, not by addresses. Between
//! two steps its caller need not be pinned. So a walk through a large tree does not delay the reuse
//! of memory.
//!
//! - The walk descends to each leaf from its layer's root. Separators on the path say where the
//!   next leaf begins. The bytes of an inner node are counted on the path to the first leaf below
//!   it.
//! - The layers that a leaf leads to are walked before the next leaf, depth first. A layer that is
//!   gone by then has no bytes.
//! - What is read of a node counts, and is followed, only if the node's version stands. Otherwise
//!   it is read again. That ends: each time another thread has progressed.
//! - A walk may begin in the middle ([`Tree::walks_apart`]), so that parts stand for a large tree.
//! - Nodes that split, merge or move entries meanwhile may be counted twice or not at all. In a
//!   tree that no thread changes, each node counts once.

use crate::bag::Bag;
use crate::descend::{Goal, look_for_layer, reach_leaf};
use crate::memory::Memory;
use crate::node::{NODE_BYTES, Node};
use crate::slice::LAYER;
use crate::tree::Tree;
use crate::version::{Seen, is_deleted, is_inner, same_range};

/// How far the walk is in a layer.
struct Stand {
    /// The slice whose keys the layer continues, in the layer above it. It means nothing for the
    /// first layer.
    slice: u64,
    /// Where the next leaf begins; `None` after the last one.
    next: Option<u64>,
    /// Slices of the layers that the last leaf leads to, not yet walked.
    layers: Vec<u64>,
}

impl Stand {
    fn before(slice: u64) -> Stand {
        Stand {
            slice,
            next: Some(0),
            layers: Vec::new(),
        }
    }
}

/// A walk through a tree that adds up its bytes. See [`Tree::measure`].
pub struct Measure {
    bytes: u64,
    entries: u64,
    stands: Vec<Stand>,
}

impl Default for Measure {
    fn default() -> Self {
        Measure {
            bytes: 0,
            entries: 0,
            stands: vec![Stand::before(0)],
        }
    }
}

impl Measure {
    /// A walk that begins at the first leaf.
    pub fn new() -> Measure {
        Measure::default()
    }

    /// Bytes of the nodes and bags met so far, as they were allocated.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Entries of the leaves met so far.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// A walk that begins in the layer below these slices, and ends with the layer.
    fn within(slices: &[u64], begin: u64) -> Measure {
        let mut slice = 0;
        let mut stands = Vec::with_capacity(slices.len() + 1);
        for below in slices {
            stands.push(Stand {
                slice,
                next: None,
                layers: Vec::new(),
            });
            slice = *below;
        }
        stands.push(Stand {
            next: Some(begin),
            ..Stand::before(slice)
        });
        Measure {
            stands,
            ..Measure::default()
        }
    }
}

/// A leaf, and what the descent learned.
struct Reached<'a> {
    leaf: &'a Node,
    seen: Seen,
    /// Where the next leaf begins.
    high: Option<u64>,
    /// Inner nodes whose first leaf it is.
    begun: u64,
}

impl<M: Memory> Tree<'_, M> {
    /// Continues a walk for so many leaves. `false` if it is at the end. The tree may be changed
    /// meanwhile, and between two calls.
    pub fn measure(&self, measure: &mut Measure, leaves: usize) -> bool {
        let mut roots = Vec::new();
        for _ in 0..leaves {
            if !self.measure_leaf(measure, &mut roots) {
                return false;
            }
        }
        true
    }

    /// Walks that begin apart from each other, at most so many, in the uppermost layer that has
    /// more than a leaf. Of a leaf's layers only one is considered.
    pub fn walks_apart(&self, most: usize) -> Vec<Measure> {
        let mut slices = Vec::new();
        let mut root = self.first_layer();
        while let Some(layer) = root {
            let begins = begins_below(layer, most);
            if !begins.is_empty() {
                let within = |begin| Measure::within(&slices, begin);
                return begins.into_iter().map(within).collect();
            }
            let Some(reached) = reach_from(layer, 0) else {
                break;
            };
            let mut layers = Vec::new();
            look_at_leaf(&reached, &mut layers);
            let Some(slice) = layers.get(layers.len() / 2) else {
                break;
            };
            root = layer_behind(layer, *slice);
            slices.push(*slice);
        }
        vec![Measure::new()]
    }

    /// Continues by a leaf or to the next layer. `roots` are the roots of the first of the walk's
    /// layers, as far as they are known.
    fn measure_leaf<'t>(&'t self, measure: &mut Measure, roots: &mut Vec<&'t Node>) -> bool {
        let Measure {
            bytes,
            entries,
            stands,
        } = measure;
        if !self.find_roots(stands, roots) {
            return !stands.is_empty();
        }
        let (Some(stand), Some(root)) = (stands.last_mut(), roots.last().copied()) else {
            return false;
        };
        if let Some(slice) = stand.layers.pop() {
            stands.push(Stand::before(slice));
            return true;
        }
        let Some(begin) = stand.next else {
            stands.pop();
            roots.pop();
            return !stands.is_empty();
        };
        match reach_from(root, begin) {
            Some(reached) => {
                if let Some((leaf_bytes, slots)) = look_at_leaf(&reached, &mut stand.layers) {
                    *bytes += leaf_bytes + reached.begun * NODE_BYTES as u64;
                    *entries += (slots - stand.layers.len()) as u64;
                    stand.next = reached.high;
                }
            }
            // The layer is gone, or another node is its root by now.
            None => roots.clear(),
        }
        true
    }

    /// Finds the roots that are not known. `false` if a layer is gone: then the walk continues in
    /// the layer above it.
    fn find_roots<'t>(&'t self, stands: &mut Vec<Stand>, roots: &mut Vec<&'t Node>) -> bool {
        while roots.len() < stands.len() {
            let root = match roots.last() {
                None => self.first_layer(),
                Some(above) => layer_behind(above, stands[roots.len()].slice),
            };
            let Some(root) = root else {
                stands.truncate(roots.len());
                return false;
            };
            roots.push(root);
        }
        true
    }
}

/// The root of the layer below a slice of the layer above, if it is there.
fn layer_behind(above: &Node, slice: u64) -> Option<&Node> {
    loop {
        let (leaf, seen) = reach_leaf(above, Goal::Slice(slice))?;
        if let Ok(layer) = look_for_layer(leaf, seen, slice)
            && (layer.is_some() || leaf.is_still(seen))
        {
            return layer;
        }
    }
}

/// Where leaves of a layer begin, evenly apart: separators of its upper inner nodes.
fn begins_below(root: &Node, most: usize) -> Vec<u64> {
    let mut begins = Vec::new();
    let mut level = vec![root];
    while !level.is_empty() && begins.len() < most {
        let mut below = Vec::new();
        for node in level {
            if let Some((separators, children)) = look_at_inner(node) {
                begins.extend(separators);
                below.extend(children);
            }
        }
        level = below;
    }
    begins.sort_unstable();
    let step = begins.len().div_ceil(most.max(1)).max(1);
    begins.into_iter().step_by(step).collect()
}

/// The separators and the children of an inner node. `None` for a leaf, or for a node that is gone.
fn look_at_inner(node: &Node) -> Option<(Vec<u64>, Vec<&Node>)> {
    loop {
        let seen = node.version.stable();
        if !is_inner(seen) || is_deleted(seen) {
            return None;
        }
        let count = node.count();
        let separators = (0..count).map(|index| node.separator(index)).collect();
        let addresses: Vec<u64> = (0..=count).map(|index| node.child(index)).collect();
        if node.is_still(seen) {
            let children = addresses.into_iter().filter_map(|address| {
                // SAFETY: read under a validated version in the pinned epoch (`Tree::new`).
                unsafe { Node::at(address) }
            });
            return Some((separators, children.collect()));
        }
    }
}

/// The leaf that covers a slice. `None` if the layer is gone. As [`reach_leaf`], but it reads the
/// separators, too.
fn reach_from(root: &Node, slice: u64) -> Option<Reached<'_>> {
    'layer: loop {
        let mut node = root;
        let mut seen = node.version.stable();
        if is_deleted(seen) {
            return None;
        }
        let (mut low, mut high, mut begun) = (0, None, 0);
        while is_inner(seen) {
            let count = node.count();
            let index = node.route(slice).min(count);
            let left = (index > 0).then(|| node.separator(index - 1));
            let right = (index < count).then(|| node.separator(index));
            let address = node.child(index);
            if node.is_still(seen) {
                // SAFETY: read under a validated version in the pinned epoch (`Tree::new`).
                let child = unsafe { Node::at(address) }.expect("an inner node has children");
                let child_seen = child.version.stable();
                if node.is_still(seen) {
                    if is_deleted(child_seen) {
                        continue 'layer;
                    }
                    begun += u64::from(low == slice);
                    low = left.unwrap_or(low);
                    high = right.or(high);
                    (node, seen) = (child, child_seen);
                    continue;
                }
            }
            let now = node.version.stable();
            if !same_range(seen, now) {
                continue 'layer;
            }
            seen = now;
        }
        return Some(Reached {
            leaf: node,
            seen,
            high,
            begun,
        });
    }
}

/// The bytes of a leaf and its bag, the slots in use, and, in `layers`, the slices below which it
/// leads to layers. `None` if it covers another range by now.
fn look_at_leaf(reached: &Reached<'_>, layers: &mut Vec<u64>) -> Option<(u64, usize)> {
    let leaf = reached.leaf;
    let mut seen = reached.seen;
    loop {
        layers.clear();
        let permutation = leaf.permutation();
        let kinds = leaf.kinds();
        let slots = (0..permutation.count()).map(|position| permutation.slot(position));
        layers.extend(
            slots
                .filter(|slot| kinds.of(*slot) == LAYER)
                .map(|slot| leaf.key(slot)),
        );
        let cell = leaf.bag();
        if leaf.is_still(seen) {
            // SAFETY: read under a validated version in the pinned epoch (`Tree::new`).
            let bag = unsafe { Bag::at(cell) };
            let bytes = leaf.layout().size() as u64 + bag.map_or(0, |bag| bag.bytes() as u64);
            return Some((bytes, permutation.count()));
        }
        let now = leaf.version.stable();
        if !same_range(seen, now) {
            layers.clear();
            return None;
        }
        seen = now;
    }
}
