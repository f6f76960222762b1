//! From a relation of the access methods to its storage in the engine, and a storage's life.
//!
//! | file | what |
//! |---|---|
//! | `mod.rs` | from a relation to its storage; making and dropping storages |
//! | `temporary`, `database_copy` | temporary tables; the tables of a copied database |
//! | `definition`, `missing`, `core_keys` | an index's definition, from the catalog |
//! | `build`, `build_report`, `duplicate`, `key_text` | index builds, and a key met twice |
//! | `computed_keys`, `kept_keys`, `evaluators` | computed keys of a new or changed row |
//! | `compute_rows` | computed keys of rows before their index |
//! | [`labels`] | keys of values without an encoding |
//! | `key_kinds` | which keys are labels, for tests |
//!
//! May be called by all rooms above; calls `transaction`, `keys`, `executor` and those below.
//!
//! - A table's storage is found by (database, pg_class.reltablespace, relfilenode), a temporary
//!   one's by its session, too; an index's by the last two of the three among its table's. Oids do
//!   not do. TRUNCATE, REINDEX and rewrites give a relation another file under the same oid. A
//!   change of types that keeps an index gives its file another oid.
//! - A table's storage is made by `relation_set_new_filenode`, an index's by `ambuild`, those of a
//!   copied database with the copy. So any other file that core made by itself has none, and using
//!   it is an error, never an empty relation.
//! - It is dropped with its relation, by the object access hook. A rewrite swaps files with a
//!   transient table, whose drop takes the old storage. TRUNCATE keeps the table: the new file's
//!   maker drops the old storage.
//! - All of it goes through the transaction: undone by rollback, also to a savepoint, logged at
//!   commit.
mod build;
mod build_report;
mod compute_rows;
pub mod computed_keys;
mod core_keys;
mod database_copy;
pub mod definition;
pub mod duplicate;
pub mod evaluators;
mod kept_keys;
#[cfg(debug_assertions)]
mod key_kinds;
mod key_text;
pub mod labels;
pub mod long_key;
mod missing;
mod temporary;

pub use build::{
    Built, Repeated, build_index, build_index_beside_writers, build_same_indexes,
    rebuild_reused_index, validate_index,
};

pub use compute_rows::rows_with_other_keys;
pub use core_keys::{has_keys_of_core, is_kept_though_deferrable, is_unique_to_core};
pub use database_copy::copy_table;

use crate::errors::{self, or_raise};
use crate::pg::catalog;
use crate::pg::local::ProcessLocal;
use crate::pg::relation::{NO_LOCK, Relation, with};
use crate::pg::version::table_am as version;
use crate::shared_memory::server_phase::recovery_in_progress;
use crate::transaction::clock::PgClock;
use crate::transaction::{relation, session, xact};
use mot_engine::key::IndexDefinition;
use mot_engine::{FileKey, IndexRef, Persistence, RelationKey, TableRef};
use pgrx::pg_sys;
use std::cell::Cell;
use std::ffi::{CStr, c_char};

/// Name of the table access method.
pub const TABLE_METHOD: &CStr = c"mot";
/// Name of the index access method.
pub const INDEX_METHOD: &CStr = c"mot_index";

/// The table access method's oid in this database; invalid where the extension is not installed.
pub fn table_method() -> pg_sys::Oid {
    // SAFETY: a catalog look-up; a missing method is an invalid oid.
    unsafe { pg_sys::get_table_am_oid(TABLE_METHOD.as_ptr(), true) }
}

/// The index access method's oid in this database; invalid where the extension is not installed.
pub fn index_method() -> pg_sys::Oid {
    // SAFETY: a catalog look-up; a missing method is an invalid oid.
    unsafe { pg_sys::get_index_am_oid(INDEX_METHOD.as_ptr(), true) }
}

/// The access method's functions, once this process has asked for them.
static ROUTINE: ProcessLocal<Cell<*const pg_sys::TableAmRoutine>> =
    ProcessLocal(Cell::new(std::ptr::null()));

/// Names the access method's functions. Its handler calls this, and gives them to core, which knows
/// an open table of the access method by nothing else.
pub fn note_routine(routine: *const pg_sys::TableAmRoutine) {
    ROUTINE.0.set(routine);
}

/// Whether an open relation is a table of the access method.
pub fn is_table(relation: Relation<'_>) -> bool {
    std::ptr::eq(relation.table_routine(), ROUTINE.0.get())
}

