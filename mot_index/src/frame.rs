//! One layer of a scan: the leaf being read, and how far it is read.
//!
//! A frame holds no copy of its leaf. It holds the leaf's permutation, its links and a version
//! under which both were read. Entries go from the leaf straight to the batch, and count only if
//! the version is still the same afterwards. As long as it is, nothing was removed and nothing
//! moved, so every slot that the permutation names has the entry it had. So what is read before and
//! after a lower layer is entered belongs together, as if the leaf had been copied at once. Entries
//! inserted meanwhile go to slots that the permutation does not name.
//!
//! If the version has moved, the entries appended since its last validation leave the batch again.
//! The leaf is then read anew after the last entry that counted. If the leaf was split or deleted,
//! the scan descends again.
//!
//! If a scan has an end (`until`), a frame searches for that place in the leaf as it opens the
//! leaf. It searches under the same version, and reads no entry after the place. The end is in one
//! layer and those above it. So a frame has the rest of the end in its layer, or nothing if the
//! scan does not end there. No leaf after the place is visited. Nor is one visited if the parent's
//! separators said that the leaf covers the end. Both are true at one moment of the scan, as is the
//! end of a scan without such a place.
//!
//! Most layers are one leaf with nothing below. Such a layer is read to its end without a frame
//! (`frame/small.rs`). It is read under one version like any leaf, after the validation of the leaf
//! above it. If it changes meanwhile, its entries leave the batch and it is entered like the
//! others.
//!
//! Contract: whatever advances the scan (entries read, entries skipped, an address followed) is
//! validated before it counts. A prefetch is not validated: it follows nothing.

mod prefetch;
mod reading;
mod small;

use crate::descend::PrefetchBeside;
use crate::direction::Direction;
use crate::entries::Entries;
use crate::node::{Node, Place};
use crate::permutation::Permutation;
use crate::slice::{LAYER, LONGER, SLICE_BYTES, class_of_kind, cut};
use crate::sync::is_broken;
use crate::version::{Seen, is_deleted, is_inner, same_range};
use core::cmp::Ordering;
use prefetch::LEAVES_WORTH_PREFETCHING;
use reading::{Put, Reading, slot_at};

/// Why part of a scan ended early.
pub(crate) struct DescendAgain;

/// One layer of a scan. See the module.
pub(crate) struct Frame<'a> {
    /// The layer's root.
    root: &'a Node,
    leaf: &'a Node,
    /// The leaf's version when the following three were read.
    seen: Seen,
    permutation: Permutation,
    next: u64,
    previous: u64,
    /// How many leaves after this one are prefetched already.
    leaves_prefetched: usize,
    /// Up to which entry of this leaf the layers below are prefetched already.
    layers_prefetched: usize,
    /// For how many entries of the neighbour the layers below are prefetched already.
    layers_prefetched_beside: usize,
    /// The rest, in this layer, of the key at which the scan ends, if it ends in this layer.
    end: Option<&'a [u8]>,
    /// Whether no leaf after this one has anything before the end.
    covers_end: bool,
    /// How many entries of the permutation are to be read: all, or those before the end and at it.
    limit: usize,
    /// How many entries of the permutation have been read, counted in the direction of the scan.
    read: usize,
    /// The last entry read in the layer, or the bound; later ones lie after it.
    last: Option<Passed<'a>>,
}

/// A place in a layer that a scan has passed.
#[derive(Clone, Copy)]
struct Passed<'a> {
    slice: u64,
    class: u64,
    /// The bytes after the slice of a key that continues there. `None`: all keys that continue
    /// after the slice have been passed, with the layer they are in.
    ///
    /// They may lie in a bag, even in one that the leaf no longer uses: its bytes never change, and
    /// the pinned epoch keeps them.
    suffix: Option<&'a [u8]>,
}

/// What a frame found at the edge of a scan.
pub(crate) enum AtEdge<'a> {
    /// Nothing that the edge's rest decides about.
    Nothing,
    /// The root of the layer that the edge leads into.
    Layer(&'a Node),
    /// The value of the entry that is the edge's.
    Entry(u64),
}

