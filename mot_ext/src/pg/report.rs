//! Errors, notices and lines for the server log that pgrx cannot write.
use super::text;
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::ffi::{c_char, c_int};

#[allow(ffi_unwind_calls)]
unsafe extern "C-unwind" {
    fn errcode(code: c_int) -> c_int;
    fn errdetail_internal(format: *const c_char, ...) -> c_int;
    fn errhint(format: *const c_char, ...) -> c_int;
    fn errfinish(file: *const c_char, line: c_int, function: *const c_char);
}

/// What a report says, copied into PostgreSQL's memory: nothing of it is left to drop when an error
/// jumps.
#[derive(Clone, Copy)]
pub struct Words {
    message: *mut c_char,
    /// NULL if there is none; the hint, too.
    detail: *mut c_char,
    hint: *mut c_char,
}

impl Words {
    /// In the database's own bytes.
    pub fn new(message: &str, detail: Option<&str>, hint: Option<&str>) -> Words {
        let copy = |said: Option<&str>| said.map_or(std::ptr::null_mut(), text::to_palloc);
        Words {
            message: copy(Some(message)),
            detail: copy(detail),
            hint: copy(hint),
        }
    }
}

/// Reports at a level as ereport() does; from ERROR on it does not return. `about` may fill further
/// fields, and holds nothing with a destructor.
pub unsafe fn report(level: PgLogLevel, code: PgSqlErrorCode, words: Words, about: impl Fn()) {
    // SAFETY: a report is begun, filled and finished; each format takes exactly one string; the
    // closure holds no value with a destructor (caller).
    unsafe {
        pg_sys::ffi::pg_guard_ffi_boundary(|| {
            #[allow(ffi_unwind_calls)]
            if pg_sys::errstart_cold(level as c_int, std::ptr::null()) {
                errcode(code as c_int);
                pg_sys::errmsg_internal(c"%s".as_ptr(), words.message);
                if !words.detail.is_null() {
                    errdetail_internal(c"%s".as_ptr(), words.detail);
                }
                if !words.hint.is_null() {
                    errhint(c"%s".as_ptr(), words.hint);
                }
                about();
                errfinish(c"report.rs".as_ptr(), line!() as c_int, c"report".as_ptr());
            }
        });
    }
}

/// Raises an error whose texts pgrx would not bring through whole: other than UTF-8 (`text`).
/// Returns for all others, which are for pgrx: that unwinds at once, without a jump before.
pub fn raise_unless_utf8(
    code: PgSqlErrorCode,
    message: &str,
    detail: Option<&str>,
    hint: Option<&str>,
) {
    let texts = [Some(message), detail, hint];
    if texts.into_iter().flatten().all(text::is_utf8) {
        return;
    }
    // SAFETY: nothing further is filled in.
    unsafe {
        report(
            PgLogLevel::ERROR,
            code,
            Words::new(message, detail, hint),
            || (),
        )
    };
    unreachable!("an error report at level ERROR unwinds");
}

/// Writes an ERROR line to the server log, with a hint unless that is empty, and returns: for
/// workers that retry.
pub fn error_without_jump(message: &str, hint: &str) {
    let (message, hint) = (text::to_c(message), text::to_c(hint));
    // SAFETY: an error record is begun, filled and sent as errfinish would, but nothing jumps; a
    // worker has no client. The formats take exactly one string each. The code stays
    // ERRCODE_INTERNAL_ERROR, errstart's default for an error.
    unsafe {
        if pg_sys::errstart_cold(pgrx::PgLogLevel::ERROR as i32, std::ptr::null()) {
            #[allow(ffi_unwind_calls)]
            pg_sys::errmsg_internal(c"%s".as_ptr(), message.as_ptr());
            if !hint.is_empty() {
                #[allow(ffi_unwind_calls)]
                errhint(c"%s".as_ptr(), hint.as_ptr());
            }
            pg_sys::EmitErrorReport();
            pg_sys::FlushErrorState();
        }
    }
}
