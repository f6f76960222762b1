//! The permutation of a leaf: which slots hold entries, and in which order, in one word.
//!
//! Bits 0..4 count the entries. The fifteen 4-bit fields above are a permutation of the slots. The
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

    /// The slot at `position`; a free one from `count()` on. It is never more than 14. No field of
    /// a permutation is 15, and no field of the small number that an inner node keeps in the same
    /// place.
    #[inline]
    pub(crate) fn slot(self, position: usize) -> usize {
        ((self.0 >> (FIELD_BITS * (position + 1))) & FIELD) as usize
    }

    /// The slots of the entries from a position on, upwards or downwards, without an end.
    #[inline(always)]
    pub(crate) fn slots_from(self, position: usize, upwards: bool) -> impl Iterator<Item = usize> {
        const FIELD: u32 = FIELD_BITS as u32;
        let step = if upwards { FIELD } else { u64::BITS - FIELD };
        let first = self.0.rotate_right(FIELD * (position as u32 + 1));
        let fields =
            core::iter::successors(Some(first), move |fields| Some(fields.rotate_right(step)));
        fields.map(|fields| (fields & self::FIELD) as usize)
    }

    /// The position of a slot's entry; `None` if the slot is free.
    #[inline]
    pub(crate) fn position(self, slot: usize) -> Option<usize> {
        // The field that names the slot becomes the lowest that is zero. That is exact for the
        // lowest, as nothing borrows from below it.
        let fields = (self.0 >> FIELD_BITS) ^ (slot as u64 * EACH_FIELD)
            | FIELD << (FIELD_BITS * LEAF_ENTRIES);
        let zero = fields.wrapping_sub(EACH_FIELD) & !fields & (EACH_FIELD << (FIELD_BITS - 1));
        let position = zero.trailing_zeros() as usize / FIELD_BITS;
        (position < self.count()).then_some(position)
    }

    /// The position of the first entry whose slot is not in a bit set, if those in the set are
    /// before all others. `count()` if the set has all. Any position, for a set that was read while
    /// entries changed.
    #[inline(always)]
    pub(crate) fn first_not_in(self, slots: u32) -> usize {
        debug_assert!(slots < 1 << LEAF_ENTRIES);
        const _: () = assert!(LEAF_ENTRIES == 15);
        // Free slots count as slot 15, which is in no set.
        let fields = (self.0 >> FIELD_BITS) | !0 << (FIELD_BITS * self.count());
        let mut position = 0;
        for step in [8, 4, 2, 1] {
            // The last of as many more. There is no branch, for it would be mispredicted every
            // other time.
            let slot = fields >> (FIELD_BITS * (position + step - 1)) & FIELD;
            position += step * (slots >> slot & 1) as usize;
        }
        position
    }

    /// The permutation after the first free slot is inserted at `position`, and that slot.
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
            let others = state >> 16 & ((1 << LEAF_ENTRIES) - 1);
            let free = list.iter().fold(others, |free, slot| free & !(1 << slot));
            for first in 0..=list.len() {
                let set = list[..first].iter().fold(free, |set, slot| set | 1 << slot);
                assert_eq!(permutation.first_not_in(set), first);
            }
            assert!(permutation.first_not_in(others) <= list.len());
            for position in 0..list.len() {
                let (below, above) = (&list[..=position], &list[position..]);
                let upwards = permutation.slots_from(position, true).take(above.len());
                assert!(upwards.eq(above.iter().copied()));
                let downwards = permutation.slots_from(position, false).take(below.len());
                assert!(downwards.eq(below.iter().rev().copied()));
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
