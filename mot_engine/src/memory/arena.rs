//! The arena: the header at the region's base, and the handle that everything else hangs on.
//!
//! Contract: the header is written once by `format`, before any process attaches, and its constants
//! never change. All else in it is atomics and latched words. All-zero bytes are an unformatted
//! arena; the magic is stored last. Behind the header lie the tables whose size depends on the
//! region's: chunk bitmaps, chunk directory, span directory. The header names their offsets, so
//! that `attach` needs nothing but the base. A different layout version is refused.

use super::account::PURPOSES;
use super::chunk::{CHUNK_BYTES, ChunkMeta, ChunkPool, SPAN_BYTES, SPANS_PER_CHUNK};
use super::epoch::EpochTable;
use super::huge::Huge;
use super::orphan::Orphans;
use super::placement::{Kernel, NODES_MAX, POOLS_MAX, pools_of};
use super::region::{Region, populate_pages};
use super::size_class::CLASSES;
use super::slab::{Center, SpanMeta};
use super::topology::Topology;
use super::word::{Word32, Word64};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};

/// "motARENA" in memory order.
const MAGIC: u64 = u64::from_le_bytes(*b"motARENA");
/// Raised with every change of what is in the arena.
const LAYOUT_VERSION: u32 = 14;

/// Smallest arena: the header, the reserve and something to use.
pub const ARENA_BYTES_MIN: usize = 16 << 20;

/// The share of the arena, one part in so many, kept back for what makes room: deletes, index
/// removal, drops.
pub const RESERVE_FRACTION: usize = 50;

/// The least that is kept back: a few deletes must be possible in the smallest arena, too.
pub const RESERVE_BYTES_MIN: usize = 8 << 20;

/// Words at a fixed place for what is built on the arena (the engine's shared root).
pub const ROOTS: usize = 8;

/// Spans are numbered in 32 bits with one to spare: 256 TiB.
const CHUNKS_MAX: usize = (u32::MAX as usize - 1) / SPANS_PER_CHUNK;

/// Whether an allocation may use the reserve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// Stops at the reserve.
    Ordinary,
    /// May use it up: for what will free memory.
    Reserve,
}

/// Whose limit a request has met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitOf {
    /// The arena's own.
    Arena,
    /// That of the session's temporary tables.
    Session,
}

/// The arena has no room for the request (or only in the reserve, or not in one piece), or the
/// session may take no more of it. All in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the arena is full: {used} of {limit} bytes are used, {requested} more were asked for")]
pub struct ArenaFull {
    pub used: u64,
    pub limit: u64,
    pub requested: u64,
    pub limit_of: LimitOf,
}

/// Why a region cannot be formatted or attached to.
#[derive(Debug, thiserror::Error)]
pub enum ArenaError {
    /// Smaller than [`ARENA_BYTES_MIN`], or larger than spans can be numbered.
    #[error("an arena of {bytes} bytes is not possible: at least {ARENA_BYTES_MIN} and at most {} are",
        CHUNKS_MAX * CHUNK_BYTES)]
    Size { bytes: usize },
    /// Formatting over live data.
    #[error("the region already holds an arena; reset it first")]
    AlreadyFormatted,
    /// Attaching to nothing.
    #[error("the region holds no arena")]
    NotFormatted,
    /// Attaching to another program version's arena.
    #[error("the arena has layout version {found}, this program knows {LAYOUT_VERSION}")]
    LayoutVersion { found: u32 },
    /// Taking over an arena that was laid out for something else.
    #[error("the arena was laid out for {what}")]
    Mismatch { what: &'static str },
    /// No pages for the arena's own tables.
    #[error(
        "the file system of the arena is full, or all memory that the kernel promises (vm.overcommit_memory = 2)"
    )]
    NoPages,
}

/// How to format.
#[derive(Clone, Debug)]
pub struct ArenaOptions {
    /// The nodes to place memory on.
    pub topology: Topology,
}

