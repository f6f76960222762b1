//! From a row id to its anchor in two or three loads.
//!
//! The first segment has 64 anchors, each further one as many as all before it, up to 128 Ki (2
//! MiB); from there on segments are of that size and their addresses lie in pages that are
//! allocated when first needed. So a small table costs 1 KiB and a large one 16 bytes a row.
//!
//! Segments are zeroed before they are published and live as long as the table; a reader needs no
//! pin for them, only the table.
//!
//! Beside the anchors is a bit for each [`GROUP_ROW_IDS`] row ids: some row of the group may have
//! something to reclaim. A process that leaves such a thing behind sets the bit afterwards; the
//! sweeper clears it first and reads the rows then, so no work is lost between the two.
//!
//! And a number for each [`RANGE_ROW_IDS`] row ids: the checkpoint round at which a row of them was
//! last logged (checkpoint/README.md).

use crate::errors::EngineError;
use crate::ids::RowId;
use crate::memory::{LocalMemory, Purpose, Urgency};
use crate::row::Anchor;
use crate::sync::{AtomicU64, Ordering, fence};
use std::ptr::NonNull;

/// Anchors of the first segment.
const FIRST: u64 = 64;
/// Anchors of the largest segments: 2 MiB of them.
pub(crate) const SEGMENT_ROW_IDS: u64 = 128 << 10;
/// Segments that grow: 64, 64, 128, 256, ... 65536 anchors.
const GROWING: usize = (SEGMENT_ROW_IDS / FIRST).trailing_zeros() as usize + 1;
/// Large segments named by one page.
const PAGE_SEGMENTS: usize = 2048;
/// Pages: 64 x 2048 x 128 Ki = 17 thousand million rows a table.
const PAGES: usize = 64;

/// A page's entry for one large segment.
#[repr(C)]
struct Large {
    segment: AtomicU64,
    /// The segment's [`Marks`]. Never 0 once `segment` is not.
    marks: AtomicU64,
}

const PAGE_BYTES: usize = PAGE_SEGMENTS * size_of::<Large>();

/// Row ids that share a dirty bit: two cache lines of anchors. Changes lie scattered over large
/// tables, and each row beside a changed one that the sweeper reads is memory to be waited for.
pub(crate) const GROUP_ROW_IDS: u64 = 8;
/// Row ids whose dirty bits share a word.
pub(crate) const DIRTY_WORD_ROW_IDS: u64 = GROUP_ROW_IDS * 64;
/// Words of dirty bits for as many row ids as a large segment has, and for all growing segments
/// together.
const DIRTY_WORDS: usize = (SEGMENT_ROW_IDS / DIRTY_WORD_ROW_IDS) as usize;

/// Row ids of a range, the unit in which checkpoints write rows or leave them: a few MiB. Tests
/// have few rows and want many ranges.
pub(crate) const RANGE_ROW_IDS: u64 = if cfg!(test) { 8 } else { 16 << 10 };
/// Ranges of a large segment, and of all growing ones together. In tests several share a number,
/// and so are changed together.
const RANGES: usize = 8;

const _: () = assert!(cfg!(test) || RANGE_ROW_IDS * RANGES as u64 == SEGMENT_ROW_IDS);

/// What is known of a segment's rows.
#[repr(C)]
struct Marks {
    dirty: [AtomicU64; DIRTY_WORDS],
    /// The checkpoint round of each range's last logged change.
    changed: [AtomicU64; RANGES],
}

const MARKS_BYTES: usize = size_of::<Marks>();

/// The directory's fixed part, inside the table.
#[repr(C)]
pub(crate) struct Directory {
    growing: [AtomicU64; GROWING],
    /// Marks of the growing segments.
    marks: Marks,
    pages: [AtomicU64; PAGES],
}

/// Row ids a table can have.
pub(crate) const DIRECTORY_ROW_IDS_MAX: u64 = PAGES as u64 * PAGE_SEGMENTS as u64 * SEGMENT_ROW_IDS;

/// Segment number among the growing ones, its first row id and its length.
fn growing(row_id: u64) -> (usize, u64, u64) {
    if row_id < FIRST {
        return (0, 0, FIRST);
    }
    let length = 1 << (63 - row_id.leading_zeros());
    (
        (length / FIRST).trailing_zeros() as usize + 1,
        length,
        length,
    )
}

impl Directory {
    /// The anchor of a row id, if its segment exists.
    #[inline]
    pub(crate) fn anchor(&self, row_id: RowId) -> Option<&Anchor> {
        let (segment, offset) = if row_id.0 < SEGMENT_ROW_IDS {
            let (number, first, _) = growing(row_id.0);
            (
                self.growing[number].load(Ordering::Acquire),
                row_id.0 - first,
            )
        } else {
            let large = self.large(row_id)?;
            (
                large.segment.load(Ordering::Acquire),
                row_id.0 % SEGMENT_ROW_IDS,
            )
        };
        let segment = NonNull::new(segment as *mut Anchor)?;
        // SAFETY: a published segment holds an anchor for each of its row ids and lives as long as
        // the table.
        Some(unsafe { segment.add(offset as usize).as_ref() })
    }

