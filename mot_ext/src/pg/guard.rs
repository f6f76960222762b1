//! The frame between PostgreSQL and a callback of ours below which code of users runs: an error passes it as it was raised.
//!
//! pgrx catches a PostgreSQL error where Rust called PostgreSQL, unwinds, and raises it again at the last Rust frame: with code, message,
//! detail and hint only, the code as one of those that it knows (others become XX000), the texts as UTF-8. Users catch errors by codes of
//! their own, and look at everything `GET STACKED DIAGNOSTICS` gives. So a callback on PostgreSQL's error context stack notes the whole error
//! while it is raised, and here it is raised again from that.
//!
//! - What is noted has the context of the callbacks further in; those further out are asked again when it is raised again, so that each line
//!   comes once.
//! - An error that passes a frame of this kind further in is raised anew there. So the innermost one alone notes it.
//! - Errors of Rust code are none of PostgreSQL's yet: pgrx raises them.
//! - PostgreSQL may keep the stack as it finds it: for what workers report, as long as a parallel plan lives that began below a callback (a sub-select of a
//!   condition), and its frame has ended by then. So entries lie in no frame: they stay, and say nothing while they are nobody's.
use pgrx::pg_sys;
use pgrx::pg_sys::panic::{CaughtError, ErrorReportWithLevel, pgrx_extern_c_guard};
use pgrx::{PgLogLevel, PgSqlErrorCode};
use std::any::Any;
use std::cell::UnsafeCell;
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;

unsafe extern "C-unwind" {
    /// Copies the error that is being raised; may raise that memory is out.
    #[link_name = "CopyErrorData"]
    fn copy_error() -> *mut pg_sys::ErrorData;
    /// Gives a copy back; raises nothing.
    #[link_name = "FreeErrorData"]
    fn free_error(error: *mut pg_sys::ErrorData);
    /// Raises a copied error, through all context callbacks.
    #[link_name = "ThrowErrorData"]
    fn throw_error(error: *mut pg_sys::ErrorData);
}

/// Errors that are kept while a callback runs: PL/pgSQL's `RAISE` without arguments raises one again after its handler has caught others. One after
/// more than these goes on as pgrx has it.
const NOTED_MAX: usize = 64;

/// Bytes of texts of the errors that are kept, but for the newest.
const NOTED_BYTES_MAX: usize = 8 << 20;

/// A callback under way, with its entry of PostgreSQL's error context stack.
struct Guard {
    entry: *mut pg_sys::ErrorContextCallback,
    /// Errors raised below, the newest last; most were caught below, too.
    noted: ManuallyDrop<Vec<Noted>>,
}

/// The entries of this process, one for each guard of those one within another. They are never given back.
struct Entries(UnsafeCell<Pool>);
// SAFETY: PostgreSQL's processes run this code on one thread.
unsafe impl Sync for Entries {}
static ENTRIES: Entries = Entries(UnsafeCell::new(Pool {
    entries: Vec::new(),
    used: 0,
}));

struct Pool {
    entries: Vec<*mut pg_sys::ErrorContextCallback>,
    used: usize,
}

impl Pool {
    /// Puts the next entry on PostgreSQL's stack.
    #[inline]
    unsafe fn push(&mut self, guard: *mut Guard) {
        if self.used == self.entries.len() {
            self.grow();
        }
        let entry = self.entries[self.used];
        self.used += 1;
        // SAFETY: entries live for ever, and this one is nobody's; a variable of this process.
        unsafe {
            (*guard).entry = entry;
            (*entry).arg = guard.cast();
            (*entry).previous = pg_sys::error_context_stack;
            pg_sys::error_context_stack = entry;
        }
    }

    #[cold]
    fn grow(&mut self) {
        self.entries
            .push(Box::into_raw(Box::new(pg_sys::ErrorContextCallback {
                previous: std::ptr::null_mut(),
                callback: Some(on_error),
                arg: std::ptr::null_mut(),
            })));
    }

    /// Takes the last entry, and all that was pushed later, off the stack. From now on it leads nowhere.
    #[inline]
    unsafe fn pop(&mut self, guard: *mut Guard) {
        self.used -= 1;
        // SAFETY: as above.
        unsafe {
            let entry = (*guard).entry;
            pg_sys::error_context_stack = (*entry).previous;
            (*entry).previous = std::ptr::null_mut();
            (*entry).arg = std::ptr::null_mut();
        }
    }
}

