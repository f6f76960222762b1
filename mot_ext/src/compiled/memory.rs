//! Memory contexts of forms.
use crate::pg;
use pgrx::pg_sys;
use std::ffi::CStr;

/// A context for little below the current one, which takes it along where it goes.
pub fn small_context_here(name: &'static CStr) -> pg_sys::MemoryContext {
    // SAFETY: the current context is live.
    unsafe { pg::small_context(pg_sys::CurrentMemoryContext, name) }
}

/// Makes `context` the current one while `action` runs; an error puts PostgreSQL's own back.
///
/// # Safety
/// A live context. What `action` makes in it is used no longer than it is kept there.
pub unsafe fn within<T>(context: pg_sys::MemoryContext, action: impl FnOnce() -> T) -> T {
    // SAFETY: a live context (caller).
    unsafe {
        let old = pg_sys::MemoryContextSwitchTo(context);
        let result = action();
        pg_sys::MemoryContextSwitchTo(old);
        result
    }
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
