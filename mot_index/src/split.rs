//! Making room in a full leaf.
//!
//! Before a leaf is split, it moves entries to a layer if one slice has too many of them
//! (`layer.rs`). If it would be halved, it moves entries to a neighbour (`redistribute.rs`).
//!
//! The writer owns the full leaf. It latches ancestors from below until one has room or is the root
//! of the layer, and allocates every node it will need. Only then does it make them dirty and
//! rearrange them: from there on it neither waits nor fails. A full root hands its content to a new
//! node and becomes the inner node above it, so that pointers to the layer stay right.
//!
//! `cut.rs` chooses where a leaf is cut.

use crate::bag::{Bag, with_reserve};
use crate::cut::{Cut, Run, choose_cut};
use crate::memory::{Memory, OutOfMemory};
use crate::node::{INNER_KEYS, Kinds, NO_SLOT, Node, Place, Window};
use crate::permutation::Permutation;
use crate::slice::{SUFFIX, cut as cut_key};
use crate::suffixes::{copy_suffixes, owned_suffix, suffix_bytes};
use crate::sync::Wait;
use crate::tree::Tree;
use crate::update::{Site, place_in_owned};
use crate::version::{CHANGE, DIRTY, LATCHED, SPLIT, is_deleted, is_inner};

/// Levels of one layer. A split in the middle leaves at least eight children to a node, and a run
/// leaves full nodes. At five children a node, so many levels would need 5^24 entries: no memory
/// has room for them.
const MAX_HEIGHT: usize = 24;

/// Latched nodes of one layer, each the parent of the one before.
pub(crate) struct Chain<'a> {
    nodes: [Option<&'a Node>; MAX_HEIGHT],
    len: usize,
}

impl<'a> Chain<'a> {
    pub(crate) fn new() -> Self {
        Chain {
            nodes: [None; MAX_HEIGHT],
            len: 0,
        }
    }

    pub(crate) fn push(&mut self, node: &'a Node) {
        self.nodes[self.len] = Some(node);
        self.len += 1;
    }

    pub(crate) fn pop(&mut self) -> Option<&'a Node> {
        self.len = self.len.checked_sub(1)?;
        self.nodes[self.len].take()
    }

    pub(crate) fn top(&self) -> &'a Node {
        self.nodes[self.len - 1].expect("the chain is not empty")
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &'a Node> + '_ {
        self.nodes[..self.len].iter().flatten().copied()
    }
}

/// The memory that a split needs. All of it is allocated before anything changes.
struct Supplies<'a> {
    /// The leaf right of the cut.
    right: &'a Node,
    /// For the full nodes above.
    nodes: Chain<'a>,
    right_bag: Option<Bag>,
    left_bag: Option<Bag>,
}

impl<'a, M: Memory> Tree<'a, M> {
    /// If the leaf is full, moves some of its entries to a layer or to a neighbour, or else splits
    /// it. Returns the leaf that then covers the slice of `rest`, latched and with room, and the
    /// position in it. That leaf may be narrow and unable to hold the slice. On `Err` the latch has
    /// been released.
    #[inline]
    pub(crate) fn make_room(
        &self,
        site: Site<'a>,
        position: usize,
        rest: &[u8],
    ) -> Result<(Site<'a>, usize), OutOfMemory> {
        if site.leaf.permutation().is_full() {
            self.make_room_in_full(site, position, rest)
        } else {
            Ok((site, position))
        }
    }

