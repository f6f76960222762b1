//! One round: two tables on each side, and statements between changes, in transactions and outside.
mod ask;
mod compare;

use super::condition::Drawing;
use super::select::Query;
use super::tables::Table;
use super::types::{self, one};
use crate::failure::Result;
use crate::wire::{Answer, Place, Session, Standing};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::fmt;
use tpcc::engine::Engine;

const DATABASE: &str = "proof_queries";
/// Rows of a table at the beginning.
const ROWS: [u32; 8] = [0, 5, 30, 60, 64, 130, 300, 2500];
/// Settings that lead to other plans, with the values to draw from.
const SETTINGS: [(&str, &[&str]); 15] = [
    ("enable_seqscan", &["on", "off"]),
    ("enable_sort", &["on", "off"]),
    ("enable_hashagg", &["on", "off"]),
    ("enable_hashjoin", &["on", "off"]),
    ("enable_mergejoin", &["on", "off"]),
    ("enable_nestloop", &["on", "on", "off"]),
    ("enable_memoize", &["on", "off"]),
    ("enable_material", &["on", "off"]),
    ("work_mem", &["'64kB'", "'64kB'", "'128kB'", "'4MB'"]),
    ("hash_mem_multiplier", &["1", "2"]),
    (
        "plan_cache_mode",
        &["auto", "force_generic_plan", "force_custom_plan"],
    ),
    ("mot.compiled_statements", &["on", "on", "always", "off"]),
    (
        "TimeZone",
        &[
            "'UTC'",
            "'Europe/Berlin'",
            "'America/New_York'",
            "'Australia/Lord_Howe'",
        ],
    ),
    (
        "max_parallel_workers_per_gather",
        &["0", "0", "0", "0", "0", "0", "2"],
    ),
    ("jit", &["off"]),
];

/// What was done.
#[derive(Default)]
pub struct Tally {
    rounds: u64,
    statements: u64,
    rows: usize,
    errors: BTreeMap<String, u64>,
    /// One side failed where the plan decides whether a statement does.
    plans: u64,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} rounds, {} statements on each side, {} rows, errors on both sides: {:?}, failed on one side as \
             its plan has it: {}",
            self.rounds, self.statements, self.rows, self.errors, self.plans
        )
    }
}

struct Round<'a> {
    rng: SmallRng,
    tables: Vec<Table>,
    sides: Vec<Session>,
    log: String,
    tally: &'a mut Tally,
    found: Vec<String>,
    has_savepoint: bool,
    /// In this transaction: others' changes would wait.
    has_changed: bool,
    /// Sessions whose changes commit while the others are in a transaction.
    beside: Vec<Session>,
    prepared: u32,
    /// Functions that ask queries: their plans are kept.
    functions: Vec<(String, Query)>,
}

/// Makes the database once, and runs a round; returns the differences, and the round's statements.
pub fn run(
    place: &Place,
    seed: u64,
    statements: u64,
    tally: &mut Tally,
) -> Result<(Vec<String>, String)> {
    let database = place.clone().database(DATABASE);
    if Session::open(&database).is_err() {
        let mut session = Session::open(place)?;
        session.must(&format!("CREATE DATABASE {DATABASE} TEMPLATE template0"))?;
    }
    let mut rng = SmallRng::seed_from_u64(seed);
    let is_bare = rng.random_ratio(1, 4);
    let tables = vec![
        Table::draw(&mut rng, "t", is_bare),
        Table::draw(&mut rng, "u", is_bare),
    ];
    let mut round = Round {
        rng,
        tables,
        sides: vec![Session::open(&database)?, Session::open(&database)?],
        log: String::new(),
        tally,
        found: vec![],
        has_savepoint: false,
        has_changed: false,
        beside: vec![Session::open(&database)?, Session::open(&database)?],
        prepared: 0,
        functions: vec![],
    };
    round.prepare()?;
    for _ in 0..statements {
        round.step()?;
        if round.found.len() > 3 {
            break;
        }
    }
    if round.sides[1].standing != Standing::Idle {
        round.both("ROLLBACK", true, false)?;
    }
    for name in ["t", "u"] {
        round.both(&format!("SELECT * FROM {name}"), false, false)?;
    }
    for part in round
        .tables
        .iter()
        .flat_map(Table::parts)
        .collect::<Vec<_>>()
    {
        round.sides[1].must(&format!("SELECT rows FROM mot.check('q_mot.{part}')"))?;
    }
    round.tally.rounds += 1;
    Ok((round.found, round.log))
}

