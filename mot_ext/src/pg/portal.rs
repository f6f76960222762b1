//! The portal that runs.
use pgrx::pg_sys;

/// Whether others may name the portal that is active in WHERE CURRENT OF. EXECUTE's own portal has
/// a name, but is not visible.
#[inline]
pub fn is_active_named() -> bool {
    // SAFETY: a variable of this process, with a live portal or NULL.
    let portal = unsafe { pg_sys::ActivePortal.as_ref() };
    // SAFETY: a portal's name is a string.
    portal.is_some_and(|portal| portal.visible && unsafe { *portal.name } != 0)
}
