//! Error 23505, with core's message.
use super::key_text;
use crate::pg::{text, violation};
use crate::transaction::session;
use pgrx::pg_sys;
use std::ffi::CStr;

/// Raises 23505 for `row`, which has the key of another row in this index.
pub unsafe fn raise(table: pg_sys::Relation, index: u32, row: *mut pg_sys::HeapTupleData) -> ! {
    session::count_conflict(|conflicts| &conflicts.unique_violations);
    // SAFETY: the table is open; the index is one of its indexes, locked with it; the row is a
    // tuple of the table.
    unsafe {
        let index = pg_sys::index_open(pg_sys::Oid::from(index), pg_sys::AccessShareLock as i32);
        let description = key_text::of(table, index, row);
        let name = CStr::from_ptr((*(*index).rd_rel).relname.data.as_ptr());
        let message = format!(
            "duplicate key value violates unique constraint \"{}\"",
            text::from_c(name.as_ptr())
        );
        let detail = description.map(|key| format!("Key {key} already exists."));
        let name = name.to_owned();
        violation::raise(
            pgrx::PgSqlErrorCode::ERRCODE_UNIQUE_VIOLATION,
            table,
            &name,
            &message,
            detail.as_deref(),
        )
    }
}
