//! Rows that a new partition leaves in the wrong place.
//!
//! Core accepts a foreign table as a partition without a look at its rows, and passes foreign tables over when a new partition takes
//! values from the default one. Queries then go by the bounds and miss such rows. So core makes the partition, and then every
//! memory-optimized table whose bounds that narrowed is judged by them: the new partition, and what is below the default one.
//!
//! Nothing goes by a name that is read again after core's part, which waits for locks: it may mean another table then (isolation/specs/ddl_waits_partitions), and if it does, the
//! statement fails.
use super::alter::run_over;
use super::utility::{Statement, refuse_read_only};
use super::{attached, identity, inheritance, latest, nodes, rows};
use pgrx::pg_sys;
use pgrx::pg_sys::AlterTableType::*;
use std::ffi::CStr;

/// ALTER TABLE ... ATTACH PARTITION, of a parent that is locked: nobody else gives it partitions.
pub unsafe fn attach(
    statement: &Statement,
    parent: pg_sys::Oid,
    node: *mut pg_sys::AlterTableStmt,
) {
    // SAFETY: a live node; core has locked parent and partition when it returns.
    unsafe {
        let before = partitions(parent);
        run_over(statement, nodes::copy(node), parent);
        pg_sys::CommandCounterIncrement();
        let mut new = partitions(parent);
        new.retain(|partition| !before.contains(partition));
        for partition in &new {
            let tables = memory_optimized(*partition);
            if !tables.is_empty() {
                attached::refuse_published(*partition);
            }
            for table in tables {
                rows::verify_partition(table, false);
            }
        }
        verify_default(parent, &new);
    }
}

/// The partitions right below a table.
fn partitions(parent: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    let found = latest::select(
        "SELECT inhrelid FROM pg_catalog.pg_inherits WHERE inhparent = $1",
        &[parent.into()],
        |row| row.get::<pg_sys::Oid>(1),
    );
    found.into_iter().flatten().collect()
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

/// CREATE [FOREIGN] TABLE ... PARTITION OF, of whatever kind; the statement is the caller's own copy.
pub unsafe fn create(statement: &Statement, node: *mut pg_sys::CreateStmt) {
    // SAFETY: a live node with bounds.
    unsafe {
        // What core asks first, of the new table.
        let table = nodes::copy((*node).relation);
        let mut existing = pg_sys::InvalidOid;
        let namespace = pg_sys::RangeVarGetAndCheckCreationNamespace(
            table,
            pg_sys::NoLock as i32,
            &raw mut existing,
        );
        if (*node).if_not_exists && existing != pg_sys::InvalidOid {
            // Core says so, and looks at no parent.
            (*table).schemaname = pg_sys::get_namespace_name(namespace);
            statement.run(node);
            refuse_gone(table, existing);
            return;
        }
        let parent = lock_parent(node);
        let name = nodes::copy(parent_name(node));
        statement.run(node);
        pg_sys::CommandCounterIncrement();
        identity::refuse_another(name, parent);
        verify_default(parent, &[]);
    }
}

/// Raises if a table that was there before a statement with IF NOT EXISTS is not there after: the statement may have made a partition unseen.
unsafe fn refuse_gone(table: *mut pg_sys::RangeVar, existing: pg_sys::Oid) {
    // SAFETY: a live name.
    if unsafe { identity::lookup(table) } != existing {
        identity::refuse_replaced();
    }
}

/// The parent that a CREATE [FOREIGN] TABLE ... PARTITION OF names.
pub unsafe fn parent_name(node: *mut pg_sys::CreateStmt) -> *mut pg_sys::RangeVar {
    // SAFETY: a live node with bounds, so with one parent.
    let parents = unsafe { nodes::items::<pg_sys::RangeVar>((*node).inhRelations) };
    let [name] = parents[..] else {
        unreachable!("a partition has one parent");
    };
    name
}

/// Locks the parent that a CREATE [FOREIGN] TABLE ... PARTITION OF names, as core will, and has the statement, which is the caller's own copy, name it once
/// and for all.
pub unsafe fn lock_parent(node: *mut pg_sys::CreateStmt) -> pg_sys::Oid {
    // SAFETY: a live node with bounds, so with one parent.
    unsafe {
        let tag = pg_sys::CreateCommandTag(node.cast());
        refuse_read_only(CStr::from_ptr(pg_sys::GetCommandTagName(tag)));
        let name = parent_name(node);
        let parent = pg_sys::RangeVarGetRelidExtended(
            name,
            pg_sys::AccessExclusiveLock as i32,
            0,
            None,
            std::ptr::null_mut(),
        );
        identity::name_schema(name, parent);
        parent
    }
}

/// After core has made or attached a partition: the rows of the default one, unless that is new and judged.
pub unsafe fn verify_default(parent: pg_sys::Oid, judged: &[pg_sys::Oid]) {
    // SAFETY: the parent is locked.
    unsafe {
        let default = inheritance::default_partition(parent);
        if default == pg_sys::InvalidOid || judged.contains(&default) {
            return;
        }
        for table in memory_optimized(default) {
            rows::verify_partition(table, true);
        }
    }
}

/// The memory-optimized tables at and below a partition, locked as core locks what it looks through. What is kept of their bounds is forgotten, in all sessions: of a default
/// partition that has partitions itself core tells of its own bounds alone, and judges those below by the new ones without asking them.
unsafe fn memory_optimized(partition: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    // SAFETY: an oid; may raise while it waits.
    let tables = unsafe {
        let tables = inheritance::find_all(partition, pg_sys::AccessExclusiveLock as i32);
        for table in &tables {
            pg_sys::CacheInvalidateRelcacheByRelid(*table);
        }
        pg_sys::CommandCounterIncrement();
        tables
    };
    tables
        .into_iter()
        .filter(|table| identity::is_mot_table(*table))
        .collect()
}
