//! TRUNCATE: new, empty storage for each table; undone by rollback.
use super::private::items;
use super::serializable;
use crate::ddl;
use pgrx::pg_sys;

pub unsafe fn exec_foreign_truncate(
    relations: *mut pg_sys::List,
    _behavior: pg_sys::DropBehavior::Type,
    _restart_sequences: bool,
) {
    // SAFETY: core passes open relations that it locked exclusively.
    unsafe {
        for relation in items::<pg_sys::RelationData>(relations) {
            serializable::emptied((*relation).rd_id);
            ddl::truncate(relation);
        }
    }
}
