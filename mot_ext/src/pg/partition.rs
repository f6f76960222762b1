//! What a partition's rows must pass.
use pgrx::pg_sys;

unsafe extern "C-unwind" {
    /// A copy in the current context, of the catalogs' trees; NULL where there is nothing to pass.
    fn get_partition_qual_relid(relation: pg_sys::Oid) -> *mut pg_sys::Node;
}

/// A partition's bounds and those of its parents, as one condition over the columns of the first table in a query; null where any row passes.
///
/// # Safety
/// A relation that is locked.
pub unsafe fn bounds(relation: pg_sys::Oid) -> *mut pg_sys::Node {
    // SAFETY: the caller's promise; errors pass the guard.
    #[allow(ffi_unwind_calls)]
    unsafe {
        pg_sys::ffi::pg_guard_ffi_boundary(|| get_partition_qual_relid(relation))
    }
}
