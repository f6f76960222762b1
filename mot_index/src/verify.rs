//! Checking the structure of a tree that no thread is changing.
//!
//! If a thread does change it, a check may or may not report that something is wrong. But it
//! follows no address that it has not validated. What was read of a node is believed, and followed,
//! only if the node's version stands.

use crate::bag::Bag;
use crate::memory::Memory;
use crate::node::{INNER_KEYS, Node};
use crate::slice::{LAYER, LONGER, SUFFIX, SUFFIXES_OF_A_SLICE, class_of_kind};
use crate::tree::Tree;
use crate::version::{Seen, is_deleted, is_inner};
use core::{array, fmt};

/// What a tree consists of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeStats {
    /// Keys with a value.
    pub entries: u64,
    /// Leaves of all layers.
    pub leaves: u64,
    /// Narrow leaves among them, which take [`crate::NARROW_LEAF_BYTES`] instead of
    /// [`crate::NODE_BYTES`].
    pub narrow_leaves: u64,
    /// Inner nodes of all layers.
    pub inner_nodes: u64,
    /// Layers, the first included.
    pub layers: u64,
    /// Bytes of all nodes and bags, as they were allocated.
    pub bytes_used: u64,
    /// Bytes of the bags among them.
    pub bag_bytes_used: u64,
}

/// What is wrong with a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Corruption {
    /// The address of the node concerned.
    pub node: u64,
    /// What is wrong with it.
    pub what: &'static str,
}

impl fmt::Display for Corruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "index node {:#x}: {}", self.node, self.what)
    }
}

impl core::error::Error for Corruption {}

/// Why a check ended early.
enum Halt {
    Corrupt(Corruption),
    Asked,
}

impl From<Corruption> for Halt {
    fn from(corruption: Corruption) -> Self {
        Halt::Corrupt(corruption)
    }
}

/// Nodes checked between two calls that ask whether to continue.
const NODES_PER_QUESTION: u64 = 256;

/// The slices that a node covers: from the first on, up to but without the second.
#[derive(Clone, Copy)]
struct Range {
    low: Option<u64>,
    high: Option<u64>,
}

impl Range {
    fn holds(self, slice: u64) -> bool {
        self.low.is_none_or(|low| low <= slice) && self.high.is_none_or(|high| slice < high)
    }
}

/// The state of one verification.
struct Verifier<'a> {
    may_continue: &'a mut dyn FnMut() -> bool,
    stats: TreeStats,
    /// Roots of layers found and not yet checked.
    roots: Vec<u64>,
    /// The leaves of the layer being checked, in order, and on which level they are.
    leaves: Vec<u64>,
    leaf_level: Option<usize>,
}

impl<M: Memory> Tree<'_, M> {
    /// Checks the whole structure: order, key ranges, links between leaves, permutations, suffixes,
    /// equal depth, no empty nodes, no latch left behind.
    ///
    /// Only a tree that no thread changes during the call can be checked: otherwise this may report
    /// changes in progress as corruption. The caller need be pinned only if another thread may
    /// change the tree.
    pub fn verify(&self) -> Result<TreeStats, Corruption> {
        let outcome = self.verify_while(&mut || true)?;
        Ok(outcome.expect("nobody asked to stop"))
    }

    /// [`Tree::verify`] that asks every few nodes whether to continue. `None`: the answer was no.
    pub fn verify_while(
        &self,
        may_continue: &mut dyn FnMut() -> bool,
    ) -> Result<Option<TreeStats>, Corruption> {
        let mut verifier = Verifier {
            may_continue,
            stats: TreeStats::default(),
            roots: Vec::new(),
            leaves: Vec::new(),
            leaf_level: None,
        };
        verifier.roots.extend(self.first_layer().map(Node::address));
        while let Some(root) = verifier.roots.pop() {
            match verifier.check_layer(root) {
                Ok(()) => {}
                Err(Halt::Asked) => return Ok(None),
                Err(Halt::Corrupt(corruption)) => return Err(corruption),
            }
        }
        Ok(Some(verifier.stats))
    }
}

fn check(condition: bool, node: u64, what: &'static str) -> Result<(), Corruption> {
    if condition {
        Ok(())
    } else {
        Err(Corruption { node, what })
    }
}

/// Whether a node is as it was when the reading of it began. Before this check nothing in the node
/// is an address.
fn check_still(node: &Node, seen: Seen) -> Result<(), Corruption> {
    check(
        node.version.is_still(seen),
        node.address(),
        "is being changed",
    )
}

/// The node at an address that was read under a validated version, or is the root's.
fn node_at<'n>(address: u64, holder: u64) -> Result<&'n Node, Corruption> {
    // SAFETY: addresses in nodes of a tree are those of nodes. Nodes retired meanwhile stay: a
    // caller that may meet such nodes is pinned.
    let node = unsafe { Node::at(address) };
    node.ok_or(Corruption {
        node: holder,
        what: "has no address where a node should be",
    })
}

