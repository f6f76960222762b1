//! The table that REFRESH MATERIALIZED VIEW fills: with CONCURRENTLY, it compares it with the view;
//! otherwise the view gets its storage.
//!
//! Core gives it the view's access method. With CONCURRENTLY it makes it temporary, and it becomes
//! a heap table: only the statement sees it.
use crate::pg::local::ProcessLocal;
use crate::pg::relation::Relation;
use crate::pg::{catalog, version};
use crate::storage;
use crate::transaction::relation;
use pgrx::pg_sys;
use std::cell::Cell;

/// A transient heap table that core has not written to the catalog yet.
static TRANSIENT: ProcessLocal<Cell<pg_sys::Oid>> = ProcessLocal(Cell::new(pg_sys::InvalidOid));

/// The table that REFRESH fills, found at a generation of the process's cache: each row asks.
static REFRESHED: ProcessLocal<Cell<(pg_sys::Oid, u64)>> =
    ProcessLocal(Cell::new((pg_sys::InvalidOid, 0)));

/// As [`is_of_refresh`], of an open table that gets a row.
pub fn is_filled_by_refresh(relation: Relation<'_>) -> bool {
    let now = (relation.oid(), relation::generation());
    if REFRESHED.0.get() == now {
        return true;
    }
    let is_of_refresh = is_of_refresh(relation);
    if is_of_refresh {
        REFRESHED.0.set(now);
    }
    is_of_refresh
}

/// Makes a relation that core is making a heap table, if it is the one that REFRESH MATERIALIZED
/// VIEW CONCURRENTLY fills.
///
/// # Safety
/// A relation for which core is making the first file: it is not in the catalog yet.
pub unsafe fn make_transient(relation: Relation<'_>) -> bool {
    let is_temporary = relation.persistence() == pg_sys::RELPERSISTENCE_TEMP;
    if !is_temporary || !is_of_refresh(relation) {
        return false;
    }
    // SAFETY: the caller's relation: the catalog is written from this entry after the callback.
    unsafe { relation.become_heap() };
    TRANSIENT.0.set(relation.oid());
    true
}

/// Whether a relation is one that REFRESH fills for a memory-optimized view; core calls it
/// `pg_temp_` and the view's oid. It is open, or core is making it.
pub fn is_of_refresh(relation: Relation<'_>) -> bool {
    let view = relation
        .name()
        .to_str()
        .ok()
        .and_then(|name| name.strip_prefix("pg_temp_"))
        .and_then(|number| number.parse::<u32>().ok());
    let is_own = relation.is_made_here() && !relation.has_indexes();
    is_own
        && view.is_some_and(|view| {
            let view = pg_sys::Oid::from(view);
            storage::is_mot_table(view) && catalog::kind(view) == pg_sys::RELKIND_MATVIEW
        })
}

/// A relation is in the catalog: the transient table gets what the view has not, a TOAST table.
///
/// # Safety
/// Core has just made the relation.
pub unsafe fn created(relation: pg_sys::Oid) {
    let transient = TRANSIENT.0.get();
    if transient == pg_sys::InvalidOid {
        return;
    }
    TRANSIENT.0.set(pg_sys::InvalidOid);
    if transient == relation {
        // SAFETY: core makes the row visible right after this call, too.
        unsafe {
            pg_sys::CommandCounterIncrement();
            version::make_toast_table(relation);
        }
    }
}
