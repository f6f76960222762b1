//! A latch: one word in shared memory, held for a few hundred instructions at most.
//!
//! Contract: works between processes and threads alike, because it is only a word. The waiter
//! spins, then yields the processor, so a holder that lost its core gets it back. No queue, no
//! deadlock detection: the holder of a latch takes no second one, makes no call that can wait or
//! raise an error, and is never killed without the whole region being reset afterwards. A guard
//! cannot leave its thread.

use crate::sync::{AtomicU32, Ordering};
use std::marker::PhantomData;

/// Spins this often before the first yield: about the time a critical section takes.
const SPINS_BEFORE_YIELD: u32 = 128;

const FREE: u32 = 0;
const HELD: u32 = 1;

/// A spin latch. All-zero bytes are a free latch.
#[repr(transparent)]
#[derive(Default)]
pub struct Latch(AtomicU32);

impl Latch {
    /// Takes the latch, waiting for it if need be.
    #[inline]
    pub fn lock(&self) -> LatchGuard<'_> {
        if !self.acquire() {
            self.wait();
        }
        LatchGuard::new(self)
    }

    /// Takes the latch if it is free.
    #[inline]
    pub fn try_lock(&self) -> Option<LatchGuard<'_>> {
        self.acquire().then(|| LatchGuard::new(self))
    }

    /// Whether no process holds it right now.
    pub(crate) fn is_free(&self) -> bool {
        self.0.load(Ordering::Acquire) == FREE
    }

    #[inline]
    fn acquire(&self) -> bool {
        self.0
            .compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    #[cold]
    fn wait(&self) {
        let mut spins = 0;
        loop {
            while self.0.load(Ordering::Relaxed) != FREE {
                spins += 1;
                if spins < SPINS_BEFORE_YIELD && !cfg!(feature = "model") {
                    std::hint::spin_loop();
                } else {
                    yield_processor();
                }
            }
            if self.acquire() {
                return;
            }
        }
    }
}

/// Lets another process run.
pub(super) fn yield_processor() {
    crate::sync::yield_now();
}

/// A held latch; dropping it frees the latch.
#[must_use]
pub struct LatchGuard<'a> {
    latch: &'a Latch,
    not_send: PhantomData<*mut ()>,
}

impl<'a> LatchGuard<'a> {
    #[inline]
    fn new(latch: &'a Latch) -> LatchGuard<'a> {
        held::enter();
        LatchGuard {
            latch,
            not_send: PhantomData,
        }
    }
}

impl Drop for LatchGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        held::leave();
        self.latch.0.store(FREE, Ordering::Release);
    }
}

/// Latches this thread holds right now, to be asserted zero before any call that may raise an error
/// or wait. Counted in builds with debug assertions only; otherwise always 0.
pub fn latches_held() -> u32 {
    held::count()
}

// In a model all sessions run on one thread.
#[cfg(all(debug_assertions, not(feature = "model")))]
mod held {
    use std::cell::Cell;

    thread_local! {
        static HELD: Cell<u32> = const { Cell::new(0) };
    }

    pub(super) fn enter() {
        HELD.with(|held| held.set(held.get() + 1));
    }

    pub(super) fn leave() {
        HELD.with(|held| held.set(held.get() - 1));
    }

    pub(super) fn count() -> u32 {
        HELD.with(Cell::get)
    }
}

#[cfg(not(all(debug_assertions, not(feature = "model"))))]
mod held {
    #[inline(always)]
    pub(super) fn enter() {}

    #[inline(always)]
    pub(super) fn leave() {}

    pub(super) fn count() -> u32 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn excludes_and_counts() {
        let latch = Latch::default();
        assert_eq!(latches_held(), 0);
        let guard = latch.lock();
        assert!(latch.try_lock().is_none());
        assert_eq!(
            latches_held(),
            u32::from(cfg!(debug_assertions) && !cfg!(feature = "model"))
        );
        drop(guard);
        assert_eq!(latches_held(), 0);
        assert!(latch.try_lock().is_some());
    }

    #[test]
    fn threads_do_not_lose_updates() {
        let latch = Latch::default();
        let counter = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..20_000 {
                        let _guard = latch.lock();
                        // Not a read-modify-write: only the latch makes it exact.
                        counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(counter.load(Ordering::Relaxed), 80_000);
    }
}
