//! Row types.
use super::Node;
use crate::pg::version;
use pgrx::pg_sys;

impl<'p> Node<'p, pg_sys::TupleDescData> {
    /// Its columns, dropped ones too.
    #[inline]
    pub fn columns(self) -> &'p [pg_sys::FormData_pg_attribute] {
        // SAFETY: a live row type has so many columns, one behind the other, which nobody changes.
        unsafe {
            let count = (*self.as_ptr()).natts as usize;
            std::slice::from_raw_parts(version::attributes(self.as_ptr()), count)
        }
    }

    /// The oid of the row type.
    pub fn row_type(self) -> pg_sys::Oid {
        // SAFETY: a live row type.
        unsafe { (*self.as_ptr()).tdtypeid }
    }

    /// The value of a column, from 0, in rows that end before it; `None`: NULL. It is the row
    /// type's own.
    pub fn missing_value(self, position: usize) -> Option<pg_sys::Datum> {
        assert!(position < self.columns().len());
        let mut is_null = false;
        let number = position as i32 + 1;
        // SAFETY: a live row type with the column.
        let value = unsafe { pg_sys::getmissingattr(self.as_ptr(), number, &raw mut is_null) };
        (!is_null).then_some(value)
    }
}
