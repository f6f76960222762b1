//! Whether the checkpoint worker may exit, and with what left undone: what it leaves must be in the
//! WAL that a slot surely keeps.
use super::{base_backups, restartpoint};
use crate::pg::{self, slot};
use crate::shared_memory::server_phase::{
    has_restartpoints, is_replayer_there, recovery_in_progress, server_is_stopping,
};
use crate::transaction::session;
use mot_engine::{Persistence, RowId, Session, TableRef};
use pgrx::prelude::*;

/// Whether this process was asked to end, and may. Asked alone it stays at the gate while a backup
/// may be about to begin, and where no slot keeps the WAL: a checkpoint of PostgreSQL's might
/// complete without ours before the next worker is there. It stays for the sake of unlogged rows,
/// too. But where slots have a limit that may have been the reason, and the checkpointer waits for
/// its end.
pub fn must_exit() -> bool {
    crate::pg::worker::shutdown_asked()
        && (server_is_stopping()
            || (slot::is_held() && !slot::is_unlimited())
            || (keeps_wal_alone() && !base_backups::may_begin() && !has_unlogged_rows()))
}

/// Whether rows would be lost if the server were shut down before the next worker is there: no WAL
/// has those of unlogged tables, and the last checkpoint alone keeps them. A table that has had a
/// row counts until TRUNCATE or DROP.
fn has_unlogged_rows() -> bool {
    let is_filled = |table: TableRef| {
        table.persistence() == Persistence::Unlogged && table.row_ids_end() > RowId(0)
    };
    let tables = session::existing().map(Session::tables);
    let mut tables = tables.iter().flatten();
    tables.any(|walk| is_filled(walk.table()))
}

/// Whether this process may exit, as `must_exit` says, although PostgreSQL's checkpoint is not
/// covered. Not where the WAL that the next start needs would then have no holder: the server's
/// shutdown waits for this process (`stop -m immediate` does not, and no checkpoint completes
/// then), and so does the session that asked it alone to end. But a slot with a limit may be what
/// the checkpointer asked for, as above; a shutdown does not wait for the checkpointer before it
/// has waited for this process.
///
/// A standby's restartpoint at its shutdown waits for no process, whatever is done here (README.md,
/// limits).
pub fn may_exit_uncovered() -> bool {
    must_exit()
        && (keeps_wal_alone() || has_restartpoints() || (slot::is_held() && !server_is_stopping()))
}

/// Whether the last checkpoint of a recovery may yet come, and would remove WAL that nothing else
/// keeps. Asked to end, the startup process does so between two records; behind the last one it
/// continues.
pub fn recovery_may_checkpoint() -> bool {
    !keeps_wal_alone() && recovery_in_progress() && is_replayer_there() == Some(true)
}

/// Gives up a slot with a limit, which keeps nothing for sure: that checkpoint of the recovery may
/// take its WAL away, and would wait for the slot's holder.
pub fn let_limited_slot_go() {
    if !slot::is_held() || slot::is_unlimited() {
        return;
    }
    // Its lock is the gate's, and could no longer be given up.
    restartpoint::open();
    if let Err(error) = pg::catch(slot::release) {
        ereport!(
            PgLogLevel::WARNING,
            PgSqlErrorCode::ERRCODE_INTERNAL_ERROR,
            format!("mot could not release its replication slot: {error}")
        );
    }
}

/// Whether the slot that this process holds keeps the WAL. A limit that the checkpointer has read
/// already must not be overlooked.
pub fn keeps_wal() -> bool {
    crate::pg::worker::reload_if_asked();
    slot::keeps_wal()
}

/// The same when this process has left.
pub fn keeps_wal_alone() -> bool {
    crate::pg::worker::reload_if_asked();
    slot::keeps_wal_alone()
}
