//! The entries of a batch, and how a scan appends them.

use crate::permutation::LEAF_ENTRIES;
use crate::slice::SLICE_BYTES;

/// A prefix of up to so many bytes is copied as if it had all of them, in a few moves instead of a
/// call. One of up to half as many is copied as if it had that half.
const PREFIX_BYTES: usize = 64;

/// A suffix of up to so many bytes is copied alike, if as many bytes may be read.
const SUFFIX_BYTES: usize = 32;

const _: () = assert!(SUFFIX_BYTES <= PREFIX_BYTES);

/// The bytes of a key after a slice.
#[derive(Clone, Copy)]
pub(crate) struct Suffix<'a> {
    pub(crate) bytes: &'a [u8],
    /// From its beginning, so many bytes may be copied: its own, and others to which no thread
    /// stores.
    readable: usize,
}

impl<'a> Suffix<'a> {
    /// A suffix followed by nothing that may be read.
    pub(crate) fn alone(bytes: &'a [u8]) -> Self {
        Suffix {
            bytes,
            readable: bytes.len(),
        }
    }

    /// A suffix with other bytes after it.
    ///
    /// # Safety
    /// If `bytes` is not empty, `readable` bytes from its beginning are in one block with it.
    /// During `'a` no thread stores to them.
    #[inline(always)]
    pub(crate) unsafe fn among(bytes: &'a [u8], readable: usize) -> Self {
        debug_assert!(readable >= bytes.len());
        Suffix { bytes, readable }
    }

    /// Copies the suffix.
    ///
    /// # Safety
    /// From `to` on there is room for the suffix, and for [`SUFFIX_BYTES`] at least, outside of its
    /// block.
    #[inline(always)]
    unsafe fn put(self, to: *mut u8) {
        let (from, length) = (self.bytes.as_ptr(), self.bytes.len());
        // SAFETY: the caller has the room; so much may be read.
        unsafe {
            if (1..=SUFFIX_BYTES).contains(&length) && self.readable >= SUFFIX_BYTES {
                core::ptr::copy_nonoverlapping(from, to, SUFFIX_BYTES);
            } else {
                core::ptr::copy_nonoverlapping(from, to, length);
            }
        }
    }
}

