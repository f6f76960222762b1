//! CREATE DATABASE and DROP DATABASE: core copies and removes files, and knows nothing of rows that lie in memory.
//!
//! **A copy.** The catalog rows of the template's memory-optimized tables are copied with its files, the rows are not. So a template with rows in such
//! tables is refused; empty ones are empty in the copy, too, and get their storage there at first use (`storage::materialize`).
//!
//! The rows are counted in the object access hook, which core calls when it holds its lock on the template (nobody can connect any more) and has
//! seen that nobody is connected: no row can come after that. The statement's own hook runs before that, and only tells which database is copied.
//!
//! **A drop.** Core calls the hook before it looks for sessions in the database, and waits up to five seconds for them to go: until then they may
//! still commit a CREATE, DROP or TRUNCATE. So
//!
//! 1. in the hook nothing is looked at: the database is noted (`dropped`), and this process gets ready to write;
//! 2. at PRE_COMMIT (`drop_noted`) core has removed the files: nobody is in the database, no prepared transaction, and nobody can come in, since core
//!    keeps its AccessExclusiveLock on it to the end of the transaction. The storages that are there now are all there will ever be, and stand still
//!    without relation locks. They are dropped and logged like any others, ahead of the commit record that deletes the row of `pg_database`: they go
//!    together or not at all, also on a standby and after a crash in between;
//! 3. an abort forgets the note. DROP DATABASE runs in no transaction block and so in no subtransaction: there is one note, and no level to it.
//!
//! An error at 2 (no memory, a full disk) leaves what core's own errors behind the removal of the files leave: a row without files, which core marks
//! as invalid. It can only be dropped again, and so come the storages here again.
//!
//! ALTER DATABASE ... RENAME and SET TABLESPACE change neither the oid nor anything that storages know.
use super::refuse;
use crate::clock::PgClock;
use crate::{errors, session, xact};
use mot_engine::{RelationKey, TableRef};
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::cell::Cell;
use std::collections::HashSet;
use std::ffi::CStr;
use std::sync::atomic::Ordering;

struct Database(Cell<pg_sys::Oid>);

// SAFETY: PostgreSQL's processes run this code on one thread.
unsafe impl Sync for Database {}

/// The database that the running CREATE DATABASE copies.
static TEMPLATE: Database = Database(Cell::new(pg_sys::InvalidOid));
/// The database that the running DROP DATABASE drops.
static DROPPED: Database = Database(Cell::new(pg_sys::InvalidOid));

/// CREATE DATABASE is about to run: notes what it copies. Names are looked up as core does; what it refuses is left to it.
pub unsafe fn create(node: *mut pg_sys::CreatedbStmt) -> bool {
    // SAFETY: a live node of this type; its options are DefElem nodes.
    unsafe {
        let mut name: &CStr = c"template1";
        for option in super::nodes::items::<pg_sys::DefElem>((*node).options) {
            let is_template = CStr::from_ptr((*option).defname) == c"template";
            if is_template && !(*option).arg.is_null() {
                name = CStr::from_ptr(pg_sys::defGetString(option));
            }
        }
        TEMPLATE
            .0
            .set(pg_sys::get_database_oid(name.as_ptr(), true));
    }
    false
}

/// The new database has its row in `pg_database`, and its template is locked and empty of sessions.
pub fn created() {
    let template = TEMPLATE.0.replace(pg_sys::InvalidOid);
    let rows: i64 = storages(template)
        .iter()
        .map(|storage| storage.counters().rows.load(Ordering::Relaxed).max(0))
        .sum();
    if rows > 0 {
        refuse::raise(
            PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
            "a database with rows in memory-optimized tables cannot be copied",
            Some(format!(
                "Rows in the template's memory-optimized tables: {rows}. CREATE DATABASE would copy the tables without them."
            )),
            Some("Create the database from another template, and copy the tables by pg_dump and psql; or empty the tables first.".into()),
        );
    }
}

/// A database is about to be dropped, unless core finds sessions in it.
pub fn dropped(database: pg_sys::Oid) {
    // What may wait or be refused comes before core removes files: the load, and what a first writer waits for.
    session::session();
    xact::current();
    xact::write_xid();
    DROPPED.0.set(database);
}

/// At PRE_COMMIT, before changes are logged: drops every storage of the database that this transaction drops.
pub fn drop_noted() {
    let database = DROPPED.0.replace(pg_sys::InvalidOid);
    if database == pg_sys::InvalidOid {
        return;
    }
    for storage in storages(database) {
        let dropped = xact::current().drop_table(session::session(), storage, xact::write_xid());
        if let Err(error) = dropped {
            errors::raise(error);
        }
    }
}

/// The transaction has aborted. Calls nothing.
pub fn forget_dropped() {
    DROPPED.0.set(pg_sys::InvalidOid);
}

/// The storages that a database has, seen from this transaction.
fn storages(database: pg_sys::Oid) -> Vec<TableRef> {
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
