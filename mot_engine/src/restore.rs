//! What recovery and replay need of rows, tables and indexes: the same memory as the sessions use, without transactions.
//!
//! Contract:
//! - One process (or, while loading, one thread per table part) restores; readers may run meanwhile (hot standby), and so may the sweeper.
//! - A restored version looks like one of a transaction still in progress: readers judge it by the clock.
//! - Slots that become free are not listed meanwhile (replay names slots itself); [`Session::finish_recovery`] lists them, before sessions
//!   may write.

use crate::clock::Clock;
use crate::errors::EngineError;
use crate::ids::{IndexId, Lsn, RelationKey, Slot, TableId, Xid};
use crate::index::{Build, build, enter_key};
use crate::key::{IndexDefinition, KeyBuffer, encode_row};
use crate::memory::{Purpose, Urgency};
use crate::reclaim::clean_row;
use crate::row::{
    Anchor, Head, IMAGE_BYTES_MIN, Judged, STAMP_BYTES, VersionRef, block_bytes, flags, judge_maker,
};
use crate::session::Session;
use crate::table::{IndexRef, TableRef, Walk};
use crate::transaction::{allocate_table, free_index, publish_index};
use std::sync::atomic::Ordering;

/// A tombstone's body in an image of the shortest length.
const TOMBSTONE_BODY: [u8; IMAGE_BYTES_MIN - STAMP_BYTES] = [0; IMAGE_BYTES_MIN - STAMP_BYTES];

/// A clock for building indexes before anybody can tell what became of transactions: every version gets its entry.
struct Undecided;

impl Clock for Undecided {
    fn is_current(&self, _: Xid) -> bool {
        false
    }
    fn is_in_progress(&self, _: Xid) -> bool {
        true
    }
    fn did_commit(&self, _: Xid) -> bool {
        false
    }
}

impl Session {
    /// Raises the counters that new ids are taken from.
    pub fn raise_ids(&self, next_table: TableId, next_index: IndexId) {
        let catalog = self.catalog();
        catalog
            .next_table_id
            .fetch_max(next_table.0, Ordering::AcqRel);
        catalog
            .next_index_id
            .fetch_max(next_index.0, Ordering::AcqRel);
    }

    /// The ids the next table and index will get.
    pub fn next_ids(&self) -> (TableId, IndexId) {
        let catalog = self.catalog();
        (
            TableId(catalog.next_table_id.load(Ordering::Acquire)),
            IndexId(catalog.next_index_id.load(Ordering::Acquire)),
        )
    }

