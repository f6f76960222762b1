//! The commands.

use crate::check::check;
use crate::failure::Result;
use crate::history::record::{History, Kind, Level};
use crate::history::run::{Plan, Target, run};
use crate::history::tables::Tables;
use crate::history::upset::Servers;
use crate::wire::Place;
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Proves that isolation levels keep their word, or finds where they do not.
#[derive(Parser, Debug)]
pub struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Runs random transactions from many connections and checks their history.
    History(HistoryOptions),
    /// Checks a history that was written to a file.
    Check {
        /// The file.
        file: PathBuf,
    },
    /// Runs random statements on heap and MOT tables in lock step and compares.
    Differential(crate::differential::DifferentialOptions),
    /// Runs random queries on heap and MOT tables of the same rows and compares.
    Queries(crate::queries::QueriesOptions),
    /// Runs each pair of what a statement comes to do to a row and what it does next, on heap and
    /// MOT tables, and compares.
    Pairs(crate::pairs::PairsOptions),
    /// Runs every plan that forcing can find for queries on MOT tables, compares their answers, and
    /// times the chosen one against the best.
    Plans(crate::plans::PlansOptions),
}

/// How to reach a server.
#[derive(Args, Debug, Clone)]
pub struct ServerOptions {
    /// A running server (host: a socket directory); without it one is made.
    #[arg(long, env = "PROOF_URL")]
    pub url: Option<String>,
    /// Where the programs of the private server are; `pg_config` knows otherwise.
    #[arg(long, env = "PG_BIN")]
    pub bindir: Option<PathBuf>,
}

impl ServerOptions {
    /// Where the server is, and the private one, which lives as long as that.
    pub fn open(&self) -> Result<(Option<Servers>, Place)> {
        match &self.url {
            Some(url) => Ok((None, Place::parse(url)?)),
            None => {
                let servers = Servers::start(self.bindir.clone(), false)?;
                let place = servers.place()?;
                Ok((Some(servers), place))
            }
        }
    }
}

#[derive(Args, Debug)]
struct HistoryOptions {
    #[command(flatten)]
    server: ServerOptions,
    /// The isolation level; all of them in turn, if none is given.
    #[arg(long, value_enum)]
    level: Option<Level>,
    /// What keys hold; both in turn, if nothing is given.
    #[arg(long, value_enum)]
    kind: Option<Kind>,
    /// Memory-optimized tables, heap tables, or both in the same transactions.
    #[arg(long, value_enum, default_value = "mixed")]
    on: Tables,
    /// Clients at a time.
    #[arg(long, default_value_t = 10)]
    connections: u32,
    /// Length of a run.
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// Repeats the draws of a run; what the server makes of them is another matter.
    #[arg(long)]
    seed: Option<u64>,
    /// Rounds over the levels and kinds.
    #[arg(long, default_value_t = 1)]
    rounds: u64,
    /// Strikes the server (a private one) this many times in a run: kill -9, shutdowns, a killed
    /// backend.
    #[arg(long, default_value_t = 0, default_missing_value = "3", num_args = 0..=1)]
    kill: u32,
    /// The server has a synchronous standby, which is promoted when it is killed.
    #[arg(long, requires = "kill")]
    standby: bool,
    /// Breaks the server on purpose (`mot.test_switch`; builds with debug assertions only).
    #[arg(long)]
    test_switch: Option<String>,
    /// A setting `name=value` for every session.
    #[arg(long = "set")]
    settings: Vec<String>,
    /// Where histories are written; those with findings are written in any case, to the scratch
    /// directory.
    #[arg(long)]
    out: Option<PathBuf>,
}

/// Does what is asked; false if something was found that must not be.
pub fn perform(options: &Options) -> Result<bool> {
    match &options.command {
        Command::History(options) => history(options),
        Command::Check { file } => {
            let report = check(&History::read(file)?);
            print!("{report}");
            Ok(report.holds())
        }
        Command::Differential(options) => crate::differential::perform(options),
        Command::Queries(options) => crate::queries::perform(options),
        Command::Pairs(options) => crate::pairs::perform(options),
        Command::Plans(options) => crate::plans::perform(options),
    }
}

/// A seed out of the clock.
pub fn new_seed() -> u64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    now.as_micros() as u64 % 1_000_000
}

fn history(options: &HistoryOptions) -> Result<bool> {
    let mut private = match &options.server.url {
        Some(_) => None,
        None => Some(Servers::start(
            options.server.bindir.clone(),
            options.standby,
        )?),
    };
    let levels = options
        .level
        .map_or(Level::ALL.to_vec(), |level| vec![level]);
    let kinds = options
        .kind
        .map_or(vec![Kind::List, Kind::Register], |kind| vec![kind]);
    let first_seed = options.seed.unwrap_or_else(new_seed);
    let mut holds = true;
    for round in 0..options.rounds {
        for level in &levels {
            for kind in &kinds {
                let plan = Plan {
                    level: *level,
                    kind: *kind,
                    tables: options.on,
                    connections: options.connections,
                    duration: Duration::from_secs_f64(options.seconds),
                    seed: first_seed.wrapping_add(round),
                    settings: settings(options),
                    strikes: options.kill,
                };
                holds &= one(options, &plan, &mut private)?;
            }
        }
    }
    Ok(holds)
}

fn settings(options: &HistoryOptions) -> Vec<String> {
    let mut settings: Vec<String> = options
        .settings
        .iter()
        .filter_map(|setting| setting.split_once('='))
        .map(|(name, value)| format!("SET {name} = '{value}'"))
        .collect();
    if let Some(switch) = &options.test_switch {
        settings.push(format!("SET mot.test_switch = '{switch}'"));
    }
    settings
}

fn one(options: &HistoryOptions, plan: &Plan, private: &mut Option<Servers>) -> Result<bool> {
    let title = format!(
        "{}, {:?}, {:?}, seed {}",
        plan.level, plan.kind, plan.tables, plan.seed
    );
    let mut target = match (&mut *private, &options.server.url) {
        (Some(servers), _) => Target::Private(servers),
        (None, url) => Target::Given(Place::parse(url.as_deref().unwrap_or_default())?),
    };
    let ran = run(plan, &mut target);
    let history = match ran {
        Ok(history) => history,
        Err(failure) => {
            let kept = private.as_mut().map_or(String::new(), Servers::keep);
            println!("== {title}: {failure}\n{kept}");
            return Err(failure);
        }
    };
    let report = check(&history);
    println!("== {title} ({})", history.header.note);
    print!("{report}");
    let name = format!(
        "history-{}-{:?}-{}.jsonl",
        plan.level.to_string().replace(' ', "-"),
        plan.kind,
        plan.seed
    );
    if let Some(directory) = &options.out {
        history.write(&directory.join(&name))?;
    }
    if !report.holds() {
        let directory =
            std::env::var_os("MOT_SCRATCH").map_or_else(std::env::temp_dir, PathBuf::from);
        let path = directory.join(&name);
        history.write(&path)?;
        println!("the history is in {}", path.display());
    }
    Ok(report.holds())
}
