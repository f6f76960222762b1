//! A table's storage in the arena.
//!
//! What may touch what when:
//! - `id`, `key`, `persistence` never change. `created` and `dropped` are transaction ids, 0 when
//!   resolved: a relation's storage is the one whose creator is current or committed and whose
//!   dropper is neither. They are stored by the session that holds the relation's
//!   AccessExclusiveLock, by replay, and resolved by commit, or as `makers.rs` says.
//! - `indexes` is written under the same lock (or ShareLock for CREATE INDEX) and read by any
//!   process; a place of it is filled by a release store after the index is complete, and emptied
//!   only by the process that frees the table or the index.
//! - `walkers` keeps the storage alive for holders of no relation lock (checkpoint, reclaimer):
//!   raised and lowered under the catalog's latch; a table pending free is freed only at 0.

use super::by_oid::PlacesByOid;
use super::directory::Directory;
use super::index::{IndexRef, IndexStorage};
use super::makers::Makers;
use super::persistence::Persistence;
use crate::ids::{Lsn, RelationKey, RowId, TableId, Xid};
use crate::limits::INDEXES_PER_TABLE_MAX;
use crate::memory::Latch;
use crate::row::{Anchor, VersionRef};
use crate::sync;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};

/// Counters of a table, for views and for deciding when to sweep. Only ever indicative while
/// sessions write. In a cache line of their own: what is beside them is read by every process
/// that reads or writes a row.
#[repr(C, align(64))]
#[derive(Default)]
pub struct TableCounters {
    /// Live rows.
    pub rows: AtomicI64,
    /// Bytes of live rows' images, for averages.
    pub row_bytes: AtomicI64,
    /// Committed inserts, updates, deletes.
    pub inserted: AtomicU64,
    pub updated: AtomicU64,
    pub deleted: AtomicU64,
    /// Scans begun and rows they returned.
    pub scans: AtomicU64,
    pub rows_scanned: AtomicU64,
    /// Versions left behind that the horizon did not yet allow to remove.
    pub stale_versions: AtomicI64,
}

impl TableCounters {
    /// Sets back what counts events since the start of the server; what describes the contents
    /// stays.
    pub(crate) fn restart(&self) {
        let events = [
            &self.inserted,
            &self.updated,
            &self.deleted,
            &self.scans,
            &self.rows_scanned,
        ];
        for counter in events {
            counter.store(0, Ordering::Relaxed);
        }
    }
}

#[repr(C)]
pub(crate) struct TableStorage {
    pub(crate) id: TableId,
    pub(crate) key: RelationKey,
    pub(crate) persistence: Persistence,
    pub(crate) created: AtomicU64,
    pub(crate) dropped: AtomicU64,
    /// Where the records of its creation and of its drop end; 0 while not logged. Reset before
    /// `dropped` names another transaction.
    pub(crate) created_lsn: AtomicU64,
    pub(crate) dropped_lsn: AtomicU64,
    /// 1: its creator has copied rows into it, with their makers (`transaction/copy.rs`).
    pub(crate) holds_copies: AtomicU32,
    /// See `makers.rs`.
    pub(super) given_up: AtomicU32,
    /// See [`TableRef::copied_by`].
    pub(crate) copied_by: AtomicU64,
    /// Of a temporary table: where its session's sum of bytes is, and its own bytes in it
    /// (`session/temporary.rs`).
    pub(crate) owner: u64,
    pub(crate) charged: AtomicI64,
    /// Next storage in the catalog's bucket.
    pub(crate) next: AtomicU64,
    /// Next storage in the list of those pending free.
    pub(crate) next_pending_free: AtomicU64,
    pub(crate) walkers: AtomicU32,
    /// 1 once unlinked from the catalog.
    pub(crate) is_pending_free: AtomicU32,
    /// One past the highest row id ever handed out.
    pub(crate) row_ids_end: AtomicU64,
    pub(crate) free_latch: Latch,
    /// First free row id plus 1; 0 is none. Under `free_latch`.
    pub(crate) free_first: AtomicU64,
    pub(crate) free_count: AtomicU64,
    /// 1 once freed row ids are listed: not while the table is loaded and replayed, whose end lists
    /// those that are free then.
    pub(crate) lists_free: AtomicU32,
    /// Which processes need that nothing is reclaimed meanwhile (index builds, checks), and which
    /// are reclaiming right now: see `reclaim::Quiet`.
    pub(crate) quiet: AtomicU32,
    pub(crate) sweepers: AtomicU32,
    pub(crate) counters: TableCounters,
    pub(crate) index_count: AtomicU32,
    /// How many indexes it ever got: raised behind the word of the new one.
    pub(crate) indexes_published: AtomicU32,
    pub(crate) indexes: [AtomicU64; INDEXES_PER_TABLE_MAX],
    pub(super) places_by_oid: PlacesByOid,
    /// See [`TableRef::keys_cleared`]. Written seldom, as what is beside it.
    pub(crate) keys_cleared: sync::AtomicU64,
    /// Which processes put images in the place of others now (`transaction/reform.rs`).
    pub(crate) reforming: AtomicU32,
    /// See [`TableRef::keeps_former_images`]: no snapshot was older than this when the last one was
    /// put there.
    pub(crate) reformed_below: AtomicU64,
    /// One more than the engine's round in which that was.
    pub(crate) reformed_round: AtomicU64,
    pub(crate) directory: Directory,
}

