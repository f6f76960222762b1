//! Descendants of a table, from a function that the bindings lack.
use super::latest;
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
