//! Index scans: an index gives rows, and the version that the snapshot sees of each, in key order.
//!
//! The version goes to the table's callback with the row (`table_am::fetch`), so that one look-up
//! serves both. A scan can turn round (cursors): it begins anew in the other direction, and passes
//! over what lies before the row at which it turned.
mod bitmap;

pub use bitmap::all;

use super::keys::{self, Sought};
use crate::errors::or_raise;
use crate::pg::version::index_am as version;
use crate::rows::tid;
use crate::serializable::Reading;
use crate::table_am::fetch::{Handed, HandedCopy, IndexFetch};
use crate::table_am::slot::Shown;
use crate::table_am::view::View;
use crate::transaction::clock::{PgClock, PgSnapshot};
use crate::transaction::{relation, session};
use crate::{pg, storage, table_am};
use mot_engine::{
    Direction, GroupedScan, IndexRef, IndexScan, KeyRange, Now, Session, Slot, TableRef, VersionRef,
};
use pgrx::PgMemoryContexts;
use pgrx::pg_sys::{self, SnapshotType::*};
use std::ffi::c_int;

/// What a scan keeps from one row to the next; `opaque` of core's descriptor. It lies in a memory
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
    /// The order of rows is nobody's business.
    is_for_bitmap: bool,
    range: KeyRange,
    /// The arguments were made into ranges.
    has_ranges: bool,
    /// Of one whole key: a row can have it.
    has_key: bool,
    is_in_range: bool,
    direction: Direction,
    position: Position,
    /// Ranges and keys looked for since core was told.
    searches: u64,
}

/// How rows are seen.
enum Seen {
    By(View),
    /// SnapshotDirty: unfinished work, too.
    Unfinished,
}

/// Where a scan stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    Before,
    At(Slot),
    Behind,
}

/// A row that was found.
enum Found {
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
                sought: keys::sought(opened, definition, given, table.row_count_estimate()),
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
        } else {
            let state = state(scan);
            if !state.sought.take_arguments(given) {
                let definition = or_raise(state.session.definition(state.index));
                let rows = state.table.row_count_estimate();
                state.sought = keys::sought(opened, definition, given, rows);
            }
        }
        if (*scan).xs_want_itup && (*scan).xs_hitup.is_null() {
            give_no_columns(scan);
        }
        let state = state(scan);
        state.position = Position::Before;
        state.begin(Direction::Forward);
    }
}

/// Lets an index-only scan go on: core plans one where a query reads no column at all, and wants a
/// tuple. The table has no visibility map, so each row is fetched before it counts.
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
    // SAFETY: as core calls it. The context drops the state, and nobody uses that any more.
    unsafe {
        if !(*scan).opaque.is_null() {
            let memory = state(scan).memory;
            (*scan).opaque = std::ptr::null_mut();
            pg_sys::MemoryContextDelete(memory);
        }
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
        if state.position == Position::Before {
            // Each rescan is a scan of its own.
            table_am::scan_begins((*scan).indexRelation);
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
            Found::Kept(row, version) => {
                (*scan).xs_heaptid = tid::of(state.table, row, version);
                if !fetch.is_null() {
                    (*fetch).handed = Some(Handed { row, version });
                }
            }
            Found::Copied(copy) => {
                (*scan).xs_heaptid = (*copy.tuple).t_self;
                if !fetch.is_null() {
                    (*fetch).handed_copy = Some(copy);
                }
            }
        }
        true
    }
}

impl State {
    /// Begins with the first range in a direction.
    fn begin(&mut self, direction: Direction) {
        self.direction = direction;
        self.is_in_range = false;
        self.has_ranges = false;
    }

    /// Evaluates the arguments. What is unpacked of them is needed no longer than this, and a scan
    /// may begin very often.
    fn unpack<T>(&mut self, action: impl FnOnce(&mut Self) -> T) -> T {
        // SAFETY: the scan's own context, without children and callbacks.
        unsafe {
            pg::empty_bare_context(self.unpacked);
            let old = pg_sys::MemoryContextSwitchTo(self.unpacked);
            let result = action(self);
            pg_sys::MemoryContextSwitchTo(old);
            result
        }
    }

    /// Makes the arguments into ranges, if that was not done since the scan began.
    fn make_ranges(&mut self) {
        if !std::mem::replace(&mut self.has_ranges, true) {
            // SAFETY: the arguments are constants, which need no context to be evaluated in.
            self.unpack(|state| unsafe { state.sought.bounds.begin(std::ptr::null_mut()) });
            let Sought { bounds, skip, .. } = &mut self.sought;
            if let Some(skip) = skip {
                skip.begin(bounds);
            }
        }
    }

