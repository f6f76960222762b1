//! How a compiled statement finds its rows: by which index, with which conditions.
use super::conditions::Test;
use pgrx::pg_sys;

/// One test of a key column, as the scan needs it.
#[derive(Clone, Copy)]
pub struct Key {
    pub column: usize,
    pub test: Test,
    pub argument_type: pg_sys::Oid,
}

/// What a scan is to read.
pub struct Search {
    /// The index; invalid for all rows.
    pub index: pg_sys::Oid,
    /// From the last key to the first.
    pub is_backward: bool,
    /// The conditions on the key, by column. Those that have an argument have it in this order.
    pub keys: Vec<Key>,
}

impl Search {
    /// Of all rows.
    pub const ALL: Search = Search {
        index: pg_sys::InvalidOid,
        is_backward: false,
        keys: Vec::new(),
    };
}
