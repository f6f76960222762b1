//! Keys on their way into an index: collected in parts, sorted, grouped.
//!
//! An entry is 32 bytes and holds the first 16 of its key, which decide nearly every comparison,
//! and are the whole key more often than not; longer keys also lie behind one another in `bytes`.
//! This is process memory.

mod groups;

use super::order::Order;
use crate::errors::EngineError;
use crate::ids::RowId;
use crate::limits::ROW_ID_BITS;
use std::cmp::Ordering;
use std::collections::TryReserveError;
use std::ops::Range;

pub(super) use groups::Stopped;

/// Bytes of a key that lie in its entry.
const HEAD_BYTES: usize = 16;
/// Behind the row id in an entry's word: the key's length, whether the row is live, whether the key
/// is pointed.
const LENGTH_BITS: u32 = 15;
const LIVE: u64 = 1 << (ROW_ID_BITS + LENGTH_BITS);
const POINTED: u64 = LIVE << 1;

const _: () = assert!(mot_index::MAX_KEY_BYTES < 1 << LENGTH_BITS);

/// The first bytes of a key as a number: ordered as the keys are, as far as it goes.
pub(super) fn head_of(key: &[u8]) -> u128 {
    if let Some(head) = key.first_chunk::<HEAD_BYTES>() {
        return u128::from_be_bytes(*head);
    }
    const WORD: usize = size_of::<u64>();
    if let (Some(first), Some(last)) = (key.first_chunk::<WORD>(), key.last_chunk::<WORD>()) {
        // The last word's upper bytes are in the first one already: they are shifted out.
        let last = u128::from(u64::from_be_bytes(*last)) << (8 * (HEAD_BYTES - key.len()));
        return u128::from(u64::from_be_bytes(*first)) << u64::BITS | u128::from(last as u64);
    }
    let mut head = [0; HEAD_BYTES];
    head[..key.len()].copy_from_slice(key);
    u128::from_be_bytes(head)
}

#[derive(Copy, Clone)]
struct Entry {
    /// The head in two halves: a u128 would make the entry 48 bytes long.
    head: [u64; 2],
    word: u64,
    /// Where the whole key is, if it is longer than the head.
    offset: usize,
}

impl Entry {
    fn head(&self) -> u128 {
        u128::from(self.head[0]) << 64 | u128::from(self.head[1])
    }

    fn row_id(&self) -> RowId {
        RowId(self.word & ((1 << ROW_ID_BITS) - 1))
    }

    fn length(&self) -> usize {
        (self.word >> ROW_ID_BITS) as usize & ((1 << LENGTH_BITS) - 1)
    }

    fn is_live(&self) -> bool {
        self.word & LIVE != 0
    }

    fn is_pointed(&self) -> bool {
        self.word & POINTED != 0
    }
}

/// What is to be known of a row's key besides the key.
#[derive(Copy, Clone)]
pub(super) struct Origin {
    pub(super) row_id: RowId,
    /// The row has the key now, and counts for uniqueness.
    pub(super) live: bool,
    pub(super) pointed: bool,
}

/// One key, whole.
pub(super) enum Key<'a> {
    Head([u8; HEAD_BYTES], usize),
    Whole(&'a [u8]),
}

impl AsRef<[u8]> for Key<'_> {
    fn as_ref(&self) -> &[u8] {
        match self {
            Key::Head(bytes, length) => &bytes[..*length],
            Key::Whole(bytes) => bytes,
        }
    }
}

/// Memory for sorting, used again and again: fresh memory costs a page fault for each page, which
/// is more than to sort what lies there.
#[derive(Default)]
pub(crate) struct Sorter {
    order: Order,
    /// Changes places with the entries that were sorted.
    sorted: Vec<Entry>,
}

/// Makes room for so many entries, which are about to come.
fn reserve_filled(entries: &mut Vec<Entry>, count: usize) -> Result<(), TryReserveError> {
    if count > entries.capacity() - entries.len() {
        entries.try_reserve_exact(count)?;
        super::prefault::prefault(entries.spare_capacity_mut());
    }
    Ok(())
}

