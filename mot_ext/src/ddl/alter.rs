//! ALTER TABLE on memory-optimized tables.
//!
//! Core alters a foreign table's catalog rows and never looks at its rows: it neither fills a new column, nor verifies a new
//! NOT NULL or CHECK, nor rewrites for a new type. So the statement runs in five steps, in one transaction:
//!
//! 1. subcommands are sorted: index constraints are taken out, what has no meaning is dropped, what is unsupported refused;
//! 2. a picture of the table is taken;
//! 3. core alters;
//! 4. whatever differs from the picture is made true of the rows (`rows`), and the index constraints are made;
//! 5. core sets the defaults that are for rows to come (`starting_values`).
//!
//! The comparison, rather than the text of the statement, decides what is verified: it sees inherited and implied changes too.
mod reach;
mod unsupported;

use super::references::refuse_reference_in_command;
use super::refuse::{raise, unsupported};
use super::rows::{self, Picture};
use super::utility::{Next, Statement, refuse_read_only};
use super::{
    constraints, event_triggers, identity, index, inheritance, nodes, ownership, partition, retype,
    set_aside, starting_values,
};
use crate::pg::version;
use pgrx::pg_sys::AlterTableType::*;
use pgrx::pg_sys::NodeTag::*;
use pgrx::pg_sys::{self, ObjectType::*};
use pgrx::prelude::*;
use reach::{finds_column, reaches_children};
use std::ffi::CStr;
use unsupported::{refuse_index_changes, refuse_other_expression, refuse_unsupported};

/// ALTER TABLE, ALTER FOREIGN TABLE, ALTER INDEX and ALTER TYPE (as far as it alters a composite type's attributes). What is for core alone goes on
/// with the table named as it was locked.
pub unsafe fn table(statement: &Statement, node: *mut pg_sys::AlterTableStmt) -> Next {
    // SAFETY: a live node of this type.
    unsafe {
        match (*node).objtype {
            OBJECT_TABLE | OBJECT_FOREIGN_TABLE | OBJECT_TYPE => {}
            OBJECT_INDEX => {
                refuse_index_changes(identity::lookup((*node).relation), node);
                return Next::PassOn;
            }
            _ => return Next::PassOn,
        }
        // Locked as core will lock it before anything is decided by what it is: while a statement waits, a name can come to mean another table,
        // and a table get its first memory-optimized child.
        let node = nodes::copy(node);
        let tag = pg_sys::CreateCommandTag(node.cast());
        refuse_read_only(CStr::from_ptr(pg_sys::GetCommandTagName(tag)));
        let lock = pg_sys::AlterTableGetLockLevel((*node).cmds);
        let relid = pg_sys::AlterTableLookupRelation(node, lock);
        if relid == pg_sys::InvalidOid {
            // IF EXISTS: core says so, and event triggers are fired.
            return Next::PassOn;
        }
        // Named once and for all: core looks the name up again, after whatever we wait for.
        identity::name_schema((*node).relation, relid);
        if identity::is_mot_table(relid) {
            alter_mot_table(statement, node, relid, lock);
            return Next::Done;
        }
        for command in nodes::items::<pg_sys::AlterTableCmd>((*node).cmds) {
            if (*command).subtype == AT_AttachPartition {
                // It comes alone.
                partition::attach(statement, relid, node);
                return Next::Done;
            }
            refuse_reference_in_command(command);
            match (*command).subtype {
                AT_AlterColumnType => retype::refuse_if_embedded(relid),
                AT_AddColumn if rows::adds_content(relid, (*command).def.cast()) => {
                    for table in inheritance::tables_of(relid) {
                        retype::refuse_if_embedded(table);
                    }
                }
                _ => {}
            }
        }
        if alter_with_mot_children(statement, relid, node, lock) {
            Next::Done
        } else {
            Next::PassOnAs(node.cast())
        }
    }
}

/// Has core alter a table that is locked. Core looks the name up again, behind event triggers, and before this the statement may have waited for children: it is to mean the same table
/// still.
pub(super) unsafe fn run_over(
    statement: &Statement,
    node: *mut pg_sys::AlterTableStmt,
    relid: pg_sys::Oid,
) {
    // SAFETY: a live node of the caller's own.
    unsafe {
        identity::name_schema((*node).relation, relid);
        let name = nodes::copy((*node).relation);
        statement.run(node);
        let is_named = identity::refuse_another(name, relid);
        if (*node).missing_ok && !is_named {
            // IF EXISTS: core has passed by, and said so. What is left of the statement is not to be done alone.
            identity::refuse_replaced();
        }
    }
}

