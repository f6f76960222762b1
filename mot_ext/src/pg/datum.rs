//! Values of columns.
use pgrx::pg_sys;
use std::ffi::c_int;

unsafe extern "C" {
    /// Whether two values have the same bytes; raises nothing.
    fn datumIsEqual(
        value: pg_sys::Datum,
        other: pg_sys::Datum,
        by_value: bool,
        length: c_int,
    ) -> bool;
}

/// Whether two values of a column have the same bytes (`datumIsEqual`), or both are NULL: `None`. A
/// value that is compressed or stored elsewhere has others than a whole one.
///
/// # Safety
/// Values of the column's type.
pub unsafe fn is_equal(
    column: &pg_sys::FormData_pg_attribute,
    value: Option<pg_sys::Datum>,
    other: Option<pg_sys::Datum>,
) -> bool {
    match (value, other) {
        // SAFETY: the caller's values.
        (Some(value), Some(other)) => unsafe {
            datumIsEqual(value, other, column.attbyval, column.attlen.into())
        },
        (value, other) => value.is_none() == other.is_none(),
    }
}