/// Some keys.
#[derive(Default)]
pub(super) struct Keys {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
}

impl Keys {
    /// What an entry takes of process memory.
    pub(super) fn entry_bytes(key_bytes: usize) -> usize {
        size_of::<Entry>() + if key_bytes > HEAD_BYTES { key_bytes } else { 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn push(&mut self, key: &[u8], origin: Origin) -> Result<(), EngineError> {
        self.entries
            .try_reserve(1)
            .map_err(|_| EngineError::OutOfProcessMemory)?;
        let offset = self.bytes.len();
        if key.len() > HEAD_BYTES {
            self.bytes
                .try_reserve(key.len())
                .map_err(|_| EngineError::OutOfProcessMemory)?;
            self.bytes.extend_from_slice(key);
        }
        let head = head_of(key);
        self.entries.push(Entry {
            head: [(head >> 64) as u64, head as u64],
            word: origin.row_id.0
                | (key.len() as u64) << ROW_ID_BITS
                | if origin.live { LIVE } else { 0 }
                | if origin.pointed { POINTED } else { 0 },
            offset,
        });
        Ok(())
    }

    /// Makes room for so many entries at once, which are about to come.
    pub(super) fn reserve(&mut self, entries: usize) -> Result<(), EngineError> {
        reserve_filled(&mut self.entries, entries).map_err(|_| EngineError::OutOfProcessMemory)
    }

    /// Process memory they take.
    pub(super) fn bytes_held(&self) -> u64 {
        (self.entries.capacity() * size_of::<Entry>() + self.bytes.capacity()) as u64
    }

    /// Appends some of others.
    pub(super) fn append_some(
        &mut self,
        other: &Keys,
        range: Range<usize>,
    ) -> Result<(), EngineError> {
        let entries = &other.entries[range];
        self.entries
            .try_reserve(entries.len())
            .map_err(|_| EngineError::OutOfProcessMemory)?;
        if other.bytes.is_empty() {
            self.entries.extend_from_slice(entries);
            return Ok(());
        }
        for entry in entries {
            let offset = self.bytes.len();
            if let Some(key) = Self::whole(&other.bytes, entry) {
                self.bytes
                    .try_reserve(key.len())
                    .map_err(|_| EngineError::OutOfProcessMemory)?;
                self.bytes.extend_from_slice(key);
            }
            self.entries.push(Entry { offset, ..*entry });
        }
        Ok(())
    }

    /// How many of these sorted keys are less than `key`, of which `head` is the head.
    pub(super) fn count_below(&self, head: u128, key: &[u8]) -> usize {
        self.entries.partition_point(|entry| {
            let at = entry.head();
            at < head || (at == head && self.key(entry).as_ref() < key)
        })
    }

    /// Appends others.
    pub(super) fn append(&mut self, other: Keys) -> Result<(), EngineError> {
        if self.is_empty() {
            *self = other;
            return Ok(());
        }
        let base = self.bytes.len();
        self.bytes
            .try_reserve(other.bytes.len())
            .and_then(|()| self.entries.try_reserve(other.entries.len()))
            .map_err(|_| EngineError::OutOfProcessMemory)?;
        self.bytes.extend_from_slice(&other.bytes);
        self.entries.extend(other.entries.iter().map(|entry| Entry {
            offset: entry.offset + base,
            ..*entry
        }));
        Ok(())
    }

    fn whole<'a>(bytes: &'a [u8], entry: &Entry) -> Option<&'a [u8]> {
        // `None` for a key that is all in its entry.
        (entry.length() > HEAD_BYTES).then(|| &bytes[entry.offset..][..entry.length()])
    }

    fn compare(bytes: &[u8], a: &Entry, b: &Entry) -> Ordering {
        a.head().cmp(&b.head()).then_with(|| {
            match (Self::whole(bytes, a), Self::whole(bytes, b)) {
                (Some(a), Some(b)) => a[HEAD_BYTES..].cmp(&b[HEAD_BYTES..]),
                // With equal heads the shorter key is the longer one's beginning.
                _ => a.length().cmp(&b.length()),
            }
        })
    }

