//! Scans of all rows under SnapshotDirty. Logical replication finds the rows of a table without a
//! key by them.
//!
//! Core compares one state after the other. It reads in its snapshot which transaction to wait for
//! before it believes a state. A row that another transaction changes has two states or more, as on
//! heap: the new ones, and the one that they replace. All states of a row are copied at one moment.
//! Otherwise a state that a rollback brings back would be missed.
use super::fetch::HandedCopy;
use super::scan::{ROWS_PER_LOOK, Scan, clear};
use super::slot::{self, Shown};
use crate::errors::or_raise;
use crate::transaction::clock::PgClock;
use mot_engine::{Slot, VersionRef, Xid};
use pgrx::pg_sys;

/// The position of such a scan.
#[derive(Default)]
pub struct UnfinishedRows {
    /// The row whose states come after those of `copies`.
    next: Slot,
    /// States of the last row that were not given yet; the next one is the last.
    copies: Vec<HandedCopy>,
    /// Room for a row's states while they are gathered.
    states: Vec<(VersionRef, Option<Xid>)>,
}

impl UnfinishedRows {
    /// Begins anew.
    pub fn restart(&mut self) {
        self.next = Slot(0);
        for copy in self.copies.drain(..) {
            // SAFETY: a copy of the scan's own, which no other code knows.
            unsafe { pg_sys::heap_freetuple(copy.tuple) };
        }
    }

    /// The next state of the rows before `end`.
    fn next(&mut self, scan: &Scan) -> Option<HandedCopy> {
        while self.copies.is_empty() {
            if self.next >= scan.end {
                return None;
            }
            let row = self.next;
            self.next = Slot(row.0 + 1);
            if row.0.is_multiple_of(ROWS_PER_LOOK) {
                pgrx::check_for_interrupts!();
            }
            let (copies, place) = (&mut self.copies, (scan.table, row));
            let copied = |states: &[(VersionRef, Option<Xid>)]| {
                for (version, by) in states {
                    let shown = Shown {
                        relation: scan.relation,
                        table: scan.table,
                        row,
                        version: *version,
                    };
                    // SAFETY: the engine keeps the states while it calls this.
                    copies.push(unsafe { HandedCopy::new(shown, *by) });
                }
            };
            // SAFETY: the scan's own memory, where copies stay until they are freed.
            let memory = unsafe { pg_sys::MemoryContextSwitchTo(scan.memory()) };
            let gathered =
                scan.session
                    .unfinished_and_current(&PgClock, place, &mut self.states, copied);
            // SAFETY: the context that was current.
            unsafe { pg_sys::MemoryContextSwitchTo(memory) };
            or_raise(gathered);
        }
        self.copies.pop()
    }
}

/// Shows the next state, and says in the snapshot which transaction to wait for.
///
/// # Safety
/// A scan under SnapshotDirty positioned at these rows, its snapshot, and a slot of its row type.
pub unsafe fn next_slot(
    scan: &Scan,
    rows: &mut UnfinishedRows,
    snapshot: pg_sys::Snapshot,
    slot: *mut pg_sys::TupleTableSlot,
) -> bool {
    // SAFETY: the caller's slot and snapshot.
    unsafe {
        let Some(copy) = rows.next(scan) else {
            clear(slot);
            return false;
        };
        copy.name_in(snapshot);
        slot::show_tuple(slot, copy.tuple);
        pg_sys::heap_freetuple(copy.tuple);
        true
    }
}