    /// The row that has the one key which is asked for. (A snapshot that is older than the index
    /// may see several, all in the key's entry.)
    fn step_to_key(&mut self, snapshot: &PgSnapshot<'static>) -> Option<(Slot, VersionRef)> {
        if std::mem::replace(&mut self.is_in_range, true) {
            return match self.has_key && !self.scan.is_exhausted() {
                true => or_raise(self.scan.next(self.session, snapshot)),
                false => None,
            };
        }
        self.searches += 1;
        self.unpack(|state| {
            // SAFETY: as for ranges.
            let key = or_raise(unsafe { state.sought.bounds.point(std::ptr::null_mut()) });
            state.has_key = key.is_some();
            let key = key?;
            let (session, table, index) = (state.session, state.table, state.index);
            or_raise(state.scan.find(session, table, index, key, snapshot))
        })
    }

    /// The next row in a direction.
    ///
    /// # Safety
    /// The scan's open table.
    unsafe fn next(&mut self, heap: pg_sys::Relation, direction: Direction) -> Option<Found> {
        if self.sought.is_empty {
            return None;
        }
        // SAFETY: the caller's table.
        unsafe {
            if direction != self.direction {
                self.turn(heap, direction)?;
            } else if self.position == Position::Behind {
                return None;
            }
            let found = self.step(heap);
            self.position = match &found {
                Some(Found::Kept(row, _)) => Position::At(*row),
                Some(Found::Copied(copy)) => tid::name(self.table, (*copy.tuple).t_self)
                    .map_or(Position::Behind, |name| Position::At(name.row)),
                None => Position::Behind,
            };
            found
        }
    }

    /// Begins in a direction, behind the row at which the scan stands. `None`: there is nothing
    /// behind it.
    unsafe fn turn(&mut self, heap: pg_sys::Relation, direction: Direction) -> Option<()> {
        let from = self.position;
        let turns = direction != self.direction;
        self.begin(direction);
        match from {
            // Nothing was given yet, or the scan has run off the end that is now its beginning.
            Position::Before => {}
            Position::Behind if turns => {}
            Position::Behind => return None,
            Position::At(row) => loop {
                // SAFETY: the caller's table.
                match unsafe { self.step(heap) } {
                    Some(Found::Kept(at, _)) if at == row => break,
                    Some(_) => {}
                    None => return None,
                }
            },
        }
        Some(())
    }

    /// The next row of the ranges.
    unsafe fn step(&mut self, heap: pg_sys::Relation) -> Option<Found> {
        let mut view = self.view.take()?;
        // SAFETY: the caller's table.
        let found = unsafe {
            match &mut view {
                Seen::Unfinished => self.step_unfinished(heap).map(Found::Copied),
                Seen::By(View::Mvcc(snapshot)) => {
                    let snapshot = match pg::is_in_portal_older_than_savepoint() {
                        true => snapshot.one_by_one(),
                        false => *snapshot,
                    };
                    // Both ways of an entry of several rows are known to ranges alone.
                    let is_one_key = self.sought.bounds.is_one_point()
                        && matches!(self.direction, Direction::Forward);
                    let found = match is_one_key {
                        true => self.step_to_key(&snapshot),
                        false => self.step_by(&snapshot),
                    };
                    found.map(|(row, version)| Found::Kept(row, version))
                }
                Seen::By(View::Now) => self
                    .step_now()
                    .map(|(row, version)| Found::Kept(row, version)),
                Seen::By(View::Serializable(reader)) => {
                    let found = self.step_by(&**reader);
                    if let Some((row, version)) = found {
                        reader.found(self.table, row, version);
                    }
                    reader.report();
                    found.map(|(row, version)| Found::Kept(row, version))
                }
            }
        };
        self.view = Some(view);
        found
    }

    fn step_by<R: Reading>(&mut self, snapshot: &R) -> Option<(Slot, VersionRef)> {
        loop {
            if self.is_in_range {
                let found = self.next_in_range(snapshot);
                if found.is_some() {
                    self.sought.bounds.found();
                    return found;
                }
                self.is_in_range = false;
            }
            self.make_ranges();
            if !self.begin_next(snapshot) {
                return None;
            }
        }
    }

