//! Partitions beneath keys of the whole, foreign keys, and on the MOT side some tables that are
//! heap tables, so that both kinds meet in one statement.

use super::schema::{Column, Table};
use rand::Rng;
use rand::rngs::SmallRng;
use tpcc::engine::Engine;

/// Partitions of a partitioned table.
const PARTS: u32 = 2;

/// Where a table's rows are, and what they refer to.
#[derive(Clone, Debug)]
pub struct Ordinary {
    /// By a hash of the first column, so that a new key may be in another partition.
    pub is_partitioned: bool,
    /// On the MOT side it is a heap table, or its last partition is.
    has_heap: bool,
    /// The table that a foreign key names.
    pub refers_to: Option<String>,
    /// The foreign key is looked at by COMMIT.
    pub is_deferred: bool,
}

impl Ordinary {
    /// Draws what a table has before its columns are known.
    pub fn draw(rng: &mut SmallRng) -> Ordinary {
        Ordinary {
            is_partitioned: rng.random_ratio(1, 3),
            has_heap: rng.random_ratio(1, 5),
            refers_to: None,
            is_deferred: false,
        }
    }

    /// Now and then makes a column refer to an earlier table's key; its constraint.
    pub fn refer(
        &mut self,
        rng: &mut SmallRng,
        name: &str,
        column: &mut Column,
        earlier: &[Table],
    ) -> Option<String> {
        let fits: Vec<&Table> = earlier
            .iter()
            .filter(|table| table.key_columns == 1)
            .collect();
        if fits.is_empty() || rng.random_ratio(1, 4) {
            return None;
        }
        let parent = fits[rng.random_range(0..fits.len())];
        let actions = [
            "NO ACTION",
            "RESTRICT",
            "CASCADE",
            "CASCADE",
            "SET NULL",
            "SET DEFAULT",
        ];
        let mut action = || actions[rng.random_range(0..actions.len())];
        let (on_delete, on_update) = (action(), action());
        self.is_deferred = rng.random_ratio(1, 4);
        let when = match self.is_deferred {
            true => " DEFERRABLE INITIALLY DEFERRED",
            false => "",
        };
        column.refer_to(rng, &parent.key()[0]);
        self.refers_to = Some(parent.name.clone());
        Some(format!(
            "CONSTRAINT {name}_{0}_refers FOREIGN KEY ({0}) REFERENCES {1} ON DELETE {on_delete} ON UPDATE \
             {on_update}{when}",
            column.name, parent.name
        ))
    }

    /// The statements that make the table and its partitions of `body`, columns and constraints.
    pub fn create(&self, name: &str, body: &str, engine: Engine) -> Vec<String> {
        let last = if self.has_heap { Engine::Heap } else { engine };
        let create = |engine: Engine, rest: &str| match engine {
            Engine::Heap => format!("{} WITH (autovacuum_enabled = off)", engine.create(rest)),
            _ => engine.create(rest),
        };
        if !self.is_partitioned {
            return vec![create(last, &format!("{name} ({body})"))];
        }
        let mut all = vec![format!(
            "CREATE TABLE {name} ({body}) PARTITION BY HASH (c0)"
        )];
        for part in 0..PARTS {
            let engine = if part + 1 == PARTS { last } else { engine };
            all.push(create(
                engine,
                &format!(
                    "{name}_{part} PARTITION OF {name} FOR VALUES WITH (MODULUS {PARTS}, REMAINDER {part})"
                ),
            ));
        }
        all
    }
}
