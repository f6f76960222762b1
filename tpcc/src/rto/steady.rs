//! What replication and checkpoints cost while the server is up: tpmC with and without them, MOT
//! and heap in turn, in rounds.
//!
//! A round runs every condition once on both engines; its figures are compared with each other
//! only, since what the machine's other tenants do changes from minute to minute. The report has
//! the median of the rounds' ratios and their range. Primary, standby and client share one machine
//! here: what the standby's replay takes from the cores counts as cost in tpmC, for both engines. A
//! standby has a machine of its own elsewhere; there replication costs what the primary's own
//! processes pay for it. So CPU time per transaction is told apart, too: the primary's (backends,
//! walsender, workers) with and without a standby, and the standby's.
//!
//! Checkpoints run back to back, with PostgreSQL's fast CHECKPOINT: harder than the spread ones of
//! everyday, and the same for both.

use super::drills::Rig;
use super::standby::{self, await_streaming};
use crate::cluster::{Cluster, Shutdown};
use crate::engine::Engine;
use crate::failure::{Failure, Result};
use crate::inputs::Kind;
use crate::run::{Observer, run};
use crate::target::{Target, execute, from_client};
use serde::Serialize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Pause between two checkpoints, and between two looks at the standby.
const PAUSE: Duration = Duration::from_millis(200);

/// Under what the runs were measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Condition {
    /// No standby, no checkpoint.
    Alone,
    /// Checkpoints back to back.
    Checkpoints,
    /// An asynchronous standby.
    Asynchronous,
    /// A synchronous standby.
    Synchronous,
}

/// CPU time of a server, in microseconds for each transaction that the clients ended.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct CpuMicros {
    /// Of all its processes.
    pub all: f64,
    /// Of these, the one that sends the log (primary) or replays it (standby).
    pub log: f64,
}

/// One run.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Steady {
    pub round: usize,
    pub condition: Condition,
    pub engine: Engine,
    pub tpmc: f64,
    /// 99th percentile of new orders, in milliseconds.
    pub p99_ms: f64,
    /// Of the primary, during the measurement.
    pub primary_cpu_us: CpuMicros,
    /// Of the standby, from the measurement's begin until everything was replayed.
    pub standby_cpu_us: Option<CpuMicros>,
    /// With checkpoints: how many were completed beside the load.
    pub checkpoints: Option<u32>,
    /// With a standby: the largest distance seen between the primary's last record and the last one
    /// replayed, in bytes.
    pub lag_bytes_max: Option<i64>,
    /// With a standby: from the end of the load until everything was replayed.
    pub catch_up_seconds: Option<f64>,
}

/// CPU time of a server so far, and of that one of its processes with this title.
#[derive(Clone, Copy, Default)]
struct Spent {
    all: Duration,
    log: Duration,
}

impl Spent {
    fn by(server: &Cluster, title: &str) -> Result<Spent> {
        Ok(Spent {
            all: server.cpu_time()?,
            log: server.cpu_time_titled(title)?,
        })
    }

    fn since(self, before: Spent, transactions: u64) -> CpuMicros {
        let micros = |now: Duration, before: Duration| {
            now.saturating_sub(before).as_secs_f64() * 1e6 / transactions.max(1) as f64
        };
        CpuMicros {
            all: micros(self.all, before.all),
            log: micros(self.log, before.log),
        }
    }
}

const WALSENDER: &str = "postgres: walsender";
const STARTUP: &str = "postgres: startup";

/// Looks at the servers' CPU time when the measurement begins and ends.
struct CpuMeter<'a> {
    primary: &'a Cluster,
    standby: Option<&'a Cluster>,
    outcome: Result<()>,
    primary_before: Spent,
    primary_after: Spent,
    standby_before: Spent,
}

impl CpuMeter<'_> {
    fn begin(&mut self) -> Result<()> {
        self.primary_before = Spent::by(self.primary, WALSENDER)?;
        if let Some(standby) = self.standby {
            self.standby_before = Spent::by(standby, STARTUP)?;
        }
        Ok(())
    }
}

impl Observer for CpuMeter<'_> {
    fn measurement_begins(&mut self) {
        self.outcome = self.begin();
    }

    fn measurement_ended(&mut self) {
        match Spent::by(self.primary, WALSENDER) {
            Ok(spent) => self.primary_after = spent,
            Err(failure) => self.outcome = Err(failure),
        }
    }
}

