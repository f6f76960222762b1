//! The engine's errors as the SQL errors they are.
use crate::pg::report;
use mot_engine::EngineError;
use mot_engine::memory::LimitOf;
use pgrx::prelude::*;

/// Raises an engine's error as the SQL error it is.
pub fn raise(error: EngineError) -> ! {
    if matches!(error, EngineError::Cancelled) {
        // PostgreSQL knows whether it was a timeout, a cancel or the end of the connection, and
        // says so.
        crate::pg::interrupts::check_for_interrupts();
    }
    raise_report!(
        PgLogLevel::ERROR,
        (code(&error)),
        message(&error),
        detail(&error),
        hint(&error)
    )
}

/// The value, or the engine's error as the SQL error it is.
pub fn or_raise<T>(result: Result<T, EngineError>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => raise(error),
    }
}

fn code(error: &EngineError) -> PgSqlErrorCode {
    match error {
        EngineError::ArenaFull(_)
        | EngineError::OutOfProcessMemory
        | EngineError::ReplayWaitsForMemory => PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY,
        EngineError::KeyTooLong { .. }
        | EngineError::RowTooLong { .. }
        | EngineError::XidTooHigh { .. }
        | EngineError::TooManyRows { .. }
        | EngineError::TooManyLevels { .. } => PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
        EngineError::NoOrder { .. } => PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
        EngineError::RowTypeChanged { .. }
        | EngineError::CollationChanged { .. }
        | EngineError::CheckpointNotNow { .. } => {
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE
        }
        EngineError::TooManyIndexes { .. } => PgSqlErrorCode::ERRCODE_TOO_MANY_COLUMNS,
        EngineError::Cancelled => PgSqlErrorCode::ERRCODE_QUERY_CANCELED,
        EngineError::TooManyParticipants(_) => PgSqlErrorCode::ERRCODE_TOO_MANY_CONNECTIONS,
        EngineError::Io { .. } => PgSqlErrorCode::ERRCODE_IO_ERROR,
        EngineError::KeyNotComputed
        | EngineError::NullWithoutMark
        | EngineError::Corrupt { .. }
        | EngineError::LogMismatch { .. }
        | EngineError::BaseMismatch { .. }
        | EngineError::Damaged { .. }
        | EngineError::OtherCluster { .. } => PgSqlErrorCode::ERRCODE_DATA_CORRUPTED,
        EngineError::Arena(_) => PgSqlErrorCode::ERRCODE_INTERNAL_ERROR,
    }
}

fn message(error: &EngineError) -> String {
    match error {
        EngineError::ArenaFull(full) if full.limit_of == LimitOf::Session => {
            "out of memory for temporary memory-optimized tables of this session".to_owned()
        }
        EngineError::ArenaFull(_) => "out of memory for memory-optimized tables".to_owned(),
        _ => error.to_string(),
    }
}

/// Empty where the message says all.
fn detail(error: &EngineError) -> String {
    let detail = match error {
        EngineError::ArenaFull(full) => {
            return format!(
                "{} of {} bytes are in use; {} more were asked for.",
                full.used, full.limit, full.requested
            );
        }
        EngineError::KeyNotComputed => {
            "Keys in indexes on expressions, and in partial ones, are kept behind their row."
        }
        EngineError::NoOrder { .. } => {
            "The type's own comparison calls it equal to values that differ from each other."
        }
        EngineError::RowTypeChanged { .. } => "The row type was altered while the index was made.",
        EngineError::CollationChanged { .. } => {
            "A library or a locale of the machine was changed while the server ran."
        }
        EngineError::RowTooLong { .. } => {
            "A row of a memory-optimized table is logged in one record, and recovery reads none that is longer."
        }
        EngineError::XidTooHigh { .. } => {
            "A row's version has 48 bits for the id of its transaction, the upper 16 of which are the epoch."
        }
        _ => "",
    };
    detail.to_owned()
}

/// Of a key that is too long.
pub const HINT_LONG_KEY: &str =
    "Index a shorter column, or an expression of it, such as an MD5 hash of the value.";

/// Empty where no remedy is known.
fn hint(error: &EngineError) -> &'static str {
    match error {
        EngineError::ArenaFull(full) if full.limit_of == LimitOf::Session => {
            "Drop or truncate temporary tables, or raise mot.temp_memory."
        }
        EngineError::ArenaFull(_) => {
            "Delete rows, drop or truncate tables, end long transactions, or raise mot.max_memory."
        }
        EngineError::KeyTooLong { .. } => HINT_LONG_KEY,
        EngineError::KeyNotComputed => {
            "Run mot.check on the tables of this database, and REINDEX the index."
        }
        EngineError::NoOrder { .. } => {
            "Leave such values out of the index by its WHERE, or out of the column."
        }
        EngineError::RowTypeChanged { .. } => {
            "REINDEX the indexes of the table whose keys are of the row type."
        }
        EngineError::CollationChanged { .. } => {
            "Restart the server: it builds the indexes of memory-optimized tables anew."
        }
        EngineError::RowTooLong { .. } => {
            "Keep long values in several rows, as large objects, or in a heap table."
        }
        EngineError::XidTooHigh { .. } => {
            "Dump the data and restore it into a new database cluster, whose transaction ids begin anew."
        }
        EngineError::OutOfProcessMemory => {
            "This is memory of the server process itself, not of mot.max_memory."
        }
        EngineError::ReplayWaitsForMemory => {
            "Increase mot.max_memory, or end the queries that keep old row versions."
        }
        EngineError::CheckpointNotNow { .. } => "It is tried again.",
        EngineError::TooManyParticipants(_) => {
            "Use fewer connections, with a connection pooler in front of the server."
        }
        EngineError::Corrupt { .. }
        | EngineError::LogMismatch { .. }
        | EngineError::BaseMismatch { .. }
        | EngineError::Damaged { .. }
        | EngineError::OtherCluster { .. } => {
            "Run mot.check on the tables of this database; restore from a backup what it finds damaged."
        }
        _ => "",
    }
}
