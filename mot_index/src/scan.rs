//! Reading entries in order, a leaf at a time.
//!
//! A leaf is copied under one version, so its entries belong to one moment. The next leaf is found
//! by the link copied with it, and is right for this reason: keys move only to the right, into new
//! leaves, and a leaf's range grows only by the range of an emptied neighbour.
//!
//! - Forward: what was right of the leaf at the moment of its copy is still in the next leaf or
//!   right of it. If that was deleted, its content has gone elsewhere: the scan goes down again.
//! - Backward: the previous leaf may have been split since, so it is taken only if its own copy says
//!   that its next leaf is the one the scan comes from; else the scan goes down again.
//! - Going down again resumes behind the last entry read (or at the bound), so no entry that stays
//!   is missed or read twice. A leaf's range may have grown to the side the scan comes from, so
//!   entries that do not lie behind the last one read are skipped.
//!
//! Layers are read depth first; a copied entry that leads to a layer is followed when its turn
//! comes. If the layer is gone by then, the scan goes down again as well.

use crate::bag::Bag;
use crate::batch::{Batch, Bound, Direction, EntryCopy, Frame, LeafCopy};
use crate::descend::{AskBeside, Goal, reach_leaf_by};
use crate::memory::Memory;
use crate::node::Node;
use crate::slice::{LAYER, LONGER, SLICE_BYTES, SUFFIX, class_of_kind, cut};
use crate::sync::Wait;
use crate::tree::Tree;
use crate::version::{Seen, is_deleted, is_inner, same_range};

/// Why part of a scan ended early.
struct GoneDown;

/// What is left of the bound in a layer.
#[derive(Clone, Copy)]
struct Edge<'k> {
    rest: &'k [u8],
    included: bool,
}

impl<'a, M: Memory> Tree<'a, M> {
    /// Fills `batch` with the entries that follow `bound` in `direction`, until it is full or the
    /// end is met ([`Batch::is_exhausted`]).
    ///
    /// Entries are in order, none twice. Each was in the tree at some moment of the call, and one
    /// that was there during the whole call is not missed; between concurrent changes the scan may
    /// see some and not others.
    pub fn scan_batch(&self, bound: Bound<'_>, direction: Direction, batch: &mut Batch) {
        self.scan_batch_until(bound, None, direction, batch);
    }

    /// The same, but no leaf is read behind one with an entry at or beyond `until`; that is an end, too. Entries beyond it may
    /// be in the batch.
    pub fn scan_batch_until(
        &self,
        bound: Bound<'_>,
        until: Option<&[u8]>,
        direction: Direction,
        batch: &mut Batch,
    ) {
        batch.clear();
        let edge = match (bound, direction) {
            (Bound::Start, Direction::Forward) | (Bound::End, Direction::Backward) => None,
            (Bound::Start, Direction::Backward) | (Bound::End, Direction::Forward) => {
                batch.set_exhausted();
                return;
            }
            (Bound::Included(rest), _) => Some(Edge {
                rest,
                included: true,
            }),
            (Bound::Excluded(rest), _) => Some(Edge {
                rest,
                included: false,
            }),
        };
        let mut result = self.scan_once(edge, until, direction, batch);
        let mut wait = Wait::new();
        while result.is_err() {
            // Perhaps until the owner of a leaf has stored the second of two links.
            wait.once();
            result = if batch.note_last() {
                let resume = core::mem::take(&mut batch.scratch.resume);
                let edge = Edge {
                    rest: &resume,
                    included: false,
                };
                let result = self.scan_once(Some(edge), until, direction, batch);
                batch.scratch.resume = resume;
                result
            } else {
                self.scan_once(edge, until, direction, batch)
            };
        }
        batch.scratch.frames.clear();
    }

    /// Goes down to the edge and reads on from there.
    fn scan_once(
        &self,
        edge: Option<Edge<'_>>,
        until: Option<&[u8]>,
        direction: Direction,
        batch: &mut Batch,
    ) -> Result<(), GoneDown> {
        batch.scratch.frames.clear();
        batch.scratch.prefix.clear();
        let Some(root) = self.first_layer() else {
            batch.set_exhausted();
            return Ok(());
        };
        self.enter(root, edge, direction, batch)?;
        while !batch.is_full() {
            let wanted = batch.leaves_wanted();
            if batch.is_leaf_read()
                && until.is_some_and(|until| batch.has_reached(until, direction))
            {
                batch.set_exhausted();
                return Ok(());
            }
            let Some(frame) = batch.scratch.frames.last_mut() else {
                batch.set_exhausted();
                return Ok(());
            };
            if frame.read < frame.copy.count && !frame.copy.has_longer {
                push_rest(batch, direction);
            } else if frame.read < frame.copy.count {
                let entry = frame.entry(direction);
                frame.read += 1;
                frame.last = Some(entry.order());
                if entry.kind as u64 == LAYER {
                    batch
                        .scratch
                        .prefix
                        .extend_from_slice(&entry.slice.to_be_bytes());
                    self.enter(self.layer_of(entry), None, direction, batch)?;
                } else {
                    let bag = frame.copy.bag;
                    push(batch, entry, bag);
                }
            } else if !advance(frame, direction, wanted)? {
                batch.scratch.frames.pop();
                let prefix = &mut batch.scratch.prefix;
                prefix.truncate(prefix.len().saturating_sub(SLICE_BYTES));
            }
        }
        Ok(())
    }

