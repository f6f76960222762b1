//! ALTER INDEX ... SET TABLESPACE: core gives the index a new file and copies the old one, by no
//! access method.
//!
//! The engine knows an index by its file. The new one has no index behind it, and using it is an
//! error. So the index is built anew in the same statement, which drops what the old file had.
use crate::ddl::{catalog_query, identity};
use crate::errors::refuse::raise;
use crate::pg::node::Node;
use crate::pg::relation::{self, NO_LOCK};
use crate::pg::{catalog, version};
use crate::storage;
use pgrx::pg_sys::AlterTableType::AT_SetTableSpace;
use pgrx::pg_sys::ObjectType::OBJECT_INDEX;
use pgrx::{PgSqlErrorCode, pg_sys};

/// The index that ALTER INDEX, or ALTER TABLE with an index's name, moves to another tablespace, if
/// it is ours.
///
/// Its table is locked as the build will lock it, ahead of the index, as all statements do.
pub fn index_of(node: Node<'_, pg_sys::AlterTableStmt>) -> Option<pg_sys::Oid> {
    let moves = node
        .cmds()
        .iter()
        .any(|command| command.subtype() == AT_SetTableSpace);
    if !moves {
        return None;
    }
    let index = identity::lookup(node.table());
    if !storage::is_mot_index(index) || !version::owns_class(index) {
        return None;
    }
    catalog::lock(catalog::table_if_any(index), LOCK);
    Some(index)
}

/// The lock of a table whose index is built.
const LOCK: pg_sys::LOCKMODE = pg_sys::ShareLock as pg_sys::LOCKMODE;

/// The indexes of ours that ALTER INDEX ALL IN TABLESPACE may move, with their tables locked.
pub fn indexes_in(node: Node<'_, pg_sys::AlterTableMoveAllStmt>) -> Vec<pg_sys::Oid> {
    if node.objtype() != OBJECT_INDEX {
        return Vec::new();
    }
    let found = catalog_query::select(
        "SELECT oid, relowner FROM pg_catalog.pg_class WHERE relkind = 'i' AND relpersistence <> 't' AND \
         reltablespace = $1 ORDER BY oid",
        &[recorded(node).into()],
        |row| Some((row.get::<pg_sys::Oid>(1)?, row.get::<pg_sys::Oid>(2)?)),
    );
    // SAFETY: a list of the statement's; core's answer is a list of oids.
    let owners = unsafe { pg_sys::roleSpecsToIds(node.roles().as_ptr()) };
    // SAFETY: as above.
    let is_owner = |role| unsafe { owners.is_null() || pg_sys::list_member_oid(owners, role) };
    let is_meant = |(index, owner): &(pg_sys::Oid, pg_sys::Oid)| {
        storage::is_mot_index(*index) && version::owns_class(*index) && is_owner(*owner)
    };
    let meant = found.into_iter().flatten().filter(is_meant);
    let ours: Vec<_> = meant.map(|(index, _)| index).collect();
    for index in &ours {
        let table = catalog::table_if_any(*index);
        if !node.nowait() {
            catalog::lock(table, LOCK);
        } else if !catalog::lock_if_free(table, LOCK) {
            not_available(table);
        }
    }
    ours
}

/// The tablespace whose indexes a statement moves, as the catalog has it for them: none for the
/// database's own.
fn recorded(node: Node<'_, pg_sys::AlterTableMoveAllStmt>) -> pg_sys::Oid {
    // SAFETY: a name of the statement's; a plain variable of this process.
    unsafe {
        let tablespace = pg_sys::get_tablespace_oid(node.orig_tablespacename(), true);
        match tablespace == pg_sys::MyDatabaseTableSpace {
            true => pg_sys::InvalidOid,
            false => tablespace,
        }
    }
}

/// Raises 55P03 in core's words.
fn not_available(table: pg_sys::Oid) -> ! {
    let name = catalog::name(table).unwrap_or_default();
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
/// The index's table is locked, and the statement has ended.
pub unsafe fn build_if_moved(index: pg_sys::Oid) {
    if !storage::is_mot_index(index) || storage::has_storage(index) {
        return;
    }
    match state(index) {
        State::NotEntered => {}
        State::Invalid => {
            let table = catalog::table_of(index);
            storage::rebuild_reused_index(table, index, storage::Repeated::Entered);
        }
        // SAFETY: the index is there; its table is locked (caller).
        State::Valid => unsafe { version::rebuild_index(index) },
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

fn state(index: pg_sys::Oid) -> State {
    relation::with_index(index, NO_LOCK, |opened| {
        let form = opened.index_row();
        match (form.indisready && form.indislive, form.indisvalid) {
            (false, _) => State::NotEntered,
            (true, false) => State::Invalid,
            (true, true) => State::Valid,
        }
    })
}
