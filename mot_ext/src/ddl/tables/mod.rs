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

use super::utility::{Statement, refuse_read_only};
use super::{identity, publications};
use crate::index_am::flips::{self, Flips};
use crate::pg::nodes;
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
    /// A table whose changes may be published from now on, and cannot be.
    published: Option<Published>,
}

/// A table that publications may mean.
enum Published {
    /// One that is made by the statement.
    Named(*mut pg_sys::RangeVar),
    /// One that is altered.
    Altered(pg_sys::Oid),
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
            && self.published.is_none()
    }

    /// Does it.
    ///
    /// # Safety
    /// The statement has ended without an error.
    pub unsafe fn finish(self) {
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
        // SAFETY: the indexes' tables are locked since before the statement, the table since it was
        // altered.
        unsafe {
            if !self.moved.is_empty()
                || self.published.is_some()
                || self.deferred.is_some()
                || alters_row_types
            {
                pg_sys::CommandCounterIncrement();
            }
            for index in self.moved {
                tablespace::build_if_moved(index);
            }
            if alters_row_types {
                row_types::build_changed();
            }
            if let Some(table) = self.deferred {
                deferrable::build_changed(table);
            }
            let published = self.published.map(|table| match table {
                Published::Named(name) => made(name),
                Published::Altered(table) => table,
            });
            if let Some(table) = published.filter(|table| *table != pg_sys::InvalidOid) {
                publications::check_publications(table);
            }
        }
    }
}

/// The relation that a statement has made under a name. A user who may make it need not have the
/// right that a look-up by the schema's name asks for.
unsafe fn made(name: *mut pg_sys::RangeVar) -> pg_sys::Oid {
    // SAFETY: a live name (caller), looked up on a copy, since the look-up may note a schema in it.
    unsafe {
        let namespace = pg_sys::RangeVarGetCreationNamespace(nodes::copy(name));
        pg_sys::get_relname_relid((*name).relname, namespace)
    }
}

/// Examines a statement before core, and may give it another parse tree. `Some`: what is to be done
/// behind it.
///
/// # Safety
/// A statement that is being executed.
pub unsafe fn before(statement: &mut Statement) -> Option<After> {
    // SAFETY: the statement's node; each cast follows its tag.
    unsafe {
        if let Some(node) = names_back::rewritten(statement.node()) {
            statement.replace(node);
        }
        let mut after = After::default();
        let node = statement.node();
        match nodes::tag(node) {
            T_CreateStmt => {
                after.published = defaults::may_be_ours(node.cast())
                    .then(|| Published::Named((*node.cast::<pg_sys::CreateStmt>()).relation));
                defaults::check_create_table(node.cast());
            }
            T_CreateTableAsStmt => {
                let made = node.cast::<pg_sys::CreateTableAsStmt>();
                let into = (*made).into;
                let is_table = (*made).objtype == OBJECT_TABLE;
                after.published = (is_table && defaults::is_ours((*into).accessMethod))
                    .then(|| Published::Named((*into).rel));
                defaults::check_create_table_as(made);
            }
            T_ReindexStmt => index_locks::before_reindex(node.cast()),
            T_IndexStmt => {
                replace(
                    statement,
                    btree_moments::create_index(node.cast(), &mut after),
                );
            }
            T_AlterTableStmt => alter_table(statement, node.cast(), &mut after),
            T_AlterObjectSchemaStmt => after.published = moved_to_schema(node.cast()),
            T_AlterTableMoveAllStmt => after.moved = tablespace::indexes_in(node.cast()),
            T_CreateExtensionStmt | T_AlterExtensionStmt => {
                after.settings = defaults::heap_for_script();
            }
            T_DropStmt => {
                after.drops = concurrently::drop_begins(node.cast());
                after.alters_row_types = may_drop_columns(node.cast());
            }
            T_DropOwnedStmt | T_DiscardStmt => after.alters_row_types = true,
            // A view that is replaced may get columns.
            T_ViewStmt => after.alters_row_types = (*node.cast::<pg_sys::ViewStmt>()).replace,
            T_RefreshMatViewStmt => {
                replace(statement, concurrently::refresh(node.cast(), &mut after));
            }
            _ => {}
        }
        (!after.is_nothing()).then_some(after)
    }
}

unsafe fn replace(statement: &mut Statement, node: Option<*mut pg_sys::Node>) {
    if let Some(node) = node {
        // SAFETY: a node of the caller's own, in the memory of the statement.
        unsafe { statement.replace(node) };
    }
}

unsafe fn alter_table(
    statement: &mut Statement,
    node: *mut pg_sys::AlterTableStmt,
    after: &mut After,
) {
    // SAFETY: a live node of this type (caller), copied before it is changed.
    unsafe {
        let commands = nodes::items::<pg_sys::AlterTableCmd>((*node).cmds);
        // Foreign tables of other servers have row types, too.
        after.alters_row_types = commands.iter().any(|command| {
            use pg_sys::AlterTableType::{AT_AddColumn, AT_DropColumn};
            matches!((**command).subtype, AT_AddColumn | AT_DropColumn)
        });
        if !matches!(
            (*node).objtype,
            OBJECT_TABLE | OBJECT_MATVIEW | OBJECT_INDEX | OBJECT_TYPE
        ) {
            return;
        }
        after.moved.extend(tablespace::index_of(node));
        if !commands
            .into_iter()
            .any(|command| btree_moments::concerns(command))
        {
            return;
        }
        // Locked as core will lock it before anything is decided by what it is, and named once and
        // for all.
        let node = nodes::copy(node);
        let tag = pg_sys::CreateCommandTag(node.cast());
        refuse_read_only(CStr::from_ptr(pg_sys::GetCommandTagName(tag)));
        let lock = pg_sys::AlterTableGetLockLevel((*node).cmds);
        let relid = pg_sys::AlterTableLookupRelation(node, lock);
        if relid == pg_sys::InvalidOid {
            return;
        }
        identity::name_schema((*node).relation, relid);
        btree_moments::alter_table(node, relid, after);
        statement.replace(node);
    }
}

/// Whether a statement may drop a column of a relation that stays: with CASCADE, for its type goes.
unsafe fn may_drop_columns(node: *mut pg_sys::DropStmt) -> bool {
    // SAFETY: a live node of this type (caller).
    let node = unsafe { &*node };
    node.behavior == pg_sys::DropBehavior::DROP_CASCADE && !node.concurrent
}

/// A relation gets or loses a column.
pub fn column_altered(relation: pg_sys::Oid) {
    row_types::altered(relation);
}

/// ALTER TABLE ... SET SCHEMA: a publication may mean all tables of the schema.
unsafe fn moved_to_schema(node: *mut pg_sys::AlterObjectSchemaStmt) -> Option<Published> {
    // SAFETY: a live node of this type (caller), whose table has a name.
    unsafe {
        if (*node).objectType != OBJECT_TABLE {
            return None;
        }
        let table = identity::lookup((*node).relation);
        (table != pg_sys::InvalidOid).then_some(Published::Altered(table))
    }
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