impl<'a> Frame<'a> {
    /// A frame that stands before the first entry of the leaf that a descent reached. `None` if the
    /// leaf's range is no longer what it was at `seen`.
    #[inline]
    pub(crate) fn create(
        root: &'a Node,
        (leaf, seen): (&'a Node, Seen),
        beside: PrefetchBeside,
        end: Option<&'a [u8]>,
    ) -> Option<Self> {
        let mut frame = Frame {
            root,
            leaf,
            seen,
            permutation: Permutation::EMPTY,
            next: 0,
            previous: 0,
            leaves_prefetched: beside.leaves,
            layers_prefetched: 0,
            layers_prefetched_beside: 0,
            end,
            covers_end: beside.covers_end,
            limit: 0,
            read: 0,
            last: None,
        };
        frame.open(leaf, seen, beside.direction).then_some(frame)
    }

    /// Moves to before the first entry of a leaf whose range is that of `seen`. `false` if the
    /// range has changed.
    #[inline]
    fn open(&mut self, leaf: &'a Node, mut seen: Seen, direction: Direction) -> bool {
        loop {
            let permutation = leaf.permutation();
            let (next, previous) = (leaf.next(), leaf.previous());
            let (limit, has_end) = self.end.map_or((permutation.count(), false), |end| {
                let reading = Reading {
                    leaf,
                    seen,
                    permutation,
                };
                entries_to(end, reading, direction)
            });
            if leaf.is_still(seen) {
                self.leaf = leaf;
                self.seen = seen;
                self.permutation = permutation;
                self.next = next;
                self.previous = previous;
                self.limit = limit;
                self.covers_end |= has_end;
                self.read = 0;
                self.layers_prefetched = 0;
                self.layers_prefetched_beside = 0;
                let neighbour = self.neighbour(direction);
                // Small layers have none, and there are many.
                if neighbour != 0 && !self.covers_end {
                    Node::prefetch(neighbour);
                }
                return true;
            }
            let now = leaf.version.stable();
            if !same_range(seen, now) {
                return false;
            }
            seen = now;
        }
    }

    fn neighbour(&self, direction: Direction) -> u64 {
        match direction {
            Direction::Forward => self.next,
            Direction::Backward => self.previous,
        }
    }

    /// Reads the leaf anew after the last entry that counted, as its version has moved.
    #[cold]
    fn read_anew(&mut self, direction: Direction) -> Result<(), DescendAgain> {
        loop {
            let now = self.leaf.version.stable();
            if !same_range(self.seen, now) || !self.open(self.leaf, now, direction) {
                return Err(DescendAgain);
            }
            if self.skip_read(direction)? {
                return Ok(());
            }
        }
    }

    /// Skips what does not lie after the last entry that counted. `false` if the leaf has changed.
    fn skip_read(&mut self, direction: Direction) -> Result<bool, DescendAgain> {
        let Some(last) = self.last else {
            return Ok(true);
        };
        match self.skip_to(last, direction) {
            None => Ok(false),
            // The suffixes among which the scan stands have moved to a layer, which must be read
            // from their middle on.
            Some(Some((_, LAYER)))
                if last.suffix.is_some()
                    && !is_broken("index: going down again where suffixes moved to a layer") =>
            {
                Err(DescendAgain)
            }
            Some(_) => Ok(true),
        }
    }

    /// Skips what does not lie after a place, and the entry at the place itself, whose slot and
    /// kind are returned. `None` if the leaf has changed.
    #[inline]
    fn skip_to(
        &mut self,
        passed: Passed<'_>,
        direction: Direction,
    ) -> Option<Option<(usize, u64)>> {
        let Passed {
            slice,
            class,
            suffix,
        } = passed;
        let reading = self.reading();
        let place = match suffix {
            Some(suffix) => reading.search(slice, class, suffix),
            // No suffix lies after a layer that was passed.
            None => (self.leaf).search(self.permutation, slice, class, |_| match direction {
                Direction::Forward => Ordering::Less,
                Direction::Backward => Ordering::Greater,
            }),
        };
        let (before, slot) = match place {
            Place::Before(position, _) => (position, None),
            Place::At(position, slot) => (position, Some((slot, self.leaf.kinds().of(slot)))),
        };
        self.read = match direction {
            Direction::Forward => before + usize::from(slot.is_some()),
            Direction::Backward => self.permutation.count() - before,
        };
        // Otherwise the scan might pass entries that it has mistaken for read ones.
        self.leaf.is_still(self.seen).then_some(slot)
    }

    /// Whether every entry of the leaf that is to be read has been.
    #[inline]
    pub(crate) fn is_read(&self) -> bool {
        self.read >= self.limit
    }

    /// Whether the scan is at its end when the leaf is read.
    #[inline]
    pub(crate) fn is_last(&self) -> bool {
        self.covers_end
    }

    /// The rest of the scan's end in the layer that the last entry read leads to, if the end lies
    /// in there.
    #[inline]
    pub(crate) fn end_below(&self) -> Option<&'a [u8]> {
        let (end, last) = (self.end?, self.last?);
        (cut(end) == (last.slice, LONGER) && last.class == LONGER).then(|| &end[SLICE_BYTES..])
    }

