//! Every error of the extension: SQLSTATE, message, detail and hint in one place, in PostgreSQL's style (message without a
//! capital or a full stop, detail and hint as sentences).
use crate::pg::{self, interrupts, report, text};
use mot_engine::EngineError;
use mot_engine::memory::ArenaFull;
use pgrx::prelude::*;
use std::sync::atomic::Ordering;

/// Raises what the report says; the report's level must be ERROR or higher. Names of the user's are in those of level ERROR only.
macro_rules! raise_report {
    ($level:expr, $code:ident, $message:expr, $detail:expr, $hint:expr) => {{
        let message: String = $message.into();
        let detail: String = $detail.into();
        let hint: String = $hint.into();
        report::raise_unless_utf8(
            PgSqlErrorCode::$code,
            &message,
            Some(detail.as_str()).filter(|text| !text.is_empty()),
            Some(hint.as_str()).filter(|text| !text.is_empty()),
        );
        let report =
            pg_sys::panic::ErrorReport::new(PgSqlErrorCode::$code, message, pgrx::function_name!());
        let report = if detail.is_empty() {
            report
        } else {
            report.set_detail(detail)
        };
        let report = if hint.is_empty() {
            report
        } else {
            report.set_hint(hint)
        };
        report.report($level);
        unreachable!("a report of level {:?} returned", $level)
    }};
}

/// An SQL error passes through Rust as a panic, of which pgrx would put a backtrace into the DETAIL when RUST_BACKTRACE is set
/// in the server's environment. Who wants that says so with RUST_LIB_BACKTRACE.
pub fn init() {
    const VARIABLE: &str = "RUST_LIB_BACKTRACE";
    if std::env::var_os(VARIABLE).is_none() {
        // SAFETY: the process has one thread when it loads the library.
        unsafe { std::env::set_var(VARIABLE, "0") };
    }
}

