//! Reading entries in order, a leaf at a time.
//!
//! A leaf is read under one version (`frame.rs`), so its entries belong to one moment. The next
//! leaf is found by the link read under that version. The link is right for this reason: keys move
//! to new leaves, to the right, or to a neighbour that has room (`redistribute.rs`). All leaves
//! whose ranges that changes say so in their versions. Otherwise a leaf's range grows only by that
//! of an emptied neighbour.
//!
//! - Once the next leaf was opened, the leaf that the scan comes from is validated. If its range
//!   has changed, entries may have moved past the scan from one leaf to the other, and the scan
//!   descends again.
//! - Forward: what was right of the leaf when the link was read is then still in the next leaf or
//!   right of it. If the next leaf was deleted, its content has gone elsewhere, and the scan
//!   descends again.
//! - Backward: the previous leaf may have been split since. So it is taken only if, under the
//!   version that it is then read under, its next leaf is the one the scan comes from. Otherwise
//!   the scan descends again.
//! - A new descent resumes after the last entry read (or at the bound), so no entry that stays is
//!   missed or read twice. A leaf's range may grow to the side that the scan comes from. So where a
//!   leaf is read anew, entries that do not lie after the last one read are skipped.
//!
//! Layers are read depth first: the scan enters a layer at its entry, and then continues in the
//! leaf above. If the layer is gone when it is entered, or the leaf above was split meanwhile, the
//! scan descends again as well.

use crate::batch::{Batch, Bound};
use crate::descend::{Goal, PrefetchBeside, reach_leaf_by};
use crate::direction::Direction;
use crate::entries::Entries;
use crate::frame::{AtEdge, DescendAgain, Frame};
use crate::memory::Memory;
use crate::node::Node;
use crate::slice::{LONGER, SLICE_BYTES, cut};
use crate::sync::Wait;
use crate::tree::Tree;

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
    /// that was there during the whole call is not missed. Of concurrent changes the scan may see
    /// some and not others.
    pub fn scan_batch(&self, bound: Bound<'_>, direction: Direction, batch: &mut Batch) {
        self.scan_batch_until(bound, None, direction, batch);
    }

    /// The same, but no further than `until`, which is an end, too. One entry beyond it may be in
    /// the batch, as the last.
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
                batch.exhausted = true;
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
        let mut result = self.scan_from(edge, until, direction, batch);
        let mut wait = Wait::new();
        while result.is_err() {
            // Perhaps until the owner of a leaf has stored the second of two links.
            wait.once();
            result = if batch.note_last() {
                let resume = core::mem::take(&mut batch.resume);
                let edge = Edge {
                    rest: &resume,
                    included: false,
                };
                let result = self.scan_from(Some(edge), until, direction, batch);
                batch.resume = resume;
                result
            } else {
                self.scan_from(edge, until, direction, batch)
            };
        }
    }

    /// Descends to the edge once, with the frames of the batch. They borrow from the edge, and
    /// return to the batch before the edge goes.
    fn scan_from(
        &self,
        edge: Option<Edge<'_>>,
        until: Option<&[u8]>,
        direction: Direction,
        batch: &mut Batch,
    ) -> Result<(), DescendAgain> {
        let mut frames = batch.take_frames();
        let result = self.scan_once(edge, until, direction, batch, &mut frames);
        batch.return_frames(frames);
        result
    }

    /// Descends to the edge and reads from there.
    fn scan_once<'s>(
        &self,
        edge: Option<Edge<'s>>,
        until: Option<&'s [u8]>,
        direction: Direction,
        batch: &mut Batch,
        frames: &mut Vec<Frame<'s>>,
    ) -> Result<(), DescendAgain>
    where
        'a: 's,
    {
        let Batch {
            entries, exhausted, ..
        } = batch;
        debug_assert!(frames.is_empty());
        entries.clear_prefix();
        if let Some(root) = self.first_layer() {
            enter(root, edge, until, direction, entries, frames)?;
        }
        loop {
            let Some(frame) = frames.last_mut() else {
                *exhausted = true;
                return Ok(());
            };
            let is_read = frame.is_read();
            if is_read && frame.is_last() {
                *exhausted = true;
                return Ok(());
            }
            if entries.is_full() {
                return Ok(());
            }
            if is_read {
                if !frame.advance(direction, entries.leaves_wanted())? {
                    frames.pop();
                    entries.pop_slice();
                }
            } else if let Some(layer) = frame.read(entries, direction)? {
                if frame.read_small_layer(layer, entries, direction) {
                    continue;
                }
                let end = frame.end_below();
                entries.push_slice(frame.last_slice());
                enter(layer, None, end, direction, entries, frames)?;
            }
        }
    }
}

/// Begins a layer, and those below it that the edge leads into. `end` is the rest of the scan's end
/// there.
fn enter<'a>(
    mut root: &'a Node,
    mut edge: Option<Edge<'a>>,
    mut end: Option<&'a [u8]>,
    direction: Direction,
    entries: &mut Entries,
    frames: &mut Vec<Frame<'a>>,
) -> Result<(), DescendAgain> {
    loop {
        let goal = match (edge, direction) {
            (Some(edge), _) => Goal::Slice(cut(edge.rest).0),
            (None, Direction::Forward) => Goal::First,
            (None, Direction::Backward) => Goal::Last,
        };
        let mut beside = PrefetchBeside::new(direction, entries.leaves_wanted(), end);
        let reached = reach_leaf_by(root, goal, &mut beside).ok_or(DescendAgain)?;
        let Some(mut frame) = Frame::create(root, reached, beside, end) else {
            continue;
        };
        let Some(inner) = edge else {
            frames.push(frame);
            return Ok(());
        };
        let (slice, class) = cut(inner.rest);
        match frame.go_to_edge(inner.rest, direction) {
            None => continue,
            Some(AtEdge::Nothing) => {}
            Some(AtEdge::Layer(layer)) => {
                end = frame.end_below();
                frame.prefetch_behind_edge(direction, entries.room());
                frames.push(frame);
                entries.push_slice(slice);
                root = layer;
                edge = Some(Edge {
                    rest: &inner.rest[SLICE_BYTES..],
                    ..inner
                });
                continue;
            }
            Some(AtEdge::Entry(value)) if inner.included => match class {
                LONGER => entries.push(slice, &inner.rest[SLICE_BYTES..], value),
                _ => {
                    entries.push_run(1, |_| (slice, class, value));
                }
            },
            Some(AtEdge::Entry(_)) => {}
        }
        frames.push(frame);
        return Ok(());
    }
}

#[cfg(test)]
#[path = "scan_tests.rs"]
pub(crate) mod tests;
