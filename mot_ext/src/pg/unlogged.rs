//! Files of unlogged relations, as recovery sees them (`storage/file/reinit.c`).
use pgrx::pg_sys;
use std::ffi::c_int;

/// `UNLOGGED_RELATION_CLEANUP` of `storage/reinit.h`.
const CLEAN_UP: c_int = 0x0001;

#[allow(ffi_unwind_calls)]
unsafe extern "C-unwind" {
    fn ResetUnloggedRelations(operations: c_int);
}

/// Removes all files of unlogged relations but their init forks, in all databases and tablespaces.
/// Raises if a directory cannot be read.
///
/// # Safety
/// In the startup process, before recovery is over.
pub unsafe fn remove_all_but_init_forks() {
    // SAFETY: the caller is the startup process, and no process reads such a relation before
    // recovery is over; errors pass the guard.
    #[allow(ffi_unwind_calls)]
    unsafe {
        pg_sys::ffi::pg_guard_ffi_boundary(|| ResetUnloggedRelations(CLEAN_UP));
    }
}
