//! Accounting: which process uses how much of the arena.
//!
//! Contract: what is handed out, by purpose, is counted in each process and added to the shared
//! counters whenever it visits shared memory anyway. Blocks per class are counted under the class's
//! latch, spans under the chunk pool's. All sums are exact when every process has flushed, and off
//! by at most the caches' contents otherwise. Sizes are what a block really takes, not what was
//! asked for.

use super::arena::Memory;
use super::chunk::{CHUNK_BYTES, ChunkState, SPAN_BYTES};
use super::size_class::{CLASSES, class_blocks, class_bytes};
use std::sync::atomic::Ordering;

/// What a block is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Purpose {
    /// Row versions.
    Rows = 0,
    /// Directories of row anchors.
    Anchors = 1,
    /// Index nodes, keys and postings.
    Index = 2,
    /// Tables, definitions, counters.
    Catalog = 3,
    /// Everything else.
    Other = 4,
}

/// Number of purposes.
pub(super) const PURPOSES: usize = 5;

impl Purpose {
    /// All of them, in the order of their numbers.
    pub const ALL: [Purpose; PURPOSES] = [
        Purpose::Rows,
        Purpose::Anchors,
        Purpose::Index,
        Purpose::Catalog,
        Purpose::Other,
    ];
}

/// Blocks of one size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassReport {
    pub block_bytes: usize,
    /// 64 KiB spans cut into such blocks.
    pub spans: u64,
    /// Blocks in use or in some process's cache.
    pub blocks_used: u64,
    /// Blocks that could be handed out without another span.
    pub blocks_free: u64,
}

/// Chunks by state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChunkReport {
    /// The arena's own tables.
    pub header: u64,
    /// Cut into spans.
    pub spans: u64,
    /// Part of a larger run.
    pub runs: u64,
    /// Free, pages kept.
    pub free_resident: u64,
    /// Free, never used or pages given back.
    pub free_untouched: u64,
}

/// The epochs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EpochReport {
    pub epoch: u64,
    /// Oldest epoch any process is pinned in.
    pub oldest_pinned: Option<u64>,
    pub participants: u64,
    /// Garbage left by processes that are gone or may be idle, to be freed by any process.
    pub orphan_blocks: u64,
    pub orphan_bytes: u64,
    /// Garbage given up because there was no memory left even to note it down; back after a
    /// restart.
    pub lost_bytes: u64,
}

/// One look at the arena. Its parts are read one after the other, without stopping any process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryReport {
    pub arena_bytes_used: u64,
    pub arena_bytes_limit: u64,
    pub arena_bytes_free: u64,
    /// Of the free bytes, those kept for deletes and drops.
    pub arena_bytes_reserved: u64,
    /// Block bytes in use by purpose, in the order of [`Purpose::ALL`].
    pub purpose_bytes: [i64; PURPOSES],
    pub classes: Vec<ClassReport>,
    pub chunks: ChunkReport,
    pub epochs: EpochReport,
    /// Chunks the kernel refused to bind to their node.
    pub bind_failures: u64,
    /// Times the kernel refused to take pages back.
    pub give_back_failures: u64,
}

impl MemoryReport {
    /// Bytes of used spans and runs in which nothing is: free blocks, of which other sizes cannot
    /// be made, and what spans have left over. Blocks that processes keep for themselves count, and
    /// those that wait for readers to leave. Summed up from figures that others change meanwhile.
    pub fn block_bytes_free(&self) -> u64 {
        let header = self.chunks.header * CHUNK_BYTES as u64;
        let in_use: i64 = self.purpose_bytes.iter().sum();
        let spans = self.arena_bytes_used.saturating_sub(header);
        spans.saturating_sub(in_use.max(0) as u64)
    }
}

impl Memory {
    /// Bytes of the arena taken by spans, runs and the arena's own tables.
    pub fn arena_bytes_used(self) -> u64 {
        self.arena_bytes_limit() - self.arena_bytes_free()
    }

    /// Size of the arena.
    pub fn arena_bytes_limit(self) -> u64 {
        self.header().region_bytes.get()
    }

    /// Bytes in free spans and chunks. Free blocks inside used spans are not counted.
    pub fn arena_bytes_free(self) -> u64 {
        self.header().chunk_pool.spans_free.get() * SPAN_BYTES as u64
    }

    /// Block bytes in use for one purpose.
    pub fn purpose_bytes(self, purpose: Purpose) -> i64 {
        self.header().purpose_bytes[purpose as usize]
            .0
            .load(Ordering::Relaxed)
    }

    /// Everything there is to know.
    pub fn report(self) -> MemoryReport {
        let header = self.header();
        let mut chunks = ChunkReport::default();
        for chunk in 0..self.chunks() {
            match self.chunk(chunk).state() {
                ChunkState::Free => {}
                ChunkState::Header => chunks.header += 1,
                ChunkState::Spans => chunks.spans += 1,
                ChunkState::Run => chunks.runs += 1,
            }
        }
        let pools = 0..self.pools();
        chunks.free_resident = pools
            .map(|pool| self.resident_chunks(pool).count() as u64)
            .sum();
        chunks.free_untouched = self.untouched_chunks().count() as u64;
        MemoryReport {
            arena_bytes_used: self.arena_bytes_used(),
            arena_bytes_limit: self.arena_bytes_limit(),
            arena_bytes_free: self.arena_bytes_free(),
            arena_bytes_reserved: u64::from(header.reserve_spans.get()) * SPAN_BYTES as u64,
            purpose_bytes: Purpose::ALL.map(|purpose| self.purpose_bytes(purpose)),
            classes: (0..CLASSES).map(|class| self.class_report(class)).collect(),
            chunks,
            epochs: self.epoch_report(),
            bind_failures: header.chunk_pool.bind_failures.load(Ordering::Relaxed),
            give_back_failures: header.chunk_pool.give_back_failures.load(Ordering::Relaxed),
        }
    }

    fn class_report(self, class: usize) -> ClassReport {
        let (mut spans, mut blocks_used) = (0, 0);
        for pool in 0..self.pools() {
            let center = self.center(pool, class);
            spans += center.spans.get();
            blocks_used += center.blocks_used.get();
        }
        let blocks_free = (spans * class_blocks(class) as u64).saturating_sub(blocks_used);
        ClassReport {
            block_bytes: class_bytes(class),
            spans,
            blocks_used,
            blocks_free,
        }
    }

    /// Adds a process's counts. Called in batches.
    pub(super) fn add_purpose_bytes(self, purpose: Purpose, bytes: i64) {
        self.header().purpose_bytes[purpose as usize]
            .0
            .fetch_add(bytes, Ordering::Relaxed);
    }
}

const _: () = assert!(CHUNK_BYTES.is_multiple_of(SPAN_BYTES));
