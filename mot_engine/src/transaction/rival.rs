//! Unique keys of an index that is not unique to the engine: the server checks them, row by row.
//!
//! A deferrable constraint may be broken until it is due, so its index takes several rows of one
//! key. The server asks after each change whether another row has the key, and again when the
//! constraint is due.
//!
//! The row was entered before the question, and the look-up pins anew, which is a full fence. So of
//! two concurrent writers of one key at least one finds the other.

use super::enter::tested_by;
use crate::clock::{Clock, Now, check_cancelled};
use crate::errors::EngineError;
use crate::ids::{RowId, Xid};
use crate::index::{EntryOutcome, only_row_id, resolve_row};
use crate::key::KeyBuffer;
use crate::memory::Urgency;
use crate::row;
use crate::session::Session;
use crate::table::{IndexRef, TableRef};
use mot_index::{Batch, Bound, Direction, Tree};

/// Entries read between two pins.
const ENTRIES_PER_PIN: usize = 64;

/// Another row with the key of a row.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub enum Rival {
    /// There is none.
    None,
    /// This transaction decides whether there is one.
    Unfinished(Xid),
    /// A live row has the key.
    Live,
}

/// Where the next look into the tree begins.
enum From {
    /// At the first entry of the key.
    Key,
    /// Behind this entry.
    Behind(Vec<u8>),
}

impl Session {
    /// Whether another row has the key that a row has now in an index that is not unique here. The
    /// caller has entered the row. A key with a NULL has no rival, unless the definition says that
    /// NULLs are not distinct.
    pub fn find_rival(
        &self,
        clock: &impl Clock,
        (table, index): (TableRef, IndexRef),
        row_id: RowId,
    ) -> Result<Rival, EngineError> {
        debug_assert!(!index.is_unique() && !self.local.is_pinned());
        let definition = self.definition(index)?;
        let mut key = KeyBuffer::new();
        {
            let _pin = self.local.pin();
            let version = table.anchor(row_id);
            let version = version.and_then(|anchor| row::visible(anchor, &Now(clock)));
            let Some(version) = version else {
                return Ok(Rival::None);
            };
            let has_null = self.encode_key_if_any(index, version.body(), &mut key)?.0;
            if key.is_empty() || (has_null && !definition.nulls_not_distinct) {
                return Ok(Rival::None);
            }
        }
        let uniqueness = tested_by(clock);
        let mut scratch = KeyBuffer::new();
        let mut batch = Batch::with_capacity(ENTRIES_PER_PIN);
        let mut from = From::Key;
        loop {
            check_cancelled(clock)?;
            let _pin = self.local.pin();
            let memory = self.tree_memory(Urgency::Ordinary);
            // SAFETY: pinned while it is used.
            let tree = unsafe { Tree::new(&index.storage().root, &memory) };
            let bound = match &from {
                From::Key => Bound::Included(key.as_slice()),
                From::Behind(entry) => Bound::Excluded(entry),
            };
            tree.scan_batch(bound, Direction::Forward, &mut batch);
            for (entry, value) in batch.iter() {
                // No key begins with another one.
                if !entry.starts_with(key.as_slice()) {
                    return Ok(Rival::None);
                }
                let Some(other) = only_row_id(value).filter(|other| *other != row_id) else {
                    continue;
                };
                match resolve_row(self, (table, index), &key, uniqueness, other, &mut scratch)? {
                    EntryOutcome::Done => {}
                    EntryOutcome::Busy(xid) => return Ok(Rival::Unfinished(xid)),
                    EntryOutcome::Duplicate => return Ok(Rival::Live),
                }
            }
            let last = batch.len().checked_sub(1);
            match last.filter(|_| !batch.is_exhausted()) {
                Some(last) => from = From::Behind(batch.get(last).0.to_vec()),
                None => return Ok(Rival::None),
            }
        }
    }
}