impl Default for ArenaOptions {
    fn default() -> ArenaOptions {
        ArenaOptions {
            topology: Topology::from_kernel(),
        }
    }
}

/// Own cache line, so that counters of different purposes do not disturb each other.
#[repr(C, align(64))]
pub(super) struct Padded<T>(pub(super) T);

/// Chunks get their pages when they are taken ([`Region::needs_population`]).
const POPULATES: u32 = 1;
/// Free chunks keep them ([`Region::keeps_pages`]).
const KEEPS_PAGES: u32 = 2;

/// What lies at the base. Never built as a value: zero pages are its first state.
#[repr(C, align(4096))]
pub(super) struct Header {
    magic: AtomicU64,
    layout_version: Word32,
    pools: Word32,
    nodes: Word32,
    chunks: Word32,
    pub(super) reserve_spans: Word32,
    /// What the region asks for: [`POPULATES`], [`KEEPS_PAGES`].
    pages: Word32,
    /// Not 0: spans get their pages when they are cut up for use (`Memory::prefault_spans`).
    prefaults_spans: AtomicU32,
    /// How chunks become huge pages when they are taken (`huge.rs`).
    pub(super) huge: Huge,
    node_numbers: [Word32; NODES_MAX],
    pub(super) region_bytes: Word64,
    bitmaps_at: Word64,
    chunks_at: Word64,
    spans_at: Word64,
    roots: Padded<[AtomicU64; ROOTS]>,
    pub(super) purpose_bytes: [Padded<AtomicI64>; PURPOSES],
    pub(super) chunk_pool: ChunkPool,
    centers: [[Center; CLASSES]; POOLS_MAX],
    pub(super) epochs: EpochTable,
    pub(super) orphans: Orphans,
}
const _: () = assert!(size_of::<Header>() < 1 << 20);

/// The shared handle: where the arena is. Copied freely, valid in every process that has the
/// region.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    base: NonNull<u8>,
}

