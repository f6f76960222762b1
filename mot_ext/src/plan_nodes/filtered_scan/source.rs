//! The scan's rows where they lie, for the node above that adds them up.
use super::{FilteredScan, count_read, show};
use crate::executor::aggregate::RowSource;
use crate::executor::filter::{Filter, Group};
use crate::pg::node::Node;
use crate::table_am::scan;
use mot_engine::{RowId, VersionRef};
use pgrx::pg_sys;

impl RowSource for FilteredScan {
    fn fill(&mut self, node: Node<'_, pg_sys::ScanState>, group: &mut Group) -> bool {
        group.clear();
        self.begin(node);
        // SAFETY: a table of ours, whose scan has begun, and is used here alone.
        let rows = unsafe { scan::state(self.rows) };
        let is_more = match rows.gives_groups() {
            true => rows.next_group(|row, version| group.push(row, version)),
            false => loop {
                match rows.next() {
                    Some((row, version)) => group.push(row, version),
                    None => break false,
                }
                if group.is_full() {
                    break true;
                }
            },
        };
        count_read(node, group.length() as u64);
        is_more
    }

    unsafe fn show(&mut self, node: Node<'_, pg_sys::ScanState>, row: RowId, version: VersionRef) {
        // SAFETY: as in `fill`, which has found the row.
        show(node, unsafe { scan::state(self.rows) }, (row, version));
    }

    fn filter(&self) -> Option<&Filter> {
        self.filter.as_ref()
    }
}