    /// The slice of the last entry read.
    pub(crate) fn last_slice(&self) -> u64 {
        self.last.map_or(0, |last| last.slice)
    }

    /// The slot of an entry, counted in the direction of the scan.
    #[inline(always)]
    fn slot(&self, number: usize, direction: Direction) -> usize {
        slot_at(self.permutation, number, direction)
    }

    /// Goes to the edge of a scan, of which `rest` is left in this layer, and reads the entry
    /// there, which then counts as read. `None` if the leaf has changed.
    pub(crate) fn go_to_edge(
        &mut self,
        rest: &'a [u8],
        direction: Direction,
    ) -> Option<AtEdge<'a>> {
        let (slice, class) = cut(rest);
        let mut passed = Passed {
            slice,
            class,
            suffix: Some(rest.get(SLICE_BYTES..).unwrap_or(&[])),
        };
        self.last = Some(passed);
        let Some((slot, kind)) = self.skip_to(passed, direction)? else {
            return Some(AtEdge::Nothing);
        };
        let is_layer = kind == LAYER;
        if is_layer {
            passed.suffix = None;
            self.last = Some(passed);
        }
        if self.read > self.limit {
            // The scan ends before it begins.
            return Some(AtEdge::Nothing);
        }
        let value = self.leaf.value(slot);
        if !self.leaf.is_still(self.seen) {
            return None;
        }
        Some(if is_layer {
            AtEdge::Layer(layer_at(value))
        } else {
            AtEdge::Entry(value)
        })
    }

    /// Reads entries of the leaf until `entries` is full, the leaf is read, or an entry leads to a
    /// layer. Returns the root of that layer.
    pub(crate) fn read(
        &mut self,
        entries: &mut Entries,
        direction: Direction,
    ) -> Result<Option<&'a Node>, DescendAgain> {
        if self.read == 0
            && self.leaves_prefetched > 0
            && entries.room() > self.limit
            && !self.covers_end
        {
            self.prefetch_suffixes_beside(direction);
        }
        loop {
            let mark = entries.mark();
            if let Some(reached) = self.read_on(entries, direction)
                && self.leaf.is_still(self.seen)
            {
                self.read = reached.read;
                self.last = reached.last;
                if reached.layer == 0 {
                    return Ok(None);
                }
                self.prefetch_layers(direction, entries.room());
                return Ok(Some(layer_at(reached.layer)));
            }
            if !is_broken("index: taking out of a batch what did not count") {
                entries.go_back(mark);
            }
            self.read_anew(direction)?;
        }
    }

    /// The same, to be validated; `None` if the leaf has changed.
    #[inline(always)]
    fn read_on(&self, entries: &mut Entries, direction: Direction) -> Option<Reached<'a>> {
        let leaf = self.leaf;
        let Put {
            read,
            layer,
            suffix,
        } = self
            .reading()
            .put_into(entries, self.read..self.limit, direction)?;
        let last = if read > self.read {
            let slot = self.slot(read - 1, direction);
            Some(Passed {
                slice: leaf.key(slot),
                class: class_of_kind(leaf.kinds().of(slot)),
                suffix: (layer == 0).then_some(suffix),
            })
        } else {
            self.last
        };
        Some(Reached { read, last, layer })
    }

    /// The leaf as it is read.
    #[inline(always)]
    fn reading(&self) -> Reading<'a> {
        Reading {
            leaf: self.leaf,
            seen: self.seen,
            permutation: self.permutation,
        }
    }

    /// Goes to the neighbouring leaf of the layer. `false` if there is none. `wanted` is how many
    /// leaves are still to be read.
    pub(crate) fn advance(
        &mut self,
        direction: Direction,
        wanted: usize,
    ) -> Result<bool, DescendAgain> {
        // SAFETY: read under a validated version in the epoch that is still pinned (`Tree::new`).
        let Some(leaf) = (unsafe { Node::at(self.neighbour(direction)) }) else {
            return Ok(false);
        };
        let (from, from_seen) = (self.leaf, self.seen);
        let layers_prefetched = self.layers_prefetched_beside;
        debug_assert!(!self.covers_end);
        let seen = leaf.version.stable();
        if is_deleted(seen) || is_inner(seen) || !self.open(leaf, seen, direction) {
            return Err(DescendAgain);
        }
        if direction == Direction::Backward
            && self.next != from.address()
            && !is_broken("index: looking at the link back")
        {
            return Err(DescendAgain);
        }
        // Entries may have moved from one leaf to the other, past the scan. This comes after the
        // read of what the new leaf holds: see `redistribute.rs`.
        if !same_range(from_seen, from.version.stable())
            && !is_broken("index: validating the leaf a scan comes from")
        {
            return Err(DescendAgain);
        }
        self.layers_prefetched = layers_prefetched.min(self.limit);
        if self.leaves_prefetched > 0 {
            self.leaves_prefetched -= 1;
        } else if wanted >= LEAVES_WORTH_PREFETCHING && !self.covers_end {
            // The first of another parent's leaves.
            self.prefetch_leaves(direction, wanted);
        }
        // The range of the previous leaf of the scan is not covered by this one, as long as this
        // leaf's version stands.
        debug_assert!(
            self.begins_behind_last(direction)
                || !self.leaf.is_still(self.seen)
                || is_broken("index: validating the leaf a scan comes from")
        );
        Ok(true)
    }

    /// Whether the leaf's first entry lies after the last one that counted. Not validated.
    fn begins_behind_last(&self, direction: Direction) -> bool {
        let Some(last) = self.last.filter(|_| self.permutation.count() > 0) else {
            return true;
        };
        let first = self.leaf.key(self.slot(0, direction));
        match direction {
            Direction::Forward => first > last.slice,
            Direction::Backward => first < last.slice,
        }
    }
}

