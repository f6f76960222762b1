//! ADD CONSTRAINT ... USING INDEX ... DEFERRABLE: core changes the index's row in the catalog, and
//! calls no access method.
//!
//! To the engine an index is unique or not, by how it was built (`storage/core_keys.rs`). So an
//! index that becomes one of a deferrable constraint is built anew in the same statement.
use crate::index_am::access_method::indexes_of;
use crate::pg::version;
use crate::storage;
use pgrx::pg_sys;

/// Builds the indexes anew that are unique to the engine, and serve deferrable constraints.
///
/// # Safety
/// The statement has ended; it has locked the table exclusively, and its changes are visible.
pub unsafe fn build_changed(table: pg_sys::Oid) {
    if !storage::is_mot_table(table) {
        return;
    }
    for index in indexes_of(table) {
        if storage::is_kept_though_deferrable(index) {
            // SAFETY: the index is there, and its table locked (caller).
            unsafe { version::rebuild_index(index) };
        }
    }
}