    /// The same for a full leaf. It is a function of its own because most inserts have room.
    #[inline(never)]
    fn make_room_in_full(
        &self,
        site: Site<'a>,
        position: usize,
        rest: &[u8],
    ) -> Result<(Site<'a>, usize), OutOfMemory> {
        let leaf = site.leaf;
        match self.move_some(leaf) {
            Ok(false) => {}
            Ok(true) => {
                let place = place_in_owned(leaf, rest);
                return Ok((site, absent_at(place)));
            }
            Err(full) => {
                leaf.version.unlatch(0);
                return Err(full);
            }
        }
        let slice = cut_key(rest).0;
        let cut = choose_cut(leaf, position, slice);
        if cut.run == Run::None {
            // These leaves may take some entries. Their free room is in the first line.
            Node::prefetch_head(leaf.next());
            Node::prefetch_head(leaf.previous());
        }
        let mut chain = Chain::new();
        chain.push(leaf);
        if !leaf.is(site.root) {
            let parent = self.latch_parent(site.root, slice, leaf);
            if cut.run == Run::None
                && let Some(leaf) = self.redistribute(leaf, parent, slice)
            {
                let position = absent_at(place_in_owned(leaf, rest));
                return Ok((Site { leaf, ..site }, position));
            }
            chain.push(parent);
        }
        while is_full(chain.top()) && !chain.top().is(site.root) {
            chain.push(self.latch_parent(site.root, slice, chain.top()));
        }
        let supplies = match self.supply(&chain, site.root, leaf, &cut, slice) {
            Ok(supplies) => supplies,
            Err(full) => {
                for node in chain.iter() {
                    node.version.unlatch(0);
                }
                return Err(full);
            }
        };
        let leaf = self.split(chain, supplies, &cut, site.root, slice);
        let site = Site { leaf, ..site };
        let position = absent_at(place_in_owned(leaf, rest));
        Ok((site, position))
    }

    /// Latches the parent of a node that the caller owns and that is not the root of the layer.
    /// `slice` is a slice that the node covers.
    pub(crate) fn latch_parent(&self, root: &'a Node, slice: u64, child: &Node) -> &'a Node {
        let mut wait = Wait::new();
        let mut again = false;
        'layer: loop {
            if again {
                // Another writer rearranges the path.
                wait.once();
            }
            again = true;
            let mut node = root;
            let mut seen = node.version.stable();
            // The path to an owned node may be rearranged above it, but only for a moment.
            while is_inner(seen) && !is_deleted(seen) {
                let address = node.child(node.route(slice));
                if !node.is_still(seen) {
                    continue 'layer;
                }
                if address == child.address() {
                    node.version.latch();
                    let now = node.version.owned();
                    if is_inner(now)
                        && !is_deleted(now)
                        && node.child(node.route(slice)) == child.address()
                    {
                        return node;
                    }
                    node.version.unlatch(0);
                    continue 'layer;
                }
                // SAFETY: read under a validated version in the pinned epoch (`Tree::new`).
                node = unsafe { Node::at(address) }.expect("an inner node has children");
                seen = node.version.stable();
            }
        }
    }

