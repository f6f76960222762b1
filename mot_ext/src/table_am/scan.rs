//! Scans of all rows, in the order of their row ids; backward, too; of a range of tuple ids.
//!
//! A scan ends at the row id that was the highest when it began: its snapshot sees no later row. A
//! row is shown in place where the snapshot keeps it. It is a copy where the scan may outlive a
//! savepoint whose rows it shows.
mod groups;

use super::bitmap::Rest;
use super::slot::{self, Shown};
use super::unfinished::{self, UnfinishedRows};
use super::view::{Keeping, View};
use crate::pg::{self, guard};
use crate::rows::{tid, tuple};
use crate::storage;
use crate::transaction::clock::PgClock;
use crate::transaction::{session, xact};
use mot_engine::{Now, RowScan, Session, SharedRowScan, Slot, TableRef, VersionRef};
use pgrx::PgMemoryContexts;
use pgrx::pg_sys::{self, ScanOptions, SnapshotType::SNAPSHOT_DIRTY};
use std::ffi::c_int;

/// A scan as core holds it: core's part first.
#[repr(C)]
struct Descriptor {
    core: pg_sys::TableScanDescData,
    state: *mut Scan,
}

/// A scan's position.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    Before,
    At(Slot),
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
    pub end: Slot,
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
    unsafe { &mut *(*scan.cast::<Descriptor>()).state }
}

