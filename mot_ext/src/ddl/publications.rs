//! Publications: changes of memory-optimized tables are not decoded, so none may name such a table.
use super::{catalog_query, identity};
use crate::errors::refuse::unsupported;
use crate::pg::local::ProcessLocal;
use crate::pg::node::{List, Node};
use crate::pg::{catalog, inheritance, report, version};
use crate::storage;
use pgrx::pg_sys;
use std::cell::Cell;

/// CREATE PUBLICATION, and ALTER PUBLICATION that adds or sets tables: refused where a
/// memory-optimized table is named, or is below a table that is. (One of all tables, or of a
/// schema's, is warned of: `warn_of_tables_left_out`.)
pub fn publish(objects: List<'_, pg_sys::PublicationObjSpec>) {
    for object in objects {
        match object.pubtable() {
            Some(table) if publishes_mot_table(table.table()) => refuse_publication(),
            Some(_) => {}
            None => warn_of_tables_left_out(),
        }
    }
}

/// Warns, for a publication of all tables or of a schema's, if there are tables of the access
/// method: core takes them for published ones, in silence.
pub fn warn_of_tables_left_out() {
    let method = storage::table_method();
    let tables = catalog_query::select(
        "SELECT oid FROM pg_catalog.pg_class WHERE relam = $1 AND relkind = 'r' AND relpersistence = 'p' LIMIT 1",
        &[method.into()],
        |row| row.get::<pg_sys::Oid>(1),
    );
    if !tables.is_empty() {
        warn_not_published();
    }
}

/// Raises 0A000 if a publication names the table, or one whose partition it is, at any depth.
///
/// For a partition that is memory-optimized, or has such tables below it, and for a table that has
/// become memory-optimized.
pub fn refuse_published(table: pg_sys::Oid) {
    let published = catalog_query::select(
        &with_tables_above(
            "SELECT r.prrelid FROM above JOIN pg_catalog.pg_publication_rel r ON r.prrelid = above.relation LIMIT 1",
        ),
        &[table.into()],
        |row| row.get::<pg_sys::Oid>(1),
    );
    if !published.is_empty() {
        refuse_publication();
    }
}

/// A query over `above`: the table `$1`, and those whose partition it is, at any depth.
fn with_tables_above(query: &str) -> String {
    format!(
        "WITH RECURSIVE above(relation) AS (
            SELECT $1
            UNION
            SELECT i.inhparent FROM above
                JOIN pg_catalog.pg_class c ON c.oid = above.relation AND c.relispartition
                JOIN pg_catalog.pg_inherits i ON i.inhrelid = above.relation
        )
        {query}"
    )
}

/// Looks for publications of a table that has just been made, altered or given a partition.
///
/// Nothing happens unless it is a table of the access method, or has such partitions. Then a
/// publication that names it raises 0A000; one that means it without its name gives a WARNING.
///
/// The table is locked as CREATE TABLE, ATTACH PARTITION or SET ACCESS METHOD lock it: a
/// publication that comes meanwhile waits.
pub fn check_publications(table: pg_sys::Oid) {
    if catalog::persistence(table) != pg_sys::RELPERSISTENCE_PERMANENT {
        return;
    }
    let all = inheritance::find_all(table, pg_sys::NoLock as i32);
    if !all.into_iter().any(storage::is_mot_table) {
        return;
    }
    refuse_published(table);
    if is_meant(table, "true") {
        warn_not_published();
    }
}

/// When the statement began that was warned of last.
static WARNED: ProcessLocal<Cell<pg_sys::TimestampTz>> = ProcessLocal(Cell::new(0));

/// Warns once of a TRUNCATE where a publication means a table of the access method without its
/// name: core logs it for logical decoding, whatever the table's kind.
pub fn warn_of_truncate(table: pg_sys::Oid) {
    // SAFETY: a variable that is set at the server's start.
    let is_decoded = unsafe { pg_sys::wal_level } >= pg_sys::WalLevel::WAL_LEVEL_LOGICAL as i32;
    if !is_decoded
        || !storage::is_mot_table(table)
        || catalog::persistence(table) != pg_sys::RELPERSISTENCE_PERMANENT
    {
        return;
    }
    // Core asks for each table, and again where it waits for a lock.
    // SAFETY: a variable of this process.
    let statement = unsafe { pg_sys::GetCurrentStatementStartTimestamp() };
    if WARNED.0.get() != statement && is_meant(table, "p.pubtruncate") {
        WARNED.0.set(statement);
        report::warn_unsupported(
            "TRUNCATE of a memory-optimized table is published, and other changes of it are not",
            "Subscribers lose their rows of it. Use DELETE, or take truncate out of what the publication publishes.",
        );
    }
}

/// Whether a publication for which the condition holds means the table, or one whose partition it
/// is, without its name.
fn is_meant(table: pg_sys::Oid, condition: &str) -> bool {
    let meant = catalog_query::select(
        &with_tables_above(&format!(
            "SELECT p.oid FROM pg_catalog.pg_publication p WHERE p.puballtables AND {condition}
            UNION ALL
            SELECT p.oid FROM above
                JOIN pg_catalog.pg_class c ON c.oid = above.relation
                JOIN pg_catalog.pg_publication_namespace n ON n.pnnspid = c.relnamespace
                JOIN pg_catalog.pg_publication p ON p.oid = n.pnpubid AND {condition}
            LIMIT 1",
        )),
        &[table.into()],
        |row| row.get::<pg_sys::Oid>(1),
    );
    !meant.is_empty()
}

fn warn_not_published() {
    report::warn_unsupported(
        "changes of memory-optimized tables are not published",
        "Physical replication carries them; logical decoding does not.",
    );
}

fn refuse_publication() -> ! {
    unsupported(
        "publications of memory-optimized tables are not supported",
        "Physical replication carries memory-optimized tables; logical decoding does not.",
    )
}

/// Whether the publication of a table would mean changes of memory-optimized ones.
fn publishes_mot_table(relation: Node<'_, pg_sys::RangeVar>) -> bool {
    let relid = identity::lookup(relation);
    if relid == pg_sys::InvalidOid {
        return false;
    }
    match catalog::kind(relid) {
        // Core will refuse a table that the user does not own, so it is not locked here.
        pg_sys::RELKIND_PARTITIONED_TABLE if version::owns_class(relid) => {
            partitions_include_mot_table(relation)
        }
        // Core adds those that inherit, as they are now.
        pg_sys::RELKIND_RELATION if relation.inh() => {
            inheritance::find_all(relid, pg_sys::NoLock as i32)
                .into_iter()
                .any(storage::is_mot_table)
        }
        _ => storage::is_mot_table(relid),
    }
}

/// Whether a partitioned table has memory-optimized partitions, at any depth. Partitioned tables
/// are locked against new partitions on the way: a session that waits for that finds the table
/// published (`refuse_published`).
fn partitions_include_mot_table(relation: Node<'_, pg_sys::RangeVar>) -> bool {
    let lock = pg_sys::ShareUpdateExclusiveLock as pg_sys::LOCKMODE;
    // SAFETY: no callback.
    let root = unsafe { identity::locked(relation, lock, None) };
    let mut locked = vec![root];
    loop {
        // Relations may go as long as they are not locked.
        let all = inheritance::find_all(root, pg_sys::NoLock as i32);
        let is_new =
            |table: &&pg_sys::Oid| !locked.contains(*table) && catalog::is_partitioned(**table);
        let Some(new) = all.iter().find(is_new).copied() else {
            return all.into_iter().any(storage::is_mot_table);
        };
        catalog::lock(new, lock);
        locked.push(new);
    }
}
