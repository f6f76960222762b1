//! What names in statements mean.
use pgrx::pg_sys;
use pgrx::prelude::*;

/// The relation a name means now, without locking it; `InvalidOid` if there is none.
pub unsafe fn lookup(relation: *mut pg_sys::RangeVar) -> pg_sys::Oid {
    // SAFETY: a live RangeVar, by contract.
    unsafe {
        pg_sys::RangeVarGetRelidExtended(
            relation,
            pg_sys::NoLock as i32,
            pg_sys::RVROption::RVR_MISSING_OK,
            None,
            std::ptr::null_mut(),
        )
    }
}

/// The relation that a list of name parts means.
pub unsafe fn named(names: *mut pg_sys::List) -> pg_sys::Oid {
    // SAFETY: a live list of String nodes (caller).
    unsafe { lookup(pg_sys::makeRangeVarFromNameList(names)) }
}

/// Has a statement's own name of a locked table say the schema that it is in at this moment.
pub unsafe fn name_schema(name: *mut pg_sys::RangeVar, locked: pg_sys::Oid) {
    // SAFETY: a live RangeVar of the caller's; catalog look-ups.
    unsafe {
        (*name).schemaname = pg_sys::get_namespace_name(pg_sys::get_rel_namespace(locked));
    }
}

/// A callback of RangeVarGetRelidExtended: raises unless the user owns the relation.
#[pg_guard]
pub unsafe extern "C-unwind" fn check_ownership(
    relation: *const pg_sys::RangeVar,
    relid: pg_sys::Oid,
    old_relid: pg_sys::Oid,
    argument: *mut std::ffi::c_void,
) {
    // SAFETY: core's own callback with core's own arguments.
    unsafe { pg_sys::RangeVarCallbackOwnsRelation(relation, relid, old_relid, argument) }
}
