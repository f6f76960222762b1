//! TPC-C by the driver of this tree: throughput, response times, CPU time and WAL, synchronous commit.
//!
//! VACUUM and ANALYZE precede every run, so that no run pays for another's dead rows or plans by what the tables were before it; then a
//! CHECKPOINT, as in `tpcc demo`. Response times are also taken at equal load, where both kinds of table get
//! the same number of transactions per second: a share of what heap tables manage.

use super::Bench;
use crate::plan::TpccSetting;
use crate::record::{Place, Record, quantity};
use crate::rig::Rig;
use crate::side::{Side, turns};
use std::time::Duration;
use tpcc::check;
use tpcc::cluster::Cluster;
use tpcc::failure::{Failure, Result};
use tpcc::inputs::Kind;
use tpcc::load::{LoadOptions, load};
use tpcc::meter::{Measured, ServerMeter};
use tpcc::processes::own_cpu_time;
use tpcc::run::{Observer, RunOptions, run};
use tpcc::schema::{Engine, TABLES, analyze};
use tpcc::target::{Target, execute};
use tpcc::terminal::Mode;

pub(crate) const PART: &str = "tpcc";
/// Share of the heap tables' throughput at which response times are compared.
const EQUAL_LOAD: f64 = 0.7;
/// What the names of settings at equal load end with.
pub(crate) const EQUAL_LOAD_SUFFIX: &str = ", equal load";
/// Rounds at equal load: a response time has thousands of values in each.
const EQUAL_LOAD_ROUNDS: usize = 2;
const SEED: u64 = 1;
const SIDES: [Side; 2] = [Side::Mot, Side::Heap];

/// Settings of the terminals' sessions, for both: `tpcc demo` says why.
const TERMINAL_SETTINGS: [&str; 2] = ["enable_hashjoin=off", "enable_mergejoin=off"];

/// How a setting is called.
pub(crate) fn setting(of: TpccSetting) -> String {
    format!("{} warehouses, {} terminals", of.warehouses, of.terminals)
}

/// How the same at equal load is called.
pub(crate) fn equal_load(of: TpccSetting) -> String {
    format!("{}{EQUAL_LOAD_SUFFIX}", setting(of))
}

/// The quantity of a type's response time that nine of ten stay below.
pub(crate) fn p90(kind: Kind) -> String {
    format!("p90 ms of {}", kind.name())
}

pub(crate) fn engine_of(side: Side) -> Engine {
    if side == Side::Mot {
        Engine::Mot
    } else {
        Engine::Heap
    }
}

pub(crate) fn measure(bench: &mut Bench<'_>) -> Result<()> {
    let plan = bench.rig.plan.clone();
    let mut loaded = None;
    let modes = [Mode::Interactive, Mode::Procedures];
    for &at in plan.tpcc {
        if loaded.replace(at.warehouses) != Some(at.warehouses) {
            load_both(bench, at.warehouses)?;
        }
        for mode in modes {
            if bench.wants(&mode.to_string()) && (at.interactive || mode == Mode::Procedures) {
                throughput(bench, at, mode)?;
            }
        }
        if at.terminals == plan.tpcc_main().terminals
            && at.warehouses == plan.tpcc_main().warehouses
        {
            for mode in modes {
                if bench.wants(&mode.to_string()) {
                    at_equal_load(bench, at, mode)?;
                }
            }
        }
    }
    for side in SIDES {
        let violations = check::violations(&check::check(&bench.rig.tpcc(engine_of(side))?)?);
        if violations > 0 {
            return Err(Failure::unexpected(format!(
                "{violations} violations of TPC-C's consistency on {side}"
            )));
        }
    }
    bench.notes.push(format!(
        "VACUUM (ANALYZE) or ANALYZE and a CHECKPOINT before each run; equal load is {EQUAL_LOAD} of the heap tables' throughput; all consistency conditions hold"
    ));
    Ok(())
}

/// Loads TPC-C's tables of both kinds.
pub(crate) fn load_both(bench: &mut Bench<'_>, warehouses: i32) -> Result<()> {
    for side in SIDES {
        bench.say(&format!("loading {warehouses} warehouses, {side}"));
        let options = LoadOptions {
            scale: (bench.rig.plan.tpcc_scale)(warehouses),
            seed: SEED,
            workers: std::thread::available_parallelism().map_or(2, |cores| cores.get().min(4)),
            keys_first: false,
            verbose: false,
        };
        load(&bench.rig.tpcc(engine_of(side))?, &options)?;
    }
    Ok(())
}

fn throughput(bench: &mut Bench<'_>, at: TpccSetting, mode: Mode) -> Result<()> {
    let place = Place::new(PART, mode.to_string(), setting(at));
    for round in 0..bench.rig.plan.rounds {
        for side in turns(&SIDES, round) {
            settle(bench.rig, side)?;
            let options = options(bench.rig, at, mode, round, None);
            let (measured, per_second) = run_watched(
                &bench.rig.cluster,
                &target(bench.rig, side)?,
                &options,
                true,
            )?;
            bench.say(&format!(
                "{mode} {round} {side}: tpmC {:.0}",
                measured.report.tpmc
            ));
            add(bench.record, &place, side, &measured);
            if round == 0 {
                bench.record.add_curve(&place, side, per_second);
            }
        }
    }
    Ok(())
}

