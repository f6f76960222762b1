//! Every change of engine storage that comes from a definition.
//!
//! - Storage is made by the statement that creates the table, in its transaction: until it commits nobody else can see the
//!   table, so nobody can race for it. One case is left: a database made from a template has our catalog rows and no storage.
//!   Such a table is empty, and its storage is made at first use (`materialize`), under a lock that makes the others wait for
//!   the maker's transaction.
//! - All of it goes through the transaction: undone by rollback, also to a savepoint, and logged at commit.
//! - The caller holds PostgreSQL's lock on the table; what is dropped or replaced is forgotten by the local cache at once, and
//!   by other backends through the relation's invalidation.
use super::{definition, nodes};
use crate::clock::PgClock;
use crate::pg::violation;
use crate::{errors, relation, session, xact};
use mot_engine::key::IndexDefinition;
use mot_engine::{Build, EngineError, Newest, Slot, TableRef};
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::ffi::CStr;

/// Makes the storage of a table that this transaction created, unless an event trigger of the statement has used the table already: that made it.
pub fn create_unless_used(relid: pg_sys::Oid) {
    if relation::find(relid).is_none() {
        create(relid);
    }
}

fn create(relid: pg_sys::Oid) {
    let xid = xact::write_xid();
    let made = xact::current().create_table(session::session(), relation::key(relid), xid);
    if let Err(error) = made {
        errors::raise(error);
    }
    relation::forget(relid);
}

/// The storage of a table that has catalog rows but none yet: it came with a template database.
///
/// Raises where storage cannot be made: on a standby, in a read-only transaction, in a parallel worker.
pub unsafe fn materialize(table: pg_sys::Relation) -> TableRef {
    // SAFETY: the caller's relation is open and locked; the lock below is held to the end of the transaction.
    unsafe {
        let relid = (*table).rd_id;
        pg_sys::PreventCommandIfReadOnly(c"first use of a copied memory-optimized table".as_ptr());
        pg_sys::LockDatabaseObject(
            pg_sys::ForeignTableRelationId,
            relid,
            0,
            pg_sys::ExclusiveLock as pg_sys::LOCKMODE,
        );
        if let Some(found) = relation::find(relid) {
            return found;
        }
        create(relid);
        let indexes = pg_sys::RelationGetIndexList(table);
        for index in pgrx::PgList::<pg_sys::Oid>::from_pg(indexes).iter_oid() {
            build_index(table, index);
        }
        relation::find(relid)
            .unwrap_or_else(|| errors::no_storage(&nodes::name(&(*(*table).rd_rel).relname)))
    }
}

/// Builds an index from the table's rows; raises 23505 when a unique key repeats.
pub unsafe fn build_index(table: pg_sys::Relation, index: pg_sys::Oid) {
    // SAFETY: the table is open and locked against writers; the index is locked by whoever made it.
    unsafe {
        let storage = match relation::find((*table).rd_id) {
            Some(storage) => storage,
            None => {
                // A copied table at its first use. Whoever makes its storage makes the indexes that he sees: this one, if it is we.
                let storage = materialize(table);
                let made = session::session().find_index(storage, index.to_u32(), &PgClock);
                if made.is_some() {
                    return;
                }
                storage
            }
        };
        let index = pg_sys::index_open(index, pg_sys::AccessShareLock as pg_sys::LOCKMODE);
        let definition = definition::index_definition(table, index);
        match build(storage, &definition) {
            Ok(Build::Done(_)) => {}
            Ok(Build::DoneBesideOlder(_)) => keep_from_older((*index).rd_id),
            Ok(Build::Duplicate { slots, .. }) => duplicated(table, index, storage, slots[0]),
            Err(error) => errors::raise(error),
        }
        pg_sys::index_close(index, pg_sys::NoLock as pg_sys::LOCKMODE);
        pg_sys::CacheInvalidateRelcache(table);
    }
}

/// Keeps the planner from using an index under snapshots that are older than it: `indcheckxmin`, as core does where such a snapshot would miss rows.
pub unsafe fn keep_from_older(index: pg_sys::Oid) {
    // SAFETY: a catalog's row, copied, changed and put back; what is opened here is closed here.
    unsafe {
        let catalog = pg_sys::table_open(
            pg_sys::IndexRelationId,
            pg_sys::RowExclusiveLock as pg_sys::LOCKMODE,
        );
        let none = pg_sys::Datum::from(0);
        let tuple = pg_sys::SearchSysCacheCopy(
            pg_sys::SysCacheIdentifier::INDEXRELID as i32,
            pg_sys::Datum::from(index),
            none,
            none,
            none,
        );
        if tuple.is_null() {
            errors::raise(EngineError::Corrupt {
                what: "an index has no row in pg_index",
            });
        }
        (*pg_sys::heap_tuple_get_struct::<pg_sys::FormData_pg_index>(tuple)).indcheckxmin = true;
        pg_sys::CatalogTupleUpdate(catalog, &raw mut (*tuple).t_self, tuple);
        pg_sys::table_close(catalog, pg_sys::RowExclusiveLock as pg_sys::LOCKMODE);
        pg_sys::CommandCounterIncrement();
    }
}

fn build(storage: TableRef, definition: &IndexDefinition) -> Result<Build, EngineError> {
    let xid = xact::write_xid();
    xact::current().create_index(session::session(), &PgClock, storage, definition, xid)
}

