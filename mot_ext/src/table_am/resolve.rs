//! From a tuple id to a version, for the transaction that asks (README.md, "Tuple ids").
use crate::rows::tid::{self, Name, State};
use crate::transaction::clock::{PgClock, PgSnapshot};
use crate::transaction::{session, xact};
use crate::{errors, pg, storage};
use mot_engine::{Slot, StateAt, TableRef, VersionRef};
use pgrx::pg_sys::{self, SnapshotType::SNAPSHOT_MVCC};

/// The MVCC snapshots by which an id may have been read: the one given, by which it was read,
/// unless that says nothing (SnapshotAny), and the active one.
unsafe fn readings(snapshot: pg_sys::Snapshot) -> [Option<PgSnapshot<'static>>; 2] {
    // SAFETY: the caller's snapshot is NULL or valid; an active one is registered as long as the
    // statement runs.
    unsafe {
        let reading = |snapshot: pg_sys::Snapshot| {
            let is_mvcc = !snapshot.is_null() && (*snapshot).snapshot_type == SNAPSHOT_MVCC;
            is_mvcc.then(|| PgSnapshot::new(snapshot))
        };
        let active = pg::active_snapshot();
        let active = (active != snapshot).then_some(active).and_then(reading);
        [reading(snapshot), active]
    }
}

/// The version that a tuple id names to a change, a lock or a fetch of whatever is there. Raises
/// 40001 where two versions have the id.
///
/// The statement's snapshot keeps it, or the transaction that made, replaced or locked it.
///
/// # Safety
/// The snapshot is NULL or valid, and registered or active if it is an MVCC snapshot.
pub unsafe fn named(table: TableRef, name: Name, snapshot: pg_sys::Snapshot) -> Option<VersionRef> {
    let ordinal = match name.state {
        State::Ordinal(ordinal) => ordinal,
        State::Own(version) => return Some(version),
    };
    // SAFETY: the caller's.
    let readings = unsafe { readings(snapshot) };
    let session = session::session();
    let listed = xact::own_row(table, name.row);
    let readings = readings.each_ref().map(Option::as_ref);
    let found = session.state_at(&PgClock, table, name.row, ordinal, listed, &readings);
    match found {
        StateAt::None => None,
        StateAt::One(version) => Some(version),
        StateAt::Overtaken => errors::overtaken_tuple_id(),
    }
}

/// As [`named`], of a tuple id that core passes; with the row. The row of an id that names no
/// version is there, too.
///
/// # Safety
/// As for [`named`]; the relation is an open table, and `tid` points to a tuple id.
pub unsafe fn named_by(
    relation: pg_sys::Relation,
    tid: pg_sys::ItemPointer,
    snapshot: pg_sys::Snapshot,
) -> Option<(Slot, Option<VersionRef>)> {
    // SAFETY: the caller's.
    unsafe {
        let table = storage::table(relation);
        let name = tid::name(table, *tid)?;
        Some((name.row, named(table, name, snapshot)))
    }
}
