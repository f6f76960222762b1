//! Keeps what pgrx drops of an error: the names of schema, table, column, data type and constraint, and the context lines of what
//! was called from here.
//!
//! pgrx catches an error at the first Rust frame and raises it again at the last one, with code, message, detail and hint only.
//! Clients and `GET STACKED DIAGNOSTICS` look at the names, too, so a callback on PostgreSQL's error context stack notes them
//! when the error is raised first, and puts them back when the same error comes again without any.
//!
//! A keeper lives longer than the call it guards (in the statement's state): after an unwinding the entry is still on the stack,
//! and PostgreSQL resets the stack where it catches the error.
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::ffi::{CStr, CString, c_char, c_int, c_void};

#[allow(ffi_unwind_calls)]
unsafe extern "C-unwind" {
    fn errcontext_msg(format: *const c_char, ...) -> c_int;
}

/// Notes the names of an error raised below.
pub struct FieldKeeper {
    entry: pg_sys::ErrorContextCallback,
    noted: Option<Noted>,
    keeps_context: bool,
}

struct Noted {
    code: c_int,
    message: CString,
    names: [Option<CString>; FIELDS.len()],
    /// What the callbacks below ours said.
    context: Option<CString>,
}

/// PG_DIAG_SCHEMA_NAME to PG_DIAG_CONSTRAINT_NAME of `postgres_ext.h`.
const FIELDS: [u8; 5] = [b's', b't', b'c', b'd', b'n'];

impl FieldKeeper {
    /// Not yet on the stack.
    pub fn new() -> FieldKeeper {
        FieldKeeper {
            entry: pg_sys::ErrorContextCallback {
                previous: std::ptr::null_mut(),
                callback: Some(on_error),
                arg: std::ptr::null_mut(),
            },
            noted: None,
            keeps_context: true,
        }
    }

    /// The same for names alone: below are queries of our own, which would show in the context.
    pub fn of_names() -> FieldKeeper {
        FieldKeeper {
            keeps_context: false,
            ..FieldKeeper::new()
        }
    }

    /// Puts the keeper on the stack.
    ///
    /// # Safety
    /// The keeper stays where it is until PostgreSQL resets the stack or `leave` is called.
    #[inline]
    pub unsafe fn enter(&mut self) {
        self.noted = None;
        self.entry.arg = (&raw mut *self).cast();
        // SAFETY: a variable of this process; the entry stays (caller).
        unsafe {
            self.entry.previous = pg_sys::error_context_stack;
            pg_sys::error_context_stack = &raw mut self.entry;
        }
    }

    /// Takes the keeper off the stack.
    #[inline]
    pub fn leave(&mut self) {
        // SAFETY: a variable of this process; what was pushed later was popped before.
        unsafe { pg_sys::error_context_stack = self.entry.previous };
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn on_error(keeper: *mut c_void) {
    // SAFETY: called by errfinish with the argument of an entry on the stack; CopyErrorData wants another context than the
    // error's own.
    unsafe {
        let keeper = &mut *keeper.cast::<FieldKeeper>();
        let old = pg_sys::MemoryContextSwitchTo(pg_sys::TopTransactionContext);
        let error = pg_sys::CopyErrorData();
        pg_sys::MemoryContextSwitchTo(old);
        if (*error).elevel >= PgLogLevel::ERROR as c_int {
            keeper.note_or_restore(&*error);
        }
        pg_sys::FreeErrorData(error);
    }
}

impl FieldKeeper {
    unsafe fn note_or_restore(&mut self, error: &pg_sys::ErrorData) {
        let copy = |text: *const c_char| {
            // SAFETY: NULL or a C string of the error's.
            (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_owned())
        };
        let names = [
            copy(error.schema_name),
            copy(error.table_name),
            copy(error.column_name),
            copy(error.datatype_name),
            copy(error.constraint_name),
        ];
        let message = copy(error.message).unwrap_or_default();
        let context = copy(error.context).filter(|_| self.keeps_context);
        if context.is_some() || names.iter().any(Option::is_some) {
            self.noted = Some(Noted {
                code: error.sqlerrcode,
                message,
                names,
                context,
            });
            return;
        }
        let same = self
            .noted
            .take_if(|noted| noted.code == error.sqlerrcode && noted.message == message);
        if let Some(context) = same.as_ref().and_then(|noted| noted.context.as_ref()) {
            // SAFETY: inside errfinish; the format takes exactly one string, which is copied.
            unsafe {
                pg_sys::ffi::pg_guard_ffi_boundary(|| {
                    #[allow(ffi_unwind_calls)]
                    errcontext_msg(c"%s".as_ptr(), context.as_ptr())
                });
            }
        }
        for (field, name) in FIELDS
            .iter()
            .zip(same.iter().flat_map(|noted| &noted.names))
        {
            if let Some(name) = name {
                // SAFETY: inside errfinish; the string is copied.
                unsafe { pg_sys::err_generic_string(c_int::from(*field), name.as_ptr()) };
            }
        }
    }
}
