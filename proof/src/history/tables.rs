//! The tables of a history: keys spread over one or two, MOT or heap, with an index by group.

use super::record::Kind;
use super::run::Plan;
use crate::failure::Result;
use crate::wire::{Place, Session};
use tpcc::engine::Engine;

/// Keys of one group.
pub const GROUP: u64 = 4;

/// Which tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Tables {
    /// One memory-optimized table.
    Mot,
    /// A memory-optimized table and a heap table in the same transactions.
    Mixed,
    /// A heap table: what the checker says of PostgreSQL itself.
    Heap,
}

impl Tables {
    /// Names, and whether they are memory-optimized.
    pub fn names(self) -> &'static [(&'static str, bool)] {
        match self {
            Tables::Mot => &[("on_mot", true)],
            Tables::Mixed => &[("on_mot", true), ("on_heap", false)],
            Tables::Heap => &[("on_heap", false)],
        }
    }

    /// The table a key lives in.
    pub fn of_key(self, key: u64) -> &'static str {
        let names = self.names();
        names[(key % names.len() as u64) as usize].0
    }
}

/// Makes them, in a database of their own.
pub fn make(place: &Place, database: &str, plan: &Plan) -> Result<()> {
    let mut session = Session::open(place)?;
    session.must("SET client_min_messages = warning")?;
    session.must(&format!("DROP DATABASE IF EXISTS {database}"))?;
    session.must(&format!("CREATE DATABASE {database} TEMPLATE template0"))?;
    drop(session);
    let mut session = Session::open(&place.clone().database(database))?;
    session.must("CREATE EXTENSION IF NOT EXISTS mot")?;
    let value = match plan.kind {
        Kind::List => "int[]",
        Kind::Register => "int",
    };
    for (table, is_mot) in plan.tables.names() {
        let engine = if *is_mot { Engine::Mot } else { Engine::Heap };
        session.must(&engine.create(&format!(
            "{table} (k bigint PRIMARY KEY, grp bigint NOT NULL, v {value} NOT NULL)"
        )))?;
        session.must(&format!("CREATE INDEX {table}_grp ON {table} (grp)"))?;
        let put = match plan.kind {
            Kind::List => format!("{table}.v || excluded.v"),
            Kind::Register => "excluded.v".to_owned(),
        };
        // Statements of a function are planned once per session and run compiled where they can.
        let change = match plan.kind {
            Kind::List => "v || value",
            Kind::Register => "value",
        };
        let whole = match plan.kind {
            Kind::List => "ARRAY[value]",
            Kind::Register => "value",
        };
        session.must(&format!(
            "CREATE FUNCTION put_{table}(key bigint, value int) RETURNS void LANGUAGE plpgsql AS $$ BEGIN \
             UPDATE {table} SET v = {change} WHERE k = key; \
             IF NOT FOUND THEN INSERT INTO {table} VALUES (key, key / {GROUP}, {whole}) \
             ON CONFLICT (k) DO UPDATE SET v = {put}; END IF; END $$"
        ))?;
    }
    Ok(())
}
