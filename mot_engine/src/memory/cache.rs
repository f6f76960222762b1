//! A process's cache of free blocks: what makes the common allocation free of shared atomics.
//!
//! Contract: process-local, used by one thread. One magazine per class (and bank, see below), an
//! array of pointers, so a hit touches neither the block nor anything shared. A miss takes a batch
//! from the class's center, an overflow gives the older half back. A magazine holds at most
//! [`MAGAZINE_BYTES_MAX`], all together at most [`CACHE_BYTES_MAX`]. With one node there is one
//! bank. With several, blocks of this process's node, of the interleaved pool, and of other nodes
//! are kept apart, and the last are only passed on to their centers, so that freeing moves no
//! memory between nodes.

use super::arena::{ArenaFull, Memory, Urgency};
use super::placement::{Kernel, Placement, node_index};
use super::size_class::{CLASSES, class_bytes};
use std::ptr::NonNull;

/// Bytes of one class a process may hold back: a batch is half of it.
const MAGAZINE_BYTES_MAX: usize = 32 << 10;
/// Blocks of one class a process may hold back: small blocks reach a batch worth its latch long
/// before the bytes.
const MAGAZINE_BLOCKS_MAX: usize = 128;
/// The largest classes, too, shall survive one free and one allocation.
const MAGAZINE_BLOCKS_MIN: usize = 2;
/// Bytes a process may hold back: 500 backends then hold at most 500 MiB, and far less in practice.
pub(super) const CACHE_BYTES_MAX: usize = 1 << 20;
/// The first batch of a class; doubled with each miss, so a class used once takes little.
const FIRST_BATCH: usize = 4;

const BANK_LOCAL: usize = 0;
const BANK_INTERLEAVED: usize = 1;
const BANK_FOREIGN: usize = 2;
const BANKS: usize = 3;

const fn magazine_blocks_max(class: usize) -> usize {
    const MAX: [u8; CLASSES] = {
        let mut table = [0; CLASSES];
        let mut class = 0;
        while class < CLASSES {
            let blocks = MAGAZINE_BYTES_MAX / super::size_class::CLASS_BYTES[class] as usize;
            table[class] = if blocks < MAGAZINE_BLOCKS_MIN {
                MAGAZINE_BLOCKS_MIN as u8
            } else if blocks > MAGAZINE_BLOCKS_MAX {
                MAGAZINE_BLOCKS_MAX as u8
            } else {
                blocks as u8
            };
            class += 1;
        }
        table
    };
    MAX[class] as usize
}

const LINE_BYTES: usize = 64;
/// Bytes of a block that are prefetched: more would drive out what is in use.
const AHEAD_BYTES_MAX: usize = 6 * LINE_BYTES;

