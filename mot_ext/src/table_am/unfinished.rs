//! Scans of all rows under SnapshotDirty. Logical replication finds the rows of a table without a
//! key by them.
//!
//! Core compares one state after the other. It reads in its snapshot which transaction to wait for
//! before it believes a state. A row that another transaction changes has two states or more, as on
//! heap: the new ones, and the one that they replace. All states of a row are copied at one moment.
//! Otherwise a state that a rollback brings back would be missed.
use super::fetch::HandedCopy;
use super::scan::{ROWS_PER_LOOK, Scan};
use super::slot::{self, Shown};
use crate::errors::or_raise;
use crate::pg::memory::within;
use crate::pg::snapshot::Snapshot;
use crate::pg::tuple_slot::TupleSlot;
use crate::transaction::clock::PgClock;
use mot_engine::{RowId, VersionRef, Xid};

/// The position of such a scan.
#[derive(Default)]
pub struct UnfinishedRows {
    /// The row whose states come after those of `copies`.
    next: RowId,
    /// States of the last row that were not given yet; the next one is the last.
    copies: Vec<HandedCopy>,
    /// Room for a row's states while they are gathered.
    states: Vec<(VersionRef, Option<Xid>)>,
}

impl UnfinishedRows {
    /// Begins anew.
    pub fn restart(&mut self) {
        self.next = RowId(0);
        for copy in self.copies.drain(..) {
            copy.tuple.free();
        }
    }

    /// The next state of the rows before `end`.
    fn next(&mut self, scan: &Scan) -> Option<HandedCopy> {
        while self.copies.is_empty() {
            if self.next >= scan.end {
                return None;
            }
            let row = self.next;
            self.next = RowId(row.0 + 1);
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
                    // SAFETY: the scan's memory, which lives as long as the copies.
                    copies.push(unsafe { HandedCopy::new(shown, *by) });
                }
            };
            let states = &mut self.states;
            let gather = || {
                scan.session
                    .unfinished_and_current(&PgClock, place, states, copied)
            };
            // SAFETY: the scan's own memory, where copies stay until they are freed.
            let gathered = unsafe { within(scan.memory(), gather) };
            or_raise(gathered);
        }
        self.copies.pop()
    }
}

/// Shows the next state, and says in the snapshot which transaction to wait for. Of a scan under
/// SnapshotDirty that is positioned at these rows.
///
/// # Safety
/// The slot is of the table's row type.
pub unsafe fn next_slot(
    scan: &Scan,
    rows: &mut UnfinishedRows,
    snapshot: Snapshot<'_>,
    slot: TupleSlot<'_>,
) -> bool {
    let Some(copy) = rows.next(scan) else {
        slot::clear(slot);
        return false;
    };
    // SAFETY: the caller's slot.
    unsafe { copy.show(snapshot, slot) };
    copy.tuple.free();
    true
}
