//! Rows through an index, in key order.

mod entries;
mod first_key;
mod unfinished;

pub(super) use first_key::read_one;

use super::found::Found;
use super::pending::{Pending, PendingRow};
use super::range::KeyRange;
use crate::clock::Snapshot;
use crate::errors::EngineError;
use crate::ids::RowId;
use crate::index::only_row_id;
use crate::key::KeyBuffer;
use crate::memory::Urgency;
use crate::pause::{Point, reach};
use crate::row::{self, Head, VersionRef};
use crate::session::Session;
use crate::table::{EntryForm, IndexRef, TableRef};
use entries::Entries;
use mot_index::{Bound, Direction, Tree};
use std::sync::atomic::Ordering;

/// Entries the first look into the tree asks for: most scans are short.
const FIRST_ENTRIES: usize = 16;
/// Entries a later look asks for at most.
const ENTRIES_MAX: usize = 256;

/// Where the next look into the tree begins.
#[derive(Copy, Clone, Eq, PartialEq)]
enum Begin {
    Start,
    End,
    Included,
    Excluded,
}

/// A scan through an index. Reusable: `start` begins anew and keeps the memory.
///
/// Either of a range, or of many whole keys of a unique index
/// ([`start_points`](IndexScan::start_points)), whose misses then overlap.
///
/// Entries are read in batches. A batch's row ids are taken out of the tree's values while pinned,
/// for a posting block may be gone a moment later. Rows are looked up some at once, under one pin,
/// and handed out one by one.
pub struct IndexScan {
    place: Option<(TableRef, IndexRef)>,
    direction: Direction,
    entries: Entries,
    begin: Begin,
    /// Where the scan ends: `high` going forward (exclusive), `low` going backward (inclusive).
    end: Vec<u8>,
    has_end: bool,
    /// Nothing more is to be read from the tree.
    is_done: bool,
    /// The table's number ([`TableRef::keys_cleared`]) from before the last entries were read.
    keys_cleared: u64,
    /// Rows whose entries were read and that are not looked up yet, with the number of their key in
    /// the batch.
    pending: Pending,
    /// Rows looked up and not handed out yet.
    found: Found,
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
            direction: Direction::Forward,
            entries: Entries::with_capacity(FIRST_ENTRIES),
            begin: Begin::Start,
            end: Vec::new(),
            has_end: false,
            is_done: true,
            keys_cleared: 0,
            pending: Pending::default(),
            found: Found::default(),
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
        if let Some(key) = range.point()
            && index.is_unique()
        {
            return self.begin_point(table, index, direction, key);
        }
        self.begin_anew(table, index, direction);
        let (begin, key, end) = match direction {
            Direction::Forward => (
                range.low().map_or(Begin::Start, |_| Begin::Included),
                range.low(),
                range.high(),
            ),
            Direction::Backward => (
                range.high().map_or(Begin::End, |_| Begin::Excluded),
                range.high(),
                range.low(),
            ),
        };
        self.begin = begin;
        self.entries
            .begin_key
            .extend_from_slice(key.unwrap_or_default());
        self.has_end = end.is_some();
        self.end.extend_from_slice(end.unwrap_or_default());
    }

    /// Begins a scan of the rows with these full keys (all columns, no NULL) of a unique index, in
    /// the keys' order.
    pub fn start_points<'k>(
        &mut self,
        table: TableRef,
        index: IndexRef,
        keys: impl IntoIterator<Item = &'k [u8]>,
    ) -> Result<(), EngineError> {
        debug_assert!(index.is_unique());
        self.begin_anew(table, index, Direction::Forward);
        keys.into_iter()
            .try_for_each(|key| self.entries.points.push(key))?;
        self.is_done = self.entries.points.is_empty();
        Ok(())
    }

    /// Ends the scan, whose memory may be long in being needed again: that of very many keys is
    /// given back.
    pub fn end(&mut self) {
        if !self.entries.points.is_empty() {
            self.place = None;
            self.pending.clear();
            self.found.clear();
            self.entries.points.trim();
        }
    }

    /// Begins a look-up of one full key of a unique index, as an entry of it has it: `next` gives
    /// the row, if the snapshot sees one. It sees several if the index was made after it and found
    /// all but one of them deleted. The tree is looked into here, and the row's memory asked for:
    /// what the caller does before `next` overlaps with that.
    pub fn look_up(
        &mut self,
        session: &Session,
        table: TableRef,
        index: IndexRef,
        key: &[u8],
    ) -> Result<(), EngineError> {
        debug_assert!(index.is_unique());
        self.begin_point(table, index, Direction::Forward, key);
        let _pin = session.local.pin();
        self.read(session, table, index)?;
        reach(Point::ScanAfterEntries);
        self.pending.prefetch_next();
        Ok(())
    }

    /// As `look_up`, and `next`. As a rule one row has the key and has had it always, so there is
    /// nothing to be kept for `next`.
    pub fn find<S: Snapshot>(
        &mut self,
        session: &Session,
        table: TableRef,
        index: IndexRef,
        key: &[u8],
        snapshot: &S,
    ) -> Result<Option<(RowId, VersionRef)>, EngineError> {
        debug_assert!(index.is_unique());
        count_scan(index);
        self.place = None;
        self.found.clear();
        let _pin = session.local.pin();
        let memory = session.tree_memory(Urgency::Ordinary);
        // SAFETY: pinned.
        let tree = unsafe { Tree::new(&index.storage().root, &memory) };
        self.keys_cleared = table.keys_cleared();
        let value = tree.get(key);
        reach(Point::ScanAfterEntries);
        let Some(value) = value else {
            return Ok(None);
        };
        let Some(row_id) = only_row_id(value) else {
            self.forget(table, index, Direction::Forward);
            self.entries.is_point = true;
            self.is_done = true;
            self.entries.begin_key.extend_from_slice(key);
            self.pending.push(table, value, 0)?;
            return self.next(session, snapshot);
        };
        let Some(anchor) = table.anchor(row_id) else {
            return Ok(None);
        };
        let pending = PendingRow {
            key: 0,
            row_id,
            anchor,
        };
        let (keys_cleared, scratch) = (self.keys_cleared, &mut self.scratch);
        let seen = visible_with_key(
            session,
            (table, index),
            &pending,
            keys_cleared,
            snapshot,
            scratch,
            |_| key,
        )?;
        Ok(seen.map(|version| (row_id, version)))
    }

    /// One entry at most. Of the rows it leads to a snapshot sees one, or several if it is older
    /// than the index.
    #[inline]
    fn begin_point(&mut self, table: TableRef, index: IndexRef, direction: Direction, key: &[u8]) {
        self.begin_anew(table, index, direction);
        self.entries.is_point = true;
        self.entries.begin_key.extend_from_slice(key);
    }

    #[inline]
    fn begin_anew(&mut self, table: TableRef, index: IndexRef, direction: Direction) {
        count_scan(index);
        self.forget(table, index, direction);
    }

    /// Forgets the scan before.
    #[inline]
    fn forget(&mut self, table: TableRef, index: IndexRef, direction: Direction) {
        self.place = Some((table, index));
        self.direction = direction;
        self.pending.clear();
        self.found.clear();
        self.entries.batch.clear();
        self.entries.batch.set_capacity(FIRST_ENTRIES);
        self.entries.begin_key.clear();
        self.end.clear();
        self.has_end = false;
        self.is_done = false;
        self.entries.is_point = false;
        self.entries.points.clear();
    }

    /// The next row the snapshot sees. Every call of a scan is given the same snapshot, registered
    /// from the first call to the last (or one that does not resolve early:
    /// [`Snapshot::may_resolve_early`]).
    #[inline]
    pub fn next<S: Snapshot>(
        &mut self,
        session: &Session,
        snapshot: &S,
    ) -> Result<Option<(RowId, VersionRef)>, EngineError> {
        match self.found.next() {
            Some(found) => Ok(Some(found)),
            None => self.look(session, snapshot),
        }
    }

    /// Looks the next rows up, and gives the first.
    fn look<S: Snapshot>(
        &mut self,
        session: &Session,
        snapshot: &S,
    ) -> Result<Option<(RowId, VersionRef)>, EngineError> {
        let Some((table, index)) = self.place else {
            return Ok(None);
        };
        let mut wanted = self.found.begin(snapshot.may_resolve_early());
        let mut pin = session.local.pin();
        let mut has_read = false;
        loop {
            while wanted > 0
                && let Some(pending) = self.pending.pop()
            {
                self.pending.prefetch_window();
                match self.check(session, (table, index), &pending, snapshot) {
                    Ok(None) => {}
                    Ok(Some(version)) => {
                        self.found.push(&pending, version);
                        wanted -= 1;
                    }
                    Err(error) if self.found.is_empty() => return Err(error),
                    // Its turn comes when those before it were handed out.
                    Err(_) => {
                        self.pending.push_back(pending);
                        break;
                    }
                }
            }
            if !self.found.is_empty() {
                return Ok(self.found.next());
            }
            if self.is_done {
                return Ok(None);
            }
            if std::mem::replace(&mut has_read, true) {
                // A whole batch of rows that no snapshot sees any more.
                drop(pin);
                snapshot.between_groups();
                pin = session.local.pin();
            }
            self.read(session, table, index)?;
            reach(Point::ScanAfterEntries);
            self.pending.prefetch_first();
        }
    }

    /// Adds the rows behind the next entries, without regard to snapshots: some are seen by none,
    /// or with another key. False: there are none.
    pub fn next_row_ids(
        &mut self,
        session: &Session,
        rows: &mut Vec<RowId>,
    ) -> Result<bool, EngineError> {
        let Some((table, index)) = self.place else {
            return Ok(false);
        };
        debug_assert!(self.found.is_empty());
        while self.pending.is_empty() {
            if self.is_done {
                return Ok(false);
            }
            let _pin = session.local.pin();
            self.read(session, table, index)?;
            reach(Point::ScanAfterEntries);
        }
        self.pending.take_row_ids(rows)?;
        Ok(true)
    }

    /// The key of the entry that led to the row which `next` gave last.
    pub fn entry_key(&self) -> &[u8] {
        self.entries.key(self.found.last_key())
    }

    /// Whether `next` would find nothing more, without looking.
    #[inline]
    pub fn is_exhausted(&self) -> bool {
        self.is_done && self.pending.is_empty() && self.found.is_empty()
    }

    /// Reads the next entries; their rows are pending then, of which there were none. Pinned.
    fn read(
        &mut self,
        session: &Session,
        table: TableRef,
        index: IndexRef,
    ) -> Result<(), EngineError> {
        let memory = session.tree_memory(Urgency::Ordinary);
        // SAFETY: `next` is pinned around this.
        let tree = unsafe { Tree::new(&index.storage().root, &memory) };
        self.keys_cleared = table.keys_cleared();
        let pending = &mut self.pending;
        if !self.entries.points.is_empty() {
            self.is_done = self.entries.points.look_up(&tree, table, pending)?;
            return Ok(());
        }
        if self.entries.is_point {
            self.is_done = true;
            if let Some(value) = tree.get(&self.entries.begin_key) {
                pending.push(table, value, 0)?;
            }
            return Ok(());
        }
        let bound = match self.begin {
            Begin::Start => Bound::Start,
            Begin::End => Bound::End,
            Begin::Included => Bound::Included(&self.entries.begin_key),
            Begin::Excluded => Bound::Excluded(&self.entries.begin_key),
        };
        let until = self.has_end.then_some(&self.end[..]);
        tree.scan_batch_until(bound, until, self.direction, &mut self.entries.batch);
        self.is_done = self.entries.batch.is_exhausted();
        let mut count = self.entries.batch.len();
        // The tree's end includes what is at it, and may have one entry more.
        while self.has_end && count > 0 && self.is_beyond(self.entries.batch.get(count - 1).0) {
            self.is_done = true;
            count -= 1;
        }
        // The next one last.
        for number in (0..count).rev() {
            let value = self.entries.batch.get(number).1;
            self.pending.push(table, value, number as u32)?;
        }
        if !self.is_done && count > 0 {
            self.begin = Begin::Excluded;
            self.entries.begin_key.clear();
            self.entries
                .begin_key
                .extend_from_slice(self.entries.batch.get(count - 1).0);
            self.entries
                .batch
                .set_capacity((self.entries.batch.capacity() * 4).min(ENTRIES_MAX));
        }
        Ok(())
    }

    /// Whether a key of the scan's direction is beyond its end.
    fn is_beyond(&self, key: &[u8]) -> bool {
        match self.direction {
            Direction::Forward => key >= &self.end[..],
            Direction::Backward => key < &self.end[..],
        }
    }

    /// The row behind an entry, if the snapshot sees it with the entry's key.
    fn check<S: Snapshot>(
        &mut self,
        session: &Session,
        place: (TableRef, IndexRef),
        pending: &PendingRow,
        snapshot: &S,
    ) -> Result<Option<VersionRef>, EngineError> {
        let (entries, keys_cleared) = (&self.entries, self.keys_cleared);
        let scratch = &mut self.scratch;
        visible_with_key(
            session,
            place,
            pending,
            keys_cleared,
            snapshot,
            scratch,
            |key| entries.key(key),
        )
    }
}

