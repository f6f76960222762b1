//! From a tuple id to a version, for the transaction that asks (README.md, "Tuple ids").
use crate::pg::relation::Relation;
use crate::pg::snapshot::Snapshot;
use crate::rows::tid::{self, Name, State};
use crate::transaction::clock::{PgClock, PgSnapshot};
use crate::transaction::{session, xact};
use crate::{errors, pg, storage};
use mot_engine::{RowId, StateAt, TableRef, VersionRef};
use pgrx::pg_sys;

/// The MVCC snapshots by which an id may have been read: the one given, by which it was read,
/// unless that says nothing (SnapshotAny), and the active one. They are valid as long as the given
/// one is, for a statement is under way.
fn readings<'p>(snapshot: Option<Snapshot<'p>>) -> [Option<PgSnapshot<'p>>; 2] {
    let reading = |snapshot: Snapshot<'p>| {
        let is_mvcc = snapshot.is_mvcc();
        is_mvcc.then(|| PgSnapshot::new(snapshot))
    };
    // SAFETY: NULL, or a snapshot that is active as long as the statement runs.
    let active = unsafe { Snapshot::enter_if_any(pg::active_snapshot()) };
    let active = active.filter(|active| Some(*active) != snapshot);
    [snapshot.and_then(reading), active.and_then(reading)]
}

/// The version that a tuple id names to a change, a lock or a fetch of whatever is there. Raises
/// 40001 where two versions have the id.
///
/// The statement's snapshot keeps it, or the transaction that made, replaced or locked it.
pub fn named(table: TableRef, name: Name, snapshot: Option<Snapshot<'_>>) -> Option<VersionRef> {
    let ordinal = match name.state {
        State::Ordinal(ordinal) => ordinal,
        State::Own(version) => return Some(version),
    };
    let readings = readings(snapshot);
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
pub fn named_by(
    relation: Relation<'_>,
    tid: pg_sys::ItemPointerData,
    snapshot: Option<Snapshot<'_>>,
) -> Option<(RowId, Option<VersionRef>)> {
    let table = storage::table(relation);
    let name = tid::name(table, tid)?;
    Some((name.row, named(table, name, snapshot)))
}