/// A heap table whose descendants include memory-optimized ones: core recurses, we look after their rows.
unsafe fn alter_with_mot_children(
    statement: &Statement,
    relid: pg_sys::Oid,
    node: *mut pg_sys::AlterTableStmt,
    lock: pg_sys::LOCKMODE,
) -> bool {
    // SAFETY: a live node of the caller's own; descendants are locked as core will lock them.
    unsafe {
        let mut commands = nodes::items::<pg_sys::AlterTableCmd>((*node).cmds);
        // INHERIT of a constraint, which 18 has, does not ask for ONLY; for a type nobody can say it.
        let recurses = |command: &pg_sys::AlterTableCmd| {
            (*(*node).relation).inh
                || command.subtype == AT_AlterConstraint
                || (*node).objtype == OBJECT_TYPE
        };
        let reaches = |command: &*mut pg_sys::AlterTableCmd| {
            recurses(&**command) && reaches_children(relid, &**command, &commands)
        };
        let pictures = if commands.iter().any(reaches) {
            pictures(relid, true, lock)
        } else {
            Vec::new()
        };
        if pictures.is_empty() {
            return false;
        }
        for command in commands.iter().copied() {
            match (*command).subtype {
                AT_AlterColumnType => unsupported(
                    "cannot change a column's type in a table with memory-optimized children",
                    "Detach or drop the memory-optimized children first.",
                ),
                AT_AddConstraint => constraints::refuse_unjudged_not_null((*command).def.cast()),
                subtype if version::changes_generated_column(subtype) => refuse_other_expression(),
                _ => {}
            }
        }
        let later = starting_values::take(&mut commands);
        (*node).cmds = nodes::list(&commands);
        run_over(statement, node, relid);
        pg_sys::CommandCounterIncrement();
        for picture in &pictures {
            rows::make_true(picture);
        }
        starting_values::alter(statement, node, &later, relid, lock);
        true
    }
}

/// Pictures of a table, if it is memory-optimized, and of those that inherit from it unless the statement says ONLY. Locks them.
unsafe fn pictures(relid: pg_sys::Oid, recurses: bool, lock: pg_sys::LOCKMODE) -> Vec<Picture> {
    // SAFETY: the caller has locked the table itself.
    unsafe {
        if !recurses {
            return vec![Picture::take(relid)];
        }
        let tables = inheritance::mot_tables(relid, lock);
        tables
            .into_iter()
            .map(|table| Picture::take(table))
            .collect()
    }
}

