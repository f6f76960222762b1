//! The catalog: which storages exist, and which is a relation's.
//!
//! A hash of short lists in the shared root. A relation can have several storages at a time: the
//! one before and the one after an uncommitted TRUNCATE, and what an aborted or dropped one leaves
//! until it is freed.
//!
//! Protocol:
//! - Readers walk a bucket's list pinned; storages are linked with a release store and retired
//!   through `pending_free`.
//! - Linking, unlinking, and the walker counts change under `latch`. No `Clock` call happens under
//!   it.
//! - A storage that is unlinked goes to the list of those pending free, unless its session frees it
//!   at once (`transaction/pending_free.rs`). The process that takes it from there, once its walker
//!   count is 0, is the only one to free it: the reclaimer, or a replay that no session reads
//!   beside. Its contents are freed at once (only lock holders and walkers touch them), its header
//!   is retired (a pinned reader of the list may stand on it).

use super::index::{IndexRef, IndexStorage};
use super::storage::{TableRef, TableStorage};
use crate::clock::Clock;
use crate::ids::{RelationKey, TableId, Xid};
use crate::memory::Latch;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// Buckets of the hash: lists stay short up to some ten thousand tables.
const BUCKETS: usize = 4096;

#[repr(C)]
pub(crate) struct Catalog {
    latch: Latch,
    pub(crate) next_table_id: AtomicU64,
    pub(crate) next_index_id: AtomicU64,
    pending_free: AtomicU64,
    pending_free_indexes: AtomicU64,
    buckets: [AtomicU64; BUCKETS],
}

/// Keeps a storage alive without a relation lock. Dropping it lets go.
pub struct Walk<'a> {
    catalog: &'a Catalog,
    table: TableRef,
}

impl Walk<'_> {
    /// The storage kept alive.
    pub fn table(&self) -> TableRef {
        self.table
    }
}

impl Drop for Walk<'_> {
    fn drop(&mut self) {
        let _latched = self.catalog.latch.lock();
        self.table.storage().walkers.fetch_sub(1, Ordering::Relaxed);
    }
}

fn bucket(key: RelationKey) -> usize {
    let place = u64::from(key.database) << 32 | u64::from(key.tablespace ^ key.backend << 16);
    let mixed =
        (place.rotate_left(17) ^ u64::from(key.relation)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 40) as usize % BUCKETS
}

/// Whether the definition with these marks exists for the caller.
pub(crate) fn exists(created: u64, dropped: u64, clock: &impl Clock) -> bool {
    let happened = |xid: u64| {
        let xid = Xid(xid);
        clock.is_current(xid) || (!clock.is_in_progress(xid) && clock.did_commit(xid))
    };
    (created == 0 || happened(created)) && !(dropped != 0 && happened(dropped))
}

impl Catalog {
    fn list(&self, key: RelationKey) -> impl Iterator<Item = TableRef> {
        let mut at = self.buckets[bucket(key)].load(Ordering::Acquire);
        std::iter::from_fn(move || {
            let table = TableRef(NonNull::new(at as *mut TableStorage)?);
            at = table.storage().next.load(Ordering::Acquire);
            Some(table)
        })
    }

    /// The relation's storage for the caller, newest first. The caller is pinned.
    pub(crate) fn find(&self, key: RelationKey, clock: &impl Clock) -> Option<TableRef> {
        self.list(key).find(|table| {
            let storage = table.storage();
            storage.key == key
                && exists(
                    storage.created.load(Ordering::Acquire),
                    storage.dropped.load(Ordering::Acquire),
                    clock,
                )
        })
    }

    /// No process is in the middle of a change.
    pub(crate) fn is_quiescent(&self) -> bool {
        self.latch.is_free()
    }

