//! Which catalog objects are ours.
//!
//! A foreign table is ours if its wrapper's handler is: names can be changed, and a handler have several wrappers. Nobody takes it from a wrapper
//! (`refuse_other_handler`), for that would make its tables somebody else's, and leave their rows.
use super::refuse::{raise, unsupported};
use super::{latest, nodes};
use crate::fdw;
use crate::pg::version;
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::ffi::CStr;

/// Name of the server that comes with the extension.
pub const NAME: &str = "mot";
/// Name of the access method of our indexes.
pub const INDEX_METHOD: &CStr = c"mot_foreign_index";

/// Whether a foreign server belongs to a wrapper of ours.
pub fn is_mot_server(server: pg_sys::Oid) -> bool {
    // SAFETY: catalog look-ups; both return palloc'd structs, or null of what is gone.
    unsafe {
        let server = pg_sys::GetForeignServerExtended(server, pg_sys::FSV_MISSING_OK as u16);
        if server.is_null() {
            return false;
        }
        let missing_ok = pg_sys::FDW_MISSING_OK as u16;
        let wrapper = pg_sys::GetForeignDataWrapperExtended((*server).fdwid, missing_ok);
        !wrapper.is_null() && fdw::is_handler((*wrapper).fdwhandler)
    }
}

/// Our handlers, for the list of an SQL condition on `pg_foreign_data_wrapper.fdwhandler`; one, unless somebody has made another function of ours.
pub fn handlers() -> String {
    let all = latest::select(
        "SELECT DISTINCT fdwhandler FROM pg_catalog.pg_foreign_data_wrapper",
        &[],
        |row| row.get::<pg_sys::Oid>(1),
    );
    let ours: Vec<_> = all
        .into_iter()
        .flatten()
        .filter(|handler| fdw::is_handler(*handler))
        .map(|handler| format!("'{}'", handler.to_u32()))
        .collect();
    if ours.is_empty() {
        // Which nothing is equal to.
        return "NULL".into();
    }
    ours.join(", ")
}

/// Whether ALTER FOREIGN DATA WRAPPER names a handler, or none, for a wrapper of ours.
pub unsafe fn changes_handler(node: *mut pg_sys::AlterFdwStmt) -> bool {
    // SAFETY: a live node of this type; its options are DefElem nodes.
    unsafe {
        let is_named = nodes::items::<pg_sys::DefElem>((*node).func_options)
            .into_iter()
            .any(|option| nodes::text((*option).defname) == "handler");
        let wrapper = pg_sys::GetForeignDataWrapperByName((*node).fdwname, true);
        is_named && !wrapper.is_null() && fdw::is_handler((*wrapper).fdwhandler)
    }
}

/// ALTER FOREIGN DATA WRAPPER that would make memory-optimized tables foreign.
pub unsafe fn refuse_other_handler(node: *mut pg_sys::AlterFdwStmt) -> bool {
    // SAFETY: a live node of this type.
    if unsafe { changes_handler(node) } {
        unsupported(
            "the handler of memory-optimized tables cannot be changed",
            "Drop the tables, and then the foreign-data wrapper.",
        );
    }
    false
}

/// Whether a relation is a memory-optimized table. `InvalidOid` is not, nor is one that is gone: without a lock it may go between two look-ups.
pub fn is_mot_table(relation: pg_sys::Oid) -> bool {
    if relation == pg_sys::InvalidOid {
        return false;
    }
    // SAFETY: catalog look-ups.
    unsafe {
        pg_sys::get_rel_relkind(relation) as u8 == pg_sys::RELKIND_FOREIGN_TABLE
            && server_of(relation).is_some_and(is_mot_server)
    }
}

/// The server of a foreign table, if that is there.
unsafe fn server_of(table: pg_sys::Oid) -> Option<pg_sys::Oid> {
    // SAFETY: the catalog entry is released before the return.
    unsafe {
        let cache = pg_sys::SysCacheIdentifier::FOREIGNTABLEREL as i32;
        let entry = pg_sys::SearchSysCache1(cache, pg_sys::Datum::from(table));
        if entry.is_null() {
            return None;
        }
        let form = &*pg_sys::heap_tuple_get_struct::<pg_sys::FormData_pg_foreign_table>(entry);
        let server = form.ftserver;
        pg_sys::ReleaseSysCache(entry);
        Some(server)
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
        refuse_replaced();
    }
}

/// Raises if a name that meant a table when that was locked means another one now: a schema is renamed without any lock, and what has read the name since may have worked
/// on the other one. A table that has no such name any more (false) is left to core, which has raised, or to an event trigger that renamed it.
pub unsafe fn refuse_another(name: *mut pg_sys::RangeVar, locked: pg_sys::Oid) -> bool {
    // SAFETY: a live RangeVar (caller).
    let found = unsafe { lookup(name) };
    if found != locked && found != pg_sys::InvalidOid {
        refuse_replaced();
    }
    found == locked
}

/// A name means another table than a moment before.
pub fn refuse_replaced() -> ! {
    raise(
        PgSqlErrorCode::ERRCODE_T_R_SERIALIZATION_FAILURE,
        "the table was replaced by a concurrent statement",
        None,
        Some("Try again.".into()),
    )
}

/// Has a statement's own name of a locked table say the schema that it is in at this moment.
pub unsafe fn name_schema(name: *mut pg_sys::RangeVar, locked: pg_sys::Oid) {
    // SAFETY: a live RangeVar of the caller's; catalog look-ups.
    unsafe {
        (*name).schemaname = pg_sys::get_namespace_name(pg_sys::get_rel_namespace(locked));
    }
}

/// The access method of our indexes.
pub fn access_method() -> pg_sys::Oid {
    // SAFETY: a catalog look-up that raises when the method is missing.
    unsafe { pg_sys::get_index_am_oid(INDEX_METHOD.as_ptr(), false) }
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
