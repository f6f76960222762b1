//! Atomics with the bytes of the standard ones. In a run each access first lets the scheduler
//! choose who goes on.

use crate::memory;
use crate::run::switch;
use core::sync::atomic::{self, Ordering};

macro_rules! atomic {
    ($name:ident, $int:ty) => {
        /// As in the standard library.
        #[repr(transparent)]
        #[derive(Default, Debug)]
        pub struct $name(atomic::$name);

        impl $name {
            /// An atomic with this value.
            pub const fn new(value: $int) -> Self {
                Self(atomic::$name::new(value))
            }

            fn address(&self) -> usize {
                core::ptr::from_ref(self).addr()
            }

            /// Its bytes are always the newest value.
            fn newest(&self) -> u64 {
                self.0.load(Ordering::Relaxed) as u64
            }

            /// What never changes since others know of it, which no order of theirs makes another:
            /// no step of the run.
            pub fn load_constant(&self) -> $int {
                self.0.load(Ordering::Relaxed)
            }

            /// As in the standard library.
            pub fn load(&self, order: Ordering) -> $int {
                if !switch() {
                    return self.0.load(order);
                }
                memory::load(self.address(), self.newest(), order) as $int
            }

            /// As in the standard library.
            pub fn store(&self, value: $int, order: Ordering) {
                if !switch() {
                    return self.0.store(value, order);
                }
                memory::store(self.address(), self.newest(), value as u64, order);
                self.0.store(value, Ordering::Relaxed);
            }

            fn change(
                &self,
                order: Ordering,
                failure: Ordering,
                change: impl Fn($int) -> Option<$int>,
            ) -> Result<$int, $int> {
                if !switch() {
                    return self.0.fetch_update(order, failure, change);
                }
                let wide = |value: u64| change(value as $int).map(|value| value as u64);
                match memory::update(self.address(), self.newest(), order, failure, wide) {
                    (old, Some(new)) => {
                        self.0.store(new as $int, Ordering::Relaxed);
                        Ok(old as $int)
                    }
                    (old, None) => Err(old as $int),
                }
            }

            fn always(&self, order: Ordering, change: impl Fn($int) -> $int) -> $int {
                let read = match order {
                    Ordering::AcqRel => Ordering::Acquire,
                    Ordering::Release => Ordering::Relaxed,
                    order => order,
                };
                self.change(order, read, |old| Some(change(old)))
                    .unwrap_or_else(|old| old)
            }

            /// As in the standard library.
            pub fn compare_exchange(
                &self,
                old: $int,
                new: $int,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$int, $int> {
                self.change(success, failure, |now| (now == old).then_some(new))
            }

            /// As in the standard library, but it fails only if it must.
            pub fn compare_exchange_weak(
                &self,
                old: $int,
                new: $int,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$int, $int> {
                self.compare_exchange(old, new, success, failure)
            }

            /// As in the standard library.
            pub fn swap(&self, value: $int, order: Ordering) -> $int {
                self.always(order, |_| value)
            }

            /// As in the standard library.
            pub fn fetch_add(&self, value: $int, order: Ordering) -> $int {
                self.always(order, |old| old.wrapping_add(value))
            }

            /// As in the standard library.
            pub fn fetch_sub(&self, value: $int, order: Ordering) -> $int {
                self.always(order, |old| old.wrapping_sub(value))
            }

            /// As in the standard library.
            pub fn fetch_or(&self, value: $int, order: Ordering) -> $int {
                self.always(order, |old| old | value)
            }

            /// As in the standard library.
            pub fn fetch_and(&self, value: $int, order: Ordering) -> $int {
                self.always(order, |old| old & value)
            }

            /// As in the standard library.
            pub fn fetch_xor(&self, value: $int, order: Ordering) -> $int {
                self.always(order, |old| old ^ value)
            }

            /// As in the standard library.
            pub fn fetch_max(&self, value: $int, order: Ordering) -> $int {
                self.always(order, |old| old.max(value))
            }
        }
    };
}

atomic!(AtomicU16, u16);
atomic!(AtomicU32, u32);
atomic!(AtomicU64, u64);
atomic!(AtomicI64, i64);

/// As in the standard library.
pub fn fence(order: Ordering) {
    if switch() {
        memory::fence(order);
    } else {
        atomic::fence(order);
    }
}