    fn layer_of(&self, entry: EntryCopy) -> &'a Node {
        // SAFETY: copied under a validated version in the epoch that is still pinned (`Tree::new`).
        unsafe { Node::at(entry.value) }.expect("a layer has a root")
    }

    /// Begins a layer, and those below it that the edge leads into.
    fn enter(
        &self,
        mut root: &'a Node,
        mut edge: Option<Edge<'_>>,
        direction: Direction,
        batch: &mut Batch,
    ) -> Result<(), GoneDown> {
        loop {
            let goal = match (edge, direction) {
                (Some(edge), _) => Goal::Slice(cut(edge.rest).0),
                (None, Direction::Forward) => Goal::First,
                (None, Direction::Backward) => Goal::Last,
            };
            let last = edge.map(|edge| cut(edge.rest));
            let mut frame = Frame {
                root: root.address(),
                leaf: 0,
                asked: 0,
                copy: LeafCopy::default(),
                read: 0,
                last,
            };
            loop {
                let mut beside = AskBeside {
                    direction,
                    leaves: batch.leaves_wanted(),
                };
                let (leaf, seen) = reach_leaf_by(root, goal, &mut beside).ok_or(GoneDown)?;
                frame.asked = beside.leaves;
                frame.leaf = leaf.address();
                if copy_leaf(leaf, seen, direction, &mut frame.copy) {
                    break;
                }
            }
            let Some(inner) = edge else {
                batch.scratch.frames.push(frame);
                return Ok(());
            };
            frame.skip_before(direction);
            // An entry just at the edge, whose rest decides.
            let at_edge = (frame.read < frame.copy.count)
                .then(|| frame.entry(direction))
                .filter(|entry| Some(entry.order()) == last);
            let Some(entry) = at_edge else {
                batch.scratch.frames.push(frame);
                return Ok(());
            };
            frame.read += 1;
            let bag = frame.copy.bag;
            batch.scratch.frames.push(frame);
            if entry.kind as u64 == LAYER {
                batch
                    .scratch
                    .prefix
                    .extend_from_slice(&entry.slice.to_be_bytes());
                root = self.layer_of(entry);
                edge = Some(Edge {
                    rest: &inner.rest[SLICE_BYTES..],
                    ..inner
                });
                continue;
            }
            if lies_behind(entry, bag, inner, direction) {
                push(batch, entry, bag);
            }
            return Ok(());
        }
    }
}

impl Frame {
    /// The next entry in the direction of the scan.
    fn entry(&self, direction: Direction) -> EntryCopy {
        match direction {
            Direction::Forward => self.copy.entries[self.read],
            Direction::Backward => self.copy.entries[self.copy.count - 1 - self.read],
        }
    }

    /// Skips entries that come before `last` in the direction of the scan.
    fn skip_before(&mut self, direction: Direction) {
        let Some(last) = self.last else { return };
        while self.read < self.copy.count {
            let order = self.entry(direction).order();
            let before = match direction {
                Direction::Forward => order < last,
                Direction::Backward => order > last,
            };
            if !before {
                return;
            }
            self.read += 1;
        }
    }

    /// Skips the entry `last` itself.
    fn skip_last(&mut self, direction: Direction) {
        if self.read < self.copy.count && Some(self.entry(direction).order()) == self.last {
            self.read += 1;
        }
    }
}

impl EntryCopy {
    fn order(self) -> (u64, u64) {
        (self.slice, class_of_kind(u64::from(self.kind)))
    }
}

/// The suffix of a copied entry; empty if it has none.
fn suffix<'b>(entry: EntryCopy, bag: u64) -> &'b [u8] {
    if u64::from(entry.kind) != SUFFIX {
        return &[];
    }
    // SAFETY: bag and word were copied together under a validated version; the epoch that is still
    // pinned keeps the bag, and the bytes a word names never change.
    unsafe {
        Bag::at(bag)
            .expect("a leaf with a suffix has a bag")
            .suffix(entry.word)
    }
}

fn push(batch: &mut Batch, entry: EntryCopy, bag: u64) {
    let bytes = entry.slice.to_be_bytes();
    let length = (entry.kind as usize).min(SLICE_BYTES);
    batch.push(&bytes[..length], suffix(entry, bag), entry.value);
}

