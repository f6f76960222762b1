//! Messages in the server log of processes that continue, and the hints of errors after which they
//! try again.
use crate::pg::{interrupts, report};
use mot_engine::memory::ArenaFull;
use mot_engine::{EngineError, RelationKey};
use pgrx::prelude::*;

/// Writes a message with a hint to the server log, and returns.
pub fn log_message(level: PgLogLevel, code: PgSqlErrorCode, message: String, hint: &str) {
    pg_sys::panic::ErrorReport::new(code, message, pgrx::function_name!())
        .set_hint(hint)
        .report(level);
}

/// Says that a checkpoint of a cluster with another identifier is taken for this one's.
pub fn report_adopted(written_by: u64) {
    log_message(
        PgLogLevel::LOG,
        PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
        format!(
            "mot takes over the checkpoint of the database cluster with the system identifier {written_by}, as \
             mot.adopt_system_identifier asks for"
        ),
        "Once it is loaded it has this cluster's identifier, and the setting has no effect.",
    );
}

/// Says that the rows of the old cluster of a pg_upgrade are here. Left out are storages whose
/// relations were dropped while the library was not preloaded.
pub fn report_rows_brought(source: &str, left_out: &[RelationKey]) {
    let name = |key: &RelationKey| format!("{}/{}", key.database, key.relation);
    let names: Vec<_> = left_out.iter().map(name).collect();
    let but = match names.is_empty() {
        true => String::new(),
        false => format!(
            ", but for tables that are in no catalog: {}",
            names.join(", ")
        ),
    };
    pg_sys::panic::ErrorReport::new(
        PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
        format!("mot has taken over the rows of the cluster in \"{source}\"{but}"),
        pgrx::function_name!(),
    )
    .report(PgLogLevel::LOG);
}

/// Says in the old cluster of a pg_upgrade that the new one will not find its rows.
pub fn report_notes_missing(why: &str) {
    log_message(
        PgLogLevel::WARNING,
        PgSqlErrorCode::ERRCODE_IO_ERROR,
        format!("mot could not leave word for pg_upgrade where its rows are: {why}"),
        "The new cluster will refuse to start. The rows are as they were.",
    );
}

/// Says that files of tables still have what was written for pg_upgrade.
pub fn report_notes_stay(why: &str) {
    log_message(
        PgLogLevel::WARNING,
        PgSqlErrorCode::ERRCODE_IO_ERROR,
        format!("mot could not remove what it had written for pg_upgrade: {why}"),
        "It takes 8 kB in the file of each table, and is tried again at the next start.",
    );
}

/// What to do about a checkpoint that failed.
pub const HINT_CHECKPOINT_FAILED: &str = "It is tried again every few seconds, and the WAL that a restart \
    needs is kept meanwhile. Make room in the directory \"mot\" of the data directory, or look after its disk.";

/// The same, while PostgreSQL's checkpoints have to wait.
pub const HINT_CHECKPOINT_FAILED_GATE_SHUT: &str = "It is tried again every few seconds; PostgreSQL's \
    checkpoints wait for it, since nothing else keeps the WAL that a restart needs: there is no replication \
    slot \"mot\", or max_slot_wal_keep_size is not -1. Make room in the directory \"mot\" of the data \
    directory, or look after its disk.";

/// The same, while the server's shutdown has to wait.
pub const HINT_CHECKPOINT_FAILED_SHUTDOWN_WAITS: &str = "The shutdown waits for it, since nothing else keeps \
    the WAL that the next start needs: there is no replication slot \"mot\", or max_slot_wal_keep_size is not \
    -1. It is tried again every few seconds: make room in the directory \"mot\" of the data directory, or look \
    after its disk. Or stop the server in mode immediate: nothing is lost, the next start recovers.";

/// The same, while a base backup waits.
pub const HINT_CHECKPOINT_FAILED_BACKUP_WAITS: &str = "It is tried again every few seconds; PostgreSQL's \
    checkpoints wait for it, since a base backup is under way, which else could not be restored if it has just \
    begun. Make room in the directory \"mot\" of the data directory, or look after its disk, or end the backup \
    (pg_terminate_backend; pg_stat_replication has its WAL sender).";

/// Says that a base backup was ended.
pub fn report_base_backup_ended(pid: i32) {
    log_message(
        PgLogLevel::WARNING,
        PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!(
            "mot has ended the WAL sender with PID {pid}: a base backup by it could not be restored, or not surely"
        ),
        "A base backup needs a complete checkpoint of memory-optimized tables, and their checkpoint worker \
         until it has begun. Lines before this one say what prevents that. Take the backup anew.",
    );
}

/// Says that the tables are loaded but that it cannot be noted that statements, or replay, begin.
pub fn report_begin_failed(error: &EngineError) {
    const HINT: &str = "It is tried again every few seconds; statements on memory-optimized tables, or replay, \
        wait meanwhile. Make room in the directory \"mot\" of the data directory, or look after its disk.";
    let text = format!("mot has loaded its tables, but statements cannot begin: {error}");
    if interrupts::is_startup_process() {
        // An error is fatal there.
        let code = PgSqlErrorCode::ERRCODE_IO_ERROR;
        log_message(PgLogLevel::WARNING, code, text, HINT);
    } else {
        report::error_without_jump(&text, HINT);
    }
}

