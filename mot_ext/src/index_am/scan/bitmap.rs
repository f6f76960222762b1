//! Bitmaps: the rows that have an entry in the scan's ranges.
use super::{ScannedRow, Seen, State, look_for_labels};
use crate::errors::or_raise;
use crate::pg;
use crate::pg::index_scan::IndexScan as ScanOfCore;
use crate::pg::node::Node;
use crate::pg::version::index_am as version;
use crate::table_am;
use crate::table_am::view::View;
use mot_engine::{Direction, RowId};
use pgrx::pg_sys;
use std::ffi::c_int;

/// Rows that a bitmap is given at a time, where each is examined.
const ROWS_TOGETHER: usize = 256;

/// `amgetbitmap`: gives a bitmap all rows, and returns their number. The table's callback looks up
/// the versions, and core tests the conditions on them. So it is enough that a row has an entry.
pub fn all(scan: ScanOfCore<'_>, bitmap: Node<'_, pg_sys::TIDBitmap>) -> i64 {
    // SAFETY: an index of ours, whose scan's state is used here alone.
    let state = unsafe { scan.state::<State>() };
    let state = state.expect("a scan begins with its conditions");
    state.is_for_bitmap = true;
    if state.view.is_none() {
        // SAFETY: the snapshot stays registered until the scan ends.
        let snapshot = unsafe { scan.snapshot().unbound() };
        let view = View::new(state.table_oid, state.table, snapshot);
        state.view = Some(Seen::By(view));
    }
    if std::mem::take(&mut state.wants_labels) {
        look_for_labels(scan, state);
    }
    table_am::scan_begins(scan.index());
    let mut rows = Vec::new();
    let mut ids = Vec::new();
    let mut count = 0;
    while state.next_rows(&mut rows) {
        pg::interrupts::check_for_interrupts();
        ids.clear();
        ids.extend(rows.drain(..).map(table_am::bitmap::id_in_bitmap));
        let (first, length) = (ids.as_mut_ptr(), ids.len() as c_int);
        // SAFETY: core's bitmap, which takes so many ids over.
        unsafe { pg_sys::tbm_add_tuples(bitmap.as_ptr(), first, length, true) };
        count += ids.len() as i64;
    }
    version::count_searches(scan, std::mem::take(&mut state.searches));
    count
}

impl State {
    /// Adds some rows for a bitmap; false: there are no more.
    fn next_rows(&mut self, rows: &mut Vec<RowId>) -> bool {
        if self.sought.is_empty {
            return false;
        }
        let snapshot = match &self.view {
            Some(Seen::By(View::Mvcc(snapshot))) => *snapshot,
            // What is read and passed over is reported row by row.
            _ => {
                while rows.len() < ROWS_TOGETHER {
                    // Under a snapshot that is no SnapshotDirty nothing is copied.
                    let Some(ScannedRow::Kept(row, _)) = self.next(Direction::Forward) else {
                        break;
                    };
                    rows.push(row);
                }
                return !rows.is_empty();
            }
        };
        loop {
            if self.is_in_range {
                if or_raise(self.scan.next_row_ids(self.session, rows)) {
                    self.sought.bounds.found();
                    return true;
                }
                self.is_in_range = false;
            }
            self.make_ranges();
            if !self.begin_next(&snapshot) {
                return false;
            }
        }
    }
}
