//! Two rows with one key, in an index that is not unique here: each row has an entry of its own.

use super::{ENTRIES_PER_PIN, Finder, Holds, Looked};
use crate::clock::Clock;
use crate::errors::EngineError;
use crate::ids::{RowId, Xid};
use crate::index::{append_row_id, only_row_id};
use crate::key::KeyBuffer;
use crate::memory::Urgency;
use mot_index::{Batch, Bound, Direction, Tree};

/// The entries of one key, as far as they were read.
#[derive(Default)]
struct Group {
    key: Vec<u8>,
    /// The first row that may have the key.
    candidate: Option<RowId>,
    /// The key is passed over.
    is_passed: bool,
}

/// What two rows with entries of one key are.
enum Pair {
    /// Both have it.
    Two,
    /// The first one has not.
    NotFirst,
    /// The second one has not.
    NotSecond,
    /// This transaction decides.
    Open(Xid),
}

impl<C: Clock> Finder<'_, C> {
    /// As `Session::find_duplicate`, which calls it.
    pub(super) fn find_in_entries(
        &mut self,
        mut wait: impl FnMut(Xid) -> bool,
        mut pause: impl FnMut(),
    ) -> Result<Option<[RowId; 2]>, EngineError> {
        let mut batch = Batch::with_capacity(ENTRIES_PER_PIN);
        let mut group = Group::default();
        let mut from: Option<(Vec<u8>, bool)> = None;
        loop {
            let bound = match &from {
                None => Bound::Start,
                Some((key, true)) => Bound::Excluded(key),
                Some((key, false)) => Bound::Included(key),
            };
            match self.entries(bound, &mut batch, &mut group)? {
                Looked::On(Some(key)) => from = Some((key, true)),
                Looked::On(None) => return Ok(None),
                Looked::Duplicate(rows) => return Ok(Some(rows)),
                Looked::Open(key, xid) => {
                    group.candidate = None;
                    group.is_passed = !wait(xid);
                    // All entries of a key begin with it.
                    from = Some((key, false));
                }
            }
            pause();
        }
    }

    fn entries(
        &mut self,
        bound: Bound<'_>,
        batch: &mut Batch,
        group: &mut Group,
    ) -> Result<Looked, EngineError> {
        let _pin = self.session.local.pin();
        let memory = self.session.tree_memory(Urgency::Ordinary);
        // SAFETY: pinned while it is used.
        let tree = unsafe { Tree::new(&self.index.storage().root, &memory) };
        tree.scan_batch(bound, Direction::Forward, batch);
        let mut suffix = KeyBuffer::new();
        for (entry, value) in batch.iter() {
            let Some(row_id) = only_row_id(value) else {
                continue;
            };
            suffix.clear();
            append_row_id(&mut suffix, row_id)?;
            let key = &entry[..entry.len().saturating_sub(suffix.len())];
            if group.key != key {
                *group = Group {
                    key: key.to_vec(),
                    candidate: Some(row_id),
                    is_passed: false,
                };
                continue;
            }
            let Some(first) = group.candidate.filter(|_| !group.is_passed) else {
                group.candidate = Some(row_id);
                continue;
            };
            match self.pair([first, row_id], key)? {
                Pair::Two => return Ok(Looked::Duplicate([first, row_id])),
                Pair::NotFirst => group.candidate = Some(row_id),
                Pair::NotSecond => {}
                Pair::Open(xid) => return Ok(Looked::Open(key.to_vec(), xid)),
            }
        }
        let last = batch.len().checked_sub(1);
        let last = last.filter(|_| !batch.is_exhausted());
        Ok(Looked::On(last.map(|at| batch.get(at).0.to_vec())))
    }

    /// Whether both rows have the key at one moment. The caller is pinned.
    fn pair(&mut self, rows: [RowId; 2], key: &[u8]) -> Result<Pair, EngineError> {
        loop {
            let (first_head, first) = self.holds(rows[0], key)?;
            let (second_head, second) = self.holds(rows[1], key)?;
            match (first, second) {
                (Holds::No, _) => return Ok(Pair::NotFirst),
                (_, Holds::No) => return Ok(Pair::NotSecond),
                (Holds::Open(xid), _) | (_, Holds::Open(xid)) => return Ok(Pair::Open(xid)),
                (Holds::Yes, Holds::Yes) => {}
            }
            // One after the other was examined: both must still be as they were.
            if self.is_same(rows[0], first_head) && self.is_same(rows[1], second_head) {
                return Ok(Pair::Two);
            }
        }
    }
}
