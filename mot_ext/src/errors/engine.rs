//! The engine's errors as the SQL errors they are.
use crate::pg::report;
use mot_engine::EngineError;
use mot_engine::memory::LimitOf;
use pgrx::prelude::*;

/// Raises an engine's error as the SQL error it is.
pub fn raise(error: EngineError) -> ! {
    let message = error.to_string();
    match error {
        EngineError::ArenaFull(full) if full.limit_of == LimitOf::Session => raise_report!(
            PgLogLevel::ERROR,
            ERRCODE_OUT_OF_MEMORY,
            "out of memory for temporary memory-optimized tables of this session",
            format!(
                "{} of {} bytes are in use; {} more were asked for.",
                full.used, full.limit, full.requested
            ),
            "Drop or truncate temporary tables, or raise mot.temp_memory."
        ),
        EngineError::ArenaFull(full) => raise_report!(
            PgLogLevel::ERROR,
            ERRCODE_OUT_OF_MEMORY,
            "out of memory for memory-optimized tables",
            format!(
                "{} of {} bytes are in use; {} more were asked for.",
                full.used, full.limit, full.requested
            ),
            "Delete rows, drop or truncate tables, end long transactions, or raise mot.max_memory."
        ),
        EngineError::KeyTooLong { .. } => raise_report!(
            PgLogLevel::ERROR,
            ERRCODE_PROGRAM_LIMIT_EXCEEDED,
            message,
            "",
            "Index a shorter column, or an expression such as a hash of it in a generated column."
        ),
        EngineError::KeyNotComputed => raise_report!(
            PgLogLevel::ERROR,
            ERRCODE_DATA_CORRUPTED,
            message,
            "Keys in indexes on expressions, and in partial ones, are kept behind their row.",
            "Run mot.check on the tables of this database, and REINDEX the index."
        ),
        EngineError::NoOrder { .. } => raise_report!(
            PgLogLevel::ERROR,
            ERRCODE_FEATURE_NOT_SUPPORTED,
            message,
            "The type's own comparison calls it equal to values that differ from each other.",
            "Leave such values out of the index by its WHERE, or out of the column."
        ),
        EngineError::RowTypeChanged { .. } => raise_report!(
            PgLogLevel::ERROR,
            ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            message,
            "The row type was altered while the index was made.",
            "REINDEX the indexes of the table whose keys are of the row type."
        ),
        EngineError::CollationChanged { .. } => raise_report!(
            PgLogLevel::ERROR,
            ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            message,
            "A library or a locale of the machine was changed while the server ran.",
            "Restart the server: it builds the indexes of memory-optimized tables anew."
        ),
        EngineError::RowTooLong { .. } => raise_report!(
            PgLogLevel::ERROR,
            ERRCODE_PROGRAM_LIMIT_EXCEEDED,
            message,
            "A row of a memory-optimized table is logged in one record, and recovery reads none that is longer.",
            "Keep long values in several rows, as large objects, or in a heap table."
        ),
        EngineError::XidTooHigh { .. } => raise_report!(
            PgLogLevel::ERROR,
            ERRCODE_PROGRAM_LIMIT_EXCEEDED,
            message,
            "A row's version has 48 bits for the id of its transaction, the upper 16 of which are the epoch.",
            "Dump the data and restore it into a new database cluster, whose transaction ids begin anew."
        ),
        EngineError::TooManyRows { .. } | EngineError::TooManyLevels { .. } => {
            raise_report!(
                PgLogLevel::ERROR,
                ERRCODE_PROGRAM_LIMIT_EXCEEDED,
                message,
                "",
                ""
            )
        }
        EngineError::TooManyIndexes { .. } => {
            raise_report!(PgLogLevel::ERROR, ERRCODE_TOO_MANY_COLUMNS, message, "", "")
        }
        EngineError::OutOfProcessMemory => raise_report!(
            PgLogLevel::ERROR,
            ERRCODE_OUT_OF_MEMORY,
            message,
            "",
            "This is memory of the server process itself, not of mot.max_memory."
        ),
        EngineError::Cancelled => {
            // PostgreSQL knows whether it was a timeout, a cancel or the end of the connection, and
            // says so.
            crate::pg::interrupts::check_for_interrupts();
            raise_report!(PgLogLevel::ERROR, ERRCODE_QUERY_CANCELED, message, "", "")
        }
        EngineError::ReplayWaitsForMemory => raise_report!(
            PgLogLevel::ERROR,
            ERRCODE_OUT_OF_MEMORY,
            message,
            "",
            "Increase mot.max_memory, or end the queries that keep old row versions."
        ),
        EngineError::CheckpointNotNow { .. } => raise_report!(
            PgLogLevel::ERROR,
            ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            message,
            "",
            "It is tried again."
        ),
        EngineError::TooManyParticipants(_) => raise_report!(
            PgLogLevel::ERROR,
            ERRCODE_TOO_MANY_CONNECTIONS,
            message,
            "",
            "Use fewer connections, with a connection pooler in front of the server."
        ),
        EngineError::Io { .. } => {
            raise_report!(PgLogLevel::ERROR, ERRCODE_IO_ERROR, message, "", "")
        }
        EngineError::Corrupt { .. }
        | EngineError::LogMismatch { .. }
        | EngineError::BaseMismatch { .. }
        | EngineError::Damaged { .. }
        | EngineError::OtherCluster { .. } => raise_report!(
            PgLogLevel::ERROR,
            ERRCODE_DATA_CORRUPTED,
            message,
            "",
            "Run mot.check on the tables of this database; restore from a backup what it finds damaged."
        ),
        EngineError::Arena(_) => {
            raise_report!(PgLogLevel::ERROR, ERRCODE_INTERNAL_ERROR, message, "", "")
        }
    }
}

/// The value, or the engine's error as the SQL error it is.
pub fn or_raise<T>(result: Result<T, EngineError>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => raise(error),
    }
}
