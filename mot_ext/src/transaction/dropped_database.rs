//! The storages of a database that this transaction drops (`ddl/database.rs`): they go at
//! PRE_COMMIT.
use super::clock::PgClock;
use super::{session, xact};
use crate::errors;
use crate::pg::local::ProcessLocal;
use mot_engine::{RelationKey, TableRef};
use pgrx::pg_sys;
use std::cell::Cell;
use std::collections::HashSet;

/// The database that the running DROP DATABASE drops.
static DROPPED: ProcessLocal<Cell<pg_sys::Oid>> = ProcessLocal(Cell::new(pg_sys::InvalidOid));

/// A database is dropped by this transaction.
pub fn note(database: pg_sys::Oid) {
    DROPPED.0.set(database);
}

/// At PRE_COMMIT, before changes are logged: drops every storage of the database that this
/// transaction drops.
pub fn drop_noted() {
    let database = DROPPED.0.replace(pg_sys::InvalidOid);
    if database == pg_sys::InvalidOid {
        return;
    }
    drop_storages(database);
}

/// Drops every storage of a database without sessions; answers how many there were.
pub fn drop_storages(database: pg_sys::Oid) -> usize {
    let storages = storages(database);
    for storage in &storages {
        let xid = xact::write_xid();
        let dropped = xact::current().drop_table(session::session(), *storage, xid);
        if let Err(error) = dropped {
            errors::raise(error);
        }
    }
    storages.len()
}

/// The transaction has aborted. Calls nothing.
pub fn forget() {
    DROPPED.0.set(pg_sys::InvalidOid);
}

/// The storages that a database has, seen from this transaction.
pub fn storages(database: pg_sys::Oid) -> Vec<TableRef> {
    let session = session::session();
    let keys: HashSet<RelationKey> = session
        .tables()
        .iter()
        .map(|walk| walk.table().key())
        .filter(|key| key.database == database.to_u32())
        .collect();
    keys.into_iter()
        .filter_map(|key| session.find_table(key, &PgClock))
        .collect()
}