/// Raises an engine's error as the SQL error it is.
pub fn raise(error: EngineError) -> ! {
    let message = error.to_string();
    match error {
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
            // PostgreSQL knows whether it was a timeout, a cancel or the end of the connection, and says so.
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

/// Raises 0A000. `what` is a plural noun phrase ("prepared transactions that ...").
pub fn unsupported(what: &str, hint: &str) -> ! {
    raise_report!(
        PgLogLevel::ERROR,
        ERRCODE_FEATURE_NOT_SUPPORTED,
        format!("{what} are not supported"),
        "",
        hint
    )
}

/// Raises 0A000 in the new cluster of a pg_upgrade, which would have the table without its rows.
pub fn binary_upgrade() -> ! {
    raise_report!(
        PgLogLevel::ERROR,
        ERRCODE_FEATURE_NOT_SUPPORTED,
        "pg_upgrade does not bring the rows of memory-optimized tables along",
        "The tables would be empty in the new cluster. The old cluster is as it was.",
        "Use pg_dump --include-foreign-data=mot and a new cluster; or keep the rows in heap tables meanwhile, and drop the memory-optimized ones."
    )
}

/// Raises 53200: a transaction that is to be prepared holds more row locks than are kept for one.
pub fn too_many_prepared_locks(rows: usize, rows_max: usize) -> ! {
    raise_report!(
        PgLogLevel::ERROR,
        ERRCODE_OUT_OF_MEMORY,
        "too many row locks for a prepared transaction",
        format!(
            "It locks {rows} rows of memory-optimized tables that it did not change; up to {rows_max} are kept over a restart."
        ),
        "Lock fewer rows, or raise max_locks_per_transaction."
    )
}

/// Raises HV00D: a table, or another object of the wrapper's, has an option.
pub fn invalid_option(name: &str) -> ! {
    raise_report!(
        PgLogLevel::ERROR,
        ERRCODE_FDW_INVALID_OPTION_NAME,
        format!("invalid option \"{name}\""),
        "",
        "Memory-optimized tables have no options."
    )
}

/// Raises 24000: WHERE CURRENT OF means no row.
pub fn invalid_cursor(message: &str) -> ! {
    raise_report!(
        PgLogLevel::ERROR,
        ERRCODE_INVALID_CURSOR_STATE,
        message.to_string(),
        "",
        ""
    )
}

/// Raises 55P03: the row is locked and the statement says NOWAIT.
pub fn row_not_available(relation: &str) -> ! {
    raise_report!(
        PgLogLevel::ERROR,
        ERRCODE_LOCK_NOT_AVAILABLE,
        format!("could not obtain lock on row in relation \"{relation}\""),
        "",
        ""
    )
}

/// Raises 55000: a plan would run that was made before the table got row triggers.
pub fn plan_without_triggers(relation: &str) -> ! {
    raise_report!(
        PgLogLevel::ERROR,
        ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!("row triggers of table \"{relation}\" were made after the statement was planned"),
        "A SQL function keeps its plans until the query that calls it ends.",
        "Make the triggers in a query of their own."
    )
}

/// Raises 42804, in core's words: a plan would run that assigns to a column which is gone, or of another type, since.
pub fn plan_of_other_columns(
    number: i16,
    attribute: &pg_sys::FormData_pg_attribute,
    expected: pg_sys::Oid,
) -> ! {
    let detail = if attribute.attisdropped {
        format!("Query provides a value for a dropped column at ordinal position {number}.")
    } else {
        // SAFETY: catalog look-ups that give palloc'd strings.
        let name = |oid| unsafe { text::from_c(pg_sys::format_type_be(oid)) };
        format!(
            "Table has type {} at ordinal position {number}, but query expects {}.",
            name(attribute.atttypid),
            name(expected)
        )
    };
    raise_report!(
        PgLogLevel::ERROR,
        ERRCODE_DATATYPE_MISMATCH,
        "table row type and query-specified row type do not match",
        detail,
        ""
    )
}

/// A library is to be loaded while a compiled query is open.
pub fn statement_open() -> ! {
    raise_report!(
        PgLogLevel::ERROR,
        ERRCODE_OBJECT_IN_USE,
        "cannot load a library while a compiled query is open",
        "The library could look for plan states, which compiled queries on memory-optimized tables do not have.",
        "Close cursors first, or load the library when the session begins (session_preload_libraries)."
    )
}

/// Raises 55000: a plan would run whose index was dropped since.
pub fn index_dropped() -> ! {
    raise_report!(
        PgLogLevel::ERROR,
        ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        "an index that the statement was planned with has been dropped".to_owned(),
        "A SQL function keeps its plans until the query that calls it ends.",
        "Drop the index in a query of its own."
    )
}

/// Raises 55000: the library is not in shared_preload_libraries. Says which line to write.
pub fn not_preloaded() -> ! {
    raise_report!(
        PgLogLevel::ERROR,
        ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        "memory-optimized tables need the library \"mot\" to be preloaded",
        "",
        preload_hint()
    )
}

/// Raises 0A000: the guarantee of SERIALIZABLE rests on something of this server's that is not as it should be.
pub fn unknown_server_layout() -> ! {
    raise_report!(
        PgLogLevel::ERROR,
        ERRCODE_FEATURE_NOT_SUPPORTED,
        "this build of PostgreSQL keeps its notes of SERIALIZABLE transactions in a form that the library \"mot\" does not know",
        "Without them the order of two commits could be mistaken.",
        "Use REPEATABLE READ, or a library \"mot\" built for this server."
    )
}

/// Raises 55000: a definition would be changed in the catalog alone.
pub fn definition_not_preloaded() -> ! {
    raise_report!(
        PgLogLevel::ERROR,
        ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        "definitions of memory-optimized tables cannot be changed while the library \"mot\" is not preloaded",
        "The library keeps the rows; without it the statement would change the catalog and leave them as they are.",
        format!(
            "{} To give the tables up, disable the event trigger mot_require_preload first, in a transaction of its own.",
            preload_hint()
        )
    )
}

fn preload_hint() -> String {
    // SAFETY: a setting's current value: NULL or a C string that lives until it is changed, which needs this thread.
    let current = unsafe { text::from_c(pg_sys::shared_preload_libraries_string) };
    let list = if current.trim().is_empty() {
        "mot".into()
    } else {
        format!("{current}, mot")
    };
    format!(
        "Write the line  shared_preload_libraries = '{list}'  into postgresql.conf and restart the server."
    )
}

/// Raises XX001: the tables could not be loaded.
pub fn load_failed(why: &str) -> ! {
    raise_report!(
        PgLogLevel::ERROR,
        ERRCODE_DATA_CORRUPTED,
        "memory-optimized tables could not be loaded at server start",
        format!("{}.", text::foreign(why)),
        hint_for_failed_load()
    )
}

/// What to do where the tables could not be loaded.
pub fn hint_for_failed_load() -> &'static str {
    if is_of_another_cluster() {
        HINT_ANOTHER_CLUSTER
    } else {
        "Nothing is lost or overwritten. Put the damaged file back into the directory \"mot\" of the data directory, or restore the cluster from a backup, and restart the server."
    }
}

fn is_of_another_cluster() -> bool {
    let control = crate::shmem::control();
    control.is_of_another_cluster.load(Ordering::Relaxed)
}

const HINT_ANOTHER_CLUSTER: &str = "Nothing is lost or overwritten. If this very server got a new system identifier (from pg_createsubscriber, for instance), set mot.adopt_system_identifier to the one in the file and restart it, once. If the directory \"mot\" of the data directory came from another server, put the right one back.";

/// Says that a checkpoint of a cluster with another identifier is taken for this one's.
pub fn report_adopted(written_by: u64) {
    tell(
        PgLogLevel::LOG,
        PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
        format!(
            "mot takes over the checkpoint of the database cluster with the system identifier {written_by}, as mot.adopt_system_identifier asks for"
        ),
        "Once it is loaded it has this cluster's identifier, and the setting has no effect.",
    );
}

/// Raises 57P03: the load takes longer than `mot.load_timeout`.
pub fn still_loading(timeout_ms: i32) -> ! {
    raise_report!(
        PgLogLevel::ERROR,
        ERRCODE_CANNOT_CONNECT_NOW,
        "memory-optimized tables are still being loaded",
        format!("The statement has waited {timeout_ms} ms (mot.load_timeout)."),
        "Try again later; the view mot.stat_recovery shows how far the load is."
    )
}

/// Raises 55000: the catalog knows the relation, the engine does not.
pub fn no_storage(name: &str) -> ! {
    raise_report!(
        PgLogLevel::ERROR,
        ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!("memory-optimized table \"{name}\" has no storage in this database"),
        "Its definition came here without its rows, as by CREATE DATABASE ... TEMPLATE.",
        "TRUNCATE the table to begin with an empty one."
    )
}

/// Raises 55000: single-user mode has no workers that would write checkpoints.
pub fn single_user() -> ! {
    raise_report!(
        PgLogLevel::ERROR,
        ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        "memory-optimized tables cannot be changed in single-user mode",
        "",
        "Start the server normally."
    )
}

/// Raises 25000: a function that changes or locks rows runs in a parallel worker, which its leader would not learn.
pub fn parallel_worker() -> ! {
    raise_report!(
        PgLogLevel::ERROR,
        ERRCODE_INVALID_TRANSACTION_STATE,
        "rows of memory-optimized tables cannot be changed or locked in a parallel worker",
        "",
        "Mark the function PARALLEL UNSAFE."
    )
}

/// Raises 57P01: the server is shutting down and the last checkpoint is about to be written.
pub fn closing() -> ! {
    raise_report!(
        PgLogLevel::FATAL,
        ERRCODE_ADMIN_SHUTDOWN,
        "terminating connection: memory-optimized tables are being closed for shutdown",
        "",
        ""
    )
}

/// Ends a worker in the middle of its work because the server shuts down.
pub fn worker_ends() -> ! {
    raise_report!(
        PgLogLevel::ERROR,
        ERRCODE_ADMIN_SHUTDOWN,
        "a worker of mot ends because the server shuts down",
        "",
        ""
    )
}

/// Stops the start of the server: no memory for the arena.
pub fn no_region(why: &str) -> ! {
    raise_report!(
        PgLogLevel::FATAL,
        ERRCODE_OUT_OF_MEMORY,
        format!("memory for memory-optimized tables could not be had: {why}"),
        "",
        "Lower mot.max_memory, set mot.huge_pages = off, or take mot out of shared_preload_libraries if it has no tables."
    )
}

/// Stops recovery: a checkpoint cannot be loaded, or WAL is missing between it and the redo position.
pub fn load_stops_start(why: &str) -> ! {
    raise_report!(
        PgLogLevel::FATAL,
        ERRCODE_DATA_CORRUPTED,
        format!("memory-optimized tables could not be loaded: {why}"),
        "The start is stopped so that nothing is skipped in silence; nothing has been changed.",
        if is_of_another_cluster() {
            HINT_ANOTHER_CLUSTER
        } else {
            "Put the damaged or missing file back (checkpoints are in the directory \"mot\" of the data directory), or restore the cluster from a backup."
        }
    )
}

/// Stops recovery: a record cannot be applied. In the worker it ends the load, which says then that it has failed: were the process ended,
/// nobody would load any more, and whoever waits for the tables would wait for ever.
pub fn replay_stops(lsn: &str, error: EngineError) -> ! {
    let level = if interrupts::is_startup_process() || !pg::is_under_postmaster() {
        PgLogLevel::FATAL
    } else {
        PgLogLevel::ERROR
    };
    raise_report!(
        level,
        ERRCODE_DATA_CORRUPTED,
        format!("mot could not replay the record that ends at {lsn}: {error}"),
        "The start is stopped so that nothing is skipped in silence.",
        "The WAL or the checkpoint under PGDATA/mot is damaged, or was written by another version of mot: restore from a backup, or install that version."
    )
}

/// A reader of a standby needs rows for which replay has no memory, and keeps versions itself meanwhile.
pub fn replay_without_memory() -> ! {
    raise_report!(
        PgLogLevel::ERROR,
        ERRCODE_OUT_OF_MEMORY,
        "the rows of this snapshot cannot be replayed: memory for memory-optimized tables is used up",
        "Replay waits for memory, perhaps for what this statement's snapshot keeps.",
        "Try again later. If it lasts: end long queries on this standby, or raise mot.max_memory at least to the primary's value and restart the server."
    )
}

/// A reader of a standby needs rows that this server will not replay any more.
pub fn replay_given_up() -> ! {
    raise_report!(
        PgLogLevel::ERROR,
        ERRCODE_CANNOT_CONNECT_NOW,
        "replay of memory-optimized tables has ended before the rows of this snapshot",
        "",
        "The server shuts down, or replay has failed: the server log says why."
    )
}

/// Says something in the server log, with a hint, and goes on.
pub fn tell(level: PgLogLevel, code: PgSqlErrorCode, message: String, hint: &str) {
    pg_sys::panic::ErrorReport::new(code, message, pgrx::function_name!())
        .set_hint(hint)
        .report(level);
}

/// What to do about a checkpoint that failed.
pub const HINT_CHECKPOINT_FAILED: &str = "It is tried again every few seconds, and the WAL that a restart needs is kept meanwhile. Make room in the directory \"mot\" of the data directory, or look after its disk.";

/// The same, while PostgreSQL's checkpoints have to wait.
pub const HINT_CHECKPOINT_FAILED_GATE_SHUT: &str = "It is tried again every few seconds; PostgreSQL's checkpoints wait for it, since nothing else keeps the WAL that a restart needs: there is no replication slot \"mot\", or max_slot_wal_keep_size is not -1. Make room in the directory \"mot\" of the data directory, or look after its disk.";

/// The same, while the server's shutdown has to wait.
pub const HINT_CHECKPOINT_FAILED_SHUTDOWN_WAITS: &str = "The shutdown waits for it, since nothing else keeps the WAL that the next start needs: there is no replication slot \"mot\", or max_slot_wal_keep_size is not -1. It is tried again every few seconds: make room in the directory \"mot\" of the data directory, or look after its disk. Or stop the server in mode immediate: nothing is lost, the next start recovers.";

/// The same, while a base backup waits.
pub const HINT_CHECKPOINT_FAILED_BACKUP_WAITS: &str = "It is tried again every few seconds; PostgreSQL's checkpoints wait for it, since a base backup is under way, which else could not be restored if it has just begun. Make room in the directory \"mot\" of the data directory, or look after its disk, or end the backup (pg_terminate_backend; pg_stat_replication has its WAL sender).";

/// Says that a base backup was ended.
pub fn report_base_backup_ended(pid: i32) {
    tell(
        PgLogLevel::WARNING,
        PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!(
            "mot has ended the WAL sender with PID {pid}: a base backup by it could not be restored, or not surely"
        ),
        "A base backup needs a complete checkpoint of memory-optimized tables, and their checkpoint worker until it has begun. Lines before this one say what prevents that. Take the backup anew.",
    );
}

/// Raises 55000: a backup has begun that could not be restored.
pub fn backup_not_whole() -> ! {
    raise_report!(
        PgLogLevel::ERROR,
        ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        "the backup has begun without a complete checkpoint of memory-optimized tables",
        "A copy of the files would lack WAL: their checkpoint worker was not running when the backup began.",
        "End the backup (pg_backup_stop, or the session) and begin it anew."
    )
}

/// Says that the tables are loaded but that it cannot be noted that statements, or replay, begin.
pub fn report_begin_failed(error: &EngineError) {
    const HINT: &str = "It is tried again every few seconds; statements on memory-optimized tables, or replay, wait meanwhile. Make room in the directory \"mot\" of the data directory, or look after its disk.";
    let text = format!("mot has loaded its tables, but statements cannot begin: {error}");
    if interrupts::is_startup_process() {
        // An error is fatal there.
        let code = PgSqlErrorCode::ERRCODE_IO_ERROR;
        tell(PgLogLevel::WARNING, code, text, HINT);
    } else {
        report::error_without_jump(&text, HINT);
    }
}

/// Says that storages of a database that is no more are being freed.
pub fn report_orphans_freed(database: pg_sys::Oid, tables: usize) {
    tell(
        PgLogLevel::LOG,
        PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
        format!("mot frees {tables} tables of the database with OID {database}, which is no more"),
        "It was dropped while mot was not in shared_preload_libraries.",
    );
}

/// Says that recovery has no checkpoint worker beside it.
pub fn report_no_worker(may_go_on: bool) {
    tell(
        PgLogLevel::WARNING,
        PgSqlErrorCode::ERRCODE_INSUFFICIENT_RESOURCES,
        "the checkpoint worker of mot did not start in time".into(),
        if may_go_on {
            "Recovery goes on. Is max_worker_processes large enough?"
        } else {
            "Recovery waits for it, since no replication slot keeps the WAL in its place. Is max_worker_processes large enough? Shut the server down, raise it, and start it again."
        },
    );
}

/// Says that it is not known whether there are storages of databases that are no more.
pub fn report_orphans_unknown() {
    tell(
        PgLogLevel::WARNING,
        PgSqlErrorCode::ERRCODE_INSUFFICIENT_RESOURCES,
        "mot could not start a worker that frees the tables of dropped databases".into(),
        "If a database was dropped while mot was not in shared_preload_libraries, its tables take memory. Is max_worker_processes large enough? It is tried again at the next start.",
    );
}

/// Says that no statement will run compiled.
pub fn report_statements_hidden() {
    tell(
        PgLogLevel::WARNING,
        PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
        "mot runs all statements by the general executor: pg_stat_statements hides which libraries were loaded before it".into(),
        "List pg_stat_statements right after mot in shared_preload_libraries, and other libraries behind it.",
    );
}

/// Says that files of older checkpoints could not be removed.
pub fn report_files_stay(error: &EngineError) {
    tell(
        PgLogLevel::WARNING,
        PgSqlErrorCode::ERRCODE_IO_ERROR,
        format!("mot could not remove files of older checkpoints: {error}"),
        "The newest checkpoint is complete. It is tried again after the next one; until then the files take space. A damaged manifest of an older checkpoint may be deleted.",
    );
}

/// Says that checkpoints were passed by of which a copy has not all files.
pub fn report_passed_by(count: usize, redo: mot_engine::Lsn) {
    tell(
        PgLogLevel::WARNING,
        PgSqlErrorCode::ERRCODE_WARNING,
        format!(
            "mot has removed {count} checkpoints of its tables whose files are missing or too short, and loads an older one"
        ),
        &format!(
            "A copy of a running server may have them so, and nothing is lost: the older one is complete, and everything from {} on is replayed.",
            crate::wal::reader::show_lsn(redo)
        ),
    );
}

/// Says that a checkpoint had to be written as a whole.
pub fn report_base_lost(error: &str) {
    tell(
        PgLogLevel::WARNING,
        PgSqlErrorCode::ERRCODE_DATA_CORRUPTED,
        format!("mot wrote a whole checkpoint because it cannot build on the one before: {error}"),
        "Nothing is lost: the tables are in memory, and the new checkpoint has all of them. Look after the disk.",
    );
}

/// Says that rows were met that nobody can judge any more.
pub fn report_lost_outcome(xid: u64) {
    tell(
        PgLogLevel::WARNING,
        PgSqlErrorCode::ERRCODE_DATA_CORRUPTED,
        format!(
            "rows of memory-optimized tables cannot be read: the commit log no longer knows what became of transaction {xid}"
        ),
        "Restore from a backup, or bring the missing files of pg_xact back while the server is stopped. Statements that meet such a row fail.",
    );
}

/// Why a load fails that finds nothing.
pub fn no_checkpoint() -> String {
    "the directory \"mot\" of the data directory holds no checkpoint, but there was one: the replication slot \"mot\" exists (who gives up the rows of all memory-optimized tables drops it)".into()
}

/// Says that replay waits for memory.
pub fn report_replay_waits(lsn: &str, full: ArenaFull, has_readers: bool) {
    let hint = if has_readers {
        "End long queries on this standby; or shut it down, raise mot.max_memory at least to the primary's value, and start it again."
    } else {
        "Shut the server down, raise mot.max_memory (on a standby: at least to the primary's value), and start it again."
    };
    pg_sys::panic::ErrorReport::new(
        PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY,
        format!(
            "replay of memory-optimized tables waits at {lsn}: mot.max_memory = {} MB is used up",
            crate::settings::MAX_MEMORY_MIB.get()
        ),
        pgrx::function_name!(),
    )
    .set_detail(format!(
        "{} of {} bytes are in use; {} more were asked for.",
        full.used, full.limit, full.requested
    ))
    .set_hint(hint)
    .report(PgLogLevel::LOG);
}
