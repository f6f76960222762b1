//! Errors about indexes that cannot be used, or built.
use crate::pg::report;
use pgrx::prelude::*;

/// Raises 55000: the catalog knows the index, the engine does not.
pub fn no_index_storage(name: &str) -> ! {
    raise_report!(
        PgLogLevel::ERROR,
        ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!("index \"{name}\" of a memory-optimized table has no entries in this database"),
        "Its file was made otherwise than by building it.",
        "REINDEX the index."
    )
}

/// Raises 55006: a row has no key in an index that is built, or was built since it was formed.
pub fn row_without_key(name: &str) -> ! {
    raise_report!(
        PgLogLevel::ERROR,
        ERRCODE_OBJECT_IN_USE,
        format!("a row has no key in index \"{name}\", which is built beside its change"),
        "An expression of the index failed for the row.",
        "Repeat the statement. Drop an index that is not valid, and create it again."
    )
}
