//! What names in statements mean.
use crate::pg::catalog;
use crate::pg::node::Node;
use pgrx::pg_sys;
use pgrx::prelude::*;

/// A name of a relation.
type Name<'p> = Node<'p, pg_sys::RangeVar>;

/// The relation a name means now, without locking it; `InvalidOid` if there is none.
pub fn lookup(relation: Name<'_>) -> pg_sys::Oid {
    let none = pg_sys::NoLock as pg_sys::LOCKMODE;
    let missing_ok = pg_sys::RVROption::RVR_MISSING_OK;
    let argument = std::ptr::null_mut();
    // SAFETY: a live name.
    unsafe { pg_sys::RangeVarGetRelidExtended(relation.as_ptr(), none, missing_ok, None, argument) }
}

/// The relation a name means when it is locked; core asks a callback for rights before. Raises if
/// there is none.
///
/// # Safety
/// The callback takes no argument.
pub unsafe fn locked(
    relation: Name<'_>,
    lock: pg_sys::LOCKMODE,
    rights: pg_sys::RangeVarGetRelidCallback,
) -> pg_sys::Oid {
    let argument = std::ptr::null_mut();
    // SAFETY: a live name, and the caller's callback.
    unsafe { pg_sys::RangeVarGetRelidExtended(relation.as_ptr(), lock, 0, rights, argument) }
}

/// The relation that a list of name parts means.
pub fn named(names: Node<'_, pg_sys::List>) -> pg_sys::Oid {
    // SAFETY: the grammar makes lists of strings of names.
    lookup(unsafe { Node::enter(pg_sys::makeRangeVarFromNameList(names.as_ptr())) })
}

/// Has a statement's own name of a locked table say the schema that it is in at this moment.
pub fn name_schema(name: Name<'_>, locked: pg_sys::Oid) {
    if let Some(schema) = catalog::schema_name(catalog::schema_of(locked)) {
        name.schemaname().set(&schema);
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