/// Core's error for a unique index that cannot be built.
pub unsafe fn duplicated(
    table: pg_sys::Relation,
    index: pg_sys::Relation,
    storage: TableRef,
    slot: Slot,
) -> ! {
    // SAFETY: open relations; the row stays: writers are locked out.
    unsafe {
        let name = nodes::name(&(*(*index).rd_rel).relname);
        let detail = match session::session().newest(&PgClock, storage, slot) {
            Newest::Live(version) => {
                let mut tuple = pg_sys::HeapTupleData {
                    t_len: version.image_bytes() as u32,
                    t_data: version.image_ptr().cast_mut().cast(),
                    t_tableOid: (*table).rd_id,
                    ..Default::default()
                };
                key_description(table, index, &raw mut tuple)
            }
            _ => None,
        };
        let detail = match detail {
            Some(key) => format!("Key {key} is duplicated."),
            None => "Duplicate keys exist.".into(),
        };
        violation::raise(
            PgSqlErrorCode::ERRCODE_UNIQUE_VIOLATION,
            table,
            CStr::from_ptr((*(*index).rd_rel).relname.data.as_ptr()),
            &format!("could not create unique index \"{name}\""),
            Some(&detail),
        )
    }
}

/// `(a)=(1)`, if the user may see it.
unsafe fn key_description(
    table: pg_sys::Relation,
    index: pg_sys::Relation,
    tuple: pg_sys::HeapTuple,
) -> Option<String> {
    // SAFETY: the tuple is of the table's row type.
    unsafe {
        let natts = (*(*table).rd_att).natts as usize;
        let mut row = vec![pg_sys::Datum::from(0); natts];
        let mut row_nulls = vec![true; natts];
        pg_sys::heap_deform_tuple(
            tuple,
            (*table).rd_att,
            row.as_mut_ptr(),
            row_nulls.as_mut_ptr(),
        );
        let form = &*(*index).rd_index;
        let attnums = form.indkey.values.as_slice(form.indnatts as usize);
        let mut values: Vec<_> = attnums
            .iter()
            .map(|attnum| row[*attnum as usize - 1])
            .collect();
        let mut nulls: Vec<_> = attnums
            .iter()
            .map(|attnum| row_nulls[*attnum as usize - 1])
            .collect();
        let text =
            pg_sys::BuildIndexValueDescription(index, values.as_mut_ptr(), nulls.as_mut_ptr());
        (!text.is_null()).then(|| nodes::text(text))
    }
}

/// Builds anew the indexes over a column that has just become nullable: their keys begin with a NULL mark from now on.
pub unsafe fn rebuild_indexes_on(relid: pg_sys::Oid, attnum: i16) {
    // SAFETY: the caller holds AccessExclusiveLock on the table.
    unsafe {
        let table = pg_sys::table_open(relid, pg_sys::NoLock as pg_sys::LOCKMODE);
        let indexes = pg_sys::RelationGetIndexList(table);
        for oid in pgrx::PgList::<pg_sys::Oid>::from_pg(indexes).iter_oid() {
            let index = pg_sys::index_open(oid, pg_sys::AccessExclusiveLock as pg_sys::LOCKMODE);
            let form = &*(*index).rd_index;
            let concerned = form
                .indkey
                .values
                .as_slice(form.indnatts as usize)
                .contains(&attnum);
            if concerned {
                // Ranges of keys have other numbers from now on.
                crate::pg::predicate::move_to_table(index);
            }
            pg_sys::index_close(index, pg_sys::NoLock as pg_sys::LOCKMODE);
            if concerned {
                drop_index_of(relation::table(table), oid);
                build_index(table, oid);
            }
        }
        pg_sys::table_close(table, pg_sys::NoLock as pg_sys::LOCKMODE);
    }
}

/// Drops a table's storage; freed when the transaction commits.
pub fn drop_table(relid: pg_sys::Oid) {
    let Some(storage) = relation::find(relid) else {
        return;
    };
    let xid = xact::write_xid();
    let dropped = xact::current().drop_table(session::session(), storage, xid);
    if let Err(error) = dropped {
        errors::raise(error);
    }
    relation::forget(relid);
}

/// Drops an index's storage; freed when the transaction commits.
pub fn drop_index(index: pg_sys::Oid) {
    // SAFETY: a catalog look-up.
    let relid = unsafe { pg_sys::IndexGetRelation(index, true) };
    if relid == pg_sys::InvalidOid {
        return;
    }
    if let Some(storage) = relation::find(relid) {
        drop_index_of(storage, index);
    }
}

fn drop_index_of(storage: TableRef, index: pg_sys::Oid) {
    let xid = xact::write_xid();
    let dropped =
        xact::current().drop_index(session::session(), &PgClock, storage, index.to_u32(), xid);
    if let Err(error) = dropped {
        errors::raise(error);
    }
}

/// Empties a table: new storage with the same indexes, the old one dropped. Undone by rollback, as TRUNCATE is.
pub unsafe fn truncate(table: pg_sys::Relation) {
    // SAFETY: the caller's relation is open and locked exclusively.
    unsafe {
        let storage = relation::table(table);
        let xid = xact::write_xid();
        let emptied = xact::current().truncate_table(session::session(), &PgClock, storage, xid);
        if let Err(error) = emptied {
            errors::raise(error);
        }
        relation::forget((*table).rd_id);
        pg_sys::CacheInvalidateRelcache(table);
    }
}
