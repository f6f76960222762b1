//! An error that PostgreSQL has raised, kept to be raised again whole.
use pgrx::pg_sys;
use pgrx::pg_sys::panic::ErrorReportWithLevel;
use pgrx::{PgLogLevel, PgSqlErrorCode};
use std::collections::BTreeSet;
use std::ffi::{CStr, CString, c_char};
use std::sync::Mutex;

/// An error as it was raised, with texts of its own.
pub struct Noted {
    pub error: pg_sys::ErrorData,
    /// Where it is raised again from, if that is not where the callback was called from; else NULL.
    pub from: *mut pg_sys::ErrorContextCallback,
}

/// The texts that an error owns.
fn texts(error: &mut pg_sys::ErrorData) -> [&mut *mut c_char; 12] {
    [
        &mut error.message,
        &mut error.detail,
        &mut error.detail_log,
        &mut error.hint,
        &mut error.context,
        &mut error.backtrace,
        &mut error.schema_name,
        &mut error.table_name,
        &mut error.column_name,
        &mut error.datatype_name,
        &mut error.constraint_name,
        &mut error.internalquery,
    ]
}

impl Noted {
    /// Copies it; `is_users`: with its context.
    ///
    /// # Safety
    /// A live error.
    pub unsafe fn new(
        error: &pg_sys::ErrorData,
        is_users: bool,
        from: *mut pg_sys::ErrorContextCallback,
    ) -> Noted {
        let mut error = *error;
        if !is_users {
            error.context = std::ptr::null_mut();
            error.internalquery = std::ptr::null_mut();
            (error.cursorpos, error.internalpos) = (0, 0);
        }
        // SAFETY: each is NULL or a C string of the error's.
        unsafe {
            for text in texts(&mut error) {
                if !text.is_null() {
                    *text = CStr::from_ptr(*text).to_owned().into_raw();
                }
            }
            for name in [&mut error.filename, &mut error.funcname, &mut error.domain] {
                *name = for_ever(*name);
            }
        }
        // These are not read when it is raised again.
        error.context_domain = std::ptr::null();
        error.message_id = std::ptr::null();
        error.assoc_context = std::ptr::null_mut();
        Noted { error, from }
    }

    /// Bytes of its texts.
    pub fn bytes(&self) -> usize {
        let mut error = self.error;
        texts(&mut error)
            .into_iter()
            .filter(|text| !text.is_null())
            // SAFETY: a C string of this error's.
            .map(|text| unsafe { CStr::from_ptr(*text) }.count_bytes())
            .sum()
    }

    /// Whether pgrx made this report of it.
    pub fn is(&self, report: &ErrorReportWithLevel) -> bool {
        let text = |text: *const c_char| {
            // SAFETY: NULL or a C string of this error's.
            (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy())
        };
        let error = &self.error;
        report.level() == PgLogLevel::ERROR
            && report.sql_error_code() == PgSqlErrorCode::from(error.sqlerrcode)
            && report.line_number() == error.lineno as u32
            && report.function_name() == text(error.funcname).as_deref()
            && text(error.message).is_none_or(|message| report.message() == message)
            && report.detail() == text(error.detail).as_deref()
            && report.hint() == text(error.hint).as_deref()
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        for text in texts(&mut self.error) {
            if !text.is_null() {
                // SAFETY: made by `into_raw`.
                drop(unsafe { CString::from_raw(*text) });
            }
        }
    }
}

/// The names of source files, functions and message domains: PostgreSQL keeps the pointers it is
/// given.
static NAMES: Mutex<BTreeSet<&'static CStr>> = Mutex::new(BTreeSet::new());

unsafe fn for_ever(name: *const c_char) -> *const c_char {
    if name.is_null() {
        return name;
    }
    // SAFETY: a C string (caller).
    let name = unsafe { CStr::from_ptr(name) };
    let mut names = NAMES.lock().unwrap_or_else(|lock| lock.into_inner());
    if let Some(known) = names.get(name) {
        return known.as_ptr();
    }
    let kept: &'static CStr = Box::leak(name.to_owned().into_boxed_c_str());
    names.insert(kept);
    kept.as_ptr()
}