/// `scan_begin`.
pub unsafe fn begin(
    relation: pg_sys::Relation,
    snapshot: pg_sys::Snapshot,
    key_count: c_int,
    keys: *mut pg_sys::ScanKeyData,
    shared: pg_sys::ParallelTableScanDesc,
    flags: u32,
) -> pg_sys::TableScanDesc {
    debug_assert_eq!(key_count, 0, "core hands scans of all rows no conditions");
    // SAFETY: as core calls it: an open, locked relation, a snapshot that stays registered until
    // the scan's end (none for ANALYZE), and shared memory that outlives the scan.
    unsafe {
        let table = storage::table(relation);
        let is_dirty = !snapshot.is_null() && (*snapshot).snapshot_type == SNAPSHOT_DIRTY;
        let view = match snapshot.is_null() || is_dirty {
            true => View::Now,
            false => View::new((*relation).rd_id, table, snapshot),
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
        let end = table.slots_end();
        let memory = pg::small_context(pg_sys::CurrentMemoryContext, c"mot scan");
        let scan = Scan {
            memory,
            session: session::session(),
            table,
            relation: (*relation).rd_id,
            view,
            keeping,
            end,
            position: Position::Before,
            ahead: None,
            unfinished: is_dirty.then(UnfinishedRows::default),
            shared: (!shared.is_null()).then(|| super::parallel::shared(shared)),
            range: None,
            block: None,
            rest_of_page: Rest::default(),
            sampled: None,
            rows_per_block: match flags & ScanOptions::SO_TYPE_SAMPLESCAN {
                0 => super::relation::rows_per_block(end),
                _ => super::sample::rows_per_sampled_block(relation, table),
            },
        };
        let mut context = PgMemoryContexts::For(memory);
        let descriptor = pg_sys::palloc0(size_of::<Descriptor>()).cast::<Descriptor>();
        (*descriptor).core.rs_rd = relation;
        (*descriptor).core.rs_snapshot = snapshot;
        (*descriptor).core.rs_nkeys = key_count;
        (*descriptor).core.rs_key = keys;
        (*descriptor).core.rs_flags = flags;
        (*descriptor).core.rs_parallel = shared;
        (*descriptor).state = context.leak_and_drop_on_delete(scan);
        descriptor.cast()
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
pub unsafe fn rescan(
    scan: pg_sys::TableScanDesc,
    _keys: *mut pg_sys::ScanKeyData,
    _sets_parameters: bool,
    _allows_strategy: bool,
    _allows_sync: bool,
    _allows_page_mode: bool,
) {
    // SAFETY: as core calls it.
    let scan = unsafe {
        count_begin((*scan).rs_rd, (*scan).rs_flags);
        state(scan)
    };
    scan.position = Position::Before;
    scan.ahead = None;
    scan.block = None;
    scan.rest_of_page = Rest::default();
    scan.sampled = None;
    if let View::Now = scan.view {
        // What was added since is seen, too.
        scan.end = scan.table.slots_end();
    }
    if let Some(rows) = &mut scan.unfinished {
        rows.restart();
    }
}

/// Counts a scan each time it begins. As on heap, samples are counted by their rows alone.
unsafe fn count_begin(relation: pg_sys::Relation, flags: u32) {
    if flags & ScanOptions::SO_TYPE_SEQSCAN != 0 {
        // SAFETY: the caller's open relation.
        unsafe { super::statistics::scan_begins(relation) };
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
        next_at_hand(scan, direction, slot) || guard::run(|| next_slot(scan, direction, slot))
    }
}

/// Shows the next row if it is at hand, committed, and to be shown in place.
#[inline]
unsafe fn next_at_hand(
    core: pg_sys::TableScanDesc,
    direction: pg_sys::ScanDirection::Type,
    slot: *mut pg_sys::TupleTableSlot,
) -> bool {
    // SAFETY: the caller's scan and slot.
    unsafe {
        let scan = state(core);
        let is_plain = matches!(scan.view, View::Mvcc(_))
            && scan.keeping == Keeping::Kept
            && scan.range.is_none()
            && direction == pg_sys::ScanDirection::ForwardScanDirection
            && slot::is_free(slot)
            && super::statistics::is_counting_known((*core).rs_rd);
        let Some(rows) = scan.ahead.as_mut().filter(|_| is_plain) else {
            return false;
        };
        let is_settled = |(_, version): &(Slot, VersionRef)| version.is_known_committed();
        let Some((row, version)) = rows.at_hand().filter(is_settled) else {
            return false;
        };
        rows.take_at_hand();
        scan.position = Position::At(row);
        super::statistics::row_read((*core).rs_rd);
        scan.show(slot, row, version);
        true
    }
}

/// The next row in a direction.
pub unsafe fn next_slot(
    scan: pg_sys::TableScanDesc,
    direction: pg_sys::ScanDirection::Type,
    slot: *mut pg_sys::TupleTableSlot,
) -> bool {
    // SAFETY: as core calls it, with a slot of the table's.
    unsafe {
        let core = scan;
        let scan = state(scan);
        if let Some(mut rows) = scan.unfinished.take() {
            let found = unfinished::next_slot(scan, &mut rows, (*core).rs_snapshot, slot);
            scan.unfinished = Some(rows);
            if found {
                super::statistics::row_read((*core).rs_rd);
            }
            return found;
        }
        let found = match direction {
            pg_sys::ScanDirection::BackwardScanDirection => scan.back(),
            _ => scan.next(),
        };
        match found {
            Some((row, version)) => {
                super::statistics::row_read((*core).rs_rd);
                scan.show(slot, row, version);
                true
            }
            None => {
                clear(slot);
                false
            }
        }
    }
}

/// `scan_set_tidrange`.
pub unsafe fn set_tid_range(
    scan: pg_sys::TableScanDesc,
    lowest: pg_sys::ItemPointer,
    highest: pg_sys::ItemPointer,
) {
    // SAFETY: as core calls it, with two tuple ids, of which neither need be one that a row can
    // have.
    unsafe {
        let scan = state(scan);
        scan.range = Some(tid::numbers(*lowest, *highest));
        scan.position = Position::Before;
        scan.ahead = None;
    }
}

/// `scan_getnextslot_tidrange`.
pub unsafe fn next_slot_in_tid_range(
    scan: pg_sys::TableScanDesc,
    direction: pg_sys::ScanDirection::Type,
    slot: *mut pg_sys::TupleTableSlot,
) -> bool {
    // SAFETY: as core calls it.
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
    pub unsafe fn show(&self, slot: *mut pg_sys::TupleTableSlot, row: Slot, version: VersionRef) {
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
    fn rows(&self) -> (Slot, Slot) {
        match &self.range {
            None => (Slot(0), self.end),
            // The ids of any rows may be among those.
            Some(_) if xact::has_aliases() => (Slot(0), self.end),
            Some(numbers) => {
                let rows = tid::rows(numbers);
                let end = rows.end.min(self.end);
                (rows.start.min(end), end)
            }
        }
    }

    fn is_in_range(&self, row: Slot, version: VersionRef) -> bool {
        let numbers = self.range.as_ref();
        numbers
            .is_none_or(|numbers| numbers.contains(&tid::number(tid::of(self.table, row, version))))
    }

    /// The next row.
    pub fn next(&mut self) -> Option<(Slot, VersionRef)> {
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

    fn next_of_rows(&mut self) -> Option<(Slot, VersionRef)> {
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
                    Position::At(row) => Slot(row.0 + 1),
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
    pub fn back(&mut self) -> Option<(Slot, VersionRef)> {
        self.ahead = None;
        let (first, end) = self.rows();
        let mut row = match self.position {
            Position::At(row) => row,
            Position::Before | Position::Behind => end,
        };
        while row > first {
            row = Slot(row.0 - 1);
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

/// Empties a slot of any kind.
///
/// # Safety
/// An initialized slot.
pub unsafe fn clear(slot: *mut pg_sys::TupleTableSlot) {
    // SAFETY: the caller's slot.
    unsafe {
        if std::ptr::eq((*slot).tts_ops, crate::rows::row_slot::kind()) {
            return tuple::clear(slot);
        }
        let clear = (*(*slot).tts_ops).clear.expect("every kind has it");
        pg_sys::ffi::pg_guard_ffi_boundary(|| {
            #[allow(ffi_unwind_calls)]
            clear(slot)
        });
    }
}
