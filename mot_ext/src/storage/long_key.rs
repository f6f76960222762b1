//! Error 54000 of a key that is too long, with the names of its table and index as core gives them.
use crate::errors;
use crate::pg::relation::Relation;
use crate::pg::report::{self, Words};
use crate::pg::text;
use mot_engine::EngineError;
use pgrx::pg_sys;
use pgrx::prelude::*;

/// The value, or the engine's error as the SQL error it is, about an index of a table.
pub fn or_raise<T>(result: Result<T, EngineError>, table: Relation<'_>, index: pg_sys::Oid) -> T {
    match result {
        Ok(value) => value,
        Err(EngineError::KeyTooLong { bytes, max }) => raise(table, index, bytes, max),
        Err(error) => errors::raise(error),
    }
}

/// Raises 54000.
pub fn raise(table: Relation<'_>, index: pg_sys::Oid, bytes: usize, max: usize) -> ! {
    // SAFETY: an index that is there; the name is palloc'd, and nothing else is left to drop.
    unsafe {
        let name = pg_sys::get_rel_name(index);
        assert!(!name.is_null());
        let message = format!(
            "index row size {bytes} exceeds maximum {max} for index \"{}\"",
            text::from_c(name)
        );
        let words = Words::new(&message, None, Some(errors::HINT_LONG_KEY));
        drop(message);
        let code = PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED;
        report::report(PgLogLevel::ERROR, code, words, || {
            pg_sys::errtableconstraint(table.as_ptr(), name);
        });
    }
    unreachable!("the error above jumps")
}
