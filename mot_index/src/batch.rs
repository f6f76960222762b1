//! What a scan asks for and what it hands back.

use crate::permutation::LEAF_ENTRIES;
use crate::slice::SLICE_BYTES;

/// Where a scan begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound<'k> {
    /// Before the least key.
    Start,
    /// At this key, if it is there.
    Included(&'k [u8]),
    /// Next to this key, whether it is there or not.
    Excluded(&'k [u8]),
    /// Behind the greatest key.
    End,
}

/// Which way a scan goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Keys ascend.
    Forward,
    /// Keys descend.
    Backward,
}

/// A reusable buffer of entries a scan read: keys one behind the other, and values.
///
/// It is memory of the process, copied out of the tree: what it holds stays what it was.
pub struct Batch {
    keys: Vec<u8>,
    entries: Vec<Entry>,
    capacity: usize,
    exhausted: bool,
    pub(crate) scratch: Scratch,
}

struct Entry {
    key_end: usize,
    value: u64,
}

/// What a scan in progress keeps between leaves; empty between two scans but for its capacity.
#[derive(Default)]
pub(crate) struct Scratch {
    /// A leaf of each layer from the first to the one being read.
    pub(crate) frames: Vec<Frame>,
    /// The slices that lead to the layer being read.
    pub(crate) prefix: Vec<u8>,
    /// Where to go on when the way has to be found again.
    pub(crate) resume: Vec<u8>,
}

/// One layer of a scan: a copy of a leaf's entries, and how far they have been read.
pub(crate) struct Frame {
    /// The address of the layer's root.
    pub(crate) root: u64,
    /// The address of the leaf.
    pub(crate) leaf: u64,
    /// How many leaves behind this one are on their way already.
    pub(crate) asked: usize,
    pub(crate) copy: LeafCopy,
    /// How many entries of the copy have been read, counted in the direction of the scan.
    pub(crate) read: usize,
    /// Slice and class of the last entry read in the layer, or of the bound; later ones lie behind
    /// it.
    pub(crate) last: Option<(u64, u64)>,
}

/// The entries of a leaf at one moment, in key order, and its neighbours then.
#[derive(Clone, Copy, Default)]
pub(crate) struct LeafCopy {
    pub(crate) count: usize,
    pub(crate) entries: [EntryCopy; LEAF_ENTRIES],
    pub(crate) bag: u64,
    pub(crate) next: u64,
    pub(crate) previous: u64,
    /// Some entry is more than a slice.
    pub(crate) has_longer: bool,
}

/// An entry of a [`LeafCopy`].
#[derive(Clone, Copy, Default)]
pub(crate) struct EntryCopy {
    pub(crate) slice: u64,
    pub(crate) value: u64,
    /// For a suffix, its word in the bag.
    pub(crate) word: u32,
    pub(crate) kind: u32,
}

impl Batch {
    /// A buffer that a scan fills with up to `capacity` entries (at least one).
    pub fn with_capacity(capacity: usize) -> Self {
        Batch {
            keys: Vec::new(),
            entries: Vec::new(),
            capacity: capacity.max(1),
            exhausted: false,
            scratch: Scratch::default(),
        }
    }

    /// How many entries a scan may put in.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Changes how many entries the next scan may put in (at least one).
    pub fn set_capacity(&mut self, capacity: usize) {
        self.capacity = capacity.max(1);
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether the scan met the end: nothing lies behind the last entry, or nothing before the key the scan was to end at.
    pub fn is_exhausted(&self) -> bool {
        self.exhausted
    }

    /// The key and the value of an entry, counted in the order of the scan.
    ///
    /// # Panics
    /// If there are not that many entries.
    #[inline]
    pub fn get(&self, index: usize) -> (&[u8], u64) {
        let entry = &self.entries[index];
        let begin = if index == 0 {
            0
        } else {
            self.entries[index - 1].key_end
        };
        (&self.keys[begin..entry.key_end], entry.value)
    }

    /// The entries in the order of the scan.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], u64)> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// Takes the entries out; capacity stays.
    pub fn clear(&mut self) {
        self.keys.clear();
        self.entries.clear();
        self.exhausted = false;
    }

    /// About how many leaves are still to be read: they are two thirds full.
    pub(crate) fn leaves_wanted(&self) -> usize {
        self.capacity.saturating_sub(self.entries.len()) / (LEAF_ENTRIES * 2 / 3)
    }

    pub(crate) fn is_full(&self) -> bool {
        self.entries.len() >= self.capacity
    }

    /// Whether every entry of the leaf being read has been.
    #[inline]
    pub(crate) fn is_leaf_read(&self) -> bool {
        let frame = self.scratch.frames.last();
        frame.is_some_and(|frame| frame.read >= frame.copy.count)
    }

    /// Whether whatever follows the last entry lies beyond a key.
    pub(crate) fn has_reached(&self, until: &[u8], direction: Direction) -> bool {
        let Some(last) = self.len().checked_sub(1) else {
            return false;
        };
        match direction {
            Direction::Forward => self.get(last).0 >= until,
            Direction::Backward => self.get(last).0 <= until,
        }
    }

    pub(crate) fn set_exhausted(&mut self) {
        self.exhausted = true;
    }

    /// Appends an entry of the layer being read: the layer's prefix, the slice, a suffix.
    #[inline]
    pub(crate) fn push(&mut self, slice: &[u8], suffix: &[u8], value: u64) {
        self.keys.extend_from_slice(&self.scratch.prefix);
        self.keys.extend_from_slice(slice);
        self.keys.extend_from_slice(suffix);
        self.entries.push(Entry {
            key_end: self.keys.len(),
            value,
        });
    }

    /// Appends entries that have no suffix, up to the capacity; returns how many. Most scans are of such.
    #[inline]
    pub(crate) fn push_run(&mut self, entries: impl ExactSizeIterator<Item = EntryCopy>) -> usize {
        let room = self.capacity.saturating_sub(self.entries.len());
        let count = room.min(entries.len());
        let prefix = self.scratch.prefix.len();
        let begin = self.keys.len();
        // For whole slices; what a shorter key does not fill is cut off below.
        self.keys.resize(begin + count * (prefix + SLICE_BYTES), 0);
        self.entries.reserve(count);
        let mut end = begin;
        for entry in entries.take(count) {
            if prefix > 0 {
                self.keys[end..end + prefix].copy_from_slice(&self.scratch.prefix);
                end += prefix;
            }
            self.keys[end..end + SLICE_BYTES].copy_from_slice(&entry.slice.to_be_bytes());
            end += (entry.kind as usize).min(SLICE_BYTES);
            self.entries.push(Entry {
                key_end: end,
                value: entry.value,
            });
        }
        self.keys.truncate(end);
        count
    }

    /// Notes the last entry's key as the place to resume at; `false` if there is no entry.
    pub(crate) fn note_last(&mut self) -> bool {
        let Some(last) = self.entries.len().checked_sub(1) else {
            return false;
        };
        let begin = if last == 0 {
            0
        } else {
            self.entries[last - 1].key_end
        };
        self.scratch.resume.clear();
        self.scratch.resume.extend_from_slice(&self.keys[begin..]);
        true
    }
}
