//! DROP INDEX CONCURRENTLY, the end of REINDEX CONCURRENTLY, and REFRESH MATERIALIZED VIEW
//! CONCURRENTLY.
//!
//! - **DROP INDEX CONCURRENTLY.** Core calls the object access hook in the first of its
//!   transactions, in which the index is still used. Its place is noted there. The storage goes
//!   when the statement ends, in the transaction that takes the index out of the catalog.
//! - **REINDEX CONCURRENTLY** drops the former index under a lock that is not logged for a standby.
//!   The lock that is taken here is logged: so a standby's queries that read the index end before
//!   it goes.
//! - **REFRESH MATERIALIZED VIEW CONCURRENTLY** fills a temporary table of the view's access
//!   method, and compares. That table becomes a heap table (`table_am/transient.rs`).
use super::After;
use crate::ddl::identity;
use crate::index_am::access_method::indexes_of;
use crate::index_am::flips;
use crate::pg::local::ProcessLocal;
use crate::pg::node::{Any, Node};
use crate::pg::version::index_am::ASKS_FOR_BTREE;
use crate::pg::{catalog, version};
use crate::storage;
use mot_engine::FileKey;
use pgrx::pg_sys;
use std::cell::RefCell;
use std::ffi::c_int;

/// Indexes that go when the statement ends.
struct State {
    going: RefCell<Vec<(pg_sys::Oid, FileKey)>>,
}

static STATE: ProcessLocal<State> = ProcessLocal(State {
    going: RefCell::new(Vec::new()),
});

/// Whether a statement is a DROP INDEX CONCURRENTLY. What an earlier one has left by an error is
/// forgotten: its index is still in the catalog.
pub fn drop_begins(node: Node<'_, pg_sys::DropStmt>) -> bool {
    let is_it = node.concurrent() && node.removeType() == pg_sys::ObjectType::OBJECT_INDEX;
    // Such a statement is part of no other, but an event trigger may drop something else before it
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
    // Core has it locked, mostly in this mode. After REINDEX CONCURRENTLY no session uses it: core
    // has waited for all that did.
    catalog::lock(index, pg_sys::AccessExclusiveLock as pg_sys::LOCKMODE);
    storage::drop_index(index);
}

/// REFRESH MATERIALIZED VIEW CONCURRENTLY of one of ours: locked as core locks it, and named once
/// and for all. Core looks for a unique btree of the view's, up to 17.
pub fn refresh<'p>(
    node: Node<'p, pg_sys::RefreshMatViewStmt>,
    after: &mut After,
) -> Option<Any<'p>> {
    if !node.concurrent() || !ASKS_FOR_BTREE {
        return None;
    }
    if !storage::is_mot_table(identity::lookup(node.table())) {
        return None;
    }
    // Core takes the same lock, after the same question for rights.
    let lock = pg_sys::ExclusiveLock as pg_sys::LOCKMODE;
    // SAFETY: core's callback for this statement, which takes no argument.
    let view = unsafe { identity::locked(node.table(), lock, Some(version::may_refresh)) };
    if storage::is_mot_table(view) {
        let shared = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
        // SAFETY: the view is locked.
        let flips = unsafe { flips::show(&indexes_of(view), shared) };
        after.flips.push(flips);
    }
    let named = node.copied();
    identity::name_schema(named.table(), view);
    Some(named.any())
}
