//! The chunk pool: 2 MiB chunks, the 64 KiB spans cut from them, and runs of either.
//!
//! Contract: one latch guards all of it; it is visited once per 64 KiB, so it need not scale further. A chunk is Free,
//! cut into Spans (a mask says which are free), part of a Run of whole chunks, or Header. A chunk all of whose spans
//! are free is Free again at once. Free chunks keep their pages up to [`FREE_CHUNKS_RESIDENT_MAX`] a pool; the others'
//! pages go back to the kernel. System calls (binding, giving back) are made outside the latch on chunks that are in
//! no list; `in_transit` counts those, and a taker who finds nothing meanwhile tries again rather than fail.
//! `spans_free` counts every free span, those in transit included.

use super::arena::{ArenaFull, Memory, Urgency};
use super::bitmap::{BITS, Bitmap};
use super::latch::{Latch, LatchGuard, yield_processor};
use super::placement::{Kernel, POOLS_MAX, binding_of};
use super::slab::SPAN_IS_RUN;
use super::word::{Word32, Word64};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// A chunk: the size of a huge page, and the unit of placement and of giving memory back.
pub const CHUNK_BYTES: usize = 2 << 20;
/// A span: the unit that a size class or a larger block takes; 83 classes hold at most 5.2 MiB half used.
pub const SPAN_BYTES: usize = 64 << 10;
/// One bit of a chunk's mask each.
pub(super) const SPANS_PER_CHUNK: usize = CHUNK_BYTES / SPAN_BYTES;
const _: () = assert!(SPANS_PER_CHUNK == u32::BITS as usize);

/// Free chunks per pool that keep their pages (64 MiB): churn shall not fault the same pages in again and again.
pub(super) const FREE_CHUNKS_RESIDENT_MAX: u32 = 32;

/// Chunks looked through for a hole of several spans before a fresh chunk is cut.
const HOLE_CHUNKS_LOOKED_AT_MAX: usize = 64;

/// Bitmaps of chunks: free and resident per pool, with free spans per pool, free and untouched.
const BITMAPS_MAX: usize = 2 * POOLS_MAX + 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum ChunkState {
    Free = 0,
    Header = 1,
    Spans = 2,
    Run = 3,
}

/// One chunk in the directory.
#[repr(C)]
pub(super) struct ChunkMeta {
    state: Word32,
    /// Whose chunk it is, while in use or free and resident.
    pool: Word32,
    /// Spans: which of them are free.
    spans_free: Word32,
    /// First chunk of a run: how many chunks the run has.
    run_chunks: Word32,
}
const _: () = assert!(size_of::<ChunkMeta>() == 16);

impl ChunkMeta {
    pub(super) fn state(&self) -> ChunkState {
        match self.state.get() {
            1 => ChunkState::Header,
            2 => ChunkState::Spans,
            3 => ChunkState::Run,
            _ => ChunkState::Free,
        }
    }

    fn enter(&self, state: ChunkState, pool: usize, spans_free: u32) {
        self.state.set(state as u32);
        self.pool.set(pool as u32);
        self.spans_free.set(spans_free);
        self.run_chunks.set(0);
    }

    pub(super) fn pool(&self) -> usize {
        self.pool.get() as usize
    }
}

/// The pool's part of the header.
#[repr(C, align(128))]
pub(super) struct ChunkPool {
    latch: Latch,
    in_transit: Word32,
    pub(super) spans_free: Word64,
    resident: [Word32; POOLS_MAX],
    hints: [Word32; BITMAPS_MAX],
    pub(super) bind_failures: AtomicU64,
    pub(super) give_back_failures: AtomicU64,
}

/// Where a free chunk was found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// Its pages, if any, are where they should be.
    Ready,
    /// No pages; to be bound.
    Untouched,
    /// Resident in another pool: pages to be given back, then bound.
    Elsewhere,
}

