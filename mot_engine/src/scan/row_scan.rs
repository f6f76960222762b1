//! All rows, in slot order.

use crate::clock::Snapshot;
use crate::ids::Slot;
use crate::row::{self, VersionRef};
use crate::session::Session;
use crate::table::TableRef;
use std::ops::Range;
use std::sync::atomic::Ordering;

/// How many rows ahead a version is asked for.
const AHEAD_VERSION: u64 = 6;

/// A scan of a range of slots.
pub struct RowScan {
    table: TableRef,
    next: u64,
    end: u64,
}

impl RowScan {
    /// All rows a snapshot taken before now can see.
    pub fn new(table: TableRef) -> RowScan {
        table.counters().scans.fetch_add(1, Ordering::Relaxed);
        RowScan::over(table, Slot(0)..table.slots_end())
    }

    /// The rows of some slots.
    pub fn over(table: TableRef, slots: Range<Slot>) -> RowScan {
        RowScan {
            table,
            next: slots.start.0,
            end: slots.end.0,
        }
    }

    /// The next row the snapshot sees.
    pub fn next<S: Snapshot>(
        &mut self,
        session: &Session,
        snapshot: &S,
    ) -> Option<(Slot, VersionRef)> {
        let _pin = session.local.pin();
        while self.next < self.end {
            let slot = Slot(self.next);
            self.next += 1;
            if let Some(ahead) = self.table.anchor(Slot(slot.0 + AHEAD_VERSION)) {
                // Anchors lie one behind the other: the processor fetches those by itself.
                row::prefetch_version(ahead);
            }
            let Some(anchor) = self.table.anchor(slot) else {
                continue;
            };
            if let Some(version) = row::visible(anchor, snapshot) {
                return Some((slot, version));
            }
        }
        None
    }
}
