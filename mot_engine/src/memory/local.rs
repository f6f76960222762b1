//! One process's (or thread's) way into the arena.
//!
//! Contract: made by [`Memory::join`] in the process that uses it, never used in another (not even
//! a forked child), used by one thread. Dropping it gives the cache back, hands unfreed garbage
//! over to the others and releases the epoch line. Nothing in here calls out while it uses the
//! cache or the garbage (waiting does, between: `pause`), so neither is entered twice.

mod charge;
mod collect;

use super::account::{PURPOSES, Purpose};
use super::arena::{ArenaFull, Memory, Urgency};
use super::cache::Cache;
use super::chunk::SPAN_BYTES;
use super::epoch::{EPOCH_PARTICIPANTS_MAX, Participant, TooManyParticipants};
use super::garbage::Garbage;
use super::placement::{Kernel, LinuxKernel, NoWait, Placement};
use super::size_class::{BLOCK_ALIGN, SMALL_BYTES_MAX, block_bytes, class_bytes, class_of};
use crate::sync;
use std::cell::{Cell, UnsafeCell};
use std::marker::PhantomData;
use std::ptr::NonNull;

use charge::Charge;
pub(crate) use charge::{Outer, UNLIMITED};
pub use collect::GarbageAt;

/// Debug builds overwrite freed blocks with this, so that a reader of freed memory shows.
#[cfg(debug_assertions)]
const FREED: u8 = 0xDD;
/// Of larger blocks, so much: more would slow tests down.
#[cfg(debug_assertions)]
const FREED_BYTES_MAX: usize = 4096;

/// One participant.
pub struct LocalMemory {
    memory: Memory,
    kernel: Box<dyn Kernel>,
    participant: &'static Participant,
    cache: UnsafeCell<Cache>,
    garbage: UnsafeCell<Garbage>,
    /// Retired since the last collection.
    retired_blocks: Cell<usize>,
    retired_bytes: Cell<usize>,
    pins: Cell<u32>,
    /// Every allocation may continue to the last span: see `use_reserve`.
    uses_reserve: Cell<bool>,
    /// Raised by `unpin_all`, so that guards from before do not count.
    pin_generation: Cell<u32>,
    /// Not yet added to the shared counters.
    purpose_bytes: [Cell<i64>; PURPOSES],
    charge: Charge,
    process: u32,
    not_send: PhantomData<*mut ()>,
}

/// Keeps what is reachable now from being reused; dropping it ends that.
#[must_use]
pub struct Pin<'a> {
    local: &'a LocalMemory,
    generation: u32,
}

impl Drop for Pin<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.generation == self.local.pin_generation.get() {
            self.local.unpin();
        }
    }
}

impl Memory {
    /// Enters the arena.
    pub fn join(self) -> Result<LocalMemory, TooManyParticipants> {
        self.join_with(Box::new(LinuxKernel))
    }

    /// Enters the arena, if that leaves so many places to those that `join`.
    pub fn join_leaving(self, places: usize) -> Result<LocalMemory, TooManyParticipants> {
        self.join_as(Box::new(LinuxKernel), EPOCH_PARTICIPANTS_MAX - places)
    }

    /// Enters the arena on a machine of the caller's own making.
    pub fn join_with(self, kernel: Box<dyn Kernel>) -> Result<LocalMemory, TooManyParticipants> {
        self.join_as(kernel, EPOCH_PARTICIPANTS_MAX)
    }

    fn join_as(
        self,
        kernel: Box<dyn Kernel>,
        places: usize,
    ) -> Result<LocalMemory, TooManyParticipants> {
        Ok(LocalMemory {
            memory: self,
            kernel,
            cache: UnsafeCell::new(Cache::new(self)),
            garbage: UnsafeCell::default(),
            participant: self.claim_participant(places)?,
            retired_blocks: Cell::new(0),
            retired_bytes: Cell::new(0),
            pins: Cell::new(0),
            uses_reserve: Cell::new(false),
            pin_generation: Cell::new(0),
            purpose_bytes: Default::default(),
            charge: Charge::new(),
            process: std::process::id(),
            not_send: PhantomData,
        })
    }
}

