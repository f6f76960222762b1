//! The frame between PostgreSQL and a callback of ours below which code of users runs: an error
//! passes it as it was raised.
//!
//! pgrx catches a PostgreSQL error where Rust called PostgreSQL, unwinds, and raises it again at
//! the last Rust frame: with code, message, detail and hint only, the code as one of those that it
//! knows (others become XX000), the texts as UTF-8. Users catch errors by codes of their own, and
//! read everything `GET STACKED DIAGNOSTICS` gives. So a callback on PostgreSQL's error context
//! stack notes the whole error while it is raised, and here it is raised again from that.
//!
//! - What is noted has the context of the callbacks further in; those further out are asked again
//!   when it is raised again, so that each line comes once.
//! - An error that passes a frame of this kind further in is raised anew there. So the innermost
//!   one alone notes it.
//! - Errors of Rust code are none of PostgreSQL's yet: pgrx raises them.
//! - Errors of parallel workers are raised by the leader, wherever it checks for interrupts,
//!   through the stack that there was when their plan began. If a callback catches one that began
//!   later, it is not on that stack. So every execution has an entry too ([`execution`]), on each
//!   stack that a plan in it finds: the first of ours on the stack notes the error for the callback
//!   that catches it, which raises it again from there. By then the execution is under way yet,
//!   since its workers are.
//! - Such a stack is kept as long as the plan lives, and a callback that it began below (a
//!   sub-select of a condition) may have ended by then. So entries of callbacks lie in no frame:
//!   they stay, and say nothing while they are unused, but lead on to the execution they were in.
mod noted;

use crate::pg::local::ProcessLocal;
use noted::Noted;
use pgrx::PgLogLevel;
use pgrx::pg_sys;
use pgrx::pg_sys::panic::{CaughtError, pgrx_extern_c_guard};
use std::any::Any;
use std::cell::UnsafeCell;
use std::convert::Infallible;
use std::ffi::{c_int, c_void};
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

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

/// Errors that are kept while a callback runs: PL/pgSQL's `RAISE` without arguments raises one
/// again after its handler has caught others. One after more than these continues as pgrx has it.
const NOTED_MAX: usize = 64;

/// Bytes of texts of the errors that are kept, but for the newest.
const NOTED_BYTES_MAX: usize = 8 << 20;

/// A callback under way, with its entry of PostgreSQL's error context stack.
struct Guard {
    entry: *mut pg_sys::ErrorContextCallback,
    /// Errors raised below, the newest last; most were caught below, too.
    noted: ManuallyDrop<Vec<Noted>>,
}

