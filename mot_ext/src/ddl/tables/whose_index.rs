//! Every index of a memory-optimized table is the engine's, whichever statement or C code makes it.
//!
//! Core makes it as a btree: keys, foreign keys and ON CONFLICT know no other kind, and the
//! operator classes are btree's. It calls the object access hook when the index's catalog rows are
//! written, before any entry is made. There the index gets our access method. Its operator classes
//! stay btree's.
//!
//! An index of another access method is refused here, by its catalog rows. So no statement, dump or
//! library gets around it. No key column is refused: `storage/definition.rs` finds the kind of each
//! (`keys`), or gives it labels (`storage/labels.rs`).
use crate::errors::refuse::unsupported;
use crate::index_am::access_method::{self, Method};
use crate::index_am::flips;
use crate::pg::nodes;
use crate::storage;
use pgrx::pg_sys;

/// The object access hook of a relation that was made: an index of a memory-optimized table becomes
/// the engine's.
///
/// The new catalog rows are not visible yet. Core makes them visible right after this call, so
/// doing so here changes nothing for other indexes.
///
/// # Safety
/// Core has just made the relation, and has it open.
pub unsafe fn created(relation: pg_sys::Oid) {
    // SAFETY: the entry is core's own, open, and valid: nothing has invalidated it since it was
    // made.
    unsafe {
        flips::end_for_rewrite(relation);
        if kind_of_open(relation) != pg_sys::RELKIND_INDEX
            || storage::index_method() == pg_sys::InvalidOid
        {
            return;
        }
        pg_sys::CommandCounterIncrement();
        let index = pg_sys::RelationIdGetRelation(relation);
        let table = (*(*index).rd_index).indrelid;
        if storage::is_mot_table(table) {
            refuse_other_methods(index);
            if (*(*index).rd_rel).relam != Method::Mot.oid() {
                access_method::write(relation, Method::Mot);
                access_method::refresh_routine(index);
            }
            if storage::has_storage(relation) {
                // Core gave it the file of an index that it drops, and builds nothing.
                storage::rebuild_reused_index(table, relation, storage::Repeated::Refused);
            }
            flips::created(table, relation);
        }
        pg_sys::RelationClose(index);
    }
}

/// The kind of a relation that core has open; 0: it has no entry.
unsafe fn kind_of_open(relation: pg_sys::Oid) -> u8 {
    // SAFETY: the entry is counted while it is read.
    unsafe {
        let opened = pg_sys::RelationIdGetRelation(relation);
        if opened.is_null() {
            return 0;
        }
        let kind = (*(*opened).rd_rel).relkind as u8;
        pg_sys::RelationClose(opened);
        kind
    }
}

/// Raises 0A000 for an index of another access method than btree, which represents ours, and ours.
///
/// # Safety
/// An open index.
pub unsafe fn refuse_other_methods(index: pg_sys::Relation) {
    // SAFETY: the caller's index is open.
    unsafe {
        refuse_method((*(*index).rd_rel).relam);
    }
}

/// The same by the access method's oid.
fn refuse_method(method: pg_sys::Oid) {
    if method == Method::Btree.oid() || method == Method::Mot.oid() {
        return;
    }
    // SAFETY: a catalog look-up that returns a palloc'd string.
    let name = unsafe { nodes::text(pg_sys::get_am_name(method)) };
    unsupported(
        format!("access method \"{name}\" is not supported on memory-optimized tables"),
        "Leave USING out: indexes of memory-optimized tables are ordered indexes in memory.",
    )
}