/// A table's storage. Valid while the caller holds PostgreSQL's lock on the relation (taken before
/// it was looked up), or is counted as a walker.
#[derive(Copy, Clone, Eq, PartialEq, Debug, Hash)]
pub struct TableRef(pub(crate) NonNull<TableStorage>);

impl TableRef {
    pub(crate) fn storage<'a>(self) -> &'a TableStorage {
        // SAFETY: the type's contract: the storage is kept alive by the relation lock or the walker
        // count.
        unsafe { &*self.0.as_ptr() }
    }

    /// Its own id, never reused.
    pub fn id(self) -> TableId {
        self.storage().id
    }

    /// Whose storage it is.
    pub fn key(self) -> RelationKey {
        self.storage().key
    }

    /// What of it outlives the server.
    #[inline]
    pub fn persistence(self) -> Persistence {
        self.storage().persistence
    }

    /// Whether changes of its rows are logged.
    #[inline]
    pub fn is_logged(self) -> bool {
        self.persistence().logs_rows()
    }

    /// Its creator and its dropper.
    pub(crate) fn makers<'a>(self) -> Makers<'a> {
        let storage = self.storage();
        Makers {
            created: &storage.created,
            dropped: &storage.dropped,
            given_up: &storage.given_up,
        }
    }

    /// The transaction that copied the rows from an older storage, if they are here as its own (a
    /// standby): a snapshot to which it is not over would miss rows that it has seen there. Raised
    /// before the storage can be found.
    pub fn copied_by(self) -> Option<Xid> {
        let xid = Xid(self.storage().copied_by.load(Ordering::Acquire));
        xid.is_some().then_some(xid)
    }

    /// The anchor of a row id, if the row id was ever handed out.
    #[inline]
    pub(crate) fn anchor<'a>(self, row_id: RowId) -> Option<&'a Anchor> {
        self.storage().directory.anchor(row_id)
    }

    /// The anchors from a row id on that lie one behind the other; none if the row id was never
    /// handed out.
    #[inline]
    pub(crate) fn anchors<'a>(self, row_id: RowId) -> &'a [Anchor] {
        self.storage().directory.run(row_id)
    }

    /// How often a row of which keys had moved was taken to be one with one key an index again: a
    /// process that has read an entry before that must compare keys (reclaim/clear_keys_moved.rs).
    /// What was removed from indexes before a number was stored, no process finds that has read it.
    #[inline]
    pub(crate) fn keys_cleared(self) -> u64 {
        self.storage().keys_cleared.load(Ordering::Acquire)
    }

