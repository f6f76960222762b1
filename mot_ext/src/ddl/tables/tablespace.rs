//! ALTER INDEX ... SET TABLESPACE: core gives the index a new file and copies the old one, by no
//! access method.
//!
//! The engine knows an index by its file. The new one has no index behind it, and using it is an
//! error. So the index is built anew in the same statement, which drops what the old file had.
use crate::ddl::{catalog_query, identity};
use crate::errors::refuse::raise;
use crate::pg::{nodes, text, version};
use crate::storage;
use pgrx::pg_sys::AlterTableType::AT_SetTableSpace;
use pgrx::pg_sys::ObjectType::OBJECT_INDEX;
use pgrx::{PgSqlErrorCode, pg_sys};

/// The index that ALTER INDEX, or ALTER TABLE with an index's name, moves to another tablespace, if
/// it is ours.
///
/// Its table is locked as the build will lock it, ahead of the index, as all statements do.
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
        let found = catalog_query::select(
            "SELECT oid, relowner FROM pg_catalog.pg_class WHERE relkind = 'i' AND relpersistence <> 't' AND \
             reltablespace = $1 ORDER BY oid",
            &[recorded.into()],
            |row| Some((row.get::<pg_sys::Oid>(1)?, row.get::<pg_sys::Oid>(2)?)),
        );
        let owners = pg_sys::roleSpecsToIds((*node).roles);
        let is_meant = |(index, owner): &(pg_sys::Oid, pg_sys::Oid)| {
            storage::is_mot_index(*index)
                && version::owns_class(*index)
                && (owners.is_null() || pg_sys::list_member_oid(owners, *owner))
        };
        let meant = found.into_iter().flatten().filter(is_meant);
        let ours: Vec<_> = meant.map(|(index, _)| index).collect();
        let lock = pg_sys::ShareLock as pg_sys::LOCKMODE;
        for index in &ours {
            let table = pg_sys::IndexGetRelation(*index, true);
            if !(*node).nowait {
                pg_sys::LockRelationOid(table, lock);
            } else if !pg_sys::ConditionalLockRelationOid(table, lock) {
                not_available(table);
            }
        }
        ours
    }
}

/// Raises 55P03 in core's words.
fn not_available(table: pg_sys::Oid) -> ! {
    // SAFETY: a catalog look-up, of a table that may be gone.
    let name = unsafe {
        let name = pg_sys::get_rel_name(table);
        if name.is_null() {
            String::new()
        } else {
            text::from_c(name)
        }
    };
    raise(
        PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE,
        format!("aborting because lock on relation \"{name}\" is not available"),
        None,
        None,
    )
}

/// Builds an index whose file core has copied; one that kept its file is left alone. An invalid one
/// stays invalid, as a copy does: REINDEX would ask for uniqueness, and make it valid.
///
/// # Safety
/// The caller has locked the index's table, and the statement has ended.
pub unsafe fn build_if_moved(index: pg_sys::Oid) {
    if !storage::is_mot_index(index) || storage::has_storage(index) {
        return;
    }
    // SAFETY: the index is there; its table is locked (caller).
    unsafe {
        match state(index) {
            State::NotEntered => {}
            State::Invalid => {
                let table = pg_sys::IndexGetRelation(index, false);
                storage::rebuild_reused_index(table, index, storage::Repeated::Entered);
            }
            State::Valid => version::rebuild_index(index),
        }
    }
}

/// What the catalog says of an index.
enum State {
    /// By writers: one that a failed build left has no storage, and none that is being dropped
    /// needs one.
    NotEntered,
    Invalid,
    Valid,
}

unsafe fn state(index: pg_sys::Oid) -> State {
    // SAFETY: the index is there, its table locked (caller).
    unsafe {
        let lock = pg_sys::NoLock as pg_sys::LOCKMODE;
        let opened = pg_sys::index_open(index, lock);
        let form = &*(*opened).rd_index;
        let state = match (form.indisready && form.indislive, form.indisvalid) {
            (false, _) => State::NotEntered,
            (true, false) => State::Invalid,
            (true, true) => State::Valid,
        };
        pg_sys::index_close(opened, lock);
        state
    }
}
