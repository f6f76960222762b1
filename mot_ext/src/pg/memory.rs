//! Memory contexts.
use crate::pg;
use pgrx::pg_sys;
use std::ffi::CStr;

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

/// A context for little below the current one, which takes it along where it goes.
pub fn small_context_here(name: &'static CStr) -> pg_sys::MemoryContext {
    // SAFETY: the current context is live.
    unsafe { pg::small_context(pg_sys::CurrentMemoryContext, name) }
}

/// Empties a context that is not empty already.
///
/// # Safety
/// A live context. Nothing in it is used any more.
#[inline]
pub unsafe fn empty(context: pg_sys::MemoryContext) {
    // SAFETY: a live context (caller).
    let known = unsafe { &*context };
    if !known.firstchild.is_null() || !known.reset_cbs.is_null() {
        // SAFETY: as above.
        unsafe { pg_sys::MemoryContextReset(context) };
    } else if !known.isReset {
        // SAFETY: it has neither children nor callbacks.
        unsafe { pg::empty_bare_context(context) };
    }
}