/// Runs a callback's body. A PostgreSQL error in it goes on as it came, a panic as pgrx's `#[pg_guard]` has it.
///
/// # Safety
/// An error jumps over the caller, and over everything up to PostgreSQL's handler: no frame among them has anything to drop.
#[inline]
pub unsafe fn run<R>(body: impl FnOnce() -> R) -> R {
    let mut guard = Guard {
        entry: std::ptr::null_mut(),
        noted: ManuallyDrop::new(Vec::new()),
    };
    let guard = &raw mut guard;
    // SAFETY: this frame's own guard, used through the pointer alone; its entry leaves PostgreSQL's stack before the frame ends, whichever way
    // the body does. What was pushed later is gone then. The pool is borrowed for no longer than each of the two calls.
    let (ended, noted) = unsafe {
        (*ENTRIES.0.get()).push(guard);
        let ended = catch_unwind(AssertUnwindSafe(body));
        (*ENTRIES.0.get()).pop(guard);
        (ended, ManuallyDrop::take(&mut (*guard).noted))
    };
    match ended {
        Ok(result) => result,
        // SAFETY: this frame has nothing to drop any more, nor do those below it (caller).
        Err(payload) => unsafe { raise(noted, payload) },
    }
}

/// Runs queries of our own: an error says nothing of them, for they are none that the user has written.
pub fn without_context<R>(body: impl FnOnce() -> R) -> R {
    struct Pop(*mut pg_sys::ErrorContextCallback);
    impl Drop for Pop {
        fn drop(&mut self) {
            // SAFETY: a variable of this process; what was pushed later is gone.
            unsafe { pg_sys::error_context_stack = self.0 };
        }
    }
    // SAFETY: as above. An entry without an argument is a mark, which says nothing by itself; it is popped before its frame ends.
    unsafe {
        let mut mark = pg_sys::ErrorContextCallback {
            previous: pg_sys::error_context_stack,
            callback: Some(on_error),
            arg: std::ptr::null_mut(),
        };
        let _pop = Pop(mark.previous);
        pg_sys::error_context_stack = &raw mut mark;
        body()
    }
}

/// `errfinish` calls it for everything that is reported while a callback of ours runs.
#[allow(ffi_unwind_calls)]
unsafe extern "C-unwind" fn on_error(guard: *mut c_void) {
    let guard = guard.cast::<Guard>();
    if guard.is_null() {
        return;
    }
    // SAFETY: called with the argument of a live entry on the stack. The copy is made, and given back, outside of the error's own
    // context, which `CopyErrorData` does not want; should memory be out, an error jumps over this frame, which has nothing to drop then.
    unsafe {
        let Some(is_users) = is_innermost(guard) else {
            return;
        };
        let old = pg_sys::CurrentMemoryContext;
        pg_sys::CurrentMemoryContext = pg_sys::TopMemoryContext;
        let error = copy_error();
        if (*error).elevel == PgLogLevel::ERROR as c_int {
            note(&mut (*guard).noted, &*error, is_users);
        }
        free_error(error);
        pg_sys::CurrentMemoryContext = old;
    }
}

/// `None`: there is a guard further in. Otherwise whether all statements under way between it and the error are the user's.
unsafe fn is_innermost(guard: *mut Guard) -> Option<bool> {
    let ours = on_error as *const () as usize;
    let mut is_users = true;
    // SAFETY: live entries, the guard's own among them.
    unsafe {
        let mut entry = pg_sys::error_context_stack;
        while !entry.is_null() && entry != (*guard).entry {
            if (*entry).callback.map_or(0, |callback| callback as usize) == ours {
                if !(*entry).arg.is_null() {
                    return None;
                }
                is_users = false;
            }
            entry = (*entry).previous;
        }
    }
    Some(is_users)
}

unsafe fn note(noted: &mut Vec<Noted>, error: &pg_sys::ErrorData, is_users: bool) {
    // SAFETY: a live error (caller).
    noted.push(unsafe { Noted::new(error, is_users) });
    let mut bytes: usize = noted.iter().map(Noted::bytes).sum();
    while noted.len() > 1 && (noted.len() > NOTED_MAX || bytes > NOTED_BYTES_MAX) {
        bytes -= noted.remove(0).bytes();
    }
}

