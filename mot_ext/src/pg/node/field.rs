//! Places of values and strings, which may get others.
use crate::pg::argument::Argument;
use pgrx::pg_sys;
use std::ffi::{CStr, c_char};
use std::marker::PhantomData;
use std::ptr::NonNull;

/// A field of a node, or a value that core passes, which may get another value.
pub struct Field<'p, V> {
    place: NonNull<V>,
    time: PhantomData<&'p V>,
}

impl<V> Clone for Field<'_, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V> Copy for Field<'_, V> {}

impl<V: Copy> Argument<*mut V> for Field<'_, V> {
    #[inline]
    unsafe fn of(passed: *mut V) -> Self {
        // SAFETY: a value of core's (caller).
        unsafe { Field::enter(passed) }
    }
}

impl<'p, V: Copy> Field<'p, V> {
    /// # Safety
    /// A field of a node that is as [`super::Node::enter`] wants it.
    #[inline]
    pub(super) unsafe fn enter(place: *mut V) -> Field<'p, V> {
        Field {
            // SAFETY: a field of a live node (caller).
            place: unsafe { NonNull::new_unchecked(place) },
            time: PhantomData,
        }
    }

    /// The pointer, for calls of core.
    #[inline]
    pub fn as_ptr(self) -> *mut V {
        self.place.as_ptr()
    }

    /// Its value.
    #[inline]
    pub fn get(self) -> V {
        // SAFETY: a live node's.
        unsafe { self.place.read() }
    }

    /// Gives it another one.
    #[inline]
    pub fn set(self, value: V) {
        // SAFETY: as above; one thread, and nobody holds a reference.
        unsafe { self.place.write(value) };
    }
}

/// A field with a string, or NULL.
#[derive(Clone, Copy)]
pub struct TextField<'p>(pub(super) Field<'p, *mut c_char>);

impl<'p> TextField<'p> {
    /// The string; `None`: NULL.
    pub fn get(self) -> Option<&'p CStr> {
        // SAFETY: the field has NULL, or a string as live as the node.
        unsafe { string(self.0.get()) }
    }

    /// Gives it a copy of a string, in the current memory context.
    pub fn set(self, text: &CStr) {
        // SAFETY: a string. The context outlives the time.
        self.0.set(unsafe { pg_sys::pstrdup(text.as_ptr()) });
    }
}

/// A string of a node's; `None`: NULL.
///
/// # Safety
/// NULL, or a string that is live for `'p`.
pub(super) unsafe fn string<'p>(text: *const c_char) -> Option<&'p CStr> {
    // SAFETY: the caller's.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })
}
