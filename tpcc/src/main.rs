//! `tpcc`: see `tpcc --help` and README.md.

use clap::Parser;
use std::process::ExitCode;
use std::time::Duration;
use tpcc::check;
use tpcc::cli::{Cli, Command, LedgerCheckArgs, LoadArgs, ReportArgs, RunArgs, TargetArgs};
use tpcc::failure::{Failure, Result};
use tpcc::ledger::Ledger;
use tpcc::ledger_check;
use tpcc::load::{LoadOptions, load};
use tpcc::report::RunReport;
use tpcc::run::{RunOptions, run};
use tpcc::scale::{LoadedConfig, Scale};
use tpcc::target::Target;

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Load(args) => load_command(&args),
        Command::Run(args) => run_command(&args),
        Command::Check(args) => check_command(&args),
        Command::LedgerCheck(args) => ledger_check_command(&args),
        Command::Report(args) => report_command(&args),
        Command::Demo(args) => tpcc::demo::demo(&args),
        Command::Rto(args) => tpcc::rto::rto(&args),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(failure) => {
            eprintln!("tpcc: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn target_of(args: &TargetArgs) -> Result<Target> {
    Target::new(&args.url, args.engine, args.schema.as_deref())
}

fn load_command(args: &LoadArgs) -> Result<bool> {
    let scale = Scale {
        warehouses: args.warehouses,
        items: args.items,
        customers: args.customers,
    };
    let options = LoadOptions {
        scale,
        seed: args.seed,
        workers: args.workers,
        keys_first: args.keys_first,
        foreign_keys: args.foreign_keys,
        verbose: true,
    };
    load(&target_of(&args.target)?, &options)?;
    Ok(true)
}

fn run_command(args: &RunArgs) -> Result<bool> {
    let target = target_of(&args.target)?.with_terminal_settings(&args.session_settings);
    if let Some(wanted) = args.warehouses {
        let loaded = LoadedConfig::read(&mut target.client()?)?.scale.warehouses;
        if loaded != wanted {
            let what = format!("{loaded} warehouses are loaded, --warehouses says {wanted}");
            return Err(Failure::unexpected(what));
        }
    }
    let options = RunOptions {
        terminals: args.terminals,
        duration: seconds(args.duration)?,
        warmup: seconds(args.warmup)?,
        mode: args.mode,
        seed: args.seed,
        ledger: args.ledger.clone(),
        fixed_warehouse: args.fixed_warehouse,
        rate: args.rate,
        progress: true,
    };
    let report = run(&target, &options, &mut ())?;
    print!("{report}");
    if let Some(path) = &args.json {
        let text = serde_json::to_string_pretty(&report)
            .map_err(|error| Failure::unexpected(error.to_string()))?;
        std::fs::write(path, text + "\n").map_err(|error| at(path, &error))?;
    }
    Ok(report.errors.is_empty() && (report.disconnects == 0 || args.tolerate_disconnect))
}

fn seconds(value: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(value)
        .map_err(|_| Failure::unexpected(format!("{value} is not a number of seconds")))
}

fn at(path: &std::path::Path, error: &dyn std::error::Error) -> Failure {
    Failure::unexpected(format!("{}: {error}", path.display()))
}

fn check_command(args: &TargetArgs) -> Result<bool> {
    let target = target_of(args)?;
    let holds = check::print(&check::check(&target)?);
    let complaints = check::table_complaints(&target)?;
    for complaint in &complaints {
        println!("{complaint}");
    }
    Ok(holds && complaints.is_empty())
}

fn ledger_check_command(args: &LedgerCheckArgs) -> Result<bool> {
    let ledger = Ledger::read(&args.ledger)?;
    let verdict = ledger_check::check(&target_of(&args.target)?, &ledger)?;
    print!("{verdict}");
    Ok(verdict.holds())
}

fn report_command(args: &ReportArgs) -> Result<bool> {
    for path in &args.files {
        let text = std::fs::read_to_string(path).map_err(|error| at(path, &error))?;
        let report: RunReport = serde_json::from_str(&text).map_err(|error| at(path, &error))?;
        println!("{report}");
    }
    Ok(true)
}
