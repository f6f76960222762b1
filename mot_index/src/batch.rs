//! What a scan asks for and what it returns.

use crate::entries::{Entries, Mark};
use crate::frame::Frame;

/// Where a scan begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound<'k> {
    /// Before the least key.
    Start,
    /// At this key, if it is there.
    Included(&'k [u8]),
    /// Next to this key, whether it is there or not.
    Excluded(&'k [u8]),
    /// After the greatest key.
    End,
}

/// A reusable buffer of entries a scan read: keys one after the other, and values.
///
/// It is memory of the process, copied out of the tree, so its content stays what it was.
pub struct Batch {
    pub(crate) entries: Entries,
    pub(crate) exhausted: bool,
    /// Where a scan continues after a new descent; kept for its memory.
    pub(crate) resume: Vec<u8>,
    /// The layers of a scan in progress; empty between two scans, and kept for its memory.
    frames: Vec<Frame<'static>>,
}

impl Batch {
    /// A buffer that a scan fills with up to `capacity` entries (at least one).
    pub fn with_capacity(capacity: usize) -> Self {
        Batch {
            entries: Entries::with_capacity(capacity.max(1)),
            exhausted: false,
            resume: Vec::new(),
            frames: Vec::new(),
        }
    }

    /// How many entries a scan may append.
    pub fn capacity(&self) -> usize {
        self.entries.capacity()
    }

    /// Changes how many entries the next scan may append (at least one).
    pub fn set_capacity(&mut self, capacity: usize) {
        self.entries.set_capacity(capacity.max(1));
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.len() == 0
    }

    /// Whether the scan met the end: nothing lies after the last entry, or nothing before the key
    /// the scan was to end at.
    pub fn is_exhausted(&self) -> bool {
        self.exhausted
    }

    /// The key and the value of an entry, counted in the order of the scan.
    ///
    /// # Panics
    /// If there are not that many entries.
    #[inline]
    pub fn get(&self, index: usize) -> (&[u8], u64) {
        self.entries.get(index)
    }

    /// The entries in the order of the scan.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], u64)> {
        self.entries.iter()
    }

    /// Removes the entries; the capacity stays.
    pub fn clear(&mut self) {
        self.entries.go_back(Mark::default());
        self.exhausted = false;
    }

    /// An empty list for the layers of a scan, to be returned later.
    pub(crate) fn take_frames<'a>(&mut self) -> Vec<Frame<'a>> {
        core::mem::take(&mut self.frames)
    }

    pub(crate) fn return_frames(&mut self, mut frames: Vec<Frame<'_>>) {
        frames.clear();
        // Empty, so that only the memory is handed on.
        self.frames = frames.into_iter().map(|_| unreachable!()).collect();
    }

    /// Notes the last entry's key as the place to resume at; `false` if there is no entry.
    pub(crate) fn note_last(&mut self) -> bool {
        let Some(last) = self.len().checked_sub(1) else {
            return false;
        };
        self.resume.clear();
        self.resume.extend_from_slice(self.entries.get(last).0);
        true
    }
}