/// Whether an open index is of the access method.
pub fn is_index(index: Relation<'_>) -> bool {
    index.access_method() == index_method()
}

/// Whether an oid is that of a table, or a materialized view, of the access method.
pub fn is_mot_table(relation: pg_sys::Oid) -> bool {
    let Some((kind, method)) = kind_and_method(relation) else {
        return false;
    };
    let has_rows = kind == pg_sys::RELKIND_RELATION || kind == pg_sys::RELKIND_MATVIEW;
    has_rows && method != pg_sys::InvalidOid && method == table_method()
}

/// Whether an oid is that of an index, not a partitioned one, of a table of the access method.
pub fn is_mot_index(relation: pg_sys::Oid) -> bool {
    let Some((kind, _)) = kind_and_method(relation) else {
        return false;
    };
    kind == pg_sys::RELKIND_INDEX && is_mot_table(catalog::table_if_any(relation))
}

/// `relkind` and `relam` of a relation that may be gone.
fn kind_and_method(relation: pg_sys::Oid) -> Option<(u8, pg_sys::Oid)> {
    if relation == pg_sys::InvalidOid {
        return None;
    }
    // SAFETY: a catalog's row, released when its fields were read.
    unsafe {
        let row = pg_sys::SearchSysCache1(
            pg_sys::SysCacheIdentifier::RELOID as i32,
            pg_sys::Datum::from(relation),
        );
        if row.is_null() {
            return None;
        }
        let form = &*pg_sys::heap_tuple_get_struct::<pg_sys::FormData_pg_class>(row);
        let found = (form.relkind as u8, form.relam);
        pg_sys::ReleaseSysCache(row);
        Some(found)
    }
}

/// The file by which the engine knows a relation. Its tablespace is the catalog's, which is 0 for
/// the database's own: ALTER DATABASE SET TABLESPACE changes where that is, and sends no message.
pub fn file_of(relation: Relation<'_>) -> FileKey {
    FileKey {
        tablespace: relation.tablespace().to_u32(),
        relation: relation.file().to_u32(),
    }
}

/// The key of a file that an open relation of this database has, or is to have.
fn key_of(relation: Relation<'_>, file: FileKey) -> RelationKey {
    // SAFETY: a plain variable of this process.
    let database = unsafe { pg_sys::MyDatabaseId };
    RelationKey::of_file(database.to_u32(), file.tablespace, file.relation)
        .of_temporary(temporary::backend_of(relation))
}

/// The oid of a table of this database by its storage's key; invalid where no table has the file.
pub fn oid_of(key: RelationKey) -> pg_sys::Oid {
    match key {
        _ if key.is_of_earlier_build() => pg_sys::Oid::from(key.relation),
        _ if key.is_temporary() => temporary::oid_of(key),
        _ => version::oid_of_file(key.tablespace, key.relation),
    }
}

/// The storage of an open table that the caller has locked; raises if it has none, or is a
/// temporary one of another session.
pub fn table(relation: Relation<'_>) -> TableRef {
    temporary::refuse_other_session(relation);
    described(relation)
}

/// The same for a caller that asks for nothing but sizes: of other sessions' temporary tables, too.
pub fn described(relation: Relation<'_>) -> TableRef {
    find(relation).unwrap_or_else(|| match temporary::is_of_other_session(relation) {
        true if recovery_in_progress() => errors::temporary_on_standby(&relation.name_text()),
        true => errors::left_by_session(&relation.name_text()),
        false => errors::no_storage(&relation.name_text()),
    })
}

/// The storage of an open table that the caller has locked, if there is one.
pub fn find(relation: Relation<'_>) -> Option<TableRef> {
    let oid = relation.oid();
    let key = key_of(relation, file_of(relation));
    match relation::cached(oid) {
        // The cache may be a moment older than the open relation's entry.
        Some(table) if table.key() == key => Some(table),
        _ => {
            let table = session::session().find_table(key, &PgClock)?;
            // Its own session empties a temporary table without a word to others.
            if !temporary::is_of_other_session(relation) {
                relation::remember(oid, table);
            }
            Some(table)
        }
    }
}

/// The storage of an open relation that is locked, if that is a table of the access method with
/// one that this session may read.
pub fn find_of_method(relation: Relation<'_>) -> Option<TableRef> {
    let may_read = is_table(relation) && !temporary::is_of_other_session(relation);
    may_read.then(|| find(relation)).flatten()
}

