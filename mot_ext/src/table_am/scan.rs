//! Scans of all rows, in the order of their row ids; backward, too; of a range of tuple ids.
//!
//! A scan ends at the row id that was the highest when it began: its snapshot sees no later row. A
//! row is shown in place where the snapshot keeps it. It is a copy where the scan may outlive a
//! savepoint whose rows it shows.
mod groups;

use super::bitmap::Rest;
use super::slot::{self, Shown};
use super::statistics;
use super::unfinished::{self, UnfinishedRows};
use super::view::{Keeping, View};
use crate::pg::argument::Argument;
use crate::pg::node::Field;
use crate::pg::relation::Relation;
use crate::pg::snapshot::Snapshot;
use crate::pg::tuple_slot::TupleSlot;
use crate::pg::{self, guard};
use crate::rows::tid;
use crate::storage;
use crate::transaction::clock::PgClock;
use crate::transaction::{session, xact};
use mot_engine::{Now, RowId, RowScan, Session, SharedRowScan, TableRef, VersionRef};
use pgrx::PgMemoryContexts;
use pgrx::pg_sys::{self, ScanOptions, SnapshotType::SNAPSHOT_DIRTY};
use std::ffi::c_int;

/// A scan as core holds it: core's part first.
#[repr(C)]
pub struct OpenScan {
    core: pg_sys::TableScanDescData,
    state: *mut Scan,
}

impl Argument<pg_sys::TableScanDesc> for &mut OpenScan {
    #[inline]
    unsafe fn of(passed: pg_sys::TableScanDesc) -> Self {
        // SAFETY: core passes what `begin` made; nobody else reads it until the callback returns.
        unsafe { &mut *passed.cast::<OpenScan>() }
    }
}

impl OpenScan {
    /// The scan behind core's descriptor.
    #[inline]
    pub fn state(&mut self) -> &mut Scan {
        self.parts().1
    }

    /// The table, and the scan.
    #[inline]
    pub fn parts(&mut self) -> (Relation<'_>, &mut Scan) {
        // SAFETY: core keeps the table open as long as the scan. The state is this descriptor's
        // alone, and lives until `end`.
        unsafe { (Relation::enter(self.core.rs_rd), &mut *self.state) }
    }
}

/// A scan's position.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    Before,
    At(RowId),
    Behind,
}

/// What a scan needs from one row to the next. It is in a memory context of its own, which drops
/// it.
pub struct Scan {
    memory: pg_sys::MemoryContext,
    pub session: &'static Session,
    pub table: TableRef,
    pub relation: pg_sys::Oid,
    pub view: View,
    pub keeping: Keeping,
    /// One past the highest row id.
    pub end: RowId,
    position: Position,
    /// Rows ahead of the position; `None`: they are to be looked up from there.
    ahead: Option<RowScan>,
    /// A scan that parallel workers share.
    shared: Option<&'static SharedRowScan>,
    /// A scan under SnapshotDirty.
    unfinished: Option<UnfinishedRows>,
    /// Of a scan by tuple ids.
    range: Option<tid::Numbers>,
    /// Rows of the block that is being analyzed.
    pub block: Option<RowScan>,
    /// The page of a bitmap that is being read.
    pub rest_of_page: Rest,
    /// The block that is being sampled.
    pub sampled: Option<u64>,
    /// Rows that a block of ANALYZE or TABLESAMPLE has.
    pub rows_per_block: u64,
}

/// The scan behind core's descriptor.
///
/// # Safety
/// The descriptor is one of `scan_begin`'s, and not ended.
pub unsafe fn state<'a>(scan: pg_sys::TableScanDesc) -> &'a mut Scan {
    // SAFETY: the caller's descriptor; the state lives as long as its memory context.
    unsafe { &mut *(*scan.cast::<OpenScan>()).state }
}

