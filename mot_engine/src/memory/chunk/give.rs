//! Giving spans and runs back to the chunk pool, and free chunks' pages back to the kernel.
//!
//! Contract: as in the module above. A chunk that becomes wholly free leaves its class and its use
//! behind at once.

use super::{CHUNK_BYTES, ChunkState, SPAN_BYTES, SPANS_PER_CHUNK, mask};
use crate::memory::arena::Memory;
use crate::memory::latch::LatchGuard;
use crate::memory::placement::Kernel;
use crate::memory::slab::SPAN_IS_RUN;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

/// Free chunks per pool that keep their pages (64 MiB): churn shall not fault the same pages in
/// again and again. Reserved huge pages are all kept.
const FREE_CHUNKS_RESIDENT_MAX: u32 = 32;

impl Memory {
    /// Gives a block from `take_large` back.
    pub(in crate::memory) fn give_large(self, kernel: &dyn Kernel, at: NonNull<u8>, bytes: usize) {
        let span = self.span_of(at);
        let spans = bytes.div_ceil(SPAN_BYTES);
        debug_assert_eq!(
            self.at(span * SPAN_BYTES),
            at,
            "a large block starts with its span"
        );
        debug_assert_eq!(
            self.span(span).class(),
            SPAN_IS_RUN,
            "freed as large, was not"
        );
        debug_assert_eq!(
            self.span(span).run_spans(),
            spans,
            "freed with another size"
        );
        self.give_spans(kernel, span, spans);
    }

    /// Gives back what `take_spans` gave.
    pub(in crate::memory) fn give_spans(self, kernel: &dyn Kernel, first: usize, spans: usize) {
        let shared = &self.header().chunk_pool;
        let guard = shared.latch.lock();
        shared.spans_free.add(spans as u64);
        let chunk = first / SPANS_PER_CHUNK;
        if spans < SPANS_PER_CHUNK {
            if self.free_in_chunk(chunk, first % SPANS_PER_CHUNK, spans) {
                self.free_chunks(kernel, guard, chunk, 1);
            }
            return;
        }
        let whole = spans / SPANS_PER_CHUNK;
        debug_assert_eq!(self.chunk(chunk).state(), ChunkState::Run);
        debug_assert_eq!(
            self.chunk(chunk).run_chunks.get() as usize,
            whole,
            "freed with its size"
        );
        let rest = spans % SPANS_PER_CHUNK;
        let tail_is_free = rest > 0 && self.free_in_chunk(chunk + whole, 0, rest);
        self.free_chunks(kernel, guard, chunk, whole + usize::from(tail_is_free));
    }

    /// Marks spans of a chunk free; true if the chunk is now wholly free (and out of the partial
    /// list).
    fn free_in_chunk(self, chunk: usize, first: usize, spans: usize) -> bool {
        let meta = self.chunk(chunk);
        debug_assert_eq!(meta.state(), ChunkState::Spans);
        let freed = mask(first, spans);
        let before = meta.spans_free.get();
        debug_assert_eq!(before & freed, 0, "freed twice");
        meta.spans_free.set(before | freed);
        self.span(chunk * SPANS_PER_CHUNK + first).unmark();
        if before | freed == u32::MAX {
            self.partial_chunks(meta.pool()).clear(chunk);
            return true;
        }
        if before == 0 {
            self.partial_chunks(meta.pool()).set(chunk);
        }
        false
    }

    /// Puts wholly free chunks (adjacent, of one pool) back: resident while there are few such,
    /// else without pages.
    fn free_chunks(self, kernel: &dyn Kernel, guard: LatchGuard<'_>, first: usize, count: usize) {
        let shared = &self.header().chunk_pool;
        let pool = self.chunk(first).pool();
        let resident = &shared.resident[pool];
        let mut kept = 0;
        for chunk in first..first + count {
            debug_assert_eq!(self.chunk(chunk).pool(), pool);
            self.chunk(chunk).enter(ChunkState::Free, pool, 0);
            self.span(chunk * SPANS_PER_CHUNK).unmark();
            if resident.get() < FREE_CHUNKS_RESIDENT_MAX || self.keeps_pages() {
                resident.add(1);
                self.resident_chunks(pool).set(chunk);
                kept += 1;
            }
        }
        let (first, count) = (first + kept, count - kept);
        if count == 0 {
            return;
        }
        shared.in_transit.add(1);
        drop(guard);
        let at = self.at(first * CHUNK_BYTES);
        // SAFETY: the chunks are free and in no list, so nothing uses them.
        let given_back = unsafe { kernel.give_back(at, count * CHUNK_BYTES) };
        let guard = shared.latch.lock();
        shared.in_transit.sub(1);
        for chunk in first..first + count {
            if given_back.is_ok() {
                self.untouched_chunks().set(chunk);
            } else {
                // Still usable; merely more resident than wished.
                resident.add(1);
                self.resident_chunks(pool).set(chunk);
            }
        }
        drop(guard);
        if given_back.is_err() {
            shared.give_back_failures.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{
        ArenaOptions, Binding, HugePages, LinuxKernel, Memory, Purpose, Region, Urgency,
    };
    use std::cell::Cell;
    use std::io;
    use std::ptr::NonNull;
    use std::rc::Rc;

    /// Counts the bytes that are given back.
    #[derive(Clone, Default)]
    struct Counting(Rc<Cell<usize>>);

    impl Kernel for Counting {
        fn current_node(&self) -> u32 {
            LinuxKernel.current_node()
        }

        unsafe fn bind(&self, at: NonNull<u8>, bytes: usize, to: Binding<'_>) -> io::Result<()> {
            // SAFETY: the caller's promise is the same.
            unsafe { LinuxKernel.bind(at, bytes, to) }
        }

        unsafe fn give_back(&self, at: NonNull<u8>, bytes: usize) -> io::Result<()> {
            self.0.set(self.0.get() + bytes);
            // SAFETY: the caller's promise is the same.
            unsafe { LinuxKernel.give_back(at, bytes) }
        }

        unsafe fn populate(&self, at: NonNull<u8>, bytes: usize) -> io::Result<()> {
            // SAFETY: the caller's promise is the same.
            unsafe { LinuxKernel.populate(at, bytes) }
        }

        unsafe fn collapse(&self, at: NonNull<u8>, bytes: usize) -> io::Result<()> {
            // SAFETY: the caller's promise is the same.
            unsafe { LinuxKernel.collapse(at, bytes) }
        }
    }

    #[test]
    fn free_chunks_keep_reserved_huge_pages() {
        const CHUNKS: usize = 2 * FREE_CHUNKS_RESIDENT_MAX as usize;
        let bytes = 4 * CHUNKS * CHUNK_BYTES;
        let reserved = Region::create_as_if_reserved(bytes);
        let ordinary = Region::create(bytes, HugePages::Off).unwrap();
        for (region, gives) in [(reserved, false), (ordinary, true)] {
            // SAFETY: the region outlives the handle.
            let memory = unsafe { Memory::format(&region, &ArenaOptions::default()) }.unwrap();
            let kernel = Counting::default();
            let local = memory.join_with(Box::new(kernel.clone())).unwrap();
            let block_bytes = CHUNKS * CHUNK_BYTES;
            let at = local
                .allocate(block_bytes, Purpose::Rows, Urgency::Ordinary)
                .unwrap();
            // SAFETY: allocated above with this size.
            unsafe { local.free(at, block_bytes, Purpose::Rows) };
            local.flush();
            assert_eq!(kernel.0.get() > 0, gives);
        }
    }
}
