//! TPC-C by the driver of this tree: throughput, response times, CPU time and WAL, synchronous
//! commit.
//!
//! VACUUM and ANALYZE precede every run, so that no run pays for another's dead rows or plans by
//! what the tables were before it; then a CHECKPOINT, as in `tpcc demo`. Response times are also
//! taken at equal load, where both kinds of table get the same number of transactions per second: a
//! share of what heap tables manage.

use super::Bench;
use crate::plan::TpccSetting;
use crate::record::{Place, Record, quantity};
use crate::rig::Rig;
use crate::side::{Side, turns};
use std::time::Duration;
use tpcc::check;
use tpcc::cluster::Cluster;
use tpcc::engine::Engine;
use tpcc::failure::{Failure, Result};
use tpcc::inputs::Kind;
use tpcc::load::{LoadOptions, load};
use tpcc::meter::{Measured, ServerMeter};
use tpcc::processes::own_cpu_time;
use tpcc::run::{Observer, RunOptions, run};
use tpcc::schema::{TABLES, analyze};
use tpcc::target::{Target, execute};
use tpcc::terminal::Mode;

pub(crate) const PART: &str = "tpcc";
/// Share of the heap tables' throughput at which response times are compared.
const EQUAL_LOAD: f64 = 0.7;
/// What the names of settings at equal load end with.
pub(crate) const EQUAL_LOAD_SUFFIX: &str = ", equal load";
/// What the names of settings with foreign keys have.
pub(crate) const FOREIGN_KEYS: &str = ", foreign keys";
/// Rounds at equal load: a response time has thousands of values in each, but the nine in ten are
/// several times longer in a round in which the machine is given to others, and only the third
/// round's tell which of two was that.
const EQUAL_LOAD_ROUNDS: usize = 3;
const SEED: u64 = 1;
const SIDES: [Side; 2] = [Side::Mot, Side::Heap];

/// Settings of the terminals' sessions, for both: `tpcc demo` says why.
const TERMINAL_SETTINGS: [&str; 2] = ["enable_hashjoin=off", "enable_mergejoin=off"];

/// How a setting is called.
pub(crate) fn setting(of: TpccSetting) -> String {
    let keys = if of.foreign_keys { FOREIGN_KEYS } else { "" };
    let (warehouses, terminals) = (of.warehouses, of.terminals);
    format!("{warehouses} warehouses, {terminals} terminals{keys}")
}

/// How the same at equal load is called.
pub(crate) fn equal_load(of: TpccSetting) -> String {
    format!("{}{EQUAL_LOAD_SUFFIX}", setting(of))
}

/// What the names of quantities of response times begin with.
pub(crate) const P90: &str = "p90 ms of ";

/// The quantity of a type's response time that nine of ten stay below.
pub(crate) fn p90(kind: Kind) -> String {
    format!("{P90}{}", kind.name())
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
        let tables = (at.warehouses, at.foreign_keys);
        if loaded.replace(tables) != Some(tables) {
            load_both(bench, at)?;
        }
        for mode in modes {
            if bench.wants(&mode.to_string()) && (at.interactive || mode == Mode::Procedures) {
                throughput(bench, at, mode)?;
            }
        }
        if setting(at) == setting(plan.tpcc_main()) {
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
        "response times are those at equal load, {EQUAL_LOAD} of the heap tables' throughput; all consistency \
         conditions hold"
    ));
    Ok(())
}

