//! The lock of a REINDEX that may give rows other keys.
//!
//! The rows of an index with computed keys have these already. A REINDEX computes them anew, and
//! changes a row whose key is another one now (`storage/compute_rows.rs`). Core's ShareLock keeps
//! writers out, but neither another build, which must not see rows that are being changed, nor a
//! session that has locked rows. That session would wait for the build while the build waits for
//! it. So the table is locked in EXCLUSIVE mode before core locks it. Readers continue. CREATE
//! INDEX changes no row, and REINDEX CONCURRENTLY builds a new index.
//!
//! Core looks the name up again, checks rights and raises. A build that finds a row to change
//! without this lock raises, too.
use super::super::identity;
use crate::pg::node::Node;
use crate::pg::{catalog, relation, version};
use crate::storage::{self, computed_keys};
use pgrx::pg_sys;
use pgrx::pg_sys::ReindexObjectType::{REINDEX_OBJECT_INDEX, REINDEX_OBJECT_TABLE};

const LOCK: pg_sys::LOCKMODE = pg_sys::ExclusiveLock as pg_sys::LOCKMODE;

/// Locks the table of a REINDEX, if it has an index with computed keys.
pub fn before_reindex(node: Node<'_, pg_sys::ReindexStmt>) {
    let Some(name) = node.relation() else {
        return;
    };
    let is_concurrently = node
        .params()
        .iter()
        .any(|option| option.is(c"concurrently"));
    if is_concurrently || !may_lock() {
        return;
    }
    let named = identity::lookup(name);
    if named == pg_sys::InvalidOid || !version::owns_class(named) {
        return;
    }
    match node.kind() {
        REINDEX_OBJECT_INDEX if computed_keys::has_computed_keys(named) => {
            lock(catalog::table_if_any(named));
        }
        REINDEX_OBJECT_TABLE if storage::is_mot_table(named) => {
            let shared = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
            let is_computed = relation::try_with(named, shared, computed_keys::are_on);
            if is_computed.unwrap_or(false) {
                lock(named);
            }
        }
        _ => {}
    }
}

/// Whether the statement may lock at all; if not, core says why.
fn may_lock() -> bool {
    // SAFETY: plain variables of this process.
    unsafe { !pg_sys::RecoveryInProgress() && !pg_sys::XactReadOnly }
}

/// Locks a table of the access method.
fn lock(table: pg_sys::Oid) {
    if storage::is_mot_table(table) {
        catalog::lock(table, LOCK);
    }
}
