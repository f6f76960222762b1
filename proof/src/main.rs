//! The `proof` program; see the README.

use clap::Parser;
use proof::cli::{Options, perform};
use std::process::ExitCode;

fn main() -> ExitCode {
    match perform(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(failure) => {
            eprintln!("proof: {failure}");
            ExitCode::from(2)
        }
    }
}
