//! Does the planner choose well for MOT tables? The plans that forcing can find for a query are
//! executed, compared with heap tables' answer, and timed against the one that it chooses.
//!
//! [`forms`] has fixed queries over the [`tables`], [`random`] those of the random query tester
//! over larger tables than it has. [`forced`] has the settings, [`explore`] finds and times the
//! [`plan`]s, [`report`] sums up. A wrong answer is a failure; a slow plan is told.

mod explore;
mod forced;
mod forms;
mod plan;
mod random;
mod report;
mod side;
mod tables;

use crate::cli::{ServerOptions, new_seed};
use crate::failure::Result;
use crate::wire::Session;
use explore::{Outcome, explore};
use report::Report;
use side::Side;
use std::time::{Duration, Instant};

const DATABASE: &str = "proof_plans";

/// Options of `proof plans`.
#[derive(clap::Args, Debug)]
pub struct PlansOptions {
    #[command(flatten)]
    server: ServerOptions,
    /// Rows of the largest table of the fixed queries.
    #[arg(long, default_value_t = 300_000)]
    rows: u64,
    /// Only forms in whose names this is.
    #[arg(long, default_value = "")]
    only: String,
    /// The first seed of the random queries; each pair of tables after it has the next.
    #[arg(long)]
    seed: Option<u64>,
    /// Pairs of tables for random queries.
    #[arg(long, default_value_t = 5)]
    rounds: u64,
    /// Random queries of each pair of tables.
    #[arg(long, default_value_t = 40)]
    queries: u64,
    /// Rows of a table of the random queries.
    #[arg(long, default_value_t = 10_000)]
    random_rows: u32,
    /// Executions of a plan in turns with the others, at most; 0: results only.
    #[arg(long, default_value_t = 12)]
    times: u32,
    /// A plan may take so long.
    #[arg(long, default_value_t = 10.0)]
    patience: f64,
    /// Prints each query with its plans.
    #[arg(long)]
    trace: bool,
}

/// A query to explore.
pub struct Query {
    /// What kind of query it is.
    form: String,
    text: String,
    /// Its rows come in one order only.
    is_ordered: bool,
    /// Whether it fails is a matter of the plan.
    may_fail: bool,
}

/// How long, and how often.
struct Times {
    rounds: u32,
    patience: Duration,
    per_query: Duration,
}

/// Explores all queries; false if a plan gave another answer.
pub fn perform(options: &PlansOptions) -> Result<bool> {
    let (_private, place) = options.server.open()?;
    let start = Instant::now();
    let database = place.clone().database(DATABASE);
    if Session::open(&database).is_err() {
        let mut session = Session::open(&place)?;
        session.must(&format!("CREATE DATABASE {DATABASE} TEMPLATE template0"))?;
    }
    let mut heap = Side::open(&database, "plans_heap", "heap")?;
    heap.session.must("CREATE EXTENSION IF NOT EXISTS mot")?;
    let mut mot = Side::open(&database, "plans_mot", "mot")?;
    let times = Times {
        rounds: options.times,
        patience: Duration::from_secs_f64(options.patience),
        per_query: Duration::from_millis(600),
    };
    let mut report = Report::new(options.times > 0, options.trace);
    let fixed = forms::queries(options.rows, &options.only);
    if !fixed.is_empty() {
        tables::make(&mut heap, options.rows)?;
        tables::make(&mut mot, options.rows)?;
    }
    for query in fixed {
        report.take(explore(&mut heap, &mut mot, query, &times)?);
    }
    report.print_forms();
    report.print("fixed queries");
    let mut holds = report.holds();
    let first = options.seed.unwrap_or_else(new_seed);
    let mut report = Report::new(options.times > 0, options.trace);
    let mut heap = Side::open(&database, "plans_random_heap", "heap")?;
    let mut mot = Side::open(&database, "plans_random_mot", "mot")?;
    for seed in first..first + options.rounds {
        let queries = random::queries(&mut heap, &mut mot, seed, options)?;
        for query in queries {
            report.take(explore(&mut heap, &mut mot, query, &times)?);
        }
    }
    if options.rounds > 0 {
        report.print(&format!("random queries, seeds from {first}"));
    }
    holds &= report.holds();
    println!("plans: {:.1} s", start.elapsed().as_secs_f64());
    Ok(holds)
}

impl Report {
    fn take(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Found(finding) => self.found(*finding),
            Outcome::Differs(words) => self.differs(words),
            Outcome::Skipped => self.skipped += 1,
        }
    }
}
