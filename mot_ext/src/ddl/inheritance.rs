//! Descendants of a table and its default partition, from functions the bindings lack.
use super::{identity, latest};
use pgrx::pg_sys;

#[allow(ffi_unwind_calls)]
unsafe extern "C-unwind" {
    fn find_all_inheritors(
        parent: pg_sys::Oid,
        lock: pg_sys::LOCKMODE,
        parents: *mut *mut pg_sys::List,
    ) -> *mut pg_sys::List;
    /// Reads a catalog row.
    fn get_default_partition_oid(parent: pg_sys::Oid) -> pg_sys::Oid;
}

/// The table itself and all that inherit from it, locked.
pub unsafe fn find_all(relid: pg_sys::Oid, lock: pg_sys::LOCKMODE) -> Vec<pg_sys::Oid> {
    // SAFETY: one call, guarded: it may raise while it waits for locks. The result is a list of oids.
    unsafe {
        let list = pg_sys::ffi::pg_guard_ffi_boundary(|| {
            #[allow(ffi_unwind_calls)]
            find_all_inheritors(relid, lock, std::ptr::null_mut())
        });
        pgrx::PgList::<pg_sys::Oid>::from_pg(list)
            .iter_oid()
            .collect()
    }
}

/// The memory-optimized ones of a table and all that inherit from it, at any depth; of a composite type, of the tables that have their columns from it.
pub unsafe fn mot_tables(relid: pg_sys::Oid, lock: pg_sys::LOCKMODE) -> Vec<pg_sys::Oid> {
    // SAFETY: lists of oids from core, and catalog look-ups.
    unsafe {
        let tables = tables_of(relid);
        for table in tables.iter().filter(|table| **table != relid) {
            pg_sys::LockRelationOid(*table, lock);
        }
        tables
            .into_iter()
            .flat_map(|table| find_all(table, lock))
            .filter(|child| identity::is_mot_table(*child))
            .collect()
    }
}

/// A table; of a composite type, the tables that have their columns from it.
pub fn tables_of(relid: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    // SAFETY: catalog look-ups.
    let row_type = unsafe {
        if pg_sys::get_rel_relkind(relid) as u8 != pg_sys::RELKIND_COMPOSITE_TYPE {
            return vec![relid];
        }
        pg_sys::get_rel_type_id(relid)
    };
    let typed = latest::select(
        "SELECT oid FROM pg_catalog.pg_class WHERE reloftype = $1 ORDER BY oid",
        &[row_type.into()],
        |row| row.get::<pg_sys::Oid>(1),
    );
    typed.into_iter().flatten().collect()
}

/// The default partition of a table; 0: it has none, or no partitions.
pub unsafe fn default_partition(parent: pg_sys::Oid) -> pg_sys::Oid {
    // SAFETY: one call, guarded.
    unsafe {
        pg_sys::ffi::pg_guard_ffi_boundary(|| {
            #[allow(ffi_unwind_calls)]
            get_default_partition_oid(parent)
        })
    }
}
