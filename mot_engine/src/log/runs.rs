//! Where two equally long bodies differ, in one pass: a bit for each byte, a block of them at a
//! time.

/// Bytes compared at a time.
const BLOCK_BYTES: usize = 32;
#[cfg(any(not(target_arch = "x86_64"), test))]
const WORD_BYTES: usize = size_of::<u64>();

/// Calls `visit` with the start and the end of each run of bytes that differ, in order. A run may
/// be told of in parts, where a block ends in it.
#[inline]
pub(super) fn each_run(a: &[u8], b: &[u8], mut visit: impl FnMut(usize, usize)) {
    debug_assert_eq!(a.len(), b.len());
    let (blocks_a, rest_a) = a.as_chunks::<BLOCK_BYTES>();
    let (blocks_b, rest_b) = b.as_chunks::<BLOCK_BYTES>();
    for (number, (x, y)) in blocks_a.iter().zip(blocks_b).enumerate() {
        each_run_of_bits(differing(x, y), number * BLOCK_BYTES, &mut visit);
    }
    let rest = rest_a.len();
    if rest == 0 {
        return;
    }
    let bits = match (a.last_chunk(), b.last_chunk()) {
        // The last block's worth of bytes, less those that were examined.
        (Some(x), Some(y)) => differing(x, y) >> (BLOCK_BYTES - rest),
        _ => {
            let padded = |bytes: &[u8]| {
                let mut block = [0; BLOCK_BYTES];
                block[..bytes.len()].copy_from_slice(bytes);
                block
            };
            differing(&padded(rest_a), &padded(rest_b))
        }
    };
    each_run_of_bits(bits, a.len() - rest, &mut visit);
}

/// A bit for each byte that differs.
#[cfg(target_arch = "x86_64")]
#[inline]
fn differing(a: &[u8; BLOCK_BYTES], b: &[u8; BLOCK_BYTES]) -> u64 {
    use core::arch::x86_64::{__m128i, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8};
    const HALF: usize = size_of::<__m128i>();
    const _: () = assert!(BLOCK_BYTES == 2 * HALF);
    let equal = |a: &[u8; HALF], b: &[u8; HALF]| {
        // SAFETY: unaligned loads of as many bytes as there are, by instructions that every
        // processor of this kind has.
        let bits = unsafe {
            let (a, b) = (a.as_ptr().cast(), b.as_ptr().cast());
            _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_loadu_si128(a), _mm_loadu_si128(b)))
        };
        u64::from(bits as u32)
    };
    let (halves_a, _) = a.as_chunks();
    let (halves_b, _) = b.as_chunks();
    let low = equal(&halves_a[0], &halves_b[0]);
    let high = equal(&halves_a[1], &halves_b[1]);
    (low | high << HALF) ^ u64::from(u32::MAX)
}

/// A bit for each byte that differs.
#[cfg(any(not(target_arch = "x86_64"), test))]
fn differing_by_words(a: &[u8; BLOCK_BYTES], b: &[u8; BLOCK_BYTES]) -> u64 {
    let (words_a, _) = a.as_chunks::<WORD_BYTES>();
    let (words_b, _) = b.as_chunks::<WORD_BYTES>();
    let mut bits = 0;
    for (number, (x, y)) in words_a.iter().zip(words_b).enumerate() {
        let high = high_bits(u64::from_le_bytes(*x) ^ u64::from_le_bytes(*y));
        // Each of the eight bits goes to a place of its own in the highest byte.
        let of_word = (high >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        bits |= of_word << (number * WORD_BYTES);
    }
    bits
}

#[cfg(not(target_arch = "x86_64"))]
use differing_by_words as differing;

/// The high bit of each byte that is not zero.
#[inline]
pub(super) fn high_bits(word: u64) -> u64 {
    const LOW: u64 = 0x7F7F_7F7F_7F7F_7F7F;
    (((word & LOW) + LOW) | word) & !LOW
}

/// Of at most [`BLOCK_BYTES`] bits.
#[inline]
fn each_run_of_bits(mut bits: u64, offset: usize, visit: &mut impl FnMut(usize, usize)) {
    while bits != 0 {
        let start = bits.trailing_zeros();
        let end = start + (bits >> start).trailing_ones();
        visit(offset + start as usize, offset + end as usize);
        bits &= u64::MAX << end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each byte that differs, and no other, at every length and place.
    #[test]
    fn runs_are_the_bytes_that_differ() {
        let mut state = 1_u32;
        let mut next = |below: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) % below
        };
        for round in 0..20_000_u32 {
            let length = next(if round % 2 == 0 { 40 } else { 200 }) as usize;
            let rarity = 1 + next(30);
            let a: Vec<u8> = (0..length).map(|_| next(256) as u8).collect();
            let flip = |byte: &u8, by: u32| byte ^ (1 << by) as u8;
            let b: Vec<u8> = a
                .iter()
                .map(|byte| match next(rarity) {
                    0 => flip(byte, next(8)),
                    _ => *byte,
                })
                .collect();
            let mut found = Vec::new();
            let mut last = 0;
            each_run(&a, &b, |start, end| {
                assert!(last <= start && start < end);
                last = end;
                found.extend(start..end);
            });
            let wanted: Vec<usize> = (0..length).filter(|at| a[*at] != b[*at]).collect();
            assert_eq!(found, wanted);
            if let (Some(a), Some(b)) = (a.first_chunk(), b.first_chunk()) {
                assert_eq!(differing(a, b), differing_by_words(a, b));
            }
        }
    }
}
