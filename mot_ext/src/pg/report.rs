//! Lines for the server log that pgrx's macros cannot write.
use pgrx::pg_sys;
use std::ffi::CString;

/// Writes an ERROR line to the server log and goes on: for workers that retry.
pub fn error_without_jump(text: &str) {
    let text = CString::new(text.replace('\0', " ")).expect("the NULs are gone");
    // SAFETY: an error record is begun, filled and sent as errfinish would, but nothing jumps; a worker has no client. The
    // format takes exactly one string. The code stays ERRCODE_INTERNAL_ERROR, errstart's default for an error.
    unsafe {
        if pg_sys::errstart_cold(pgrx::PgLogLevel::ERROR as i32, std::ptr::null()) {
            #[allow(ffi_unwind_calls)]
            pg_sys::errmsg_internal(c"%s".as_ptr(), text.as_ptr());
            pg_sys::EmitErrorReport();
            pg_sys::FlushErrorState();
        }
    }
}
