//! From a relation to its storage in the engine, by a cache of the process.
//!
//! A storage found once may be used as long as the caller holds a lock on the relation. The cache
//! spares the look-up in the shared directory. An entry goes when PostgreSQL invalidates the
//! relation, as DROP, TRUNCATE and ALTER do. The whole cache goes when a transaction or savepoint
//! aborts, since its storages may just have been unlinked. A caller that keeps a storage between
//! statements compares [`generation`] with the one under which it found it.
use crate::pg::local::ProcessLocal;
use crate::pg::relation::{self, NO_LOCK, Relation};
use mot_engine::TableRef;
use pgrx::prelude::*;
use std::cell::{Cell, UnsafeCell};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A relation that the statement has locked. Its relcache entry is opened when the statement runs
/// through core's executor; a compiled statement does without, until something (a wait, an error)
/// asks for it.
#[derive(Clone, Copy)]
pub struct LockedRelation<'p> {
    oid: pg_sys::Oid,
    opened: Option<Relation<'p>>,
}

impl<'p> LockedRelation<'p> {
    /// An open relation.
    pub fn opened(relation: Relation<'p>) -> LockedRelation<'p> {
        LockedRelation {
            oid: relation.oid(),
            opened: Some(relation),
        }
    }

    /// A relation that is locked by the transaction, but not open.
    pub fn closed(oid: pg_sys::Oid) -> LockedRelation<'p> {
        LockedRelation { oid, opened: None }
    }

    /// The relation's oid.
    pub fn oid(&self) -> pg_sys::Oid {
        self.oid
    }

    /// Runs `action` with the open relation. After an error PostgreSQL's resource owner closes it.
    pub fn with<T>(&self, action: impl FnOnce(Relation<'_>) -> T) -> T {
        match self.opened {
            Some(relation) => action(relation),
            None => relation::with(self.oid, NO_LOCK, action),
        }
    }
}

/// By relation.
type ByOid<T> = HashMap<u32, T, BuildHasherDefault<OidHasher>>;

#[derive(Default)]
struct RelationCache {
    tables: ByOid<TableRef>,
    /// The transactions that wrote indexes' rows of the catalog, as the relation cache has them.
    index_makers: ByOid<pg_sys::TransactionId>,
    /// Whether indexes of tables have computed keys.
    computed_keys: ByOid<bool>,
    /// Whether core checks keys of a table.
    keys_of_core: ByOid<bool>,
}

impl RelationCache {
    fn clear(&mut self) {
        self.tables.clear();
        self.computed_keys.clear();
        self.index_makers.clear();
        self.keys_of_core.clear();
    }
}

/// Oids are a sequence: one multiplication spreads them over the table's high and low bits.
#[derive(Default)]
struct OidHasher(u64);

impl Hasher for OidHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u32(self.0 as u32 ^ u32::from(*byte));
        }
    }

    fn write_u32(&mut self, oid: u32) {
        self.0 = u64::from(oid).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

struct Cache {
    relations: UnsafeCell<Option<RelationCache>>,
    generation: Cell<u64>,
}

static CACHE: ProcessLocal<Cache> = ProcessLocal(Cache {
    relations: UnsafeCell::new(None),
    generation: Cell::new(0),
});

/// Changes whenever a storage found before may not be the relation's any more.
pub fn generation() -> u64 {
    CACHE.generation.get()
}

/// What was found before may not be any more: called at each abort, also of a process that has
/// written nothing.
pub fn next_generation() {
    CACHE.generation.set(CACHE.generation.get() + 1);
}

/// The cache; made, with its invalidation callback, at first use in a process.
fn cache() -> &'static mut RelationCache {
    // SAFETY: one thread; no caller below keeps the reference across a call that may run the
    // invalidation callback.
    unsafe {
        let slot = &mut *CACHE.relations.get();
        if slot.is_none() {
            pg_sys::CacheRegisterRelcacheCallback(Some(on_invalidation), pg_sys::Datum::from(0));
        }
        (*CACHE.relations.get()).get_or_insert_with(RelationCache::default)
    }
}