impl LocalMemory {
    /// The shared handle.
    pub fn memory(&self) -> Memory {
        self.memory
    }

    /// From now on all allocations are as urgent as [`Urgency::Reserve`]: for recovery.
    pub fn use_reserve(&self) {
        self.uses_reserve.set(true);
    }

    fn urgency(&self, asked: Urgency) -> Urgency {
        if self.uses_reserve.get() {
            Urgency::Reserve
        } else {
            asked
        }
    }

    /// Takes a block of at least `bytes`, 8-byte aligned, and 16-, 32- or 64-byte aligned if
    /// `bytes` is a multiple of that. Its contents are arbitrary. Without room nothing has
    /// happened.
    #[inline]
    pub fn allocate(
        &self,
        bytes: usize,
        purpose: Purpose,
        urgency: Urgency,
    ) -> Result<NonNull<u8>, ArenaFull> {
        self.allocate_for(bytes, purpose, urgency, false)
    }

    /// `allocate` for a caller that holds latches of its own, for which others wait. The kernel is
    /// asked for nothing that takes long and that can be done without (`huge.rs`).
    #[inline]
    pub fn allocate_no_wait(
        &self,
        bytes: usize,
        purpose: Purpose,
        urgency: Urgency,
    ) -> Result<NonNull<u8>, ArenaFull> {
        self.allocate_for(bytes, purpose, urgency, true)
    }

    #[inline]
    fn allocate_for(
        &self,
        bytes: usize,
        purpose: Purpose,
        urgency: Urgency,
        no_wait: bool,
    ) -> Result<NonNull<u8>, ArenaFull> {
        if bytes > SMALL_BYTES_MAX {
            return self.allocate_large(bytes, purpose, urgency, no_wait);
        }
        let class = class_of(bytes);
        if !self.charge.has_room(class_bytes(class)) && urgency == Urgency::Ordinary {
            return Err(self.charge.refuse(bytes));
        }
        let placement = Placement::of(purpose);
        let block = match self.with_cache(|cache, _| cache.take(class, placement)) {
            Some(block) => block,
            None => self.allocate_slow(class, placement, urgency, no_wait)?,
        };
        sync::allocated(block, class_bytes(class));
        self.account(purpose, class_bytes(class) as i64);
        self.charge.add(class_bytes(class) as i64);
        Ok(block)
    }

    /// Gives a block back that nothing else can reach.
    ///
    /// # Safety
    /// The block came from `allocate` with this size (in any process), was neither freed nor
    /// retired since, and nothing uses it any more.
    #[inline]
    pub unsafe fn free(&self, at: NonNull<u8>, bytes: usize, purpose: Purpose) {
        debug_assert!(self.memory.contains(at) && at.addr().get().is_multiple_of(BLOCK_ALIGN));
        self.charge.add(-(block_bytes(bytes) as i64));
        self.account(purpose, -(block_bytes(bytes) as i64));
        #[cfg(debug_assertions)]
        // SAFETY: the block is at least so long and the caller gives it up.
        unsafe {
            at.write_bytes(FREED, block_bytes(bytes).min(FREED_BYTES_MAX));
        }
        sync::freed(at, bytes);
        if bytes > SMALL_BYTES_MAX {
            self.memory.give_large(&*self.kernel, at, bytes);
            self.flush_counters();
            return;
        }
        self.with_cache(|cache, kernel| cache.give(kernel, class_of(bytes), at));
    }