impl Memory {
    /// Bytes of all bitmaps.
    pub(super) fn bitmap_bytes(self) -> usize {
        (2 * self.pools() + 1) * self.chunks().div_ceil(BITS) * size_of::<Word64>()
    }

    fn bitmap(self, number: usize) -> Bitmap<'static> {
        let words = self.chunks().div_ceil(BITS);
        Bitmap {
            words: &self.bitmap_words()[number * words..][..words],
            hint: &self.header().chunk_pool.hints[number],
        }
    }

    /// Free chunks without pages.
    pub(super) fn untouched_chunks(self) -> Bitmap<'static> {
        self.bitmap(0)
    }

    /// A pool's free chunks with pages.
    pub(super) fn resident_chunks(self, pool: usize) -> Bitmap<'static> {
        self.bitmap(1 + 2 * pool)
    }

    /// A pool's chunks that have free spans (and used ones).
    fn partial_chunks(self, pool: usize) -> Bitmap<'static> {
        self.bitmap(2 + 2 * pool)
    }

    /// Called once by `format`: everything behind the header's spans is free.
    pub(super) fn format_chunks(self, header_spans: usize) {
        let full = header_spans / SPANS_PER_CHUNK;
        let rest = header_spans % SPANS_PER_CHUNK;
        for chunk in 0..full {
            self.chunk(chunk).enter(ChunkState::Header, 0, 0);
        }
        let mut first_free = full;
        if rest > 0 {
            self.chunk(full).enter(ChunkState::Spans, 0, !mask(0, rest));
            self.partial_chunks(0).set(full);
            first_free += 1;
        }
        for chunk in first_free..self.chunks() {
            self.untouched_chunks().set(chunk);
        }
        let spans = self.chunks() * SPANS_PER_CHUNK - header_spans;
        self.header().chunk_pool.spans_free.set(spans as u64);
    }

    /// Takes `spans` contiguous spans, preferably of `pool`. The first span's number; its chunk knows its pool.
    pub(super) fn take_spans(
        self,
        kernel: &dyn Kernel,
        spans: usize,
        pool: usize,
        urgency: Urgency,
    ) -> Result<usize, ArenaFull> {
        let shared = &self.header().chunk_pool;
        loop {
            let guard = shared.latch.lock();
            let kept = if urgency == Urgency::Ordinary {
                self.reserve_spans()
            } else {
                0
            };
            if shared.spans_free.get() < spans as u64 + kept {
                drop(guard);
                return Err(self.full(spans * SPAN_BYTES));
            }
            let found = if spans < SPANS_PER_CHUNK {
                self.find_hole(spans, pool, HOLE_CHUNKS_LOOKED_AT_MAX)
            } else {
                None
            };
            if let Some((chunk, first)) = found {
                return Ok(self.take_from(chunk, first, spans));
            }
            let chunks = spans.div_ceil(SPANS_PER_CHUNK);
            if let Some(chunk) = self.find_free_chunks(chunks, pool) {
                self.cut(kernel, guard, chunk, spans, pool);
                return Ok(chunk * SPANS_PER_CHUNK);
            }
            // No free chunk left: any hole anywhere.
            let anywhere = (0..self.pools())
                .filter(|_| spans < SPANS_PER_CHUNK)
                .find_map(|pool| self.find_hole(spans, pool, usize::MAX));
            if let Some((chunk, first)) = anywhere {
                return Ok(self.take_from(chunk, first, spans));
            }
            let in_transit = shared.in_transit.get();
            drop(guard);
            if in_transit == 0 {
                return Err(self.full(spans * SPAN_BYTES));
            }
            yield_processor();
        }
    }

    /// Gives back what `take_spans` gave.
    pub(super) fn give_spans(self, kernel: &dyn Kernel, first: usize, spans: usize) {
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

    /// First chunk of `pool`, of the first `looks` that have free spans, with a hole of so many.
    fn find_hole(self, spans: usize, pool: usize, looks: usize) -> Option<(usize, usize)> {
        self.partial_chunks(pool)
            .iter()
            .take(looks)
            .find_map(|chunk| {
                let first = hole(self.chunk(chunk).spans_free.get(), spans)?;
                Some((chunk, first))
            })
    }

    fn take_from(self, chunk: usize, first: usize, spans: usize) -> usize {
        let meta = self.chunk(chunk);
        let left = meta.spans_free.get() & !mask(first, spans);
        meta.spans_free.set(left);
        if left == 0 {
            self.partial_chunks(meta.pool()).clear(chunk);
        }
        self.header().chunk_pool.spans_free.sub(spans as u64);
        let span = chunk * SPANS_PER_CHUNK + first;
        self.span(span).mark_run(spans);
        span
    }

    /// First of so many adjacent free chunks: the pool's own first, then untouched ones, then anybody's.
    fn find_free_chunks(self, chunks: usize, pool: usize) -> Option<usize> {
        if chunks == 1 {
            let own = self.resident_chunks(pool).first();
            let untouched = || self.untouched_chunks().first();
            let anybodys =
                || (0..self.pools()).find_map(|other| self.resident_chunks(other).first());
            return own.or_else(untouched).or_else(anybodys);
        }
        let mut run = 0;
        for word in 0..self.chunks().div_ceil(BITS) {
            // Chunks in transit are in no bitmap, so this is exactly what may be taken.
            let free = (0..self.pools())
                .map(|pool| self.resident_chunks(pool).words[word].get())
                .fold(self.untouched_chunks().words[word].get(), |all, one| {
                    all | one
                });
            if free == 0 {
                run = 0;
                continue;
            }
            for bit in 0..BITS {
                run = if free >> bit & 1 == 1 { run + 1 } else { 0 };
                if run == chunks {
                    return Some(word * BITS + bit + 1 - chunks);
                }
            }
        }
        None
    }

    /// Takes free chunks out of their lists, makes them `pool`'s, and hands the first `spans` spans to the caller. The
    /// rest of the last chunk is cut into spans for others.
    fn cut(
        self,
        kernel: &dyn Kernel,
        guard: LatchGuard<'static>,
        first: usize,
        spans: usize,
        pool: usize,
    ) {
        let shared = &self.header().chunk_pool;
        let whole = spans / SPANS_PER_CHUNK;
        let rest = spans % SPANS_PER_CHUNK;
        let mut work = false;
        for chunk in first..first + spans.div_ceil(SPANS_PER_CHUNK) {
            let meta = self.chunk(chunk);
            let origin = self.take_out(chunk, pool);
            meta.enter(ChunkState::Run, pool, origin as u32);
            work |= origin != Origin::Ready;
        }
        self.chunk(first).run_chunks.set(whole as u32);
        shared.spans_free.sub(spans as u64);
        let guard = if work {
            shared.in_transit.add(1);
            drop(guard);
            for chunk in first..first + spans.div_ceil(SPANS_PER_CHUNK) {
                self.place(kernel, chunk, pool);
            }
            let guard = shared.latch.lock();
            shared.in_transit.sub(1);
            guard
        } else {
            guard
        };
        if rest > 0 {
            let tail = first + whole;
            self.chunk(tail)
                .enter(ChunkState::Spans, pool, !mask(0, rest));
            self.partial_chunks(pool).set(tail);
        }
        self.span(first * SPANS_PER_CHUNK).mark_run(spans);
        drop(guard);
    }

    /// Takes a free chunk out of the list it is in.
    fn take_out(self, chunk: usize, pool: usize) -> Origin {
        if self.untouched_chunks().contains(chunk) {
            self.untouched_chunks().clear(chunk);
            // One pool: the kernel places pages as they are touched.
            return if self.pools() == 1 {
                Origin::Ready
            } else {
                Origin::Untouched
            };
        }
        let holder = self.chunk(chunk).pool();
        debug_assert!(self.resident_chunks(holder).contains(chunk));
        self.resident_chunks(holder).clear(chunk);
        self.header().chunk_pool.resident[holder].sub(1);
        if holder == pool {
            Origin::Ready
        } else {
            Origin::Elsewhere
        }
    }

    /// The system calls for a chunk that is in transit and only ours; `cut` left its origin in `spans_free`.
    fn place(self, kernel: &dyn Kernel, chunk: usize, pool: usize) {
        let shared = &self.header().chunk_pool;
        let at = self.at(chunk * CHUNK_BYTES);
        let origin = self.chunk(chunk).spans_free.get();
        if origin == Origin::Elsewhere as u32 {
            // SAFETY: the chunk was free and is in no list, so nobody uses it.
            if unsafe { kernel.give_back(at, CHUNK_BYTES) }.is_err() {
                shared.give_back_failures.fetch_add(1, Ordering::Relaxed);
            }
        }
        if origin != Origin::Ready as u32 {
            let (nodes, count) = self.nodes();
            // SAFETY: a chunk of our region.
            if unsafe { kernel.bind(at, CHUNK_BYTES, binding_of(pool, &nodes[..count])) }.is_err() {
                shared.bind_failures.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Marks spans of a chunk free; true if the chunk is now wholly free (and out of the partial list).
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

    /// Puts wholly free chunks (adjacent, of one pool) back: resident while there are few such, else without pages.
    fn free_chunks(self, kernel: &dyn Kernel, guard: LatchGuard<'_>, first: usize, count: usize) {
        let shared = &self.header().chunk_pool;
        let pool = self.chunk(first).pool();
        let resident = &shared.resident[pool];
        let mut kept = 0;
        for chunk in first..first + count {
            debug_assert_eq!(self.chunk(chunk).pool(), pool);
            self.chunk(chunk).enter(ChunkState::Free, pool, 0);
            self.span(chunk * SPANS_PER_CHUNK).unmark();
            if resident.get() < FREE_CHUNKS_RESIDENT_MAX {
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
        // SAFETY: the chunks are free and in no list, so nobody uses them.
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

    /// The chunk a span lies in.
    pub(super) fn chunk_of_span(self, span: usize) -> &'static ChunkMeta {
        self.chunk(span / SPANS_PER_CHUNK)
    }

    /// Takes a block above the largest class, as whole spans.
    pub(super) fn take_large(
        self,
        kernel: &dyn Kernel,
        bytes: usize,
        pool: usize,
        urgency: Urgency,
    ) -> Result<NonNull<u8>, ArenaFull> {
        if bytes as u64 > self.arena_bytes_limit() {
            return Err(self.full(bytes));
        }
        match self.take_spans(kernel, bytes.div_ceil(SPAN_BYTES), pool, urgency) {
            Ok(span) => Ok(self.at(span * SPAN_BYTES)),
            Err(full) => Err(ArenaFull {
                requested: bytes as u64,
                ..full
            }),
        }
    }

    /// Gives a block from `take_large` back.
    pub(super) fn give_large(self, kernel: &dyn Kernel, at: NonNull<u8>, bytes: usize) {
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
}

/// `spans` one bits from bit `first` on; fewer than a chunk's.
fn mask(first: usize, spans: usize) -> u32 {
    debug_assert!(spans < SPANS_PER_CHUNK && first + spans <= SPANS_PER_CHUNK);
    ((1 << spans) - 1) << first
}

/// Lowest run of so many one bits.
fn hole(free: u32, spans: usize) -> Option<usize> {
    let mut starts = free;
    for _ in 1..spans {
        starts &= starts >> 1;
    }
    (starts != 0).then(|| starts.trailing_zeros() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_are_found() {
        assert_eq!(hole(u32::MAX, 31), Some(0));
        assert_eq!(hole(0b1110_0110, 3), Some(5));
        assert_eq!(hole(0b0110_0110, 3), None);
        assert_eq!(hole(0, 1), None);
        assert_eq!(hole(mask(1, 31), 31), Some(1));
        assert_eq!(mask(30, 2), 0xC000_0000);
    }
}
