//! One round: a schema, some sessions on each side, a few hundred statements, and a last comparison
//! of everything.
//!
//! At most one session waits at a time: a second one that would wait is cancelled on both sides,
//! which also keeps deadlocks away (their victim is a matter of timing; the deadlock detector has
//! specs of its own). So who goes on when a lock is given up is never a race. While a statement
//! over several rows waits, the others only read, and end: what it holds already is a matter of its
//! plan.

mod compare;
mod draw;
mod tally;

pub use tally::Tally;

use super::lockstep::{Came, Pair, summary};
use super::schema::Table;
use super::statement::{Source, Statement};
use super::triggers;
use super::types::{SHARED, shared_types};
use crate::failure::Result;
use crate::wire::{Answer, Place, Session, Standing};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::fmt::Write;
use std::time::Instant;
use tpcc::engine::Engine;

const DATABASE: &str = "proof_differential";
const TABLES: usize = 3;
/// Statements before the sessions begin, to have rows.
const FIRST_INSERTS: usize = 12;
/// Prepared transactions at a time: they are in everybody's way.
const PREPARED_MOST: usize = 2;

/// How a round goes.
pub struct Plan {
    pub seed: u64,
    pub statements: u64,
    pub sessions: usize,
    pub trace: bool,
    pub deadline: Option<Instant>,
    pub test_switch: Option<String>,
}

/// How it ended.
pub enum Ended {
    Same,
    Differs {
        words: String,
        log: String,
        statements: u64,
    },
}

struct Round<'a> {
    plan: &'a Plan,
    tally: &'a mut Tally,
    rng: SmallRng,
    tables: Vec<Table>,
    monitor: Session,
    pairs: Vec<Pair>,
    cursors: Vec<Option<usize>>,
    has_savepoint: Vec<bool>,
    /// Numbers of the prepared transactions.
    prepared: Vec<u64>,
    /// The sides have become too different to go on.
    is_over: bool,
    /// The session that waits.
    waiting: Option<usize>,
    log: String,
    done: u64,
    definitions: u64,
}

/// Makes the database once, and runs a round.
pub fn run(place: &Place, plan: &Plan, tally: &mut Tally) -> Result<Ended> {
    let database = place.clone().database(DATABASE);
    let monitor = match Session::open(&database) {
        Ok(monitor) => monitor,
        Err(_) => {
            let mut session = Session::open(place)?;
            session.must(&format!("CREATE DATABASE {DATABASE} TEMPLATE template0"))?;
            Session::open(&database)?
        }
    };
    let mut rng = SmallRng::seed_from_u64(plan.seed);
    let mut tables: Vec<Table> = Vec::new();
    for number in 0..TABLES {
        tables.push(Table::draw(&mut rng, &format!("t{number}"), &tables));
    }
    let mut round = Round {
        plan,
        tally,
        rng,
        tables,
        monitor,
        pairs: Vec::new(),
        cursors: vec![None; plan.sessions],
        has_savepoint: vec![false; plan.sessions],
        prepared: Vec::new(),
        is_over: false,
        waiting: None,
        log: String::new(),
        done: 0,
        definitions: 0,
    };
    let differs = round.conduct(&database)?;
    round.tally.rounds += 1;
    round.tally.statements += round.done;
    let Some(words) = differs else {
        return Ok(Ended::Same);
    };
    Ok(Ended::Differs {
        words,
        log: round.log,
        statements: round.done,
    })
}