    /// Hands out every linked storage, without the latch: nothing else uses the catalog. `look`
    /// says before the storage is used any further whether it can be one; false if it said no.
    pub(crate) fn walk_links(&self, mut look: impl FnMut(TableRef) -> bool) -> bool {
        for first in &self.buckets {
            let mut at = first.load(Ordering::Acquire);
            while let Some(storage) = NonNull::new(at as *mut TableStorage) {
                let table = TableRef(storage);
                if !look(table) {
                    return false;
                }
                at = table.storage().next.load(Ordering::Acquire);
            }
        }
        true
    }

    /// Makes a storage known.
    pub(crate) fn link(&self, table: TableRef) {
        let _latched = self.latch.lock();
        let first = &self.buckets[bucket(table.key())];
        table
            .storage()
            .next
            .store(first.load(Ordering::Relaxed), Ordering::Relaxed);
        first.store(table.0.as_ptr() as u64, Ordering::Release);
    }

    /// Takes a storage out of the catalog, into the list of those pending free. Idempotent.
    pub(crate) fn defer_free(&self, table: TableRef) {
        let _latched = self.latch.lock();
        if self.unlink(table) {
            self.put_pending_free(table);
        }
    }

    /// Takes a storage out of the catalog, to be freed by the caller alone: one that no process
    /// walks. `false` for others, and for one that is pending free; nothing has happened then.
    pub(crate) fn take(&self, table: TableRef) -> bool {
        let _latched = self.latch.lock();
        table.storage().walkers.load(Ordering::Relaxed) == 0 && self.unlink(table)
    }

    /// Takes a storage out of its list; `false` if it was. Under the latch.
    fn unlink(&self, table: TableRef) -> bool {
        let storage = table.storage();
        if storage.is_pending_free.swap(1, Ordering::AcqRel) != 0 {
            return false;
        }
        let address = table.0.as_ptr() as u64;
        let mut link = &self.buckets[bucket(table.key())];
        loop {
            let at = link.load(Ordering::Relaxed);
            if at == address {
                break;
            }
            let Some(next) = NonNull::new(at as *mut TableStorage) else {
                unreachable!("a storage that is not pending free is linked");
            };
            link = &TableRef(next).storage().next;
        }
        // `next` of the unlinked storage stays: a reader that is on it continues.
        link.store(storage.next.load(Ordering::Relaxed), Ordering::Release);
        true
    }

    /// Under the latch.
    fn put_pending_free(&self, table: TableRef) {
        let first = self.pending_free.load(Ordering::Relaxed);
        table
            .storage()
            .next_pending_free
            .store(first, Ordering::Relaxed);
        self.pending_free
            .store(table.0.as_ptr() as u64, Ordering::Relaxed);
    }

    /// Under the latch.
    fn put_pending_free_index(&self, index: IndexRef) {
        let first = self.pending_free_indexes.load(Ordering::Relaxed);
        index
            .storage()
            .next_pending_free
            .store(first, Ordering::Relaxed);
        self.pending_free_indexes
            .store(index.address(), Ordering::Relaxed);
    }

    /// Takes a storage that is pending free and that no process walks, to free it.
    pub(crate) fn take_pending_free(&self) -> Option<TableRef> {
        let _latched = self.latch.lock();
        let mut link = &self.pending_free;
        loop {
            let storage = NonNull::new(link.load(Ordering::Relaxed) as *mut TableStorage)?;
            let table = TableRef(storage);
            let next = &table.storage().next_pending_free;
            if table.storage().walkers.load(Ordering::Relaxed) == 0 {
                link.store(next.load(Ordering::Relaxed), Ordering::Relaxed);
                return Some(table);
            }
            link = next;
        }
    }

    /// Gives a storage back that was taken and not freed.
    pub(crate) fn give_back_pending_free(&self, table: TableRef) {
        let _latched = self.latch.lock();
        self.put_pending_free(table);
    }

    /// As `give_back_pending_free`, an index.
    pub(crate) fn give_back_pending_free_index(&self, index: IndexRef) {
        let _latched = self.latch.lock();
        self.put_pending_free_index(index);
    }

