//! All rows, in the order of their row ids.
//!
//! Rows are looked up in groups, with one pin for each group. What a group found is handed out one
//! by one, unpinned: the scan's registered snapshot keeps every version it sees. It does not keep
//! own states that are rolled back. A scan that may continue after such a rollback looks rows up
//! one by one ([`RowScan::one_by_one`]).

use crate::clock::Snapshot;
use crate::ids::RowId;
use crate::pause::{Point, reach};
use crate::row::{self, VersionRef};
use crate::session::Session;
use crate::table::TableRef;
use std::ops::Range;
use std::sync::atomic::Ordering;

/// Rows of the first group: a LIMIT may want no more.
const FIRST_ROWS: usize = 8;
/// Rows of a group at most.
pub const ROWS_MAX: usize = 64;
/// Row ids examined under one pin at most: an emptied table must not hold reclamation up.
const ROW_IDS_PER_PIN: u64 = 4096;

/// How many rows ahead a version is prefetched.
const AHEAD_VERSION: usize = 12;

/// A scan of a range of row ids.
pub struct RowScan {
    table: TableRef,
    next: u64,
    end: u64,
    found: [Option<(RowId, VersionRef)>; ROWS_MAX],
    /// Of `found`: handed out, and there in all.
    given: usize,
    count: usize,
    /// Rows of the next group, and of any group at most.
    group: usize,
    group_max: usize,
}

impl RowScan {
    /// All rows a snapshot taken before now can see.
    pub fn new(table: TableRef) -> RowScan {
        table.counters().scans.fetch_add(1, Ordering::Relaxed);
        RowScan::over(table, RowId(0)..table.row_ids_end())
    }

    /// The rows of some row ids.
    pub fn over(table: TableRef, row_ids: Range<RowId>) -> RowScan {
        RowScan {
            table,
            next: row_ids.start.0,
            end: row_ids.end.0,
            found: [None; ROWS_MAX],
            given: 0,
            count: 0,
            group: FIRST_ROWS,
            group_max: ROWS_MAX,
        }
    }

    /// The same, but no row is looked up before it is asked for: a state of the transaction's own
    /// may be taken back while the scan continues.
    pub fn one_by_one(self) -> RowScan {
        RowScan {
            group: 1,
            group_max: 1,
            ..self
        }
    }

    /// The next row the snapshot sees. Every call of a scan is given the same snapshot, registered
    /// from the first call to the last.
    #[inline]
    pub fn next<S: Snapshot>(
        &mut self,
        session: &Session,
        snapshot: &S,
    ) -> Option<(RowId, VersionRef)> {
        while self.given == self.count {
            if self.next >= self.end {
                return None;
            }
            self.look(session, snapshot);
            if self.count == 0 {
                snapshot.between_groups();
            }
        }
        let found = self.found[self.given];
        self.given += 1;
        found
    }

    /// The next row, if it was looked up already.
    #[inline]
    pub fn at_hand(&self) -> Option<(RowId, VersionRef)> {
        match self.given < self.count {
            true => self.found.get(self.given).copied().flatten(),
            false => None,
        }
    }

    /// Hands out the row of [`RowScan::at_hand`].
    #[inline]
    pub fn take_at_hand(&mut self) {
        self.given += 1;
    }

    /// The rows that come next, as many as were looked up together; none at the end. As `next`,
    /// which may be called for those that come after.
    #[inline]
    pub fn next_group<S: Snapshot>(
        &mut self,
        session: &Session,
        snapshot: &S,
    ) -> impl ExactSizeIterator<Item = (RowId, VersionRef)> + '_ {
        while self.given == self.count && self.next < self.end {
            // A caller that asks for groups wants all rows.
            self.group = self.group_max;
            self.look(session, snapshot);
            if self.count == 0 {
                snapshot.between_groups();
            }
        }
        let group = std::mem::replace(&mut self.given, self.count)..self.count;
        self.found[group]
            .iter()
            .map(|found| found.expect("a row was found"))
    }

    fn look<S: Snapshot>(&mut self, session: &Session, snapshot: &S) {
        reach(Point::ScanBeforeRows);
        let _pin = session.local.pin();
        self.given = 0;
        self.count = 0;
        let until = self.end.min(self.next + ROW_IDS_PER_PIN);
        while self.next < until && self.count < self.group {
            let anchors = self.table.anchors(RowId(self.next));
            if anchors.is_empty() {
                self.next += 1;
                continue;
            }
            let left = anchors.len().min((until - self.next) as usize);
            for (at, anchor) in anchors[..left].iter().enumerate() {
                if self.count == self.group {
                    break;
                }
                if let Some(ahead) = anchors.get(at + AHEAD_VERSION) {
                    // Anchors lie one behind the other: the processor fetches those by itself.
                    row::prefetch_version(ahead);
                }
                let row_id = RowId(self.next);
                let version = row::visible(anchor, snapshot);
                // Only now: after an error in the clock the same row id is examined again.
                self.next += 1;
                if let Some(version) = version {
                    self.found[self.count] = Some((row_id, version));
                    self.count += 1;
                }
            }
        }
        self.group = (self.group * 4).min(self.group_max);
        if self.count > 0 {
            let rows = &self.table.counters().rows_scanned;
            rows.fetch_add(self.count as u64, Ordering::Relaxed);
        }
    }
}
