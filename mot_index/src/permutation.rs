//! The permutation of a leaf: which slots hold entries, and in which order, in one word.
//!
//! Bits 0..4 count the entries. The fifteen 4-bit fields above are a permutation of the slots: the
//! first `count` name the entries' slots in key order, the others the free slots. Since a store of
//! one word is atomic, an insert or removal becomes visible at once and whole.

/// Entries a leaf holds.
pub(crate) const LEAF_ENTRIES: usize = 15;
const FIELD_BITS: usize = 4;
const FIELD: u64 = 0xF;
/// One in each of the fields above the count, once they are shifted down.
const EACH_FIELD: u64 = 0x0111_1111_1111_1111;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Permutation(pub(crate) u64);

/// The low `fields` 4-bit fields.
fn low_fields(fields: usize) -> u64 {
    debug_assert!(fields <= LEAF_ENTRIES);
    (1 << (FIELD_BITS * fields)) - 1
}

impl Permutation {
    /// No entries; slots will be taken in the order 0, 1, 2, …
    pub(crate) const EMPTY: Permutation = Permutation(0xEDCB_A987_6543_2100);

    /// The first `count` slots in their own order.
    pub(crate) fn first(count: usize) -> Self {
        debug_assert!(count <= LEAF_ENTRIES);
        Permutation(Self::EMPTY.0 | count as u64)
    }

    #[inline]
    pub(crate) fn count(self) -> usize {
        (self.0 & FIELD) as usize
    }

    #[inline]
    pub(crate) fn is_full(self) -> bool {
        self.count() == LEAF_ENTRIES
    }

    /// The slot at `position`; a free one from `count()` on. Never more than 14: no field of a
    /// permutation is 15, nor any of the small number an inner node keeps in the same place.
    #[inline]
    pub(crate) fn slot(self, position: usize) -> usize {
        ((self.0 >> (FIELD_BITS * (position + 1))) & FIELD) as usize
    }

    /// The position of a slot's entry; `None` if the slot is free.
    #[inline]
    pub(crate) fn position(self, slot: usize) -> Option<usize> {
        // The field that names the slot becomes the lowest that is zero: exact for the lowest, as nothing borrows from below it.
        let fields = (self.0 >> FIELD_BITS) ^ (slot as u64 * EACH_FIELD)
            | FIELD << (FIELD_BITS * LEAF_ENTRIES);
        let zero = fields.wrapping_sub(EACH_FIELD) & !fields & (EACH_FIELD << (FIELD_BITS - 1));
        let position = zero.trailing_zeros() as usize / FIELD_BITS;
        (position < self.count()).then_some(position)
    }

    /// How many of the slots in a bit set have entries.
    #[inline(always)]
    pub(crate) fn count_of(self, slots: u32) -> usize {
        debug_assert!(slots < 1 << LEAF_ENTRIES);
        let count = self.count();
        if ((self.0 ^ Self::EMPTY.0) >> (FIELD_BITS * count)) >> FIELD_BITS == 0 {
            // The free slots are the last ones, in their own order: as in every leaf that only grew.
            return (slots & ((1 << count) - 1)).count_ones() as usize;
        }
        // Free slots count as slot 15, which is in no set.
        let fields = (self.0 >> FIELD_BITS) | !0 << (FIELD_BITS * count);
        let mut named = 0;
        for position in 0..LEAF_ENTRIES {
            named += slots >> ((fields >> (FIELD_BITS * position)) & FIELD) & 1;
        }
        named as usize
    }

    /// The permutation after the first free slot is put in at `position`, and that slot.
    pub(crate) fn insert(self, position: usize) -> (Self, usize) {
        let count = self.count();
        debug_assert!(position <= count && count < LEAF_ENTRIES);
        let fields = self.0 >> FIELD_BITS;
        let slot = self.slot(count);
        let below = fields & low_fields(position);
        let shifted = (fields & low_fields(count)) >> (FIELD_BITS * position);
        let above = fields & !low_fields(count + 1);
        let fields = below
            | (slot as u64) << (FIELD_BITS * position)
            | shifted << (FIELD_BITS * (position + 1))
            | above;
        (Permutation(fields << FIELD_BITS | (count as u64 + 1)), slot)
    }

