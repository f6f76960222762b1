//! What keeps the rows of a table, and how such a table is made.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Where tables live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    /// Memory-optimized tables.
    Mot,
    /// PostgreSQL's own heap tables.
    Heap,
}

impl Engine {
    /// The PostgreSQL schema used unless another is named.
    pub fn default_schema(self) -> &'static str {
        match self {
            Engine::Mot => "tpcc_mot",
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
            Engine::Mot => format!("CREATE TABLE {rest} USING mot"),
            Engine::Heap => format!("CREATE TABLE {rest} USING heap"),
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Engine::Mot => "mot",
            Engine::Heap => "heap",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_engine_is_named_behind_the_columns() {
        let create = |engine: Engine| engine.create("t (a int)");
        assert_eq!(create(Engine::Mot), "CREATE TABLE t (a int) USING mot");
        assert_eq!(create(Engine::Heap), "CREATE TABLE t (a int) USING heap");
    }
}
