//! Sorting that can be given up: piece by piece, merged as it is read.
//!
//! A sort of a whole table's keys takes seconds and cannot be left in the middle. So pieces of it are sorted, with a look at the user's
//! wishes between two of them, and whoever reads the entries in order merges the pieces with a heap of their first entries.

use std::cmp::Ordering;
use std::ops::Range;

/// Entries sorted at a stretch: some hundredths of a second.
pub(super) const PIECE_ENTRIES: usize = 1 << 18;

/// Sorts each piece of `length` entries; asks before each whether to go on.
pub(super) fn sort_pieces<T, E>(
    entries: &mut [T],
    length: usize,
    compare: impl Fn(&T, &T) -> Ordering,
    mut go_on: impl FnMut() -> Result<(), E>,
) -> Result<(), E> {
    for piece in entries.chunks_mut(length) {
        go_on()?;
        piece.sort_unstable_by(&compare);
    }
    Ok(())
}

/// The positions of entries sorted by [`sort_pieces`], in the order of the whole.
pub(super) struct Merged<'a, T, F> {
    entries: &'a [T],
    compare: F,
    /// What is left of each piece, as a heap: the one with the least first entry comes first.
    pieces: Vec<Range<usize>>,
}

impl<'a, T, F: Fn(&T, &T) -> Ordering> Merged<'a, T, F> {
    pub(super) fn new(entries: &'a [T], length: usize, compare: F) -> Self {
        let pieces = (0..entries.len())
            .step_by(length)
            .map(|from| from..(from + length).min(entries.len()))
            .collect();
        let mut merged = Merged {
            entries,
            compare,
            pieces,
        };
        for parent in (0..merged.pieces.len() / 2).rev() {
            merged.sift_down(parent);
        }
        merged
    }

    fn is_less(&self, a: usize, b: usize) -> bool {
        let first = |piece: usize| &self.entries[self.pieces[piece].start];
        (self.compare)(first(a), first(b)).is_lt()
    }

    fn sift_down(&mut self, mut parent: usize) {
        loop {
            let left = 2 * parent + 1;
            if left >= self.pieces.len() {
                return;
            }
            let right = left + 1;
            let child = if right < self.pieces.len() && self.is_less(right, left) {
                right
            } else {
                left
            };
            if !self.is_less(child, parent) {
                return;
            }
            self.pieces.swap(parent, child);
            parent = child;
        }
    }
}

impl<T, F: Fn(&T, &T) -> Ordering> Iterator for Merged<'_, T, F> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let least = self.pieces.first_mut()?;
        let position = least.next()?;
        if least.start == least.end {
            self.pieces.swap_remove(0);
        }
        self.sift_down(0);
        Some(position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(count: u64) -> Vec<u64> {
        (0..count)
            .map(|n| n.wrapping_mul(2654435761) % 1009)
            .collect()
    }

    #[test]
    fn merged_pieces_are_in_the_order_of_the_whole() {
        for count in [0, 1, 2, 7, 8, 9, 63, 64, 65, 1000] {
            for length in [1, 2, 8, 64, 1000] {
                let mut pieces = numbers(count);
                sort_pieces(&mut pieces, length, u64::cmp, || Ok::<_, ()>(())).unwrap();
                let merged: Vec<u64> = Merged::new(&pieces, length, u64::cmp)
                    .map(|at| pieces[at])
                    .collect();
                let mut whole = numbers(count);
                whole.sort_unstable();
                assert_eq!(merged, whole, "{count} entries in pieces of {length}");
            }
        }
    }

    #[test]
    fn sorting_ends_when_asked_to() {
        let mut left = 3;
        let outcome = sort_pieces(&mut numbers(100), 8, u64::cmp, || {
            left -= 1;
            if left == 0 { Err("enough") } else { Ok(()) }
        });
        assert_eq!(outcome, Err("enough"));
    }
}
