//! Core's hooks: each is a variable with the function of the library that was loaded last, which
//! calls the one before.
use super::local::ProcessLocal;
use std::cell::Cell;

/// What a hook of ours calls: the function that was in its variable, of the variable's type.
pub struct Previous<T: Copy>(ProcessLocal<Cell<T>>);

impl<T: Copy> Previous<T> {
    /// Nothing yet.
    pub const fn new(none: T) -> Previous<T> {
        Previous(ProcessLocal(Cell::new(none)))
    }

    /// Puts a function of ours into the hook's variable.
    ///
    /// # Safety
    /// The hook's variable, while core runs no other code that uses it: when libraries are loaded,
    /// or on the process's one thread.
    pub unsafe fn install(&self, variable: *mut T, ours: T) {
        // SAFETY: the caller's variable.
        self.0.set(unsafe { variable.replace(ours) });
    }

    /// The function.
    #[inline]
    pub fn get(&self) -> T {
        self.0.get()
    }
}