unsafe fn alter_mot_table(
    statement: &Statement,
    node: *mut pg_sys::AlterTableStmt,
    relid: pg_sys::Oid,
    lock: pg_sys::LOCKMODE,
) {
    // SAFETY: a live node that the caller owns.
    unsafe {
        let mut taken = Vec::new();
        let mut kept = Vec::new();
        let commands = nodes::items::<pg_sys::AlterTableCmd>((*node).cmds);
        for command in commands.iter().copied() {
            match (*command).subtype {
                AT_AddConstraint => {
                    let constraint = (*command).def.cast::<pg_sys::Constraint>();
                    if constraints::is_index_constraint(constraint) {
                        taken.push(constraint);
                        continue;
                    }
                    constraints::refuse_foreign_key_and_exclusion(constraint);
                    constraints::refuse_unjudged_not_null(constraint);
                }
                AT_AddColumn => {
                    let column = (*command).def.cast::<pg_sys::ColumnDef>();
                    if finds_column(relid, &*command, &commands) {
                        // IF NOT EXISTS, and it does: core says so and its constraints are not made.
                        constraints::take_from_column(column);
                    } else {
                        taken.extend(constraints::take_from_column(column));
                    }
                }
                AT_SetRelOptions => {
                    super::create_table::ignore_storage_parameters((*command).def.cast());
                    continue;
                }
                AT_ResetRelOptions | AT_DropCluster => continue,
                AT_SetTableSpace => {
                    super::create_table::ignore_tablespace((*command).name);
                    continue;
                }
                AT_SetLogged => continue,
                subtype if version::changes_generated_column(subtype) => refuse_other_expression(),
                subtype => refuse_unsupported(subtype),
            }
            kept.push(command);
        }
        let table = nodes::copy((*node).relation);
        let requests = constraints::index_requests(table, &taken);
        // Core fires event triggers for what it gets.
        let whole = kept
            .is_empty()
            .then(|| event_triggers::Command::begin_alter(statement, node, relid));

        let pictures = pictures(relid, (*(*node).relation).inh, lock);
        retype::refuse_rewrites(relid, &commands);
        let tables: Vec<_> = pictures.iter().map(Picture::relation).collect();
        let indexes = set_aside::set_aside(&tables, &commands);
        let later = starting_values::take(&mut kept);
        if !kept.is_empty() {
            (*node).cmds = nodes::list(&kept);
            run_over(statement, node, relid);
            pg_sys::CommandCounterIncrement();
        }
        for picture in &pictures {
            rows::make_true(picture);
        }
        indexes.make_again();

        for request in requests {
            if request.existing.is_null() {
                index::define(relid, request.statement, true);
            } else {
                index::constraint_using_index(relid, &request);
            }
        }
        starting_values::alter(statement, node, &later, relid, lock);
        ownership::follow(relid);
        if let Some(whole) = whole {
            whole.end();
        }
    }
}

/// Makes the columns of a primary key NOT NULL, as ADD PRIMARY KEY does. Returns the table anew: core alters no table that somebody
/// has open, so `table` is closed meanwhile.
pub unsafe fn ensure_not_null(
    table: pg_sys::Relation,
    stmt: *mut pg_sys::IndexStmt,
) -> pg_sys::Relation {
    // SAFETY: a table that the caller has locked exclusively, or made itself, and opened once.
    unsafe {
        let mut commands = Vec::new();
        for element in nodes::items::<pg_sys::IndexElem>((*stmt).indexParams) {
            let name = nodes::text((*element).name);
            let nullable = nodes::attributes(table)
                .iter()
                .enumerate()
                .any(|(at, column)| {
                    !column.attisdropped
                        && !version::promises_no_null((*table).rd_att, at)
                        && nodes::name(&column.attname) == name
                });
            if nullable {
                let command = nodes::make::<pg_sys::AlterTableCmd>(T_AlterTableCmd);
                (*command).subtype = AT_SetNotNull;
                (*command).name = (*element).name;
                commands.push(command);
            }
        }
        if commands.is_empty() {
            return table;
        }
        let relid = (*table).rd_id;
        pg_sys::table_close(table, pg_sys::NoLock as i32);
        // ONLY leaves those that inherit alone, where core does not refuse it.
        let recurses = (*stmt)
            .relation
            .as_ref()
            .is_none_or(|relation| relation.inh);
        let pictures = pictures(relid, recurses, pg_sys::AccessExclusiveLock as i32);
        // As core does it: inside another command event triggers are told of, and a list of it must be there.
        let alter = nodes::make::<pg_sys::AlterTableStmt>(T_AlterTableStmt);
        (*alter).objtype = OBJECT_TABLE;
        pg_sys::EventTriggerAlterTableStart(alter.cast());
        pg_sys::AlterTableInternal(relid, nodes::list(&commands), recurses);
        pg_sys::EventTriggerAlterTableEnd();
        pg_sys::CommandCounterIncrement();
        for picture in &pictures {
            rows::make_true(picture);
        }
        pg_sys::table_open(relid, pg_sys::NoLock as i32)
    }
}

/// REASSIGN OWNED: core gives tables away, but not the indexes of foreign tables.
pub unsafe fn reassign_owned(statement: &Statement, node: *mut pg_sys::Node) -> bool {
    // SAFETY: a live node.
    unsafe {
        statement.run(nodes::copy(node));
        pg_sys::CommandCounterIncrement();
        ownership::follow_all();
        true
    }
}

/// Raises core's error for rows that break a new constraint.
pub fn violated(code: PgSqlErrorCode, message: String) -> ! {
    raise(code, message, None, None)
}