    /// The anchors from a row id on that lie one behind the other; none if the row id has no
    /// segment.
    #[inline]
    pub(crate) fn run(&self, row_id: RowId) -> &[Anchor] {
        let left = if row_id.0 < SEGMENT_ROW_IDS {
            let (_, first, length) = growing(row_id.0);
            first + length - row_id.0
        } else {
            SEGMENT_ROW_IDS - row_id.0 % SEGMENT_ROW_IDS
        };
        match self.anchor(row_id) {
            // SAFETY: the rest of a published segment, which lives as long as the table.
            Some(anchor) => unsafe { std::slice::from_raw_parts(anchor, left as usize) },
            None => &[],
        }
    }

    /// The end of the last row id before `end` that has a segment; 0 if none has.
    pub(crate) fn end_of_segments(&self, mut end: u64) -> u64 {
        while let Some(last) = end.checked_sub(1)
            && self.anchor(RowId(last)).is_none()
        {
            end = if last < SEGMENT_ROW_IDS {
                growing(last).1
            } else {
                last - last % SEGMENT_ROW_IDS
            };
        }
        end
    }

    fn large(&self, row_id: RowId) -> Option<&Large> {
        let number = (row_id.0 / SEGMENT_ROW_IDS) as usize;
        let page = self.pages.get(number / PAGE_SEGMENTS)?;
        let page = NonNull::new(page.load(Ordering::Acquire) as *mut Large)?;
        // SAFETY: a published page has PAGE_SEGMENTS entries and lives as long as the table.
        Some(unsafe { page.add(number % PAGE_SEGMENTS).as_ref() })
    }

    /// The marks of the row id's segment. The row id has an anchor.
    fn marks(&self, row_id: RowId) -> Option<&Marks> {
        if row_id.0 < SEGMENT_ROW_IDS {
            return Some(&self.marks);
        }
        let marks = self.large(row_id)?.marks.load(Ordering::Acquire);
        // SAFETY: published marks live as long as the table.
        NonNull::new(marks as *mut Marks).map(|marks| unsafe { marks.as_ref() })
    }

    /// The word with the dirty bit of the row id's group. The row id has an anchor.
    fn dirty_word(&self, row_id: RowId) -> Option<&AtomicU64> {
        let word = (row_id.0 / DIRTY_WORD_ROW_IDS) as usize % DIRTY_WORDS;
        Some(&self.marks(row_id)?.dirty[word])
    }

    /// The number that says at which round a row of the row id's range was last logged. None: it
    /// has no segment, so no rows.
    pub(crate) fn changed(&self, row_id: RowId) -> Option<&AtomicU64> {
        let range = (row_id.0 / RANGE_ROW_IDS) as usize % RANGES;
        Some(&self.marks(row_id)?.changed[range])
    }

    /// Notes that the row id's group may have something to reclaim. Called after that something was
    /// left behind.
    pub(crate) fn set_dirty(&self, row_id: RowId) {
        order_rows_and_bits();
        if let Some(word) = self.dirty_word(row_id) {
            let bit = 1 << (row_id.0 / GROUP_ROW_IDS % 64);
            if word.load(Ordering::Relaxed) & bit == 0 {
                word.fetch_or(bit, Ordering::AcqRel);
            }
        }
    }

    /// The dirty bits of the [`DIRTY_WORD_ROW_IDS`] row ids around `row_id`, examined and left.
    pub(crate) fn dirty(&self, row_id: RowId) -> u64 {
        let word = self.dirty_word(row_id);
        word.map_or(0, |word| word.load(Ordering::Relaxed))
    }

    /// Takes the dirty bits of the [`DIRTY_WORD_ROW_IDS`] row ids around `row_id`; the lowest bit
    /// is the lowest group.
    pub(crate) fn take_dirty(&self, row_id: RowId) -> u64 {
        match self.dirty_word(row_id) {
            Some(word) if word.load(Ordering::Relaxed) != 0 => {
                let bits = word.swap(0, Ordering::AcqRel);
                order_rows_and_bits();
                bits
            }
            _ => 0,
        }
    }

