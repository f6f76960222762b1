//! TABLESAMPLE and ANALYZE: a table as blocks of as many row ids each.
use super::scan::{self, OpenScan, Scan};
use super::view::View;
use super::{slot, statistics};
use crate::pg::argument::Argument;
use crate::pg::interrupts;
use crate::pg::node::Field;
use crate::pg::relation::Relation;
use crate::pg::tuple_slot::TupleSlot;
use crate::pg::version::table_am::Blocks;
use crate::transaction::clock::PgClock;
use mot_engine::{Now, RowId, RowScan, TableRef, VersionRef};
use pgrx::pg_sys;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// Bytes of a heap's page that rows can have, line pointers included.
const PAGE_BYTES: u64 = pg_sys::BLCKSZ as u64 - 24;

/// Bytes of a row's line pointer in a heap's page.
const LINE_POINTER_BYTES: u64 = 4;

/// Rows of a block of TABLESAMPLE: as many as a heap's page has of such rows, so that SYSTEM takes
/// samples as coarse as heap's. The number changes only with the table's average row.
pub fn rows_per_sampled_block(relation: Relation<'_>, table: TableRef) -> u64 {
    let filled = match relation.table_options() {
        None => u64::from(pg_sys::HEAP_DEFAULT_FILLFACTOR),
        Some(options) => options.fillfactor as u64,
    };
    let kept_free = u64::from(pg_sys::BLCKSZ) * (100 - filled) / 100;
    let alignment = pg_sys::MAXIMUM_ALIGNOF as u64;
    let row_bytes = super::relation::row_bytes(table).next_multiple_of(alignment);
    let rows = PAGE_BYTES.saturating_sub(kept_free) / (row_bytes + LINE_POINTER_BYTES);
    rows.max(1)
}

impl Scan {
    /// The row ids of a block of so many; none behind the last.
    fn rows_of_block(&self, block: u64, rows: u64) -> std::ops::Range<RowId> {
        let first = (block * rows).min(self.end.0);
        let end = (first + rows).min(self.end.0);
        RowId(first)..RowId(end)
    }

    fn next_of_block(&mut self) -> Option<(RowId, VersionRef)> {
        let rows = self.block.as_mut()?;
        match &self.view {
            View::Mvcc(snapshot) => rows.next(self.session, snapshot),
            View::Serializable(reader) => rows.next(self.session, &**reader),
            View::Now => rows.next(self.session, &Now(&PgClock)),
        }
    }
}

impl Blocks for Scan {
    unsafe fn begin_block(scan: pg_sys::TableScanDesc, block: pg_sys::BlockNumber) {
        // SAFETY: the caller's scan.
        let scan = unsafe { scan::state(scan) };
        let rows = scan.rows_of_block(u64::from(block), scan.rows_per_block);
        scan.block = Some(RowScan::over(scan.table, rows));
    }
}

/// `scan_analyze_next_tuple`: the next live row of the block.
///
/// # Safety
/// The slot is of the table's row type, as core's are.
pub unsafe fn next_to_analyze(
    scan: &mut OpenScan,
    _horizon: pg_sys::TransactionId,
    live_rows: Field<'_, f64>,
    _dead_rows: *mut f64,
    slot: TupleSlot<'_>,
) -> bool {
    let scan = scan.state();
    let Some((row, found)) = scan.next_of_block() else {
        scan.block = None;
        slot::clear(slot);
        return false;
    };
    live_rows.set(live_rows.get() + 1.0);
    // SAFETY: the caller's slot.
    unsafe { scan.show(slot, row, found) };
    true
}

/// The state of a sampling method.
#[derive(Clone, Copy)]
pub struct Sampling<'p> {
    state: NonNull<pg_sys::SampleScanState>,
    time: PhantomData<&'p pg_sys::SampleScanState>,
}

impl Argument<*mut pg_sys::SampleScanState> for Sampling<'_> {
    unsafe fn of(passed: *mut pg_sys::SampleScanState) -> Self {
        debug_assert!(!passed.is_null());
        Sampling {
            // SAFETY: a state that core has begun (caller).
            state: unsafe { NonNull::new_unchecked(passed) },
            time: PhantomData,
        }
    }
}

impl Sampling<'_> {
    fn method(self) -> pg_sys::TsmRoutine {
        // SAFETY: a state that core has begun, with its method.
        unsafe { *self.state.as_ref().tsmroutine }
    }

    /// The block that the method chooses of so many; `None`: it leaves that to the table.
    #[allow(ffi_unwind_calls)]
    fn next_block(self, blocks: u64) -> Option<pg_sys::BlockNumber> {
        let next = self.method().NextSampleBlock?;
        let blocks = blocks as pg_sys::BlockNumber;
        // SAFETY: one guarded call of a function of the method, with its own state.
        Some(unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| next(self.state.as_ptr(), blocks)) })
    }

    /// The offset that the method chooses next in a block, up to the last one; invalid: none.
    #[allow(ffi_unwind_calls)]
    fn next_offset(self, block: u64, last: pg_sys::OffsetNumber) -> pg_sys::OffsetNumber {
        let next = self.method().NextSampleTuple;
        let next = next.expect("every sampling method has it");
        let block = block as pg_sys::BlockNumber;
        // SAFETY: one guarded call of a function of the method, with its own state.
        unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| next(self.state.as_ptr(), block, last)) }
    }
}

/// `scan_sample_next_block`: asks the sampling method for a block, or takes the next one.
pub fn next_block(scan: &mut OpenScan, sampling: Sampling<'_>) -> bool {
    // Core continues here for as long as the blocks are empty.
    interrupts::check_for_interrupts();
    let scan = scan.state();
    let blocks = scan.end.0.div_ceil(scan.rows_per_block);
    let block = match sampling.next_block(blocks) {
        Some(next) => (next != pg_sys::InvalidBlockNumber).then_some(u64::from(next)),
        None => Some(scan.sampled.map_or(0, |last| last + 1)),
    };
    scan.sampled = block.filter(|block| *block < blocks);
    scan.sampled.is_some()
}

/// `scan_sample_next_tuple`: asks the sampling method for rows of the block until one is there.
///
/// # Safety
/// The slot is of the table's row type, as core's are.
pub unsafe fn next_of_sample(
    scan: &mut OpenScan,
    sampling: Sampling<'_>,
    slot: TupleSlot<'_>,
) -> bool {
    let (relation, scan) = scan.parts();
    let Some((row, found)) = scan.next_sampled(sampling) else {
        slot::clear(slot);
        return false;
    };
    statistics::row_read(relation);
    // SAFETY: the caller's slot.
    unsafe { scan.show(slot, row, found) };
    true
}

impl Scan {
    /// The next row of the sampled block that the method chooses, and that is there.
    fn next_sampled(&self, sampling: Sampling<'_>) -> Option<(RowId, VersionRef)> {
        let block = self.sampled?;
        let rows = self.rows_of_block(block, self.rows_per_block);
        let last = (rows.end.0 - rows.start.0) as pg_sys::OffsetNumber;
        loop {
            let offset = sampling.next_offset(block, last);
            if offset == pg_sys::InvalidOffsetNumber as pg_sys::OffsetNumber {
                return None;
            }
            let row = RowId(rows.start.0 + u64::from(offset) - 1);
            if row < rows.end
                && let Some(found) = self.view.visible(self.session, self.table, row)
            {
                return Some((row, found));
            }
        }
    }
}
