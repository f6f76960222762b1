//! Which version a tuple id names to who asks (README, "Tuple ids").
use super::tid::{self, Name};
use crate::clock::{PgClock, PgSnapshot};
use crate::{errors, session, storage};
use mot_engine::{Slot, StateAt, VersionRef};
use pgrx::pg_sys::{self, SnapshotType::SNAPSHOT_MVCC};

/// The MVCC snapshots by which an id may have been read. The first is the one by which it was read,
/// if that is known: the one given. SnapshotAny tells nothing. But where no trigger queues ids,
/// only the running statement has any, and has read them by the active snapshot.
unsafe fn readings(
    relation: pg_sys::Relation,
    snapshot: pg_sys::Snapshot,
) -> [Option<PgSnapshot<'static>>; 2] {
    // SAFETY: the caller's snapshot is NULL or valid; an active one is registered as long as the
    // statement runs.
    unsafe {
        let reading = |snapshot: pg_sys::Snapshot| {
            let is_mvcc = !snapshot.is_null() && (*snapshot).snapshot_type == SNAPSHOT_MVCC;
            is_mvcc.then(|| PgSnapshot::new(snapshot))
        };
        let active = match pg_sys::ActiveSnapshotSet() {
            true => pg_sys::GetActiveSnapshot(),
            false => std::ptr::null_mut(),
        };
        let active = (active != snapshot).then_some(active).and_then(reading);
        match reading(snapshot) {
            None if !queues_ids(relation) => [active, None],
            given => [given, active],
        }
    }
}

/// Whether row triggers keep the tuple ids of what they are fired for later.
unsafe fn queues_ids(relation: pg_sys::Relation) -> bool {
    // SAFETY: the caller's relation is open.
    unsafe {
        let triggers = (*relation).trigdesc;
        !triggers.is_null()
            && ((*triggers).trig_insert_after_row
                || (*triggers).trig_update_after_row
                || (*triggers).trig_delete_after_row
                || (*triggers).trig_insert_new_table
                || (*triggers).trig_update_old_table
                || (*triggers).trig_update_new_table
                || (*triggers).trig_delete_old_table)
    }
}

/// The version that a tuple id names to a change, a lock or a fetch of whatever is there. Raises
/// where two versions have the id: 54000 if the transaction made both, else 40001.
///
/// The statement's snapshot keeps it, or the transaction that made, replaced or locked it.
///
/// # Safety
/// The relation is an open table; the snapshot is NULL or valid, and registered or active if it is
/// an MVCC snapshot.
pub unsafe fn named(
    relation: pg_sys::Relation,
    name: Name,
    snapshot: pg_sys::Snapshot,
) -> Option<VersionRef> {
    // SAFETY: the caller's.
    let readings = unsafe { readings(relation, snapshot) };
    let (session, table) = (session::session(), storage::table(relation));
    let readings = readings.each_ref().map(Option::as_ref);
    let found = session.state_at(&PgClock, table, name.row, name.ordinal, &readings);
    match found {
        StateAt::None => None,
        StateAt::One(version) => Some(version),
        StateAt::Ambiguous => errors::ambiguous_tuple_id(),
        StateAt::Overtaken => errors::overtaken_tuple_id(),
    }
}

/// As [`named`], of a tuple id that core passes; with the row. The row of an id that names no
/// version is there, too.
///
/// # Safety
/// As for [`named`]; `tid` points to a tuple id.
pub unsafe fn named_by(
    relation: pg_sys::Relation,
    tid: pg_sys::ItemPointer,
    snapshot: pg_sys::Snapshot,
) -> Option<(Slot, Option<VersionRef>)> {
    // SAFETY: the caller's.
    unsafe {
        let name = tid::name(*tid)?;
        Some((name.row, named(relation, name, snapshot)))
    }
}
