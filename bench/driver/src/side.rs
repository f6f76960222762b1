//! What is compared: the kinds of table, and the peers beside them.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Who did the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Side {
    /// Memory-optimized tables.
    Mot,
    /// PostgreSQL's own tables.
    Heap,
    /// The same without WAL.
    Unlogged,
    /// MariaDB's InnoDB.
    Innodb,
    /// The `masstree` crate, beside the index alone.
    Masstree,
    /// PostgreSQL without any table: what its protocol allows.
    Floor,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Side::Mot => "MOT",
            Side::Heap => "heap",
            Side::Unlogged => "heap, unlogged",
            Side::Innodb => "InnoDB",
            Side::Masstree => "masstree",
            Side::Floor => "no table",
        })
    }
}

impl Side {
    /// The kinds of table that one server can have.
    pub(crate) const TABLES: [Side; 3] = [Side::Mot, Side::Heap, Side::Unlogged];

    /// PostgreSQL schema of its tables.
    pub(crate) fn schema(self) -> &'static str {
        match self {
            Side::Mot => "bench_mot",
            Side::Heap => "bench_heap",
            Side::Unlogged => "bench_unlogged",
            Side::Innodb | Side::Masstree | Side::Floor => "public",
        }
    }

    /// `CREATE TABLE` in its dialect: `definition` is the table's name and what follows it.
    pub(crate) fn create(self, definition: &str) -> String {
        match self {
            Side::Mot => format!("CREATE TABLE {definition} USING mot"),
            Side::Unlogged => format!("CREATE UNLOGGED TABLE {definition}"),
            _ => format!("CREATE TABLE {definition}"),
        }
    }

    /// The statement that leaves a filled table as everyday operation would.
    pub(crate) fn settle(self, table: &str) -> String {
        match self {
            Side::Mot => format!("ANALYZE {table}"),
            _ => format!("VACUUM (ANALYZE) {table}"),
        }
    }

    /// Its colour in charts.
    pub(crate) fn colour(self) -> (u8, u8, u8) {
        match self {
            Side::Mot => (31, 119, 180),
            Side::Heap => (150, 150, 150),
            Side::Unlogged => (205, 205, 205),
            Side::Innodb => (255, 127, 14),
            Side::Masstree => (214, 39, 40),
            Side::Floor => (44, 160, 44),
        }
    }
}

/// The order in which `sides` take their turns in `round`: everybody is first once in a while.
pub(crate) fn turns(sides: &[Side], round: usize) -> Vec<Side> {
    let mut turns = sides.to_vec();
    if !turns.is_empty() {
        turns.rotate_left(round % sides.len());
    }
    turns
}
