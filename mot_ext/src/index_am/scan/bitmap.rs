//! Bitmaps: the rows that have an entry in the scan's ranges.
use super::{ScannedRow, Seen, State, look_for_labels, state};
use crate::errors::or_raise;
use crate::pg;
use crate::pg::relation::Relation;
use crate::pg::version::index_am as version;
use crate::table_am;
use crate::table_am::view::View;
use mot_engine::{Direction, Slot};
use pgrx::pg_sys;
use std::ffi::c_int;

/// Rows that a bitmap is given at a time, where each is examined.
const ROWS_TOGETHER: usize = 256;

/// `amgetbitmap`: gives a bitmap all rows, and returns their number. The table's callback looks up
/// the versions, and core tests the conditions on them. So it is enough that a row has an entry.
pub unsafe fn all(scan: pg_sys::IndexScanDesc, bitmap: *mut pg_sys::TIDBitmap) -> i64 {
    // SAFETY: as core calls it, with a snapshot that stays registered until the scan ends.
    unsafe {
        let state = state(scan);
        state.is_for_bitmap = true;
        let opened = (*scan).indexRelation;
        if state.view.is_none() {
            let oid = (*(*opened).rd_index).indrelid;
            state.view = Some(Seen::By(View::new(oid, state.table, (*scan).xs_snapshot)));
        }
        if std::mem::take(&mut state.wants_labels) {
            look_for_labels(scan);
        }
        table_am::scan_begins(Relation::enter(opened));
        let mut rows = Vec::new();
        let mut ids = Vec::new();
        let mut count = 0;
        while state.next_rows(&mut rows) {
            pg::interrupts::check_for_interrupts();
            ids.clear();
            ids.extend(rows.drain(..).map(table_am::bitmap::id_in_bitmap));
            pg_sys::tbm_add_tuples(bitmap, ids.as_mut_ptr(), ids.len() as c_int, true);
            count += ids.len() as i64;
        }
        version::count_searches(scan, std::mem::take(&mut state.searches));
        count
    }
}

impl State {
    /// Adds some rows for a bitmap; false: there are no more.
    fn next_rows(&mut self, rows: &mut Vec<Slot>) -> bool {
        if self.sought.is_empty {
            return false;
        }
        let snapshot = match &self.view {
            Some(Seen::By(View::Mvcc(snapshot))) => *snapshot,
            // What is read and passed over is reported row by row.
            _ => {
                while rows.len() < ROWS_TOGETHER {
                    // SAFETY: under a snapshot that is no SnapshotDirty nothing is copied, and no
                    // table needed.
                    let found = unsafe { self.next(std::ptr::null_mut(), Direction::Forward) };
                    let Some(ScannedRow::Kept(row, _)) = found else {
                        break;
                    };
                    rows.push(row);
                }
                return !rows.is_empty();
            }
        };
        loop {
            if self.is_in_range {
                if or_raise(self.scan.next_slots(self.session, rows)) {
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