impl Round<'_> {
    fn note(&mut self, line: &str) {
        if self.plan.trace {
            println!("{line}");
        }
        self.log.push_str(line);
        self.log.push('\n');
    }

    /// Makes the tables and sessions.
    fn prepare(&mut self, database: &Place) -> Result<()> {
        self.monitor
            .must("SET client_min_messages = warning; SET synchronous_commit = off")?;
        self.monitor.must("CREATE EXTENSION IF NOT EXISTS mot")?;
        self.roll_back_prepared()?;
        self.monitor
            .must("DROP ACCESS METHOD IF EXISTS heap_two CASCADE; CREATE ACCESS METHOD heap_two TYPE TABLE \
                HANDLER heap_tableam_handler")?;
        self.monitor.must(&shared_types())?;
        for (schema, engine) in [("d_heap", Engine::Heap), ("d_mot", Engine::Mot)] {
            self.monitor.must(&format!(
                "DROP SCHEMA IF EXISTS {schema} CASCADE; CREATE SCHEMA {schema}; SET \
                search_path = {schema}, {SHARED}"
            ))?;
            for statement in triggers::prepare(engine) {
                self.monitor.must(&statement)?;
            }
            for table in self.tables.clone() {
                for statement in table.create(engine) {
                    self.note(&format!("-- {schema}: {statement}"));
                    self.monitor.must(&statement)?;
                }
            }
        }
        let compiled = ["off", "on", "always"][self.rng.random_range(0..3)];
        self.note(&format!("-- mot.compiled_statements = {compiled}"));
        let source = Source {
            tables: &self.tables,
            cursor_table: None,
        };
        let prepared = source.prepare();
        for _ in 0..self.plan.sessions {
            let open = |schema: &str| -> Result<Session> {
                let mut session = Session::open(database)?;
                session.must(&format!("SET search_path = {schema}, {SHARED}"))?;
                session.must("SET deadlock_timeout = '1h'")?;
                // Nothing is killed here.
                session.must("SET synchronous_commit = off")?;
                session.must(&format!("SET mot.compiled_statements = {compiled}"))?;
                if let (Some(switch), "d_mot") = (&self.plan.test_switch, schema) {
                    session.must(&format!("SET mot.test_switch = '{switch}'"))?;
                }
                for statement in &prepared {
                    session.must(statement)?;
                }
                Ok(session)
            };
            self.pairs.push(Pair::new(open("d_heap")?, open("d_mot")?));
        }
        Ok(())
    }

    /// The difference that was found, if one was.
    fn conduct(&mut self, database: &Place) -> Result<Option<String>> {
        self.prepare(database)?;
        for _ in 0..FIRST_INSERTS {
            let insert = Source {
                tables: &self.tables,
                cursor_table: None,
            }
            .insert(&mut self.rng);
            if let Some(words) = self.step(0, &insert)? {
                return Ok(Some(words));
            }
        }
        while self.done < self.plan.statements
            && !self.is_over
            && self.plan.deadline.is_none_or(|end| Instant::now() < end)
        {
            let mut who = self.rng.random_range(0..self.pairs.len());
            if self.waiting == Some(who) {
                who = (who + 1) % self.pairs.len();
            }
            let statement = self.draw(who);
            if let Some(words) = self.step(who, &statement)? {
                return Ok(Some(words));
            }
            if let Some(words) = self.look_after_waiting(who)? {
                return Ok(Some(words));
            }
        }
        self.end_all()?;
        self.compare_tables()
    }

    /// Whether a statement may look rows up, or change them, for a foreign key.
    fn refers(&self, text: &str) -> bool {
        self.tables.iter().any(|table| {
            table.ordinary.refers_to.as_ref().is_some_and(|parent| {
                text.contains(parent) || text.contains(&table.name) || text == "COMMIT"
            })
        })
    }

    /// A foreign key's actions change rows in the order of their plan, and COMMIT looks at what was
    /// deferred.
    fn with_references(&self, statement: &Statement) -> Statement {
        let changes = ["UPDATE ", "DELETE ", "MERGE ", "EXECUTE del_", "COMMIT"];
        let text = &statement.text;
        let acts = changes.iter().any(|change| text.contains(change)) && self.refers(text);
        Statement {
            locks_several: statement.locks_several || acts,
            ..statement.clone()
        }
    }

    fn others(&self, who: usize) -> Vec<i32> {
        let others = self
            .pairs
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != who);
        others.flat_map(|(_, pair)| pair.pids()).collect()
    }

    /// One statement of one session.
    fn step(&mut self, who: usize, statement: &Statement) -> Result<Option<String>> {
        self.done += 1;
        let others = self.others(who);
        let statement = &self.with_references(statement);
        self.pairs[who].send(statement)?;
        let beside = self
            .waiting
            .and_then(|waiting| self.pairs[waiting].waits_with().cloned());
        let mut came = self.pairs[who].settle(&mut self.monitor, &others, beside.as_ref())?;
        if matches!(came, Came::Waits) {
            self.tally.waits += 1;
            if self.waiting.is_some() {
                self.tally.cancelled += 1;
                came = self.pairs[who].cancel(&mut self.monitor)?;
            }
        }
        self.take(who, statement, came)
    }

    /// Whether the session that waits goes on, now that `who` has done something.
    fn look_after_waiting(&mut self, who: usize) -> Result<Option<String>> {
        let Some(waiting) = self.waiting.filter(|waiting| *waiting != who) else {
            return Ok(None);
        };
        let Some(statement) = self.pairs[waiting].waits_with().cloned() else {
            self.waiting = None;
            return Ok(None);
        };
        let others = self.others(waiting);
        let came = self.pairs[waiting].settle(&mut self.monitor, &others, None)?;
        if matches!(came, Came::Waits) {
            return Ok(None);
        }
        self.waiting = None;
        self.take(waiting, &statement, came)
    }

    fn take(&mut self, who: usize, statement: &Statement, came: Came) -> Result<Option<String>> {
        let level = self.pairs[who].known.level;
        let mut line = format!("s{who} {level}: {}", statement.text);
        let words = match came {
            Came::Same(answer) => {
                let _ = write!(line, " -- {}", summary(&answer));
                self.note(&line);
                self.follow(who, statement, &answer);
                if statement.text == "COMMIT" && answer.refusal.is_some() {
                    // A WITH HOLD cursor stays if COMMIT got past keeping it when it failed, and
                    // goes otherwise; which of the two is a matter of where a dependency was met.
                    self.pairs[who].roll_back()?;
                }
                return Ok(None);
            }
            Came::Waits => {
                self.note(&(line + " -- waits"));
                self.waiting = Some(who);
                return Ok(None);
            }
            Came::May(allowed) => {
                self.note(&format!("{line} -- allowed: {}", allowed.name));
                self.resynchronize(allowed)?;
                return Ok(None);
            }
            Came::Differs(words) => words,
        };
        self.note(&format!("{line} -- DIFFERS: {words}"));
        Ok(Some(words))
    }

    /// What a statement changes of what is known of the session.
    fn follow(&mut self, who: usize, statement: &Statement, answer: &Answer) {
        if let Some(refusal) = &answer.refusal {
            *self.tally.errors.entry(refusal.state.clone()).or_default() += 1;
        } else if let Some(table) = statement.declares {
            self.cursors[who] = Some(table);
        } else if statement.text == "SAVEPOINT s" {
            self.has_savepoint[who] = true;
        } else if statement.text == "RELEASE SAVEPOINT s" {
            self.has_savepoint[who] = false;
        } else if statement.text == "CLOSE c" {
            self.cursors[who] = None;
        }
        if let (Some(number), None) = (statement.prepared_transaction(), &answer.refusal) {
            match statement.text.starts_with("PREPARE") {
                // Refused for what went before, the transaction is rolled back.
                true if answer.tags.last().is_some_and(|tag| tag == "ROLLBACK") => {}
                true => {
                    self.prepared.push(number);
                    self.tally.prepared += 1;
                }
                false => self.prepared.retain(|other| *other != number),
            }
        }
        if statement.defines && answer.refusal.is_none() {
            self.tally.defined += 1;
            let known = &mut self.pairs[who].known;
            known.fills |= statement.text.contains(" DEFAULT ");
        }
        // Also at its end: who began meanwhile does not see it either.
        if self.pairs[who].known.fills {
            for other in (0..self.pairs.len()).filter(|other| *other != who) {
                self.pairs[other].known.filled_beside |=
                    self.pairs[other].standing() != Standing::Idle;
            }
        }
        self.tally.rows += answer.count();
        if answer.tags.last().is_some_and(|tag| tag == "COMMIT") {
            self.tally.commits += 1;
        }
        if self.pairs[who].standing() == Standing::Idle {
            self.has_savepoint[who] = false;
            self.cursors[who] = None;
            self.pairs[who].forget();
        }
    }
}
