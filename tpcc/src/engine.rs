//! What keeps the rows of a table, and how such a table is made.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Where tables live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    /// Memory-optimized foreign tables.
    Mot,
    /// Memory-optimized tables of the access method.
    MotTable,
    /// PostgreSQL's own heap tables.
    Heap,
}

impl Engine {
    /// The PostgreSQL schema used unless another is named.
    pub fn default_schema(self) -> &'static str {
        match self {
            Engine::Mot | Engine::MotTable => "tpcc_mot",
            Engine::Heap => "tpcc_heap",
        }
    }

    /// Whether rows are kept in memory.
    pub fn is_mot(self) -> bool {
        self != Engine::Heap
    }

    /// The statement that makes a table. `rest` follows the words that say what is made: the name,
    /// then columns, or the partitioned table and its bounds.
    pub fn create(self, rest: &str) -> String {
        match self {
            Engine::Mot => format!("CREATE FOREIGN TABLE {rest} SERVER mot"),
            Engine::MotTable => format!("CREATE TABLE {rest} USING mot"),
            Engine::Heap => format!("CREATE TABLE {rest} USING heap"),
        }
    }

    /// The word or words for such a table in DROP, ALTER and COMMENT.
    pub fn noun(self) -> &'static str {
        match self {
            Engine::Mot => "FOREIGN TABLE",
            Engine::MotTable | Engine::Heap => "TABLE",
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Engine::Mot => "mot",
            Engine::MotTable => "mot-table",
            Engine::Heap => "heap",
        })
    }
}

/// Which kind a memory-optimized table is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum MotTables {
    /// `CREATE FOREIGN TABLE ... SERVER mot`.
    #[default]
    Foreign,
    /// `CREATE TABLE ... USING mot`.
    Method,
}

impl fmt::Display for MotTables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MotTables::Foreign => "foreign",
            MotTables::Method => "method",
        })
    }
}

impl MotTables {
    /// What keeps the rows of such tables.
    pub fn engine(self) -> Engine {
        match self {
            MotTables::Foreign => Engine::Mot,
            MotTables::Method => Engine::MotTable,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_engine_is_named_behind_the_columns() {
        let create = |engine: Engine| engine.create("t (a int)");
        assert_eq!(
            create(Engine::Mot),
            "CREATE FOREIGN TABLE t (a int) SERVER mot"
        );
        assert_eq!(create(Engine::MotTable), "CREATE TABLE t (a int) USING mot");
        assert_eq!(create(Engine::Heap), "CREATE TABLE t (a int) USING heap");
    }
}
