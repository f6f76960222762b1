//! Rows looked up under one pin, to be handed out one by one.
//!
//! They are unpinned then: the scan's registered snapshot keeps every version it sees.

use super::pending::{AHEAD_VERSION, PendingRow};
use crate::ids::RowId;
use crate::row::VersionRef;

/// Rows looked up at once: not more than were asked for anyway.
const ROWS_MAX: usize = AHEAD_VERSION;
/// A scan that continues looks so many times more up the next time. The first time it is one: more
/// may not be wanted.
const GROWTH: usize = 4;

/// Rows found.
#[derive(Default)]
pub(super) struct Found {
    rows: [Option<(RowId, VersionRef)>; ROWS_MAX],
    /// The numbers of their entries' keys.
    keys: [u32; ROWS_MAX],
    /// Of `rows`: handed out, and there in all.
    given: usize,
    count: usize,
    /// Rows looked up the last time; 0 before the first.
    group: usize,
}

impl Found {
    /// A scan begins.
    #[inline]
    pub(super) fn clear(&mut self) {
        (self.given, self.count, self.group) = (0, 0, 0);
    }

    /// All were handed out; how many are wanted now.
    #[inline]
    pub(super) fn begin(&mut self, may_be_several: bool) -> usize {
        debug_assert!(self.is_empty());
        (self.given, self.count) = (0, 0);
        if may_be_several {
            self.group = (self.group * GROWTH).clamp(1, ROWS_MAX);
            self.group
        } else {
            1
        }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.given == self.count
    }

    /// Adds a row, of which no more than were wanted.
    #[inline]
    pub(super) fn push(&mut self, pending: &PendingRow, version: VersionRef) {
        self.rows[self.count] = Some((pending.row_id, version));
        self.keys[self.count] = pending.key;
        self.count += 1;
    }

    /// The next one to hand out.
    #[inline]
    pub(super) fn next(&mut self) -> Option<(RowId, VersionRef)> {
        if self.is_empty() {
            return None;
        }
        let found = self.rows[self.given];
        self.given += 1;
        found
    }

    /// The number of the key of the entry that led to what was handed out last.
    #[inline]
    pub(super) fn last_key(&self) -> u32 {
        debug_assert!(self.given > 0);
        self.keys[self.given - 1]
    }
}
