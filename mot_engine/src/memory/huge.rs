//! Huge pages for chunks: each becomes one when it is taken out of those whose pages the kernel
//! has.
//!
//! A row is anywhere in the arena, so with pages of 4 KiB reading one misses the processor's
//! translations and the line of the page table besides the row; the table is each process's own,
//! and each process takes the faults that fill it. A chunk is 2 MiB and aligned: as one huge page
//! it takes one fault in each process, and all of a process's table for a gigabyte is one page.
//!
//! - The kernel is asked outside the arena's latches, in transit, when the chunk has no pages yet:
//!   nothing is copied. To clear the chunk at once costs less than its 512 faults, but it is one
//!   wait of 0.5 to 26 ms (the last on a machine whose memory the hypervisor has to find).
//! - A node of an index is allocated under the latches of the leaf and perhaps of all above it, and
//!   other writers would wait as long. So an allocation of those does not ask (`allocate_no_wait`),
//!   but an index build does. One free chunk is kept that is huge already: the taker of the last
//!   one leaves word, and the next that needs memory for a row makes another (`make_ready`). Of
//!   chunks that indexes take faster than that some get ordinary pages.
//! - A refusal costs speed only: the chunk stays with ordinary pages. Where memory is too
//!   fragmented the search is not cheap: after a refusal the next [`PASSED_OVER`] chunks do not
//!   ask. No refusal is taken for the last: the kernel says EINVAL when it does not know the
//!   request, but also when the file system has, or its limits leave, no room for the rest of the
//!   chunk at the moment.
//! - The first page is touched before: the kernel refuses a chunk without any, and takes the node
//!   where the pages lie, which the chunk's binding decides. A huge page is on one node: with
//!   several, chunks of the interleaved pool keep ordinary pages.

use super::arena::Memory;
use super::chunk::CHUNK_BYTES;
use super::placement::Kernel;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// Chunks that do not ask after one that was refused.
const PASSED_OVER: u32 = 32;

/// Enough to have a page, whatever its size; the kernel rounds up.
const FIRST_PAGE_BYTES: usize = 4096;

/// In the arena's header. Zero: chunks have ordinary pages.
pub(super) struct Huge {
    wanted: AtomicU32,
    /// Chunks to pass over.
    passes: AtomicU32,
    /// Not zero: no free chunk has its pages.
    lacks_ready: AtomicU32,
}

impl Huge {
    pub(super) fn format(&self, wanted: bool) {
        self.wanted.store(u32::from(wanted), Ordering::Relaxed);
        self.passes.store(0, Ordering::Relaxed);
        self.lacks_ready.store(u32::from(wanted), Ordering::Relaxed);
    }

    /// To be called under the pool's latch.
    pub(super) fn set_lacks_ready(&self, lacks: bool) {
        self.lacks_ready.store(u32::from(lacks), Ordering::Relaxed);
    }

    /// Whether to make a chunk ready: true for one of those that ask.
    fn takes_making_ready(&self) -> bool {
        self.lacks_ready.load(Ordering::Relaxed) != 0
            && self.lacks_ready.swap(0, Ordering::Relaxed) != 0
    }

    /// Whether to ask now.
    fn allows(&self) -> bool {
        let next = |passes: u32| passes.checked_sub(1);
        self.wanted.load(Ordering::Relaxed) != 0
            && self
                .passes
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, next)
                .is_err()
    }
}

impl Memory {
    /// Whether chunks are to become huge pages.
    pub(super) fn wants_huge_pages(self) -> bool {
        self.header().huge.wanted.load(Ordering::Relaxed) != 0
    }

    /// Asks for a huge page for a chunk that is only ours and has no pages.
    pub(super) fn make_huge(self, kernel: &dyn Kernel, at: NonNull<u8>, pool: usize) {
        let huge = &self.header().huge;
        let is_spread = self.pools() > 1 && pool == self.pools() - 1;
        if is_spread || !kernel.may_take_long() || !huge.allows() {
            return;
        }
        // SAFETY: a chunk of our region, and its first page.
        let collapsed = unsafe {
            kernel
                .populate(at, FIRST_PAGE_BYTES)
                .and_then(|()| kernel.collapse(at, CHUNK_BYTES))
        };
        if collapsed.is_err() {
            huge.passes.store(PASSED_OVER, Ordering::Relaxed);
        }
    }

    /// Makes a free chunk huge before a caller takes it that cannot ask. With several
    /// nodes those have the interleaved pool, where nothing is huge.
    #[inline]
    pub(super) fn keep_ready(self, kernel: &dyn Kernel) {
        if self.header().huge.takes_making_ready() && self.pools() == 1 && self.wants_huge_pages() {
            self.make_ready(kernel, 0);
        }
    }
}
