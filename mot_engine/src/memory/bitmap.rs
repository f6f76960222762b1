//! A bitmap of chunks in shared memory, lowest first.
//!
//! Contract: all methods are called under the chunk pool's latch. `hint` is never above the first
//! non-zero word, so a search starts there. Taking the lowest chunk packs the arena towards its
//! start.

use super::word::{Word32, Word64};

/// Bits of one word.
pub(super) const BITS: usize = 64;

#[derive(Clone, Copy)]
pub(super) struct Bitmap<'a> {
    pub(super) words: &'a [Word64],
    pub(super) hint: &'a Word32,
}

impl<'a> Bitmap<'a> {
    pub(super) fn set(self, bit: usize) {
        let word = bit / BITS;
        self.words[word].set(self.words[word].get() | 1 << (bit % BITS));
        if (word as u32) < self.hint.get() {
            self.hint.set(word as u32);
        }
    }

    pub(super) fn clear(self, bit: usize) {
        let word = bit / BITS;
        self.words[word].set(self.words[word].get() & !(1 << (bit % BITS)));
    }

    pub(super) fn contains(self, bit: usize) -> bool {
        self.words[bit / BITS].get() & 1 << (bit % BITS) != 0
    }

    pub(super) fn first(self) -> Option<usize> {
        self.iter().next()
    }

    /// Set bits in ascending order. Moves the hint up to the first word that has one.
    pub(super) fn iter(self) -> impl Iterator<Item = usize> + 'a {
        let mut word = self.hint.get() as usize;
        while word < self.words.len() && self.words[word].get() == 0 {
            word += 1;
        }
        self.hint.set(word as u32);
        let words = self.words;
        let mut left = words.get(word).map_or(0, Word64::get);
        std::iter::from_fn(move || {
            while left == 0 {
                word += 1;
                left = words.get(word)?.get();
            }
            let bit = word * BITS + left.trailing_zeros() as usize;
            left &= left - 1;
            Some(bit)
        })
    }

    pub(super) fn count(self) -> usize {
        self.words
            .iter()
            .map(|word| word.get().count_ones() as usize)
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lowest_first_and_hint_follows() {
        // SAFETY: all-zero words are valid.
        let words: [Word64; 4] = unsafe { std::mem::zeroed() };
        // SAFETY: as above.
        let hint: Word32 = unsafe { std::mem::zeroed() };
        let map = Bitmap {
            words: &words,
            hint: &hint,
        };
        assert_eq!(map.first(), None);
        for bit in [200, 70, 3, 255] {
            map.set(bit);
        }
        assert_eq!(map.iter().collect::<Vec<_>>(), [3, 70, 200, 255]);
        map.clear(3);
        assert!(!map.contains(3) && map.contains(70));
        assert_eq!(map.first(), Some(70));
        assert_eq!(hint.get(), 1);
        map.set(0);
        assert_eq!(map.first(), Some(0));
        assert_eq!(map.count(), 4);
        for bit in [0, 70, 200, 255] {
            map.clear(bit);
        }
        assert_eq!(map.first(), None);
        map.set(64);
        assert_eq!(map.first(), Some(64));
    }
}
