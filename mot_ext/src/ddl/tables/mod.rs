//! Tables of the access method `mot`: what core's DDL cannot know of them.
//!
//! Core makes, alters and drops these tables as its own. Here is the rest (README.md):
//!
//! | file | what it does |
//! |---|---|
//! | `whose_index` | every index of such a table becomes the engine's, or is refused by name |
//! | `names_back` | `USING mot_index` in a statement means btree |
//! | `btree_moments` | the statements in which core must see a btree |
//! | `defaults` | `default_table_access_method = mot`, and what cannot be memory-optimized |
//! | `concurrently` | DROP INDEX and REFRESH MATERIALIZED VIEW CONCURRENTLY |
//! | `index_locks` | the lock of a REINDEX that may change rows |
//! | `tablespace` | ALTER INDEX ... SET TABLESPACE |
//! | `deferrable` | ADD CONSTRAINT ... USING INDEX ... DEFERRABLE |
//! | `row_types` | row types in keys that get or lose a column |
//!
//! How an index is shown as a btree is in `index_am/flips.rs`, ON CONFLICT in
//! `plan_nodes/on_conflict.rs`, what the planner may believe of an index in
//! `planner/index_order.rs`.
//!
//! Called by the hooks of `ddl`; calls `storage`, the access methods, and of `ddl` what examines
//! parse trees and locks.
mod btree_moments;
mod concurrently;
mod defaults;
mod deferrable;
mod index_locks;
mod names_back;
mod row_types;
mod tablespace;
mod whose_index;

use super::identity;
use super::utility::{Statement, refuse_read_only};
use crate::index_am::flips::{self, Flips};
use crate::pg::catalog;
use crate::pg::node::{Any, Node};
use crate::storage;
use crate::table_am::{BecomesHeap, transient};
use pgrx::pg_sys;
use pgrx::pg_sys::NodeTag::*;
use pgrx::pg_sys::ObjectType::*;
use std::ffi::{CStr, c_int};

/// The object access hook of a relation that was made.
///
/// # Safety
/// Core has just made the relation, and has it open.
pub unsafe fn created(relation: pg_sys::Oid) {
    // SAFETY: the caller's relation.
    unsafe {
        transient::created(relation);
        whose_index::created(relation);
    }
}

/// What is to be done when core has done its part of a statement.
#[derive(Default)]
pub struct After {
    /// Indexes that core sees as btrees meanwhile.
    flips: Vec<Flips>,
    /// Indexes whose files core may copy.
    moved: Vec<pg_sys::Oid>,
    /// A table with an index that becomes one of a deferrable constraint.
    deferred: Option<pg_sys::Oid>,
    /// An index may have gone in a transaction of its own.
    drops: bool,
    /// A table becomes a heap table.
    becomes_heap: Option<BecomesHeap>,
    /// A row type may have got or lost a column.
    alters_row_types: bool,
    /// The nest level of settings that hold for this statement.
    settings: Option<c_int>,
}

impl After {
    fn is_nothing(&self) -> bool {
        self.flips.is_empty()
            && self.moved.is_empty()
            && self.deferred.is_none()
            && !self.drops
            && !self.alters_row_types
            && self.becomes_heap.is_none()
            && self.settings.is_none()
    }

    /// Does it, when the statement has ended without an error.
    pub fn finish(self) {
        for flips in self.flips {
            flips.end();
        }
        if let Some(level) = self.settings {
            defaults::restore(level);
        }
        if self.drops {
            concurrently::drop_ends();
        }
        let alters_row_types = self.alters_row_types && row_types::are_altered();
        if !self.moved.is_empty() || self.deferred.is_some() || alters_row_types {
            catalog::make_changes_visible();
        }
        // SAFETY: the statement has ended. The indexes' tables are locked since before it, those of
        // row types and the table since they were altered.
        unsafe {
            for index in self.moved {
                tablespace::build_if_moved(index);
            }
            if alters_row_types {
                row_types::build_changed();
            }
            if let Some(table) = self.deferred {
                deferrable::build_changed(table);
            }
        }
    }
}

/// Examines a statement before core, and may give it another parse tree. `Some`: what is to be done
/// behind it.
pub fn before<'p>(statement: &mut Statement<'p>) -> Option<After> {
    if let Some(node) = names_back::rewritten(statement.node()) {
        statement.replace(node);
    }
    let mut after = After::default();
    if let Some(node) = examined(statement.node(), &mut after) {
        statement.replace(node);
    }
    (!after.is_nothing()).then_some(after)
}