    /// Makes scans that have read entries compare keys. Before a row's KEYS_MOVED goes.
    pub(crate) fn note_keys_cleared(self) {
        self.storage().keys_cleared.fetch_add(1, Ordering::AcqRel);
    }

    /// Whether a process may still read an image whose place another one took. That one was made by
    /// the same transaction, so the horizon alone does not tell. Asked behind a look at the head.
    pub(crate) fn keeps_former_images(self, horizon: Xid) -> bool {
        let storage = self.storage();
        storage.reforming.load(Ordering::Acquire) != 0
            || storage.reformed_below.load(Ordering::Acquire) >= horizon.0
    }

    /// Whether images were put in the place of others at this round or later: rows that changed
    /// without another LSN. After the wait for those that were logging.
    pub(crate) fn was_reformed(self, round: u64) -> bool {
        self.storage().reformed_round.load(Ordering::Acquire) > round
    }

    /// Notes that they were. `round` is the engine's, taken by the caller after it raised its
    /// `logging` flag.
    pub(crate) fn note_reformed(self, round: u64) {
        let reformed = &self.storage().reformed_round;
        reformed.fetch_max(round + 1, Ordering::AcqRel);
    }

    /// Notes that the row may have something to reclaim: called after that something was left
    /// behind.
    pub(crate) fn set_dirty(self, row_id: RowId) {
        self.storage().directory.set_dirty(row_id);
    }

    /// Makers `version` as logged by a record that ends at `lsn`: on the row, then on its range.
    /// `round` is the engine's, taken by the caller after it raised its `logging` flag.
    pub(crate) fn mark_logged(
        self,
        row_id: RowId,
        anchor: &Anchor,
        version: VersionRef,
        lsn: Lsn,
        round: u64,
    ) {
        anchor.mark_version(version, lsn);
        if let Some(changed) = self.storage().directory.changed(row_id)
            && changed.load(Ordering::Relaxed) != round
        {
            changed.fetch_max(round, Ordering::AcqRel);
        }
    }

    /// Whether a row of the range that `row_id` begins was logged at this round or later. After the
    /// wait for those that were logging.
    pub(crate) fn has_changed(self, row_id: RowId, round: u64) -> bool {
        let changed = self.storage().directory.changed(row_id);
        changed.is_some_and(|changed| changed.load(Ordering::Acquire) >= round)
    }

    /// One past the highest row id ever handed out.
    pub fn row_ids_end(self) -> RowId {
        RowId(self.storage().row_ids_end.load(Ordering::Acquire))
    }

    /// Live rows, as far as committed.
    pub fn row_count_estimate(self) -> u64 {
        self.storage().counters.rows.load(Ordering::Relaxed).max(0) as u64
    }

    /// Average bytes of a live row's image; 0 for an empty table.
    pub fn row_bytes_average(self) -> u64 {
        let rows = self.row_count_estimate();
        let bytes = self
            .storage()
            .counters
            .row_bytes
            .load(Ordering::Relaxed)
            .max(0) as u64;
        bytes.checked_div(rows).unwrap_or(0)
    }

    /// Counters for views.
    pub fn counters<'a>(self) -> &'a TableCounters {
        &self.storage().counters
    }

    /// Bytes of the anchors.
    pub fn anchor_bytes(self) -> u64 {
        self.storage().directory.bytes()
    }

    /// Whether one more index has a place.
    pub(crate) fn has_place_for_index(self) -> bool {
        let words = &self.storage().indexes;
        words.iter().any(|word| word.load(Ordering::Acquire) == 0)
    }

    /// Every index that physically exists, dropped ones included until they are freed: what writers
    /// maintain.
    pub(crate) fn all_indexes(self) -> impl Iterator<Item = IndexRef> {
        let count = self.storage().index_count.load(Ordering::Acquire) as usize;
        (0..count).filter_map(move |place| self.index_at(place))
    }

    /// The index at a place.
    #[inline]
    pub(super) fn index_at(self, place: usize) -> Option<IndexRef> {
        let word = self.storage().indexes[place].load(Ordering::Acquire);
        NonNull::new(word as *mut IndexStorage).map(IndexRef)
    }
}
