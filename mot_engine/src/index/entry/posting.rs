//! The row ids of a pointed key.
//!
//! A tree value is one row id, shifted left by one, or the address of a posting block with the low
//! bit set. A block has a fixed number of cells; a cell holds a row id or [`EMPTY`]. A row id is
//! near its home, which its number says: there may be as many as rows (an index that is dropped is
//! unique no more, and takes rows until the drop commits), and each is looked for before it is
//! added. Cells change only under the leaf's latch; readers load them one by one, which is enough:
//! what they find they check against the row itself. A block is retired, never freed, when the tree
//! stops pointing to it.

use crate::errors::EngineError;
use crate::ids::RowId;
use crate::memory::{LocalMemory, Purpose, Urgency};
use crate::sync::{AtomicU64, Ordering};
use std::ptr::NonNull;

const EMPTY: u64 = u64::MAX;
const BLOCK_TAG: u64 = 1;
/// Cells from a row id's home on, around the end, in which it may lie. A small block is one such
/// place.
const PLACE_CELLS: usize = 16;

/// A posting block.
#[derive(Copy, Clone)]
pub(crate) struct Posting(NonNull<AtomicU64>);

fn block_bytes(cells: usize) -> usize {
    ((cells + 1) * size_of::<u64>()).next_multiple_of(16)
}

impl Posting {
    /// A block with all cells empty.
    pub(crate) fn allocate(memory: &LocalMemory, cells: usize) -> Result<Posting, EngineError> {
        let block = memory.allocate(block_bytes(cells), Purpose::Index, Urgency::Ordinary)?;
        let words = block.cast::<AtomicU64>();
        // SAFETY: the block is ours and has a word for the count and one for each cell.
        unsafe {
            words.write(AtomicU64::new(cells as u64));
            for cell in 1..=cells {
                words.add(cell).write(AtomicU64::new(EMPTY));
            }
        }
        Ok(Posting(words))
    }

    /// The block of a tree value that has one.
    pub(crate) fn of(value: u64) -> Option<Posting> {
        (value & BLOCK_TAG != 0)
            .then(|| Posting(NonNull::new((value & !BLOCK_TAG) as *mut AtomicU64).expect("tagged")))
    }

    pub(crate) fn value(self) -> u64 {
        self.0.as_ptr() as u64 | BLOCK_TAG
    }

    pub(crate) fn cells<'a>(self) -> &'a [AtomicU64] {
        // SAFETY: a block has a count and as many cells; it is retired, not freed, so it lives
        // while the caller is pinned.
        unsafe {
            let count = self.0.as_ref().load(Ordering::Relaxed) as usize;
            std::slice::from_raw_parts(self.0.as_ptr().add(1), count)
        }
    }

    /// The cells, each a step.
    fn walk<'a>(self) -> impl Iterator<Item = &'a AtomicU64> {
        self.cells().iter().inspect(|_| crate::steps::step())
    }

    /// The cells in which a row id may lie.
    fn place<'a>(self, row_id: RowId) -> impl Iterator<Item = &'a AtomicU64> {
        let cells = self.cells();
        let spread = row_id.0.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let home = ((u128::from(spread) * cells.len() as u128) >> u64::BITS) as usize;
        let (before, after) = cells.split_at(home);
        after
            .iter()
            .chain(before)
            .take(PLACE_CELLS)
            .inspect(|_| crate::steps::step())
    }

    /// The cell of the row id's place that holds this.
    fn cell<'a>(self, row_id: RowId, held: u64) -> Option<&'a AtomicU64> {
        self.place(row_id)
            .find(|cell| cell.load(Ordering::Relaxed) == held)
    }

    /// Whether it holds the row id: without the leaf's latch, at some moment of the call.
    pub(crate) fn contains(self, row_id: RowId) -> bool {
        self.cell(row_id, row_id.0).is_some()
    }

    /// Puts a row id it does not hold into an empty cell; `false` if there is none where it may
    /// lie. Under the leaf's latch, or unpublished.
    pub(crate) fn add(self, row_id: RowId) -> bool {
        let empty = self.cell(row_id, EMPTY);
        empty
            .inspect(|cell| cell.store(row_id.0, Ordering::Release))
            .is_some()
    }

    /// Empties the row id's cell. Under the leaf's latch.
    pub(crate) fn remove(self, row_id: RowId) -> bool {
        let its = self.cell(row_id, row_id.0);
        its.inspect(|cell| cell.store(EMPTY, Ordering::Release))
            .is_some()
    }

