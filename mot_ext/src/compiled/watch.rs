//! What changes in the catalogs under forms that are kept: counters that PostgreSQL's invalidation
//! messages increment.
use crate::pg::local::ProcessLocal;
use pgrx::prelude::*;
use std::cell::Cell;
use std::ffi::c_int;

struct Watch {
    rights: Cell<u64>,
    types: Cell<u64>,
    is_on: Cell<bool>,
}

static WATCH: ProcessLocal<Watch> = ProcessLocal(Watch {
    rights: Cell::new(1),
    types: Cell::new(1),
    is_on: Cell::new(false),
});

/// The caches from which core's check of rights answers: rights on relations, columns, schemas
/// and functions, roles and their members, and databases (whose owners have a role). Those of roles
/// are the ones core's own cache of memberships listens to.
const RIGHTS: [pg_sys::SysCacheIdentifier::Type; 7] = [
    pg_sys::SysCacheIdentifier::PROCOID,
    pg_sys::SysCacheIdentifier::NAMESPACEOID,
    pg_sys::SysCacheIdentifier::RELOID,
    pg_sys::SysCacheIdentifier::ATTNUM,
    pg_sys::SysCacheIdentifier::AUTHOID,
    pg_sys::SysCacheIdentifier::AUTHMEMROLEMEM,
    pg_sys::SysCacheIdentifier::DATABASEOID,
];

/// Begins to listen; once in a process.
pub fn begin() {
    if WATCH.is_on.replace(true) {
        return;
    }
    // SAFETY: registered once per process; the callbacks live as long as the library. Where core's
    // list is full the session ends (FATAL).
    unsafe {
        let nothing = pg_sys::Datum::from(0);
        for cache in RIGHTS {
            pg_sys::CacheRegisterSyscacheCallback(cache as c_int, Some(on_rights), nothing);
        }
        let types = pg_sys::SysCacheIdentifier::TYPEOID as c_int;
        pg_sys::CacheRegisterSyscacheCallback(types, Some(on_types), nothing);
    }
}

/// Changes whenever a user's rights may have. Never 0.
#[inline]
pub fn rights() -> u64 {
    WATCH.rights.get()
}

/// Changes whenever a type's functions may have. Never 0.
#[inline]
pub fn types() -> u64 {
    WATCH.types.get()
}

#[pg_guard]
unsafe extern "C-unwind" fn on_rights(_arg: pg_sys::Datum, _cache: c_int, _hash: u32) {
    WATCH.rights.set(WATCH.rights.get() + 1);
}

#[pg_guard]
unsafe extern "C-unwind" fn on_types(_arg: pg_sys::Datum, _cache: c_int, _hash: u32) {
    WATCH.types.set(WATCH.types.get() + 1);
}
