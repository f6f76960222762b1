//! What queries see of the sizes of our tables.
//!
//! Core's functions count the bytes of files. A call of one is planned as a call of the extension's
//! function of the same name and arguments, which adds what rows and indexes take in memory
//! (`monitoring::sizes`). Nothing is stored otherwise. A function of that name that is not the
//! extension's is another user's, and is not called.
use crate::pg::version::tree::PlainFrame;
use pgrx::pg_sys;
use std::ffi::CStr;

/// The name and number of arguments of a function that returns a size.
fn size_function(function: pg_sys::Oid) -> Option<(&'static CStr, usize)> {
    match function.to_u32() {
        pg_sys::F_PG_RELATION_SIZE_REGCLASS => Some((c"pg_relation_size", 1)),
        pg_sys::F_PG_RELATION_SIZE_REGCLASS_TEXT => Some((c"pg_relation_size", 2)),
        pg_sys::F_PG_TABLE_SIZE => Some((c"pg_table_size", 1)),
        pg_sys::F_PG_INDEXES_SIZE => Some((c"pg_indexes_size", 1)),
        pg_sys::F_PG_TOTAL_RELATION_SIZE => Some((c"pg_total_relation_size", 1)),
        _ => None,
    }
}

/// Whether a function returns a size.
pub fn returns_size(function: pg_sys::Oid) -> bool {
    size_function(function).is_some()
}

/// The extension's function in place of one that returns a size; that one in a database without it.
pub fn counterpart(frame: PlainFrame<'_>, function: pg_sys::Oid) -> pg_sys::Oid {
    let Some((name, arguments)) = size_function(function) else {
        return function;
    };
    let types = [pg_sys::REGCLASSOID, pg_sys::TEXTOID];
    let found = frame.function(c"mot", name, &types[..arguments]);
    match found != pg_sys::InvalidOid && frame.is_of_extension(found, c"mot") {
        true => found,
        false => function,
    }
}
