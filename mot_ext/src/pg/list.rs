//! Core's lists.
use pgrx::pg_sys;
use std::ffi::c_int;
use std::mem::offset_of;

/// A list of so many cells, which the caller fills, in one piece of the current memory context as
/// core's own; NULL for none. (To append to one cell by cell would be a guarded call for each.)
pub unsafe fn unfilled(tag: pg_sys::NodeTag, length: usize) -> *mut pg_sys::List {
    if length == 0 {
        return std::ptr::null_mut();
    }
    let bytes = offset_of!(pg_sys::List, initial_elements) + length * size_of::<pg_sys::ListCell>();
    // SAFETY: the block has room for a list's fields and so many cells behind them.
    unsafe {
        let list = pg_sys::palloc(bytes).cast::<pg_sys::List>();
        (*list).type_ = tag;
        (*list).length = length as c_int;
        (*list).max_length = length as c_int;
        (*list).elements = (&raw mut (*list).initial_elements).cast();
        list
    }
}

/// The pointers of a list.
pub unsafe fn items<T>(list: *mut pg_sys::List) -> Vec<*mut T> {
    // SAFETY: a pointer list (caller), which is not changed here.
    unsafe { cells(list) }.to_vec()
}

/// The pointers of a list, where they are: no code may append to it or delete from it meanwhile.
pub unsafe fn cells<'a, T>(list: *const pg_sys::List) -> &'a [*mut T] {
    if list.is_null() {
        return &[];
    }
    // SAFETY: a pointer list has `length` cells, each of a pointer's size with the pointer at its
    // beginning.
    unsafe {
        let first = (*list).elements.cast::<*mut T>();
        std::slice::from_raw_parts(first, (*list).length as usize)
    }
}

/// A list of pointers.
pub unsafe fn list<T>(pointers: &[*mut T]) -> *mut pg_sys::List {
    // SAFETY: as below.
    unsafe { list_of(pointers.iter().copied()) }
}

/// As [`list`], of pointers that are gone through twice.
pub unsafe fn list_of<T>(pointers: impl Iterator<Item = *mut T> + Clone) -> *mut pg_sys::List {
    // SAFETY: a list with a cell for each pointer.
    unsafe {
        let list = unfilled(pg_sys::NodeTag::T_List, pointers.clone().count());
        for (at, pointer) in pointers.enumerate() {
            (*(*list).elements.add(at)).ptr_value = pointer.cast();
        }
        list
    }
}
