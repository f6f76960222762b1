//! `mot_bench`: measures memory-optimized tables beside heap tables on a private server, and writes
//! what it found.
//!
//! From the outside in: [`cli`] and [`plan`] say what is measured and how large; [`rig`] is the
//! server; each module of [`parts`] measures one kind of work and adds its figures to the
//! [`record`]; [`goals`] judges the record, [`report`] and [`charts`] show it; [`stop`] takes care
//! that nothing is left of a run that ends before its time. `bench/README.md` has the rules of the
//! comparison.

mod charts;
mod cli;
mod goals;
mod instructions;
mod machine;
mod mariadb;
mod parts;
mod pgbench;
mod plan;
mod probe;
mod record;
mod report;
mod rig;
mod run;
mod side;
mod stop;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    match run::run(&cli::Cli::parse()) {
        Ok(failed) if failed.is_empty() => ExitCode::SUCCESS,
        Ok(failed) => {
            eprintln!("mot_bench: {} of its parts failed:", failed.len());
            for (part, why) in failed {
                eprintln!("  {part}: {why}");
            }
            ExitCode::FAILURE
        }
        Err(failure) => {
            eprintln!("mot_bench: {failure}");
            ExitCode::FAILURE
        }
    }
}
