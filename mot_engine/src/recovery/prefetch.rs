//! Prefetches the rows of a record before replay reaches them.
//!
//! A row has two cache misses that depend on one another, anchor and newest version, and the log
//! names rows in no order that a processor could guess. So a second reader goes through the record
//! some changes in front. It prefetches anchors, and the versions of nearer rows.
//!
//! Prefetches are hints: no version is followed, and a byte that the second reader does not
//! understand ends it. Records of a row or two are not worth a second reader.

use crate::ids::{RowId, TableId};
use crate::log::{RowIds, RowsReader};
use crate::row::{Anchor, prefetch_anchor, prefetch_version};

/// Changes between the one that is applied and the one whose anchor is prefetched.
const FAR: usize = 8;
/// Changes between the one that is applied and the one whose version is prefetched.
const NEAR: usize = 4;

/// Shorter records are not gone through twice. A change of a few columns takes 20 to 40 bytes.
const RECORD_BYTES_WORTH_PREFETCHING: usize = 96;

/// See the module.
pub(super) struct RecordPrefetcher<'a> {
    rows: Option<RowIds<'a>>,
    /// Anchors of the next changes, in turns; none where the row is another worker's, or new to its
    /// table.
    pending: [Option<&'static Anchor>; FAR],
    at: usize,
}

impl<'a> RecordPrefetcher<'a> {
    /// For a reader at the begin of its record, which has so many bytes. `find` knows
    /// the anchors of rows that are wanted.
    pub(super) fn new(
        rows: &RowsReader<'a>,
        record_bytes: usize,
        find: impl Fn(TableId, RowId) -> Option<&'static Anchor>,
    ) -> RecordPrefetcher<'a> {
        let mut prefetcher = RecordPrefetcher {
            rows: (record_bytes >= RECORD_BYTES_WORTH_PREFETCHING).then(|| rows.row_ids()),
            pending: [None; FAR],
            at: 0,
        };
        for place in 0..FAR {
            prefetcher.pending[place] = prefetcher.prefetch_next(&find);
        }
        for near in prefetcher.pending.iter().take(NEAR).flatten() {
            prefetch_version(near);
        }
        prefetcher
    }

    /// The reader is about to reach its next change.
    #[inline]
    pub(super) fn step(&mut self, find: impl Fn(TableId, RowId) -> Option<&'static Anchor>) {
        self.pending[self.at % FAR] = self.prefetch_next(&find);
        if let Some(near) = self.pending[(self.at + NEAR) % FAR] {
            prefetch_version(near);
        }
        self.at += 1;
    }

    #[inline]
    fn prefetch_next(
        &mut self,
        find: impl Fn(TableId, RowId) -> Option<&'static Anchor>,
    ) -> Option<&'static Anchor> {
        let (table, row_id) = self.rows.as_mut()?.next()?;
        let anchor = find(table, row_id)?;
        prefetch_anchor(anchor);
        Some(anchor)
    }
}
