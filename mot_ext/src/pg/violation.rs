//! An error about a constraint, with the table's and the constraint's names in their own fields,
//! which pgrx's report lacks.
use super::relation::Relation;
use super::report::{self, Words};
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::ffi::CStr;

/// Raises an ERROR about `constraint` of `table`.
pub fn raise(
    code: PgSqlErrorCode,
    table: Relation<'_>,
    constraint: &CStr,
    message: &str,
    detail: Option<&str>,
) -> ! {
    let words = Words::new(message, detail, None);
    // SAFETY: the relation is open, the constraint's name a C string; neither needs to be dropped.
    unsafe {
        report::report(PgLogLevel::ERROR, code, words, || {
            pg_sys::errtableconstraint(table.as_ptr(), constraint.as_ptr());
        });
    }
    unreachable!("the error above jumps")
}
