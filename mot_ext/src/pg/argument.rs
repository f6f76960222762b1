//! What core passes to a callback, as the typed view by which the callback takes it.
//!
//! [`super::guard`] makes the views of core's pointers when core calls. So the function behind a
//! callback is safe, unless it asks for what no view says, such as the row type of a slot. A
//! callback uses a view until it returns, and keeps it nowhere.
use std::marker::PhantomData;
use std::ptr::NonNull;

/// An argument of a callback, made of what core passes.
pub trait Argument<Passed> {
    /// The view.
    ///
    /// # Safety
    /// Core passes it to a callback, which ends before the view does. So it is what core's headers
    /// say: initialized, live, and nobody's but core's and the callback's meanwhile.
    unsafe fn of(passed: Passed) -> Self;
}

/// Values, and pointers that the callback hands on.
impl<T> Argument<T> for T {
    #[inline]
    unsafe fn of(passed: T) -> T {
        passed
    }
}

/// A place of core's that a callback fills. It may hold nothing yet.
pub struct Out<'p, T> {
    place: NonNull<T>,
    time: PhantomData<&'p T>,
}

impl<T> Argument<*mut T> for Out<'_, T> {
    #[inline]
    unsafe fn of(passed: *mut T) -> Self {
        debug_assert!(!passed.is_null());
        Out {
            // SAFETY: a place of core's (caller).
            place: unsafe { NonNull::new_unchecked(passed) },
            time: PhantomData,
        }
    }
}

impl<T> Argument<*mut T> for Option<Out<'_, T>> {
    #[inline]
    unsafe fn of(passed: *mut T) -> Self {
        // SAFETY: NULL, or a place of core's (caller).
        (!passed.is_null()).then(|| unsafe { Argument::of(passed) })
    }
}

impl<T: Copy> Out<'_, T> {
    /// The pointer, for calls of core.
    #[inline]
    pub fn as_ptr(&self) -> *mut T {
        self.place.as_ptr()
    }

    /// Fills it.
    #[inline]
    pub fn set(&self, value: T) {
        // SAFETY: a place of core's. One thread, and nobody holds a reference.
        unsafe { self.place.write(value) };
    }
}

/// A copy of what a pointer leads to that core passes.
pub struct Given<T>(pub T);

impl<T: Copy> Argument<*const T> for Given<T> {
    #[inline]
    unsafe fn of(passed: *const T) -> Self {
        // SAFETY: an initialized value (caller).
        Given(unsafe { passed.read() })
    }
}