    /// Its row ids. Cells change meanwhile, unless the leaf is latched.
    pub(crate) fn row_ids(self) -> impl Iterator<Item = RowId> {
        self.walk()
            .map(|cell| cell.load(Ordering::Acquire))
            .filter(|row_id| *row_id != EMPTY)
            .map(RowId)
    }

    /// Its first row ids, if it has as many.
    pub(crate) fn first_two(self) -> [Option<RowId>; 2] {
        let mut row_ids = self.row_ids();
        std::array::from_fn(|_| row_ids.next())
    }

    /// # Safety
    /// Never published.
    pub(crate) unsafe fn free(self, memory: &LocalMemory) {
        // SAFETY: allocated with these bytes; unpublished (caller).
        unsafe {
            memory.free(
                self.0.cast(),
                block_bytes(self.cells().len()),
                Purpose::Index,
            )
        };
    }

    /// # Safety
    /// No tree value names it any more.
    pub(crate) unsafe fn retire(self, memory: &LocalMemory) {
        // SAFETY: allocated with these bytes; unreachable for pins from now on (caller).
        unsafe {
            memory.retire(
                self.0.cast(),
                block_bytes(self.cells().len()),
                Purpose::Index,
            )
        };
    }
}

/// Cells for so many row ids, most probably: where they do not find room, twice as many are taken.
pub(crate) fn cells_for(row_ids: usize) -> usize {
    row_ids.next_power_of_two().max(3)
}

/// A tree value with one row id.
pub(crate) fn inline_value(row_id: RowId) -> u64 {
    row_id.0 << 1
}

/// Calls `visit` with each row id of a tree value.
pub(crate) fn row_ids_of(value: u64, mut visit: impl FnMut(RowId)) {
    match Posting::of(value) {
        None => visit(RowId(value >> 1)),
        Some(block) => block.row_ids().for_each(visit),
    }
}

/// Whether a tree value has this row id.
pub(crate) fn has_row_id(value: u64, row_id: RowId) -> bool {
    match Posting::of(value) {
        None => value == inline_value(row_id),
        Some(block) => block.contains(row_id),
    }
}

/// The row id of a tree value that has one and no block.
pub(crate) fn only_row_id(value: u64) -> Option<RowId> {
    (value & BLOCK_TAG == 0).then_some(RowId(value >> 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// A block of the test's own.
    fn block(words: &mut [u64]) -> Posting {
        words.fill(EMPTY);
        words[0] = words.len() as u64 - 1;
        Posting(NonNull::from(&mut words[0]).cast())
    }

    fn held(block: Posting) -> BTreeSet<u64> {
        let row_ids: Vec<u64> = block.row_ids().map(|row_id| row_id.0).collect();
        let set: BTreeSet<u64> = row_ids.iter().copied().collect();
        assert_eq!(set.len(), row_ids.len(), "a row id lies there twice");
        set
    }

    /// Row ids of all kinds come and go: what was added is there, once, until it is removed; small
    /// blocks take as many as they have cells, large ones more than half as many.
    #[test]
    fn row_ids_come_and_go() {
        for cells in [3, 4, 8, 16, 32, 4096] {
            for stride in [1, 7, 1024, 1 << 20] {
                let mut words = vec![0; cells + 1];
                let block = block(&mut words);
                let mut expected = BTreeSet::new();
                let mut row_id = 5;
                while expected.len() < cells && block.add(RowId(row_id)) {
                    expected.insert(row_id);
                    row_id += stride;
                }
                let least = if cells <= PLACE_CELLS {
                    cells
                } else {
                    cells / 2 + 1
                };
                assert!(expected.len() >= least, "{} of {cells}", expected.len());
                assert_eq!(held(block), expected);
                for gone in expected.clone().into_iter().step_by(3) {
                    assert!(block.contains(RowId(gone)) && block.remove(RowId(gone)));
                    assert!(!block.contains(RowId(gone)) && !block.remove(RowId(gone)));
                    expected.remove(&gone);
                    if gone % 2 == 0 {
                        assert!(block.add(RowId(gone)), "its cell is empty");
                        expected.insert(gone);
                    }
                    assert_eq!(block.first_two()[0].is_some(), !expected.is_empty());
                }
                assert_eq!(held(block), expected);
            }
        }
    }
}