/// The storage found last for a relation, until an invalidation.
pub fn cached(relation: pg_sys::Oid) -> Option<TableRef> {
    cache().tables.get(&relation.to_u32()).copied()
}

/// Keeps the storage that was found for a relation.
pub fn remember(relation: pg_sys::Oid, table: TableRef) {
    cache().tables.insert(relation.to_u32(), table);
}

/// The transaction that wrote the row of the catalog of an index that the caller has locked: each
/// planning of a statement asks.
pub fn maker_of_index(index: pg_sys::Oid) -> pg_sys::TransactionId {
    if let Some(maker) = cache().index_makers.get(&index.to_u32()) {
        return *maker;
    }
    // SAFETY: the index is locked; an open one has its row of the catalog.
    let maker = unsafe {
        let opened = pg_sys::index_open(index, pg_sys::NoLock as pg_sys::LOCKMODE);
        let maker = pg_sys::htup::HeapTupleHeaderGetXmin((*(*opened).rd_indextuple).t_data);
        pg_sys::index_close(opened, pg_sys::NoLock as pg_sys::LOCKMODE);
        maker
    };
    cache().index_makers.insert(index.to_u32(), maker);
    maker
}

/// Whether a snapshot of this transaction may be older than an index that the caller has locked:
/// what it sees was never looked over for duplicates, and may have other keys than its entries.
pub fn may_be_younger(index: pg_sys::Oid) -> bool {
    let made_by = maker_of_index(index);
    // SAFETY: a plain variable of this process.
    unsafe { !pg_sys::TransactionIdPrecedes(made_by, pg_sys::TransactionXmin) }
}

/// Whether an index of a table has computed keys; `find` looks in the catalog, once until the table
/// is invalidated. Each change of a row asks. The making of an index invalidates the table.
pub fn has_computed_keys(table: pg_sys::Oid, find: impl FnOnce() -> bool) -> bool {
    remembered(table, |cache| &mut cache.computed_keys, find)
}

/// As [`has_computed_keys`], whether core checks keys of a table.
pub fn has_keys_of_core(table: pg_sys::Oid, find: impl FnOnce() -> bool) -> bool {
    remembered(table, |cache| &mut cache.keys_of_core, find)
}

/// What was found of a table that the caller has locked, or is found now.
fn remembered(
    table: pg_sys::Oid,
    of: fn(&mut RelationCache) -> &mut ByOid<bool>,
    find: impl FnOnce() -> bool,
) -> bool {
    if let Some(found) = of(cache()).get(&table.to_u32()) {
        return *found;
    }
    let before = generation();
    let found = find();
    if generation() == before {
        of(cache()).insert(table.to_u32(), found);
    }
    found
}

/// Forgets one relation: its storage was just replaced or dropped by this transaction.
pub fn forget(relation: pg_sys::Oid) {
    next_generation();
    cache().tables.remove(&relation.to_u32());
    cache().keys_of_core.remove(&relation.to_u32());
}

/// Forgets every relation. Calls nothing of PostgreSQL.
pub fn forget_all() {
    next_generation();
    // SAFETY: one thread, no reference into the cache is live in a callback.
    if let Some(cache) = unsafe { (*CACHE.relations.get()).as_mut() } {
        cache.clear();
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn on_invalidation(_arg: pg_sys::Datum, relation: pg_sys::Oid) {
    next_generation();
    // SAFETY: one thread, no reference into the cache is live in a callback.
    let Some(cache) = (unsafe { (*CACHE.relations.get()).as_mut() }) else {
        return;
    };
    if relation == pg_sys::InvalidOid {
        cache.clear();
    } else {
        cache.tables.remove(&relation.to_u32());
        cache.computed_keys.remove(&relation.to_u32());
        cache.index_makers.remove(&relation.to_u32());
        cache.keys_of_core.remove(&relation.to_u32());
    }
}
