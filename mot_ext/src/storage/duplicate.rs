//! Error 23505, with core's message.
use super::key_text;
use crate::pg::relation::{Relation, with_index};
use crate::pg::violation;
use crate::transaction::session;
use pgrx::pg_sys;

/// Raises 23505 for `row`, which has the key of another row in an index of its table.
///
/// # Safety
/// The row is a tuple of the table's.
pub unsafe fn raise(table: Relation<'_>, index: pg_sys::Oid, row: *mut pg_sys::HeapTupleData) -> ! {
    session::count_conflict(|conflicts| &conflicts.unique_violations);
    with_index(
        index,
        pg_sys::AccessShareLock as pg_sys::LOCKMODE,
        |index| {
            // SAFETY: the caller's row.
            let key = unsafe { key_text::of(table, index, row) };
            let name = index.name_text();
            let message = format!("duplicate key value violates unique constraint \"{name}\"");
            let detail = key.map(|key| format!("Key {key} already exists."));
            violation::raise(
                pgrx::PgSqlErrorCode::ERRCODE_UNIQUE_VIOLATION,
                table,
                index.name(),
                &message,
                detail.as_deref(),
            )
        },
    )
}
