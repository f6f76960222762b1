//! Where the columns of a table are.
use crate::pg;
use crate::pg::node::Node;
use mot_programs::filter::{Layout, bytes_of};
use pgrx::pg_sys;

/// The layout of the first `count` columns of a table's row type, or of a copy with its
/// constraints: those have the values that older rows lack.
pub fn layout(row_type: Node<'_, pg_sys::TupleDescData>, count: usize) -> Layout {
    assert!(count <= row_type.columns().len());
    // SAFETY: a live row type with so many columns.
    let layouts = unsafe { pg::attribute_layouts(row_type.as_ptr(), count) };
    Layout::new(&layouts, |at| missing(row_type, at))
}

/// A column's value in rows that end before it, in memory that is aligned for any type.
fn missing(row_type: Node<'_, pg_sys::TupleDescData>, at: usize) -> Option<Box<[u64]>> {
    let attribute = &row_type.columns()[at];
    if !attribute.atthasmissing {
        return None;
    }
    let datum = row_type.missing_value(at)?;
    if attribute.attbyval {
        // `store_att_byval`: the lower bytes.
        return Some(Box::new([datum.value() as u64]));
    }
    let from = datum.cast_mut_ptr::<u8>();
    // SAFETY: a value of the column's type, which the row type owns.
    let bytes = unsafe { bytes_of(attribute.attlen, from) };
    let mut value = vec![0_u64; bytes.div_ceil(size_of::<u64>())];
    // SAFETY: it has so many bytes, and so has the copy.
    unsafe { std::ptr::copy_nonoverlapping(from, value.as_mut_ptr().cast::<u8>(), bytes) };
    Some(value.into())
}