/// Says that storages of a database that is no more are being freed.
pub fn report_orphans_freed(database: pg_sys::Oid, tables: usize) {
    log_message(
        PgLogLevel::LOG,
        PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
        format!("mot frees {tables} tables of the database with OID {database}, which is no more"),
        "It was dropped while mot was not in shared_preload_libraries.",
    );
}

/// Says that recovery has no checkpoint worker beside it.
pub fn report_no_worker(may_go_on: bool) {
    log_message(
        PgLogLevel::WARNING,
        PgSqlErrorCode::ERRCODE_INSUFFICIENT_RESOURCES,
        "the checkpoint worker of mot did not start in time".into(),
        if may_go_on {
            "Recovery goes on. Is max_worker_processes large enough?"
        } else {
            "Recovery waits for it, since no replication slot keeps the WAL in its place. Is \
             max_worker_processes large enough? Shut the server down, raise it, and start it again."
        },
    );
}

/// Says that it is not known whether there are storages of databases that are no more.
pub fn report_orphans_unknown() {
    log_message(
        PgLogLevel::WARNING,
        PgSqlErrorCode::ERRCODE_INSUFFICIENT_RESOURCES,
        "mot could not start a worker that frees the tables of dropped databases".into(),
        "If a database was dropped while mot was not in shared_preload_libraries, its tables take memory. Is \
         max_worker_processes large enough? It is tried again at the next start.",
    );
}

/// Says that no statement will run compiled.
pub fn report_statements_hidden() {
    log_message(
        PgLogLevel::WARNING,
        PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
        "mot runs all statements by the general executor: pg_stat_statements hides which libraries were loaded \
         before it".into(),
        "List pg_stat_statements right after mot in shared_preload_libraries, and other libraries behind it.",
    );
}

/// Says that files of older checkpoints could not be removed.
pub fn report_files_stay(error: &EngineError) {
    log_message(
        PgLogLevel::WARNING,
        PgSqlErrorCode::ERRCODE_IO_ERROR,
        format!("mot could not remove files of older checkpoints: {error}"),
        "The newest checkpoint is complete. It is tried again after the next one; until then the files take \
         space. A damaged manifest of an older checkpoint may be deleted.",
    );
}

/// Says that checkpoints were passed by of which a copy has not all files.
pub fn report_passed_by(count: usize, redo: mot_engine::Lsn) {
    log_message(
        PgLogLevel::WARNING,
        PgSqlErrorCode::ERRCODE_WARNING,
        format!(
            "mot has removed {count} checkpoints of its tables whose files are missing or too short, and loads \
             an older one"
        ),
        &format!(
            "A copy of a running server may have them so, and nothing is lost: the older one is complete, and \
             everything from {} on is replayed.",
            crate::pg::text::show_lsn(redo)
        ),
    );
}

/// Says that a clean start has no rows of unlogged tables.
pub fn report_unlogged_begin_empty() {
    log_message(
        PgLogLevel::WARNING,
        PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
        "unlogged memory-optimized tables begin empty: mot wrote no last checkpoint when the server was shut \
         down".into(),
        "The log of that shutdown says why: the checkpoint failed, or its worker had been ended a moment before.",
    );
}

/// Says that a checkpoint had to be written as a whole.
pub fn report_base_lost(error: &str) {
    log_message(
        PgLogLevel::WARNING,
        PgSqlErrorCode::ERRCODE_DATA_CORRUPTED,
        format!("mot wrote a whole checkpoint because it cannot build on the one before: {error}"),
        "Nothing is lost: the tables are in memory, and the new checkpoint has all of them. Look after the disk.",
    );
}

/// Says that rows were met whose transaction has no known outcome.
pub fn report_lost_outcome(xid: u64) {
    log_message(
        PgLogLevel::WARNING,
        PgSqlErrorCode::ERRCODE_DATA_CORRUPTED,
        format!(
            "rows of memory-optimized tables cannot be read: the commit log no longer knows what became of \
             transaction {xid}"
        ),
        "Restore from a backup, or bring the missing files of pg_xact back while the server is stopped. \
         Statements that meet such a row fail.",
    );
}

/// Says that replay waits for memory.
pub fn report_replay_waits(lsn: &str, full: ArenaFull, has_readers: bool) {
    let hint = if has_readers {
        "End long queries on this standby; or shut it down, raise mot.max_memory at least to the primary's \
         value, and start it again."
    } else {
        "Shut the server down, raise mot.max_memory (on a standby: at least to the primary's value), and start \
         it again."
    };
    pg_sys::panic::ErrorReport::new(
        PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY,
        format!(
            "replay of memory-optimized tables waits at {lsn}: mot.max_memory = {} MB is used up",
            crate::shared_memory::settings::MAX_MEMORY_MIB.get()
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