/// `scan_begin`: of an open, locked table. There is no snapshot for ANALYZE.
///
/// # Safety
/// The table is open, and the snapshot registered, until the scan's end. The shared memory, if any,
/// lives as long.
pub unsafe fn begin(
    relation: Relation<'_>,
    snapshot: Option<Snapshot<'_>>,
    key_count: c_int,
    keys: *mut pg_sys::ScanKeyData,
    shared: pg_sys::ParallelTableScanDesc,
    flags: u32,
) -> pg_sys::TableScanDesc {
    debug_assert_eq!(key_count, 0, "core hands scans of all rows no conditions");
    let table = storage::table(relation);
    let is_dirty = snapshot.is_some_and(|snapshot| snapshot.kind() == SNAPSHOT_DIRTY);
    let view = match snapshot.filter(|_| !is_dirty) {
        None => View::Now,
        // SAFETY: it lives as long as the scan (caller).
        Some(snapshot) => View::new(relation.oid(), table, unsafe { snapshot.unbound() }),
    };
    let reads_all = ScanOptions::SO_TYPE_SEQSCAN | ScanOptions::SO_TYPE_SAMPLESCAN;
    if flags & reads_all != 0 {
        view.begin_all();
    }
    count_begin(relation, flags);
    let keeping = match pg::is_in_portal_older_than_savepoint() {
        true => Keeping::Passing,
        false => view.keeping(),
    };
    let end = table.row_ids_end();
    // SAFETY: a variable of this process: the context that core begins the scan in.
    let memory = unsafe { pg::small_context(pg_sys::CurrentMemoryContext, c"mot scan") };
    let scan = Scan {
        memory,
        session: session::session(),
        table,
        relation: relation.oid(),
        view,
        keeping,
        end,
        position: Position::Before,
        ahead: None,
        unfinished: is_dirty.then(UnfinishedRows::default),
        // SAFETY: the caller's shared memory.
        shared: (!shared.is_null()).then(|| unsafe { super::parallel::shared(shared) }),
        range: None,
        block: None,
        rest_of_page: Rest::default(),
        sampled: None,
        rows_per_block: match flags & ScanOptions::SO_TYPE_SAMPLESCAN {
            0 => super::relation::rows_per_block(end),
            _ => super::sample::rows_per_sampled_block(relation, table),
        },
    };
    let core = pg_sys::TableScanDescData {
        rs_rd: relation.as_ptr(),
        rs_snapshot: snapshot.map_or(std::ptr::null_mut(), Snapshot::as_ptr),
        rs_nkeys: key_count,
        rs_key: keys,
        rs_flags: flags,
        rs_parallel: shared,
        ..Default::default()
    };
    let state = PgMemoryContexts::For(memory).leak_and_drop_on_delete(scan);
    // SAFETY: memory of its size, in the context that core begins the scan in.
    unsafe {
        let place = pg_sys::palloc0(size_of::<OpenScan>()).cast::<OpenScan>();
        place.write(OpenScan { core, state });
        place.cast()
    }
}

/// `scan_end`.
pub unsafe fn end(scan: pg_sys::TableScanDesc) {
    // SAFETY: as core calls it. The context drops what the scan holds, and no code uses that any
    // more.
    unsafe {
        pg_sys::MemoryContextDelete(state(scan).memory);
        if (*scan).rs_flags & ScanOptions::SO_TEMP_SNAPSHOT != 0 {
            pg_sys::UnregisterSnapshot((*scan).rs_snapshot);
        }
        pg_sys::pfree(scan.cast());
    }
}

/// `scan_rescan`.
pub fn rescan(
    scan: &mut OpenScan,
    _keys: *mut pg_sys::ScanKeyData,
    _sets_parameters: bool,
    _allows_strategy: bool,
    _allows_sync: bool,
    _allows_page_mode: bool,
) {
    let flags = scan.core.rs_flags;
    let (relation, scan) = scan.parts();
    count_begin(relation, flags);
    scan.position = Position::Before;
    scan.ahead = None;
    scan.block = None;
    scan.rest_of_page = Rest::default();
    scan.sampled = None;
    if let View::Now = scan.view {
        // What was added since is seen, too.
        scan.end = scan.table.row_ids_end();
    }
    if let Some(rows) = &mut scan.unfinished {
        rows.restart();
    }
}

/// Counts a scan each time it begins. As on heap, samples are counted by their rows alone.
fn count_begin(relation: Relation<'_>, flags: u32) {
    if flags & ScanOptions::SO_TYPE_SEQSCAN != 0 {
        statistics::scan_begins(relation);
    }
}

