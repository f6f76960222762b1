//! What keeps a value from getting a label (`storage/labels.rs`).
use super::refuse::raise;
use crate::pg::nodes;
use crate::pg::report::{self, Words};
use pgrx::prelude::*;

/// Raises 54000: values were always put between the same two. The index has this oid, and the
/// writer has its table open and locked.
pub fn no_more_labels(index: u32) -> ! {
    let index = pg_sys::Oid::from(index);
    // SAFETY: a table that is open and locked, and a palloc'd name. After the error core closes the
    // table.
    unsafe {
        let name = pg_sys::get_rel_name(index);
        let table = pg_sys::table_open(
            pg_sys::IndexGetRelation(index, false),
            pg_sys::NoLock as i32,
        );
        let words = Words::new(
            &format!(
                "no room is left between two keys of index \"{}\"",
                nodes::text(name)
            ),
            Some("Each value got a longer key than the one before it."),
            Some("REINDEX the index: it gives all values short keys."),
        );
        let code = PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED;
        report::report(PgLogLevel::ERROR, code, words, || {
            pg_sys::errtableconstraint(table, name);
        });
    }
    unreachable!("the error above jumps")
}

/// Raises 42883: core cannot sort the values for an index that is built.
pub fn no_ordering_operator(input: pg_sys::Oid) -> ! {
    // SAFETY: a catalog look-up that returns a palloc'd string.
    let name = unsafe { nodes::text(pg_sys::format_type_be(input)) };
    raise(
        PgSqlErrorCode::ERRCODE_UNDEFINED_FUNCTION,
        format!("the operator class for type {name} has no operator <"),
        None,
        Some("Add it to the operator class as OPERATOR 1.".into()),
    )
}

/// Raises 55006: the number of an index's file is that of another index of its table.
pub fn number_is_taken(index: u32) -> ! {
    raise(
        PgSqlErrorCode::ERRCODE_OBJECT_IN_USE,
        format!("the file of index {index} has the number of another index of the table"),
        None,
        Some("Build the index once more: it gets another file.".into()),
    )
}
