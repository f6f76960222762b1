//! Structures of core's that something of ours keeps.
use super::Node;
use std::ptr::NonNull;

/// A structure of core's that lives as long as this value: it is in memory of the owner's.
pub struct Owned<T>(NonNull<T>);

impl<T> Owned<T> {
    /// Of a structure just made.
    ///
    /// # Safety
    /// It is live, and so is what its fields lead to. Its memory context lives as long as the
    /// value. Nobody changes it but core, where it is called, and the setters of its views.
    #[inline]
    pub unsafe fn new(made: *mut T) -> Owned<T> {
        debug_assert!(!made.is_null());
        // SAFETY: a live structure (caller).
        Owned(unsafe { NonNull::new_unchecked(made) })
    }

    /// A view of it.
    #[inline]
    pub fn view(&self) -> Node<'_, T> {
        // SAFETY: it lives as long as this value.
        unsafe { Node::enter(self.as_ptr()) }
    }

    /// The pointer, for calls of core.
    #[inline]
    pub fn as_ptr(&self) -> *mut T {
        self.0.as_ptr()
    }
}
