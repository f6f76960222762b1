//! An error about a constraint, with the table's and the constraint's names in their own fields, which pgrx's report lacks.
use super::report::{self, Words};
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::ffi::{CStr, c_int};

/// Raises an ERROR about `table`.
pub unsafe fn raise_for_table(code: PgSqlErrorCode, table: pg_sys::Relation, message: &str) -> ! {
    // SAFETY: as `report` asks.
    unsafe { report(code, table, About::Table, message, None) }
}

/// Raises an ERROR about a column of `table`.
pub unsafe fn raise_for_column(
    code: PgSqlErrorCode,
    table: pg_sys::Relation,
    column: i16,
    message: &str,
) -> ! {
    // SAFETY: as `report` asks.
    unsafe { report(code, table, About::Column(column), message, None) }
}

/// Raises an ERROR about `constraint` of `table`.
pub unsafe fn raise(
    code: PgSqlErrorCode,
    table: pg_sys::Relation,
    constraint: &CStr,
    message: &str,
    detail: Option<&str>,
) -> ! {
    // SAFETY: as `report` asks.
    unsafe { report(code, table, About::Constraint(constraint), message, detail) }
}

#[derive(Clone, Copy)]
enum About<'a> {
    Constraint(&'a CStr),
    Column(i16),
    Table,
}

/// The table is open.
unsafe fn report(
    code: PgSqlErrorCode,
    table: pg_sys::Relation,
    about: About<'_>,
    message: &str,
    detail: Option<&str>,
) -> ! {
    let words = Words::new(message, detail, None);
    // SAFETY: the relation is open, the constraint's name a C string; neither needs to be dropped.
    unsafe {
        report::report(PgLogLevel::ERROR, code, words, || {
            match about {
                About::Constraint(name) => pg_sys::errtableconstraint(table, name.as_ptr()),
                About::Column(number) => pg_sys::errtablecol(table, c_int::from(number)),
                About::Table => pg_sys::errtable(table),
            };
        });
    }
    unreachable!("the error above jumps")
}
