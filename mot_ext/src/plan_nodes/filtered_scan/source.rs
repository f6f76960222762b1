//! The scan's rows where they lie, for the node above that adds them up.
use super::FilteredScan;
use crate::executor::aggregate::RowSource;
use crate::executor::filter::{Filter, Group};
use crate::pg::relation::Relation;
use crate::pg::tuple_slot::TupleSlot;
use crate::table_am::{self, scan};
use mot_engine::{Slot, VersionRef};
use pgrx::pg_sys;

impl RowSource for FilteredScan {
    unsafe fn fill(&mut self, group: &mut Group, _context: *mut pg_sys::ExprContext) -> bool {
        group.clear();
        // SAFETY: a node that runs; its scan's snapshot keeps the rows.
        let is_more = unsafe {
            self.begin();
            let rows = scan::state(self.rows);
            match rows.gives_groups() {
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
            }
        };
        // SAFETY: the node's open relation.
        unsafe {
            let (relation, read) = ((*self.node).ss_currentRelation, group.length() as i64);
            table_am::rows_read(Relation::enter(relation), read);
        }
        is_more
    }

    unsafe fn show(&mut self, slot: *mut pg_sys::TupleTableSlot, row: Slot, version: VersionRef) {
        // SAFETY: the caller's; the scan has begun.
        unsafe { scan::state(self.rows).show(TupleSlot::enter(slot), row, version) }
    }

    fn filter(&self) -> Option<&Filter> {
        self.filter.as_ref()
    }
}
