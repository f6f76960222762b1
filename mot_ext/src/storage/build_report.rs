//! What an index build reports: to the catalog, that older snapshots must not use the index; to the
//! user, a key that occurs twice.
use super::key_text;
use crate::errors;
use crate::pg::{nodes, violation};
use crate::transaction::clock::PgClock;
use crate::transaction::session;
use mot_engine::{EngineError, Newest, Slot, TableRef, VersionRef};
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::ffi::CStr;

/// Keeps the planner from using an index under snapshots that are older than it: `indcheckxmin`, as
/// core does where such a snapshot would miss rows.
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
                let mut tuple = tuple_of(version, (*table).rd_id);
                key_text::of(table, index, &raw mut tuple)
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

/// A version as a tuple whose columns alone are asked for.
pub fn tuple_of(version: VersionRef, table: pg_sys::Oid) -> pg_sys::HeapTupleData {
    pg_sys::HeapTupleData {
        t_len: version.tuple_bytes() as u32,
        t_data: version.image_ptr().cast_mut().cast(),
        t_tableOid: table,
        ..Default::default()
    }
}
