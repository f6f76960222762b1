//! From a relation to its storage in the engine.
//!
//! A storage found once may be used as long as the caller holds a lock on the relation. The backend-local cache spares the
//! look-up in the shared directory: an entry goes when PostgreSQL invalidates the relation (DROP, TRUNCATE and ALTER send
//! that), and the whole cache goes when a transaction or savepoint aborts, since its storages may just have been unlinked.
use crate::clock::PgClock;
use crate::session;
use mot_engine::{RelationKey, TableRef};
use pgrx::prelude::*;
use std::cell::UnsafeCell;
use std::collections::HashMap;

struct Cache(UnsafeCell<Option<HashMap<u32, TableRef>>>);

// SAFETY: PostgreSQL's processes run this code on one thread.
unsafe impl Sync for Cache {}

static CACHE: Cache = Cache(UnsafeCell::new(None));

/// The cache; made, with its invalidation callback, at first use in a process.
fn cache() -> &'static mut HashMap<u32, TableRef> {
    // SAFETY: one thread; no caller below keeps the reference across a call that may run the invalidation callback.
    unsafe {
        let slot = &mut *CACHE.0.get();
        if slot.is_none() {
            pg_sys::CacheRegisterRelcacheCallback(Some(on_invalidation), pg_sys::Datum::from(0));
        }
        (*CACHE.0.get()).get_or_insert_with(HashMap::new)
    }
}

/// The key under which the engine knows a relation of this database.
pub fn key(relation: pg_sys::Oid) -> RelationKey {
    // SAFETY: a plain variable of this process.
    let database = unsafe { pg_sys::MyDatabaseId };
    RelationKey {
        database: database.to_u32(),
        relation: relation.to_u32(),
    }
}

/// The storage of an open relation that the caller has locked.
pub fn table(relation: pg_sys::Relation) -> TableRef {
    // SAFETY: the caller's relation is open.
    let oid = unsafe { (*relation).rd_id };
    if let Some(table) = cache().get(&oid.to_u32()) {
        return *table;
    }
    match find(oid) {
        Some(table) => table,
        // SAFETY: the caller's relation is open and locked.
        None => unsafe { crate::ddl::materialize(relation) },
    }
}

/// The storage of a relation that the caller has locked, if it has any.
pub fn find(relation: pg_sys::Oid) -> Option<TableRef> {
    let table = session::session().find_table(key(relation), &PgClock)?;
    cache().insert(relation.to_u32(), table);
    Some(table)
}

/// Forgets one relation: its storage was just replaced or dropped by this transaction.
pub fn forget(relation: pg_sys::Oid) {
    cache().remove(&relation.to_u32());
}

/// Forgets every relation. Calls nothing of PostgreSQL.
pub fn forget_all() {
    // SAFETY: one thread, no reference into the cache is live in a callback.
    if let Some(cache) = unsafe { (*CACHE.0.get()).as_mut() } {
        cache.clear();
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn on_invalidation(_arg: pg_sys::Datum, relation: pg_sys::Oid) {
    // SAFETY: one thread, no reference into the cache is live in a callback.
    let Some(cache) = (unsafe { (*CACHE.0.get()).as_mut() }) else {
        return;
    };
    if relation == pg_sys::InvalidOid {
        cache.clear();
    } else {
        cache.remove(&relation.to_u32());
    }
}