/// `scan_getnextslot`: a plain frame. A row that was looked up together with others is shown
/// without a call of PostgreSQL's; what may raise runs guarded.
pub unsafe extern "C-unwind" fn get_next_slot(
    scan: pg_sys::TableScanDesc,
    direction: pg_sys::ScanDirection::Type,
    slot: *mut pg_sys::TupleTableSlot,
) -> bool {
    // SAFETY: as core calls it, with a slot of the table's. Nothing is left to drop should the
    // guarded part raise.
    unsafe {
        let (scan, slot) = (<&mut OpenScan>::of(scan), TupleSlot::of(slot));
        next_at_hand(scan, direction, slot) || guard::run(|| next_slot(scan, direction, slot))
    }
}

/// Shows the next row if it is at hand, committed, and to be shown in place.
///
/// # Safety
/// The slot is of the table's row type.
#[inline]
unsafe fn next_at_hand(
    scan: &mut OpenScan,
    direction: pg_sys::ScanDirection::Type,
    slot: TupleSlot<'_>,
) -> bool {
    let (relation, scan) = scan.parts();
    let is_plain = matches!(scan.view, View::Mvcc(_))
        && scan.keeping == Keeping::Kept
        && scan.range.is_none()
        && direction == pg_sys::ScanDirection::ForwardScanDirection
        && slot::is_free(slot)
        && statistics::is_counting_known(relation);
    let Some(rows) = scan.ahead.as_mut().filter(|_| is_plain) else {
        return false;
    };
    let is_settled = |(_, version): &(RowId, VersionRef)| version.is_known_committed();
    let Some((row, version)) = rows.at_hand().filter(is_settled) else {
        return false;
    };
    rows.take_at_hand();
    scan.position = Position::At(row);
    statistics::row_read(relation);
    // SAFETY: the caller's slot.
    unsafe { scan.show(slot, row, version) };
    true
}

/// The next row in a direction.
///
/// # Safety
/// The slot is of the table's row type, as core's are.
pub unsafe fn next_slot(
    open: &mut OpenScan,
    direction: pg_sys::ScanDirection::Type,
    slot: TupleSlot<'_>,
) -> bool {
    if let Some(rows) = open.state().unfinished.take() {
        // SAFETY: the caller's slot.
        return unsafe { next_unfinished(open, rows, slot) };
    }
    let (relation, scan) = open.parts();
    let found = match direction {
        pg_sys::ScanDirection::BackwardScanDirection => scan.back(),
        _ => scan.next(),
    };
    let Some((row, version)) = found else {
        slot::clear(slot);
        return false;
    };
    statistics::row_read(relation);
    // SAFETY: the caller's slot.
    unsafe { scan.show(slot, row, version) };
    true
}

/// The next row of a scan under SnapshotDirty.
///
/// # Safety
/// As for [`next_slot`].
unsafe fn next_unfinished(
    open: &mut OpenScan,
    mut rows: UnfinishedRows,
    slot: TupleSlot<'_>,
) -> bool {
    let snapshot = open.core.rs_snapshot;
    let (relation, scan) = open.parts();
    // SAFETY: core keeps the snapshot as long as the scan.
    let snapshot = unsafe { Snapshot::of(snapshot) };
    // SAFETY: the caller's slot.
    let found = unsafe { unfinished::next_slot(scan, &mut rows, snapshot, slot) };
    scan.unfinished = Some(rows);
    if found {
        statistics::row_read(relation);
    }
    found
}

/// `scan_set_tidrange`: of two tuple ids, of which neither need be one that a row can have.
pub fn set_tid_range(
    scan: &mut OpenScan,
    lowest: Field<'_, pg_sys::ItemPointerData>,
    highest: Field<'_, pg_sys::ItemPointerData>,
) {
    let scan = scan.state();
    scan.range = Some(tid::numbers(lowest.get(), highest.get()));
    scan.position = Position::Before;
    scan.ahead = None;
}

/// `scan_getnextslot_tidrange`.
///
/// # Safety
/// As for [`next_slot`].
pub unsafe fn next_slot_in_tid_range(
    scan: &mut OpenScan,
    direction: pg_sys::ScanDirection::Type,
    slot: TupleSlot<'_>,
) -> bool {
    // SAFETY: the caller's slot.
    unsafe { next_slot(scan, direction, slot) }
}

