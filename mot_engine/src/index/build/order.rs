//! Putting numbers in order by the few bits in which they differ.
//!
//! Keys that are sorted together lie close together: of the 128 bits of their heads a quarter of a
//! million TPC-C order lines differ in some 20. Those bits, moved together, are in the order of the
//! whole numbers. With the number's position below them they make one word. Words are dealt out by
//! digits of those bits, the lowest first: two turns for twenty bits, without any comparison.

use std::ops::Range;

/// Runs of adjacent bits that are moved together; what differs below the last one is not told
/// apart.
const RUNS_MAX: usize = 12;

/// Most bits of a digit: as many places to deal to as a core's address cache and first cache bear.
const DIGIT_BITS_MAX: u32 = 11;
/// Fewer words are compared: counting digits costs as much as they do.
const DEALT_MIN: usize = 512;

/// Adjacent bits that are moved together.
struct Run {
    /// How far to the right.
    shift: u32,
    length: u32,
    /// A mask of as many bits.
    kept: u64,
}

/// Some bits of a number, moved together, from the top down.
struct Bits(Vec<Run>);

impl Bits {
    /// The topmost bits of `differing`, at most `room` of them.
    fn choose(mut differing: u128, mut room: u32) -> Bits {
        let mut runs = Vec::new();
        while differing != 0 && room > 0 && runs.len() < RUNS_MAX {
            let above = differing.leading_zeros();
            let length = (differing << above).leading_ones().min(room);
            let shift = u128::BITS - above - length;
            let kept = u64::MAX >> (u64::BITS - length);
            runs.push(Run {
                shift,
                length,
                kept,
            });
            differing &= !(u128::from(kept) << shift);
            room -= length;
        }
        Bits(runs)
    }

    fn count(&self) -> u32 {
        self.0.iter().map(|run| run.length).sum()
    }

    fn of(&self, number: u128) -> u64 {
        self.0.iter().fold(0, |bits, run| {
            bits << run.length | (number >> run.shift) as u64 & run.kept
        })
    }
}

/// The order of some numbers. It keeps its memory for the next ones.
#[derive(Default)]
pub(super) struct Order {
    /// What was learned of each, and below it its position.
    words: Vec<u64>,
    position_bits: u32,
    /// Room for another turn of the words.
    other: Vec<u64>,
}

impl Order {
    /// Orders `numbers`. Whether there was process memory for it.
    pub(super) fn take(&mut self, numbers: impl ExactSizeIterator<Item = u128> + Clone) -> bool {
        let count = numbers.len();
        self.words.clear();
        if self.words.try_reserve_exact(count).is_err() {
            return false;
        }
        // Less than a word's bits, since there are not that many numbers.
        self.position_bits = usize::BITS - count.saturating_sub(1).leading_zeros();
        let first = numbers.clone().next().unwrap_or_default();
        let differing = numbers.clone().fold(0, |all, number| all | number ^ first);
        let bits = Bits::choose(differing, u64::BITS - self.position_bits);
        let word = |(at, number)| bits.of(number) << self.position_bits | at as u64;
        self.words.extend(numbers.enumerate().map(word));
        self.other.clear();
        if count < DEALT_MIN
            || u32::try_from(count).is_err()
            || self.other.try_reserve_exact(count).is_err()
        {
            self.words.sort_unstable();
        } else {
            self.deal(bits.count());
        }
        true
    }

    /// Sorts the words, which lie in the order of their positions, by the `bits` above these.
    fn deal(&mut self, bits: u32) {
        let turns = bits.div_ceil(DIGIT_BITS_MAX);
        if turns == 0 {
            return;
        }
        let digit_bits = bits.div_ceil(turns);
        let kept = (1 << digit_bits) - 1;
        self.other.resize(self.words.len(), 0);
        for turn in 0..turns {
            let shift = self.position_bits + turn * digit_bits;
            let digit = |word: u64| (word >> shift) as usize & kept;
            let mut places = [0u32; 1 << DIGIT_BITS_MAX];
            for word in &self.words {
                places[digit(*word)] += 1;
            }
            let mut next = 0;
            for place in &mut places[..=kept] {
                next += std::mem::replace(place, next);
            }
            for word in &self.words {
                let place = &mut places[digit(*word)];
                self.other[*place as usize] = *word;
                *place += 1;
            }
            std::mem::swap(&mut self.words, &mut self.other);
        }
    }

    /// The numbers' positions, in their order.
    pub(super) fn positions(&self) -> impl ExactSizeIterator<Item = usize> + '_ {
        let kept = (1 << self.position_bits) - 1;
        self.words.iter().map(move |word| (word & kept) as usize)
    }

    /// Ranges of the order whose numbers were not distinct, and follow each other as they came.
    pub(super) fn ties(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let mut from = 0;
        let same = |a: &u64, b: &u64| a >> self.position_bits == b >> self.position_bits;
        self.words.chunk_by(same).filter_map(move |group| {
            let range = from..from + group.len();
            from = range.end;
            (range.len() > 1).then_some(range)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sorts as its user does.
    fn sorted(numbers: &[u128]) -> (Vec<u128>, usize) {
        let mut order = Order::default();
        // What it held before must not show.
        assert!(order.take([5, 3, 4].into_iter()));
        assert!(order.take(numbers.iter().copied()), "memory");
        let mut sorted: Vec<u128> = order.positions().map(|at| numbers[at]).collect();
        let mut tied = 0;
        for range in order.ties() {
            tied += range.len();
            sorted[range].sort_unstable();
        }
        (sorted, tied)
    }

    fn check(numbers: &[u128]) -> usize {
        let mut wanted = numbers.to_vec();
        wanted.sort_unstable();
        let (found, tied) = sorted(numbers);
        assert_eq!(found, wanted);
        tied
    }

    #[test]
    fn numbers_that_differ_in_few_bits_are_told_apart() {
        // Four columns of 32 bits, each with the sign flipped, as keys have them.
        let number = |at: u128| {
            let column = |value: u128| value | 1 << 31;
            column(1) << 96
                | column(at / 4096 % 16) << 64
                | column(at / 16 % 256) << 32
                | column(at % 16)
        };
        let numbers: Vec<u128> = (0..5000).map(|at| number(at * 7919 % 65536)).collect();
        assert_eq!(check(&numbers), 0);
    }

    #[test]
    fn any_numbers_are_ordered() {
        let mut state = 1u128;
        for masked in [
            u128::MAX,
            0,
            1,
            1 << 127,
            1 << 127 | 1,
            u128::from_le_bytes([0x55; 16]),
            u128::from(u64::MAX) << 32,
        ] {
            for count in [0, 1, 2, 3, 17, DEALT_MIN, 5000] {
                let numbers: Vec<u128> = (0..count)
                    .map(|_| {
                        state = state
                            .wrapping_mul(0xDA94_2042_E4DD_58B5_DA94_2042_E4DD_58B5)
                            .wrapping_add(7);
                        (state ^ state >> 61) & masked
                    })
                    .collect();
                check(&numbers);
            }
        }
    }
}