    /// Keeps the storage with this id alive; `None` if there is none.
    pub fn hold_table(&self, id: TableId) -> Option<Walk<'_>> {
        self.catalog().hold(id)
    }

    /// An empty storage with a known id. `created` 0: long committed.
    pub fn restore_table(
        &self,
        id: TableId,
        key: RelationKey,
        created: Xid,
    ) -> Result<TableRef, EngineError> {
        self.raise_ids(TableId(id.0 + 1), IndexId(0));
        let table = allocate_table(self, id, key, created)?;
        self.catalog().link(table);
        Ok(table)
    }

    /// An index with a known id, built from all versions the table has. No test of uniqueness.
    pub fn restore_index(
        &self,
        id: IndexId,
        table: TableRef,
        definition: &IndexDefinition,
        created: Xid,
    ) -> Result<IndexRef, EngineError> {
        definition.validate()?;
        self.raise_ids(TableId(0), IndexId(id.0 + 1));
        let index = IndexRef::allocate(&self.local, id, table.0, definition, created.0)?;
        let restored = match build(self, &Undecided, table, index) {
            Ok(Build::Done(index)) => publish_index(table, index).map(|()| index),
            Ok(Build::Duplicate { .. }) => Err(EngineError::Corrupt {
                what: "undecided rows were taken for live ones",
            }),
            Err(error) => Err(error),
        };
        if restored.is_err() {
            // SAFETY: never published.
            unsafe { free_index(self, index) };
        }
        restored
    }

    /// Notes that a transaction dropped the table; its outcome decides.
    pub fn replay_drop_table(&self, table: TableRef, xid: Xid) {
        table.storage().dropped.store(xid.0, Ordering::Release);
    }

    /// Notes that a transaction dropped the index with this id; `false` if the table has none.
    pub fn replay_drop_index(&self, table: TableRef, id: IndexId, xid: Xid) -> bool {
        match table.all_indexes().find(|index| index.id() == id) {
            Some(index) => {
                index.storage().dropped.store(xid.0, Ordering::Release);
                true
            }
            None => false,
        }
    }

    /// Who created and dropped the storage; 0 when settled or not at all.
    pub fn table_marks(&self, table: TableRef) -> (Xid, Xid) {
        let storage = table.storage();
        (
            Xid(storage.created.load(Ordering::Acquire)),
            Xid(storage.dropped.load(Ordering::Acquire)),
        )
    }

    /// Every index the storage has, with who created and dropped it.
    pub fn index_marks(&self, table: TableRef) -> Vec<(IndexRef, Xid, Xid)> {
        let marks = |index: IndexRef| {
            let storage = index.storage();
            (
                index,
                Xid(storage.created.load(Ordering::Acquire)),
                Xid(storage.dropped.load(Ordering::Acquire)),
            )
        };
        table.all_indexes().map(marks).collect()
    }

    /// The LSN of the row's last logged change; `None` if the slot has no anchor.
    pub fn row_lsn(&self, table: TableRef, slot: Slot) -> Option<Lsn> {
        Some(table.anchor(slot)?.lsn())
    }

    /// Restores a row of which nothing but its LSN is left.
    pub fn replay_lsn(&self, table: TableRef, slot: Slot, lsn: Lsn) -> Result<(), EngineError> {
        let anchor = self.ensure_anchor(table, slot)?;
        anchor.raise_lsn(lsn);
        Ok(())
    }

    /// Puts a version on top of a row (`None`: a tombstone), makes its index entries, and raises the row's LSN. `hints` are COMMITTED or
    /// nothing. After an error nothing has changed, so the same call may be made again.
    #[allow(clippy::too_many_arguments)]
    pub fn replay_install(
        &self,
        table: TableRef,
        slot: Slot,
        body: Option<&[u8]>,
        xid: Xid,
        lsn: Lsn,
        hints: u32,
    ) -> Result<(), EngineError> {
        let anchor = self.ensure_anchor(table, slot)?;
        let _pin = self.local.pin();
        let kind = if body.is_some() { 0 } else { flags::TOMBSTONE };
        let body = body.unwrap_or(&TOMBSTONE_BODY);
        let bytes = block_bytes((STAMP_BYTES + body.len()).max(IMAGE_BYTES_MIN));
        let block = self
            .local
            .allocate(bytes, Purpose::Rows, Urgency::Reserve)?;
        // SAFETY: the block is fresh and large enough.
        let version = unsafe { VersionRef::write_body(block, body, xid, slot, hints | kind) };
        if let Err(error) = self.replay_publish(table, anchor, version) {
            // SAFETY: never published.
            unsafe { self.local.free(block, bytes, Purpose::Rows) };
            return Err(error);
        }
        if version.changed_keys()
            && let Err(error) = self.replay_enter(table, slot, version)
        {
            version.add_flags(flags::ABORTED);
            clean_row(self, table, slot, |head, taken| taken.take(head, version));
            return Err(error);
        }
        let below = live_below(version);
        let latched = anchor.latch();
        anchor.raise_lsn(lsn);
        version.add_flags(flags::LOGGED);
        drop(latched);
        let change = i64::from(!version.is_tombstone()) - i64::from(below.is_some());
        let counters = table.counters();
        counters.rows.fetch_add(change, Ordering::Relaxed);
        let bytes = |version: VersionRef| version.image_bytes() as i64;
        let new_bytes = if version.is_tombstone() {
            0
        } else {
            bytes(version)
        };
        counters
            .row_bytes
            .fetch_add(new_bytes - below.map_or(0, bytes), Ordering::Relaxed);
        if version.next().is_some() || version.is_tombstone() || hints & flags::COMMITTED == 0 {
            table.set_dirty(slot);
        }
        Ok(())
    }

    fn ensure_anchor(&self, table: TableRef, slot: Slot) -> Result<&'static Anchor, EngineError> {
        let storage = table.storage();
        storage
            .directory
            .ensure(&self.local, slot, Urgency::Reserve)?;
        storage.slots_end.fetch_max(slot.0 + 1, Ordering::AcqRel);
        table.anchor(slot).ok_or(EngineError::Corrupt {
            what: "a slot that was just made has no anchor",
        })
    }

    fn replay_publish(
        &self,
        table: TableRef,
        anchor: &Anchor,
        version: VersionRef,
    ) -> Result<(), EngineError> {
        loop {
            let head = anchor.head();
            let (changed, moved) = self.compare_keys(table, head, version)?;
            version.add_flags(changed);
            version.set_next(head);
            let new = head.with_address(version.address()).with_flags(moved);
            if anchor.publish(head, new) {
                return Ok(());
            }
            anchor.wait_unlatched();
        }
    }

    /// How the version's keys compare with all others of the chain: flags for the version and for the head.
    fn compare_keys(
        &self,
        table: TableRef,
        head: Head,
        version: VersionRef,
    ) -> Result<(u32, u64), EngineError> {
        if version.is_tombstone() {
            return Ok((0, 0));
        }
        let mut others = false;
        let mut differs = false;
        let (mut key, mut other_key) = (KeyBuffer::new(), KeyBuffer::new());
        let mut at = head.version();
        while let Some(other) = at {
            at = other.next();
            if other.is_lock() || other.is_tombstone() {
                continue;
            }
            others = true;
            for index in table.all_indexes() {
                let definition = self.definition(index)?;
                encode_row(definition, version.image(), &mut key)?;
                encode_row(definition, other.image(), &mut other_key)?;
                differs |= key.as_slice() != other_key.as_slice();
            }
        }
        let changed = if differs || !others {
            flags::KEYS_CHANGED
        } else {
            0
        };
        Ok((changed, if differs { Head::KEYS_MOVED } else { 0 }))
    }

    fn replay_enter(
        &self,
        table: TableRef,
        slot: Slot,
        version: VersionRef,
    ) -> Result<(), EngineError> {
        for index in table.all_indexes() {
            let definition = self.definition(index)?;
            self.with_keys(|keys| {
                let [key, scratch, _] = keys;
                let has_null = encode_row(definition, version.image(), key)?.0;
                let unchecked: Option<&Undecided> = None;
                enter_key(self, table, index, has_null, key, scratch, slot, unchecked)
            })?;
        }
        Ok(())
    }

    /// Settles who exists: storages and indexes of aborted creators and committed droppers go to the doomed, the others lose their marks. Only
    /// while no session writes (a standby, the end of recovery): a writer settles its own.
    pub fn settle_definitions(&self, clock: &impl Clock) {
        let ended = |xid: u64| {
            let xid = Xid(xid);
            (xid.is_some() && !clock.is_in_progress(xid)).then(|| clock.did_commit(xid))
        };
        for walk in self.tables() {
            let table = walk.table();
            let storage = table.storage();
            let created = ended(storage.created.load(Ordering::Acquire));
            let dropped = ended(storage.dropped.load(Ordering::Acquire));
            if created == Some(false) || dropped == Some(true) {
                self.catalog().doom(table);
                continue;
            }
            if created == Some(true) {
                storage.created.store(0, Ordering::Release);
            }
            if dropped == Some(false) {
                storage.dropped.store(0, Ordering::Release);
            }
            for index in table.all_indexes() {
                let storage = index.storage();
                let created = ended(storage.created.load(Ordering::Acquire));
                let dropped = ended(storage.dropped.load(Ordering::Acquire));
                if created == Some(false) || dropped == Some(true) {
                    self.catalog().doom_index(index);
                    continue;
                }
                if created == Some(true) {
                    storage.created.store(0, Ordering::Release);
                }
                if dropped == Some(false) {
                    storage.dropped.store(0, Ordering::Release);
                }
            }
        }
    }

    /// The end of recovery: settles definitions, lists free slots, counts rows. Call it before the state becomes `Ready`.
    pub fn finish_recovery(&self, clock: &impl Clock) {
        self.settle_definitions(clock);
        for walk in self.tables() {
            self.list_free_slots(clock, walk.table());
        }
    }

    fn list_free_slots(&self, clock: &impl Clock, table: TableRef) {
        let (mut rows, mut row_bytes) = (0, 0);
        let mut slot = table.slots_end().0;
        // Backwards: the list is a stack, so the lowest slots are used first.
        while slot > 0 {
            let _pin = self.local.pin();
            let first = slot.saturating_sub(1024);
            while slot > first {
                slot -= 1;
                let Some(anchor) = table.anchor(Slot(slot)) else {
                    continue;
                };
                let head = anchor.head();
                if head.is_free() {
                    continue;
                }
                if head.is_empty() {
                    crate::table::free_slot(table, Slot(slot));
                } else if let Some(version) = newest_committed(head, clock) {
                    rows += 1;
                    row_bytes += version.image_bytes() as i64;
                }
            }
        }
        table.counters().rows.store(rows, Ordering::Relaxed);
        table
            .counters()
            .row_bytes
            .store(row_bytes, Ordering::Relaxed);
    }
}

/// The state below a version, if that is a live row as far as one can tell.
fn live_below(version: VersionRef) -> Option<VersionRef> {
    let mut at = version.next();
    while let Some(below) = at {
        if below.flags() & (flags::LOCK_ONLY | flags::ABORTED) == 0 {
            return (!below.is_tombstone()).then_some(below);
        }
        at = below.next();
    }
    None
}

/// The newest committed state, unless the row is deleted.
fn newest_committed(head: Head, clock: &impl Clock) -> Option<VersionRef> {
    let mut at = head.version();
    while let Some(version) = at {
        if !version.is_lock() && judge_maker(version, clock) == Judged::Committed {
            return (!version.is_tombstone()).then_some(version);
        }
        at = version.next();
    }
    None
}
