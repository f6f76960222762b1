//! What an index build reports: to the catalog, that older snapshots must not use the index; to the
//! user, a key that occurs twice.
use super::key_text;
use crate::errors;
use crate::pg::relation::Relation;
use crate::pg::{catalog, index_row, violation};
use crate::transaction::clock::PgClock;
use crate::transaction::session;
use mot_engine::{EngineError, Newest, RowId, TableRef, VersionRef};
use pgrx::pg_sys;
use pgrx::prelude::*;

/// Keeps the planner from using an index under snapshots that are older than it: `indcheckxmin`, as
/// core does where such a snapshot would miss rows.
///
/// # Safety
/// The index is locked, so that no other session replaces its row.
pub unsafe fn keep_from_older(index: pg_sys::Oid) {
    // SAFETY: the caller's index. The relation cache reads the field anew.
    let is_there = unsafe { index_row::change(index, |form| form.indcheckxmin = true) };
    if !is_there {
        errors::raise(EngineError::Corrupt {
            what: "an index has no row in pg_index",
        });
    }
    catalog::make_changes_visible();
}

/// Core's error for a unique index that cannot be built. The row stays: writers are locked out, or
/// a snapshot keeps it.
pub fn duplicated(table: Relation<'_>, index: Relation<'_>, storage: TableRef, row: RowId) -> ! {
    let key = match session::session().newest(&PgClock, storage, row) {
        Newest::Live(version) => {
            let mut tuple = tuple_of(version, table.oid());
            // SAFETY: a tuple of the table's.
            unsafe { key_text::of(table, index, &raw mut tuple) }
        }
        _ => None,
    };
    let detail = match key {
        Some(key) => format!("Key {key} is duplicated."),
        None => "Duplicate keys exist.".into(),
    };
    let name = index.name_text();
    violation::raise(
        PgSqlErrorCode::ERRCODE_UNIQUE_VIOLATION,
        table,
        index.name(),
        &format!("could not create unique index \"{name}\""),
        Some(&detail),
    )
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
