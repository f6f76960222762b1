//! Bitmap scans: rows that indexes have found, each once, in the order of their row ids.
//!
//! A bitmap of core's holds tuple ids of pages of at most 291 rows, and no version ordinals. So it
//! gets ids of its own: a page has as many row ids as [`ROWS_PER_PAGE`], and the version that the
//! snapshot sees is looked up when the page is read. Core tests the conditions again on each row.
//! That is what a page needs that the bitmap, short of memory, has kept as a whole.
//!
//! Until 17 core asks the kernel to read pages of the table's file ahead. The file is empty, and
//! one page beyond its first gigabyte is an error. So that is turned off when a query has begun.
//! The plan states of a re-evaluation (EvalPlanQual) begin without a query: a subquery in it can
//! still fail by a bitmap of a table of more than 33 million row ids.
use super::scan::{self, OpenScan, Scan};
use super::statistics;
use crate::pg::argument::Argument;
use crate::pg::tuple_slot::TupleSlot;
use crate::pg::version::bitmap::{OFFSETS_MAX, Page, Pages};
use mot_engine::{RowId, VersionRef};
use pgrx::pg_sys;

/// Row ids of a page: below core's own limit for a bitmap.
pub const ROWS_PER_PAGE: u64 = 256;
const _: () = assert!(ROWS_PER_PAGE <= OFFSETS_MAX as u64);
/// All row ids have a page.
const _: () =
    assert!(crate::rows::tid::ROWS_MAX / ROWS_PER_PAGE < pg_sys::InvalidBlockNumber as u64);

/// A row's id in a bitmap.
pub fn id_in_bitmap(row: RowId) -> pg_sys::ItemPointerData {
    let mut id = pg_sys::ItemPointerData::default();
    let offset = (row.0 % ROWS_PER_PAGE) as pg_sys::OffsetNumber + 1;
    pgrx::itemptr::item_pointer_set_all(&mut id, (row.0 / ROWS_PER_PAGE) as u32, offset);
    id
}

/// Where core's bitmap scans read ahead what is not there.
pub mod reading_ahead {
    use crate::pg::local::ProcessLocal;
    use crate::pg::version::bitmap::{self, READS_AHEAD};
    use crate::storage;
    use pgrx::pg_sys;
    use std::cell::Cell;

    static MAY_HAVE: ProcessLocal<Cell<bool>> = ProcessLocal(Cell::new(false));

    /// An index scan of ours has begun, perhaps for a bitmap.
    #[inline]
    pub fn index_scan_begins() {
        if READS_AHEAD {
            MAY_HAVE.0.set(true);
        }
    }

    /// Core's executor begins to start a query; the start of another one may be under way. Returns
    /// what is known of that.
    #[inline]
    pub fn starts() -> bool {
        READS_AHEAD && MAY_HAVE.0.replace(false)
    }

    /// Core's executor has started a query: a plain frame that reads the mark first.
    ///
    /// # Safety
    /// A started query, of which nothing has run, and what `starts` has returned.
    #[inline]
    pub unsafe fn started(query: *mut pg_sys::QueryDesc, outer: bool) {
        if READS_AHEAD && MAY_HAVE.0.replace(outer) {
            // SAFETY: the caller's query.
            unsafe { turn_off(query) };
        }
    }

    #[pgrx::pg_guard]
    unsafe extern "C-unwind" fn turn_off(query: *mut pg_sys::QueryDesc) {
        // SAFETY: the caller's query; relations of plan states are open.
        unsafe { bitmap::read_nothing_ahead(query, storage::is_table) };
    }
}

/// The rest of the page that a scan reads.
#[derive(Default)]
pub struct Rest {
    first: u64,
    /// The rows' offsets, from 1 on. Those of whole pages are all there are.
    offsets: Vec<pg_sys::OffsetNumber>,
    at: usize,
}

impl Rest {
    fn begin(&mut self, page: &Page<'_>) {
        self.first = u64::from(page.number) * ROWS_PER_PAGE;
        self.at = 0;
        self.offsets.clear();
        match page.offsets {
            Some(offsets) => self.offsets.extend_from_slice(offsets),
            None => self.offsets.extend(1..=ROWS_PER_PAGE as u16),
        }
    }

    fn next(&mut self) -> Option<RowId> {
        let offset = *self.offsets.get(self.at)?;
        self.at += 1;
        debug_assert!((1..=ROWS_PER_PAGE as u16).contains(&offset));
        Some(RowId(self.first + u64::from(offset) - 1))
    }
}

impl Scan {
    /// The next row of the page that the snapshot sees.
    fn next_of_page(&mut self) -> Option<(RowId, VersionRef)> {
        while let Some(row) = self.rest_of_page.next() {
            if row < self.end
                && let Some(version) = self.view.visible(self.session, self.table, row)
            {
                return Some((row, version));
            }
        }
        None
    }
}

impl Pages for Scan {
    unsafe fn begin_page(scan: pg_sys::TableScanDesc, page: &Page<'_>) {
        // SAFETY: the caller's scan.
        unsafe { scan::state(scan).rest_of_page.begin(page) }
    }

    #[inline]
    unsafe fn next_of_page(scan: pg_sys::TableScanDesc, slot: *mut pg_sys::TupleTableSlot) -> bool {
        // SAFETY: the caller's scan and slot.
        let (scan, slot) = unsafe { (<&mut OpenScan>::of(scan), TupleSlot::of(slot)) };
        let (relation, scan) = scan.parts();
        let Some((row, version)) = scan.next_of_page() else {
            return false;
        };
        statistics::row_fetched(relation);
        // SAFETY: the caller's slot, which is of the table's row type.
        unsafe { scan.show(slot, row, version) };
        true
    }
}
