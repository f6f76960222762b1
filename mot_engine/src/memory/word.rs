//! Words in shared memory that one latch protects.
//!
//! Contract: a word is written only under the latch its owner names (or by the one process that
//! owns the thing it describes), so relaxed accesses suffice: the latch's acquire and release order
//! them. Reading without the latch gives some recent value, good for reports and hints. Atomics
//! rather than `UnsafeCell` keep such reads defined.

use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

macro_rules! word {
    ($name:ident, $atomic:ident, $int:ident) => {
        /// A latched word; all zero bytes are a valid value.
        #[repr(transparent)]
        pub(super) struct $name($atomic);

        #[allow(dead_code)]
        impl $name {
            #[inline]
            pub(super) fn get(&self) -> $int {
                self.0.load(Ordering::Relaxed)
            }

            #[inline]
            pub(super) fn set(&self, value: $int) {
                self.0.store(value, Ordering::Relaxed);
            }

            /// Adds under the latch: two plain moves, not a locked instruction.
            #[inline]
            pub(super) fn add(&self, value: $int) {
                self.set(self.get() + value);
            }

            /// Subtracts under the latch.
            #[inline]
            pub(super) fn sub(&self, value: $int) {
                self.set(self.get() - value);
            }
        }
    };
}

word!(Word16, AtomicU16, u16);
word!(Word32, AtomicU32, u32);
word!(Word64, AtomicU64, u64);
