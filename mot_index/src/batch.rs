//! What a scan asks for and what it hands back.

use crate::frame::Frame;
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
    pub(crate) entries: Entries,
    pub(crate) exhausted: bool,
    /// Where a scan goes on when the way has to be found again; kept for its memory.
    pub(crate) resume: Vec<u8>,
    /// The layers of a scan in progress; empty between two scans, and kept for its memory.
    frames: Vec<Frame<'static>>,
}

impl Batch {
    /// A buffer that a scan fills with up to `capacity` entries (at least one).
    pub fn with_capacity(capacity: usize) -> Self {
        Batch {
            entries: Entries {
                keys: Vec::new(),
                ends: Vec::new(),
                capacity: capacity.max(1),
                prefix: Vec::new(),
                prefix_bytes: 0,
            },
            exhausted: false,
            resume: Vec::new(),
            frames: Vec::new(),
        }
    }

    /// How many entries a scan may put in.
    pub fn capacity(&self) -> usize {
        self.entries.capacity
    }

    /// Changes how many entries the next scan may put in (at least one).
    pub fn set_capacity(&mut self, capacity: usize) {
        self.entries.capacity = capacity.max(1);
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.ends.is_empty()
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
        self.entries.get(index)
    }

    /// The entries in the order of the scan.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], u64)> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// Takes the entries out; capacity stays.
    pub fn clear(&mut self) {
        self.entries.go_back(Mark::default());
        self.exhausted = false;
    }

    /// An empty list for the layers of a scan, to be given back.
    pub(crate) fn take_frames<'a>(&mut self) -> Vec<Frame<'a>> {
        core::mem::take(&mut self.frames)
    }

    pub(crate) fn give_frames_back(&mut self, mut frames: Vec<Frame<'_>>) {
        frames.clear();
        // Of nothing, so that only the memory is handed on.
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

/// A prefix of up to so many bytes is copied as if it had all of them, in a few moves instead of a call; one of half as many likewise.
const PREFIX_BYTES: usize = 64;

/// The entries of a batch, and what those being read have in common.
pub(crate) struct Entries {
    keys: Vec<u8>,
    ends: Vec<Entry>,
    capacity: usize,
    /// The slices that lead to the layer being read, in the first `prefix_bytes`; not shorter than [`PREFIX_BYTES`] if there is one.
    prefix: Vec<u8>,
    prefix_bytes: usize,
}

struct Entry {
    key_end: usize,
    value: u64,
}

/// A length of [`Entries`].
#[derive(Clone, Copy, Default)]
pub(crate) struct Mark {
    keys: usize,
    ends: usize,
}

impl Entries {
    #[inline]
    fn get(&self, index: usize) -> (&[u8], u64) {
        let entry = &self.ends[index];
        let begin = if index == 0 {
            0
        } else {
            self.ends[index - 1].key_end
        };
        (&self.keys[begin..entry.key_end], entry.value)
    }

    /// How many entries are still wanted.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        self.capacity.saturating_sub(self.ends.len())
    }

    /// About how many leaves are still to be read: they are four fifths full (`give.rs`).
    #[inline]
    pub(crate) fn leaves_wanted(&self) -> usize {
        self.room() / (LEAF_ENTRIES * 4 / 5)
    }

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.ends.len() >= self.capacity
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark {
            keys: self.keys.len(),
            ends: self.ends.len(),
        }
    }

    /// Takes out what was put in since the mark.
    pub(crate) fn go_back(&mut self, mark: Mark) {
        self.keys.truncate(mark.keys);
        self.ends.truncate(mark.ends);
    }

    pub(crate) fn clear_prefix(&mut self) {
        self.prefix_bytes = 0;
    }

    /// What is put in from now on lies in the layer of this slice.
    pub(crate) fn push_slice(&mut self, slice: u64) {
        let end = self.prefix_bytes + SLICE_BYTES;
        if self.prefix.len() < end {
            self.prefix.resize(end.max(PREFIX_BYTES), 0);
        }
        self.prefix[self.prefix_bytes..end].copy_from_slice(&slice.to_be_bytes());
        self.prefix_bytes = end;
    }