    /// The permutation without the entry at `position`; its slot becomes the first free one.
    pub(crate) fn remove(self, position: usize) -> Self {
        let count = self.count();
        debug_assert!(position < count);
        let fields = self.0 >> FIELD_BITS;
        let slot = self.slot(position) as u64;
        let below = fields & low_fields(position);
        let shifted = (fields & low_fields(count)) >> (FIELD_BITS * (position + 1));
        let above = fields & !low_fields(count);
        let fields =
            below | shifted << (FIELD_BITS * position) | slot << (FIELD_BITS * (count - 1)) | above;
        Permutation(fields << FIELD_BITS | (count as u64 - 1))
    }

    /// The permutation of the first `count` entries; the others' slots become free.
    pub(crate) fn truncate(self, count: usize) -> Self {
        debug_assert!(count <= self.count());
        Permutation(self.0 & !FIELD | count as u64)
    }

    /// Whether every slot is named exactly once.
    pub(crate) fn is_valid(self) -> bool {
        let mut seen = 0u16;
        for position in 0..LEAF_ENTRIES {
            seen |= 1 << self.slot(position);
        }
        seen == (1 << LEAF_ENTRIES) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behaves_like_a_list_of_slots() {
        // Every position of every fill, against a plain vector.
        let mut permutation = Permutation::EMPTY;
        let mut list: Vec<usize> = Vec::new();
        let mut state = 12345u32;
        for _ in 0..if cfg!(miri) { 300 } else { 100_000 } {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let choice = (state >> 8) as usize;
            let grow = list.is_empty() || (list.len() < LEAF_ENTRIES && choice & 1 == 0);
            if grow {
                let position = (choice >> 1) % (list.len() + 1);
                let (next, slot) = permutation.insert(position);
                assert!(!list.contains(&slot));
                list.insert(position, slot);
                permutation = next;
            } else {
                let position = (choice >> 1) % list.len();
                permutation = permutation.remove(position);
                list.remove(position);
            }
            assert_eq!(permutation.count(), list.len());
            assert!(permutation.is_valid());
            for (position, slot) in list.iter().enumerate() {
                assert_eq!(permutation.slot(position), *slot);
            }
            for slot in 0..LEAF_ENTRIES {
                let position = list.iter().position(|taken| *taken == slot);
                assert_eq!(permutation.position(slot), position);
            }
            let set = state >> 16 & ((1 << LEAF_ENTRIES) - 1);
            let named = list.iter().filter(|slot| set >> **slot & 1 == 1).count();
            assert_eq!(permutation.count_of(set), named);
        }
    }

    #[test]
    fn leaves_that_only_grew_count_as_others_do() {
        for count in 0..=LEAF_ENTRIES {
            // The same entries in two leaves: one only grew, in the other all have come and gone once.
            let mut grown = Permutation::EMPTY;
            let mut used = Permutation::EMPTY;
            for _ in 0..LEAF_ENTRIES {
                used = used.insert(0).0;
            }
            while used.count() > 0 {
                used = used.remove(used.count() / 2);
            }
            assert_ne!(used, Permutation::EMPTY);
            for number in 0..count {
                grown = grown.insert(number / 2).0;
                used = used.insert(number / 2).0;
            }
            for permutation in [grown, used] {
                for set in 0..1 << LEAF_ENTRIES {
                    let is_named = |position: &usize| set >> permutation.slot(*position) & 1 == 1;
                    let named = (0..count).filter(is_named).count();
                    assert_eq!(permutation.count_of(set), named);
                }
            }
        }
    }

    #[test]
    fn truncation_keeps_the_front() {
        let permutation = Permutation::first(LEAF_ENTRIES);
        assert!(permutation.is_full() && permutation.is_valid());
        let half = permutation.truncate(7);
        assert_eq!(half.count(), 7);
        assert!(half.is_valid());
        assert_eq!(half.slot(6), 6);
    }
}
