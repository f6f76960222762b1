//! Steps along lists that can become long: a row's chain, the row ids of a key. Counted in builds
//! with debug assertions, so that a test can distinguish work that grows with a list from work that
//! grows with its square, on any machine and beside any load.

/// Steps this thread has taken so far; always 0 in builds without debug assertions.
pub fn steps_taken() -> u64 {
    taken::count()
}

/// A thread takes one.
#[inline(always)]
pub(crate) fn step() {
    taken::add();
}

#[cfg(debug_assertions)]
mod taken {
    use std::cell::Cell;

    thread_local! {
        static TAKEN: Cell<u64> = const { Cell::new(0) };
    }

    #[inline]
    pub(super) fn add() {
        TAKEN.with(|taken| taken.set(taken.get() + 1));
    }

    pub(super) fn count() -> u64 {
        TAKEN.with(Cell::get)
    }
}

#[cfg(not(debug_assertions))]
mod taken {
    #[inline(always)]
    pub(super) fn add() {}

    pub(super) fn count() -> u64 {
        0
    }
}
