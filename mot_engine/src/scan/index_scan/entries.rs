//! Entries that a scan has read, and their keys.

use super::super::points::Points;
use mot_index::Batch;

/// What was read of the index last, and where reading continues.
pub(super) struct Entries {
    pub(super) batch: Batch,
    /// Where the next look into the tree begins, if that is at a key; the only key of a point.
    pub(super) begin_key: Vec<u8>,
    pub(super) is_point: bool,
    /// Whole keys to look up, instead of a range.
    pub(super) points: Points,
}

impl Entries {
    /// Nothing read, with room for so many entries.
    pub(super) fn with_capacity(entries: usize) -> Entries {
        Entries {
            batch: Batch::with_capacity(entries),
            begin_key: Vec::new(),
            is_point: false,
            points: Points::default(),
        }
    }

    /// The key of an entry by its number.
    pub(super) fn key(&self, number: u32) -> &[u8] {
        if self.is_point {
            &self.begin_key
        } else if !self.points.is_empty() {
            self.points.key(number as usize)
        } else {
            self.batch.get(number as usize).0
        }
    }
}
