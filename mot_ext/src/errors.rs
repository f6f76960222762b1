//! How errors are raised, errors that more than one room raises, and messages in the server log:
//! in PostgreSQL's style (message without a capital or a full stop, detail and hint as sentences).
//! An error of one place is worded there, and raised by [`refuse::raise`].
//!
//! | file | what |
//! |---|---|
//! | `errors.rs` | errors of statements |
//! | `refuse` | errors that their callers word, 0A000 among them |
//! | `engine` | the engine's errors in SQL |
//! | `labels` | values that cannot get a label |
//! | `start` | a start or a replay that fails |
//! | `log_messages` | messages in the server log of processes that continue |
use crate::pg::{report, text};
use pgrx::prelude::*;

/// Raises what the report says; the report's level must be ERROR or higher. Names of the user's are
/// in those of level ERROR only.
macro_rules! raise_report {
    ($level:expr, $code:ident, $message:expr, $detail:expr, $hint:expr) => {
        raise_report!($level, (PgSqlErrorCode::$code), $message, $detail, $hint)
    };
    ($level:expr, ($code:expr), $message:expr, $detail:expr, $hint:expr) => {{
        let code: PgSqlErrorCode = $code;
        let message: String = $message.into();
        let detail: String = $detail.into();
        let hint: String = $hint.into();
        report::raise_unless_utf8(
            code,
            &message,
            Some(detail.as_str()).filter(|text| !text.is_empty()),
            Some(hint.as_str()).filter(|text| !text.is_empty()),
        );
        let report = pg_sys::panic::ErrorReport::new(code, message, pgrx::function_name!());
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

// Behind the macro, which they raise by.
mod engine;
mod indexes;
pub mod labels;
mod log_messages;
pub mod refuse;
mod start;

pub use engine::{HINT_LONG_KEY, or_raise, raise};
pub use indexes::*;
pub use log_messages::*;
pub use start::*;

/// An SQL error passes through Rust as a panic, of which pgrx would put a backtrace into the DETAIL
/// when RUST_BACKTRACE is set in the server's environment. A developer who wants that says so with
/// RUST_LIB_BACKTRACE.
pub fn init() {
    const VARIABLE: &str = "RUST_LIB_BACKTRACE";
    if std::env::var_os(VARIABLE).is_none() {
        // SAFETY: the process has one thread when it loads the library.
        unsafe { std::env::set_var(VARIABLE, "0") };
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

/// Raises 55000 for a foreign table, or an index of one, that an earlier build made.
pub fn table_of_earlier_build() -> ! {
    raise_report!(
        PgLogLevel::ERROR,
        ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        "this memory-optimized table was made by an earlier build, as a foreign table",
        "This build's memory-optimized tables are tables of the access method mot. Nothing was changed.",
        "Dump the database with the build that made it (pg_dump --include-foreign-data=mot), and restore it \
         into a new cluster."
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

/// Raises 42804, in core's words: a plan would run that assigns to a column which is gone, or of
/// another type, since.
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

/// Raises 42703 or 42804, as core does (`CheckVarSlotCompatibility` of execExprInterp.c): a column
/// of a table with row type `of` is gone, or has another type, since a statement was planned that
/// expects `expected`.
pub fn planned_column_changed(
    attribute: &pg_sys::FormData_pg_attribute,
    of: pg_sys::Oid,
    expected: pg_sys::Oid,
) -> ! {
    // SAFETY: catalog look-ups that give palloc'd strings.
    let name = |oid| unsafe { text::from_c(pg_sys::format_type_be(oid)) };
    let column = format!("attribute {} of type {}", attribute.attnum, name(of));
    const HINT: &str = "A SQL function keeps its plans until the query that calls it ends: alter the table in \
        a query of its own.";
    if attribute.attisdropped {
        raise_report!(
            PgLogLevel::ERROR,
            ERRCODE_UNDEFINED_COLUMN,
            format!("{column} has been dropped"),
            "",
            HINT
        )
    }
    let (stored, expected) = (name(attribute.atttypid), name(expected));
    raise_report!(
        PgLogLevel::ERROR,
        ERRCODE_DATATYPE_MISMATCH,
        format!("{column} has wrong type"),
        format!("Table has type {stored}, but query expects {expected}."),
        HINT
    )
}

/// Raises 55000: a statement was planned before its table got another access method.
pub fn planned_method_changed(table: &str) -> ! {
    raise_report!(
        PgLogLevel::ERROR,
        ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!("table \"{table}\" got another access method since the statement was planned"),
        "",
        "A SQL function keeps its plans until the query that calls it ends: alter the table in a query of its own."
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

/// Raises 0A000: the guarantee of SERIALIZABLE rests on something of this server's that is not as
/// it should be.
pub fn unknown_server_layout() -> ! {
    raise_report!(
        PgLogLevel::ERROR,
        ERRCODE_FEATURE_NOT_SUPPORTED,
        "this build of PostgreSQL keeps its notes of SERIALIZABLE transactions in a form that the library \
         \"mot\" does not know",
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
            "{} To give the tables up, disable the event trigger mot_require_preload first, in a transaction \
             of its own.",
            preload_hint()
        )
    )
}

fn preload_hint() -> String {
    // SAFETY: a setting's current value: NULL or a C string that lives until it is changed, which
    // needs this thread.
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

/// Raises 55000: a standby has no rows of temporary tables.
pub fn temporary_on_standby(name: &str) -> ! {
    raise_report!(
        PgLogLevel::ERROR,
        ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!("temporary table \"{name}\" has no rows on a standby"),
        "Rows of temporary tables are not logged.",
        "Ask the primary."
    )
}

/// Raises 55000: the server has lost the session of a temporary table, and its rows with it.
pub fn left_by_session(name: &str) -> ! {
    raise_report!(
        PgLogLevel::ERROR,
        ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!("temporary table \"{name}\" is what is left of a session that has ended"),
        "A crash or a shutdown of the server took its rows.",
        "Autovacuum drops it, and so does DROP TABLE."
    )
}

/// Raises 0A000, as heapam does.
pub fn temporary_of_other_session() -> ! {
    raise_report!(
        PgLogLevel::ERROR,
        ERRCODE_FEATURE_NOT_SUPPORTED,
        "cannot access temporary tables of other sessions",
        "",
        ""
    )
}

/// Raises 54000: a column's value in rows from before it does not fit a key.
pub fn missing_value_too_long(column: &str, table: &str, bytes: usize, max: usize) -> ! {
    raise_report!(
        PgLogLevel::ERROR,
        ERRCODE_PROGRAM_LIMIT_EXCEEDED,
        format!(
            "value of column \"{column}\" in older rows of table \"{table}\" is too long for a key"
        ),
        format!("It takes {bytes} bytes of a key, which has {max} at most."),
        "Give the older rows a shorter value, have the table rewritten, and create the index then."
    )
}

/// Raises 42804: a value of a row type cannot be compared with those of a key column.
pub fn dissimilar_columns([own, theirs]: &[String; 2], number: usize) -> ! {
    raise_report!(
        PgLogLevel::ERROR,
        ERRCODE_DATATYPE_MISMATCH,
        format!(
            "cannot compare dissimilar column types {own} and {theirs} at record column {number}"
        ),
        "",
        "Cast the value to the row type of the column that it is compared with."
    )
}

/// Raises 42804: a value of a row type has more or fewer columns than those of a key column.
pub fn other_number_of_columns() -> ! {
    raise_report!(
        PgLogLevel::ERROR,
        ERRCODE_DATATYPE_MISMATCH,
        "cannot compare record types with different numbers of columns",
        "",
        "Cast the value to the row type of the column that it is compared with."
    )
}

/// Raises 42P22: a value of a row type has a text under another collation than those of a key
/// column.
pub fn no_common_collation(number: usize) -> ! {
    raise_report!(
        PgLogLevel::ERROR,
        ERRCODE_INDETERMINATE_COLLATION,
        "could not determine which collation to use for string comparison",
        format!("The values have different collations at record column {number}."),
        "Cast the value to the row type of the column that it is compared with."
    )
}

/// Raises 54000: a table has as many rows as tuple ids can name.
pub fn too_many_rows(rows_max: u64) -> ! {
    raise_report!(
        PgLogLevel::ERROR,
        ERRCODE_PROGRAM_LIMIT_EXCEEDED,
        format!("a memory-optimized table cannot have more than {rows_max} rows"),
        "",
        "Delete rows, or use partitions."
    )
}

/// Raises 40001: a tuple id meant one version when the statement began, and means a newer one now.
pub fn overtaken_tuple_id() -> ! {
    raise_report!(
        PgLogLevel::ERROR,
        ERRCODE_T_R_SERIALIZATION_FAILURE,
        "could not serialize access due to too many concurrent updates of a row",
        "The row was changed a multiple of 8192 times since the statement began.",
        "Try again."
    )
}

/// Raises 55000, as heapam does: a statement is to change a version that it cannot see yet.
pub fn invisible_version(verb: &str) -> ! {
    raise_report!(
        PgLogLevel::ERROR,
        ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!("attempted to {verb} invisible tuple"),
        "",
        ""
    )
}

/// Raises 40001, as heapam does: what is to be locked went to another partition.
pub fn moved_to_another_partition() -> ! {
    raise_report!(
        PgLogLevel::ERROR,
        ERRCODE_T_R_SERIALIZATION_FAILURE,
        "tuple to be locked was already moved to another partition due to concurrent update",
        "",
        ""
    )
}

/// Raises 0A000: an index of another access method on a memory-optimized table.
pub fn foreign_index() -> ! {
    unsupported(
        "indexes of other access methods than btree on memory-optimized tables",
        "Leave USING out, or keep the table in heap.",
    )
}

/// Raises 40001, as a conflict with recovery: a snapshot of a standby is older than a table's
/// rewriting by the primary.
pub fn older_than_rewrite() -> ! {
    raise_report!(
        PgLogLevel::ERROR,
        ERRCODE_T_R_SERIALIZATION_FAILURE,
        "canceling statement due to conflict with recovery",
        "The primary has rewritten a memory-optimized table (CLUSTER, VACUUM FULL, SET TABLESPACE) since the \
         snapshot was taken.",
        "Begin the transaction anew."
    )
}

/// Raises 0A000: an index of the access method on a table of another.
pub fn index_on_other_table() -> ! {
    unsupported(
        "indexes of access method mot_index on other tables than memory-optimized ones",
        "Leave USING out.",
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

/// Raises 25000: a function that changes or locks rows runs in a parallel worker, which its leader
/// would not learn.
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