/// Notes what a statement needs afterwards. `Some`: the parse tree to be executed instead.
fn examined<'p>(node: Any<'p>, after: &mut After) -> Option<Any<'p>> {
    if let Some(node) = node.cast::<pg_sys::CreateStmt>() {
        defaults::check_create_table(node);
    } else if let Some(node) = node.cast::<pg_sys::CreateTableAsStmt>() {
        defaults::check_create_table_as(node);
    } else if let Some(node) = node.cast() {
        index_locks::before_reindex(node);
    } else if let Some(node) = node.cast::<pg_sys::IndexStmt>() {
        return btree_moments::create_index(node, after);
    } else if let Some(node) = node.cast::<pg_sys::AlterTableStmt>() {
        return alter_table(node, after);
    } else if let Some(node) = node.cast() {
        after.moved = tablespace::indexes_in(node);
    } else if let Some(node) = node.cast::<pg_sys::DropStmt>() {
        after.drops = concurrently::drop_begins(node);
        after.alters_row_types = may_drop_columns(node);
    } else if let Some(node) = node.cast::<pg_sys::ViewStmt>() {
        // A view that is replaced may get columns.
        after.alters_row_types = node.replace();
    } else if let Some(node) = node.cast() {
        return concurrently::refresh(node, after);
    }
    match node.tag() {
        T_CreateExtensionStmt | T_AlterExtensionStmt => {
            after.settings = defaults::heap_for_script();
        }
        T_DropOwnedStmt | T_DiscardStmt => after.alters_row_types = true,
        _ => {}
    }
    None
}

/// ALTER TABLE, and what is spelled as it.
fn alter_table<'p>(node: Node<'p, pg_sys::AlterTableStmt>, after: &mut After) -> Option<Any<'p>> {
    // Foreign tables of other servers have row types, too.
    after.alters_row_types = node.cmds().iter().any(|command| {
        use pg_sys::AlterTableType::{AT_AddColumn, AT_DropColumn};
        matches!(command.subtype(), AT_AddColumn | AT_DropColumn)
    });
    if !matches!(
        node.objtype().get(),
        OBJECT_TABLE | OBJECT_MATVIEW | OBJECT_INDEX | OBJECT_TYPE
    ) {
        return None;
    }
    after.moved.extend(tablespace::index_of(node));
    if !node.cmds().iter().any(btree_moments::concerns) {
        return None;
    }
    // Locked as core will lock it before anything is decided by what it is, and named once and for
    // all.
    let node = node.copied();
    refuse_read_only(tag_name(node.any()));
    // SAFETY: a live statement; errors are raised for a relation that is not there, or another's.
    let relid = unsafe {
        let lock = pg_sys::AlterTableGetLockLevel(node.cmds().as_ptr());
        pg_sys::AlterTableLookupRelation(node.as_ptr(), lock)
    };
    if relid == pg_sys::InvalidOid {
        return None;
    }
    identity::name_schema(node.table(), relid);
    btree_moments::alter_table(node, relid, after);
    Some(node.any())
}

/// What a client reads as a statement's tag.
fn tag_name(node: Any<'_>) -> &'static CStr {
    // SAFETY: a live statement; the names of tags are constants.
    unsafe {
        CStr::from_ptr(pg_sys::GetCommandTagName(pg_sys::CreateCommandTag(
            node.as_ptr(),
        )))
    }
}

/// Whether a statement may drop a column of a relation that stays: with CASCADE, for its type goes.
fn may_drop_columns(node: Node<'_, pg_sys::DropStmt>) -> bool {
    node.behavior() == pg_sys::DropBehavior::DROP_CASCADE && !node.concurrent()
}

/// A relation gets or loses a column.
pub fn column_altered(relation: pg_sys::Oid) {
    row_types::altered(relation);
}

/// A relation is being dropped: its storage goes with it. `flags`: core's of the deletion.
pub fn dropped(relation: pg_sys::Oid, flags: c_int) {
    if storage::is_mot_table(relation) {
        storage::drop_table(relation);
    } else if storage::is_mot_index(relation) {
        flips::release(relation);
        concurrently::index_dropped(relation, flags);
    }
}
