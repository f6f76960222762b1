//! Rows that a new partition leaves in the wrong place.
//!
//! Core accepts a foreign table as a partition without a look at its rows, and passes foreign tables over when a new partition takes
//! values from the default one. Queries then go by the bounds and miss such rows. So core makes the partition, and then every
//! memory-optimized table whose bounds that narrowed is judged by them: the new partition, and what is below the default one.
use super::utility::Statement;
use super::{attached, identity, inheritance, nodes, rows};
use pgrx::pg_sys;
use pgrx::pg_sys::AlterTableType::*;

/// ALTER TABLE ... ATTACH PARTITION.
pub unsafe fn attach(
    statement: &Statement,
    parent: pg_sys::Oid,
    node: *mut pg_sys::AlterTableStmt,
    command: *mut pg_sys::PartitionCmd,
) {
    // SAFETY: live nodes; core has locked parent and partition when it returns.
    unsafe {
        let partition = nodes::copy((*command).name);
        statement.run(nodes::copy(node));
        pg_sys::CommandCounterIncrement();
        let partition = identity::lookup(partition);
        let tables = memory_optimized(partition);
        if !tables.is_empty() {
            attached::refuse_published(partition);
        }
        for table in tables {
            rows::verify_partition(table, false);
        }
        verify_default(parent, partition);
    }
}

/// Whether an ALTER TABLE attaches a partition so that rows of memory-optimized tables have to be looked at.
pub unsafe fn attaches_ours(parent: pg_sys::Oid, commands: *mut pg_sys::List) -> bool {
    // SAFETY: a live statement's commands, told by their kind.
    unsafe {
        nodes::items::<pg_sys::AlterTableCmd>(commands)
            .into_iter()
            .filter(|command| (**command).subtype == AT_AttachPartition)
            .any(|command| {
                let partition = (*(*command).def.cast::<pg_sys::PartitionCmd>()).name;
                holds_ours(identity::lookup(partition))
                    || holds_ours(inheritance::default_partition(parent))
            })
    }
}

/// Whether a CREATE TABLE makes a partition that takes values from memory-optimized tables below the default one.
pub unsafe fn narrows_ours(node: &pg_sys::CreateStmt) -> bool {
    // SAFETY: a live statement.
    unsafe {
        !node.partbound.is_null()
            && nodes::items::<pg_sys::RangeVar>(node.inhRelations)
                .into_iter()
                .any(|parent| holds_ours(inheritance::default_partition(identity::lookup(parent))))
    }
}

unsafe fn holds_ours(partition: pg_sys::Oid) -> bool {
    // SAFETY: an oid; nothing is locked.
    partition != pg_sys::InvalidOid
        && unsafe { inheritance::find_all(partition, pg_sys::NoLock as i32) }
            .into_iter()
            .any(identity::is_mot_table)
}

/// CREATE [FOREIGN] TABLE ... PARTITION OF, of whatever kind.
pub unsafe fn create(statement: &Statement, node: *mut pg_sys::CreateStmt) {
    // SAFETY: a live node with bounds.
    unsafe {
        let parent = nodes::copy(node);
        statement.run(node);
        pg_sys::CommandCounterIncrement();
        verify_parents_default(parent);
    }
}

/// After core has made a partition: the rows of the default one.
pub unsafe fn verify_parents_default(node: *mut pg_sys::CreateStmt) {
    // SAFETY: a live node with bounds, so with one parent, which core has locked.
    unsafe {
        for parent in nodes::items::<pg_sys::RangeVar>((*node).inhRelations) {
            verify_default(identity::lookup(parent), pg_sys::InvalidOid);
        }
    }
}

unsafe fn verify_default(parent: pg_sys::Oid, new: pg_sys::Oid) {
    // SAFETY: the parent is locked.
    unsafe {
        let default = inheritance::default_partition(parent);
        if default == pg_sys::InvalidOid || default == new {
            return;
        }
        for table in memory_optimized(default) {
            rows::verify_partition(table, true);
        }
    }
}

/// The memory-optimized tables at and below a partition, locked as core locks what it looks through.
unsafe fn memory_optimized(partition: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    // SAFETY: an oid; may raise while it waits.
    unsafe { inheritance::find_all(partition, pg_sys::AccessExclusiveLock as i32) }
        .into_iter()
        .filter(|table| identity::is_mot_table(*table))
        .collect()
}
