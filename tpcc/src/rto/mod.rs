//! `tpcc rto`: how long a server with memory-optimized tables is away, drill by drill and size by
//! size.
//!
//! Each size has a private server of its own with TPC-C on MOT and on heap tables. The drills: a
//! start after a clean shutdown (cold, and warm if the extension can), a start after kill -9 under
//! load, and a failover to a synchronous standby under load. What the client was told of is
//! compared with what is there after each crash. Heap tables of the same content give the measure:
//! their start-up, and the `pg_prewarm` after which they are in memory as MOT tables are.
//!
//! A figure is one drill's: a busy machine shows. What is larger than the machine bears is not run,
//! and named as such.

mod chart;
mod cost;
mod drills;
mod report;
mod standby;
mod steady;

use crate::cli::RtoArgs;
use crate::failure::{Failure, Result};
use drills::Rig;
use report::{Report, SizeReport};
use std::time::Instant;

/// One size of database.
#[derive(Clone, Copy, Debug)]
struct Size {
    warehouses: i32,
    /// A standby beside the primary needs the memory twice.
    with_standby: bool,
    /// Rounds in which is measured what replication and checkpoints cost; at one size.
    steady_rounds: usize,
}

/// A warehouse of MOT tables, its indexes and spare room after some minutes of load, in MB.
const WAREHOUSE_MB: i32 = 140;

/// Memory the arena has at least, in MB: the load of a few minutes adds orders whatever the size.
const ARENA_MB_MIN: i32 = 2048;

/// Rounds of the runs with and without standby and checkpoints, without `--quick`.
const STEADY_ROUNDS: usize = 3;

impl Size {
    fn arena_mb(self) -> i32 {
        ARENA_MB_MIN + self.warehouses * WAREHOUSE_MB
    }
}

/// The sizes: 10 warehouses are about 1 GB of rows.
fn sizes(args: &RtoArgs) -> Vec<Size> {
    let default: &[i32] = if args.quick { &[2, 10] } else { &[10, 40, 80] };
    let wanted = if args.warehouses.is_empty() {
        default
    } else {
        &args.warehouses
    };
    let memory_mb = memory_mb();
    wanted
        .iter()
        .enumerate()
        .map(|(number, &warehouses)| Size {
            warehouses,
            with_standby: true,
            steady_rounds: match number {
                0 => args
                    .rounds
                    .unwrap_or(if args.quick { 1 } else { STEADY_ROUNDS }),
                _ => 0,
            },
        })
        .map(|size| Size {
            with_standby: 2 * size.arena_mb() < memory_mb * 8 / 10,
            ..size
        })
        .collect()
}

/// Memory of the machine.
fn memory_mb() -> i32 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kilobytes = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))
        .and_then(|rest| rest.split_whitespace().next()?.parse::<i64>().ok());
    kilobytes.map_or(0, |kilobytes| (kilobytes / 1024) as i32)
}

/// Runs the drills; true if nothing acknowledged was lost and every check held.
pub fn rto(args: &RtoArgs) -> Result<bool> {
    let start = Instant::now();
    std::fs::create_dir_all(&args.out)
        .map_err(|error| Failure::unexpected(format!("{}: {error}", args.out.display())))?;
    let mut report = Report::new(args.quick);
    for size in sizes(args) {
        say(&format!("{} warehouses", size.warehouses));
        let measured = drill_all(args, size)?;
        report.sizes.push(measured);
        // After each size: a long run that is stopped has told what it knows.
        report.seconds_taken = start.elapsed().as_secs_f64();
        report.write(&args.out)?;
    }
    chart::write(&report, &args.out.join("rto.svg"))?;
    println!("{}", report.render());
    println!("written to {}", args.out.display());
    Ok(report.is_good())
}

fn drill_all(args: &RtoArgs, size: Size) -> Result<SizeReport> {
    let mut rig = Rig::new(args, size)?;
    let mut report = SizeReport::new(size.warehouses);
    let outcome = drill(&mut rig, size, &mut report);
    if let Err(failure) = outcome {
        eprintln!("the server's last words:\n{}", rig.log_tail());
        return Err(failure);
    }
    Ok(report)
}

fn drill(rig: &mut Rig, size: Size, report: &mut SizeReport) -> Result<()> {
    rig.load(report)?;
    say("start after a clean shutdown");
    rig.cold_start(report)?;
    say("warm restart");
    rig.warm_restart(report)?;
    say("kill -9 under load");
    rig.crash(report)?;
    if size.with_standby {
        say("failover to a synchronous standby under load");
        rig.fail_over(report)?;
    } else {
        report
            .notes
            .push("failover not run: primary and standby do not fit into memory together".into());
    }
    Ok(())
}

fn say(what: &str) {
    eprintln!("rto: {what}");
}
