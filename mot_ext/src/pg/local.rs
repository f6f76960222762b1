//! Statics of a process: PostgreSQL's code runs on one thread.
use std::ops::Deref;

/// A value that only this process's one thread uses.
pub struct ProcessLocal<T>(pub T);

// SAFETY: each process runs PostgreSQL's code, and ours that it calls, on one thread.
unsafe impl<T> Sync for ProcessLocal<T> {}
// SAFETY: as above.
unsafe impl<T> Send for ProcessLocal<T> {}

impl<T> Deref for ProcessLocal<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}
