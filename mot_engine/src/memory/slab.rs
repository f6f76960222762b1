//! Slabs: spans cut into blocks of one class, and the centers that share them out in batches.
//!
//! Contract: a center (one per pool and class) owns the spans of that class and pool. Its latch
//! guards them and their entries in the span directory. A span with free blocks is in one of the
//! center's two lists: the partial one, or, if it was taken out of the reserve, the reserve one,
//! which ordinary allocations leave alone while the arena is that full. Free blocks are linked
//! through their first two bytes; blocks never used are not touched at all. A span whose last block
//! comes back leaves the center at once, for any class or larger block to use. Center latches and
//! the chunk pool's latch are never held together.

use super::arena::{ArenaFull, Memory, Urgency};
use super::chunk::SPAN_BYTES;
use super::latch::Latch;
use super::placement::Kernel;
use super::size_class::{class_blocks, class_bytes};
use super::word::{Word16, Word32, Word64};
use std::ptr::NonNull;

/// Span class numbers: 0 unused (or not the first span of its run), `class + 1`, or a run.
pub(super) const SPAN_IS_UNUSED: u16 = 0;
pub(super) const SPAN_IS_RUN: u16 = u16::MAX;

/// Blocks given back under one hold of a latch: bounds how long others wait.
const GIVE_BATCH: usize = 32;

const LIST_NONE: u16 = 0;
const LIST_PARTIAL: u16 = 1;
const LIST_RESERVE: u16 = 2;

/// One span in the directory.
#[repr(C, align(32))]
pub(super) struct SpanMeta {
    class: Word16,
    pool: Word16,
    /// Which list it is in.
    list: Word16,
    /// Taken out of the reserve.
    from_reserve: Word16,
    /// Blocks handed out.
    used: Word16,
    /// Blocks ever handed out; those above were never touched.
    carved: Word16,
    /// First free block's number + 1, or 0.
    free: Word16,
    _pad: Word16,
    /// Neighbours in the list: span number + 1, or 0.
    previous: Word32,
    next: Word32,
    run_spans: Word32,
}
const _: () = assert!(size_of::<SpanMeta>() == 32);

impl SpanMeta {
    pub(super) fn class(&self) -> u16 {
        self.class.get()
    }

    pub(super) fn pool(&self) -> usize {
        self.pool.get() as usize
    }

    pub(super) fn run_spans(&self) -> usize {
        self.run_spans.get() as usize
    }

    pub(super) fn mark_run(&self, spans: usize) {
        self.class.set(SPAN_IS_RUN);
        self.run_spans.set(spans as u32);
    }

    pub(super) fn unmark(&self) {
        self.class.set(SPAN_IS_UNUSED);
    }
}

/// A class's spans of one pool.
#[repr(C, align(64))]
pub(super) struct Center {
    latch: Latch,
    partial: Word32,
    reserve: Word32,
    pub(super) spans: Word64,
    /// Blocks handed out, caches included.
    pub(super) blocks_used: Word64,
}
const _: () = assert!(size_of::<Center>() == 64);

impl Center {
    /// No process is in the middle of a change.
    pub(super) fn is_quiescent(&self) -> bool {
        self.latch.is_free()
    }

    fn head(&self, list: u16) -> &Word32 {
        if list == LIST_RESERVE {
            &self.reserve
        } else {
            &self.partial
        }
    }
}

impl Memory {
    /// Bytes that a block in use takes, large or not.
    pub(super) fn bytes_in_use(self, block: NonNull<u8>) -> usize {
        let span = self.span(self.span_of(block));
        match span.class() {
            SPAN_IS_RUN => span.run_spans() * SPAN_BYTES,
            class => class_bytes(class as usize - 1),
        }
    }

    /// Hands between 1 and `want` blocks of a class to `put`, from `pool` if it has memory.
    pub(super) fn take_blocks(
        self,
        kernel: &dyn Kernel,
        pool: usize,
        class: usize,
        want: usize,
        urgency: Urgency,
        mut put: impl FnMut(NonNull<u8>),
    ) -> Result<(), ArenaFull> {
        if self.take_from_center(pool, class, want, urgency, &mut put) {
            return Ok(());
        }
        match self.take_spans(kernel, 1, pool, urgency) {
            Ok(span) => {
                self.fill(kernel, self.at(span * SPAN_BYTES), SPAN_BYTES);
                self.take_from_new_span(span, class, want, &mut put);
                Ok(())
            }
            // Another pool may have blocks of the class though no pool has spans.
            Err(full) => (0..self.pools())
                .any(|other| self.take_from_center(other, class, want, urgency, &mut put))
                .then_some(())
                .ok_or(ArenaFull {
                    requested: class_bytes(class) as u64,
                    ..full
                }),
        }
    }

    fn take_from_center(
        self,
        pool: usize,
        class: usize,
        want: usize,
        urgency: Urgency,
        put: &mut impl FnMut(NonNull<u8>),
    ) -> bool {
        let center = self.center(pool, class);
        let reserve_is_whole = self.header().chunk_pool.spans_free.get() >= self.reserve_spans();
        let _guard = center.latch.lock();
        let mut got = 0;
        while got < want && center.partial.get() != 0 {
            let span = center.partial.get() as usize - 1;
            got += self.take_from_span(center, span, class, want - got, put);
        }
        if got == 0
            && center.reserve.get() != 0
            && (urgency == Urgency::Reserve || reserve_is_whole)
        {
            // Out of the reserve one at a time: what a cache holds, an ordinary allocation could
            // use.
            let want = if reserve_is_whole { want } else { 1 };
            let span = center.reserve.get() as usize - 1;
            got = self.take_from_span(center, span, class, want, put);
        }
        center.blocks_used.add(got as u64);
        got > 0
    }