fn at_equal_load(bench: &mut Bench<'_>, at: TpccSetting, mode: Mode) -> Result<()> {
    let free = Place::new(PART, mode.to_string(), setting(at));
    let heap = bench.record.median(&free, Side::Heap, quantity::PER_SECOND);
    let rate = heap
        .ok_or_else(|| Failure::unexpected("the heap tables' throughput is not known"))?
        * EQUAL_LOAD;
    let place = Place::new(PART, mode.to_string(), equal_load(at));
    for round in 0..bench.rig.plan.rounds.min(EQUAL_LOAD_ROUNDS) {
        for side in turns(&SIDES, round) {
            settle(bench.rig, side)?;
            let options = options(bench.rig, at, mode, round, Some(rate));
            let (measured, _) = run_watched(
                &bench.rig.cluster,
                &target(bench.rig, side)?,
                &options,
                true,
            )?;
            add(bench.record, &place, side, &measured);
        }
    }
    Ok(())
}

pub(crate) fn target(rig: &Rig, side: Side) -> Result<Target> {
    Ok(rig
        .tpcc(engine_of(side))?
        .with_terminal_settings(&TERMINAL_SETTINGS))
}

/// Before each run: the tables as everyday operation keeps them, and for all the same distance from the last checkpoint.
fn settle(rig: &Rig, side: Side) -> Result<()> {
    let engine = engine_of(side);
    let mut client = rig.tpcc(engine)?.client()?;
    for table in &TABLES {
        execute(&mut client, &analyze(engine, table))?;
    }
    rig.checkpoint()
}

/// A run's options; both kinds of table get the same inputs in a round.
pub(crate) fn options(
    rig: &Rig,
    at: TpccSetting,
    mode: Mode,
    round: usize,
    rate: Option<f64>,
) -> RunOptions {
    RunOptions {
        terminals: at.terminals,
        duration: rig.plan.tpcc_duration,
        warmup: rig.plan.tpcc_warmup,
        mode,
        seed: SEED + round as u64,
        ledger: None,
        fixed_warehouse: false,
        rate,
        progress: false,
    }
}

fn add(record: &mut Record, place: &Place, side: Side, measured: &Measured) {
    let report = &measured.report;
    let transactions = report.transactions.max(1) as f64;
    let wal = measured.wal_bytes as f64 / transactions;
    let without_images = wal * (1.0 - measured.full_page_share.unwrap_or(0.0));
    for (quantity, value) in [
        (quantity::PER_SECOND, report.tpm_total / 60.0),
        (
            quantity::SERVER_CPU,
            measured.server_cpu.as_secs_f64() * 1e6 / transactions,
        ),
        (quantity::WAL_BYTES, wal),
        (quantity::WAL_RECORD_BYTES, without_images),
    ] {
        record.add(place, side, quantity, value);
    }
    for kind in Kind::ALL {
        if let Some(latency) = report.latency_of(kind).filter(|latency| latency.count > 0) {
            record.add(place, side, &p90(kind), latency.p90_ms);
        }
    }
}

/// A run, what it cost the server, and the transactions that ended in each of its seconds. `look_into_wal` as for
/// [`ServerMeter::finish`]; no checkpoint may have taken the WAL away.
pub(crate) fn run_watched(
    cluster: &Cluster,
    target: &Target,
    options: &RunOptions,
    look_into_wal: bool,
) -> Result<(Measured, Vec<u64>)> {
    let mut watch = Watch {
        meter: ServerMeter::new(cluster)?,
        ended_by: Vec::new(),
        ended: 0,
    };
    let before = own_cpu_time();
    let report = run(target, options, &mut watch)?;
    let client_cpu = own_cpu_time() - before;
    if report.troubles() + report.disconnects > 0 {
        return Err(Failure::unexpected(format!(
            "TPC-C met errors: {:?}",
            report.first_messages
        )));
    }
    let per_second = per_second(&watch.ended_by);
    Ok((
        watch.meter.finish(report, client_cpu, look_into_wal)?,
        per_second,
    ))
}

/// Looks at the server when the measurement begins and ends, and at the transactions every second of it.
struct Watch<'a> {
    meter: ServerMeter<'a>,
    /// Transactions that had ended by the end of each second.
    ended_by: Vec<u64>,
    ended: u64,
}

impl Observer for Watch<'_> {
    fn measurement_begins(&mut self) {
        self.meter.measurement_begins();
    }

    fn tick(&mut self, passed: Duration, ended: u64) {
        while (self.ended_by.len() as u64) < passed.as_secs() {
            self.ended_by.push(self.ended);
        }
        self.ended = ended;
    }

    fn measurement_ended(&mut self) {
        self.meter.measurement_ended();
    }
}

fn per_second(ended_by: &[u64]) -> Vec<u64> {
    let before = std::iter::once(&0).chain(ended_by);
    ended_by
        .iter()
        .zip(before)
        .map(|(now, before)| now - before)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_become_differences() {
        assert_eq!(per_second(&[5, 5, 9]), [5, 0, 4]);
        assert!(per_second(&[]).is_empty());
    }
}
