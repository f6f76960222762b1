//! Error 54000 of a key that is too long, with the names of its table and index as core gives them.
use crate::errors;
use crate::pg::report::{self, Words};
use crate::pg::text;
use mot_engine::EngineError;
use pgrx::pg_sys;
use pgrx::prelude::*;

/// The value, or the engine's error as the SQL error it is, about an index of an open table.
///
/// # Safety
/// The table is open, and the index is one of its indexes.
pub unsafe fn or_raise<T>(
    result: Result<T, EngineError>,
    table: pg_sys::Relation,
    index: pg_sys::Oid,
) -> T {
    match result {
        Ok(value) => value,
        // SAFETY: the caller's.
        Err(EngineError::KeyTooLong { bytes, max }) => unsafe { raise(table, index, bytes, max) },
        Err(error) => errors::raise(error),
    }
}

/// Raises 54000.
///
/// # Safety
/// As for [`or_raise`].
pub unsafe fn raise(table: pg_sys::Relation, index: pg_sys::Oid, bytes: usize, max: usize) -> ! {
    // SAFETY: the caller's table; the name is palloc'd, and nothing else is left to drop.
    unsafe {
        let name = pg_sys::get_rel_name(index);
        let message = format!(
            "index row size {bytes} exceeds maximum {max} for index \"{}\"",
            text::from_c(name)
        );
        let words = Words::new(&message, None, Some(errors::HINT_LONG_KEY));
        drop(message);
        let code = PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED;
        report::report(PgLogLevel::ERROR, code, words, || {
            pg_sys::errtableconstraint(table, name);
        });
    }
    unreachable!("the error above jumps")
}
