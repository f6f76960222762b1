//! Putting numbers in order by the few bits in which they differ.
//!
//! Keys that are sorted together lie close together: of the 128 bits of their heads a quarter of a million TPC-C order lines differ in
//! some 20. Those bits, moved together, are in the order of the whole numbers. With the number's position below them they make one word;
//! words sort without a branch per comparison, and a fraction of the memory is moved.

use std::ops::Range;

/// Runs of adjacent bits that are moved together; what differs below the last one is not told apart.
const RUNS_MAX: usize = 12;

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

    fn of(&self, number: u128) -> u64 {
        self.0.iter().fold(0, |bits, run| {
            bits << run.length | (number >> run.shift) as u64 & run.kept
        })
    }
}

/// The order of some numbers.
pub(super) struct Order {
    /// What was told of each, and below it its position.
    words: Vec<u64>,
    position_bits: u32,
}

impl Order {
    /// Orders `numbers`. `None` without the process memory for it.
    pub(super) fn of(numbers: impl ExactSizeIterator<Item = u128> + Clone) -> Option<Order> {
        let count = numbers.len();
        // Less than a word's bits, since there are not that many numbers.
        let position_bits = usize::BITS - count.saturating_sub(1).leading_zeros();
        let first = numbers.clone().next().unwrap_or_default();
        let differing = numbers.clone().fold(0, |all, number| all | number ^ first);
        let bits = Bits::choose(differing, u64::BITS - position_bits);
        let mut words = Vec::new();
        words.try_reserve_exact(count).ok()?;
        let word = |(at, number)| bits.of(number) << position_bits | at as u64;
        words.extend(numbers.enumerate().map(word));
        words.sort_unstable();
        Some(Order {
            words,
            position_bits,
        })
    }

    /// The numbers' positions, in their order.
    pub(super) fn positions(&self) -> impl ExactSizeIterator<Item = usize> + '_ {
        let kept = (1 << self.position_bits) - 1;
        self.words.iter().map(move |word| (word & kept) as usize)
    }

    /// Ranges of the order whose numbers were not told apart, and follow each other as they came.
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
        let order = Order::of(numbers.iter().copied()).expect("memory");
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
            for count in [0, 1, 2, 3, 17, 1000] {
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
