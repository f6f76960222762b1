//! Changes of a relation's row of `pg_class`.
use pgrx::pg_sys;

/// `InplaceUpdateTupleLock` of storage/lock.h, which the bindings lack.
const IN_PLACE_LOCK: pg_sys::LOCKMODE = pg_sys::ExclusiveLock as pg_sys::LOCKMODE;

/// Changes the fixed fields of a relation's row; false: there is no such row. What follows does not
/// see it before the command counter is increased.
///
/// Core changes rows of `pg_class` in place, too, under no lock on the relation. So the row itself
/// is locked from before it is copied until it is written (`README.tuplock` of core).
///
/// # Safety
/// No other session can replace the row: the caller has a lock for that. The relation cache bears
/// the change.
pub unsafe fn change(
    relation: pg_sys::Oid,
    change: impl FnOnce(&mut pg_sys::FormData_pg_class),
) -> bool {
    let lock = pg_sys::RowExclusiveLock as pg_sys::LOCKMODE;
    let cache = pg_sys::SysCacheIdentifier::RELOID as i32;
    // SAFETY: the row is a copy of the cache's, whose fixed part is a pg_class row.
    unsafe {
        let class = pg_sys::table_open(pg_sys::RelationRelationId, lock);
        let found = pg_sys::SearchSysCacheLocked1(cache, pg_sys::Datum::from(relation));
        if !found.is_null() {
            let row = pg_sys::heap_copytuple(found);
            pg_sys::ReleaseSysCache(found);
            let mut place = (*row).t_self;
            change(&mut *pg_sys::heap_tuple_get_struct(row));
            pg_sys::CatalogTupleUpdate(class, &raw mut place, row);
            pg_sys::UnlockTuple(class, &raw mut place, IN_PLACE_LOCK);
            pg_sys::heap_freetuple(row);
        }
        pg_sys::table_close(class, lock);
        !found.is_null()
    }
}
