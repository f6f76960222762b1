//! Rows through an index, in key order.

use super::range::KeyRange;
use crate::clock::Snapshot;
use crate::errors::EngineError;
use crate::ids::Slot;
use crate::index::slots_of;
use crate::key::{KeyBuffer, encode_row};
use crate::memory::Urgency;
use crate::row::{self, Head, VersionRef};
use crate::session::Session;
use crate::table::{EntryForm, IndexRef, TableRef};
use mot_index::{Bound, Cursor, Direction, Tree};
use std::sync::atomic::Ordering;

/// Slots of one pointed key kept aside: nearly always one or two.
#[derive(Default)]
struct Pending {
    slots: Vec<Slot>,
    key: Vec<u8>,
}

/// A scan through an index. Reusable: `start` begins anew and keeps the memory.
pub struct IndexScan {
    place: Option<(TableRef, IndexRef)>,
    cursor: Cursor,
    direction: Direction,
    /// Where the scan ends: `high` going forward (exclusive), `low` going backward (inclusive).
    end: Vec<u8>,
    has_end: bool,
    point: Vec<u8>,
    is_point: bool,
    is_done: bool,
    pending: Pending,
    scratch: KeyBuffer,
}

impl Default for IndexScan {
    fn default() -> IndexScan {
        IndexScan::new()
    }
}

impl IndexScan {
    /// A scan of nothing.
    pub fn new() -> IndexScan {
        IndexScan {
            place: None,
            cursor: Cursor::new(),
            direction: Direction::Forward,
            end: Vec::new(),
            has_end: false,
            point: Vec::new(),
            is_point: false,
            is_done: true,
            pending: Pending::default(),
            scratch: KeyBuffer::new(),
        }
    }

    /// Begins a scan of a range.
    pub fn start(
        &mut self,
        table: TableRef,
        index: IndexRef,
        range: &KeyRange,
        direction: Direction,
    ) {
        index.storage().scans.fetch_add(1, Ordering::Relaxed);
        self.place = Some((table, index));
        self.direction = direction;
        self.pending.slots.clear();
        self.is_done = false;
        self.is_point = false;
        if let Some(key) = range.point()
            && index.is_unique()
        {
            self.is_point = true;
            self.point.clear();
            self.point.extend_from_slice(key);
            return;
        }
        let (bound, end) = match direction {
            Direction::Forward => (
                range.low().map_or(Bound::Start, Bound::Included),
                range.high(),
            ),
            Direction::Backward => (
                range.high().map_or(Bound::End, Bound::Excluded),
                range.low(),
            ),
        };
        self.cursor.seek(bound, direction);
        self.end.clear();
        self.has_end = end.is_some();
        self.end.extend_from_slice(end.unwrap_or_default());
    }

    /// The next row the snapshot sees, with the key its entry has.
    pub fn next<S: Snapshot>(
        &mut self,
        session: &Session,
        snapshot: &S,
    ) -> Result<Option<(Slot, VersionRef)>, EngineError> {
        let Some((table, index)) = self.place else {
            return Ok(None);
        };
        let _pin = session.local.pin();
        loop {
            while let Some(slot) = self.pending.slots.pop() {
                if let Some(version) = self.check(session, table, index, slot, snapshot)? {
                    return Ok(Some((slot, version)));
                }
            }
            if self.is_done || !self.advance(session, index)? {
                self.is_done = true;
                return Ok(None);
            }
        }
    }

    /// Moves to the next entry of the range; its slots are pending then.
    fn advance(&mut self, session: &Session, index: IndexRef) -> Result<bool, EngineError> {
        let memory = session.tree_memory(Urgency::Ordinary);
        // SAFETY: `next` is pinned around this.
        let tree = unsafe { Tree::new(&index.storage().root, &memory) };
        let pending = &mut self.pending;
        pending.key.clear();
        if self.is_point {
            self.is_done = true;
            let Some(value) = tree.get(&self.point) else {
                return Ok(false);
            };
            slots_of(value, |slot| pending.slots.push(slot));
            pending.key.extend_from_slice(&self.point);
            return Ok(true);
        }
        let Some((key, value)) = self.cursor.next(&tree) else {
            return Ok(false);
        };
        if self.has_end {
            let beyond = match self.direction {
                Direction::Forward => key >= &self.end[..],
                Direction::Backward => key < &self.end[..],
            };
            if beyond {
                return Ok(false);
            }
        }
        slots_of(value, |slot| pending.slots.push(slot));
        pending.key.extend_from_slice(key);
        Ok(true)
    }

    /// The row behind an entry, if the snapshot sees it with the entry's key.
    fn check<S: Snapshot>(
        &mut self,
        session: &Session,
        table: TableRef,
        index: IndexRef,
        slot: Slot,
        snapshot: &S,
    ) -> Result<Option<VersionRef>, EngineError> {
        let Some(anchor) = table.anchor(slot) else {
            return Ok(None);
        };
        let Some(version) = row::visible(anchor, snapshot) else {
            return Ok(None);
        };
        // Loaded after the walk: a writer sets it before it publishes a version with another key.
        if !anchor.head().has(Head::KEYS_MOVED) {
            return Ok(Some(version));
        }
        let definition = session.definition(index)?;
        let has_null = encode_row(definition, version.image(), &mut self.scratch)?.0;
        if index.form(has_null) == EntryForm::Suffixed {
            crate::index::append_slot(&mut self.scratch, slot)?;
        }
        Ok((self.scratch.as_slice() == &self.pending.key[..]).then_some(version))
    }
}
