//! Where the columns of a table are.
use crate::pg::{self, version};
use mot_programs::filter::{Layout, bytes_of};
use pgrx::pg_sys;

/// The layout of the first `count` columns of a table's row type, or of a copy with its
/// constraints: those have the values that older rows lack.
///
/// # Safety
/// A live row type with at least so many columns.
pub unsafe fn layout(descriptor: pg_sys::TupleDesc, count: usize) -> Layout {
    // SAFETY: the caller's promise; a column of the row type.
    unsafe {
        let layouts = pg::attribute_layouts(descriptor, count);
        Layout::new(&layouts, |at| missing(descriptor, at))
    }
}

/// A column's value in rows that end before it, in memory that is aligned for any type.
unsafe fn missing(descriptor: pg_sys::TupleDesc, at: usize) -> Option<Box<[u64]>> {
    // SAFETY: a column of the row type (caller), which owns the value.
    unsafe {
        let attribute = &*version::attributes(descriptor).add(at);
        if !attribute.atthasmissing {
            return None;
        }
        let (length, by_value) = (attribute.attlen, attribute.attbyval);
        let mut is_null = false;
        let datum = pg_sys::getmissingattr(descriptor, at as i32 + 1, &raw mut is_null);
        if is_null {
            return None;
        }
        if by_value {
            // `store_att_byval`: the lower bytes.
            return Some(Box::new([datum.value() as u64]));
        }
        let from = datum.cast_mut_ptr::<u8>();
        let bytes = bytes_of(length, from);
        let mut value = vec![0_u64; bytes.div_ceil(size_of::<u64>())];
        std::ptr::copy_nonoverlapping(from, value.as_mut_ptr().cast::<u8>(), bytes);
        Some(value.into())
    }
}
