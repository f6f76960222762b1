//! A unique key met twice, in core's words.
use crate::pg::{text, violation};
use crate::transaction::session;
use pgrx::pg_sys;
use std::ffi::CStr;

/// Raises 23505 for `row`, which has the key of another row in this index.
pub unsafe fn raise(table: pg_sys::Relation, index: u32, row: *mut pg_sys::HeapTupleData) -> ! {
    session::count_conflict(|conflicts| &conflicts.unique_violations);
    // SAFETY: the table is open; the index is one of its indexes, locked with it; the row is a tuple of the table.
    unsafe {
        let descriptor = (*table).rd_att;
        let count = (*descriptor).natts as usize;
        let mut values = vec![pg_sys::Datum::from(0); count];
        let mut nulls = vec![true; count];
        pg_sys::heap_deform_tuple(row, descriptor, values.as_mut_ptr(), nulls.as_mut_ptr());
        let index = pg_sys::index_open(pg_sys::Oid::from(index), pg_sys::AccessShareLock as i32);
        let form = &*(*index).rd_index;
        let keys = form.indkey.values.as_slice(form.indnatts as usize);
        let mut key_values: Vec<_> = keys.iter().map(|key| values[*key as usize - 1]).collect();
        let mut key_nulls: Vec<_> = keys.iter().map(|key| nulls[*key as usize - 1]).collect();
        let description = pg_sys::BuildIndexValueDescription(
            index,
            key_values.as_mut_ptr(),
            key_nulls.as_mut_ptr(),
        );
        let name = CStr::from_ptr((*(*index).rd_rel).relname.data.as_ptr());
        let message = format!(
            "duplicate key value violates unique constraint \"{}\"",
            text::from_c(name.as_ptr())
        );
        let detail = (!description.is_null())
            .then(|| format!("Key {} already exists.", text::from_c(description)));
        let name = name.to_owned();
        violation::raise(
            pgrx::PgSqlErrorCode::ERRCODE_UNIQUE_VIOLATION,
            table,
            &name,
            &message,
            detail.as_deref(),
        )
    }
}
