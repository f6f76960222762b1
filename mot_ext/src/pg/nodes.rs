//! Nodes by their pointers, for code that has no views of them (`node`), and names.
//!
//! All of it is unsafe in the same way: pointers must be live nodes of the type the caller names,
//! which the node tag the caller has just tested guarantees.
use super::{text, version};
use pgrx::pg_sys;
use std::ffi::c_char;

/// A zeroed node of a type.
pub unsafe fn make<T>(tag: pg_sys::NodeTag) -> *mut T {
    // SAFETY: every node begins with its tag and may otherwise be zero.
    unsafe {
        let node = pg_sys::palloc0(size_of::<T>()).cast::<pg_sys::Node>();
        (*node).type_ = tag;
        node.cast()
    }
}

/// A C string as Rust text, for messages and comparisons, and to be handed back by `pstrdup`:
/// nothing of it is lost, whatever the encoding.
pub unsafe fn text(string: *const c_char) -> String {
    // SAFETY: NULL or a NUL-terminated string, by contract.
    unsafe { text::from_c(string) }
}

/// The attributes of an open relation.
pub unsafe fn attributes<'a>(relation: pg_sys::Relation) -> &'a [pg_sys::FormData_pg_attribute] {
    // SAFETY: an open relation has a tuple descriptor.
    unsafe { attributes_of((*relation).rd_att) }
}

/// The attributes of a tuple descriptor, dropped ones too.
///
/// # Safety
/// A descriptor that lives as long as what is given.
pub unsafe fn attributes_of<'a>(
    descriptor: pg_sys::TupleDesc,
) -> &'a [pg_sys::FormData_pg_attribute] {
    // SAFETY: a descriptor has natts attributes at its end.
    unsafe {
        std::slice::from_raw_parts(
            version::attributes(descriptor),
            (*descriptor).natts as usize,
        )
    }
}