/// Appends what is left of the last frame's copy, as far as it fits; its entries are slices only.
fn push_rest(batch: &mut Batch, direction: Direction) {
    let mut frames = core::mem::take(&mut batch.scratch.frames);
    let frame = frames.last_mut().expect("the caller has it");
    let (read, count) = (frame.read, frame.copy.count);
    let pushed = match direction {
        Direction::Forward => batch.push_run(frame.copy.entries[read..count].iter().copied()),
        Direction::Backward => {
            batch.push_run(frame.copy.entries[..count - read].iter().rev().copied())
        }
    };
    if pushed > 0 {
        frame.read = read + pushed - 1;
        frame.last = Some(frame.entry(direction).order());
        frame.read += 1;
    }
    batch.scratch.frames = frames;
}

/// Whether an entry with the edge's slice and class belongs to the scan.
fn lies_behind(entry: EntryCopy, bag: u64, edge: Edge<'_>, direction: Direction) -> bool {
    let rest = edge.rest.get(SLICE_BYTES..).unwrap_or(&[]);
    match (suffix(entry, bag).cmp(rest), direction) {
        (core::cmp::Ordering::Equal, _) => edge.included,
        (order, Direction::Forward) => order.is_gt(),
        (order, Direction::Backward) => order.is_lt(),
    }
}

/// Asks for the leaves behind the frame's by going down to it once more: cheaper than to wait for each of so many.
fn ask_ahead(frame: &mut Frame, direction: Direction, wanted: usize) {
    if frame.copy.count == 0 {
        return;
    }
    let slice = frame.copy.entries[0].slice;
    // SAFETY: the root of a layer that was entered in the epoch that is still pinned (`Tree::new`).
    let root = unsafe { Node::at(frame.root) }.expect("a layer has a root");
    let mut beside = AskBeside {
        direction,
        leaves: wanted,
    };
    // Only what is asked for counts: who goes on by the links sees for himself what has changed.
    if reach_leaf_by(root, Goal::Slice(slice), &mut beside).is_some() {
        frame.asked = beside.leaves;
    }
}

/// Leaves still wanted from which on asking for them pays.
const LEAVES_WORTH_ASKING: usize = 3;

/// Goes to the neighbouring leaf of the layer; `false` if there is none.
fn advance(frame: &mut Frame, direction: Direction, wanted: usize) -> Result<bool, GoneDown> {
    let address = match direction {
        Direction::Forward => frame.copy.next,
        Direction::Backward => frame.copy.previous,
    };
    // SAFETY: copied under a validated version in the epoch that is still pinned (`Tree::new`).
    let Some(leaf) = (unsafe { Node::at(address) }) else {
        return Ok(false);
    };
    loop {
        let seen = leaf.version.stable();
        if is_deleted(seen) || is_inner(seen) {
            return Err(GoneDown);
        }
        if copy_leaf(leaf, seen, direction, &mut frame.copy) {
            break;
        }
    }
    if direction == Direction::Backward && frame.copy.next != frame.leaf {
        return Err(GoneDown);
    }
    frame.leaf = address;
    if frame.asked > 0 {
        frame.asked -= 1;
    } else if wanted >= LEAVES_WORTH_ASKING {
        // The first of another parent's leaves.
        ask_ahead(frame, direction, wanted);
    }
    frame.read = 0;
    frame.skip_before(direction);
    frame.skip_last(direction);
    Ok(true)
}

/// Copies a leaf at a moment at which its range was the one of `seen`; `false` if it changed: then the copy is worth nothing.
fn copy_leaf(leaf: &Node, mut seen: Seen, direction: Direction, copy: &mut LeafCopy) -> bool {
    loop {
        let permutation = leaf.permutation();
        let kinds = leaf.kinds();
        copy.count = permutation.count();
        copy.bag = leaf.bag();
        copy.next = leaf.next();
        copy.previous = leaf.previous();
        Node::prefetch(match direction {
            Direction::Forward => copy.next,
            Direction::Backward => copy.previous,
        });
        let mut longest = 0;
        for position in 0..copy.count {
            let slot = permutation.slot(position);
            let kind = kinds.of(slot);
            longest = longest.max(kind);
            copy.entries[position] = EntryCopy {
                slice: leaf.key(slot),
                value: leaf.value(slot),
                word: slot as u32,
                kind: kind as u32,
            };
        }
        copy.has_longer = class_of_kind(longest) == LONGER;
        if copy.has_longer && leaf.is_still(seen) {
            // SAFETY: read under a validated version in the pinned epoch (`Tree::new`).
            let bag = unsafe { Bag::at(copy.bag) };
            for entry in &mut copy.entries[..copy.count] {
                if u64::from(entry.kind) == SUFFIX {
                    let bag = bag.expect("a leaf with a suffix has a bag");
                    entry.word = bag.word(entry.word as usize);
                }
            }
        }
        if leaf.is_still(seen) {
            return true;
        }
        let now = leaf.version.stable();
        if !same_range(seen, now) {
            return false;
        }
        seen = now;
    }
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
