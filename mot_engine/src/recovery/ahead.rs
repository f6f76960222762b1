//! Prefetches the rows of a record before replay comes to them.
//!
//! A row has two cache misses that depend on one another, anchor and newest version, and the log
//! names rows in no order that a processor could guess. So a second reader goes through the record
//! some changes in front. It prefetches anchors, and the versions of nearer rows.
//!
//! Prefetches are hints: no version is followed, and a byte that the second reader does not
//! understand ends it. Records of a row or two are not worth a second reader.

use crate::ids::{Slot, TableId};
use crate::log::{RowsAhead, RowsReader};
use crate::row::{Anchor, prefetch_anchor, prefetch_version};

/// Changes between the one that is applied and the one whose anchor is asked for.
const FAR: usize = 8;
/// Changes between the one that is applied and the one whose version is asked for.
const NEAR: usize = 4;

/// Shorter records are not gone through twice. A change of a few columns takes 20 to 40 bytes.
const RECORD_BYTES_WORTH_ASKING: usize = 96;

/// See the module.
pub(super) struct Ahead<'a> {
    rows: Option<RowsAhead<'a>>,
    /// Anchors of the next changes, in turns; none where the row is somebody else's, or new to its
    /// table.
    coming: [Option<&'static Anchor>; FAR],
    at: usize,
}

impl<'a> Ahead<'a> {
    /// For a reader that stands at the begin of its record, which has so many bytes. `find` knows
    /// the anchors of rows that are wanted.
    pub(super) fn new(
        rows: &RowsReader<'a>,
        record_bytes: usize,
        find: impl Fn(TableId, Slot) -> Option<&'static Anchor>,
    ) -> Ahead<'a> {
        let mut ahead = Ahead {
            rows: (record_bytes >= RECORD_BYTES_WORTH_ASKING).then(|| rows.ahead()),
            coming: [None; FAR],
            at: 0,
        };
        for place in 0..FAR {
            ahead.coming[place] = ahead.ask(&find);
        }
        for near in ahead.coming.iter().take(NEAR).flatten() {
            prefetch_version(near);
        }
        ahead
    }

    /// The reader is about to come to its next change.
    #[inline]
    pub(super) fn step(&mut self, find: impl Fn(TableId, Slot) -> Option<&'static Anchor>) {
        self.coming[self.at % FAR] = self.ask(&find);
        if let Some(near) = self.coming[(self.at + NEAR) % FAR] {
            prefetch_version(near);
        }
        self.at += 1;
    }

    #[inline]
    fn ask(
        &mut self,
        find: impl Fn(TableId, Slot) -> Option<&'static Anchor>,
    ) -> Option<&'static Anchor> {
        let (table, slot) = self.rows.as_mut()?.next()?;
        let anchor = find(table, slot)?;
        prefetch_anchor(anchor);
        Some(anchor)
    }
}