/// Asks for the lines of a block that is to be written.
#[inline]
fn prefetch_to_write(block: NonNull<u8>, bytes: usize) {
    let mut offset = 0;
    while offset < bytes.min(AHEAD_BYTES_MAX) {
        let line = block.as_ptr().wrapping_add(offset);
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: a prefetch neither faults nor changes anything; processors that do not know this
        // one pass over it.
        unsafe {
            core::arch::asm!("prefetchw [{}]", in(reg) line, options(nostack, preserves_flags, readonly));
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        let _ = line;
        offset += LINE_BYTES;
    }
}

struct Magazine {
    blocks: Vec<NonNull<u8>>,
    batch: usize,
}

pub(super) struct Cache {
    memory: Memory,
    magazines: Vec<Magazine>,
    bytes: usize,
    /// Number of this process's node; examined anew with every miss.
    node: usize,
    nodes: usize,
}

impl Cache {
    pub(super) fn new(memory: Memory) -> Cache {
        let nodes = memory.nodes().1;
        let banks = if nodes == 1 { 1 } else { BANKS };
        let magazine = || Magazine {
            blocks: Vec::new(),
            batch: FIRST_BATCH,
        };
        Cache {
            memory,
            magazines: (0..banks * CLASSES).map(|_| magazine()).collect(),
            bytes: 0,
            node: 0,
            nodes,
        }
    }

    fn bank(&self, placement: Placement) -> usize {
        match placement {
            Placement::Interleaved if self.nodes > 1 => BANK_INTERLEAVED,
            _ => BANK_LOCAL,
        }
    }

    /// A cached block, if there is one. The next one's lines are asked for: it will be written as a
    /// whole and published by a locked instruction, which waits for every line of it, and what
    /// comes out of the magazine has gone cold since it was freed.
    #[inline]
    pub(super) fn take(&mut self, class: usize, placement: Placement) -> Option<NonNull<u8>> {
        let bank = self.bank(placement);
        let blocks = &mut self.magazines[bank * CLASSES + class].blocks;
        let block = blocks.pop()?;
        if let Some(next) = blocks.last() {
            prefetch_to_write(*next, class_bytes(class));
        }
        self.bytes -= class_bytes(class);
        Some(block)
    }

    /// Takes a batch from shared memory and returns one block of it.
    #[cold]
    pub(super) fn refill(
        &mut self,
        kernel: &dyn Kernel,
        class: usize,
        placement: Placement,
        urgency: Urgency,
    ) -> Result<NonNull<u8>, ArenaFull> {
        self.follow_node(kernel);
        let bank = self.bank(placement);
        let most = magazine_blocks_max(class);
        let magazine = &mut self.magazines[bank * CLASSES + class];
        let batch = magazine.batch.min(most / 2).max(1);
        magazine.batch = (batch * 2).min(most / 2).max(1);
        // Without process memory for the magazine the block wanted now must do.
        let room = magazine.blocks.try_reserve_exact(most).is_ok();
        let want = if room { batch } else { 1 };
        let mut first = None;
        let mut cached = 0;
        let pool = self.placement_pool(placement);
        let magazine = &mut self.magazines[bank * CLASSES + class];
        self.memory
            .take_blocks(kernel, pool, class, want, urgency, |block| {
                if first.is_none() {
                    first = Some(block);
                } else {
                    magazine.blocks.push(block);
                    cached += 1;
                }
            })?;
        self.bytes += cached * class_bytes(class);
        Ok(first.expect("at least one block was taken"))
    }

    /// Keeps a freed block, or gives a batch back when there are too many.
    #[inline]
    pub(super) fn give(&mut self, kernel: &dyn Kernel, class: usize, block: NonNull<u8>) {
        let bank = if self.nodes == 1 {
            BANK_LOCAL
        } else {
            self.bank_of(block)
        };
        let magazine = &mut self.magazines[bank * CLASSES + class];
        if magazine.blocks.len() == magazine.blocks.capacity() {
            self.overflow(kernel, bank, class);
        }
        let magazine = &mut self.magazines[bank * CLASSES + class];
        if magazine.blocks.capacity() == 0 {
            self.memory.give_blocks(kernel, class, &[block]);
            return;
        }
        magazine.blocks.push(block);
        self.bytes += class_bytes(class);
        if self.bytes > CACHE_BYTES_MAX {
            self.trim(kernel);
        }
    }

    /// Gives everything back.
    pub(super) fn flush(&mut self, kernel: &dyn Kernel) {
        for magazine in 0..self.magazines.len() {
            self.shrink(kernel, magazine, 0);
        }
        debug_assert_eq!(self.bytes, 0);
    }

    /// Bytes held back.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The pool a large block comes from.
    pub(super) fn pool(&mut self, kernel: &dyn Kernel, placement: Placement) -> usize {
        self.follow_node(kernel);
        self.placement_pool(placement)
    }

    fn placement_pool(&self, placement: Placement) -> usize {
        placement.pool(self.node, self.nodes)
    }

    /// Makes room in a full magazine: gets it its memory the first time, else gives the older half
    /// back.
    #[cold]
    fn overflow(&mut self, kernel: &dyn Kernel, bank: usize, class: usize) {
        let number = bank * CLASSES + class;
        let blocks = &mut self.magazines[number].blocks;
        if blocks.capacity() == 0 {
            // Refused: capacity stays 0, and `give` does without the magazine.
            let _refused = blocks
                .try_reserve_exact(magazine_blocks_max(class))
                .is_err();
            return;
        }
        let keep = blocks.len() / 2;
        self.shrink(kernel, number, keep);
    }

    /// Halves every magazine.
    #[cold]
    fn trim(&mut self, kernel: &dyn Kernel) {
        for number in 0..self.magazines.len() {
            let keep = self.magazines[number].blocks.len() / 2;
            self.shrink(kernel, number, keep);
        }
    }

    /// Gives the oldest blocks of a magazine back until `keep` are left: the newest are warm in the
    /// processor's cache.
    fn shrink(&mut self, kernel: &dyn Kernel, number: usize, keep: usize) {
        let class = number % CLASSES;
        let magazine = &mut self.magazines[number];
        let surplus = magazine.blocks.len() - keep;
        self.memory
            .give_blocks(kernel, class, &magazine.blocks[..surplus]);
        magazine.blocks.drain(..surplus);
        self.bytes -= surplus * class_bytes(class);
    }

    fn bank_of(&self, block: NonNull<u8>) -> usize {
        let pool = self.memory.span(self.memory.span_of(block)).pool();
        if pool == self.node {
            BANK_LOCAL
        } else if pool == self.nodes {
            BANK_INTERLEAVED
        } else {
            BANK_FOREIGN
        }
    }

    /// With several nodes: notices that the scheduler has moved the process, whose local blocks
    /// then are not local.
    fn follow_node(&mut self, kernel: &dyn Kernel) {
        if self.nodes == 1 {
            return;
        }
        let (nodes, count) = self.memory.nodes();
        let node = node_index(kernel.current_node(), &nodes[..count]);
        if node != self.node {
            for class in 0..CLASSES {
                self.shrink(kernel, BANK_LOCAL * CLASSES + class, 0);
            }
            self.node = node;
        }
    }
}
