//! Every error of the engine, once. The glue maps them to SQLSTATE, detail and hint.

use crate::memory::{ArenaError, ArenaFull};

/// What can go wrong. Nothing was changed unless the operation says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// No room in the arena. Deletes, drops and index removal may still use the reserve.
    #[error(transparent)]
    ArenaFull(#[from] ArenaFull),
    /// The arena cannot be laid out or attached to.
    #[error(transparent)]
    Arena(#[from] ArenaError),
    /// A key's encoding is too long.
    #[error("a key of {bytes} bytes exceeds the maximum of {max} bytes")]
    KeyTooLong { bytes: usize, max: usize },
    /// A row was formed without its key in an index that cannot compute it.
    #[error("a row has no computed key")]
    KeyNotComputed,
    /// A state of a row has NULL where an index's keys have no mark for it.
    #[error("a row has NULL in a column of which an index's keys have no mark for it")]
    NullWithoutMark,
    /// A library orders texts otherwise than when the index's keys were entered.
    #[error("index {index} has keys in an order of texts that this process does not have")]
    CollationChanged { index: u32 },
    /// A value of a row type has a column that an index's keys lack.
    #[error("a value of row type {row_type} has a column that an index does not know")]
    RowTypeChanged { row_type: u32 },
    /// A value that its type's operator class gives no place in an order.
    #[error("a key value has no place in an order: {what}")]
    NoOrder { what: &'static str },
    /// A row is too long.
    #[error("a row of {bytes} bytes exceeds the maximum of {max} bytes")]
    RowTooLong { bytes: usize, max: usize },
    /// A transaction id is too high for a row.
    #[error("rows cannot be changed by transactions with an id above {max}")]
    XidTooHigh { max: u64 },
    /// A table has as many rows as its directory can name.
    #[error("a table cannot have more than {max} rows")]
    TooManyRows { max: u64 },
    /// A table has as many indexes as it can have.
    #[error("a table cannot have more than {max} indexes")]
    TooManyIndexes { max: usize },
    /// Process-local memory ran out.
    #[error("out of process memory")]
    OutOfProcessMemory,
    /// [`Clock::is_cancelled`](crate::Clock::is_cancelled) said so; what was begun was undone.
    #[error("canceling statement due to user request")]
    Cancelled,
    /// A checkpoint cannot begin, because replay waits for room in the arena.
    #[error("replay waits for memory")]
    ReplayWaitsForMemory,
    /// A checkpoint has to be given up, and is tried again.
    #[error("{what}")]
    CheckpointNotNow { what: &'static str },
    /// Savepoints nested too deep.
    #[error("savepoints are nested deeper than {max} levels")]
    TooManyLevels { max: u32 },
    /// All session places are taken.
    #[error(transparent)]
    TooManyParticipants(#[from] crate::memory::TooManyParticipants),
    /// Bytes that cannot be what they should be (a tuple, a log record, a definition).
    #[error("corrupt data: {what}")]
    Corrupt { what: &'static str },
    /// Replay met a state that the log does not fit.
    #[error("log record at {lsn:X} does not fit table {table} row id {row_id}: {what}")]
    LogMismatch {
        what: &'static str,
        table: u64,
        row_id: u64,
        lsn: u64,
    },
    /// A logged difference is against another version than the row has.
    #[error(
        "log record at {lsn:X} does not fit table {table} row_id {row_id}: the row is at {row_lsn:X}, the change \
         is against ...{base_lsn_low:08X}"
    )]
    BaseMismatch {
        table: u64,
        row_id: u64,
        lsn: u64,
        row_lsn: u64,
        base_lsn_low: u32,
    },
    /// A file is damaged.
    #[error("file \"{file}\" is damaged: {what}")]
    Damaged { file: String, what: String },
    /// A checkpoint of a cluster with another system identifier.
    #[error(
        "file \"{file}\" was written by a database cluster with the system identifier {written_by}, and this \
         one has {own}"
    )]
    OtherCluster {
        file: String,
        written_by: u64,
        own: u64,
    },
    /// An operating-system error on a file.
    #[error("{action} \"{file}\": {source}")]
    Io {
        action: &'static str,
        file: String,
        source: std::io::Error,
    },
}
