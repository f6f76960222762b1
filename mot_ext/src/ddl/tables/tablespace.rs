//! ALTER INDEX ... SET TABLESPACE: core gives the index a new file and copies the old one, by no
//! access method.
//!
//! The engine knows an index by its file. The new one has no index behind it, and using it is an
//! error. So the index is built anew in the same statement, which drops what the old file had.
use crate::ddl::{identity, latest, nodes};
use crate::pg::version;
use crate::storage;
use pgrx::pg_sys;
use pgrx::pg_sys::AlterTableType::AT_SetTableSpace;
use pgrx::pg_sys::ObjectType::OBJECT_INDEX;

/// The index that ALTER INDEX, or ALTER TABLE with an index's name, moves to another tablespace, if
/// it is ours.
///
/// Its table is locked as the build will lock it, ahead of the index, as everybody locks them.
///
/// # Safety
/// A live node.
pub unsafe fn index_of(node: *mut pg_sys::AlterTableStmt) -> Option<pg_sys::Oid> {
    // SAFETY: the caller's node; catalog look-ups.
    unsafe {
        let moves = nodes::items::<pg_sys::AlterTableCmd>((*node).cmds)
            .into_iter()
            .any(|command| (*command).subtype == AT_SetTableSpace);
        if !moves {
            return None;
        }
        let index = identity::lookup((*node).relation);
        if !storage::is_mot_index(index) || !version::owns_class(index) {
            return None;
        }
        let table = pg_sys::IndexGetRelation(index, true);
        pg_sys::LockRelationOid(table, pg_sys::ShareLock as pg_sys::LOCKMODE);
        Some(index)
    }
}

/// The indexes of ours that ALTER INDEX ALL IN TABLESPACE may move, with their tables locked.
///
/// # Safety
/// A live node.
pub unsafe fn indexes_in(node: *mut pg_sys::AlterTableMoveAllStmt) -> Vec<pg_sys::Oid> {
    // SAFETY: the caller's node; catalog look-ups.
    unsafe {
        if (*node).objtype != OBJECT_INDEX {
            return Vec::new();
        }
        let tablespace = pg_sys::get_tablespace_oid((*node).orig_tablespacename, true);
        let is_default = tablespace == pg_sys::MyDatabaseTableSpace;
        let recorded = if is_default {
            pg_sys::InvalidOid
        } else {
            tablespace
        };
        let found = latest::select(
            "SELECT oid FROM pg_catalog.pg_class WHERE relkind = 'i' AND reltablespace = $1 ORDER BY oid",
            &[recorded.into()],
            |row| row.get::<pg_sys::Oid>(1),
        );
        let ours: Vec<_> = found
            .into_iter()
            .flatten()
            .filter(|index| storage::is_mot_index(*index) && version::owns_class(*index))
            .collect();
        for index in &ours {
            let table = pg_sys::IndexGetRelation(*index, true);
            pg_sys::LockRelationOid(table, pg_sys::ShareLock as pg_sys::LOCKMODE);
        }
        ours
    }
}

/// Builds an index whose file core has copied; one that kept its file is left alone.
///
/// # Safety
/// The caller has locked the index's table, and the statement has ended.
pub unsafe fn build_if_moved(index: pg_sys::Oid) {
    if storage::is_mot_index(index) && !storage::has_storage(index) {
        // SAFETY: the index is there; its table is locked (caller).
        unsafe { version::rebuild_index(index) };
    }
}
