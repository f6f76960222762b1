//! Which catalog objects are ours.
use super::nodes;
use super::refuse::raise;
use crate::pg::version;
use pgrx::pg_sys;
use pgrx::prelude::*;

/// Name of the foreign-data wrapper, of its only server, and of the access method.
pub const NAME: &str = "mot";

/// Whether a foreign server belongs to our wrapper.
pub fn is_mot_server(server: pg_sys::Oid) -> bool {
    // SAFETY: catalog look-ups; both return palloc'd structs or raise.
    unsafe {
        let server = pg_sys::GetForeignServer(server);
        let wrapper = pg_sys::GetForeignDataWrapper((*server).fdwid);
        nodes::text((*wrapper).fdwname) == NAME
    }
}

/// Whether a relation is a memory-optimized table. `InvalidOid` is not.
pub fn is_mot_table(relation: pg_sys::Oid) -> bool {
    if relation == pg_sys::InvalidOid {
        return false;
    }
    // SAFETY: catalog look-ups.
    unsafe {
        pg_sys::get_rel_relkind(relation) as u8 == pg_sys::RELKIND_FOREIGN_TABLE
            && is_mot_server(pg_sys::GetForeignServerIdByRelId(relation))
    }
}

/// Whether a relation is an index of a memory-optimized table.
pub fn is_mot_index(relation: pg_sys::Oid) -> bool {
    if relation == pg_sys::InvalidOid {
        return false;
    }
    // SAFETY: catalog look-ups.
    unsafe {
        if pg_sys::get_rel_relkind(relation) as u8 != pg_sys::RELKIND_INDEX {
            return false;
        }
        is_mot_table(pg_sys::IndexGetRelation(relation, true))
    }
}

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

/// Raises when a relation that was ours before it was locked is another one now.
pub fn recheck(relation: pg_sys::Oid) {
    if !is_mot_table(relation) {
        raise(
            PgSqlErrorCode::ERRCODE_T_R_SERIALIZATION_FAILURE,
            "the table was replaced by a concurrent statement",
            None,
            Some("Try again.".into()),
        );
    }
}

/// The access method of our indexes.
pub fn access_method() -> pg_sys::Oid {
    // SAFETY: a catalog look-up that raises when the method is missing.
    unsafe { pg_sys::get_index_am_oid(c"mot".as_ptr(), false) }
}

/// A callback of RangeVarGetRelidExtended: raises unless the user may maintain the table.
#[pg_guard]
pub unsafe extern "C-unwind" fn check_maintenance(
    relation: *const pg_sys::RangeVar,
    relid: pg_sys::Oid,
    old_relid: pg_sys::Oid,
    argument: *mut std::ffi::c_void,
) {
    if relid != pg_sys::InvalidOid && version::may_maintain(relid) {
        return;
    }
    // SAFETY: core's own callback with core's own arguments.
    unsafe { pg_sys::RangeVarCallbackOwnsRelation(relation, relid, old_relid, argument) }
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
