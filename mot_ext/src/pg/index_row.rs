//! The catalog's row of an index.
use pgrx::pg_sys;

/// Reads the row of `pg_index` of an index; `None`: there is none. The row goes when `read`
/// returns.
pub fn read<T>(
    index: pg_sys::Oid,
    read: impl FnOnce(pg_sys::HeapTuple, &pg_sys::FormData_pg_index) -> T,
) -> Option<T> {
    // SAFETY: a row of the catalog cache, released when it was read. After an error core does so.
    unsafe {
        let cache = pg_sys::SysCacheIdentifier::INDEXRELID as i32;
        let row = pg_sys::SearchSysCache1(cache, pg_sys::Datum::from(index));
        if row.is_null() {
            return None;
        }
        let form = &*pg_sys::heap_tuple_get_struct::<pg_sys::FormData_pg_index>(row);
        let found = read(row, form);
        pg_sys::ReleaseSysCache(row);
        Some(found)
    }
}
