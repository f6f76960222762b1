//! Lines for the server log that pgrx's macros cannot write.
use pgrx::pg_sys;
use std::ffi::{CString, c_char, c_int};

unsafe extern "C-unwind" {
    fn errhint(format: *const c_char, ...) -> c_int;
}

/// Writes an ERROR line to the server log, with a hint unless that is empty, and goes on: for workers that retry.
pub fn error_without_jump(text: &str, hint: &str) {
    let c_string = |text: &str| CString::new(text.replace('\0', " ")).expect("the NULs are gone");
    let (text, hint) = (c_string(text), c_string(hint));
    // SAFETY: an error record is begun, filled and sent as errfinish would, but nothing jumps; a worker has no client. The
    // formats take exactly one string each. The code stays ERRCODE_INTERNAL_ERROR, errstart's default for an error.
    unsafe {
        if pg_sys::errstart_cold(pgrx::PgLogLevel::ERROR as i32, std::ptr::null()) {
            #[allow(ffi_unwind_calls)]
            pg_sys::errmsg_internal(c"%s".as_ptr(), text.as_ptr());
            if !hint.is_empty() {
                #[allow(ffi_unwind_calls)]
                errhint(c"%s".as_ptr(), hint.as_ptr());
            }
            pg_sys::EmitErrorReport();
            pg_sys::FlushErrorState();
        }
    }
}
