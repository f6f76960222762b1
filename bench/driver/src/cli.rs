//! The command line.

use crate::plan::Form;
use clap::Parser;
use std::path::PathBuf;

/// Measures memory-optimized tables beside heap tables, and what else there is to compare with.
#[derive(Parser)]
#[command(name = "mot_bench", version)]
pub(crate) struct Cli {
    /// Smaller tables, fewer settings, shorter runs: ends within 30 minutes on two cores.
    #[arg(long)]
    quick: bool,
    /// Tiny: proves that every part runs and measures nothing.
    #[arg(long, conflicts_with = "quick")]
    smoke: bool,
    /// Parts to measure, each `part` or `part/work`; the others keep what an earlier run left in
    /// the output directory.
    #[arg(long, value_delimiter = ',')]
    pub only: Vec<String>,
    /// Where RESULTS.md and results/ go.
    #[arg(long, default_value = "bench")]
    pub out: PathBuf,
    /// Directory of the PostgreSQL programs [default: what `pg_config --bindir` says].
    #[arg(long)]
    pub bindir: Option<PathBuf>,
    /// Further server settings, name=value.
    #[arg(long = "setting")]
    pub settings: Vec<String>,
}

impl Cli {
    pub(crate) fn form(&self) -> Form {
        match (self.quick, self.smoke) {
            (_, true) => Form::Smoke,
            (true, _) => Form::Quick,
            _ => Form::Full,
        }
    }
}