    /// Pins: until the guard is dropped nothing that can be found now is reused. Guards nest; keep
    /// them short, for no garbage is freed meanwhile.
    #[inline]
    pub fn pin(&self) -> Pin<'_> {
        if self.pins.get() == 0 {
            self.participant.pin(self.memory.epochs().now());
        }
        self.pins.set(self.pins.get() + 1);
        Pin {
            local: self,
            generation: self.pin_generation.get(),
        }
    }

    #[inline]
    fn unpin(&self) {
        self.pins.set(self.pins.get() - 1);
        if self.pins.get() == 0 {
            self.participant.unpin();
        }
    }

    /// Ends all pins, for after an error that jumped over their guards. Guards that still exist no
    /// longer count.
    pub fn unpin_all(&self) {
        self.pin_generation
            .set(self.pin_generation.get().wrapping_add(1));
        self.pins.set(0);
        self.participant.unpin();
    }

    /// Whether a guard counts.
    #[inline]
    pub fn is_pinned(&self) -> bool {
        self.pins.get() > 0
    }

    /// Bytes in this process's cache.
    pub fn cache_bytes(&self) -> usize {
        self.with_cache(|cache, _| cache.bytes())
    }

    #[cold]
    fn allocate_slow(
        &self,
        class: usize,
        placement: Placement,
        urgency: Urgency,
        no_wait: bool,
    ) -> Result<NonNull<u8>, ArenaFull> {
        self.assert_own_process();
        self.flush_counters();
        let urgency = self.urgency(urgency);
        let refill = |cache: &mut Cache, kernel: &dyn Kernel| {
            let no_wait_kernel = NoWait(kernel);
            let kernel = if no_wait { &no_wait_kernel } else { kernel };
            cache.refill(kernel, class, placement, urgency)
        };
        let block = self.with_cache(refill).or_else(|_| {
            self.make_room(no_wait);
            self.with_cache(refill)
        })?;
        if !no_wait {
            self.memory.keep_ready(&*self.kernel);
        }
        Ok(block)
    }

    #[cold]
    fn allocate_large(
        &self,
        bytes: usize,
        purpose: Purpose,
        urgency: Urgency,
        no_wait: bool,
    ) -> Result<NonNull<u8>, ArenaFull> {
        self.assert_own_process();
        let block_bytes = bytes.next_multiple_of(SPAN_BYTES);
        if !self.charge.has_room(block_bytes) && urgency == Urgency::Ordinary {
            return Err(self.charge.refuse(bytes));
        }
        let urgency = self.urgency(urgency);
        let placement = Placement::of(purpose);
        let take = |cache: &mut Cache, kernel: &dyn Kernel| {
            let pool = cache.pool(kernel, placement);
            let no_wait_kernel = NoWait(kernel);
            let kernel = if no_wait { &no_wait_kernel } else { kernel };
            self.memory.take_large(kernel, bytes, pool, urgency)
        };
        let block = self.with_cache(take).or_else(|_| {
            self.make_room(no_wait);
            self.with_cache(take)
        })?;
        self.account(purpose, block_bytes as i64);
        self.charge.add(block_bytes as i64);
        sync::allocated(block, bytes);
        self.flush_counters();
        Ok(block)
    }

    /// Frees what may be freed, and gives the others what this process can spare, before it reports
    /// that the arena is full. A process for which others wait frees some of it.
    fn make_room(&self, no_wait: bool) {
        if no_wait {
            self.collect();
        } else {
            self.collect_all(|| {});
        }
        self.with_cache(|cache, kernel| cache.flush(kernel));
    }

    #[inline]
    fn account(&self, purpose: Purpose, bytes: i64) {
        let count = &self.purpose_bytes[purpose as usize];
        count.set(count.get() + bytes);
    }

    /// Adds this process's counts to the shared ones.
    fn flush_counters(&self) {
        for purpose in Purpose::ALL {
            let bytes = self.purpose_bytes[purpose as usize].take();
            if bytes != 0 {
                self.memory.add_purpose_bytes(purpose, bytes);
            }
        }
    }

    #[inline]
    fn with_cache<R>(&self, act: impl FnOnce(&mut Cache, &dyn Kernel) -> R) -> R {
        // SAFETY: one thread (not Send, not Sync), and `act` never comes back here: the cache and
        // the shared structures know nothing of LocalMemory. So this is the only reference.
        act(unsafe { &mut *self.cache.get() }, &*self.kernel)
    }

    fn assert_own_process(&self) {
        debug_assert_eq!(self.process, std::process::id(), "used in a forked child");
    }
}

impl Drop for LocalMemory {
    fn drop(&mut self) {
        // A forked child that drops an inherited copy must not touch its parent's line and blocks.
        if self.process != std::process::id() {
            return;
        }
        self.unpin_all();
        self.flush();
        self.memory.release_participant(self.participant);
    }
}
