//! Taking spans and runs out of the chunk pool.
//!
//! Contract: as in the module above. A hole in a chunk that is cut already comes first, then a
//! fresh chunk (the pool's own, one without an owner, another pool's), then any hole anywhere. A
//! failure leaves everything as it was.

use super::{CHUNK_BYTES, ChunkState, SPAN_BYTES, SPANS_PER_CHUNK, mask};
use crate::memory::arena::{ArenaFull, Memory, Urgency};
use crate::memory::bitmap::BITS;
use crate::memory::latch::{LatchGuard, yield_processor};
use crate::memory::placement::{Kernel, binding_of};
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

/// Chunks looked through for a hole of several spans before a fresh chunk is cut.
const HOLE_CHUNKS_LOOKED_AT_MAX: usize = 64;

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
    /// Takes a block above the largest class, as whole spans.
    pub(in crate::memory) fn take_large(
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
            Ok(span) => {
                let at = self.at(span * SPAN_BYTES);
                self.fill(kernel, at, bytes);
                Ok(at)
            }
            Err(full) => Err(ArenaFull {
                requested: bytes as u64,
                ..full
            }),
        }
    }

    /// Takes `spans` contiguous spans, preferably of `pool`. The first span's number; its chunk
    /// knows its pool.
    pub(in crate::memory) fn take_spans(
        self,
        kernel: &dyn Kernel,
        spans: usize,
        pool: usize,
        urgency: Urgency,
    ) -> Result<usize, ArenaFull> {
        let shared = &self.header().chunk_pool;
        loop {
            let mut guard = shared.latch.lock();
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
            let mut refused = false;
            if let Some(chunk) = self.find_free_chunks(chunks, pool) {
                match self.cut(kernel, guard, chunk, spans, pool) {
                    Ok(()) => return Ok(chunk * SPANS_PER_CHUNK),
                    Err(relocked) => guard = relocked,
                }
                refused = true;
            }
            // No free chunk left, or no pages for one: any hole anywhere.
            let anywhere = (0..self.pools())
                .filter(|_| spans < SPANS_PER_CHUNK)
                .find_map(|pool| self.find_hole(spans, pool, usize::MAX));
            if let Some((chunk, first)) = anywhere {
                return Ok(self.take_from(chunk, first, spans));
            }
            let in_transit = shared.in_transit.get();
            drop(guard);
            if in_transit == 0 || refused {
                return Err(self.full(spans * SPAN_BYTES));
            }
            yield_processor();
        }
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

    /// First of so many adjacent free chunks: the pool's own first, then untouched ones, then
    /// any pool's.
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

    /// Takes free chunks out of their lists, makes them `pool`'s, and hands the first `spans` spans
    /// to the caller. The rest of the last chunk is cut into spans for others. Without pages for
    /// them they are free again.
    fn cut(
        self,
        kernel: &dyn Kernel,
        guard: LatchGuard<'static>,
        first: usize,
        spans: usize,
        pool: usize,
    ) -> Result<(), LatchGuard<'static>> {
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
            let mut chunks = first..first + spans.div_ceil(SPANS_PER_CHUNK);
            let placed = chunks
                .clone()
                .all(|chunk| self.place(kernel, chunk, pool).is_ok());
            if !placed {
                let at = self.at(first * CHUNK_BYTES);
                // SAFETY: the chunks were free and are in no list, so nothing uses them.
                if unsafe { kernel.give_back(at, chunks.len() * CHUNK_BYTES) }.is_err() {
                    shared.give_back_failures.fetch_add(1, Ordering::Relaxed);
                }
            }
            let guard = shared.latch.lock();
            shared.in_transit.sub(1);
            if !placed {
                self.chunk(first).run_chunks.set(0);
                for chunk in chunks.by_ref() {
                    self.chunk(chunk).enter(ChunkState::Free, pool, 0);
                    self.untouched_chunks().set(chunk);
                }
                shared.spans_free.add(spans as u64);
                return Err(guard);
            }
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
        Ok(())
    }

    /// Gives a free chunk its pages before it is taken, if none has them. Without room nothing has
    /// happened.
    #[cold]
    pub(in crate::memory) fn make_ready(self, kernel: &dyn Kernel, pool: usize) {
        let shared = &self.header().chunk_pool;
        let guard = shared.latch.lock();
        if shared.resident[pool].get() > 0
            || shared.spans_free.get() < self.reserve_spans() + SPANS_PER_CHUNK as u64
        {
            return;
        }
        let Some(chunk) = self.untouched_chunks().first() else {
            return;
        };
        let origin = self.take_out(chunk, pool);
        self.chunk(chunk)
            .enter(ChunkState::Free, pool, origin as u32);
        self.header().huge.set_lacks_ready(false);
        shared.in_transit.add(1);
        drop(guard);
        let placed = self.place(kernel, chunk, pool).is_ok();
        if !placed {
            let at = self.at(chunk * CHUNK_BYTES);
            // SAFETY: the chunk was free and is in no list, so nothing uses it.
            if unsafe { kernel.give_back(at, CHUNK_BYTES) }.is_err() {
                shared.give_back_failures.fetch_add(1, Ordering::Relaxed);
            }
        }
        let guard = shared.latch.lock();
        shared.in_transit.sub(1);
        self.chunk(chunk).enter(ChunkState::Free, pool, 0);
        if placed {
            shared.resident[pool].add(1);
            self.resident_chunks(pool).set(chunk);
        } else {
            self.untouched_chunks().set(chunk);
        }
        self.header().huge.set_lacks_ready(false);
        drop(guard);
    }

    /// Takes a free chunk out of the list it is in.
    fn take_out(self, chunk: usize, pool: usize) -> Origin {
        if self.untouched_chunks().contains(chunk) {
            self.untouched_chunks().clear(chunk);
            self.note_lack(pool);
            // One pool: the kernel places pages as they are touched.
            let is_ready = self.pools() == 1 && !self.populates() && !self.wants_huge_pages();
            return if is_ready {
                Origin::Ready
            } else {
                Origin::Untouched
            };
        }
        let holder = self.chunk(chunk).pool();
        debug_assert!(self.resident_chunks(holder).contains(chunk));
        self.resident_chunks(holder).clear(chunk);
        self.header().chunk_pool.resident[holder].sub(1);
        self.note_lack(pool);
        if holder == pool {
            Origin::Ready
        } else {
            Origin::Elsewhere
        }
    }

    fn note_lack(self, pool: usize) {
        if self.header().chunk_pool.resident[pool].get() == 0 {
            self.header().huge.set_lacks_ready(true);
        }
    }

    /// The system calls for a chunk that is in transit and only ours; `cut` left its origin in
    /// `spans_free`. Fails for want of pages alone.
    fn place(self, kernel: &dyn Kernel, chunk: usize, pool: usize) -> io::Result<()> {
        let shared = &self.header().chunk_pool;
        let at = self.at(chunk * CHUNK_BYTES);
        let origin = self.chunk(chunk).spans_free.get();
        if origin == Origin::Elsewhere as u32 && !self.keeps_pages() {
            // SAFETY: the chunk was free and is in no list, so nothing uses it.
            if unsafe { kernel.give_back(at, CHUNK_BYTES) }.is_err() {
                shared.give_back_failures.fetch_add(1, Ordering::Relaxed);
            }
        }
        if origin == Origin::Ready as u32 {
            return Ok(());
        }
        if self.pools() > 1 {
            let (nodes, count) = self.nodes();
            // SAFETY: a chunk of our region.
            if unsafe { kernel.bind(at, CHUNK_BYTES, binding_of(pool, &nodes[..count])) }.is_err() {
                shared.bind_failures.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.make_huge(kernel, at, pool);
        if self.populates() {
            // SAFETY: a chunk of our region.
            unsafe { kernel.populate(at, CHUNK_BYTES)? };
        }
        Ok(())
    }
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
