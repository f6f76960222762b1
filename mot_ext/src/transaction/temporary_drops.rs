//! Temporary tables with ON COMMIT DROP, which may take objects of other tables with them: a column
//! of their row type, and its indexes.
//!
//! Core drops them behind PRE_COMMIT, where our changes are in the log. So it is asked to drop them
//! ahead, as it can be: it drops none twice, and empties a table a second time. Only a transaction
//! that has made such a table can drop one.
use crate::pg::local::ProcessLocal;
use pgrx::pg_sys;
use std::cell::Cell;
use std::ffi::c_int;

/// This transaction has made a relation after it first used the temporary schema.
static MAY_DROP: ProcessLocal<Cell<bool>> = ProcessLocal(Cell::new(false));

/// A relation was made.
pub fn relation_made() {
    // SAFETY: a plain variable of this process.
    let flags = unsafe { pg_sys::MyXactFlags };
    if flags & pg_sys::XACT_FLAGS_ACCESSEDTEMPNAMESPACE as c_int != 0 {
        MAY_DROP.0.set(true);
    }
}

/// At PRE_COMMIT, before changes are logged.
pub fn act_ahead() {
    if MAY_DROP.0.replace(false) {
        // SAFETY: deferred triggers have run and portals are closed, as core's own call wants it.
        unsafe { pg_sys::PreCommit_on_commit_actions() };
    }
}

/// The transaction has ended otherwise. Calls nothing.
pub fn forget() {
    MAY_DROP.0.set(false);
}
