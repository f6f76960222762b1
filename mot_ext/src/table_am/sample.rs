//! TABLESAMPLE and ANALYZE: a table as blocks of as many row ids each.
use super::scan::{self, Scan};
use super::view::View;
use crate::pg::interrupts;
use crate::pg::version::table_am::Blocks;
use crate::transaction::clock::PgClock;
use mot_engine::{Now, RowScan, Slot, TableRef, VersionRef};
use pgrx::pg_sys;

/// Bytes of a heap's page that rows can have, line pointers included.
const PAGE_BYTES: u64 = pg_sys::BLCKSZ as u64 - 24;

/// Bytes of a row's line pointer in a heap's page.
const LINE_POINTER_BYTES: u64 = 4;

/// Rows of a block of TABLESAMPLE: as many as a heap's page has of such rows, so that SYSTEM takes
/// samples as coarse as heap's. The number changes only with the table's average row.
///
/// # Safety
/// An open table, with its options.
pub unsafe fn rows_per_sampled_block(relation: pg_sys::Relation, table: TableRef) -> u64 {
    // SAFETY: the caller's table, whose options are core's for tables.
    let filled = unsafe {
        let options = (*relation).rd_options.cast::<pg_sys::StdRdOptions>();
        match options.is_null() {
            true => u64::from(pg_sys::HEAP_DEFAULT_FILLFACTOR),
            false => (*options).fillfactor as u64,
        }
    };
    let kept_free = u64::from(pg_sys::BLCKSZ) * (100 - filled) / 100;
    let alignment = pg_sys::MAXIMUM_ALIGNOF as u64;
    let row_bytes = super::relation::row_bytes(table).next_multiple_of(alignment);
    let rows = PAGE_BYTES.saturating_sub(kept_free) / (row_bytes + LINE_POINTER_BYTES);
    rows.max(1)
}

impl Scan {
    /// The row ids of a block of so many; none behind the last.
    fn rows_of_block(&self, block: u64, rows: u64) -> std::ops::Range<Slot> {
        let first = (block * rows).min(self.end.0);
        let end = (first + rows).min(self.end.0);
        Slot(first)..Slot(end)
    }

    fn next_of_block(&mut self) -> Option<(Slot, VersionRef)> {
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
pub unsafe fn next_to_analyze(
    scan: pg_sys::TableScanDesc,
    _horizon: pg_sys::TransactionId,
    live_rows: *mut f64,
    _dead_rows: *mut f64,
    slot: *mut pg_sys::TupleTableSlot,
) -> bool {
    // SAFETY: as core calls it.
    unsafe {
        let scan = scan::state(scan);
        match scan.next_of_block() {
            Some((row, found)) => {
                *live_rows += 1.0;
                scan.show(slot, row, found);
                true
            }
            None => {
                scan.block = None;
                scan::clear(slot);
                false
            }
        }
    }
}

/// `scan_sample_next_block`: asks the sampling method for a block, or takes the next one.
pub unsafe fn next_block(
    scan: pg_sys::TableScanDesc,
    sampling: *mut pg_sys::SampleScanState,
) -> bool {
    // SAFETY: as core calls it; the method's functions may raise.
    unsafe {
        // Core continues here for as long as the blocks are empty.
        interrupts::check_for_interrupts();
        let scan = scan::state(scan);
        let blocks = scan.end.0.div_ceil(scan.rows_per_block);
        let block = match (*(*sampling).tsmroutine).NextSampleBlock {
            Some(next) => {
                let next = pg_sys::ffi::pg_guard_ffi_boundary(|| {
                    #[allow(ffi_unwind_calls)]
                    next(sampling, blocks as pg_sys::BlockNumber)
                });
                (next != pg_sys::InvalidBlockNumber).then_some(u64::from(next))
            }
            None => Some(scan.sampled.map_or(0, |last| last + 1)),
        };
        scan.sampled = block.filter(|block| *block < blocks);
        scan.sampled.is_some()
    }
}

/// `scan_sample_next_tuple`: asks the sampling method for rows of the block until one is there.
pub unsafe fn next_of_sample(
    scan: pg_sys::TableScanDesc,
    sampling: *mut pg_sys::SampleScanState,
    slot: *mut pg_sys::TupleTableSlot,
) -> bool {
    // SAFETY: as core calls it; the method's functions may raise.
    unsafe {
        let relation = (*scan).rs_rd;
        let scan = scan::state(scan);
        let Some(block) = scan.sampled else {
            scan::clear(slot);
            return false;
        };
        let rows = scan.rows_of_block(block, scan.rows_per_block);
        let last = (rows.end.0 - rows.start.0) as pg_sys::OffsetNumber;
        let next = (*(*sampling).tsmroutine)
            .NextSampleTuple
            .expect("every sampling method has it");
        loop {
            let offset = pg_sys::ffi::pg_guard_ffi_boundary(|| {
                #[allow(ffi_unwind_calls)]
                next(sampling, block as pg_sys::BlockNumber, last)
            });
            if offset == pg_sys::InvalidOffsetNumber as pg_sys::OffsetNumber {
                scan::clear(slot);
                return false;
            }
            let row = Slot(rows.start.0 + u64::from(offset) - 1);
            let found = match row < rows.end {
                true => scan.view.visible(scan.session, scan.table, row),
                false => None,
            };
            if let Some(found) = found {
                super::statistics::row_read(relation);
                scan.show(slot, row, found);
                return true;
            }
        }
    }
}
