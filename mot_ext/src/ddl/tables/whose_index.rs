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
use crate::pg::relation::{self, Relation};
use crate::pg::{catalog, nodes};
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
    // SAFETY: core has just made the relation (caller).
    unsafe { flips::end_for_rewrite(relation) };
    let kind = relation::with_entry(relation, |opened| opened.kind());
    let kind = kind.expect("a relation that core has open has an entry");
    if kind != pg_sys::RELKIND_INDEX || storage::index_method() == pg_sys::InvalidOid {
        return;
    }
    catalog::make_changes_visible();
    relation::with_entry(relation, |index| {
        let table = index.index_row().indrelid;
        if storage::is_mot_table(table) {
            // SAFETY: core has just made the index (caller).
            unsafe { becomes_ours(table, index) };
        }
    });
}

/// Gives a new index of a table of ours our access method.
///
/// # Safety
/// Core has just made it.
unsafe fn becomes_ours(table: pg_sys::Oid, index: Relation<'_>) {
    let oid = index.oid();
    refuse_other_methods(index);
    if index.access_method() != Method::Mot.oid() {
        // SAFETY: no other session sees the index yet (caller). Its entry was read anew.
        unsafe {
            access_method::write(oid, Method::Mot);
            access_method::refresh_routine(index);
        }
    }
    if storage::has_storage(oid) {
        // Core gave it the file of an index that it drops, and builds nothing.
        storage::rebuild_reused_index(table, oid, storage::Repeated::Refused);
    }
    // SAFETY: the caller's.
    unsafe { flips::created(table, oid) };
}

/// Raises 0A000 for an index of another access method than btree, which represents ours, and ours.
pub fn refuse_other_methods(index: Relation<'_>) {
    refuse_method(index.access_method());
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
