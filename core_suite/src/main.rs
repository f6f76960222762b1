//! The `core_suite` program; see the README.

use clap::Parser;
use core_suite::failure::{Failure, Result};
use core_suite::known::read_list;
use core_suite::report::Report;
use core_suite::suite::{Runs, compare_runs};
use std::path::PathBuf;
use std::process::ExitCode;

/// Compares two runs of PostgreSQL's own test suites, statement by statement.
#[derive(Parser)]
struct Options {
    /// The tests' source, with `regress/sql`.
    #[arg(long)]
    source: PathBuf,
    /// The results on heap.
    #[arg(long)]
    base: PathBuf,
    /// The results on the other kind of table. A path of equal length keeps columns equally wide.
    #[arg(long)]
    test: PathBuf,
    /// The list of known differences; without it each one counts.
    #[arg(long)]
    known: Option<PathBuf>,
    /// Where the differences are written with both outputs.
    #[arg(long)]
    details: PathBuf,
}

fn main() -> ExitCode {
    match perform(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(failure) => {
            eprintln!("core_suite: {failure}");
            ExitCode::from(2)
        }
    }
}

/// Compares; false if a difference is not listed.
fn perform(options: &Options) -> Result<bool> {
    let known = match &options.known {
        Some(path) => read_list(path)?,
        None => Vec::new(),
    };
    let files = compare_runs(
        &Runs {
            source: options.source.clone(),
            base: options.base.clone(),
            test: options.test.clone(),
        },
        &known,
    )?;
    let report = Report::new(&files, &known);
    print!("{report}");
    std::fs::write(&options.details, report.details()).map_err(|error| Failure::File {
        path: options.details.clone(),
        error,
    })?;
    println!(
        "the differences with both outputs are in {}",
        options.details.display()
    );
    Ok(report.holds())
}
