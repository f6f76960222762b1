//! What replication and checkpoints cost while the server is up: tpmC with and without them, MOT and heap in turn, in rounds.
//!
//! A round runs every condition once on both engines; its figures are compared with each other only, since what the machine's other
//! tenants do changes from minute to minute. The report has the median of the rounds' ratios and their range. Primary, standby and
//! client share one machine here: what the standby's replay takes from the cores counts as cost, for both engines.
//!
//! Checkpoints run back to back, with PostgreSQL's fast CHECKPOINT: harder than the spread ones of everyday, and the same for both.

use super::drills::Rig;
use super::standby::{self, await_streaming};
use crate::cluster::{Cluster, Shutdown};
use crate::failure::{Failure, Result};
use crate::inputs::Kind;
use crate::run::run;
use crate::schema::Engine;
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

/// One run.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Steady {
    pub round: usize,
    pub condition: Condition,
    pub engine: Engine,
    pub tpmc: f64,
    /// 99th percentile of new orders, in milliseconds.
    pub p99_ms: f64,
    /// With a standby: the largest distance seen between the primary's last record and the last one replayed, in bytes.
    pub lag_bytes_max: Option<i64>,
    /// With a standby: from the end of the load until everything was replayed.
    pub catch_up_seconds: Option<f64>,
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
                runs.extend(both(rig, round, Condition::Asynchronous)?);
                standby::make_synchronous(&mut client)?;
                runs.extend(both(rig, round, Condition::Synchronous)?);
                standby::make_asynchronous(&mut client)?;
            } else {
                // The round before ended without it.
                if standby.postmaster_pid().is_ok() {
                    standby.stop(Shutdown::Fast)?;
                }
                runs.extend(both(rig, round, Condition::Alone)?);
                runs.extend(both(rig, round, Condition::Checkpoints)?);
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
fn both(rig: &Rig, round: usize, condition: Condition) -> Result<Vec<Steady>> {
    let mut order = [&rig.mot, &rig.heap];
    if round % 2 == 1 {
        order.reverse();
    }
    order
        .into_iter()
        .map(|target| one(rig, target, round, condition))
        .collect()
}

fn one(rig: &Rig, target: &Target, round: usize, condition: Condition) -> Result<Steady> {
    let mut client = target.client()?;
    execute(&mut client, "CHECKPOINT")?;
    let has_standby = matches!(condition, Condition::Asynchronous | Condition::Synchronous);
    let options = rig.steady_options();
    let is_over = AtomicBool::new(false);
    let (report, lag) = std::thread::scope(|scope| {
        let beside = scope.spawn(|| -> Result<i64> {
            let mut lag = 0;
            while !is_over.load(Ordering::Relaxed) {
                if condition == Condition::Checkpoints {
                    execute(&mut client, "CHECKPOINT")?;
                } else if has_standby {
                    lag = lag.max(distance(&mut client)?);
                }
                std::thread::sleep(PAUSE);
            }
            Ok(lag)
        });
        let report = run(target, &options, &mut ());
        is_over.store(true, Ordering::Relaxed);
        let lag = beside
            .join()
            .unwrap_or_else(|_| Err(Failure::unexpected("what ran beside the load panicked")))?;
        Ok::<_, Failure>((report?, lag))
    })?;
    if report.troubles() > 0 {
        let messages = format!("{:?}", report.first_messages);
        return Err(Failure::unexpected(format!("errors: {messages}")));
    }
    let catch_up_seconds = match has_standby {
        true => Some(catch_up(&mut target.client()?)?),
        false => None,
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
        lag_bytes_max: has_standby.then_some(lag),
        catch_up_seconds,
    })
}

/// Bytes of log the standby has yet to replay.
fn distance(client: &mut postgres::Client) -> Result<i64> {
    let query = "SELECT coalesce(max(pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)), 0)::bigint FROM pg_stat_replication";
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
