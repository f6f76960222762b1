//! The command line.

use crate::engine::Engine;
use crate::terminal::Mode;
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// TPC-C for memory-optimized and heap tables, comparable with BenchmarkSQL 5.
#[derive(Parser)]
#[command(name = "tpcc", version)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Subcommand)]
pub enum Command {
    /// Drop the schema's tables and load them anew.
    Load(LoadArgs),
    /// Run the workload and report.
    Run(RunArgs),
    /// Check the twelve consistency conditions of TPC-C clause 3.3.2.
    Check(TargetArgs),
    /// Compare the database with a ledger after a crash.
    LedgerCheck(LedgerCheckArgs),
    /// Print reports that `run --json` wrote.
    Report(ReportArgs),
    /// Compare both engines on a private server, then kill it and look what is left.
    Demo(DemoArgs),
    /// Measure how long a server is away: restarts, crash recovery, failover.
    Rto(RtoArgs),
}

/// Where the tables are.
#[derive(Args, Clone)]
pub struct TargetArgs {
    /// Connection string, in either of libpq's forms.
    #[arg(
        long,
        env = "TPCC_URL",
        default_value = "host=/var/run/postgresql user=postgres"
    )]
    pub url: String,
    /// Where the tables live.
    #[arg(long, value_enum, default_value = "mot")]
    pub engine: Engine,
    /// PostgreSQL schema of the tables [default: tpcc_mot or tpcc_heap].
    #[arg(long)]
    pub schema: Option<String>,
}

/// Arguments of `load`.
#[derive(Args)]
pub struct LoadArgs {
    /// Where to load.
    #[command(flatten)]
    pub target: TargetArgs,
    /// Number of warehouses.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(i32).range(1..=10_000))]
    pub warehouses: i32,
    /// Threads that load.
    #[arg(long, default_value_t = 2)]
    pub workers: usize,
    /// Seed of the random data.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Make keys and indexes before the rows are loaded instead of after.
    #[arg(long)]
    pub keys_first: bool,
    /// Add BenchmarkSQL's foreign keys after the rows.
    #[arg(long)]
    pub foreign_keys: bool,
    /// Items, and stock rows per warehouse; fewer than TPC-C's are for tests.
    #[arg(long = "scale-items", default_value_t = 100_000,
          value_parser = clap::value_parser!(i32).range(100..=100_000))]
    pub items: i32,
    /// Customers and first orders per district; fewer than TPC-C's are for tests.
    #[arg(long, default_value_t = 3000, value_parser = clap::value_parser!(i32).range(30..=3000))]
    pub customers: i32,
}

/// Arguments of `run`.
#[derive(Args)]
pub struct RunArgs {
    /// Where to run.
    #[command(flatten)]
    pub target: TargetArgs,
    /// Number of terminals, each a connection.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub terminals: u32,
    /// Length of the measurement in seconds.
    #[arg(long, default_value_t = 60.0)]
    pub duration: f64,
    /// Seconds before the measurement begins.
    #[arg(long, default_value_t = 2.0)]
    pub warmup: f64,
    /// Statement by statement, or one function call per transaction.
    #[arg(long, value_enum, default_value = "interactive")]
    pub mode: Mode,
    /// Warehouses that must be there; the run uses all that were loaded.
    #[arg(long)]
    pub warehouses: Option<i32>,
    /// Seed of the input data.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Write the report as JSON too.
    #[arg(long)]
    pub json: Option<PathBuf>,
    /// Keep a ledger of acknowledged transactions.
    #[arg(long)]
    pub ledger: Option<PathBuf>,
    /// A setting for the terminals' sessions, name=value.
    #[arg(long = "session-setting")]
    pub session_settings: Vec<String>,
    /// Terminals stay at one warehouse (BenchmarkSQL's terminalWarehouseFixed).
    #[arg(long)]
    pub fixed_warehouse: bool,
    /// Transactions per second that all terminals together begin at most [default: as many as they
    /// can].
    #[arg(long, value_parser = positive)]
    pub rate: Option<f64>,
    /// Losing the server is not an error: for runs in which it is killed.
    #[arg(long)]
    pub tolerate_disconnect: bool,
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value > 0.0 && value.is_finite() => Ok(value),
        _ => Err("a number above 0 is wanted".into()),
    }
}

/// Arguments of `ledger-check`.
#[derive(Args)]
pub struct LedgerCheckArgs {
    /// Where the tables are.
    #[command(flatten)]
    pub target: TargetArgs,
    /// The ledger that `run --ledger` kept.
    #[arg(long)]
    pub ledger: PathBuf,
}

/// Arguments of `report`.
#[derive(Args)]
pub struct ReportArgs {
    /// Files that `run --json` wrote.
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
}

/// Arguments of `demo`.
#[derive(Args, Clone)]
pub struct DemoArgs {
    /// Smaller and shorter: ends within three minutes on two cores.
    #[arg(long)]
    pub quick: bool,
    /// Number of warehouses [default: 10, with --quick 2].
    #[arg(long)]
    pub warehouses: Option<i32>,
    /// Number of terminals.
    #[arg(long, default_value_t = 10)]
    pub terminals: u32,
    /// Seconds per measurement [default: 30, with --quick 7].
    #[arg(long)]
    pub duration: Option<f64>,
    /// Rounds per mode, in each of which both engines run once [default: 3, with --quick 2].
    #[arg(long)]
    pub rounds: Option<u32>,
    /// Seed of loads and runs.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Where summary.json goes.
    #[arg(long, default_value = "target/demo")]
    pub out: PathBuf,
    /// Directory of the PostgreSQL programs [default: what `pg_config --bindir` says].
    #[arg(long)]
    pub bindir: Option<PathBuf>,
    /// Further server settings, name=value.
    #[arg(long = "setting")]
    pub settings: Vec<String>,
    /// Heap tables in both columns: tries the demo itself, without the extension.
    #[arg(long)]
    pub heap_in_place_of_mot: bool,
    /// Leave the server's directory behind.
    #[arg(long)]
    pub keep: bool,
}

/// Arguments of `rto`.
#[derive(Args, Clone)]
pub struct RtoArgs {
    /// Smaller databases and shorter load: ends within ten minutes on two cores.
    #[arg(long)]
    pub quick: bool,
    /// Sizes, in warehouses of about 100 MB of rows [default: 10,40,80; with --quick 2,10].
    #[arg(long, value_delimiter = ',')]
    pub warehouses: Vec<i32>,
    /// Seconds of load before a crash, and of a run that is measured [default: 10; with --quick 5].
    #[arg(long)]
    pub seconds: Option<u64>,
    /// Rounds of the runs with and without standby and checkpoints, at the first size [default: 3;
    /// with --quick 1].
    #[arg(long)]
    pub rounds: Option<usize>,
    /// Number of terminals of the load.
    #[arg(long, default_value_t = 10)]
    pub terminals: u32,
    /// Seed of loads and runs.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Where summary.json, report.txt and rto.svg go.
    #[arg(long, default_value = "target/rto")]
    pub out: PathBuf,
    /// Directory of the PostgreSQL programs [default: what `pg_config --bindir` says].
    #[arg(long)]
    pub bindir: Option<PathBuf>,
}
