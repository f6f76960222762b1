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

/// Raises 55006: a row that another session has come with lacks its key in an index that is built.
pub fn row_without_key(name: &str) -> ! {
    raise_report!(
        PgLogLevel::ERROR,
        ERRCODE_OBJECT_IN_USE,
        format!("index \"{name}\" cannot be built beside another session's change of a row"),
        "An expression of the index failed for that row.",
        "Drop the index, and create it again."
    )
}
