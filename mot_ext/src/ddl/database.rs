//! CREATE DATABASE and DROP DATABASE: core copies and removes files, and knows nothing of rows that
//! lie in memory.
//!
//! **A copy.** Core copies the empty files of the template's tables, and the catalogs that name
//! them. The rows are copied in the engine (`storage::copy_table`), and logged with the transaction
//! that makes the database.
//!
//! That is done in the object access hook. Core calls it when it has locked the template against
//! new sessions and renaming, has seen that no session is connected, and has copied nothing yet: an
//! error there leaves no files behind. The statement's own hook comes before that, and notes the
//! name alone.
//!
//! **A drop.** Core calls the hook before it looks for sessions in the database, and waits up to
//! five seconds for them to go: until then they may still commit a CREATE, DROP or TRUNCATE. So
//!
//! 1. in the hook nothing is examined: the database is noted (`dropped`), and this process gets
//!    ready to write;
//! 2. at PRE_COMMIT (`transaction::dropped_database`) core has removed the files: no session is in
//!    the database, no prepared transaction, and none can come in, since core keeps its
//!    AccessExclusiveLock on it to the end of the transaction. The storages that are there now are
//!    all there will ever be, and stand still without relation locks. They are dropped and logged
//!    like any others, ahead of the commit record that deletes the row of `pg_database`: they go
//!    together or not at all, also on a standby and after a crash in between;
//! 3. an abort forgets the note. DROP DATABASE runs in no transaction block and so in no
//!    subtransaction: there is one note, and no level to it.
//!
//! An error at 2 (no memory, a full disk) leaves what core's own errors behind the removal of the
//! files leave: a row without files, which core marks as invalid. It can only be dropped again, and
//! so come the storages here again.
//!
//! **A drop where the library is not preloaded** calls no code of ours: `reclaim::orphans` finds
//! what is left at the next start with it.
//!
//! ALTER DATABASE ... RENAME and SET TABLESPACE change neither the oid nor anything that storages
//! know.
use crate::errors;
use crate::pg::local::ProcessLocal;
use crate::pg::node::Node;
use crate::storage;
use crate::transaction::{dropped_database, session, xact};
use pgrx::pg_sys;
use std::cell::RefCell;
use std::ffi::CString;

/// The name of the database that the running CREATE DATABASE copies.
static TEMPLATE: ProcessLocal<RefCell<Option<CString>>> = ProcessLocal(RefCell::new(None));

/// CREATE DATABASE is about to run: notes what it copies.
pub fn create(node: Node<'_, pg_sys::CreatedbStmt>) {
    let options = node.options().iter();
    let template = options
        .filter(|option| option.is(c"template") && option.arg())
        .last()
        .map_or(c"template1", |option| option.value());
    TEMPLATE.0.replace(Some(template.to_owned()));
}

/// The new database has its row in `pg_database`. Its template is locked and empty of sessions:
/// copies the template's tables.
pub fn created(database: pg_sys::Oid) {
    let Some(name) = TEMPLATE.0.take() else {
        return;
    };
    // A server whose tables could not be loaded is to be repaired by way of a new database. In
    // `template0` no session makes tables.
    if name.as_c_str() == c"template0" && session::is_refused() {
        return;
    }
    // SAFETY: a catalog look-up. Core has looked the name up and locked what it found, so it has
    // not changed hands since.
    let template = unsafe { pg_sys::get_database_oid(name.as_ptr(), true) };
    // Of a temporary table that a session has left behind there is nothing to copy.
    let storages = dropped_database::storages(template).into_iter();
    for table in storages.filter(|table| !table.key().is_temporary()) {
        storage::copy_table(table, database.to_u32());
    }
}

/// A database is about to be dropped, unless core finds sessions in it.
pub fn dropped(database: pg_sys::Oid) {
    // What may wait or be refused comes before core removes files: the load, and what a first
    // writer waits for.
    session::session();
    xact::current();
    xact::write_xid();
    if dropped_database::storages(database)
        .iter()
        .any(|storage| storage.key().is_of_earlier_build())
    {
        errors::table_of_earlier_build();
    }
    dropped_database::note(database);
}