impl Scan {
    /// Where what lives as long as the scan is allocated.
    pub fn memory(&self) -> pg_sys::MemoryContext {
        self.memory
    }

    /// Shows a row that the scan has found.
    ///
    /// # Safety
    /// A slot of the table's row type.
    #[inline]
    pub unsafe fn show(&self, slot: TupleSlot<'_>, row: RowId, version: VersionRef) {
        let shown = Shown {
            relation: self.relation,
            table: self.table,
            row,
            version,
        };
        // SAFETY: the caller's slot; the view says how long the version is there.
        unsafe {
            match self.keeping {
                Keeping::Kept => slot::show(slot, shown),
                Keeping::Passing => slot::show_copy(slot, shown),
            }
        }
    }

    /// The row ids that the scan is about.
    fn rows(&self) -> (RowId, RowId) {
        match &self.range {
            None => (RowId(0), self.end),
            // The ids of any rows may be among those.
            Some(_) if xact::has_aliases() => (RowId(0), self.end),
            Some(numbers) => {
                let rows = tid::rows(numbers);
                let end = rows.end.min(self.end);
                (rows.start.min(end), end)
            }
        }
    }

    fn is_in_range(&self, row: RowId, version: VersionRef) -> bool {
        let numbers = self.range.as_ref();
        numbers
            .is_none_or(|numbers| numbers.contains(&tid::number(tid::of(self.table, row, version))))
    }

    /// The next row.
    pub fn next(&mut self) -> Option<(RowId, VersionRef)> {
        loop {
            let found = self.next_of_rows();
            if let View::Serializable(reader) = &self.view {
                if let Some((row, version)) = found
                    && self.range.is_some()
                {
                    reader.found(self.table, row, version);
                }
                reader.report();
            }
            match found {
                None => {
                    self.position = Position::Behind;
                    return None;
                }
                Some((row, version)) => {
                    self.position = Position::At(row);
                    if self.is_in_range(row, version) {
                        return Some((row, version));
                    }
                }
            }
        }
    }

    fn next_of_rows(&mut self) -> Option<(RowId, VersionRef)> {
        if self.position == Position::Behind && self.ahead.is_none() {
            return None;
        }
        loop {
            if self.ahead.is_none() {
                self.ahead = Some(self.rows_ahead()?);
            }
            let rows = self.ahead.as_mut()?;
            let found = match &self.view {
                View::Mvcc(snapshot) => rows.next(self.session, snapshot),
                View::Serializable(reader) => rows.next(self.session, &**reader),
                View::Now => rows.next(self.session, &Now(&PgClock)),
            };
            if found.is_some() || self.shared.is_none() {
                return found;
            }
            self.ahead = None;
        }
    }

    /// The rows behind the position, or the next part of a shared scan.
    fn rows_ahead(&self) -> Option<RowScan> {
        let rows = match self.shared {
            Some(shared) => shared.take(self.table)?,
            None => {
                let (first, end) = self.rows();
                let from = match self.position {
                    Position::Before => first,
                    Position::At(row) => RowId(row.0 + 1),
                    Position::Behind => return None,
                };
                RowScan::over(self.table, from.min(end)..end)
            }
        };
        Some(match self.keeping {
            Keeping::Kept => rows,
            Keeping::Passing => rows.one_by_one(),
        })
    }

    /// The row before the position. Cursors go backward seldom, so rows are looked up one by one.
    /// As heapam's, a scan that has not begun goes backward from its end: core begins a scan of a
    /// range of tuple ids again where a cursor turns round behind the last row.
    pub fn back(&mut self) -> Option<(RowId, VersionRef)> {
        self.ahead = None;
        let (first, end) = self.rows();
        let mut row = match self.position {
            Position::At(row) => row,
            Position::Before | Position::Behind => end,
        };
        while row > first {
            row = RowId(row.0 - 1);
            if row.0.is_multiple_of(ROWS_PER_LOOK) {
                pgrx::check_for_interrupts!();
            }
            if let Some(version) = self.view.visible(self.session, self.table, row)
                && self.is_in_range(row, version)
            {
                self.position = Position::At(row);
                return Some((row, version));
            }
        }
        self.position = Position::Before;
        None
    }
}

/// Row ids between two checks for interrupts.
pub const ROWS_PER_LOOK: u64 = 1024;
