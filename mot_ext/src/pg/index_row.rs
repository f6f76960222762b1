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

/// Changes the fixed fields of an index's row; false: there is no such row. What follows does not
/// see it before the command counter is increased.
///
/// # Safety
/// No other session can replace the row: the caller has a lock for that. The relation cache bears
/// the change.
pub unsafe fn change(
    index: pg_sys::Oid,
    change: impl FnOnce(&mut pg_sys::FormData_pg_index),
) -> bool {
    let lock = pg_sys::RowExclusiveLock as pg_sys::LOCKMODE;
    let cache = pg_sys::SysCacheIdentifier::INDEXRELID as i32;
    let none = pg_sys::Datum::from(0);
    // SAFETY: the row is a copy of the cache's, whose fixed part is a pg_index row. What is opened
    // here is closed here.
    unsafe {
        let catalog = pg_sys::table_open(pg_sys::IndexRelationId, lock);
        let row = pg_sys::SearchSysCacheCopy(cache, index.into(), none, none, none);
        if !row.is_null() {
            change(&mut *pg_sys::heap_tuple_get_struct(row));
            pg_sys::CatalogTupleUpdate(catalog, &raw mut (*row).t_self, row);
        }
        pg_sys::table_close(catalog, lock);
        !row.is_null()
    }
}
