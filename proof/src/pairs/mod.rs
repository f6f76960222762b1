//! What a command did to a row, and what it does next: every pair, on heap and MOT tables in lock
//! step.
//!
//! A statement can meet rows that it has changed itself, by a WITH part, a function or a trigger.
//! There an engine's rules meet: which change counts, what is an error, whose memory a row lies in.
//!
//! [`pair`] has the words, [`list`] the pairs, [`text`] and [`statement`] have their SQL.
//! [`tables`] says what they run on, [`sides`] runs them, [`outcome`] tells results. Nothing is
//! random.

mod list;
mod outcome;
mod pair;
mod sides;
mod statement;
mod tables;
mod text;

use crate::cli::ServerOptions;
use crate::failure::{Failure, Result};
use crate::wire::Place;
use outcome::Outcome;
use pair::Pair;
use sides::{SETTINGS, Sides};
use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Pairs after which all tables are looked at.
const LOOKED_AFTER: usize = 500;
/// Longest a server takes to come back.
const RECOVERY: Duration = Duration::from_secs(180);

/// Options of `proof pairs`.
#[derive(clap::Args, Debug)]
pub struct PairsOptions {
    #[command(flatten)]
    server: ServerOptions,
    /// Only pairs in whose names all of these are.
    #[arg(long)]
    only: Vec<String>,
    /// Goes on when a pair has ended the server, which comes back by itself.
    #[arg(long)]
    keep_going: bool,
    /// Prints each pair with its statements and what became of it.
    #[arg(long)]
    trace: bool,
}

/// Runs all pairs; false if one of them differs.
pub fn perform(options: &PairsOptions) -> Result<bool> {
    let (_private, place) = options.server.open()?;
    let mut pairs = list::all();
    pairs.retain(|pair| {
        let name = pair.to_string();
        options.only.iter().all(|part| name.contains(part))
    });
    let start = Instant::now();
    let mut sides = Sides::make(&place, &pairs)?;
    let mut found = Found::default();
    for pair in &pairs {
        found.ran += 1;
        match one(&mut sides, pair, &mut found, options.trace) {
            Ok(()) => {}
            Err(Failure::Lost(words)) => {
                found.differs(pair);
                println!("{}", told(&sides, pair));
                println!("  the server has ended the sessions: {words}");
                if !options.keep_going {
                    println!("{} pairs have not run", pairs.len() - found.ran);
                    break;
                }
                sides = again(&place, &pairs)?;
            }
            Err(failure) => {
                println!("{}", told(&sides, pair));
                return Err(failure);
            }
        }
    }
    found.report(start.elapsed().as_secs_f64());
    Ok(found.differences.is_empty() && found.complaints == 0)
}

/// Runs a pair and tells how it differs. Now and then all tables must be what they were.
fn one(sides: &mut Sides, pair: &Pair, found: &mut Found, trace: bool) -> Result<()> {
    let outcomes = sides.run(pair)?;
    let differences = differences(&outcomes);
    if trace || !differences.is_empty() {
        println!("{}\n  heap: {}", told(sides, pair), outcomes[0]);
    }
    for (settings, outcome) in &differences {
        println!("  MOT ({}): {outcome}", settings.join(", "));
    }
    if !differences.is_empty() {
        found.differs(pair);
    }
    if found.ran.is_multiple_of(LOOKED_AFTER) {
        for (complaint, setting) in sides.complaints()?.into_iter().zip(SETTINGS) {
            if let Some(complaint) = complaint {
                found.complaints += 1;
                println!("{pair}\n  or one before it has changed tables ({setting}): {complaint}");
            }
        }
    }
    Ok(())
}

/// New tables, once a server that was ended takes sessions again.
fn again(place: &Place, pairs: &[Pair]) -> Result<Sides> {
    let deadline = Instant::now() + RECOVERY;
    loop {
        match Sides::make(place, pairs) {
            Err(Failure::Lost(_)) if Instant::now() < deadline => sleep(Duration::from_millis(100)),
            made => return made,
        }
    }
}

/// What a run has come to.
#[derive(Default)]
struct Found {
    ran: usize,
    differences: Vec<Pair>,
    /// How often tables were not what they had been.
    complaints: usize,
}

impl Found {
    fn differs(&mut self, pair: &Pair) {
        self.differences.push(*pair);
    }

    /// How many differ, by what the statement does and how it came to the first thing.
    fn report(&self, seconds: f64) {
        let mut kinds: BTreeMap<String, BTreeMap<String, usize>> = BTreeMap::new();
        for pair in &self.differences {
            let firsts = kinds
                .entry(format!("{:?}, {}", pair.second, pair.reach))
                .or_default();
            *firsts.entry(format!("{:?}", pair.first)).or_default() += 1;
        }
        for (kind, firsts) in &kinds {
            let firsts: Vec<String> = firsts
                .iter()
                .map(|(first, count)| format!("{first} {count}"))
                .collect();
            println!("differ: {kind}: {}", firsts.join(", "));
        }
        println!(
            "pairs: {} on a heap table and three MOT tables, {seconds:.1} s",
            self.ran
        );
        println!("{} differences", self.differences.len() + self.complaints);
    }
}

/// A pair's name and statements.
fn told(sides: &Sides, pair: &Pair) -> String {
    let texts = sides.texts(pair);
    format!("{pair}\n  first: {}\n  {}", texts.first, texts.second)
}

/// The outcomes that differ from the heap side's, each with the settings that it came with.
fn differences(outcomes: &[Outcome]) -> Vec<(Vec<&'static str>, &Outcome)> {
    let mut differences: Vec<(Vec<&'static str>, &Outcome)> = Vec::new();
    for (outcome, setting) in outcomes[1..].iter().zip(SETTINGS) {
        if *outcome == outcomes[0] {
            continue;
        }
        match differences.iter_mut().find(|(_, other)| *other == outcome) {
            Some((settings, _)) => settings.push(setting),
            None => differences.push((vec![setting], outcome)),
        }
    }
    differences
}