/// An error as it was raised, with texts of its own.
struct Noted(pg_sys::ErrorData);

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
    unsafe fn new(error: &pg_sys::ErrorData, is_users: bool) -> Noted {
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
        // Nobody looks at these when it is raised again.
        error.context_domain = std::ptr::null();
        error.message_id = std::ptr::null();
        error.assoc_context = std::ptr::null_mut();
        Noted(error)
    }

    /// Bytes of its texts.
    fn bytes(&self) -> usize {
        let mut error = self.0;
        texts(&mut error)
            .into_iter()
            .filter(|text| !text.is_null())
            // SAFETY: a C string of this error's.
            .map(|text| unsafe { CStr::from_ptr(*text) }.count_bytes())
            .sum()
    }

    /// Whether pgrx made this report of it.
    fn is(&self, report: &ErrorReportWithLevel) -> bool {
        let text = |text: *const c_char| {
            // SAFETY: NULL or a C string of this error's.
            (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy())
        };
        let error = &self.0;
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
        for text in texts(&mut self.0) {
            if !text.is_null() {
                // SAFETY: made by `into_raw`.
                drop(unsafe { CString::from_raw(*text) });
            }
        }
    }
}

/// The names of source files, functions and message domains: PostgreSQL keeps the pointers it is given.
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

/// The error raised last. Nothing may be left to drop when PostgreSQL jumps.
struct Raised(UnsafeCell<Option<Noted>>);
// SAFETY: PostgreSQL's processes run this code on one thread.
unsafe impl Sync for Raised {}
static RAISED: Raised = Raised(UnsafeCell::new(None));

/// Raises what ended a body.
///
/// # Safety
/// As for [`run`].
#[cold]
#[inline(never)]
#[allow(ffi_unwind_calls)]
unsafe fn raise(mut noted: Vec<Noted>, payload: Box<dyn Any + Send>) -> ! {
    let found = match payload.downcast_ref::<CaughtError>() {
        Some(CaughtError::PostgresError(report)) => noted
            .iter()
            .rposition(|noted| noted.is(report))
            .map(|at| noted.swap_remove(at)),
        _ => None,
    };
    drop(noted);
    match found {
        Some(found) => {
            drop(payload);
            // SAFETY: one thread; the error stays where it is until the next one, and PostgreSQL has copied it by then. Nothing is left
            // to drop here.
            unsafe {
                let raised = (*RAISED.0.get()).insert(found);
                throw_error(&raw mut raised.0);
            }
            unreachable!("an error was raised, and PostgreSQL went on");
        }
        None => {
            // SAFETY: as for `run`.
            match unsafe { pgrx_extern_c_guard(move || -> Infallible { resume_unwind(payload) }) } {}
        }
    }
}

/// A type of function pointer that PostgreSQL calls, made of a closure that captures nothing: see [`guarded!`].
pub trait Callback<Body> {
    fn new(body: Body) -> Self;
}

macro_rules! callbacks {
    ($($argument:ident)*) => {
        impl<Body, R, $($argument),*> Callback<Body> for unsafe extern "C-unwind" fn($($argument),*) -> R
        where
            Body: Fn($($argument),*) -> R + Copy,
        {
            #[inline]
            fn new(_body: Body) -> Self {
                const { assert!(size_of::<Body>() == 0, "a callback captures nothing") };
                #[allow(non_snake_case)]
                unsafe extern "C-unwind" fn call<Body, R, $($argument),*>($($argument: $argument),*) -> R
                where
                    Body: Fn($($argument),*) -> R + Copy,
                {
                    // SAFETY: there was a value of this type, which has no bytes. PostgreSQL is the caller, and what it passes is Copy.
                    unsafe {
                        let body = *std::ptr::NonNull::<Body>::dangling().as_ref();
                        run(move || body($($argument),*))
                    }
                }
                call::<Body, R, $($argument),*>
            }
        }
    };
}

callbacks!(A);
callbacks!(A B);
callbacks!(A B C);
callbacks!(A B C D);
callbacks!(A B C D E);
callbacks!(A B C D E F);
callbacks!(A B C D E F G);

/// The function pointer by which PostgreSQL calls one of our functions through [`run`]: `guarded!(function(a, b))`, with
/// a name for each of its arguments.
macro_rules! guarded {
    ($($function:ident)::+($($argument:ident),*)) => {
        $crate::pg::guard::Callback::new(
            // SAFETY: PostgreSQL calls it, as it calls the callback that the pointer is for.
            #[allow(unused_unsafe)]
            |$($argument),*| unsafe { $($function)::+($($argument),*) },
        )
    };
}
pub(crate) use guarded;
