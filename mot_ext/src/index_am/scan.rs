//! Index scans: row by row in key order, each with the version that the snapshot sees.
//!
//! The version goes to the table's callback with the row (`table_am::fetch`), so one look-up serves
//! both. A scan may change its direction (cursors). It then begins anew in the other direction, and
//! skips rows up to the one at which it turned.
mod bitmap;
mod steps;

pub use bitmap::all;

use super::keys::{self, Sought};
use super::labels::ScanLabels;
use crate::errors::or_raise;
use crate::pg::index_scan::IndexScan as ScanOfCore;
use crate::pg::relation::Relation;
use crate::pg::version::index_am as version;
use crate::rows::tid;
use crate::serializable::Reading;
use crate::storage::labels::ComparedStates;
use crate::table_am::fetch::{Handed, HandedCopy, IndexFetch};
use crate::table_am::view::View;
use crate::transaction::clock::PgSnapshot;
use crate::transaction::{relation, session};
use crate::{pg, storage, table_am};
use mot_engine::{
    Direction, GroupedScan, IndexRef, IndexScan, KeyRange, RowId, Session, TableRef, VersionRef,
};
use pgrx::PgMemoryContexts;
use pgrx::pg_sys::{self, SnapshotType::*};
use std::ffi::c_int;
use std::ptr;

/// What a scan keeps from one row to the next; `opaque` of core's descriptor. It is in a memory
/// context of its own, which drops it at the scan's end, or with the query at an error. Core scans
/// an index for each row of ON CONFLICT.
struct State {
    memory: pg_sys::MemoryContext,
    /// For arguments that are compressed, or have a short header.
    unpacked: pg_sys::MemoryContext,
    session: &'static Session,
    oid: pg_sys::Oid,
    index: IndexRef,
    table_oid: pg_sys::Oid,
    table: TableRef,
    /// From the first row asked for on; the snapshot is not there before.
    view: Option<Seen>,
    sought: Sought,
    scan: IndexScan,
    /// Instead of it, where the range's texts are ordered only roughly and the order counts.
    grouped: Option<Box<GroupedScan>>,
    is_grouped: bool,
    /// The order of rows does not matter.
    is_for_bitmap: bool,
    range: KeyRange,
    /// The arguments were made into ranges.
    has_ranges: bool,
    /// Of one whole key: a row can have it.
    has_key: bool,
    is_in_range: bool,
    direction: Direction,
    position: Position,
    /// Values of the index have labels.
    has_labels: bool,
    /// What looks for them.
    labels: Option<ScanLabels>,
    /// They are to be looked for since the last rescan.
    wants_labels: bool,
    /// Ranges and keys looked for since they were last reported to core.
    searches: u64,
}

/// How rows are seen.
enum Seen {
    By(View),
    /// SnapshotDirty: unfinished work, too.
    Unfinished,
}

/// A scan's position.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    Before,
    At(RowId),
    Behind,
}

/// A row that was found.
enum ScannedRow {
    Kept(RowId, VersionRef),
    Copied(HandedCopy),
}

/// `ambeginscan`.
pub unsafe fn begin(
    index: pg_sys::Relation,
    key_count: c_int,
    order_count: c_int,
) -> pg_sys::IndexScanDesc {
    table_am::bitmap::reading_ahead::index_scan_begins();
    // SAFETY: as core calls it. The state is made when the conditions are there.
    unsafe { pg_sys::RelationGetIndexScan(index, key_count, order_count) }
}

/// `amrescan`. Core sets the table after `ambeginscan`.
pub unsafe fn rescan(
    scan: pg_sys::IndexScanDesc,
    scan_keys: pg_sys::ScanKey,
    key_count: c_int,
    _orders: pg_sys::ScanKey,
    _order_count: c_int,
) {
    // SAFETY: as core calls it, in the memory context of the scan, whose state is used here alone.
    let (scan, state) = unsafe {
        let scan = ScanOfCore::begin_anew(scan, scan_keys, key_count);
        scan.give_null_columns();
        (scan, scan.state::<State>())
    };
    let state = match state {
        Some(state) => {
            state.take_conditions(scan);
            state
        }
        None => State::put_into(scan),
    };
    state.position = Position::Before;
    state.wants_labels = state.has_labels;
    state.begin(Direction::Forward);
}

impl State {
    /// Makes the state of a scan, in the memory context in which the scan lives.
    fn put_into(scan: ScanOfCore<'_>) -> &mut State {
        let index = scan.index();
        let session = session::session();
        let table_oid = index.table();
        let table = match scan.table() {
            None => relation::LockedRelation::closed(table_oid).with(storage::table),
            Some(table) => storage::table(table),
        };
        let place = storage::index(table, index);
        let definition = or_raise(session.definition(place));
        // SAFETY: contexts below the current one, and below that.
        let (memory, unpacked) = unsafe {
            let memory = pg::small_context(pg_sys::CurrentMemoryContext, c"mot index scan");
            (
                memory,
                pg::small_context(memory, c"mot index scan arguments"),
            )
        };
        let rows = table.row_count_estimate();
        let state = State {
            memory,
            unpacked,
            session,
            oid: index.oid(),
            index: place,
            table_oid,
            table,
            view: None,
            sought: keys::sought(index, definition, scan.keys(), rows, None),
            has_labels: definition.has_labels(),
            labels: None,
            wants_labels: false,
            scan: IndexScan::new(),
            grouped: None,
            is_grouped: false,
            is_for_bitmap: false,
            range: KeyRange::new(),
            has_ranges: false,
            has_key: false,
            is_in_range: false,
            direction: Direction::Forward,
            position: Position::Before,
            searches: 0,
        };
        let state = PgMemoryContexts::For(memory).leak_and_drop_on_delete(state);
        scan.set_state(state);
        // SAFETY: it lives as long as its context, which `end` deletes.
        unsafe { &mut *state }
    }

