//! A position in a tree from which entries are read one by one.

use crate::batch::{Batch, Bound};
use crate::direction::Direction;
use crate::memory::Memory;
use crate::tree::Tree;

/// Entries the first refill after a seek asks for: most scans are short.
const FIRST_REFILL_ENTRIES: usize = 16;
/// Entries a later refill asks for at most.
const REFILL_ENTRIES: usize = 256;

enum Position {
    Start,
    End,
    Included,
    Excluded,
}

/// Reads entries one by one, in batches behind the scenes.
///
/// Between two refills the cursor holds nothing of the tree: no latch, no pointer, no epoch. A
/// refill descends from the last key read, so it sees what was changed meanwhile.
pub struct Cursor {
    batch: Batch,
    next: usize,
    direction: Direction,
    position: Position,
    key: Vec<u8>,
    /// Whether the tree has nothing more to read.
    at_end: bool,
}

impl Default for Cursor {
    fn default() -> Self {
        Self::new()
    }
}

impl Cursor {
    /// A cursor before the least key.
    pub fn new() -> Self {
        Cursor {
            batch: Batch::with_capacity(FIRST_REFILL_ENTRIES),
            next: 0,
            direction: Direction::Forward,
            position: Position::Start,
            key: Vec::new(),
            at_end: false,
        }
    }

    /// Places the cursor. Does not touch the tree.
    pub fn seek(&mut self, bound: Bound<'_>, direction: Direction) {
        self.batch.clear();
        self.batch.set_capacity(FIRST_REFILL_ENTRIES);
        self.next = 0;
        self.direction = direction;
        self.at_end = false;
        self.key.clear();
        self.position = match bound {
            Bound::Start => Position::Start,
            Bound::End => Position::End,
            Bound::Included(key) => {
                self.key.extend_from_slice(key);
                Position::Included
            }
            Bound::Excluded(key) => {
                self.key.extend_from_slice(key);
                Position::Excluded
            }
        };
    }

    /// Whether the next [`Cursor::next`] reads the tree, so that an epoch has to be pinned.
    pub fn needs_refill(&self) -> bool {
        self.next == self.batch.len() && !self.at_end
    }

    /// The next entry; `None` at the end. Touches `tree` only if [`Cursor::needs_refill`].
    #[inline]
    pub fn next<M: Memory>(&mut self, tree: &Tree<'_, M>) -> Option<(&[u8], u64)> {
        if self.needs_refill() {
            self.refill(tree);
        }
        if self.next == self.batch.len() {
            return None;
        }
        self.next += 1;
        Some(self.batch.get(self.next - 1))
    }

    fn refill<M: Memory>(&mut self, tree: &Tree<'_, M>) {
        if let Some(last) = self.batch.len().checked_sub(1) {
            self.key.clear();
            self.key.extend_from_slice(self.batch.get(last).0);
            self.position = Position::Excluded;
            self.batch
                .set_capacity((self.batch.capacity() * 4).min(REFILL_ENTRIES));
        }
        let bound = match self.position {
            Position::Start => Bound::Start,
            Position::End => Bound::End,
            Position::Included => Bound::Included(&self.key),
            Position::Excluded => Bound::Excluded(&self.key),
        };
        tree.scan_batch(bound, self.direction, &mut self.batch);
        self.next = 0;
        self.at_end = self.batch.is_exhausted();
    }
}
