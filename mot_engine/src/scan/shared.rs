//! All rows, by several processes that share them out.
//!
//! Lies in memory that all of them see. Each takes the next part of the row ids, scans it as if
//! there were no other, and comes back. What is there when the scan begins is all that its snapshot
//! can see: row ids that come later do not count.

use super::row_scan::RowScan;
use crate::ids::RowId;
use crate::table::TableRef;
use std::sync::atomic::{AtomicU64, Ordering};

/// Row ids that one takes at a time: some hundred microseconds' work, so that all end at about the
/// same moment.
const ROW_IDS_AT_ONCE: u64 = 4096;

/// How far a shared scan is.
#[repr(C)]
#[derive(Default)]
pub struct SharedRowScan {
    next: AtomicU64,
    end: AtomicU64,
}

impl SharedRowScan {
    /// Begins a scan of all rows that a snapshot taken before now can see. Nothing else uses it
    /// meanwhile, and one that joins later gets it from the caller of this.
    pub fn begin(&self, table: TableRef) {
        table.counters().scans.fetch_add(1, Ordering::Relaxed);
        self.next.store(0, Ordering::Relaxed);
        self.end.store(table.row_ids_end().0, Ordering::Relaxed);
    }

    /// A part that no other process has; `None` when all are taken.
    pub fn take(&self, table: TableRef) -> Option<RowScan> {
        let start = self.next.fetch_add(ROW_IDS_AT_ONCE, Ordering::Relaxed);
        let end = self.end.load(Ordering::Relaxed);
        let row_ids = RowId(start)..RowId(end.min(start.saturating_add(ROW_IDS_AT_ONCE)));
        (start < end).then(|| RowScan::over(table, row_ids))
    }
}