/// The entries of a batch, and what the entries being read have in common.
pub(crate) struct Entries {
    keys: Vec<u8>,
    ends: Vec<Entry>,
    capacity: usize,
    /// The slices that lead to the layer being read, in the first `prefix_bytes` bytes. If it has a
    /// prefix, the vector is not shorter than [`PREFIX_BYTES`].
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
    pub(super) fn with_capacity(capacity: usize) -> Self {
        Entries {
            keys: Vec::new(),
            ends: Vec::new(),
            capacity,
            prefix: Vec::new(),
            prefix_bytes: 0,
        }
    }

    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    pub(super) fn set_capacity(&mut self, capacity: usize) {
        self.capacity = capacity;
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    #[inline]
    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], u64)> {
        let mut begin = 0;
        self.ends.iter().map(move |entry| {
            let key = &self.keys[begin..entry.key_end];
            begin = entry.key_end;
            (key, entry.value)
        })
    }

    #[inline]
    pub(super) fn get(&self, index: usize) -> (&[u8], u64) {
        let entry = &self.ends[index];
        let begin = if index == 0 {
            0
        } else {
            self.ends[index - 1].key_end
        };
        (&self.keys[begin..entry.key_end], entry.value)
    }

    /// How many more entries the batch takes.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        self.capacity.saturating_sub(self.ends.len())
    }

    /// About how many leaves are still to be read: a leaf is four fifths full (`redistribute.rs`).
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

    /// Removes what was appended since the mark.
    pub(crate) fn go_back(&mut self, mark: Mark) {
        self.keys.truncate(mark.keys);
        self.ends.truncate(mark.ends);
    }

    pub(crate) fn clear_prefix(&mut self) {
        self.prefix_bytes = 0;
    }

    /// Entries appended from now on lie in the layer of this slice.
    pub(crate) fn push_slice(&mut self, slice: u64) {
        let end = self.prefix_bytes + SLICE_BYTES;
        if self.prefix.len() < end {
            self.prefix.resize(end.max(PREFIX_BYTES), 0);
        }
        self.prefix[self.prefix_bytes..end].copy_from_slice(&slice.to_be_bytes());
        self.prefix_bytes = end;
    }

    /// Returns to the layer above, if there is one.
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
        // SAFETY: a prefix is in a vector of `PREFIX_BYTES` at least; the caller has the room, in a
        // buffer that is not the prefix.
        unsafe {
            if self.prefix_bytes == 0 {
                // The layer being read is mostly the first.
            } else if self.prefix_bytes <= HALF {
                core::ptr::copy_nonoverlapping(from, to, HALF);
            } else if self.prefix_bytes <= PREFIX_BYTES {
                core::ptr::copy_nonoverlapping(from, to, PREFIX_BYTES);
            } else {
                core::ptr::copy_nonoverlapping(from, to, self.prefix_bytes);
            }
        }
    }

    /// Appends an entry of the layer being read that continues after its slice.
    pub(crate) fn push(&mut self, slice: u64, suffix: &[u8], value: u64) {
        let mut entry = Some((slice, Suffix::alone(suffix), value));
        self.push_longer(1, || entry.take());
    }

    /// Appends entries of the layer being read that continue after their slices. `entry` returns
    /// slice, suffix and value of each in turn. Appends up to `count` entries, up to the capacity,
    /// and until `entry` returns none. Returns how many were appended.
    #[inline(always)]
    pub(crate) fn push_longer<'a>(
        &mut self,
        count: usize,
        mut entry: impl FnMut() -> Option<(u64, Suffix<'a>, u64)>,
    ) -> usize {
        let count = count.min(self.room());
        self.ends.reserve(count);
        let prefix = self.prefix_bytes;
        let ends = self.ends.len();
        let mut end = self.keys.len();
        let mut pushed = 0;
        while pushed < count
            && let Some((slice, suffix, value)) = entry()
        {
            let length = suffix.bytes.len();
            let key_end = end + prefix + SLICE_BYTES + length;
            if self.keys.capacity() < key_end + PREFIX_BYTES {
                // SAFETY: all bytes up to `end` are written, and so many ends. Both lengths are set
                // together: otherwise, if this unwound, the next key would begin too early.
                unsafe {
                    self.keys.set_len(end);
                    self.ends.set_len(ends + pushed);
                }
                self.keys.reserve(key_end + PREFIX_BYTES - end);
            }
            // SAFETY: there is room for the key, and for a prefix or a suffix after it. All bytes
            // of the key are written, none of them in the prefix or the suffix. There is room for
            // `count` ends.
            unsafe {
                let to = self.keys.as_mut_ptr().add(end);
                if prefix != 0 {
                    self.put_prefix(to);
                }
                let to = to.add(prefix);
                to.cast::<u64>().write_unaligned(slice.to_be());
                suffix.put(to.add(SLICE_BYTES));
                let to = self.ends.as_mut_ptr().add(ends + pushed);
                to.write(Entry { key_end, value });
            }
            end = key_end;
            pushed += 1;
        }
        // SAFETY: so many ends and all bytes up to `end` are written.
        unsafe {
            self.keys.set_len(end);
            self.ends.set_len(ends + pushed);
        }
        pushed
    }

    /// Appends entries of the layer being read that end with their slices, up to `count` and to the
    /// capacity. Returns how many. `entry` returns slice and value of each in turn. Most leaves
    /// have only such entries.
    #[inline(always)]
    pub(crate) fn push_whole(
        &mut self,
        count: usize,
        mut entry: impl FnMut() -> (u64, u64),
    ) -> usize {
        let count = count.min(self.room());
        let prefix = self.prefix_bytes;
        self.keys
            .reserve(count * (prefix + SLICE_BYTES) + PREFIX_BYTES);
        self.ends.reserve(count);
        let mut end = self.keys.len();
        // SAFETY: the room for `count` keys of a whole slice was reserved, and for `count` ends;
        // all are written, in their order.
        unsafe {
            let keys = self.keys.as_mut_ptr();
            let mut to = self.ends.as_mut_ptr().add(self.ends.len());
            let mut put = |at: usize| {
                let (slice, value) = entry();
                keys.add(at).cast::<u64>().write_unaligned(slice.to_be());
                let key_end = at + SLICE_BYTES;
                to.write(Entry { key_end, value });
                to = to.add(1);
                key_end
            };
            if prefix == 0 {
                for _ in 0..count {
                    end = put(end);
                }
            } else if prefix <= PREFIX_BYTES / 2 {
                // Kept in registers.
                let begin = self.prefix.as_ptr().cast::<[u8; PREFIX_BYTES / 2]>().read();
                for _ in 0..count {
                    keys.add(end).cast::<[u8; PREFIX_BYTES / 2]>().write(begin);
                    end = put(end + prefix);
                }
            } else {
                for _ in 0..count {
                    self.put_prefix(keys.add(end));
                    end = put(end + prefix);
                }
            }
            self.keys.set_len(end);
            self.ends.set_len(self.ends.len() + count);
        }
        count
    }

    /// Appends entries of the layer being read that end in their slices, up to `count` and to the
    /// capacity. It stops before the first entry that continues after its slice. Returns how many
    /// were appended. `entry` returns slice, kind and value of each.
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
        // SAFETY: the room for `count` keys of a whole slice was reserved, and for `count` ends.
        // Both are written in their order, so that no byte before `end` and no entry before `ends +
        // pushed` is left out.
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

#[cfg(test)]
mod tests {
    use super::{Entries, Suffix};
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

    #[test]
    fn what_unwinds_leaves_no_bytes_to_the_next_key() {
        let long = [7; 1000];
        let suffixes: [&[u8]; 3] = [b"a", &long, b"b"];
        let mut entries = Entries::with_capacity(10);
        let mut left = suffixes.iter();
        let ended = catch_unwind(AssertUnwindSafe(|| {
            entries.push_longer(suffixes.len() + 1, || {
                let Some(suffix) = left.next() else {
                    resume_unwind(Box::new(()))
                };
                Some((1, Suffix::alone(suffix), 1))
            })
        }));
        assert!(ended.is_err());
        entries.push(2, b"next", 2);
        let (key, value) = entries.get(entries.len() - 1);
        assert_eq!((key, value), (&b"\0\0\0\0\0\0\0\x02next"[..], 2));
    }
}
