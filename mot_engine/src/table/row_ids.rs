//! Handing out row ids.
//!
//! A session takes row ids of a table in batches, from the free list or from the end, so that the
//! common insert takes no shared atomic. What is left of a batch goes back when the session leaves.
//! A crash needs nothing: recovery finds the used row ids and lists the others.

use super::catalog::Catalog;
use super::storage::TableRef;
use crate::errors::EngineError;
use crate::ids::{RelationKey, RowId, TableId};
use crate::memory::{LocalMemory, Urgency};
use std::sync::atomic::Ordering;

/// Row ids of the first batch a session takes of a table.
const BATCH_ROW_IDS_MIN: u64 = 8;
/// A session that inserts much takes this many at a time.
const BATCH_ROW_IDS_MAX: u64 = 1024;
/// Most row ids of a batch that a rollback gives back: each costs a step. A session that inserts
/// much has a larger batch and keeps it.
const GIVEN_BACK_MAX: u64 = 256;
/// Tables whose batches a session keeps at once.
const BATCHES_MAX: usize = 32;

struct Batch {
    table: TableRef,
    /// As in the table, which may be gone when they are asked for.
    key: RelationKey,
    id: TableId,
    /// Taken from the end: next and end.
    next: u64,
    end: u64,
    /// Size of the next batch.
    size: u64,
    /// Taken from the free list.
    free: Vec<RowId>,
}

/// The batches of a session.
#[derive(Default)]
pub(crate) struct RowIdBatches {
    batches: Vec<Batch>,
}

impl RowIdBatches {
    /// A row id of the table with an empty anchor that no other session has.
    pub(crate) fn take(
        &mut self,
        memory: &LocalMemory,
        catalog: &Catalog,
        table: TableRef,
    ) -> Result<RowId, EngineError> {
        let position = match self.batches.iter().position(|batch| batch.id == table.id()) {
            Some(position) => position,
            None => self.open(catalog, table)?,
        };
        let batch = &mut self.batches[position];
        if let Some(row_id) = batch.free.pop() {
            return Ok(row_id);
        }
        if batch.next == batch.end {
            batch.refill(memory)?;
            if let Some(row_id) = batch.free.pop() {
                return Ok(row_id);
            }
        }
        let row_id = RowId(batch.next);
        table
            .storage()
            .directory
            .ensure(memory, row_id, Urgency::Ordinary)?;
        batch.next += 1;
        Ok(row_id)
    }

    fn open(&mut self, catalog: &Catalog, table: TableRef) -> Result<usize, EngineError> {
        if self.batches.len() == BATCHES_MAX {
            self.batches.remove(0).give_back_if_alive(catalog);
        }
        let mut free = Vec::new();
        free.try_reserve(BATCH_ROW_IDS_MAX as usize)
            .map_err(|_| EngineError::OutOfProcessMemory)?;
        self.batches.push(Batch {
            table,
            key: table.key(),
            id: table.id(),
            next: 0,
            end: 0,
            size: BATCH_ROW_IDS_MIN,
            free,
        });
        Ok(self.batches.len() - 1)
    }

    /// Gives a table's unused row ids back, if they are few. A rollback calls it before it frees
    /// the row ids that it used, so that the next rows lie in the order of their making.
    pub(crate) fn give_back_of(&mut self, table: TableRef) {
        let of_table = |batch: &Batch| {
            batch.id == table.id() && batch.left() <= GIVEN_BACK_MAX && batch.can_be_listed()
        };
        if let Some(position) = self.batches.iter().position(of_table) {
            self.batches.remove(position).give_back(table);
        }
    }

    /// Forgets a table that is about to be freed.
    pub(crate) fn forget(&mut self, table: TableRef) {
        self.batches.retain(|batch| batch.id != table.id());
    }

    /// Gives all unused row ids back.
    pub(crate) fn give_back(&mut self, catalog: &Catalog) {
        for batch in self.batches.drain(..) {
            batch.give_back_if_alive(catalog);
        }
    }
}

impl Batch {
    fn refill(&mut self, memory: &LocalMemory) -> Result<(), EngineError> {
        let storage = self.table.storage();
        let size = self.size;
        self.size = (self.size * 2).min(BATCH_ROW_IDS_MAX);
        if storage.free_count.load(Ordering::Relaxed) > 0 {
            let _latched = storage.free_latch.lock();
            for _ in 0..size {
                let first = storage.free_first.load(Ordering::Relaxed);
                if first == 0 {
                    break;
                }
                let row_id = RowId(first - 1);
                let anchor = self
                    .table
                    .anchor(row_id)
                    .expect("a free row id has an anchor");
                debug_assert!(anchor.head().is_free());
                let next = anchor.next_free().map_or(0, |row_id| row_id.0 + 1);
                storage.free_first.store(next, Ordering::Relaxed);
                storage.free_count.fetch_sub(1, Ordering::Relaxed);
                anchor.set_empty();
                self.free.push(row_id);
            }
            if !self.free.is_empty() {
                // Handed out from the end of the vector: low ones first, as far as one batch goes.
                self.free.sort_unstable_by(|one, other| other.cmp(one));
                return Ok(());
            }
        }
        let first = storage.row_ids_end.fetch_add(size, Ordering::AcqRel);
        self.next = first;
        self.end = first + size;
        storage
            .directory
            .ensure(memory, RowId(first), Urgency::Ordinary)
    }

    /// The session holds no relation lock here: the table may be gone.
    fn give_back_if_alive(self, catalog: &Catalog) {
        if let Some(walk) = catalog.hold_of(self.key, self.id) {
            self.give_back(walk.table());
        }
    }

    /// Row ids that no session has got yet.
    fn left(&self) -> u64 {
        self.end - self.next + self.free.len() as u64
    }

    /// Whether all of them have anchors: [`free_row_id`] passes over those that have none.
    fn can_be_listed(&self) -> bool {
        self.next == self.end || self.table.anchor(RowId(self.end - 1)).is_some()
    }

    /// High row ids first: the list is last in, first out.
    fn give_back(&self, table: TableRef) {
        let rest = (self.next..self.end).rev().map(RowId);
        for row_id in rest.chain(self.free.iter().copied()) {
            free_row_id(table, row_id);
        }
    }
}

/// Puts a row id that has no versions and no entries on the table's free list.
pub(crate) fn free_row_id(table: TableRef, row_id: RowId) {
    let storage = table.storage();
    // A row id of an unfinished batch may lie in a segment that was never made: it has nothing to
    // reuse.
    let Some(anchor) = table.anchor(row_id) else {
        return;
    };
    debug_assert!(anchor.head().is_empty() && !anchor.head().is_free());
    let _latched = storage.free_latch.lock();
    let first = storage.free_first.load(Ordering::Relaxed);
    anchor.set_free((first > 0).then(|| RowId(first - 1)));
    storage.free_first.store(row_id.0 + 1, Ordering::Relaxed);
    storage.free_count.fetch_add(1, Ordering::Relaxed);
}