/// Loads TPC-C's tables of both kinds.
pub(crate) fn load_both(bench: &mut Bench<'_>, at: TpccSetting) -> Result<()> {
    let warehouses = at.warehouses;
    for side in SIDES {
        bench.say(&format!("loading {warehouses} warehouses, {side}"));
        let options = LoadOptions {
            scale: (bench.rig.plan.tpcc_scale)(warehouses),
            seed: SEED,
            workers: std::thread::available_parallelism().map_or(2, |cores| cores.get().min(4)),
            keys_first: false,
            foreign_keys: at.foreign_keys,
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
            let (measured, curves) = run_watched(
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
                bench.record.add_curve(&place, side, curves.per_second);
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
            bench.say(&format!(
                "{mode} {round} {side}, equal load: {:.0} transactions a second",
                measured.report.tpm_total / 60.0
            ));
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

/// Before each run: the tables as everyday operation keeps them, and for all the same distance from
/// the last checkpoint.
fn settle(rig: &Rig, side: Side) -> Result<()> {
    let engine = engine_of(side);
    let mut client = rig.tpcc(engine)?.client()?;
    for table in &TABLES {
        execute(&mut client, &analyze(table))?;
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

/// What happened in each second of a run.
#[derive(Debug, PartialEq)]
pub(crate) struct Curves {
    /// Transactions that ended.
    pub per_second: Vec<u64>,
    /// Transactions for a second of the server processes' processor time: where the machine is
    /// given to others, fewer end, but each takes what it takes.
    pub per_cpu_second: Vec<u64>,
}

/// A run, what it cost the server, and each of its seconds. `look_into_wal` as for
/// [`ServerMeter::finish`]; no checkpoint may have taken the WAL away.
pub(crate) fn run_watched(
    cluster: &Cluster,
    target: &Target,
    options: &RunOptions,
    look_into_wal: bool,
) -> Result<(Measured, Curves)> {
    let mut watch = Watch {
        meter: ServerMeter::new(cluster)?,
        cluster,
        seconds: Vec::new(),
        ended: 0,
        failure: None,
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
    if let Some(failure) = watch.failure {
        return Err(failure);
    }
    Ok((
        watch.meter.finish(report, client_cpu, look_into_wal)?,
        curves(&watch.seconds),
    ))
}

/// What there was at the end of a second of a run.
#[derive(Clone, Copy, Default)]
struct Second {
    /// Transactions that had ended.
    ended: u64,
    /// Processor time of all server processes since the server's start.
    cpu: Duration,
}

/// Looks at the server when the measurement begins and ends, and every second of it.
struct Watch<'a> {
    meter: ServerMeter<'a>,
    cluster: &'a Cluster,
    /// The begin, and the end of each second.
    seconds: Vec<Second>,
    ended: u64,
    /// Why the processor time could not be read: an observer has nobody to tell.
    failure: Option<Failure>,
}

impl Watch<'_> {
    /// As many entries as there are ends of seconds until `passed`, and the begin.
    fn note(&mut self, passed: Duration) {
        let due = 1 + passed.as_secs() as usize;
        if self.seconds.len() >= due {
            return;
        }
        match self.cluster.cpu_time() {
            Ok(cpu) => self.seconds.resize(
                due,
                Second {
                    ended: self.ended,
                    cpu,
                },
            ),
            Err(failure) => self.failure = self.failure.take().or(Some(failure)),
        }
    }
}

impl Observer for Watch<'_> {
    fn measurement_begins(&mut self) {
        self.meter.measurement_begins();
        self.note(Duration::ZERO);
    }

    fn tick(&mut self, passed: Duration, ended: u64) {
        self.note(passed);
        self.ended = ended;
    }

    fn measurement_ended(&mut self) {
        self.meter.measurement_ended();
    }
}

fn curves(seconds: &[Second]) -> Curves {
    let each = seconds.windows(2).map(|pair| {
        let ended = pair[1].ended - pair[0].ended;
        // A process that ends while it is looked at can be missed once.
        let cpu = pair[1].cpu.saturating_sub(pair[0].cpu);
        (ended, cpu.as_secs_f64())
    });
    let (per_second, per_cpu_second) = each
        .map(|(ended, cpu)| match cpu > 0.0 {
            true => (ended, (ended as f64 / cpu) as u64),
            // Less than the clock of processes shows: as nothing ended, or a second that was made
            // up for.
            false => (ended, 0),
        })
        .unzip();
    Curves {
        per_second,
        per_cpu_second,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_become_differences() {
        let second = |ended, millis| Second {
            ended,
            cpu: Duration::from_millis(millis),
        };
        let seen = curves(&[
            second(0, 700),
            second(500, 1200),
            second(500, 1200),
            second(900, 3200),
        ]);
        assert_eq!(
            seen,
            Curves {
                per_second: vec![500, 0, 400],
                per_cpu_second: vec![1000, 0, 200],
            }
        );
        assert!(curves(&[]).per_second.is_empty());
    }
}
