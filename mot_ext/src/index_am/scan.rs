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
use crate::pg::relation::Relation;
use crate::pg::version::index_am as version;
use crate::rows::tid;
use crate::serializable::Reading;
use crate::storage::labels;
use crate::table_am::fetch::{Handed, HandedCopy, IndexFetch};
use crate::table_am::view::View;
use crate::transaction::clock::PgSnapshot;
use crate::transaction::{relation, session};
use crate::{pg, storage, table_am};
use mot_engine::{
    Direction, GroupedScan, IndexRef, IndexScan, KeyRange, Session, Slot, TableRef, VersionRef,
};
use pgrx::PgMemoryContexts;
use pgrx::pg_sys::{self, SnapshotType::*};
use std::ffi::c_int;

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
    At(Slot),
    Behind,
}

/// A row that was found.
enum ScannedRow {
    Kept(Slot, VersionRef),
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

/// `amrescan`.
pub unsafe fn rescan(
    scan: pg_sys::IndexScanDesc,
    scan_keys: pg_sys::ScanKey,
    key_count: c_int,
    _orders: pg_sys::ScanKey,
    _order_count: c_int,
) {
    // SAFETY: as core calls it: a scan of `begin`'s with room for the keys. Core sets the table
    // after `ambeginscan`.
    unsafe {
        if !scan_keys.is_null() && key_count > 0 {
            std::ptr::copy(scan_keys, (*scan).keyData, key_count as usize);
        }
        let given = match (*scan).numberOfKeys {
            0 => &[][..],
            count => std::slice::from_raw_parts((*scan).keyData, count as usize),
        };
        let opened = (*scan).indexRelation;
        if (*scan).opaque.is_null() {
            make_state(scan, given);
        } else {
            let state = state(scan);
            if !state.sought.take_arguments(given) {
                let definition = or_raise(state.session.definition(state.index));
                let rows = state.table.row_count_estimate();
                state.sought = keys::sought(opened, definition, given, rows, None);
            }
        }
        if (*scan).xs_want_itup && (*scan).xs_hitup.is_null() {
            give_no_columns(scan);
        }
        let state = state(scan);
        state.position = Position::Before;
        state.wants_labels = state.has_labels;
        state.begin(Direction::Forward);
    }
}

/// Makes the state of a scan that is asked for these conditions.
///
/// # Safety
/// A scan of `begin`'s, in the memory context in which it lives.
unsafe fn make_state(scan: pg_sys::IndexScanDesc, given: &[pg_sys::ScanKeyData]) {
    // SAFETY: the caller's scan, whose index is open. Core sets the table after `ambeginscan`.
    unsafe {
        let opened = (*scan).indexRelation;
        let session = session::session();
        // A scan for a bitmap knows its index alone.
        let table = match (*scan).heapRelation.is_null() {
            true => {
                let oid = (*(*opened).rd_index).indrelid;
                relation::Relation::closed(oid).with(storage::table)
            }
            false => storage::table((*scan).heapRelation),
        };
        let index = storage::index(table, opened);
        let definition = or_raise(session.definition(index));
        let memory = pg::small_context(pg_sys::CurrentMemoryContext, c"mot index scan");
        let state = State {
            memory,
            unpacked: pg::small_context(memory, c"mot index scan arguments"),
            session,
            oid: (*opened).rd_id,
            index,
            table,
            view: None,
            sought: keys::sought(opened, definition, given, table.row_count_estimate(), None),
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
        let mut context = PgMemoryContexts::For(memory);
        (*scan).opaque = context.leak_and_drop_on_delete(state).cast();
    }
}

/// Lets an index-only scan continue: core plans one where a query reads no column at all, and wants
/// a tuple. The table has no visibility map, so each row is fetched before it counts.
///
/// # Safety
/// A scan of `begin`'s, in the memory context in which it lives.
unsafe fn give_no_columns(scan: pg_sys::IndexScanDesc) {
    // SAFETY: the index is open as long as the scan, and its descriptor says how many columns there
    // are.
    unsafe {
        let columns = (*(*scan).indexRelation).rd_att;
        let count = (*columns).natts as usize;
        let mut values = vec![pg_sys::Datum::null(); count];
        let mut nulls = vec![true; count];
        (*scan).xs_hitupdesc = columns;
        (*scan).xs_hitup =
            pg_sys::heap_form_tuple(columns, values.as_mut_ptr(), nulls.as_mut_ptr());
    }
}

/// The state of a scan with conditions.
unsafe fn state<'a>(scan: pg_sys::IndexScanDesc) -> &'a mut State {
    // SAFETY: `rescan` made it, in a memory context that outlives the scan.
    unsafe { &mut *(*scan).opaque.cast::<State>() }
}

/// `amendscan`.
pub unsafe fn end(scan: pg_sys::IndexScanDesc) {
    // SAFETY: as core calls it. The context drops the state, and no code uses that any more.
    unsafe {
        if !(*scan).opaque.is_null() {
            let memory = state(scan).memory;
            (*scan).opaque = std::ptr::null_mut();
            pg_sys::MemoryContextDelete(memory);
        }
    }
}

/// Looks for the labels of the values that a scan asks for, among the rows that it sees.
///
/// # Safety
/// A scan of `begin`'s with conditions, a view, and a registered snapshot.
unsafe fn look_for_labels(scan: pg_sys::IndexScanDesc) {
    // SAFETY: the caller's scan, whose relations are open.
    unsafe {
        let state = state(scan);
        let opened = (*scan).indexRelation;
        let memory = state.memory;
        let searching = state.labels.get_or_insert_with(|| {
            let make = |table| ScanLabels::new(table, opened, memory);
            match (*scan).heapRelation.is_null() {
                true => relation::Relation::closed((*(*opened).rd_index).indrelid).with(make),
                false => make((*scan).heapRelation),
            }
        });
        let snapshot;
        let seen = match &state.view {
            Some(Seen::By(View::Mvcc(snapshot))) => labels::ComparedStates::By(snapshot),
            Some(Seen::By(View::Serializable(reader))) => {
                // Whose values others may have beside them, by whatever label.
                reader.begin_range(state.oid, 0, &[]);
                snapshot = PgSnapshot::new((*scan).xs_snapshot);
                labels::ComparedStates::By(&snapshot)
            }
            _ => labels::ComparedStates::Lasting,
        };
        let argument_labels = searching.at((state.table, state.index), seen);
        let given = match (*scan).numberOfKeys {
            0 => &[][..],
            count => std::slice::from_raw_parts((*scan).keyData, count as usize),
        };
        let definition = or_raise(state.session.definition(state.index));
        let rows = state.table.row_count_estimate();
        state.sought = keys::sought(opened, definition, given, rows, Some(argument_labels));
    }
}

/// `amgettuple`.
pub unsafe fn next(scan: pg_sys::IndexScanDesc, direction: pg_sys::ScanDirection::Type) -> bool {
    // SAFETY: as core calls it, with a snapshot that stays registered until the scan ends.
    unsafe {
        let state = state(scan);
        if state.view.is_none() {
            let snapshot = (*scan).xs_snapshot;
            state.view = Some(match (*snapshot).snapshot_type {
                SNAPSHOT_DIRTY => Seen::Unfinished,
                _ => {
                    let oid = (*(*scan).heapRelation).rd_id;
                    Seen::By(View::new(oid, state.table, snapshot))
                }
            });
        }
        if std::mem::take(&mut state.wants_labels) {
            look_for_labels(scan);
        }
        if state.position == Position::Before {
            // Each rescan is a scan of its own.
            table_am::scan_begins(Relation::enter((*scan).indexRelation));
        }
        let direction = match direction {
            pg_sys::ScanDirection::BackwardScanDirection => Direction::Backward,
            _ => Direction::Forward,
        };
        let found = state.next((*scan).heapRelation, direction);
        version::count_searches(scan, std::mem::take(&mut state.searches));
        let Some(found) = found else {
            return false;
        };
        (*scan).xs_recheck = state.sought.is_inexact;
        let fetch = (*scan).xs_heapfetch.cast::<IndexFetch>();
        match found {
            ScannedRow::Kept(row, version) => {
                (*scan).xs_heaptid = tid::of(state.table, row, version);
                if !fetch.is_null() {
                    (*fetch).handed = Some(Handed { row, version });
                }
            }
            ScannedRow::Copied(copy) => {
                (*scan).xs_heaptid = copy.tid();
                if !fetch.is_null() {
                    (*fetch).handed_copy = Some(copy);
                }
            }
        }
        true
    }
}
