//! The checkpoint of a cluster that `pg_upgrade` made, with the rows of the cluster before.
//!
//! `pg_upgrade` makes the tables anew, empty, and copies a file for each. Databases, tablespaces
//! and files keep their numbers, and so do transactions. So a table of the new cluster is the one
//! with its key in the old. The new checkpoint names the old one's files of rows, which the caller
//! has put into its directory. Blocks name generation, file and table id: those stay as they were.
//!
//! - Definitions are the new cluster's: its catalogs made them. But an index whose keys lie with
//!   the rows keeps its former one, as over any start: it says what those keys are.
//! - Both checkpoints are final, so nothing was logged behind either.
//! - Every table of the new cluster is in the old one, or [`Mismatch`] says which is not. Tables of
//!   the old one alone have no relation there any more, and are left out.

use super::manifest::{IndexEntry, Manifest, TableEntry};
use crate::ids::{RelationKey, TableId, Xid};
use crate::key::IndexDefinition;
use std::collections::BTreeMap;

/// Why the rows of one cluster cannot be those of the tables of another.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Mismatch {
    /// A checkpoint is not the last one of a clean shutdown.
    #[error("the {cluster} cluster has no checkpoint of a clean shutdown")]
    NotFinal {
        /// Which of both.
        cluster: &'static str,
    },
    /// Builds divide tables into other ranges.
    #[error("the old cluster's checkpoint has ranges of {of} rows")]
    Ranges {
        /// Row ids of a range.
        of: u32,
    },
    /// The old cluster does not have a table.
    #[error(
        "the old cluster has no table of file {} in database {} (tablespace {})",
        .key.relation, .key.database, .key.tablespace
    )]
    Table {
        /// The table.
        key: RelationKey,
    },
    /// The new cluster has rows already, of other files.
    #[error("the new cluster has rows of its own")]
    Rows,
    /// An index needs keys that the rows do not have.
    #[error(
        "the rows have no keys for index {index} in database {database}: REINDEX it in the old cluster"
    )]
    Keys {
        /// pg_class.oid of the index.
        index: u32,
        /// pg_database.oid.
        database: u32,
    },
}

/// A checkpoint for the new cluster, and what was left out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WithRows {
    /// The tables of the new cluster with the rows of the old.
    pub manifest: Manifest,
    /// Tables of the old cluster alone, ascending.
    pub left_out: Vec<RelationKey>,
}

/// The checkpoint `new`, whose tables are empty, with the rows of `old`, as generation
/// `generation`. If `new` has rows, they must be those of `old`: then an attempt before has
/// succeeded.
pub fn with_rows_of(new: &Manifest, old: &Manifest, generation: u64) -> Result<WithRows, Mismatch> {
    for (manifest, cluster) in [(old, "old"), (new, "new")] {
        if !manifest.is_final {
            return Err(Mismatch::NotFinal { cluster });
        }
    }
    if old.range_row_ids != new.range_row_ids {
        let of = old.range_row_ids;
        return Err(Mismatch::Ranges { of });
    }
    if !new.files.is_empty() && new.files != old.files {
        return Err(Mismatch::Rows);
    }
    let mut rest: BTreeMap<RelationKey, &TableEntry> = tables_of(old).collect();
    let mut manifest = new.clone();
    manifest.tables.clear();
    for (key, table) in tables_of(new) {
        let from = rest.remove(&key).ok_or(Mismatch::Table { key })?;
        manifest.tables.push(with_rows(table, from)?);
    }
    manifest.generation = generation;
    manifest.files = old.files.clone();
    manifest.next_table = TableId(new.next_table.0.max(old.next_table.0));
    manifest.committed.extend_from_slice(&old.committed);
    manifest.committed.sort_unstable();
    manifest.committed.dedup();
    let left_out = rest.into_keys().collect();
    Ok(WithRows { manifest, left_out })
}

/// The tables that have not been dropped, nor rolled back with their transaction.
fn tables_of(manifest: &Manifest) -> impl Iterator<Item = (RelationKey, &TableEntry)> {
    let has_committed = |xid: Xid| manifest.committed.binary_search(&xid).is_ok();
    let is_there = move |table: &&TableEntry| {
        let is_made = !table.creator.is_some() || has_committed(table.creator);
        is_made && !(table.dropper.is_some() && has_committed(table.dropper))
    };
    let tables = manifest.tables.iter().filter(is_there);
    tables.map(|table| (table.key, table))
}

/// The new cluster's table with the rows of the old one's.
fn with_rows(table: &TableEntry, from: &TableEntry) -> Result<TableEntry, Mismatch> {
    let mut indexes = table.indexes.clone();
    for index in &mut indexes {
        keep_keys(index, table.key.database, from)?;
    }
    Ok(TableEntry {
        id: from.id,
        row_ids_end: from.row_ids_end,
        rows: from.rows,
        ranges: from.ranges.clone(),
        indexes,
        ..*table
    })
}

/// Gives an index the definition by which the rows have its keys, if they have any.
fn keep_keys(index: &mut IndexEntry, database: u32, from: &TableEntry) -> Result<(), Mismatch> {
    let file = index.definition.file;
    let mut former = from.indexes.iter().map(|index| &index.definition);
    match former.find(|definition| definition.file == file) {
        Some(former) if former.computed.is_some() => {
            // pg_dump makes dropped columns anew, and not just as they were.
            let layout = std::mem::take(&mut index.definition.layout);
            index.definition = IndexDefinition {
                layout,
                ..former.clone()
            };
        }
        // Its keys follow from the columns.
        _ if index.definition.computed.is_none() => {}
        _ if from.ranges.is_empty() => {}
        _ => {
            let index = index.definition.relation;
            return Err(Mismatch::Keys { index, database });
        }
    }
    Ok(())
}
