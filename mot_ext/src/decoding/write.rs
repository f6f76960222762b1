//! Records of changes, for decoding.
use super::identity;
use crate::errors::refuse;
use crate::pg;
use crate::pg::relation::Relation;
use crate::pg::version;
use crate::transaction::relation::LockedRelation;
use crate::transaction::wal_log;
use mot_engine::VersionRef;
use mot_engine::key::without_tail;
use mot_engine::log::{LogicalChange, LogicalKind};
use pgrx::prelude::*;

/// Most bytes of a record: what readers of the log take (`XLogRecordMaxSize`), less core's own
/// part.
const RECORD_BYTES_MAX: usize = (1020 << 20) - 1024;

/// Whether changes are logged for decoding.
#[inline]
fn is_on() -> bool {
    // SAFETY: a variable that is set at the server's start.
    unsafe { pg_sys::wal_level >= pg_sys::WalLevel::WAL_LEVEL_LOGICAL as i32 }
}

/// A row was inserted, by the current subtransaction.
#[inline]
pub fn inserted(relation: LockedRelation<'_>, new: VersionRef) {
    if is_on() {
        relation.with(|relation| log_insert(relation, new));
    }
}

/// A row was updated, by the current subtransaction.
#[inline]
pub fn updated(relation: LockedRelation<'_>, old: VersionRef, new: VersionRef) {
    if is_on() {
        relation.with(|relation| log_update(relation, old, new));
    }
}

/// A row was deleted, by the current subtransaction.
#[inline]
pub fn deleted(relation: LockedRelation<'_>, old: VersionRef) {
    if is_on() {
        relation.with(|relation| log_delete(relation, old));
    }
}

#[cold]
fn log_insert(relation: Relation<'_>, new: VersionRef) {
    log(relation, LogicalKind::Insert, Some(new), None);
}

#[cold]
fn log_update(relation: Relation<'_>, old: VersionRef, new: VersionRef) {
    let identity = identity::of_updated(relation, old, new);
    log(relation, LogicalKind::Update, Some(new), identity.body());
    identity.free();
}

#[cold]
fn log_delete(relation: Relation<'_>, old: VersionRef) {
    let identity = identity::of_deleted(relation, old);
    log(relation, LogicalKind::Delete, None, identity.body());
    identity.free();
}

/// Logs a change of a permanent table (`RelationIsLogicallyLogged`).
fn log(relation: Relation<'_>, kind: LogicalKind, new: Option<VersionRef>, old: Option<&[u8]>) {
    if relation.persistence() != pg_sys::RELPERSISTENCE_PERMANENT {
        return;
    }
    debug_assert!(pg::full_xid_if_any().is_some(), "a change has an id");
    let change = LogicalChange {
        kind,
        table: version::locator(relation),
        new: new.as_ref().map(|new| without_tail(new.body())),
        old,
    };
    let parts = [
        &change.head(),
        change.new.unwrap_or_default(),
        change.old.unwrap_or_default(),
    ];
    if parts.iter().map(|part| part.len()).sum::<usize>() > RECORD_BYTES_MAX {
        too_long();
    }
    wal_log::append_for_decoding(parts);
}

#[cold]
fn too_long() -> ! {
    refuse::raise(
        PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
        "rows are too long for logical decoding",
        Some(format!(
            "A change has {RECORD_BYTES_MAX} bytes at most, of its new and its old row."
        )),
        Some("Change the table's REPLICA IDENTITY from FULL to an index.".to_string()),
    )
}