    /// Goes back to the layer above, if there is one.
    pub(crate) fn pop_slice(&mut self) {
        self.prefix_bytes = self.prefix_bytes.saturating_sub(SLICE_BYTES);
    }

    /// Copies the prefix, if there is one, to where a key begins.
    ///
    /// # Safety
    /// From `to` on there is room for the prefix, and for [`PREFIX_BYTES`] at least.
    #[inline(always)]
    unsafe fn put_prefix(&self, to: *mut u8) {
        const HALF: usize = PREFIX_BYTES / 2;
        let from = self.prefix.as_ptr();
        debug_assert!(self.prefix_bytes == 0 || self.prefix.len() >= PREFIX_BYTES);
        // SAFETY: a prefix is in a vector of `PREFIX_BYTES` at least; the caller has the room, in a buffer that is not the prefix.
        unsafe {
            if self.prefix_bytes == 0 {
                // Most layers read are the first.
            } else if self.prefix_bytes <= HALF {
                core::ptr::copy_nonoverlapping(from, to, HALF);
            } else if self.prefix_bytes <= PREFIX_BYTES {
                core::ptr::copy_nonoverlapping(from, to, PREFIX_BYTES);
            } else {
                core::ptr::copy_nonoverlapping(from, to, self.prefix_bytes);
            }
        }
    }

    /// Appends an entry of the layer being read that goes on behind its slice.
    #[inline]
    pub(crate) fn push(&mut self, slice: u64, suffix: &[u8], value: u64) {
        let prefix = self.prefix_bytes;
        self.keys
            .reserve(prefix + SLICE_BYTES + suffix.len() + PREFIX_BYTES);
        let begin = self.keys.len();
        let end = begin + prefix + SLICE_BYTES + suffix.len();
        // SAFETY: the room was reserved; all bytes up to `end` are written, none of them in `prefix` or `suffix`.
        unsafe {
            let to = self.keys.as_mut_ptr().add(begin);
            self.put_prefix(to);
            let to = to.add(prefix);
            to.cast::<u64>().write_unaligned(slice.to_be());
            core::ptr::copy_nonoverlapping(suffix.as_ptr(), to.add(SLICE_BYTES), suffix.len());
            self.keys.set_len(end);
        }
        self.ends.push(Entry {
            key_end: end,
            value,
        });
    }

    /// Appends entries of the layer being read that end in their slices, up to `count` and to the capacity and before the first that goes
    /// on behind; returns how many. `entry` gives slice, kind and value of each. Most scans are of such.
    #[inline(always)]
    pub(crate) fn push_run(
        &mut self,
        count: usize,
        entry: impl Fn(usize) -> (u64, u64, u64),
    ) -> usize {
        let count = count.min(self.room());
        let prefix = self.prefix_bytes;
        self.keys
            .reserve(count * (prefix + SLICE_BYTES) + PREFIX_BYTES);
        self.ends.reserve(count);
        let mut end = self.keys.len();
        let ends = self.ends.len();
        let mut pushed = 0;
        // SAFETY: the room for `count` keys of a whole slice was reserved, and for `count` ends; both are written in their order, so
        // that no byte before `end` and no entry before `ends + pushed` is left out.
        unsafe {
            let keys = self.keys.as_mut_ptr();
            let to = self.ends.as_mut_ptr().add(ends);
            while pushed < count {
                let (slice, kind, value) = entry(pushed);
                if kind > SLICE_BYTES as u64 {
                    break;
                }
                self.put_prefix(keys.add(end));
                end += prefix;
                keys.add(end).cast::<u64>().write_unaligned(slice.to_be());
                end += kind as usize;
                to.add(pushed).write(Entry {
                    key_end: end,
                    value,
                });
                pushed += 1;
            }
            self.keys.set_len(end);
            self.ends.set_len(ends + pushed);
        }
        pushed
    }
}
