//! Descendants of a table, from a function that the bindings lack.
use pgrx::pg_sys;

#[allow(ffi_unwind_calls)]
unsafe extern "C-unwind" {
    fn find_all_inheritors(
        parent: pg_sys::Oid,
        lock: pg_sys::LOCKMODE,
        parents: *mut *mut pg_sys::List,
    ) -> *mut pg_sys::List;
}

/// The table itself and all that inherit from it, locked.
pub fn find_all(relid: pg_sys::Oid, lock: pg_sys::LOCKMODE) -> Vec<pg_sys::Oid> {
    // SAFETY: one call, guarded: it may raise while it waits for locks. The result is a list of
    // oids.
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
