//! The rows of `pg_class` of a file.
use pgrx::pg_sys;

/// Calls `visit` for each relation of this database that has a file of this number in a tablespace;
/// 0: the database's own.
pub fn each_of_file(
    tablespace: u32,
    number: u32,
    mut visit: impl FnMut(&pg_sys::FormData_pg_class),
) {
    let lock = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
    let mut keys = [
        (pg_sys::Anum_pg_class_reltablespace, tablespace),
        (pg_sys::Anum_pg_class_relfilenode, number),
    ]
    .map(|(column, number)| is_oid(column, number.into()));
    // SAFETY: a look-up in the catalog, by its index of tablespaces and files. A row stays until
    // the next one; what is opened here is closed here.
    unsafe {
        let class = pg_sys::table_open(pg_sys::RelationRelationId, lock);
        let scan = pg_sys::systable_beginscan(
            class,
            pg_sys::ClassTblspcRelfilenodeIndexId.into(),
            true,
            std::ptr::null_mut(),
            keys.len() as i32,
            keys.as_mut_ptr(),
        );
        while let Some(row) = std::ptr::NonNull::new(pg_sys::systable_getnext(scan)) {
            visit(&*pg_sys::heap_tuple_get_struct(row.as_ptr()));
        }
        pg_sys::systable_endscan(scan);
        pg_sys::table_close(class, lock);
    }
}

/// The condition that a column is an oid.
fn is_oid(column: u32, oid: pg_sys::Oid) -> pg_sys::ScanKeyData {
    let mut key = pg_sys::ScanKeyData::default();
    let equals = pg_sys::BTEqualStrategyNumber as pg_sys::StrategyNumber;
    let column = column as pg_sys::AttrNumber;
    // SAFETY: fills the structure.
    unsafe {
        pg_sys::ScanKeyInit(
            &raw mut key,
            column,
            equals,
            pg_sys::F_OIDEQ.into(),
            oid.into(),
        );
    }
    key
}
