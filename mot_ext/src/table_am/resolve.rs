//! Which version a tuple id names to who asks (README, "Tuple ids").
use super::tid::{self, Name};
use crate::clock::{PgClock, PgSnapshot};
use crate::errors;
use mot_engine::{Session, Slot, StateAt, TableRef, VersionRef};
use pgrx::pg_sys::{self, SnapshotType::SNAPSHOT_MVCC};

/// The MVCC snapshots by which an id may have been read: the one given, and the active one.
unsafe fn readings(snapshot: pg_sys::Snapshot) -> [Option<PgSnapshot<'static>>; 2] {
    // SAFETY: the caller's snapshot is NULL or valid; an active one is registered as long as the statement runs.
    unsafe {
        let reading = |snapshot: pg_sys::Snapshot| {
            let is_mvcc = !snapshot.is_null() && (*snapshot).snapshot_type == SNAPSHOT_MVCC;
            is_mvcc.then(|| PgSnapshot::new(snapshot))
        };
        let active = match pg_sys::ActiveSnapshotSet() {
            true => pg_sys::GetActiveSnapshot(),
            false => std::ptr::null_mut(),
        };
        let active = (active != snapshot).then_some(active);
        [reading(snapshot), active.and_then(reading)]
    }
}

/// The version that a tuple id names to a change, a lock or a fetch of whatever is there. Raises where two versions
/// have the id: 54000 if the transaction made both, else 40001.
///
/// The statement's snapshot keeps it, or the transaction that made, replaced or locked it.
///
/// # Safety
/// The snapshot is NULL or valid, and registered or active if it is an MVCC snapshot.
pub unsafe fn named(
    session: &Session,
    table: TableRef,
    name: Name,
    snapshot: pg_sys::Snapshot,
) -> Option<VersionRef> {
    // SAFETY: the caller's.
    let readings = unsafe { readings(snapshot) };
    let readings = readings.each_ref().map(Option::as_ref);
    let found = session.state_at(&PgClock, table, name.row, name.ordinal, &readings);
    match found {
        StateAt::None => None,
        StateAt::One(version) => Some(version),
        StateAt::Ambiguous => errors::ambiguous_tuple_id(),
        StateAt::Overtaken => errors::overtaken_tuple_id(),
    }
}

/// As [`named`], of a tuple id that core passes; with the row. The row of an id that names no version is there, too.
///
/// # Safety
/// As for [`named`]; `tid` points to a tuple id.
pub unsafe fn named_by(
    session: &Session,
    table: TableRef,
    tid: pg_sys::ItemPointer,
    snapshot: pg_sys::Snapshot,
) -> Option<(Slot, Option<VersionRef>)> {
    // SAFETY: the caller's.
    unsafe {
        let name = tid::name(*tid)?;
        Some((name.row, named(session, table, name, snapshot)))
    }
}
