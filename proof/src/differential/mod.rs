//! Heap and MOT tables in lock step: the same random schema, data and transactions on both, in
//! several sessions, statement by statement; results, row counts, errors and waits must be the
//! same.
//!
//! [`schema`] draws tables of [`types`], [`ordinary`] their partitions and foreign keys,
//! [`triggers`] their triggers, [`around`] views over them and their parents, [`statement`]
//! statements and [`definitions`] DDL; [`lockstep`] runs a statement on both sides and compares;
//! [`round`] conducts the sessions; [`by_design`] lists the differences that are none. Everything
//! drawn follows from the seed and from what the server answered, so a seed replays.

mod around;
mod by_design;
mod definitions;
mod lockstep;
mod ordinary;
mod round;
mod schema;
mod statement;
mod triggers;
mod types;

use crate::cli::{ServerOptions, new_seed};
use crate::failure::Result;
use round::{Ended, Tally};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Options of `proof differential`.
#[derive(clap::Args, Debug)]
pub struct DifferentialOptions {
    #[command(flatten)]
    server: ServerOptions,
    /// The first round's seed; each round after it has the next.
    #[arg(long)]
    seed: Option<u64>,
    /// Statements of the whole run.
    #[arg(long)]
    statements: Option<u64>,
    /// Length of the run, if no number of statements is given.
    #[arg(long, default_value_t = 20.0)]
    seconds: f64,
    /// Statements of a round: of one schema.
    #[arg(long, default_value_t = 500)]
    per_round: u64,
    /// Sessions on each side.
    #[arg(long, default_value_t = 3)]
    sessions: usize,
    /// Prints each statement with what became of it.
    #[arg(long)]
    trace: bool,
    /// Goes on after a difference.
    #[arg(long)]
    keep_going: bool,
    /// Breaks the MOT side on purpose (`mot.test_switch`; builds with debug assertions only).
    #[arg(long)]
    test_switch: Option<String>,
}

/// Runs rounds; false if there was a difference.
pub fn perform(options: &DifferentialOptions) -> Result<bool> {
    let (_private, place) = options.server.open()?;
    let first = options.seed.unwrap_or_else(new_seed);
    let mut tally = Tally::default();
    let mut differences = 0;
    let start = Instant::now();
    let end = start + Duration::from_secs_f64(options.seconds);
    for seed in first.. {
        let left = match options.statements {
            Some(statements) => statements.saturating_sub(tally.statements),
            None if Instant::now() < end => options.per_round,
            None => 0,
        };
        if left == 0 {
            break;
        }
        let plan = round::Plan {
            seed,
            statements: left.min(options.per_round),
            sessions: options.sessions,
            trace: options.trace,
            deadline: options.statements.is_none().then_some(end),
            test_switch: options.test_switch.clone(),
        };
        if let Ended::Differs {
            words,
            log,
            statements,
        } = round::run(&place, &plan, &mut tally).inspect_err(|_| println!("seed {seed}"))?
        {
            differences += 1;
            println!("seed {seed}: {words}");
            println!(
                "again: proof differential --seed {seed} --statements {statements} --sessions {}",
                options.sessions
            );
            let directory =
                std::env::var_os("MOT_SCRATCH").map_or_else(std::env::temp_dir, PathBuf::from);
            let path = directory.join(format!("differential-{seed}.log"));
            std::fs::write(&path, log)?;
            println!("the round's statements are in {}", path.display());
            if !options.keep_going {
                break;
            }
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    println!("differential: seeds from {first}, {seconds:.1} s\n{tally}");
    println!("{differences} differences");
    Ok(differences == 0)
}