/// Runs `rounds` rounds. The standby is streaming and asynchronous at the beginning and at the end.
pub(super) fn measure(rig: &Rig, standby: &mut Cluster, rounds: usize) -> Result<Vec<Steady>> {
    let mut runs = Vec::new();
    for round in 0..rounds {
        // The halves change places, so that the standby is stopped and started once a round.
        let with_standby_first = round % 2 == 0;
        for with_standby in [with_standby_first, !with_standby_first] {
            let mut client = rig.mot.client()?;
            if with_standby {
                if standby.postmaster_pid().is_err() {
                    standby.start_and_wait()?;
                }
                await_streaming(&mut client)?;
                catch_up(&mut client)?;
                let beside = Some(&*standby);
                runs.extend(both(rig, beside, round, Condition::Asynchronous)?);
                standby::make_synchronous(&mut client)?;
                runs.extend(both(rig, beside, round, Condition::Synchronous)?);
                standby::make_asynchronous(&mut client)?;
            } else {
                // The round before ended without it.
                if standby.postmaster_pid().is_ok() {
                    standby.stop(Shutdown::Fast)?;
                }
                runs.extend(both(rig, None, round, Condition::Alone)?);
                runs.extend(both(rig, None, round, Condition::Checkpoints)?);
            }
        }
    }
    if standby.postmaster_pid().is_err() {
        standby.start_and_wait()?;
    }
    let mut client = rig.mot.client()?;
    await_streaming(&mut client)?;
    catch_up(&mut client)?;
    Ok(runs)
}

/// Both engines under one condition; who is first changes from round to round.
fn both(
    rig: &Rig,
    standby: Option<&Cluster>,
    round: usize,
    condition: Condition,
) -> Result<Vec<Steady>> {
    let mut order = [&rig.mot, &rig.heap];
    if round % 2 == 1 {
        order.reverse();
    }
    order
        .into_iter()
        .map(|target| one(rig, standby, target, round, condition))
        .collect()
}

fn one(
    rig: &Rig,
    standby: Option<&Cluster>,
    target: &Target,
    round: usize,
    condition: Condition,
) -> Result<Steady> {
    let mut client = target.client()?;
    execute(&mut client, "CHECKPOINT")?;
    let has_standby = standby.is_some();
    let mut meter = CpuMeter {
        primary: &rig.cluster,
        standby,
        outcome: Ok(()),
        primary_before: Spent::default(),
        primary_after: Spent::default(),
        standby_before: Spent::default(),
    };
    let options = rig.steady_options();
    let is_over = AtomicBool::new(false);
    let (report, lag, checkpoints) = std::thread::scope(|scope| {
        let beside = scope.spawn(|| -> Result<(i64, u32)> {
            let (mut lag, mut checkpoints) = (0, 0);
            while !is_over.load(Ordering::Relaxed) {
                if condition == Condition::Checkpoints {
                    execute(&mut client, "CHECKPOINT")?;
                    checkpoints += 1;
                } else if has_standby {
                    lag = lag.max(distance(&mut client)?);
                }
                std::thread::sleep(PAUSE);
            }
            Ok((lag, checkpoints))
        });
        let report = run(target, &options, &mut meter);
        is_over.store(true, Ordering::Relaxed);
        let (lag, checkpoints) = beside
            .join()
            .unwrap_or_else(|_| Err(Failure::unexpected("what ran beside the load panicked")))?;
        Ok::<_, Failure>((report?, lag, checkpoints))
    })?;
    meter.outcome?;
    if report.troubles() > 0 {
        let messages = format!("{:?}", report.first_messages);
        return Err(Failure::unexpected(format!("errors: {messages}")));
    }
    let catch_up_seconds = match has_standby {
        true => Some(catch_up(&mut target.client()?)?),
        false => None,
    };
    let primary_cpu_us = meter
        .primary_after
        .since(meter.primary_before, report.transactions);
    let standby_cpu_us = match standby {
        Some(standby) => {
            let spent = Spent::by(standby, STARTUP)?;
            Some(spent.since(meter.standby_before, report.transactions))
        }
        None => None,
    };
    let p99_ms = report
        .latency_of(Kind::NewOrder)
        .map_or(f64::NAN, |latency| latency.p99_ms);
    Ok(Steady {
        round,
        condition,
        engine: target.engine,
        tpmc: report.tpmc,
        p99_ms,
        primary_cpu_us,
        standby_cpu_us,
        checkpoints: (condition == Condition::Checkpoints).then_some(checkpoints),
        lag_bytes_max: has_standby.then_some(lag),
        catch_up_seconds,
    })
}

/// Bytes of log the standby has yet to replay.
fn distance(client: &mut postgres::Client) -> Result<i64> {
    let query = "SELECT coalesce(max(pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)), 0)::bigint FROM \
        pg_stat_replication";
    Ok(client.query_one(query, &[]).map_err(from_client)?.get(0))
}

/// Waits until the standby has replayed what is there now; the seconds it took.
fn catch_up(client: &mut postgres::Client) -> Result<f64> {
    let begin = Instant::now();
    let end: String = client
        .query_one("SELECT pg_current_wal_lsn()::text", &[])
        .map_err(from_client)?
        .get(0);
    standby::await_replication(client, &format!("replay_lsn >= '{end}'::pg_lsn"))?;
    Ok(begin.elapsed().as_secs_f64())
}