/// The entries of this process, one for each guard of those one within another. They are never
/// given back.
static ENTRIES: ProcessLocal<UnsafeCell<Pool>> = ProcessLocal(UnsafeCell::new(Pool {
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
        // SAFETY: entries live for ever, and this one is unused; a variable of this process.
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

    /// Takes the last entry, and all that was pushed later, off the stack. From now on it leads to
    /// the execution that it is in, or nowhere.
    #[inline]
    unsafe fn pop(&mut self, guard: *mut Guard) {
        self.used -= 1;
        // SAFETY: as above.
        unsafe {
            let entry = (*guard).entry;
            let previous = (*entry).previous;
            pg_sys::error_context_stack = previous;
            if previous.is_null() || !is(previous, on_error_in_execution) {
                (*entry).previous = std::ptr::null_mut();
            }
            (*entry).arg = std::ptr::null_mut();
        }
    }

    /// The innermost callback under way.
    fn innermost(&self) -> Option<*mut Guard> {
        let entry = self.entries[..self.used].last()?;
        // SAFETY: entries live for ever.
        Some(unsafe { (**entry).arg.cast() })
    }
}

type OnError = unsafe extern "C-unwind" fn(*mut c_void);

/// Whether an entry is one with this function.
#[inline]
unsafe fn is(entry: *mut pg_sys::ErrorContextCallback, on_error: OnError) -> bool {
    // SAFETY: a live entry (caller).
    unsafe { (*entry).callback.map_or(0, |callback| callback as usize) == on_error as usize }
}

/// Runs an execution of PostgreSQL's, in which parallel plans may begin.
///
/// # Safety
/// `body` is PostgreSQL's, and nothing is left to drop here or in its caller should it raise.
#[inline]
#[allow(ffi_unwind_calls)]
pub unsafe fn execution(body: impl FnOnce()) {
    // SAFETY: as PostgreSQL's own frames have entries: the code that catches an error sets the
    // stack back to what it was.
    unsafe {
        let mut entry = pg_sys::ErrorContextCallback {
            previous: pg_sys::error_context_stack,
            callback: Some(on_error_in_execution),
            arg: std::ptr::null_mut(),
        };
        let entry = &raw mut entry;
        (*entry).arg = entry.cast();
        pg_sys::error_context_stack = entry;
        body();
        pg_sys::error_context_stack = (*entry).previous;
    }
}

/// Runs a callback's body. A PostgreSQL error in it continues as it came, a panic as pgrx's
/// `#[pg_guard]` has it.
///
/// # Safety
/// An error jumps over the caller, and over everything up to PostgreSQL's handler: no frame among
/// them has anything to drop.
#[inline]
pub unsafe fn run<R>(body: impl FnOnce() -> R) -> R {
    let mut guard = Guard {
        entry: std::ptr::null_mut(),
        noted: ManuallyDrop::new(Vec::new()),
    };
    let guard = &raw mut guard;
    // SAFETY: this frame's own guard, used through the pointer alone; its entry leaves PostgreSQL's
    // stack before the frame ends, whichever way the body does. What was pushed later is gone then.
    // The pool is borrowed for no longer than each of the two calls.
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

/// Runs queries of our own: an error says nothing of them, for they are none that the user has
/// written.
pub fn without_context<R>(body: impl FnOnce() -> R) -> R {
    struct Pop(*mut pg_sys::ErrorContextCallback);
    impl Drop for Pop {
        fn drop(&mut self) {
            // SAFETY: a variable of this process; what was pushed later is gone.
            unsafe { pg_sys::error_context_stack = self.0 };
        }
    }
    // SAFETY: as above. A mark says nothing by itself; it is popped before its frame ends.
    unsafe {
        let mut mark = pg_sys::ErrorContextCallback {
            previous: pg_sys::error_context_stack,
            callback: Some(mark),
            arg: std::ptr::null_mut(),
        };
        let _pop = Pop(mark.previous);
        pg_sys::error_context_stack = &raw mut mark;
        body()
    }
}

unsafe extern "C-unwind" fn mark(_nobody: *mut c_void) {}

/// `errfinish` calls it for everything that is reported while a callback of ours runs.
unsafe extern "C-unwind" fn on_error(guard: *mut c_void) {
    if !guard.is_null() {
        // SAFETY: called with the argument of a live entry on the stack.
        unsafe { on_error_at((*guard.cast::<Guard>()).entry) }
    }
}

/// `errfinish` calls it for everything that is reported in an execution.
unsafe extern "C-unwind" fn on_error_in_execution(entry: *mut c_void) {
    // SAFETY: as above.
    unsafe { on_error_at(entry.cast()) }
}

#[allow(ffi_unwind_calls)]
unsafe fn on_error_at(entry: *mut pg_sys::ErrorContextCallback) {
    // SAFETY: live entries of the stack. The copy is made, and given back, outside of the error's
    // own context, which `CopyErrorData` does not want; should memory be out, an error jumps over
    // this frame, which has nothing to drop then.
    unsafe {
        let Some(guard) = (*ENTRIES.0.get()).innermost() else {
            return;
        };
        let Some((first, is_users)) = first_of_us((*guard).entry) else {
            return;
        };
        if first != entry {
            return;
        }
        let old = pg_sys::CurrentMemoryContext;
        pg_sys::CurrentMemoryContext = pg_sys::TopMemoryContext;
        let error = copy_error();
        if (*error).elevel == PgLogLevel::ERROR as c_int {
            let from = if first == (*guard).entry {
                std::ptr::null_mut()
            } else {
                first
            };
            let noted = &mut (*guard).noted;
            noted.push(Noted::new(&*error, is_users, from));
            let mut bytes: usize = noted.iter().map(Noted::bytes).sum();
            while noted.len() > 1 && (noted.len() > NOTED_MAX || bytes > NOTED_BYTES_MAX) {
                bytes -= noted.remove(0).bytes();
            }
        }
        free_error(error);
        pg_sys::CurrentMemoryContext = old;
    }
}

/// The entry that notes what is being raised: the innermost callback's, or the first of ours on a
/// stack that it is not on. And whether all statements under way between it and the error are the
/// user's.
unsafe fn first_of_us(
    innermost: *mut pg_sys::ErrorContextCallback,
) -> Option<(*mut pg_sys::ErrorContextCallback, bool)> {
    let mut first = None;
    let mut is_users = true;
    // SAFETY: live entries.
    unsafe {
        let mut entry = pg_sys::error_context_stack;
        while !entry.is_null() {
            if entry == innermost {
                return Some((entry, is_users));
            }
            let is_ours = is(entry, on_error_in_execution) || is(entry, on_error);
            if first.is_none() && is_ours && !(*entry).arg.is_null() {
                first = Some((entry, is_users));
            }
            is_users &= !is(entry, mark);
            entry = (*entry).previous;
        }
    }
    first
}

/// The error raised last. Nothing may be left to drop when PostgreSQL jumps.
static RAISED: ProcessLocal<UnsafeCell<Option<Noted>>> = ProcessLocal(UnsafeCell::new(None));

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
            // SAFETY: one thread; the error stays where it is until the next one, and PostgreSQL
            // has copied it by then. Nothing is left to drop here.
            unsafe {
                let raised = (*RAISED.0.get()).insert(found);
                if !raised.from.is_null() {
                    pg_sys::error_context_stack = raised.from;
                }
                throw_error(&raw mut raised.error);
            }
            unreachable!("an error was raised, and PostgreSQL went on");
        }
        None => {
            // SAFETY: as for `run`.
            match unsafe { pgrx_extern_c_guard(move || -> Infallible { resume_unwind(payload) }) } {}
        }
    }
}

/// A type of function pointer that PostgreSQL calls, made of a closure that captures nothing: see
/// [`guarded!`].
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
                    // SAFETY: there was a value of this type, which has no bytes. PostgreSQL is the
                    // caller, and what it passes is Copy.
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
callbacks!(A B C D E F G H);
callbacks!(A B C D E F G H I);
callbacks!(A B C D E F G H I J);
callbacks!(A B C D E F G H I J K);

/// The function pointer by which PostgreSQL calls one of our functions through [`run`]:
/// `guarded!(function(a, b))`, with a name for each of its arguments. The function may take views
/// of what PostgreSQL passes ([`super::argument::Argument`]).
macro_rules! guarded {
    ($($function:ident)::+($($argument:ident),*)) => {
        $crate::pg::guard::Callback::new(
            // SAFETY: PostgreSQL calls it, as it calls the callback that the pointer is for.
            #[allow(unused_unsafe)]
            |$($argument),*| unsafe {
                $($function)::+($($crate::pg::argument::Argument::of($argument)),*)
            },
        )
    };
}
pub(crate) use guarded;
