//! The chunk pool: 2 MiB chunks, the 64 KiB spans cut from them, and runs of either.
//!
//! Contract: one latch guards all of it; it is visited once per 64 KiB, so it need not scale
//! further. A chunk is Free, cut into Spans (a mask says which are free), part of a Run of whole
//! chunks, or Header. A chunk all of whose spans are free is Free again at once. Free chunks keep
//! their pages up to a limit (give.rs) a pool; the others' pages go back to the kernel. System
//! calls (binding, giving back) are made outside the latch on chunks that are in no list;
//! `in_transit` counts those, and a taker that finds nothing meanwhile tries again rather than
//! fail. `spans_free` counts every free span, those in transit included.

mod give;
mod take;

use super::arena::Memory;
use super::bitmap::{BITS, Bitmap};
use super::latch::Latch;
use super::placement::POOLS_MAX;
use super::word::{Word32, Word64};
use std::sync::atomic::AtomicU64;

/// A chunk: the size of a huge page, and the unit of placement and of giving memory back.
pub const CHUNK_BYTES: usize = 2 << 20;
/// A span: the unit that a size class or a larger block takes; 99 classes hold at most 6.2 MiB half
/// used.
pub const SPAN_BYTES: usize = 64 << 10;
/// One bit of a chunk's mask each.
pub(super) const SPANS_PER_CHUNK: usize = CHUNK_BYTES / SPAN_BYTES;
const _: () = assert!(SPANS_PER_CHUNK == u32::BITS as usize);

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

impl ChunkPool {
    /// No process is in the middle of a change.
    pub(super) fn is_quiescent(&self) -> bool {
        self.latch.is_free() && self.in_transit.get() == 0
    }
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

    /// The chunk a span is in.
    pub(super) fn chunk_of_span(self, span: usize) -> &'static ChunkMeta {
        self.chunk(span / SPANS_PER_CHUNK)
    }
}

/// `spans` one bits from bit `first` on; fewer than a chunk's.
fn mask(first: usize, spans: usize) -> u32 {
    debug_assert!(spans < SPANS_PER_CHUNK && first + spans <= SPANS_PER_CHUNK);
    ((1 << spans) - 1) << first
}
