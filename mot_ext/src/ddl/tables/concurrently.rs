//! DROP INDEX CONCURRENTLY, the end of REINDEX CONCURRENTLY, and REFRESH MATERIALIZED VIEW
//! CONCURRENTLY.
//!
//! - **DROP INDEX CONCURRENTLY.** Core calls the object access hook in the first of its
//!   transactions, in which the index is still used. Its place is noted there. The storage goes
//!   when the statement ends, in the transaction that takes the index out of the catalog.
//! - **REINDEX CONCURRENTLY** drops the former index under a lock that a standby is not told of.
//!   The lock that is taken here is told: so a standby's queries that read the index end before it
//!   goes.
//! - **REFRESH MATERIALIZED VIEW CONCURRENTLY** fills a temporary table of the view's access
//!   method, and compares. That table becomes a heap table: nobody but the statement sees it.
use super::access_method::indexes_of;
use super::{After, flips};
use crate::ddl::{identity, nodes};
use crate::pg::version;
use crate::storage;
use mot_engine::FileKey;
use pgrx::pg_sys;
use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_int};

/// What this process is in the middle of.
struct State {
    /// Indexes that go when the statement ends.
    going: RefCell<Vec<(pg_sys::Oid, FileKey)>>,
    /// A transient heap table that core has not written to the catalog yet.
    transient: Cell<pg_sys::Oid>,
}

// SAFETY: PostgreSQL's processes run this code on one thread.
unsafe impl Sync for State {}

static STATE: State = State {
    going: RefCell::new(Vec::new()),
    transient: Cell::new(pg_sys::InvalidOid),
};

/// Whether a statement is a DROP INDEX CONCURRENTLY. What an earlier one has left by an error is
/// forgotten: its index is still in the catalog.
///
/// # Safety
/// A live node.
pub unsafe fn drop_begins(node: *mut pg_sys::DropStmt) -> bool {
    // SAFETY: the caller's node.
    let is_it =
        unsafe { (*node).concurrent && (*node).removeType == pg_sys::ObjectType::OBJECT_INDEX };
    // Such a statement stands in no other, but an event trigger may drop something else before it
    // ends.
    if is_it {
        STATE.going.borrow_mut().clear();
    }
    is_it
}

/// DROP INDEX CONCURRENTLY has ended, in the transaction that took its index out of the catalog.
pub fn drop_ends() {
    let going = std::mem::take(&mut *STATE.going.borrow_mut());
    going.into_iter().for_each(storage::drop_index_at);
}

/// An index of ours is being dropped, with core's flags of the deletion.
pub fn index_dropped(index: pg_sys::Oid, flags: c_int) {
    if flags as u32 & pg_sys::PERFORM_DELETION_CONCURRENTLY != 0 {
        STATE
            .going
            .borrow_mut()
            .extend(storage::place_of_index(index));
        return;
    }
    // SAFETY: core has it locked, mostly in this mode. After REINDEX CONCURRENTLY nobody uses it:
    // core has waited for all who did.
    unsafe { pg_sys::LockRelationOid(index, pg_sys::AccessExclusiveLock as pg_sys::LOCKMODE) };
    storage::drop_index(index);
}

/// REFRESH MATERIALIZED VIEW CONCURRENTLY of one of ours: locked as core locks it, and named once
/// and for all. Core looks for a unique btree of the view's, up to 17.
///
/// # Safety
/// A live node.
pub unsafe fn refresh(
    node: *mut pg_sys::RefreshMatViewStmt,
    after: &mut After,
) -> Option<*mut pg_sys::Node> {
    // SAFETY: the caller's node; core takes the same lock, after the same question for rights.
    unsafe {
        if !(*node).concurrent || cfg!(feature = "pg18") {
            return None;
        }
        if !storage::is_mot_table(identity::lookup((*node).relation)) {
            return None;
        }
        let lock = pg_sys::ExclusiveLock as pg_sys::LOCKMODE;
        let rights = Some(version::may_refresh as unsafe extern "C-unwind" fn(_, _, _, _));
        let none = std::ptr::null_mut();
        let view = pg_sys::RangeVarGetRelidExtended((*node).relation, lock, 0, rights, none);
        if storage::is_mot_table(view) {
            let shared = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
            after.flips.push(flips::show(&indexes_of(view), shared));
        }
        let named = nodes::copy(node);
        identity::name_schema((*named).relation, view);
        Some(named.cast())
    }
}

/// Makes a relation that core is making a heap table, if it is the one that REFRESH MATERIALIZED
/// VIEW CONCURRENTLY fills; core calls it `pg_temp_` and the view's oid.
///
/// # Safety
/// A relation for which core is making the first file: it is not in the catalog yet.
pub unsafe fn make_transient(relation: pg_sys::Relation) -> bool {
    // SAFETY: the caller's relation; the catalog is written from this entry after the callback. The
    // routine lives as long as the process.
    unsafe {
        let form = &mut *(*relation).rd_rel;
        let name = CStr::from_ptr(form.relname.data.as_ptr());
        let view = name
            .to_str()
            .ok()
            .and_then(|name| name.strip_prefix("pg_temp_"))
            .and_then(|number| number.parse::<u32>().ok());
        let is_view = view.is_some_and(|view| {
            let view = pg_sys::Oid::from(view);
            storage::is_mot_table(view)
                && pg_sys::get_rel_relkind(view) as u8 == pg_sys::RELKIND_MATVIEW
        });
        if form.relpersistence as u8 != pg_sys::RELPERSISTENCE_TEMP || !is_view {
            return false;
        }
        form.relam = pg_sys::HEAP_TABLE_AM_OID;
        (*relation).rd_amhandler = pg_sys::Oid::from(pg_sys::F_HEAP_TABLEAM_HANDLER);
        (*relation).rd_tableam = pg_sys::GetHeapamTableAmRoutine();
        STATE.transient.set((*relation).rd_id);
        true
    }
}

/// A relation is in the catalog: the transient table gets what the view has not, a TOAST table.
///
/// # Safety
/// Core has just made the relation.
pub unsafe fn created(relation: pg_sys::Oid) {
    let transient = STATE.transient.get();
    if transient == pg_sys::InvalidOid {
        return;
    }
    STATE.transient.set(pg_sys::InvalidOid);
    if transient == relation {
        // SAFETY: core makes the row visible right after this call, too.
        unsafe {
            pg_sys::CommandCounterIncrement();
            version::make_toast_table(relation);
        }
    }
}