/// The storage of an open index of `table`; raises if it has none.
pub fn index(table: TableRef, index: Relation<'_>) -> IndexRef {
    find_index(table, index).unwrap_or_else(|| errors::no_index_storage(&index.name_text()))
}

/// The storage of an open index of `table`, if there is one.
pub fn find_index(table: TableRef, index: Relation<'_>) -> Option<IndexRef> {
    session::session().find_index_of_file(table, file_of(index), &PgClock)
}

/// What the engine knows of the keys of an open index whose table is locked; `None`: there is no
/// storage, or it is another session's.
pub fn definition_of(index: Relation<'_>) -> Option<&'static IndexDefinition> {
    let table = with(index.table(), NO_LOCK, find_of_method)?;
    let index = find_index(table, index)?;
    Some(or_raise(session::session().definition(index)))
}

/// Whether the engine knows an index's file, as it does before `ambuild` only of one that core uses
/// again.
pub fn has_storage(index: pg_sys::Oid) -> bool {
    with_index_and_table(index, |table, index| {
        let file = file_of(index);
        find(table).is_some_and(|table| session::session().knows_file(table, file))
    })
    .unwrap_or(false)
}

/// What the engine is to keep of a table, by its `relpersistence`.
pub fn persistence_of(relpersistence: c_char) -> Persistence {
    match relpersistence as u8 {
        pg_sys::RELPERSISTENCE_TEMP => Persistence::Temporary,
        pg_sys::RELPERSISTENCE_UNLOGGED => Persistence::Unlogged,
        _ => Persistence::Logged,
    }
}

/// Makes the storage of a table's new file, and drops that of the file which it replaces. `fill` is
/// called in between with the former one and the new one.
pub fn create_table(
    relation: Relation<'_>,
    file: FileKey,
    persistence: Persistence,
    fill: impl FnOnce(TableRef, TableRef),
) {
    // The relation of a table that is being made has the new file's name already.
    let replaced = (file_of(relation) != file)
        .then(|| find(relation))
        .flatten();
    let xid = xact::write_xid();
    let key = key_of(relation, file);
    debug_assert_eq!(key.is_temporary(), persistence == Persistence::Temporary);
    let made = xact::current().create_table_as(session::session(), key, persistence, xid);
    let made = or_raise(made);
    relation::forget(relation.oid());
    if let Some(replaced) = replaced {
        fill(replaced, made);
        drop_storage(replaced);
    }
}

/// Drops a table's storage with the table; its memory comes back when the transaction commits.
pub fn drop_table(relation: pg_sys::Oid) {
    if let Some(storage) = with(relation, NO_LOCK, find) {
        crate::serializable::emptied(relation);
        drop_storage(storage);
    }
    relation::forget(relation);
}

/// Drops an index's storage with the index.
pub fn drop_index(index: pg_sys::Oid) {
    with_index_and_table(index, |table, index| {
        if let Some(table) = find(table) {
            drop_index_file(table, file_of(index));
        }
    });
}

/// The table and the file of an index that is going to be dropped, when its transaction is not the
/// one that drops it.
pub fn place_of_index(index: pg_sys::Oid) -> Option<(pg_sys::Oid, FileKey)> {
    with_index_and_table(index, |table, index| (table.oid(), file_of(index)))
}

/// Drops the storage of an index that is gone from the catalog, by what [`place_of_index`] said of
/// it.
pub fn drop_index_at((table, file): (pg_sys::Oid, FileKey)) {
    with(table, NO_LOCK, |table| {
        if let Some(storage) = find(table) {
            drop_index_file(storage, file);
        }
    });
}

/// Drops the storage of an index's file, if there is one.
fn drop_index_file(table: TableRef, file: FileKey) {
    let xid = xact::write_xid();
    let dropped =
        xact::current().drop_index_of_file(session::session(), &PgClock, table, file, xid);
    or_raise(dropped);
}

fn drop_storage(storage: TableRef) {
    let xid = xact::write_xid();
    or_raise(xact::current().drop_table(session::session(), storage, xid));
}

/// Runs `action` with a table and its index, both open and locked by the statement; `None` if the
/// index has no table of the access method.
fn with_index_and_table<T>(
    index: pg_sys::Oid,
    action: impl FnOnce(Relation<'_>, Relation<'_>) -> T,
) -> Option<T> {
    let table = catalog::table_if_any(index);
    is_mot_table(table).then(|| {
        with(table, NO_LOCK, |table| {
            with(index, NO_LOCK, |index| action(table, index))
        })
    })
}