    /// Sorts by key, then by row id.
    pub(super) fn sort(&mut self, sorter: &mut Sorter) {
        let bytes = &self.bytes;
        let by_key = |a: &Entry, b: &Entry| {
            Self::compare(bytes, a, b)
                .then_with(|| a.row_id().cmp(&b.row_id()))
                .then_with(|| b.is_live().cmp(&a.is_live()))
        };
        if self.entries.is_sorted_by(|a, b| by_key(a, b).is_le()) {
            return;
        }
        let Sorter { order, sorted } = sorter;
        sorted.clear();
        if reserve_filled(sorted, self.entries.len()).is_err()
            || !order.take(self.entries.iter().map(Entry::head))
        {
            // In place it takes no memory, only longer.
            self.entries.sort_unstable_by(by_key);
            return;
        }
        sorted.extend(order.positions().map(|at| self.entries[at]));
        for range in order.ties() {
            sorted[range].sort_unstable_by(by_key);
        }
        if sorted.capacity() / 8 * 7 <= sorted.len() {
            std::mem::swap(&mut self.entries, sorted);
        } else {
            // What is kept shall not take more memory than it needs.
            self.entries.copy_from_slice(sorted);
        }
    }

    /// The key at a position, and its head.
    pub(super) fn at(&self, position: usize) -> Option<(u128, Key<'_>)> {
        let entry = self.entries.get(position)?;
        Some((entry.head(), self.key(entry)))
    }

    fn key(&self, entry: &Entry) -> Key<'_> {
        match Self::whole(&self.bytes, entry) {
            Some(key) => Key::Whole(key),
            None => Key::Head(entry.head().to_be_bytes(), entry.length()),
        }
    }

    pub(super) fn first(&self) -> Option<Key<'_>> {
        self.entries.first().map(|entry| self.key(entry))
    }

    pub(super) fn last(&self) -> Option<Key<'_>> {
        self.entries.last().map(|entry| self.key(entry))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::index::build) const ORIGIN: Origin = Origin {
        row_id: RowId(7),
        live: false,
        pointed: true,
    };

    /// Keys around the length of a head, with zero bytes and shared beginnings.
    pub(in crate::index::build) fn some_keys() -> Vec<Vec<u8>> {
        let mut keys = Vec::new();
        for length in [0, 1, 2, 15, 16, 17, 18, 40] {
            for fill in [0, 1, 255] {
                for last in [0, 3] {
                    let mut key = vec![fill; length];
                    if let Some(byte) = key.last_mut() {
                        *byte = last;
                    }
                    keys.push(key);
                }
            }
        }
        keys
    }

    #[test]
    fn keys_sort_as_bytes_do() {
        let mut wanted = some_keys();
        let mut keys = Keys::default();
        for key in &wanted {
            keys.push(key, ORIGIN).expect("memory");
        }
        keys.sort(&mut Sorter::default());
        wanted.sort();
        let sorted: Vec<Vec<u8>> = keys
            .entries
            .iter()
            .map(|entry| keys.key(entry).as_ref().to_vec())
            .collect();
        assert_eq!(sorted, wanted);
    }

    #[test]
    fn heads_are_the_first_bytes() {
        for length in 0..=20u8 {
            let key: Vec<u8> = (0..length).map(|at| at ^ 0xA5).collect();
            let mut wanted = [0; HEAD_BYTES];
            for (wanted, byte) in wanted.iter_mut().zip(&key) {
                *wanted = *byte;
            }
            assert_eq!(head_of(&key).to_be_bytes(), wanted, "{length}");
        }
    }

    #[test]
    fn appended_keys_are_found() {
        let mut all = Keys::default();
        for key in some_keys() {
            let mut one = Keys::default();
            one.push(&key, ORIGIN).expect("memory");
            all.append(one).expect("memory");
        }
        let found: Vec<Vec<u8>> = all
            .entries
            .iter()
            .map(|entry| all.key(entry).as_ref().to_vec())
            .collect();
        assert_eq!(found, some_keys());
    }
}
