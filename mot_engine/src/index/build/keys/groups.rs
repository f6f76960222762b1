//! Sorted keys as an index takes them: each key once, with the one row id that has it or a posting
//! block of those that share it.
//!
//! Posting blocks made here are not shared until the index is: the builder takes them
//! over, or they are freed.

use super::{Key, Keys};
use crate::errors::EngineError;
use crate::ids::RowId;
use crate::index::entry::posting::{Posting, cells_for, inline_value};
use crate::session::Session;
use std::cmp::Ordering;

/// Entries grouped between two questions whether to continue.
const ENTRIES_PER_LOOK: usize = 4096;

impl Keys {
    /// The index's entries: one value per distinct key of the sorted keys.
    pub(in crate::index::build) fn groups<'a>(
        &'a self,
        session: &'a Session,
        go_on: &'a dyn Fn() -> Result<(), EngineError>,
    ) -> Groups<'a> {
        Groups {
            keys: self,
            session,
            go_on,
            asked_at: 0,
            next: 0,
            postings: Vec::new(),
            stopped: None,
        }
    }
}

/// Why a group has no value.
pub(in crate::index::build) enum Stopped {
    /// Two live rows share a pointed key.
    Duplicate([RowId; 2]),
    Failed(EngineError),
}

/// Iterates over distinct keys and their values. Ends early when it must stop.
pub(in crate::index::build) struct Groups<'a> {
    keys: &'a Keys,
    session: &'a Session,
    /// Asked every so many entries.
    go_on: &'a dyn Fn() -> Result<(), EngineError>,
    asked_at: usize,
    next: usize,
    /// Values with a posting block: they are to be freed if the index does not come about. Freed
    /// here unless they are taken out.
    pub(in crate::index::build) postings: Vec<u64>,
    pub(in crate::index::build) stopped: Option<Stopped>,
}

impl Groups<'_> {
    fn shared_value(&mut self, group: std::ops::Range<usize>) -> Result<u64, Stopped> {
        let group = &self.keys.entries[group];
        debug_assert!(
            group[0].is_pointed(),
            "a suffixed key is unique by its row id"
        );
        let mut live = group.iter().filter(|entry| entry.is_live());
        if let (Some(a), Some(b)) = (live.next(), live.next()) {
            return Err(Stopped::Duplicate([a.row_id(), b.row_id()]));
        }
        self.postings
            .try_reserve(1)
            .map_err(|_| Stopped::Failed(EngineError::OutOfProcessMemory))?;
        let mut cells = cells_for(group.len());
        let block = loop {
            let local = &self.session.local;
            let block = Posting::allocate(local, cells).map_err(Stopped::Failed)?;
            if group.iter().all(|entry| block.add(entry.row_id())) {
                break block;
            }
            // SAFETY: never published.
            unsafe { block.free(local) };
            cells *= 2;
        };
        self.postings.push(block.value());
        Ok(block.value())
    }
}

impl Drop for Groups<'_> {
    fn drop(&mut self) {
        for block in self.postings.drain(..).filter_map(Posting::of) {
            // SAFETY: never published.
            unsafe { block.free(&self.session.local) };
        }
    }
}

impl<'a> Iterator for Groups<'a> {
    type Item = (Key<'a>, u64);

    fn next(&mut self) -> Option<Self::Item> {
        let entries = &self.keys.entries;
        let first = self.next;
        let entry = entries.get(first)?;
        if first >= self.asked_at {
            self.asked_at = first + ENTRIES_PER_LOOK;
            if let Err(error) = (self.go_on)() {
                self.stopped = Some(Stopped::Failed(error));
                self.next = entries.len();
                return None;
            }
        }
        let same = entries[first + 1..]
            .iter()
            .take_while(|other| Keys::compare(&self.keys.bytes, entry, other) == Ordering::Equal)
            .count();
        let end = first + 1 + same;
        let value = if same == 0 {
            inline_value(entry.row_id())
        } else {
            match self.shared_value(first..end) {
                Ok(value) => value,
                Err(stopped) => {
                    self.stopped = Some(stopped);
                    self.next = entries.len();
                    return None;
                }
            }
        };
        self.next = end;
        Some((self.keys.key(entry), value))
    }
}
