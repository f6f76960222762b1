//! Comparing sixteen cells of a node, or halves of cells, with a slice at once.
//!
//! A loop that stops at the place searched for is mispredicted once a node. These functions have no
//! branch. With AVX-512 or AVX2 (`simd/avx512.rs`, `simd/avx2.rs`), found when the program runs,
//! they compare eight or four cells at a time, or twice as many halves. Otherwise they compare
//! cells one by one.
//!
//! The vector loads are in `asm!`, for Rust has no vectors of atomics. No manual promises that a
//! load of many cells reads each of them whole while another thread writes. It need not. A cell
//! that is written meanwhile belongs to a slot that the permutation does not name, whose lane the
//! caller masks out. Or its rewriting moves the version, which the caller validates as with every
//! read without the latch.

#[cfg(all(
    target_arch = "x86_64",
    not(any(miri, feature = "jitter", feature = "model"))
))]
mod avx2;
#[cfg(all(
    target_arch = "x86_64",
    not(any(miri, feature = "jitter", feature = "model"))
))]
mod avx512;

use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Cells compared.
pub(crate) const LANES: usize = 16;

/// Which vectors the processor has, once a thread has looked: a load and a comparison for each
/// search. The test of std takes twice as many steps for two kinds.
#[cfg(all(
    target_arch = "x86_64",
    not(any(miri, feature = "jitter", feature = "model"))
))]
mod vectors {
    use super::{AtomicU32, Ordering};

    static FOUND: AtomicU32 = AtomicU32::new(UNKNOWN);

    pub(super) const UNKNOWN: u32 = 0;
    const NONE: u32 = 1;
    pub(super) const AVX2: u32 = 2;
    pub(super) const AVX512: u32 = 3;

    #[inline(always)]
    pub(super) fn found() -> u32 {
        FOUND.load(Ordering::Relaxed)
    }

    /// Looks which vectors there are, so that the next search knows.
    #[cold]
    #[inline(never)]
    pub(super) fn look() {
        let found = if std::arch::is_x86_feature_detected!("avx512f") {
            AVX512
        } else if std::arch::is_x86_feature_detected!("avx2") {
            AVX2
        } else {
            NONE
        };
        FOUND.store(found, Ordering::Relaxed);
    }
}

/// Returns from the function with the vectors' result, where there are vectors. Checkers must see
/// each access.
macro_rules! vector {
    ($function:ident($cells:expr, $number:expr)) => {
        #[cfg(all(
            target_arch = "x86_64",
            not(any(miri, feature = "jitter", feature = "model"))
        ))]
        {
            use $crate::simd::vectors;
            match vectors::found() {
                vectors::AVX512 => return $crate::simd::avx512::$function($cells, $number),
                vectors::AVX2 => return $crate::simd::avx2::$function($cells, $number),
                vectors::UNKNOWN => vectors::look(),
                _ => {}
            }
        }
    };
}

/// Bit `i`: cell `i` is `wanted`.
#[inline(always)]
pub(crate) fn equal(cells: &[AtomicU64; LANES], wanted: u64) -> u32 {
    vector!(equal(cells, wanted));
    each(cells, |cell| cell == wanted)
}

/// Bit `i`: cell `i` is `bound` or less.
#[inline(always)]
pub(crate) fn at_most(cells: &[AtomicU64; LANES], bound: u64) -> u32 {
    vector!(at_most(cells, bound));
    each(cells, |cell| cell <= bound)
}

/// Both at once: which are `number`, and which are it or less.
#[inline(always)]
pub(crate) fn equal_and_at_most(cells: &[AtomicU64; LANES], number: u64) -> (u32, u32) {
    vector!(equal_and_at_most(cells, number));
    (equal(cells, number), at_most(cells, number))
}

/// The same of halves of cells.
pub(crate) mod halves {
    use super::{AtomicU32, LANES, Ordering};

    /// Bit `i`: half `i` is `wanted`.
    #[inline(always)]
    pub(crate) fn equal(halves: &[AtomicU32; LANES], wanted: u32) -> u32 {
        vector!(equal_halves(halves, wanted));
        each(halves, |half| half == wanted)
    }