    /// Takes up to `want` blocks of a span in a list; unlinks it if that was the last. At least
    /// one.
    fn take_from_span(
        self,
        center: &Center,
        span: usize,
        class: usize,
        want: usize,
        put: &mut impl FnMut(NonNull<u8>),
    ) -> usize {
        let meta = self.span(span);
        debug_assert_eq!(meta.class.get() as usize, class + 1);
        let blocks = class_blocks(class) as u16;
        let mut got = 0;
        while got < want {
            let free = meta.free.get();
            let block = if free != 0 {
                let block = self.block(span, class, free as usize - 1);
                // SAFETY: a free block of this span, so nothing else touches it; `give_to_span`
                // left the link there.
                meta.free.set(unsafe { block.cast::<u16>().read() });
                block
            } else if meta.carved.get() < blocks {
                meta.carved.add(1);
                self.block(span, class, meta.carved.get() as usize - 1)
            } else {
                break;
            };
            got += 1;
            put(block);
        }
        meta.used.add(got as u16);
        if meta.free.get() == 0 && meta.carved.get() == blocks {
            self.unlink(center, span);
        }
        got
    }

    /// Makes a span, just taken and ours alone, one of the class; takes blocks from it and puts it
    /// into its list.
    fn take_from_new_span(
        self,
        span: usize,
        class: usize,
        want: usize,
        put: &mut impl FnMut(NonNull<u8>),
    ) {
        let pool = self.chunk_of_span(span).pool();
        let from_reserve = self.header().chunk_pool.spans_free.get() < self.reserve_spans();
        let meta = self.span(span);
        meta.class.set(class as u16 + 1);
        meta.pool.set(pool as u16);
        meta.from_reserve.set(u16::from(from_reserve));
        meta.used.set(0);
        meta.carved.set(0);
        meta.free.set(0);
        let center = self.center(pool, class);
        let _guard = center.latch.lock();
        center.spans.add(1);
        self.link(center, span);
        let want = if from_reserve { 1 } else { want };
        let got = self.take_from_span(center, span, class, want, put);
        center.blocks_used.add(got as u64);
    }

    /// Gives blocks of one class back, each to the center it came from.
    pub(super) fn give_blocks(self, kernel: &dyn Kernel, class: usize, mut blocks: &[NonNull<u8>]) {
        while let Some(&first) = blocks.first() {
            let pool = self.span(self.span_of(first)).pool();
            let mut emptied = [0; GIVE_BATCH];
            let mut emptied_count = 0;
            let mut given = 0;
            let center = self.center(pool, class);
            let guard = center.latch.lock();
            for &block in blocks.iter().take(GIVE_BATCH) {
                let span = self.span_of(block);
                if self.span(span).pool() != pool {
                    break;
                }
                if self.give_to_span(center, span, class, block) {
                    emptied[emptied_count] = span;
                    emptied_count += 1;
                }
                given += 1;
            }
            center.blocks_used.sub(given as u64);
            center.spans.sub(emptied_count as u64);
            drop(guard);
            for &span in &emptied[..emptied_count] {
                self.give_spans(kernel, span, 1);
            }
            blocks = &blocks[given..];
        }
    }

    /// True if the span is now empty, and out of the center.
    fn give_to_span(self, center: &Center, span: usize, class: usize, block: NonNull<u8>) -> bool {
        let meta = self.span(span);
        debug_assert_eq!(
            meta.class.get() as usize,
            class + 1,
            "a block of {} bytes was freed with a size of another class, or twice",
            class_bytes(class)
        );
        let offset = (block.addr().get() - self.base().addr().get()) % SPAN_BYTES;
        debug_assert_eq!(offset % class_bytes(class), 0, "not the start of a block");
        // SAFETY: the block came back to us (callers of `free` promise it was theirs), so no
        // other code touches it. It is at least 16 bytes long and aligned.
        unsafe { block.cast::<u16>().write(meta.free.get()) };
        meta.free.set((offset / class_bytes(class)) as u16 + 1);
        meta.used.sub(1);
        if meta.used.get() == 0 {
            self.unlink(center, span);
            return true;
        }
        self.link(center, span);
        false
    }

    /// Puts a span into its list unless it is there.
    fn link(self, center: &Center, span: usize) {
        let meta = self.span(span);
        if meta.list.get() != LIST_NONE {
            return;
        }
        let list = if meta.from_reserve.get() != 0 {
            LIST_RESERVE
        } else {
            LIST_PARTIAL
        };
        let head = center.head(list);
        meta.list.set(list);
        meta.previous.set(0);
        meta.next.set(head.get());
        if head.get() != 0 {
            self.span(head.get() as usize - 1)
                .previous
                .set(span as u32 + 1);
        }
        head.set(span as u32 + 1);
    }

    /// Takes a span out of its list if it is in one.
    fn unlink(self, center: &Center, span: usize) {
        let meta = self.span(span);
        let list = meta.list.get();
        if list == LIST_NONE {
            return;
        }
        let (previous, next) = (meta.previous.get(), meta.next.get());
        match previous {
            0 => center.head(list).set(next),
            previous => self.span(previous as usize - 1).next.set(next),
        }
        if next != 0 {
            self.span(next as usize - 1).previous.set(previous);
        }
        meta.list.set(LIST_NONE);
    }

    fn block(self, span: usize, class: usize, block: usize) -> NonNull<u8> {
        self.at(span * SPAN_BYTES + block * class_bytes(class))
    }
}

// A block number fits the 16-bit words, with one to spare for "none".
const _: () = assert!(SPAN_BYTES / super::size_class::BLOCK_ALIGN < u16::MAX as usize);
