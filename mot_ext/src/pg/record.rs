//! Values of row types, and the types that describe them.
use super::nodes;
use pgrx::pg_sys;
use std::marker::PhantomData;

/// A row type's description, which is held for the time `'p`.
#[derive(Clone, Copy)]
pub struct Description<'p> {
    descriptor: pg_sys::TupleDesc,
    time: PhantomData<&'p pg_sys::TupleDescData>,
}

/// Holds a row type's description for the time of `read`. After an error core lets go of it.
pub fn with_description<T>(
    row_type: pg_sys::Oid,
    modifier: i32,
    read: impl FnOnce(Description<'_>) -> T,
) -> T {
    // SAFETY: core raises for what is no row type. A description that is counted is held until it
    // is given back here.
    unsafe {
        let descriptor = pg_sys::lookup_rowtype_tupdesc(row_type, modifier);
        let found = read(Description {
            descriptor,
            time: PhantomData,
        });
        if (*descriptor).tdrefcount >= 0 {
            pg_sys::DecrTupleDescRefCount(descriptor);
        }
        found
    }
}

impl<'p> Description<'p> {
    /// The columns, dropped ones too.
    pub fn columns(self) -> &'p [pg_sys::FormData_pg_attribute] {
        // SAFETY: a description that is held.
        unsafe { nodes::attributes_of(self.descriptor) }
    }

    /// A value that consists of these columns, in the current memory context.
    ///
    /// # Safety
    /// There is one for each column, of the column's type; `None`: NULL.
    pub unsafe fn formed(self, columns: &[Option<pg_sys::Datum>]) -> pg_sys::Datum {
        assert_eq!(columns.len(), self.columns().len());
        let or_zero = |value: &Option<pg_sys::Datum>| value.unwrap_or(pg_sys::Datum::null());
        let mut values: Vec<_> = columns.iter().map(or_zero).collect();
        let mut nulls: Vec<_> = columns.iter().map(Option::is_none).collect();
        // SAFETY: arrays with a place for each column, of the column's type (caller).
        unsafe {
            let (values, nulls) = (values.as_mut_ptr(), nulls.as_mut_ptr());
            let tuple = pg_sys::heap_form_tuple(self.descriptor, values, nulls);
            pg_sys::HeapTupleHeaderGetDatum((*tuple).t_data)
        }
    }
}

/// A value of a row type, unpacked, for the time `'p`.
#[derive(Clone, Copy)]
pub struct Record<'p> {
    header: pg_sys::HeapTupleHeader,
    time: PhantomData<&'p pg_sys::HeapTupleHeaderData>,
}

impl<'p> Record<'p> {
    /// Of a datum, or of what is unpacked of it in the current memory context.
    ///
    /// # Safety
    /// It is a value of a row type. Both live for `'p`.
    pub unsafe fn enter(datum: pg_sys::Datum) -> Record<'p> {
        Record {
            // SAFETY: the caller's.
            header: unsafe { pg_sys::pg_detoast_datum(datum.cast_mut_ptr()).cast() },
            time: PhantomData,
        }
    }

    /// Its row type, and that type's modifier.
    pub fn row_type(self) -> (pg_sys::Oid, i32) {
        // SAFETY: the header of a value says so.
        let of = unsafe { (*self.header).t_choice.t_datum };
        (of.datum_typeid, of.datum_typmod)
    }

    /// Its columns; `None`: NULL. They point into it.
    ///
    /// # Safety
    /// The description is that of its row type.
    pub unsafe fn columns(self, description: Description<'_>) -> Vec<Option<pg_sys::Datum>> {
        let count = description.columns().len();
        let mut values = vec![pg_sys::Datum::null(); count];
        let mut nulls = vec![true; count];
        // SAFETY: a value of this row type (caller); arrays with a place for each column.
        unsafe {
            let mut tuple = pg_sys::HeapTupleData {
                t_len: pgrx::varsize_any(self.header.cast()) as u32,
                t_data: self.header,
                ..Default::default()
            };
            let (to, nulls_to) = (values.as_mut_ptr(), nulls.as_mut_ptr());
            pg_sys::heap_deform_tuple(&raw mut tuple, description.descriptor, to, nulls_to);
        }
        let columns = values.into_iter().zip(nulls);
        columns
            .map(|(value, is_null)| (!is_null).then_some(value))
            .collect()
    }
}
