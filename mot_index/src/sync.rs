//! Everything the tree takes from the machine: atomics, fences, waiting, prefetching.
//!
//! No other module names `core::sync::atomic`, so that other atomics can be put in their place
//! here: the features `jitter` and `model` do so, for tests.

pub(crate) use core::sync::atomic::Ordering;
#[cfg(not(feature = "model"))]
pub(crate) use core::sync::atomic::fence;
#[cfg(not(any(feature = "jitter", feature = "model")))]
pub(crate) use core::sync::atomic::{AtomicU16, AtomicU32, AtomicU64};
#[cfg(all(feature = "jitter", not(feature = "model")))]
pub(crate) use jitter::{AtomicU16, AtomicU32, AtomicU64};
#[cfg(feature = "model")]
pub(crate) use mot_model::{AtomicU16, AtomicU32, AtomicU64, fence, is_broken};

/// Whether a model's test leaves this step out, to see that the model notices.
#[cfg(not(feature = "model"))]
#[inline(always)]
pub(crate) const fn is_broken(_step: &'static str) -> bool {
    false
}

/// A load of bits that never change since other threads know of the word. For a model it is no
/// step, so that the model has more steps for the others.
#[inline(always)]
pub(crate) fn load_constant(word: &AtomicU64) -> u64 {
    #[cfg(feature = "model")]
    return word.load_constant();
    #[cfg(not(feature = "model"))]
    word.load(Ordering::Relaxed)
}

/// Rounds of waiting that only pause the core. A latch is held for well under a microsecond. So a
/// longer wait means that its holder was preempted and needs a core more than the waiter does.
const PAUSE_ROUNDS: u32 = 6;

/// A wait for another thread's or process's latch: short pauses first, then the scheduler.
pub(crate) struct Wait {
    round: u32,
}

impl Wait {
    pub(crate) fn new() -> Self {
        Wait { round: 0 }
    }

    /// Waits a little; longer each time, and from [`PAUSE_ROUNDS`] on by `sched_yield`.
    pub(crate) fn once(&mut self) {
        if self.round < PAUSE_ROUNDS && !cfg!(any(miri, feature = "model")) {
            for _ in 0..1 << self.round {
                core::hint::spin_loop();
            }
            self.round += 1;
        } else {
            yield_now();
        }
    }
}

#[cfg(feature = "model")]
use mot_model::yield_now;
#[cfg(not(feature = "model"))]
use std::thread::yield_now;

/// Bytes of a cache line; a prefetch brings in one.
const CACHE_LINE_BYTES: usize = 64;

/// Prefetches the cache lines of `bytes` bytes from `address` on, so that their misses overlap.
/// The address need not be valid: a prefetch never faults.
#[inline(always)]
pub(crate) fn prefetch(address: u64, bytes: usize) {
    let mut offset = 0;
    while offset < bytes {
        prefetch_line(address.wrapping_add(offset as u64));
        offset += CACHE_LINE_BYTES;
    }
}

/// The same, if they do not begin with a line: the last byte may lie in one line more.
#[inline(always)]
pub(crate) fn prefetch_all(address: u64, bytes: usize) {
    prefetch(address, bytes);
    prefetch_line(address.wrapping_add(bytes as u64).wrapping_sub(1));
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
fn prefetch_line(address: u64) {
    use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a prefetch hint reads nothing architecturally and cannot fault, whatever the address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address as usize as *const i8) }
}

#[cfg(all(target_arch = "aarch64", not(miri)))]
#[inline(always)]
fn prefetch_line(address: u64) {
    // SAFETY: a prefetch hint reads nothing architecturally and cannot fault, whatever the address.
    unsafe {
        core::arch::asm!("prfm pldl1keep, [{0}]", in(reg) address,
            options(nostack, preserves_flags, readonly));
    }
}

#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
#[inline(always)]
fn prefetch_line(_address: u64) {}

/// Atomics that give up the processor before one access in [`ACCESSES_PER_YIELD`], at random.
#[cfg(all(feature = "jitter", not(feature = "model")))]
mod jitter {
    use super::Ordering;
    use core::sync::atomic;
    use std::cell::Cell;
    use std::hash::{BuildHasher, RandomState};

    /// Few enough that a descent is interrupted often, enough that tests make headway.
    const ACCESSES_PER_YIELD: u64 = 100;

    thread_local! {
        static STATE: Cell<u64> = Cell::new(RandomState::new().hash_one(0) | 1);
    }

    fn perhaps_yield() {
        let random = STATE.with(|state| {
            // Marsaglia's xorshift.
            let mut random = state.get();
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            state.set(random);
            random
        });
        if random.is_multiple_of(ACCESSES_PER_YIELD) {
            std::thread::yield_now();
        }
    }

    macro_rules! atomic {
        ($name:ident, $int:ty) => {
            #[derive(Default)]
            #[repr(transparent)]
            pub(crate) struct $name(atomic::$name);

            impl $name {
                pub(crate) fn load(&self, order: Ordering) -> $int {
                    perhaps_yield();
                    self.0.load(order)
                }

                pub(crate) fn store(&self, word: $int, order: Ordering) {
                    perhaps_yield();
                    self.0.store(word, order);
                }
            }
        };
    }

    atomic!(AtomicU16, u16);
    atomic!(AtomicU32, u32);
    atomic!(AtomicU64, u64);

    impl AtomicU32 {
        pub(crate) const fn new(word: u32) -> Self {
            AtomicU32(atomic::AtomicU32::new(word))
        }
    }

    impl AtomicU64 {
        pub(crate) const fn new(word: u64) -> Self {
            AtomicU64(atomic::AtomicU64::new(word))
        }

        pub(crate) fn compare_exchange(
            &self,
            old: u64,
            new: u64,
            success: Ordering,
            failure: Ordering,
        ) -> Result<u64, u64> {
            perhaps_yield();
            self.0.compare_exchange(old, new, success, failure)
        }
    }
}