impl Round<'_> {
    fn prepare(&mut self) -> Result<()> {
        for side in &mut self.sides {
            side.must("SET client_min_messages = warning; SET synchronous_commit = off")?;
        }
        self.sides[0].must("CREATE EXTENSION IF NOT EXISTS mot")?;
        for create in types::EXTENSIONS {
            self.sides[0].must(create)?;
        }
        let sides = [("q_heap", Engine::Heap), ("q_mot", Engine::Mot)];
        for (at, (schema, engine)) in sides.into_iter().enumerate() {
            self.sides[at].must(&format!(
                "DROP SCHEMA IF EXISTS {schema} CASCADE; CREATE SCHEMA {schema}; SET search_path = {schema}, public"
            ))?;
            self.beside[at].must(&format!(
                "SET synchronous_commit = off; SET search_path = {schema}, public"
            ))?;
            self.sides[at].must(&types::definitions(schema))?;
            for table in &self.tables {
                for create in table.create(engine) {
                    self.sides[at].must(&create)?;
                    if engine.is_mot() {
                        self.log += &format!("{create};\n");
                    }
                }
            }
        }
        for (name, volatility) in [("stable_count", "STABLE"), ("volatile_count", "VOLATILE")] {
            let create = format!(
                "CREATE FUNCTION {name}(int8) RETURNS int8 {volatility} LANGUAGE plpgsql AS $$ BEGIN RETURN \
                 (SELECT count(*) FROM t WHERE c1 >= $1) + (SELECT max(c0) FROM u WHERE c1 = $1); END $$"
            );
            self.both(&create, true, false)?;
        }
        for at in 0..self.tables.len() {
            let is_before = self.rng.random();
            if is_before {
                self.add_indexes(at)?;
            }
            let count = one(&mut self.rng, &ROWS);
            if count > 0 {
                let insert = self.tables[at].insert(&mut self.rng, count);
                self.both(&insert, true, false)?;
            }
            if !is_before {
                self.add_indexes(at)?;
            }
        }
        // Estimates that are right on both sides, or wrong.
        if self.rng.random() {
            self.both("ANALYZE t", true, false)?;
            self.both("ANALYZE u", true, false)?;
        }
        self.set()
    }

    /// Of the MOT side.
    fn add_indexes(&mut self, at: usize) -> Result<()> {
        if self.tables[at].is_bare {
            return Ok(());
        }
        for _ in 0..self.rng.random_range(0..5) {
            for create in self.tables[at].add_index(&mut self.rng).unwrap_or_default() {
                self.sides[1].must(&create)?;
                self.log += &format!("{create};\n");
            }
        }
        Ok(())
    }

    fn drop_index(&mut self, at: usize) -> Result<()> {
        for drop in self.tables[at].drop_index() {
            self.sides[1].must(&drop)?;
            self.log += &format!("{drop};\n");
        }
        Ok(())
    }

    /// Other settings.
    fn set(&mut self) -> Result<()> {
        for (name, values) in SETTINGS {
            let set = format!("SET {name} = {}", one(&mut self.rng, values));
            self.both(&set, true, false)?;
        }
        let cost = one(&mut self.rng, &["0", "1000"]);
        for (name, value) in [
            ("parallel_setup_cost", cost),
            ("parallel_tuple_cost", "0"),
            ("min_parallel_table_scan_size", "0"),
        ] {
            self.both(&format!("SET {name} = {value}"), true, false)?;
        }
        Ok(())
    }

    fn step(&mut self) -> Result<()> {
        match self.sides[1].standing {
            Standing::Failed => {
                let has_savepoint = std::mem::take(&mut self.has_savepoint);
                let end = match has_savepoint {
                    true => "ROLLBACK TO SAVEPOINT s",
                    false => "ROLLBACK",
                };
                return self.both(end, true, false);
            }
            Standing::Open => match self.rng.random_range(0..40) {
                0..=1 => {
                    self.has_savepoint = false;
                    let end = one(&mut self.rng, &["COMMIT", "ROLLBACK"]);
                    return self.both(end, true, false);
                }
                2..=3 => {
                    self.has_savepoint = true;
                    return self.both("SAVEPOINT s", true, false);
                }
                4..=5 if self.has_savepoint => {
                    return self.both("ROLLBACK TO SAVEPOINT s", true, false);
                }
                _ => {}
            },
            Standing::Idle => match self.rng.random_range(0..40) {
                0..=2 => {
                    let begin = one(
                        &mut self.rng,
                        &[
                            "BEGIN",
                            "BEGIN ISOLATION LEVEL REPEATABLE READ",
                            "BEGIN ISOLATION LEVEL SERIALIZABLE",
                        ],
                    );
                    return self.both(begin, true, false);
                }
                3 => {
                    let at = self.rng.random_range(0..self.tables.len());
                    let redefine = self.tables[at].redefine(&mut self.rng);
                    return self.both(&redefine, true, false);
                }
                4..=5 => return self.set(),
                6 => {
                    let at = self.rng.random_range(0..self.tables.len());
                    return match self.rng.random() {
                        true => self.add_indexes(at),
                        false => self.drop_index(at),
                    };
                }
                _ => {}
            },
        }
        match self.rng.random_range(0..12) {
            0 => self.change(),
            1 => self.change_by_condition(),
            _ => self.ask(),
        }
    }

    /// Changes some rows by their keys.
    fn change(&mut self) -> Result<()> {
        let at = self.rng.random_range(0..self.tables.len());
        let change = self.tables[at].change(&mut self.rng);
        let is_beside = self.sides[1].standing == Standing::Open
            && !self.has_changed
            && self.rng.random_ratio(1, 3);
        if !is_beside {
            self.has_changed = true;
            return self.both(&change, true, false);
        }
        self.log += &format!("-- beside: {change};\n");
        let answers: Result<Vec<Answer>> = self
            .beside
            .iter_mut()
            .map(|side| side.must(&change))
            .collect();
        let answers = answers?;
        if answers[0] != answers[1] {
            self.note_difference(&change, &answers[0], &answers[1])?;
        }
        Ok(())
    }

    fn change_by_condition(&mut self) -> Result<()> {
        let at = self.rng.random_range(0..self.tables.len());
        let has_parameters: bool = self.rng.random();
        match Drawing::new(&mut self.rng, has_parameters).change(&self.tables[at]) {
            Some(query) => {
                self.has_changed = true;
                match has_parameters {
                    true => self.ask_prepared(&query),
                    false => self.both(&query.text, false, false),
                }
            }
            None => self.change(),
        }
    }
}