/// How many entries of a leaf lie before the end of a scan and at it, in the scan's direction. And
/// whether the end is in the leaf: at an entry, or between two or after it. To be validated.
#[inline]
fn entries_to(end: &[u8], reading: Reading<'_>, direction: Direction) -> (usize, bool) {
    let (leaf, permutation) = (reading.leaf, reading.permutation);
    let count = permutation.count();
    let (slice, class) = cut(end);
    // Most leaves of a long scan have nothing of its end.
    if let Some(last) = count.checked_sub(1) {
        let is_before = match direction {
            Direction::Forward => leaf.key(permutation.slot(last)) < slice,
            Direction::Backward => leaf.key(permutation.slot(0)) > slice,
        };
        if is_before {
            return (count, false);
        }
    }
    let suffix = end.get(SLICE_BYTES..).unwrap_or(&[]);
    match (reading.search(slice, class, suffix), direction) {
        (Place::At(position, _), Direction::Forward) => (position + 1, true),
        (Place::At(position, _), Direction::Backward) => (count - position, true),
        (Place::Before(position, _), Direction::Forward) => (position, position < count),
        (Place::Before(position, _), Direction::Backward) => (count - position, position > 0),
    }
}

/// How far reading a leaf came.
struct Reached<'a> {
    read: usize,
    last: Option<Passed<'a>>,
    /// The address of the layer the last entry leads to, or 0.
    layer: u64,
}

/// The root of a layer whose address was read under a validated version.
fn layer_at<'a>(address: u64) -> &'a Node {
    // SAFETY: our callers have validated the version they read the address under, in the epoch that
    // is still pinned (`Tree::new`).
    unsafe { Node::at(address) }.expect("a layer has a root")
}
