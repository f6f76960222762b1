//! Gives process memory its pages before it is filled.
//!
//! Keys fill many MiB of fresh memory once. A page fault for each page costs more than sorting the
//! keys on it. The kernel gives many pages in one call for a fraction of that, and large ones where
//! it may.

use std::mem::MaybeUninit;

const PAGE_BYTES: usize = 4096;
/// The kernel's large pages.
const LARGE_PAGE_BYTES: usize = 2 << 20;
/// Less is not worth a call.
const FILLED_MIN: usize = 16 * PAGE_BYTES;

/// Gets `memory`, which will soon be filled, its pages. Only time is lost if the kernel refuses.
pub(super) fn prefault<T>(memory: &mut [MaybeUninit<T>]) {
    let range = memory.as_mut_ptr_range();
    let inner = |unit: usize| {
        let from = range.start.addr().next_multiple_of(unit);
        let to = range.end.addr() / unit * unit;
        (from, to.saturating_sub(from))
    };
    let advise = |(from, bytes): (usize, usize), advice: libc::c_int| {
        let at = range.start.with_addr(from).cast();
        // SAFETY: whole pages inside memory of the caller's own; neither advice changes what is
        // there.
        unsafe { libc::madvise(at, bytes, advice) };
    };
    let large = inner(LARGE_PAGE_BYTES);
    if large.1 > 0 {
        advise(large, libc::MADV_HUGEPAGE);
    }
    let pages = inner(PAGE_BYTES);
    if pages.1 >= FILLED_MIN {
        advise(pages, libc::MADV_POPULATE_WRITE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefaulting_changes_nothing_and_takes_any_length() {
        for count in [0, 1, FILLED_MIN / 8, 3 * LARGE_PAGE_BYTES / 8 + 5] {
            let mut numbers: Vec<u64> = Vec::with_capacity(count + 3);
            numbers.extend(0..3);
            prefault(numbers.spare_capacity_mut());
            numbers.extend(3..count as u64);
            assert!(numbers.iter().copied().eq(0..3.max(count as u64)));
        }
    }
}