    /// Takes a scan's conditions, which may be others than before.
    fn take_conditions(&mut self, scan: ScanOfCore<'_>) {
        if self.sought.take_arguments(scan.keys()) {
            return;
        }
        let definition = or_raise(self.session.definition(self.index));
        let rows = self.table.row_count_estimate();
        self.sought = keys::sought(scan.index(), definition, scan.keys(), rows, None);
    }
}

/// `amendscan`. The context drops the state, and no code uses that any more.
pub fn end(scan: ScanOfCore<'_>) {
    // SAFETY: an index of ours, whose scan's state is used here alone.
    let state = unsafe { scan.state::<State>() };
    if let Some(memory) = state.map(|state| state.memory) {
        scan.set_state::<State>(ptr::null_mut());
        // SAFETY: the state's own context.
        unsafe { pg_sys::MemoryContextDelete(memory) };
    }
}

/// Looks for the labels of the values that a scan asks for, among the rows that it sees.
fn look_for_labels(scan: ScanOfCore<'_>, state: &mut State) {
    let index = scan.index();
    let (memory, table_oid) = (state.memory, state.table_oid);
    let labels = state.labels.get_or_insert_with(|| {
        // SAFETY: a context that outlives the scan's state.
        let make = |table: Relation<'_>| unsafe { ScanLabels::new(table, index, memory) };
        match scan.table() {
            None => relation::LockedRelation::closed(table_oid).with(make),
            Some(table) => make(table),
        }
    });
    let snapshot;
    let seen = match &state.view {
        Some(Seen::By(View::Mvcc(snapshot))) => ComparedStates::By(snapshot),
        Some(Seen::By(View::Serializable(reader))) => {
            // Whose values others may have beside them, by whatever label.
            reader.begin_range(state.oid, 0, &[]);
            // SAFETY: it stays registered until the scan ends.
            snapshot = PgSnapshot::new(unsafe { scan.snapshot().unbound() });
            ComparedStates::By(&snapshot)
        }
        _ => ComparedStates::Lasting,
    };
    let found = labels.at((state.table, state.index), seen);
    let definition = or_raise(state.session.definition(state.index));
    let rows = state.table.row_count_estimate();
    state.sought = keys::sought(index, definition, scan.keys(), rows, Some(found));
}

/// `amgettuple`.
pub fn next(scan: ScanOfCore<'_>, direction: pg_sys::ScanDirection::Type) -> bool {
    // SAFETY: an index of ours, whose scan's state is used here alone.
    let state = unsafe { scan.state::<State>() };
    let state = state.expect("a scan begins with its conditions");
    if state.view.is_none() {
        state.view = Some(seen(scan, state));
    }
    if std::mem::take(&mut state.wants_labels) {
        look_for_labels(scan, state);
    }
    if state.position == Position::Before {
        // Each rescan is a scan of its own.
        table_am::scan_begins(scan.index());
    }
    let direction = match direction {
        pg_sys::ScanDirection::BackwardScanDirection => Direction::Backward,
        _ => Direction::Forward,
    };
    let found = state.next(direction);
    version::count_searches(scan, std::mem::take(&mut state.searches));
    let Some(found) = found else {
        return false;
    };
    scan.set_recheck(state.sought.is_inexact);
    hand_over(scan, state.table, found);
    true
}

/// How a scan row by row sees rows.
fn seen(scan: ScanOfCore<'_>, state: &State) -> Seen {
    let snapshot = scan.snapshot();
    if snapshot.kind() == SNAPSHOT_DIRTY {
        return Seen::Unfinished;
    }
    // SAFETY: it stays registered until the scan ends.
    let snapshot = unsafe { snapshot.unbound() };
    Seen::By(View::new(state.table_oid, state.table, snapshot))
}

/// Gives core a row, and the table's callback what was found of it.
#[inline]
fn hand_over(scan: ScanOfCore<'_>, table: TableRef, found: ScannedRow) {
    // SAFETY: the scan's table is ours, and so is what it keeps, which is used here alone.
    let fetch = unsafe { scan.fetch::<IndexFetch>() };
    match found {
        ScannedRow::Kept(row, version) => {
            scan.set_row(tid::of(table, row, version));
            if let Some(fetch) = fetch {
                fetch.handed = Some(Handed { row, version });
            }
        }
        ScannedRow::Copied(copy) => {
            scan.set_row(copy.tid());
            if let Some(fetch) = fetch {
                fetch.handed_copy = Some(copy);
            }
        }
    }
}
