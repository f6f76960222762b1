//! The sides: a heap one, and a MOT one for each setting of `mot.compiled_statements`.
//! Each is a session with a schema of its own.

use super::outcome::Outcome;
use super::pair::{Event, Means, Pair, Reach};
use super::tables::{self, Act};
use super::text::Texts;
use crate::failure::{Refusal, Result};
use crate::wire::{Answer, Place, Row, Session, Standing};
use std::collections::BTreeMap;
use tpcc::engine::Engine;

const DATABASE: &str = "proof_pairs";
/// The settings of the MOT sides.
pub const SETTINGS: [&str; 3] = ["off", "on", "always"];
/// Tables get their rows back so often by DELETE, then by TRUNCATE, which leaves no old versions.
const RENEWED_AFTER: usize = 100;

/// All sides.
pub struct Sides {
    /// The heap side first.
    sessions: Vec<Session>,
    /// What each side reads of a table that is as it was made.
    untouched: BTreeMap<&'static str, Vec<Row>>,
    /// Names of functions, by what they do.
    functions: BTreeMap<(Means, String), String>,
    /// How often tables were given their rows back.
    restored: usize,
}

impl Sides {
    /// Makes the database, the tables and the functions.
    pub fn make(place: &Place, pairs: &[Pair]) -> Result<Sides> {
        let database = place.clone().database(DATABASE);
        let mut session = Session::open(place)?;
        session.must("SET client_min_messages = warning")?;
        session.must(&format!("DROP DATABASE IF EXISTS {DATABASE}"))?;
        session.must(&format!("CREATE DATABASE {DATABASE} TEMPLATE template0"))?;
        let mut session = Session::open(&database)?;
        session.must("CREATE EXTENSION mot")?;
        let mut sides = Sides {
            sessions: Vec::new(),
            untouched: BTreeMap::new(),
            functions: functions(pairs),
            restored: 0,
        };
        let heap = ("heap", "off", Engine::Heap);
        let others = SETTINGS.map(|setting| (setting, setting, Engine::Mot));
        for (name, setting, engine) in [heap].into_iter().chain(others) {
            let mut session = Session::open(&database)?;
            session.must("SET client_min_messages = warning; SET synchronous_commit = off")?;
            // Rows come in the order of the key on both sides.
            session.must("SET enable_seqscan = off; SET enable_bitmapscan = off; SET jit = off")?;
            session.must(&format!("SET mot.compiled_statements = {setting}"))?;
            for statement in tables::create(&schema(name), engine) {
                session.must(&statement)?;
            }
            for ((means, statement), name) in &sides.functions {
                session.must(&tables::function(name, language(*means), statement))?;
            }
            sides.sessions.push(session);
        }
        for table in tables::ALL {
            let rows = sides.sessions[0].must(&tables::read(table))?.rows;
            sides.untouched.insert(table, rows);
        }
        Ok(sides)
    }

    /// A pair's statements, with the functions' names.
    pub fn texts(&self, pair: &Pair) -> Texts {
        let name = function_means(pair)
            .and_then(|means| self.functions.get(&(means, pair.texts("").first)));
        pair.texts(name.map_or("", String::as_str))
    }

    /// Asks all sides at once.
    fn ask(&mut self, statement: &str) -> Result<Vec<Answer>> {
        for session in &mut self.sessions {
            session.send(statement)?;
        }
        self.sessions.iter_mut().map(Session::receive).collect()
    }

    /// Runs a pair on all sides: the heap side's outcome first.
    pub fn run(&mut self, pair: &Pair) -> Result<Vec<Outcome>> {
        let texts = self.texts(pair);
        if let Reach::Before(event) | Reach::After(event) = pair.reach {
            let first = (Means::PlPgSql, texts.first.clone());
            let act = Act {
                function: &self.functions[&first],
                event: match event {
                    Event::Insert => "INSERT",
                    Event::Update => "UPDATE",
                    Event::Delete => "DELETE",
                },
                at: texts.at,
            };
            let act = tables::set_act(&act);
            self.ask(&act)?;
        }
        let touched = pair.touched();
        let outcomes = if pair.commits() {
            self.commit(&texts.second, &touched)?
        } else {
            self.roll_back(&texts.second, &touched)?
        };
        Ok(outcomes)
    }

