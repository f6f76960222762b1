//! COPY FROM, as a callback that it calls sees it.
use pgrx::pg_sys;
use std::ffi::c_void;

unsafe extern "C-unwind" {
    /// What COPY FROM has on the error context stack: it says the line.
    fn CopyFromErrorCallback(copy: *mut c_void);
}

/// Whether core's COPY FROM itself has called the callback that is under way: its entry of the
/// error context stack is the next one behind the callback's own.
pub fn is_caller() -> bool {
    // SAFETY: a variable of this process; entries of the stack are live.
    unsafe {
        let own = pg_sys::error_context_stack;
        let caller = match own.is_null() {
            true => own,
            false => (*own).previous,
        };
        !caller.is_null()
            && (*caller).callback.map_or(0, |callback| callback as usize)
                == CopyFromErrorCallback as *const () as usize
    }
}
