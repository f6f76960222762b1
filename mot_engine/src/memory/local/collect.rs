//! Garbage of one process: retiring what others may still read, freeing it when they are gone, and
//! leaving the rest to all processes.
//!
//! A retired block is freed when two epochs have passed since it was (`epoch.rs`), by the process
//! that retired it, or as an orphan by the process that collects next (`orphan.rs`). No other
//! process touches a process's garbage, and only what is in here touches this one's.

use super::LocalMemory;
use crate::memory::account::Purpose;
use crate::memory::arena::Urgency;
use crate::memory::epoch::EPOCHS_TO_SAFETY;
use crate::memory::garbage::{Garbage, Retired};
use crate::memory::orphan::{ORPHAN_PAGE_BYTES, ORPHANS_PER_PAGE, PAGES_PER_VISIT};
use crate::memory::placement::Placement;
use crate::memory::size_class::{block_bytes, class_of};
use crate::sync::{self, is_broken};
use std::ptr::NonNull;
use std::time::{Duration, Instant};

/// Retired blocks between two attempts to free some: the scan of the epoch table costs then little
/// for each.
const COLLECT_EVERY_BLOCKS: usize = 64;
/// Retired bytes between two attempts: large blocks shall not wait for sixty-three others.
const COLLECT_EVERY_BYTES: usize = 1 << 20;
/// Checks for pins before the waiter sleeps between them, or gives up: most pins end in
/// microseconds.
const LOOKS_BEFORE_SLEEP: u32 = 64;
/// Pause between further looks.
const LOOK_PAUSE: Duration = Duration::from_millis(1);
/// Attempts after which all is freed, when no process is pinned: two epochs have passed.
const COLLECTS_ON_LEAVE: usize = 3;
/// Blocks that a process may keep when it is idle, or leave without waiting: what one visit to the
/// orphans frees.
const FEW_BLOCKS: usize = PAGES_PER_VISIT * ORPHANS_PER_PAGE;
/// How long a process that leaves waits for those that are pinned, before it leaves more than that
/// to others. Nearly all pins are shorter, and orphans take memory that a full arena may not have.
const PATIENCE_ON_LEAVE: Duration = Duration::from_secs(1);

/// How much garbage a process had at a moment.
#[derive(Copy, Clone, Debug, Default)]
pub struct GarbageAt {
    blocks: usize,
    bytes: usize,
}

impl LocalMemory {
    /// Gives a block back that others may still be reading: it is freed when all that are pinned
    /// now have unpinned. Never fails.
    ///
    /// # Safety
    /// As for `free`, except that pinned processes may still read it; none can find it any
    /// more.
    pub unsafe fn retire(&self, at: NonNull<u8>, bytes: usize, purpose: Purpose) {
        debug_assert!(self.memory.contains(at));
        if is_broken("memory: retiring what others may read") {
            // SAFETY: not at all: the test that asks for this wants to see that.
            return unsafe { self.free(at, bytes, purpose) };
        }
        self.charge.add(-(block_bytes(bytes) as i64));
        if let Err(retired) = self.with_garbage(|it| it.push(Retired { at, bytes, purpose })) {
            // No process memory: make some room, and leave the block to all processes.
            let stamp = self.memory.epochs().stamp();
            self.collect();
            self.orphan(retired, stamp);
            return;
        }
        self.retired_blocks.set(self.retired_blocks.get() + 1);
        self.retired_bytes.set(self.retired_bytes.get() + bytes);
        if self.retired_blocks.get() >= COLLECT_EVERY_BLOCKS
            || self.retired_bytes.get() >= COLLECT_EVERY_BYTES
        {
            self.collect();
        }
    }

    /// Frees what may be freed of this process's garbage, and some of what others left. The number
    /// of blocks.
    pub fn collect(&self) -> usize {
        self.retired_blocks.set(0);
        self.retired_bytes.set(0);
        let stamp = self.memory.epochs().stamp();
        self.with_garbage(|garbage| garbage.seal(stamp));
        let now = self.memory.epochs().try_advance();
        let mut freed = 0;
        while let Some(retired) = self.with_garbage(|garbage| garbage.pop_free(now)) {
            self.free_retired(retired);
            freed += 1;
        }
        if self.memory.has_orphans() {
            freed += self
                .memory
                .collect_orphans(now, |retired| self.free_retired(retired));
        }
        if freed > 0 {
            self.flush_counters();
        }
        freed
    }

    /// Frees all that may be freed now: a single visit frees some of what others left. For a caller
    /// with time, or in need of memory. `pause` is called meanwhile; it may unwind or not return.
    pub fn collect_all(&self, mut pause: impl FnMut()) {
        let mut in_vain = 0;
        // What is left behind meanwhile is for the next time: the caller may have other work.
        let visits = 2 * (COLLECTS_ON_LEAVE + self.memory.orphan_blocks() / FEW_BLOCKS);
        for _ in 0..visits {
            in_vain = if self.collect() > 0 { 0 } else { in_vain + 1 };
            if in_vain == COLLECTS_ON_LEAVE {
                break;
            }
            pause();
        }
    }

    /// How much garbage there is: for [`LocalMemory::hand_over_garbage`].
    #[inline]
    pub fn garbage(&self) -> GarbageAt {
        GarbageAt {
            blocks: self.garbage_blocks(),
            bytes: self.garbage_bytes(),
        }
    }

