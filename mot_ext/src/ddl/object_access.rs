//! The object access hook: an index that was made becomes the engine's, and the engine's part of
//! whatever is dropped goes, by whichever statement.
//!
//! On a drop it fires inside the deletion, before the catalog rows go: for DROP of the table or
//! index itself, for anything that cascades to it (schema, server, extension, owner, column,
//! constraint), and for DROP DATABASE. The engine undoes it with the transaction and frees memory
//! at commit only.
use super::{database, earlier_build, tables};
use crate::pg::hook::Previous;
use crate::transaction::temporary_drops;
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::ffi::{c_int, c_void};

static PREVIOUS: Previous<pg_sys::object_access_hook_type> = Previous::new(None);

/// Installs the hook; called once, while the server loads its libraries.
pub fn init() {
    // SAFETY: libraries are being loaded; the hook's variable.
    unsafe { PREVIOUS.install(&raw mut pg_sys::object_access_hook, Some(object_access)) };
}

/// Called for every function execution too when another module asks for it: a plain frame that
/// reads one integer first.
#[allow(ffi_unwind_calls)]
unsafe extern "C-unwind" fn object_access(
    access: pg_sys::ObjectAccessType::Type,
    class: pg_sys::Oid,
    object: pg_sys::Oid,
    sub_object: c_int,
    argument: *mut c_void,
) {
    if let Some(previous) = PREVIOUS.get() {
        // SAFETY: the arguments are PostgreSQL's own; nothing to drop is in this frame.
        unsafe { previous(access, class, object, sub_object, argument) };
    }
    if class == pg_sys::RelationRelationId && changes(access, sub_object) {
        of_earlier_build(object);
    }
    if class == pg_sys::RelationRelationId && changes_columns(access, sub_object) {
        column_altered(object);
    }
    if access == pg_sys::ObjectAccessType::OAT_DROP && sub_object == 0 {
        // SAFETY: what core passes with a drop: NULL, or this.
        let drop = unsafe { argument.cast::<pg_sys::ObjectAccessDrop>().as_ref() };
        dropped(class, object, drop.map_or(0, |drop| drop.dropflags));
    } else if access == pg_sys::ObjectAccessType::OAT_POST_CREATE && sub_object == 0 {
        if class == pg_sys::RelationRelationId {
            relation_created(object);
        } else if class == pg_sys::DatabaseRelationId {
            database_created(object);
        }
    }
}

/// Whether a relation that is there already changes: it or a column is altered or dropped, or a
/// column is added.
fn changes(access: pg_sys::ObjectAccessType::Type, sub_object: c_int) -> bool {
    match access {
        pg_sys::ObjectAccessType::OAT_DROP | pg_sys::ObjectAccessType::OAT_POST_ALTER => true,
        pg_sys::ObjectAccessType::OAT_POST_CREATE => sub_object != 0,
        _ => false,
    }
}

/// Whether a relation gets or loses a column.
fn changes_columns(access: pg_sys::ObjectAccessType::Type, sub_object: c_int) -> bool {
    sub_object != 0
        && matches!(
            access,
            pg_sys::ObjectAccessType::OAT_DROP | pg_sys::ObjectAccessType::OAT_POST_CREATE
        )
}

#[pg_guard]
extern "C-unwind" fn column_altered(relation: pg_sys::Oid) {
    tables::column_altered(relation);
}

/// Raises for a table of an earlier build, by whatever way a change reaches it.
#[pg_guard]
extern "C-unwind" fn of_earlier_build(relation: pg_sys::Oid) {
    earlier_build::refuse(relation);
}

#[pg_guard]
extern "C-unwind" fn relation_created(relation: pg_sys::Oid) {
    temporary_drops::relation_made();
    // SAFETY: core has just made it.
    unsafe { tables::created(relation) };
}

#[pg_guard]
extern "C-unwind" fn database_created(database: pg_sys::Oid) {
    database::created(database);
}

#[pg_guard]
extern "C-unwind" fn dropped(class: pg_sys::Oid, object: pg_sys::Oid, flags: c_int) {
    if class == pg_sys::DatabaseRelationId {
        database::dropped(object);
    } else if class == pg_sys::RelationRelationId {
        tables::dropped(object, flags);
    }
}
