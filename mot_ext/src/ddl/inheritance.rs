//! Descendants of a table and its default partition, from functions the bindings lack.
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