    /// Bit `i`: half `i` is `bound` or less.
    #[inline(always)]
    pub(crate) fn at_most(halves: &[AtomicU32; LANES], bound: u32) -> u32 {
        vector!(halves_at_most(halves, bound));
        each(halves, |half| half <= bound)
    }

    /// Both at once: which are `number`, and which are it or less.
    #[inline(always)]
    pub(crate) fn equal_and_at_most(halves: &[AtomicU32; LANES], number: u32) -> (u32, u32) {
        vector!(halves_equal_and_at_most(halves, number));
        (equal(halves, number), at_most(halves, number))
    }

    #[inline(always)]
    pub(super) fn each(halves: &[AtomicU32; LANES], is: impl Fn(u32) -> bool) -> u32 {
        let mut bits = 0;
        for (lane, half) in halves.iter().enumerate() {
            bits |= u32::from(is(half.load(Ordering::Relaxed))) << lane;
        }
        bits
    }
}

#[inline(always)]
fn each(cells: &[AtomicU64; LANES], is: impl Fn(u64) -> bool) -> u32 {
    let mut bits = 0;
    for (lane, cell) in cells.iter().enumerate() {
        bits |= u32::from(is(cell.load(Ordering::Relaxed))) << lane;
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ways_compare_alike() {
        let numbers = [
            0,
            1,
            2,
            1 << 31,
            1 << 32,
            (1 << 63) - 1,
            1 << 63,
            (1 << 63) + 1,
            u64::MAX - 1,
            u64::MAX,
        ];
        let cells: [AtomicU64; LANES] =
            core::array::from_fn(|lane| AtomicU64::new(numbers[lane * 7 % numbers.len()]));
        for number in numbers {
            assert_eq!(equal(&cells, number), each(&cells, |cell| cell == number));
            assert_eq!(
                equal_and_at_most(&cells, number),
                (equal(&cells, number), at_most(&cells, number))
            );
            assert_eq!(
                at_most(&cells, number),
                each(&cells, |cell| cell <= number),
                "{number}"
            );
        }
    }

    #[test]
    fn all_ways_compare_halves_alike() {
        let numbers = [
            0,
            1,
            2,
            1 << 30,
            (1 << 31) - 1,
            1 << 31,
            u32::MAX - 1,
            u32::MAX,
        ];
        let cells: [AtomicU32; LANES] =
            core::array::from_fn(|lane| AtomicU32::new(numbers[lane * 3 % numbers.len()]));
        for number in numbers {
            assert_eq!(
                halves::equal(&cells, number),
                halves::each(&cells, |half| half == number)
            );
            assert_eq!(
                halves::equal_and_at_most(&cells, number),
                (
                    halves::equal(&cells, number),
                    halves::at_most(&cells, number)
                )
            );
            assert_eq!(
                halves::at_most(&cells, number),
                halves::each(&cells, |half| half <= number),
                "{number}"
            );
        }
    }

    /// A processor with AVX-512 would not come to AVX2 otherwise.
    #[cfg(all(
        target_arch = "x86_64",
        not(any(miri, feature = "jitter", feature = "model"))
    ))]
    #[test]
    fn avx2_compares_as_any_way_does() {
        if !std::arch::is_x86_feature_detected!("avx2") {
            return;
        }
        let numbers: [u64; LANES] =
            core::array::from_fn(|lane| 0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(lane as u64));
        let cells = numbers.map(AtomicU64::new);
        let halves = numbers.map(|number| AtomicU32::new(number as u32));
        for number in numbers.into_iter().chain([0, 1, u64::MAX]) {
            let is = |cell| (cell == number, cell <= number);
            let expected = (
                each(&cells, |cell| is(cell).0),
                each(&cells, |cell| is(cell).1),
            );
            assert_eq!(avx2::equal_and_at_most(&cells, number), expected);
            assert_eq!(avx2::equal(&cells, number), expected.0);
            assert_eq!(avx2::at_most(&cells, number), expected.1);
            let half = number as u32;
            let expected = (
                halves::each(&halves, |each| each == half),
                halves::each(&halves, |each| each <= half),
            );
            assert_eq!(avx2::halves_equal_and_at_most(&halves, half), expected);
            assert_eq!(avx2::equal_halves(&halves, half), expected.0);
            assert_eq!(avx2::halves_at_most(&halves, half), expected.1);
        }
    }
}