    /// Makes sure that the row id has an anchor. Racing calls are fine: one segment wins, the other
    /// is freed.
    pub(crate) fn ensure(
        &self,
        memory: &LocalMemory,
        row_id: RowId,
        urgency: Urgency,
    ) -> Result<(), EngineError> {
        if row_id.0 >= DIRECTORY_ROW_IDS_MAX {
            return Err(EngineError::TooManyRows {
                max: DIRECTORY_ROW_IDS_MAX,
            });
        }
        if row_id.0 < SEGMENT_ROW_IDS {
            let (number, _, length) = growing(row_id.0);
            return fill(
                memory,
                &self.growing[number],
                length as usize * size_of::<Anchor>(),
                urgency,
            );
        }
        let number = (row_id.0 / SEGMENT_ROW_IDS) as usize;
        fill(
            memory,
            &self.pages[number / PAGE_SEGMENTS],
            PAGE_BYTES,
            urgency,
        )?;
        let large = self.large(row_id).expect("the page was just made");
        fill(memory, &large.marks, MARKS_BYTES, urgency)?;
        fill(
            memory,
            &large.segment,
            SEGMENT_ROW_IDS as usize * size_of::<Anchor>(),
            urgency,
        )
    }

    /// Calls `visit` with each anchor of the row ids in `range`, in order; row ids without a
    /// segment are passed over.
    pub(crate) fn for_each(
        &self,
        range: std::ops::Range<u64>,
        mut visit: impl FnMut(RowId, &Anchor),
    ) {
        for row_id in range {
            if let Some(anchor) = self.anchor(RowId(row_id)) {
                visit(RowId(row_id), anchor);
            }
        }
    }

    /// Bytes of all segments and pages.
    pub(crate) fn bytes(&self) -> u64 {
        let mut bytes = 0;
        self.each_block(|_, block_bytes| bytes += block_bytes as u64);
        bytes
    }

    /// Gives all segments back.
    ///
    /// # Safety
    /// Nothing uses the table any more.
    pub(crate) unsafe fn free(&self, memory: &LocalMemory) {
        self.each_block(|block, bytes| {
            // SAFETY: each came from `fill` with these bytes; nothing uses the table (caller).
            unsafe { memory.free(block, bytes, Purpose::Anchors) };
        });
        for word in self.growing.iter().chain(&self.pages) {
            word.store(0, Ordering::Release);
        }
    }

    fn each_block(&self, mut visit: impl FnMut(NonNull<u8>, usize)) {
        for (number, word) in self.growing.iter().enumerate() {
            let length = if number == 0 {
                FIRST
            } else {
                FIRST << (number - 1)
            };
            if let Some(block) = NonNull::new(word.load(Ordering::Acquire) as *mut u8) {
                visit(block, length as usize * size_of::<Anchor>());
            }
        }
        for word in &self.pages {
            let Some(page) = NonNull::new(word.load(Ordering::Acquire) as *mut Large) else {
                continue;
            };
            for number in 0..PAGE_SEGMENTS {
                // SAFETY: a published page has PAGE_SEGMENTS entries.
                let large = unsafe { page.add(number).as_ref() };
                if let Some(block) = NonNull::new(large.segment.load(Ordering::Acquire) as *mut u8)
                {
                    visit(block, SEGMENT_ROW_IDS as usize * size_of::<Anchor>());
                }
                if let Some(block) = NonNull::new(large.marks.load(Ordering::Acquire) as *mut u8) {
                    visit(block, MARKS_BYTES);
                }
            }
            visit(page.cast(), PAGE_BYTES);
        }
    }
}

/// A fence between leaving something in a row and reading whether its bit is set, and between
/// clearing the bit and reading the row: one of the two must see the other. On x86-64 the locked
/// instructions that changed the row and the bit are such fences.
fn order_rows_and_bits() {
    if cfg!(not(target_arch = "x86_64")) {
        fence(Ordering::SeqCst);
    }
}

/// Puts a zeroed block into `word` if it is empty.
fn fill(
    memory: &LocalMemory,
    word: &AtomicU64,
    bytes: usize,
    urgency: Urgency,
) -> Result<(), EngineError> {
    if word.load(Ordering::Acquire) != 0 {
        return Ok(());
    }
    let block = memory.allocate(bytes, Purpose::Anchors, urgency)?;
    // SAFETY: the block is ours and has that many bytes.
    unsafe { block.write_bytes(0, bytes) };
    let address = block.as_ptr() as u64;
    if word
        .compare_exchange(0, address, Ordering::AcqRel, Ordering::Acquire)
        .is_err()
    {
        // SAFETY: never published.
        unsafe { memory.free(block, bytes, Purpose::Anchors) };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growing_segments_are_gapless() {
        let mut expected = 0;
        for number in 0..GROWING {
            let (found, first, length) = growing(expected);
            assert_eq!((found, first), (number, expected));
            assert_eq!(growing(expected + length - 1), (number, first, length));
            expected += length;
        }
        assert_eq!(expected, SEGMENT_ROW_IDS);
    }
}