    /// Begins with the next range, or with the next keys; false: there are none.
    fn begin_next<R: Reading>(&mut self, snapshot: &R) -> bool {
        if self.sought.skip.is_some() {
            // All of the index is looked through.
            snapshot.begin_range(self.oid, 0, &[]);
            if !self.next_range() {
                return false;
            }
            self.start();
            return true;
        }
        if snapshot.may_read_ahead() {
            let (bounds, scan) = (&mut self.sought.bounds, &mut self.scan);
            or_raise(bounds.pass_over_missing(self.session, scan, self.index, self.direction));
        }
        if snapshot.may_read_ahead()
            && self.index.is_unique()
            && let Some(points) = or_raise(self.sought.bounds.take_points(self.direction))
        {
            let searches = &mut self.searches;
            let points = points.inspect(|_| *searches += 1);
            or_raise(self.scan.start_points(self.table, self.index, points));
            self.is_in_range = true;
            self.is_grouped = false;
            return true;
        }
        if !self.next_range() {
            return false;
        }
        let (columns, prefix) = self.sought.bounds.prefix();
        snapshot.begin_range(self.oid, columns, prefix);
        self.start_in_order(columns);
        true
    }

    /// The next row of the range.
    fn next_in_range<R: Reading>(&mut self, snapshot: &R) -> Option<(Slot, VersionRef)> {
        or_raise(match &mut self.grouped {
            Some(grouped) if self.is_grouped => grouped.next(self.session, snapshot),
            _ => self.scan.next(self.session, snapshot),
        })
    }

    /// Begins to read a range in the order of the index's collations. So many leading columns are
    /// fixed in it.
    fn start_in_order(&mut self, fixed: usize) {
        self.is_grouped = self.sought.bounds.has_rough_rest() && !self.is_for_bitmap;
        if !self.is_grouped {
            return self.start();
        }
        let grouped = self.grouped.get_or_insert_default();
        let place = (self.table, self.index);
        let range = (&self.range, fixed);
        or_raise(grouped.start(self.session, place, range, self.direction));
        self.searches += 1;
        self.is_in_range = true;
    }

    fn step_now(&mut self) -> Option<(Slot, VersionRef)> {
        loop {
            if self.is_in_range {
                let found = or_raise(self.scan.next(self.session, &Now(&PgClock)));
                if found.is_some() {
                    return found;
                }
                self.is_in_range = false;
            }
            if !self.next_range() {
                return None;
            }
            self.start();
        }
    }

    unsafe fn step_unfinished(&mut self, heap: pg_sys::Relation) -> Option<HandedCopy> {
        loop {
            if self.is_in_range {
                // SAFETY: the caller's open table.
                let oid = unsafe { (*heap).rd_id };
                // SAFETY: the scan's own memory, where copies stay until its end.
                let memory = unsafe { pg_sys::MemoryContextSwitchTo(self.memory) };
                let table = self.table;
                let copy = |row, version, by| {
                    let shown = Shown {
                        relation: oid,
                        table,
                        row,
                        version,
                    };
                    // SAFETY: the engine keeps the version while it calls this.
                    unsafe { HandedCopy::new(shown, by) }
                };
                let found = self
                    .scan
                    .next_unfinished_or_current(self.session, &PgClock, copy);
                // SAFETY: the context that was current.
                unsafe { pg_sys::MemoryContextSwitchTo(memory) };
                if let Some(found) = or_raise(found) {
                    return Some(found);
                }
                self.is_in_range = false;
            }
            if !self.next_range() {
                return None;
            }
            self.start();
        }
    }

    /// The next range in the direction; there may be very many.
    fn next_range(&mut self) -> bool {
        self.make_ranges();
        if pg::interrupts::is_pending() {
            pg::interrupts::check_for_interrupts();
        }
        let bounds = &mut self.sought.bounds;
        let (direction, range) = (self.direction, &mut self.range);
        let Some(skip) = &mut self.sought.skip else {
            return or_raise(bounds.next_range(direction, range));
        };
        let (scan, session, index) = (&mut self.scan, self.session, self.index);
        let searches = &mut self.searches;
        let found = skip.next_range(bounds, direction, range, |rest, found| {
            *searches += 1;
            found(scan.first_key(session, index, rest, direction))
        });
        or_raise(found)
    }

    fn start(&mut self) {
        self.scan
            .start(self.table, self.index, &self.range, self.direction);
        self.searches += 1;
        self.is_in_range = true;
    }
}