    /// Whether a storage that is pending free cannot be freed yet because a process walks it.
    pub(crate) fn holds_pending_free(&self) -> bool {
        // A storage that is unlinked a moment later is seen at the next look.
        if self.pending_free.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let _latched = self.latch.lock();
        let mut at = self.pending_free.load(Ordering::Relaxed);
        while let Some(storage) = NonNull::new(at as *mut TableStorage) {
            let storage = TableRef(storage).storage();
            if storage.walkers.load(Ordering::Relaxed) != 0 {
                return true;
            }
            at = storage.next_pending_free.load(Ordering::Relaxed);
        }
        false
    }

    /// Takes an index out of its table, into the list of those pending free. Nothing happens if the
    /// table itself is pending free or the index is out already.
    pub(crate) fn defer_free_of_index(&self, index: IndexRef) {
        let _latched = self.latch.lock();
        if Catalog::unlink_index(index) {
            self.put_pending_free_index(index);
        }
    }

    /// Takes an index out of its table; `false` if it was, or the table itself is pending free.
    /// Under the latch.
    fn unlink_index(index: IndexRef) -> bool {
        let table = TableRef(index.storage().table);
        if table.storage().is_pending_free.load(Ordering::Relaxed) != 0 {
            return false;
        }
        table.storage().indexes.iter().any(|word| {
            word.compare_exchange(index.address(), 0, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        })
    }

    /// Takes an index that is pending free, to free it.
    pub(crate) fn take_pending_free_index(&self) -> Option<IndexRef> {
        let _latched = self.latch.lock();
        let first = self.pending_free_indexes.load(Ordering::Relaxed);
        let index = IndexRef(NonNull::new(first as *mut IndexStorage)?);
        let next = index.storage().next_pending_free.load(Ordering::Relaxed);
        self.pending_free_indexes.store(next, Ordering::Relaxed);
        Some(index)
    }

    /// Keeps the storage with this id alive, if it is still linked. Looks through all lists: a
    /// caller that knows the relation asks `hold_of`.
    pub(crate) fn hold(&self, id: TableId) -> Option<Walk<'_>> {
        let _latched = self.latch.lock();
        self.buckets
            .iter()
            .find_map(|first| self.hold_in(first, |table| table.id() == id))
    }

    /// The same of a relation's storage: a log that makes n tables would else be replayed in n²
    /// steps.
    pub(crate) fn hold_of(&self, key: RelationKey, id: TableId) -> Option<Walk<'_>> {
        let _latched = self.latch.lock();
        self.hold_in(&self.buckets[bucket(key)], |table| table.id() == id)
    }

    /// Keeps the first storage of a list alive that `is_wanted`. Under the latch.
    fn hold_in(&self, first: &AtomicU64, is_wanted: impl Fn(TableRef) -> bool) -> Option<Walk<'_>> {
        let table = Catalog::linked(first).find(|table| is_wanted(*table))?;
        Some(self.hold_linked(table))
    }

    /// Under the latch.
    fn hold_linked(&self, table: TableRef) -> Walk<'_> {
        table.storage().walkers.fetch_add(1, Ordering::Relaxed);
        Walk {
            catalog: self,
            table,
        }
    }

    /// A list's storages. Under the latch.
    fn linked(first: &AtomicU64) -> impl Iterator<Item = TableRef> + use<> {
        crate::steps::step();
        let mut at = first.load(Ordering::Relaxed);
        std::iter::from_fn(move || {
            let table = TableRef(NonNull::new(at as *mut TableStorage)?);
            crate::steps::step();
            at = table.storage().next.load(Ordering::Relaxed);
            Some(table)
        })
    }

    /// Keeps every linked storage alive that `wanted` names; ordered by id.
    pub(crate) fn hold_where(&self, wanted: impl Fn(TableRef) -> bool) -> Vec<Walk<'_>> {
        let mut held = Vec::new();
        let _latched = self.latch.lock();
        for table in self.buckets.iter().flat_map(Catalog::linked) {
            if wanted(table) {
                held.push(self.hold_linked(table));
            }
        }
        held.sort_by_key(|walk| walk.table.id());
        held
    }
}