    /// Allocates what the split of a chain needs.
    fn supply(
        &self,
        chain: &Chain<'a>,
        root: &Node,
        leaf: &Node,
        cut: &Cut,
        slice: u64,
    ) -> Result<Supplies<'a>, OutOfMemory> {
        let mut supplies = Supplies {
            right: self.create_leaf(window_of_right(leaf, cut, slice), LATCHED | DIRTY)?,
            nodes: Chain::new(),
            right_bag: None,
            left_bag: None,
        };
        let full_above = chain.iter().filter(|node| is_full(node)).count() - 1;
        let below_root = usize::from(is_full(chain.top()) && chain.top().is(root));
        let permutation = leaf.permutation();
        let (left, right) = (cut.left, permutation.count() - cut.left);
        let right_bytes = suffix_bytes(leaf, permutation, left..left + right);
        // The leaf that a run leaves behind at the edge is complete. A run in the middle puts the
        // new entry into the half in which the run continues.
        let reserve = |bytes: usize, entries: usize, run: Run| {
            if cut.run == run && cut.left == 0 {
                bytes
            } else {
                with_reserve(bytes, entries)
            }
        };
        let result = (|| {
            for _ in 0..full_above + below_root {
                supplies.nodes.push(self.create_node(LATCHED | DIRTY)?);
            }
            if right_bytes > 0 {
                let bytes = reserve(right_bytes, right, Run::Down);
                supplies.right_bag = Some(Bag::create(self.memory, bytes)?);
                // The left half's bag is half garbage now. If memory is full, that bag can stay.
                let left_bytes = suffix_bytes(leaf, permutation, 0..left);
                if left_bytes > 0 {
                    let bytes = reserve(left_bytes, left, Run::Up);
                    supplies.left_bag = Bag::create(self.memory, bytes).ok();
                }
            }
            Ok(())
        })();
        if let Err(full) = result {
            self.free_node(supplies.right);
            while let Some(node) = supplies.nodes.pop() {
                self.free_node(node);
            }
            if let Some(bag) = supplies.right_bag {
                self.free_bag(bag);
            }
            return Err(full);
        }
        Ok(supplies)
    }

    /// Splits the nodes of a chain, all latched, and all full except the last (which may be a full
    /// root). Returns the half of the leaf that covers the slice, latched and clean. Every other
    /// latch is released.
    fn split(
        &self,
        chain: Chain<'a>,
        mut supplies: Supplies<'a>,
        cut: &Cut,
        root: &'a Node,
        slice: u64,
    ) -> &'a Node {
        let mut next_node = || supplies.nodes.pop().expect("every node was supplied");
        for node in chain.iter() {
            node.version.make_dirty();
        }
        let mut path = Chain::new();
        for node in chain.iter() {
            if node.is(root) && is_full(node) {
                let below = next_node();
                below.take_content(node);
                node.become_inner(below.address());
                path.push(below);
            }
            path.push(node);
        }
        let mut nodes = path.iter();
        let left = nodes.next().expect("the chain begins with the leaf");
        let right = supplies.right;
        let old_bag = split_leaf(
            left,
            right,
            cut.left,
            supplies.left_bag.take(),
            supplies.right_bag.take(),
        );
        let mut separator = cut.separator;
        let mut child = right;
        let mut top = None;
        for parent in nodes {
            if parent.count() < INNER_KEYS {
                parent.insert_child(separator, child.address());
                top = Some(parent);
                break;
            }
            let new = next_node();
            separator = split_inner(parent, new, separator, child.address(), cut.run);
            // No other thread can reach the new node before its parent is clean again.
            new.version.unlatch(0);
            child = new;
        }
        debug_assert!(supplies.nodes.pop().is_none());
        let (target, other) = if slice >= cut.separator {
            (right, left)
        } else {
            (left, right)
        };
        target.version.make_clean(SPLIT);
        other.version.unlatch(SPLIT);
        for node in path.iter().skip(1) {
            // The last node only got one more child. If its role is new, its version says so.
            let grown = top.is_some_and(|top| node.is(top));
            node.version.unlatch(if grown { CHANGE } else { SPLIT });
        }
        self.retire_bag(old_bag);
        target
    }
}

/// The position of a key that is absent from an owned leaf.
fn absent_at(place: Place) -> usize {
    match place {
        Place::Before(position, _) => position,
        Place::At(..) => unreachable!("the key was absent under the latch"),
    }
}

fn is_full(node: &Node) -> bool {
    if is_inner(node.version.owned()) {
        node.count() == INNER_KEYS
    } else {
        node.permutation().is_full()
    }
}

/// The window of the new leaf right of a cut, if it is to be narrow, when a key of a slice is to
/// come. All entries of the full leaf count, because the next keys are as likely like the one half
/// as like the other.
fn window_of_right(leaf: &Node, cut: &Cut, slice: u64) -> Option<Window> {
    let is_all_of_it = cut.left == 0 && slice < cut.separator;
    leaf.window_with(if is_all_of_it { leaf.key(0) } else { slice })
}