impl Verifier<'_> {
    fn check_layer(&mut self, root: u64) -> Result<(), Halt> {
        self.stats.layers += 1;
        self.leaves.clear();
        self.leaf_level = None;
        let node = node_at(root, root)?;
        let may_become_inner = !node.version.is_narrow();
        check(may_become_inner, root, "is a layer's root but narrow")?;
        self.check_node(
            node,
            Range {
                low: None,
                high: None,
            },
            0,
        )?;
        let mut previous = 0;
        for (index, &address) in self.leaves.iter().enumerate() {
            if (index as u64).is_multiple_of(NODES_PER_QUESTION) && !(self.may_continue)() {
                return Err(Halt::Asked);
            }
            let leaf = node_at(address, address)?;
            check(
                leaf.previous() == previous,
                address,
                "has a wrong left neighbour",
            )?;
            let next = self.leaves.get(index + 1).copied().unwrap_or(0);
            check(leaf.next() == next, address, "has a wrong right neighbour")?;
            previous = address;
        }
        Ok(())
    }

    fn check_node(&mut self, node: &Node, range: Range, level: usize) -> Result<(), Halt> {
        let nodes = self.stats.leaves + self.stats.inner_nodes;
        if nodes.is_multiple_of(NODES_PER_QUESTION) && !(self.may_continue)() {
            return Err(Halt::Asked);
        }
        let address = node.address();
        check(!node.version.is_owned(), address, "is latched")?;
        let seen = node.version.stable();
        check(!is_deleted(seen), address, "is deleted but reachable")?;
        self.stats.bytes_used += node.layout().size() as u64;
        if !is_inner(seen) {
            let depth = *self.leaf_level.get_or_insert(level);
            check(
                depth == level,
                address,
                "is a leaf at another depth than others",
            )?;
            let outcome = self.check_leaf(node, seen, range);
            check_still(node, seen)?;
            return Ok(outcome?);
        }
        self.stats.inner_nodes += 1;
        let count = node.count();
        let separators: [u64; INNER_KEYS] = array::from_fn(|index| node.separator(index));
        let children: [u64; INNER_KEYS + 1] = array::from_fn(|index| node.child(index));
        check_still(node, seen)?;
        let mut low = range.low;
        for (index, child) in children.into_iter().take(count + 1).enumerate() {
            let high = separators[..count].get(index).copied().or(range.high);
            if index < count {
                let ascending = low.is_none_or(|low| Some(low) < high);
                check(ascending, address, "has separators out of order")?;
                check(
                    high.is_some_and(|high| range.holds(high)),
                    address,
                    "has a separator it does not cover",
                )?;
            }
            let child = node_at(child, address)?;
            self.check_node(child, Range { low, high }, level + 1)?;
            low = high;
        }
        Ok(())
    }

    /// The result counts only if the leaf is still as it was seen.
    fn check_leaf(&mut self, leaf: &Node, seen: Seen, range: Range) -> Result<(), Corruption> {
        let address = leaf.address();
        self.stats.leaves += 1;
        self.stats.narrow_leaves += u64::from(leaf.version.is_narrow());
        self.leaves.push(address);
        let permutation = leaf.permutation();
        check(
            permutation.is_valid(),
            address,
            "has an invalid permutation",
        )?;
        check(permutation.count() > 0, address, "is an empty leaf")?;
        let cell = leaf.bag();
        check_still(leaf, seen)?;
        // SAFETY: read under a validated version, of a tree that no thread changes or in a pinned
        // epoch.
        let bag = unsafe { Bag::at(cell) };
        if let Some(bag) = bag {
            self.stats.bytes_used += bag.bytes() as u64;
            self.stats.bag_bytes_used += bag.bytes() as u64;
            check(bag.is_sound(), address, "has an overfull bag")?;
        }
        let mut before: Option<(u64, u64, Option<&[u8]>)> = None;
        let mut suffix_bytes = 0;
        let mut suffixes_of_slice = 0;
        for position in 0..permutation.count() {
            let slot = permutation.slot(position);
            let (slice, kind) = (leaf.key(slot), leaf.kinds().of(slot));
            check(kind <= LAYER, address, "has an entry of unknown kind")?;
            check(range.holds(slice), address, "has a key it does not cover")?;
            let suffix = self.check_suffix(bag, slot, kind, address)?;
            suffix_bytes += suffix.map_or(0, |suffix| Bag::stored_bytes(suffix.len()));
            let order = (slice, class_of_kind(kind), suffix);
            check(before < Some(order), address, "has entries out of order")?;
            let goes_on = before.is_some_and(|before| (before.0, before.1) == (slice, LONGER));
            suffixes_of_slice = if goes_on { suffixes_of_slice + 1 } else { 1 };
            check(
                !goes_on || suffix.is_some() && before.is_some_and(|before| before.2.is_some()),
                address,
                "has a layer and other entries for what goes on behind a slice",
            )?;
            check(
                suffixes_of_slice <= SUFFIXES_OF_A_SLICE,
                address,
                "has too many suffixes of a slice",
            )?;
            before = Some(order);
            check(
                kind >= SUFFIX || padding(slice, kind) == 0,
                address,
                "has bytes behind a key's end",
            )?;
            if kind == LAYER {
                check(leaf.value(slot) != 0, address, "has a layer without a root")?;
                self.roots.push(leaf.value(slot));
            } else {
                self.stats.entries += 1;
            }
        }
        check(
            bag.is_none_or(|bag| suffix_bytes <= bag.used_bytes()),
            address,
            "has suffixes in one place",
        )?;
        Ok(())
    }

    /// The suffix of an entry, if it is of that kind.
    fn check_suffix<'b>(
        &self,
        bag: Option<Bag>,
        slot: usize,
        kind: u64,
        leaf: u64,
    ) -> Result<Option<&'b [u8]>, Corruption> {
        if kind != SUFFIX {
            return Ok(None);
        }
        let Some(bag) = bag else {
            return Err(Corruption {
                node: leaf,
                what: "has a suffix but no bag",
            });
        };
        let word = bag.word(slot);
        check(bag.holds(word), leaf, "has a suffix outside its bag")?;
        // SAFETY: a word of this bag, which stays as long as its leaf is checked.
        Ok(Some(unsafe { bag.suffix(word) }))
    }
}

/// The bits of a slice after the end of a key that has so many bytes in it.
fn padding(slice: u64, bytes: u64) -> u64 {
    match 64 - 8 * bytes as u32 {
        64 => slice,
        unused => slice & ((1 << unused) - 1),
    }
}
