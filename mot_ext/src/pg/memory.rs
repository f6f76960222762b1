//! Memory contexts.
use pgrx::pg_sys;

/// Does something while a context is the current one. After an error core sets another one.
///
/// # Safety
/// The context is live. What is allocated in it meanwhile is not used after it is emptied.
#[inline]
pub unsafe fn within<T>(context: pg_sys::MemoryContext, action: impl FnOnce() -> T) -> T {
    // SAFETY: a live context (caller), and the one that was current.
    unsafe {
        let old = pg_sys::MemoryContextSwitchTo(context);
        let done = action();
        pg_sys::MemoryContextSwitchTo(old);
        done
    }
}
