//! Random queries on heap and MOT tables of the same rows: results and SQLSTATEs must be the same.
//!
//! [`tables`] draws tables, indexes and changes, [`condition`] conditions, [`select`] and
//! [`aggregates`] queries; [`round`] asks them on both sides, plainly, prepared and through
//! cursors, between changes of its own transaction, and compares. Everything drawn follows from the
//! seed, so a seed replays.

mod aggregates;
pub(crate) mod condition;
mod round;
pub(crate) mod select;
pub(crate) mod tables;
pub mod types;
mod values;

use crate::cli::{ServerOptions, new_seed};
use crate::failure::Result;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Options of `proof queries`.
#[derive(clap::Args, Debug)]
pub struct QueriesOptions {
    #[command(flatten)]
    server: ServerOptions,
    /// The first round's seed; each round after it has the next.
    #[arg(long)]
    seed: Option<u64>,
    /// Rounds.
    #[arg(long)]
    rounds: Option<u64>,
    /// Length of the run, if no number of rounds is given.
    #[arg(long, default_value_t = 20.0)]
    seconds: f64,
    /// Statements of a round: of the same tables.
    #[arg(long, default_value_t = 200)]
    statements: u64,
    /// Goes on after a difference.
    #[arg(long)]
    keep_going: bool,
}

/// Runs rounds; false if there was a difference.
pub fn perform(options: &QueriesOptions) -> Result<bool> {
    let (_private, place) = options.server.open()?;
    let first = options.seed.unwrap_or_else(new_seed);
    let start = Instant::now();
    let end = start + Duration::from_secs_f64(options.seconds);
    let mut tally = round::Tally::default();
    let mut differences = 0;
    for seed in first.. {
        let is_over = match options.rounds {
            Some(rounds) => seed - first >= rounds,
            None => Instant::now() >= end,
        };
        if is_over {
            break;
        }
        let (found, log) = round::run(&place, seed, options.statements, &mut tally)
            .inspect_err(|_| println!("seed {seed}"))?;
        if found.is_empty() {
            continue;
        }
        differences += found.len();
        for words in &found {
            println!("seed {seed}: {words}\n");
        }
        let directory =
            std::env::var_os("MOT_SCRATCH").map_or_else(std::env::temp_dir, PathBuf::from);
        let path = directory.join(format!("queries-{seed}.sql"));
        std::fs::write(&path, log)?;
        println!(
            "again: proof queries --seed {seed} --rounds 1 --statements {}",
            options.statements
        );
        println!("the round's statements are in {}", path.display());
        if !options.keep_going {
            break;
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    println!("queries: seeds from {first}, {seconds:.1} s, {tally}");
    println!("{differences} differences");
    Ok(differences == 0)
}