// SAFETY: everything reached through the handle is atomics, latched words, or unsafe to touch.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// Lays an empty arena out in a fresh or reset region.
    ///
    /// # Safety
    /// The region outlives every use of the handle and of whatever is allocated through it. No
    /// other code formats it.
    pub unsafe fn format(region: &Region, options: &ArenaOptions) -> Result<Memory, ArenaError> {
        let bytes = region.bytes();
        let chunks = bytes / CHUNK_BYTES;
        if bytes < ARENA_BYTES_MIN || chunks > CHUNKS_MAX {
            return Err(ArenaError::Size { bytes });
        }
        let memory = Memory {
            base: region.base(),
        };
        let populate = |chunks: std::ops::Range<usize>| {
            if !region.needs_population() || chunks.is_empty() {
                return Ok(());
            }
            let at = chunks.start * CHUNK_BYTES;
            // SAFETY: chunks of the region (the caller bounds them).
            let populated =
                unsafe { populate_pages(region.base().add(at), chunks.len() * CHUNK_BYTES) };
            populated.map_err(|_| ArenaError::NoPages)
        };
        populate(0..1)?;
        let header = memory.header();
        if header.magic.load(Ordering::Acquire) != 0 {
            return Err(ArenaError::AlreadyFormatted);
        }
        let populates = if region.needs_population() {
            POPULATES
        } else {
            0
        };
        let keeps = if region.keeps_pages() { KEEPS_PAGES } else { 0 };
        header.pages.set(populates | keeps);
        header.huge.format(region.collects_huge_pages());
        let nodes = options.topology.nodes();
        header.layout_version.set(LAYOUT_VERSION);
        header.nodes.set(nodes.len() as u32);
        for (word, &node) in header.node_numbers.iter().zip(nodes) {
            word.set(node);
        }
        header.pools.set(pools_of(nodes.len()) as u32);
        header.chunks.set(chunks as u32);
        header.region_bytes.set(bytes as u64);
        let reserve_bytes = (bytes / RESERVE_FRACTION).max(RESERVE_BYTES_MIN);
        header
            .reserve_spans
            .set((reserve_bytes / SPAN_BYTES) as u32);
        let bitmaps_at = size_of::<Header>();
        let chunks_at =
            (bitmaps_at + memory.bitmap_bytes()).next_multiple_of(align_of::<SpanMeta>());
        let spans_at = chunks_at + chunks * size_of::<ChunkMeta>();
        let end = spans_at + chunks * SPANS_PER_CHUNK * size_of::<SpanMeta>();
        header.bitmaps_at.set(bitmaps_at as u64);
        header.chunks_at.set(chunks_at as u64);
        header.spans_at.set(spans_at as u64);
        populate(1..end.div_ceil(CHUNK_BYTES))?;
        memory.format_chunks(end.div_ceil(SPAN_BYTES));
        memory.format_epochs();
        memory.format_orphans();
        header.magic.store(MAGIC, Ordering::Release);
        Ok(memory)
    }

    /// The arena that was formatted at `base`.
    ///
    /// # Safety
    /// `base` is the base of a mapped region of at least [`ARENA_BYTES_MIN`] bytes that outlives
    /// every use of the handle.
    pub unsafe fn attach(base: NonNull<u8>) -> Result<Memory, ArenaError> {
        let memory = Memory { base };
        let header = memory.header();
        if header.magic.load(Ordering::Acquire) != MAGIC {
            return Err(ArenaError::NotFormatted);
        }
        match header.layout_version.get() {
            LAYOUT_VERSION => Ok(memory),
            found => Err(ArenaError::LayoutVersion { found }),
        }
    }

    /// The arena that an earlier process laid out in this region and left behind, if `format` would
    /// lay it out alike.
    ///
    /// # Safety
    /// As for [`Memory::format`].
    pub unsafe fn take_over(region: &Region, options: &ArenaOptions) -> Result<Memory, ArenaError> {
        if region.bytes() < ARENA_BYTES_MIN {
            return Err(ArenaError::Size {
                bytes: region.bytes(),
            });
        }
        // SAFETY: the region is mapped and long enough.
        let memory = unsafe { Memory::attach(region.base())? };
        let header = memory.header();
        let nodes = options.topology.nodes();
        let (known, count) = memory.nodes();
        if memory.arena_bytes_limit() != region.bytes() as u64 {
            return Err(ArenaError::Mismatch {
                what: "another size",
            });
        }
        if known.get(..count) != Some(nodes) {
            return Err(ArenaError::Mismatch {
                what: "other NUMA nodes",
            });
        }
        if memory.populates() != region.needs_population() {
            return Err(ArenaError::Mismatch {
                what: "another kind of file",
            });
        }
        // The setting may be another one now.
        header.huge.format(region.collects_huge_pages());
        Ok(memory)
    }

    /// A word at a fixed place, zero after `format`: where the engine puts the address of its own
    /// root.
    pub fn root(self, index: usize) -> &'static AtomicU64 {
        &self.header().roots.0[index]
    }

    /// The region's first byte, for [`Memory::attach`] elsewhere.
    pub fn base(self) -> NonNull<u8> {
        self.base
    }

    /// The arena's size, to tell whether an address is in it.
    pub fn contains(self, at: NonNull<u8>) -> bool {
        let offset = at.addr().get().wrapping_sub(self.base.addr().get());
        (offset as u64) < self.arena_bytes_limit()
    }

    #[inline]
    pub(super) fn header(self) -> &'static Header {
        // SAFETY: `format` and `attach` were promised a mapped region, longer than a header, that
        // outlives all use of the handle; any bytes are valid for atomics.
        unsafe { self.base.cast().as_ref() }
    }

    pub(super) fn chunks(self) -> usize {
        self.header().chunks.get() as usize
    }

    #[inline]
    pub(super) fn pools(self) -> usize {
        self.header().pools.get() as usize
    }

    /// Kernel numbers of the nodes; the second half says how many count.
    pub(super) fn nodes(self) -> ([u32; NODES_MAX], usize) {
        let header = self.header();
        (
            header.node_numbers.each_ref().map(Word32::get),
            header.nodes.get() as usize,
        )
    }

    /// Whether chunks get their pages when they are taken.
    pub(super) fn populates(self) -> bool {
        self.header().pages.get() & POPULATES != 0
    }

    /// Whether free chunks keep their pages, however many they are.
    pub(super) fn keeps_pages(self) -> bool {
        self.header().pages.get() & KEEPS_PAGES != 0
    }

    /// From now on, until `false` is said, memory gets its pages a span at a time when it is cut up
    /// for use, instead of one by one as they are touched: for a load, which will touch them all at
    /// once. A page fault costs more than the page.
    pub fn prefault_spans(self, on: bool) {
        self.header()
            .prefaults_spans
            .store(u32::from(on), Ordering::Relaxed);
    }

    /// Gives memory just taken its pages if it soon wants them.
    pub(super) fn fill(self, kernel: &dyn Kernel, at: NonNull<u8>, bytes: usize) {
        if self.header().prefaults_spans.load(Ordering::Relaxed) == 0 || self.populates() {
            return;
        }
        // A kernel that refuses (or is too old for it) gives the pages when they are touched.
        // SAFETY: whole spans of our region.
        let _ = unsafe { kernel.populate(at, bytes.next_multiple_of(SPAN_BYTES)) };
    }

    /// All classes' centers, of every pool.
    pub(super) fn centers(self) -> impl Iterator<Item = &'static Center> {
        self.header().centers.iter().flatten()
    }

    #[inline]
    pub(super) fn reserve_spans(self) -> u64 {
        u64::from(self.header().reserve_spans.get())
    }

    #[inline]
    pub(super) fn center(self, pool: usize, class: usize) -> &'static Center {
        &self.header().centers[pool][class]
    }

    #[inline]
    pub(super) fn chunk(self, chunk: usize) -> &'static ChunkMeta {
        &self.table(&self.header().chunks_at, self.chunks())[chunk]
    }

    #[inline]
    pub(super) fn span(self, span: usize) -> &'static SpanMeta {
        &self.table(&self.header().spans_at, self.chunks() * SPANS_PER_CHUNK)[span]
    }

    pub(super) fn bitmap_words(self) -> &'static [Word64] {
        self.table(
            &self.header().bitmaps_at,
            self.bitmap_bytes() / size_of::<Word64>(),
        )
    }

    /// One of the tables behind the header. `T` consists of atomics only.
    #[inline]
    fn table<T>(self, at: &Word64, len: usize) -> &'static [T] {
        let at = self
            .base
            .as_ptr()
            .wrapping_add(at.get() as usize)
            .cast::<T>();
        debug_assert!(at.is_aligned());
        // SAFETY: `format` laid a table of this type and length out at this offset, inside the
        // region, on a multiple of its alignment. Its elements are atomics, for which any bytes are
        // valid, and never anything else.
        unsafe { std::slice::from_raw_parts(at, len) }
    }

    /// Address of a span or chunk boundary, or of a block in a span.
    #[inline]
    pub(super) fn at(self, offset: usize) -> NonNull<u8> {
        debug_assert!((offset as u64) < self.arena_bytes_limit());
        // SAFETY: offsets come from span and chunk numbers of this arena, so they lie within the
        // mapping.
        unsafe { self.base.add(offset) }
    }

    /// The span an address is in.
    #[inline]
    pub(super) fn span_of(self, at: NonNull<u8>) -> usize {
        debug_assert!(self.contains(at), "{at:p} is not in the arena");
        (at.addr().get() - self.base.addr().get()) / SPAN_BYTES
    }

    /// The error for a request of so many bytes, as of now.
    #[cold]
    pub(crate) fn full(self, requested: usize) -> ArenaFull {
        ArenaFull {
            used: self.arena_bytes_used(),
            limit: self.arena_bytes_limit(),
            requested: requested as u64,
            limit_of: LimitOf::Arena,
        }
    }
}