    /// For a moment after which this process may be idle: frees garbage if there is much, and the
    /// caller is not pinned. Else it would stay until this process retires more, and no other
    /// process could reach it.
    ///
    /// If a process is pinned, and much came since `before`, this waits as long as there is
    /// patience. For what earlier ends have left it does not wait again. It then leaves much that
    /// is left to all processes.
    #[inline]
    pub fn hand_over_garbage(&self, before: GarbageAt, patience: Duration) {
        if self.is_pinned() {
            return;
        }
        let has_grown = self.garbage_blocks() >= before.blocks + COLLECT_EVERY_BLOCKS
            || self.garbage_bytes() >= before.bytes + COLLECT_EVERY_BYTES;
        if has_grown {
            self.collect_patiently(before, patience);
        } else if self.has_much_garbage() {
            self.collect_all_own();
        }
        if self.has_much_garbage() {
            self.hand_over();
        }
    }

    fn has_much_garbage(&self) -> bool {
        self.has_much_garbage_since(GarbageAt::default())
    }

    fn has_much_garbage_since(&self, before: GarbageAt) -> bool {
        self.garbage_blocks() > before.blocks + FEW_BLOCKS
            || self.garbage_bytes() > before.bytes + 2 * COLLECT_EVERY_BYTES
    }

    /// Leaves garbage to the next collector, a page of notes at a time. What finds no page stays
    /// here: `orphan.rs` says how much of a nearly full arena is for that.
    #[cold]
    fn hand_over(&self) {
        while self.with_garbage(|garbage| garbage.has_sealed()) && self.memory.spares_orphan_page()
        {
            let Some(page) = self.allocate_page() else {
                break;
            };
            let next = || {
                let (retired, stamp) = self.with_garbage(Garbage::pop)?;
                let is_kept = !is_broken("orphans: the stamps of what is handed over");
                Some((retired, if is_kept { stamp } else { 0 }))
            };
            self.memory.push_orphan_page(page, next);
        }
        self.flush_counters();
    }

    /// Frees all garbage of this process, if no process is pinned.
    #[cold]
    fn collect_all_own(&self) {
        for _ in 0..COLLECTS_ON_LEAVE {
            self.collect();
        }
    }

    /// Collects until little is left of what came since then, or patience is at its end.
    #[cold]
    fn collect_patiently(&self, before: GarbageAt, patience: Duration) {
        self.collect_all_own();
        if self.is_pinned() || cfg!(feature = "model") {
            return;
        }
        for _ in 0..LOOKS_BEFORE_SLEEP {
            if !self.has_much_garbage_since(before) {
                return;
            }
            std::hint::spin_loop();
            self.collect();
        }
        let begun = Instant::now();
        while self.has_much_garbage_since(before) && begun.elapsed() < patience {
            std::thread::sleep(LOOK_PAUSE);
            self.collect();
        }
    }

    /// Waits until all that are pinned now have unpinned: what was made unreachable before is used
    /// by no process then. The caller is not pinned. `pause` is called meanwhile; it may unwind or
    /// not return.
    pub fn wait_for_pinned(&self, mut pause: impl FnMut()) {
        debug_assert!(!self.is_pinned(), "would wait for itself");
        let epochs = self.memory.epochs();
        let stamp = epochs.stamp();
        let mut looks = 0u32;
        while epochs.try_advance() < stamp + EPOCHS_TO_SAFETY {
            looks += 1;
            if looks < LOOKS_BEFORE_SLEEP || cfg!(feature = "model") {
                sync::yield_now();
            } else {
                std::thread::sleep(LOOK_PAUSE);
                pause();
            }
        }
    }

    /// Gives back all that this process holds: its cache, its counts, and its garbage, to be freed
    /// by the next collector. For a process that will be idle. If a process is pinned and the
    /// garbage is much, it waits up to a second.
    pub fn flush(&self) {
        self.collect_patiently(GarbageAt::default(), PATIENCE_ON_LEAVE);
        while let Some((retired, stamp)) = self.with_garbage(Garbage::pop) {
            self.orphan(retired, stamp);
        }
        self.with_cache(|cache, kernel| cache.flush(kernel));
        self.flush_counters();
    }

    /// Blocks retired by this process and not freed yet.
    pub fn garbage_blocks(&self) -> usize {
        self.with_garbage(|garbage| garbage.blocks())
    }

    /// Their bytes.
    pub fn garbage_bytes(&self) -> usize {
        self.with_garbage(|garbage| garbage.bytes())
    }

    fn free_retired(&self, retired: Retired) {
        // It was taken off when it was retired.
        self.charge.add(block_bytes(retired.bytes) as i64);
        // SAFETY: the process that retired the block promised all but that pinned processes may
        // read it; those are gone.
        unsafe { self.free(retired.at, retired.bytes, retired.purpose) };
    }

    fn orphan(&self, retired: Retired, stamp: u64) {
        let page = || self.allocate_page();
        if !self.memory.push_orphan(retired, stamp, page) {
            self.memory.lose(retired);
        }
    }

    /// Memory for an orphan page, of the reserve if need be. Does not collect: that is where this
    /// may be called from.
    fn allocate_page(&self) -> Option<NonNull<u8>> {
        let class = class_of(ORPHAN_PAGE_BYTES);
        let placement = Placement::of(Purpose::Other);
        let page = self.with_cache(|cache, kernel| {
            cache.take(class, placement).or_else(|| {
                cache
                    .refill(kernel, class, placement, Urgency::Reserve)
                    .ok()
            })
        })?;
        self.account(Purpose::Other, ORPHAN_PAGE_BYTES as i64);
        Some(page)
    }

    #[inline]
    fn with_garbage<R>(&self, act: impl FnOnce(&mut Garbage) -> R) -> R {
        // SAFETY: as for the cache; Garbage is plain process-local data.
        act(unsafe { &mut *self.garbage.get() })
    }
}