#[inline]
fn count_scan(index: IndexRef) {
    let scans = &index.storage().counters.scans;
    scans.fetch_add(1, Ordering::Relaxed);
}

/// The row behind an entry, if the snapshot sees it with the entry's key, which `key` gives by its
/// number. `keys_cleared`: the table's number from before the entry was read
/// ([`TableRef::keys_cleared`]). Pinned.
#[inline]
fn visible_with_key<'k, S: Snapshot>(
    session: &Session,
    (table, index): (TableRef, IndexRef),
    pending: &PendingRow,
    keys_cleared: u64,
    snapshot: &S,
    scratch: &mut KeyBuffer,
    key: impl FnOnce(u32) -> &'k [u8],
) -> Result<Option<VersionRef>, EngineError> {
    let Some(version) = row::visible(pending.anchor, snapshot) else {
        return Ok(None);
    };
    // The flag is loaded after the walk: a writer sets it before it publishes a version with
    // another key. A row id that an abort gave back may have a new row meanwhile. The number is
    // loaded after the flag: it advances before the flag goes.
    if !snapshot.sees_younger()
        && !pending.anchor.head().has(Head::KEYS_MOVED)
        && table.keys_cleared() == keys_cleared
    {
        return Ok(Some(version));
    }
    let has_null = session.encode_key(index, version.body(), scratch)?.0;
    if scratch.is_empty() {
        return Ok(None);
    }
    if index.form(has_null) == EntryForm::Suffixed {
        crate::index::append_row_id(scratch, pending.row_id)?;
    }
    Ok((scratch.as_slice() == key(pending.key)).then_some(version))
}
