//! Everything the tree takes from the machine: atomics, fences, waiting, prefetching.
//!
//! No other module names `core::sync::atomic`, so that a model checker can be put in their place
//! here (`cfg(loom)`).

pub(crate) use core::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering, fence};

/// Rounds of waiting that only pause the core. A latch is held for well under a microsecond, so a
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
        if self.round < PAUSE_ROUNDS && !cfg!(miri) {
            for _ in 0..1 << self.round {
                core::hint::spin_loop();
            }
            self.round += 1;
        } else {
            std::thread::yield_now();
        }
    }
}

/// Bytes of a cache line; a prefetch brings in one.
const CACHE_LINE_BYTES: usize = 64;

/// Asks for the cache lines of `bytes` bytes from `address` on, so that their misses overlap.
/// The address need not be valid: a prefetch never faults.
#[inline(always)]
pub(crate) fn prefetch(address: u64, bytes: usize) {
    let mut offset = 0;
    while offset < bytes {
        prefetch_line(address.wrapping_add(offset as u64));
        offset += CACHE_LINE_BYTES;
    }
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
