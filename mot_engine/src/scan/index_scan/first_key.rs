//! The first key of a range, and the first one behind it.
use super::IndexScan;
use crate::memory::Urgency;
use crate::scan::range::KeyRange;
use crate::session::Session;
use crate::table::IndexRef;
use mot_index::{Batch, Bound, Direction, Tree};

impl IndexScan {
    /// The key of the first entry of a range in a direction. What the scan read is given up. A
    /// registered snapshot sees no row before it: every row that it sees has its entry.
    pub fn first_key(
        &mut self,
        session: &Session,
        index: IndexRef,
        range: &KeyRange,
        direction: Direction,
    ) -> Option<&[u8]> {
        self.place = None;
        self.pending.clear();
        self.found.clear();
        let bound = match direction {
            Direction::Forward => range.low().map_or(Bound::Start, Bound::Included),
            Direction::Backward => range.high().map_or(Bound::End, Bound::Excluded),
        };
        let (key, _) = read_one((session, index), bound, direction, &mut self.entries.batch)?;
        range.contains(key).then_some(key)
    }

    /// The key of the first entry behind a range in a direction. The scan of the range is over. A
    /// registered snapshot sees no row in between: every row that it sees has its entry.
    pub fn key_behind(
        &mut self,
        session: &Session,
        index: IndexRef,
        range: &KeyRange,
        direction: Direction,
    ) -> Option<&[u8]> {
        debug_assert!(self.is_exhausted());
        let bound = match direction {
            Direction::Forward => Bound::Included(range.high()?),
            Direction::Backward => Bound::Excluded(range.low()?),
        };
        read_one((session, index), bound, direction, &mut self.entries.batch).map(|(key, _)| key)
    }
}

/// The first entry from a place on in a direction: its key and value. A posting block that the
/// value names stays while the caller is pinned.
pub(in crate::scan) fn read_one<'b>(
    (session, index): (&Session, IndexRef),
    from: Bound<'_>,
    direction: Direction,
    batch: &'b mut Batch,
) -> Option<(&'b [u8], u64)> {
    let _pin = session.local.pin();
    let memory = session.tree_memory(Urgency::Ordinary);
    // SAFETY: pinned.
    let tree = unsafe { Tree::new(&index.storage().root, &memory) };
    batch.set_capacity(1);
    tree.scan_batch(from, direction, batch);
    (!batch.is_empty()).then(|| batch.get(0))
}
