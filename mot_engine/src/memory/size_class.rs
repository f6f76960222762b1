//! Size classes: which block size serves a request.
//!
//! Contract: pure functions of the size, the same in allocation and free. Up to 2 KiB the steps are
//! fine, because rows are small and all of a table's rows round up alike; above, a class is a 64
//! KiB span divided by a whole number, so a span leaves no tail. A size that is a multiple of 16,
//! 32 or 64 gets blocks so aligned, all others at least 8-aligned ones. Above [`SMALL_BYTES_MAX`]
//! there are no classes but runs of whole spans.

use super::chunk::SPAN_BYTES;

/// Every block is at least so aligned, and at least so large.
pub const BLOCK_ALIGN: usize = 8;

/// Largest size with a class; larger ones are runs of spans.
pub const SMALL_BYTES_MAX: usize = SPAN_BYTES / 2;

/// Strongest alignment a class gives.
const CLASS_ALIGN_MAX: usize = 64;

/// (step, up to): fine steps where rows and index nodes live.
const STEPS: [(usize, usize); 4] = [
    (BLOCK_ALIGN, 256),
    (16, 512),
    (32, 1024),
    (64, FINE_BYTES_MAX),
];
const FINE_BYTES_MAX: usize = 2048;

/// Blocks per span of the classes above the fine ones: about 12.5 % apart, as far as whole numbers
/// allow.
const BLOCKS_PER_SPAN: [usize; 19] = [
    28, 25, 22, 20, 18, 16, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2,
];

const FINE_CLASSES: usize = 256 / BLOCK_ALIGN + 256 / 16 + 512 / 32 + 1024 / 64;

/// Number of classes.
pub(super) const CLASSES: usize = FINE_CLASSES + BLOCKS_PER_SPAN.len();
const _: () = assert!(CLASSES == 99 && CLASSES < u8::MAX as usize);

pub(super) const CLASS_BYTES: [u32; CLASSES] = {
    let mut sizes = [0; CLASSES];
    let (mut class, mut bytes, mut step) = (0, 0, 0);
    while step < STEPS.len() {
        while bytes < STEPS[step].1 {
            bytes += STEPS[step].0;
            sizes[class] = bytes as u32;
            class += 1;
        }
        step += 1;
    }
    let mut coarse = 0;
    while coarse < BLOCKS_PER_SPAN.len() {
        let bytes = SPAN_BYTES / BLOCKS_PER_SPAN[coarse];
        sizes[class] = (bytes - bytes % CLASS_ALIGN_MAX) as u32;
        class += 1;
        coarse += 1;
    }
    sizes
};
const _: () = assert!(CLASS_BYTES[CLASSES - 1] as usize == SMALL_BYTES_MAX);
const _: () = assert!(CLASS_BYTES[FINE_CLASSES - 1] as usize == FINE_BYTES_MAX);

/// Class by units of [`BLOCK_ALIGN`] up to `FINE_BYTES_MAX`.
const FINE: [u8; FINE_BYTES_MAX / BLOCK_ALIGN + 1] = lookup(BLOCK_ALIGN);
/// Class by 64-byte units up to `SMALL_BYTES_MAX`.
const COARSE: [u8; SMALL_BYTES_MAX / 64 + 1] = lookup(64);

const fn lookup<const N: usize>(unit: usize) -> [u8; N] {
    let mut table = [0; N];
    let (mut units, mut class) = (0, 0);
    while units < N {
        while (CLASS_BYTES[class] as usize) < units * unit {
            class += 1;
        }
        table[units] = class as u8;
        units += 1;
    }
    table
}

/// The class of a size up to [`SMALL_BYTES_MAX`]; size 0 counts as the smallest.
#[inline]
pub(super) fn class_of(bytes: usize) -> usize {
    if bytes <= FINE_BYTES_MAX {
        FINE[bytes.div_ceil(BLOCK_ALIGN)] as usize
    } else {
        COARSE[bytes.div_ceil(64)] as usize
    }
}

/// Block size of a class.
#[inline]
pub(super) fn class_bytes(class: usize) -> usize {
    CLASS_BYTES[class] as usize
}

/// Blocks one span holds.
#[inline]
pub(super) fn class_blocks(class: usize) -> usize {
    SPAN_BYTES / class_bytes(class)
}

/// What a request of `bytes` really takes from the arena.
pub fn block_bytes(bytes: usize) -> usize {
    if bytes <= SMALL_BYTES_MAX {
        class_bytes(class_of(bytes))
    } else {
        bytes.next_multiple_of(SPAN_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_gets_the_smallest_class_that_holds_it() {
        for bytes in 0..=SMALL_BYTES_MAX {
            let class = class_of(bytes);
            assert!(class_bytes(class) >= bytes);
            assert!(class == 0 || class_bytes(class - 1) < bytes, "{bytes}");
        }
    }

    #[test]
    fn classes_are_aligned_and_waste_little() {
        for class in 0..CLASSES {
            let bytes = class_bytes(class);
            assert_eq!(bytes % BLOCK_ALIGN, 0);
            assert!(bytes <= FINE_BYTES_MAX || bytes.is_multiple_of(CLASS_ALIGN_MAX));
            assert!(
                SPAN_BYTES - class_blocks(class) * bytes <= SPAN_BYTES / 32,
                "{bytes}"
            );
        }
        for align in [16, 32, 64] {
            for bytes in (align..=SMALL_BYTES_MAX).step_by(align) {
                assert_eq!(class_bytes(class_of(bytes)) % align, 0, "{bytes}");
            }
        }
        assert_eq!(block_bytes(SMALL_BYTES_MAX + 1), SPAN_BYTES);
        assert_eq!(block_bytes(3 * SPAN_BYTES), 3 * SPAN_BYTES);
    }
}