    /// A statement, and what its transaction reads behind it, which is then rolled back.
    fn roll_back(&mut self, statement: &str, touched: &[&str]) -> Result<Vec<Outcome>> {
        let answers = self.ask(&format!("BEGIN; {statement}"))?;
        let read = read(touched);
        let mut outcomes = Vec::new();
        for session in &mut self.sessions {
            match session.standing {
                Standing::Failed => session.send(&format!("ROLLBACK; {read}"))?,
                _ => session.send(&format!("{read}; ROLLBACK"))?,
            }
        }
        for (session, answer) in self.sessions.iter_mut().zip(answers) {
            let after = session.receive()?;
            outcomes.push(Outcome { answer, after });
        }
        // Where what it has done cannot be read.
        for session in &mut self.sessions {
            if session.standing != Standing::Idle {
                session.must("ROLLBACK")?;
            }
        }
        Ok(outcomes)
    }

    /// A statement that is its own transaction, and what is read afterwards.
    /// The tables get their rows back.
    fn commit(&mut self, statement: &str, touched: &[&str]) -> Result<Vec<Outcome>> {
        let answers = self.ask(statement)?;
        let after = self.ask(&read(touched))?;
        let untouched = self.untouched(touched);
        let mut outcomes: Vec<Outcome> = answers
            .into_iter()
            .zip(after)
            .map(|(answer, after)| Outcome { answer, after })
            .collect();
        if outcomes
            .iter()
            .all(|outcome| outcome.after.rows == untouched)
        {
            return Ok(outcomes);
        }
        for (outcome, complaint) in outcomes[1..].iter_mut().zip(self.check(touched)?) {
            outcome.after.refusal = outcome.after.refusal.take().or(complaint);
        }
        self.restore(touched)?;
        Ok(outcomes)
    }

    fn untouched(&self, tables: &[&str]) -> Vec<Row> {
        tables
            .iter()
            .flat_map(|table| self.untouched[table].clone())
            .collect()
    }

    fn restore(&mut self, touched: &[&str]) -> Result<()> {
        self.restored += 1;
        let again = |how: fn(&str) -> String| {
            let tables: Vec<String> = touched.iter().map(|table| how(table)).collect();
            format!("{}; {}", tables::no_act(), tables.join("; "))
        };
        if !self.restored.is_multiple_of(RENEWED_AFTER) {
            let answers = self.ask(&again(tables::restore))?;
            if answers.iter().all(|answer| answer.refusal.is_none()) {
                return Ok(());
            }
        }
        for session in &mut self.sessions {
            session.must(&again(tables::renew))?;
        }
        Ok(())
    }

    /// What `mot.check` says of tables of the MOT sides.
    fn check(&mut self, tables: &[&str]) -> Result<Vec<Option<Refusal>>> {
        let checks: Vec<String> = tables.iter().map(|table| tables::check(table)).collect();
        let mut complaints = Vec::new();
        for session in &mut self.sessions[1..] {
            complaints.push(session.ask(&checks.join("; "))?.refusal);
        }
        Ok(complaints)
    }

    /// What is wrong with all tables now that nothing is under way, for each MOT side.
    pub fn complaints(&mut self) -> Result<Vec<Option<String>>> {
        let after = self.ask(&read(&tables::ALL))?;
        let untouched = self.untouched(&tables::ALL);
        let checked = self.check(&tables::ALL)?;
        Ok(after[1..]
            .iter()
            .zip(checked)
            .map(|(after, refusal)| {
                let refusal = after.refusal.clone().or(refusal);
                let changed = (after.rows != untouched).then(|| "other rows".to_owned());
                refusal.map(|refusal| refusal.to_string()).or(changed)
            })
            .collect())
    }
}

fn read(touched: &[&str]) -> String {
    let reads: Vec<String> = touched.iter().map(|table| tables::read(table)).collect();
    reads.join("; ")
}

fn schema(side: &str) -> String {
    format!("p_{side}")
}

fn language(means: Means) -> &'static str {
    match means {
        Means::PlPgSql => "plpgsql",
        Means::Sql | Means::With => "sql",
    }
}

/// The kind of function that does the pair's first thing, if one does.
fn function_means(pair: &Pair) -> Option<Means> {
    match pair.reach {
        Reach::Asked(Means::With, _) => None,
        Reach::Asked(means, _) => Some(means),
        Reach::Before(_) | Reach::After(_) => Some(Means::PlPgSql),
    }
}

/// One for each statement that is done first.
fn functions(pairs: &[Pair]) -> BTreeMap<(Means, String), String> {
    let mut functions = BTreeMap::new();
    for pair in pairs {
        if let Some(means) = function_means(pair) {
            let number = functions.len();
            functions
                .entry((means, pair.texts("").first))
                .or_insert_with(|| format!("first_{number}"));
        }
    }
    functions
}
