//! The atomics of words that processes share by a protocol, and waiting for others.
//!
//! The feature `model` puts those of `mot_model` in their place, which let a scheduler choose at
//! each access which thread continues: see `interleavings/`. Words that only a latch protects, and
//! counters for views, stay as they are.

#[cfg(feature = "model")]
pub(crate) use mot_model::{AtomicU32, AtomicU64, fence, is_broken};
pub(crate) use std::sync::atomic::Ordering;
#[cfg(not(feature = "model"))]
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, fence};

/// Whether a model's test wants this step left out, to see that the model notices.
#[cfg(not(feature = "model"))]
#[inline(always)]
pub(crate) const fn is_broken(_step: &'static str) -> bool {
    false
}

/// The ordering of an access, or none if a model's test wants to see that it is needed.
#[inline(always)]
pub(crate) fn order_unless_broken(order: Ordering, step: &'static str) -> Ordering {
    if is_broken(step) {
        Ordering::Relaxed
    } else {
        order
    }
}

/// A block that may no longer be used, for models.
#[inline(always)]
pub(crate) fn freed(_block: std::ptr::NonNull<u8>, _bytes: usize) {
    #[cfg(feature = "model")]
    mot_model::freed(_block.addr().get(), _bytes);
}

/// A block that may be used again, for models.
#[inline(always)]
pub(crate) fn allocated(_block: std::ptr::NonNull<u8>, _bytes: usize) {
    #[cfg(feature = "model")]
    mot_model::allocated(_block.addr().get(), _bytes);
}

/// Reads of a latch held elsewhere before the processor is given up.
const LOOKS_BEFORE_YIELD: u32 = 64;

/// Waits a moment for another thread's few instructions. `turns` counts the waits.
pub(crate) fn pause(turns: &mut u32) {
    *turns += 1;
    if cfg!(feature = "model") || turns.is_multiple_of(LOOKS_BEFORE_YIELD) {
        yield_now();
    } else {
        std::hint::spin_loop();
    }
}

/// Sleeps while others work.
pub(crate) fn sleep(time: std::time::Duration) {
    if cfg!(feature = "model") {
        yield_now();
    } else {
        std::thread::sleep(time);
    }
}

/// Lets another thread run.
pub(crate) fn yield_now() {
    #[cfg(feature = "model")]
    mot_model::yield_now();
    #[cfg(not(feature = "model"))]
    std::thread::yield_now();
}
