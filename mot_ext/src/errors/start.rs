//! Tables that cannot be loaded at a start, or a log that cannot be replayed: errors that stop the
//! start, and those that statements get.
use crate::pg::{self, interrupts, report, text};
use mot_engine::EngineError;
use pgrx::prelude::*;
use std::sync::atomic::Ordering;

/// Raises 58030: in the new cluster of a pg_upgrade it could not be noted that rows are to come.
pub fn upgrade_mark_failed(error: &std::io::Error) -> ! {
    raise_report!(
        PgLogLevel::ERROR,
        ERRCODE_IO_ERROR,
        format!("could not write to the directory \"mot\" of the data directory: {error}"),
        "The table's rows are in the old cluster of pg_upgrade, and nothing would say so.",
        ""
    )
}

/// Stops the start of the new cluster of a pg_upgrade: its tables would be without their rows.
pub fn rows_not_brought(why: &str) -> ! {
    raise_report!(
        PgLogLevel::FATAL,
        ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!("mot could not take over the rows of the old cluster: {why}"),
        "pg_upgrade has made memory-optimized tables in this cluster. Their rows are still in the directory \
         \"mot\" of the old cluster.",
        "Keep the old cluster, and let pg_upgrade run again into another new one, with mot in \
         shared_preload_libraries of both and in the same version. Or (after --swap) write the path of the old \
         data directory into the file \"mot/upgrade-awaits-rows\" of this one, and start it."
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
        "Nothing is lost or overwritten. Put the damaged file back into the directory \"mot\" of the data \
         directory, or restore the cluster from a backup, and restart the server."
    }
}

fn is_of_another_cluster() -> bool {
    let control = crate::shared_memory::control();
    control.is_of_another_cluster.load(Ordering::Relaxed)
}

const HINT_ANOTHER_CLUSTER: &str = "Nothing is lost or overwritten. If this very server got a new system \
    identifier (from pg_createsubscriber, for instance), set mot.adopt_system_identifier to the one in the \
    file and restart it, once. If the directory \"mot\" of the data directory came from another server, put \
    the right one back.";

/// Stops the start of the server: the directory of the checkpoints is elsewhere.
pub fn directory_is_link(directory: &str) -> ! {
    raise_report!(
        PgLogLevel::FATAL,
        ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!("\"{directory}\" in the data directory is a symbolic link"),
        "Base backups pass over it with no more than a warning: they would lack the rows of all \
         memory-optimized tables.",
        format!(
            "Move the directory back into the place of the link. To have it on another file system, mount a \
             directory of that at \"{directory}\" in the data directory."
        )
    )
}

/// Stops recovery: a checkpoint cannot be loaded, or WAL is missing between it and the redo
/// position.
pub fn load_stops_start(why: &str) -> ! {
    raise_report!(
        PgLogLevel::FATAL,
        ERRCODE_DATA_CORRUPTED,
        format!("memory-optimized tables could not be loaded: {why}"),
        "The start is stopped so that nothing is skipped in silence; nothing has been changed.",
        if is_of_another_cluster() {
            HINT_ANOTHER_CLUSTER
        } else {
            "Put the damaged or missing file back (checkpoints are in the directory \"mot\" of the data \
             directory), or restore the cluster from a backup."
        }
    )
}

/// Stops recovery: a record cannot be applied. In the worker it ends the load, which says then that
/// it has failed: were the process ended, no process would load any more, and a session that waits
/// for the tables would wait for ever.
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
        "The WAL or the checkpoint under PGDATA/mot is damaged, or was written by another version of mot: \
         restore from a backup, or install that version."
    )
}

/// A reader of a standby needs rows for which replay has no memory, and keeps versions itself
/// meanwhile.
pub fn replay_without_memory() -> ! {
    raise_report!(
        PgLogLevel::ERROR,
        ERRCODE_OUT_OF_MEMORY,
        "the rows of this snapshot cannot be replayed: memory for memory-optimized tables is used up",
        "Replay waits for memory, perhaps for what this statement's snapshot keeps.",
        "Try again later. If it lasts: end long queries on this standby, or raise mot.max_memory at least to \
         the primary's value and restart the server."
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

/// Why a load fails that finds nothing.
pub fn no_checkpoint() -> String {
    "the directory \"mot\" of the data directory holds no checkpoint, but there was one: the replication slot \
     \"mot\" exists (who gives up the rows of all memory-optimized tables drops it)".into()
}