/// Moves all entries from position `keep` on to a new leaf and links that in. Returns the cell of
/// the bag that the left leaf no longer uses. Both leaves are dirty.
fn split_leaf(
    left: &Node,
    right: &Node,
    keep: usize,
    left_bag: Option<Bag>,
    mut right_bag: Option<Bag>,
) -> u64 {
    let permutation = left.permutation();
    let kinds = left.kinds();
    let moved = permutation.count() - keep;
    let mut right_kinds = right.kinds();
    let mut right_last = NO_SLOT;
    right.take_entries(left, (0..moved).map(|to| (permutation.slot(keep + to), to)));
    for to in 0..moved {
        let slot = permutation.slot(keep + to);
        right_kinds = right_kinds.with(to, kinds.of(slot));
        if kinds.of(slot) == SUFFIX {
            let bag = right_bag.as_mut();
            let bag = bag.expect("a bag was supplied for suffixes that move");
            bag.put(to, owned_suffix(left, slot));
        }
        if slot == kinds.last() {
            right_last = to;
        }
    }
    right.set_kinds(right_kinds.with_last(right_last));
    right.set_bag(right_bag.map_or(0, Bag::cell));
    right.set_permutation(Permutation::first(moved));
    let old_bag = replace_left_bag(left, permutation.truncate(keep), kinds, moved, left_bag);
    left.set_permutation(permutation.truncate(keep));
    if right_last != NO_SLOT {
        left.set_kinds(kinds.with_last(NO_SLOT));
    }
    // The pair (next, next's previous) belongs to the latch of the left of the two.
    let next = left.next();
    right.set_next(next);
    right.set_previous(left.address());
    // SAFETY: `left`, owned by us, keeps its neighbour from being unlinked.
    if let Some(next) = unsafe { Node::at(next) } {
        next.set_previous(right.address());
    }
    left.set_next(right.address());
    old_bag
}

/// Replaces the left half's bag with one without the suffixes that moved. Returns the cell of the
/// old bag, or 0 if that stays.
fn replace_left_bag(
    left: &Node,
    kept: Permutation,
    kinds: Kinds,
    moved: usize,
    mut left_bag: Option<Bag>,
) -> u64 {
    let old = left.bag();
    let keeps_suffix = kinds.may_have_suffixes()
        && (0..kept.count()).any(|position| kinds.of(kept.slot(position)) == SUFFIX);
    if moved == 0 || (left_bag.is_none() && keeps_suffix) {
        return 0;
    }
    if let Some(bag) = &mut left_bag {
        copy_suffixes(left, kept, 0..kept.count(), bag);
    }
    left.set_bag(left_bag.map_or(0, Bag::cell));
    old
}

/// Splits a full inner node into which a child is to go. Returns the separator of the two halves.
fn split_inner(left: &Node, right: &Node, separator: u64, child: u64, run: Run) -> u64 {
    let index = left.route(separator);
    // At the edge of a run the complete node stays full, as with leaves.
    let keep = match run {
        Run::Up if index == INNER_KEYS => INNER_KEYS,
        Run::Down if index == 0 => 0,
        _ => INNER_KEYS / 2,
    };
    let mut separators = [0; INNER_KEYS + 1];
    let mut children = [0; INNER_KEYS + 2];
    children[0] = left.child(0);
    for at in 0..INNER_KEYS {
        let to = at + usize::from(at >= index);
        separators[to] = left.separator(at);
        children[to + 1] = left.child(at + 1);
    }
    separators[index] = separator;
    children[index + 1] = child;
    right.become_inner(children[keep + 1]);
    for at in keep + 1..=INNER_KEYS {
        right.set_separator(at - keep - 1, separators[at]);
        right.set_child(at - keep, children[at + 1]);
    }
    right.set_count(INNER_KEYS - keep);
    for at in 0..keep {
        left.set_separator(at, separators[at]);
        left.set_child(at + 1, children[at + 1]);
    }
    left.set_count(keep);
    separators[keep]
}
