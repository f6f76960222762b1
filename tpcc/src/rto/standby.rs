//! Failover: a synchronous standby takes over when the primary is killed under load.
//!
//! The clock runs from the kill of the primary to the first transaction that the standby has
//! committed. The decision to fail over is not timed: a tool that watches both servers adds its own
//! patience.

use super::drills::{Rig, verify};
use super::report::Failover;
use super::steady::{self, Steady};
use crate::cluster::{Cluster, scratch_directory};
use crate::failure::{Failure, Result};
use crate::target::{Target, execute, from_client};
use std::time::{Duration, Instant};

/// Name under which the primary knows the standby.
const STANDBY: &str = "rto_standby";
/// Time the standby gets to catch up before the load begins.
const PATIENCE: Duration = Duration::from_secs(300);
/// Pause between two tries.
const POLL: Duration = Duration::from_millis(5);

/// A transaction on a MOT table that leaves TPC-C's conditions alone.
const PROBE: &str = "UPDATE rto_probe SET n = n + 1";

pub(super) fn fail_over(rig: &mut Rig, steady: &mut Vec<Steady>) -> Result<Failover> {
    let mut client = rig.mot.client()?;
    execute(
        &mut client,
        "CREATE FOREIGN TABLE IF NOT EXISTS rto_probe (n int) SERVER mot; \
         INSERT INTO rto_probe VALUES (0)",
    )?;
    let directory = scratch_directory("mot-rto-standby");
    let begin = Instant::now();
    let mut standby = Cluster::standby_of(&rig.cluster, &directory, STANDBY)?;
    let backup_seconds = begin.elapsed().as_secs_f64();
    let begin = Instant::now();
    standby.start_and_wait()?;
    await_streaming(&mut client)?;
    let standby_start_seconds = begin.elapsed().as_secs_f64();
    if rig.size.steady_rounds > 0 {
        eprintln!("rto: runs with and without standby and checkpoints");
        steady.extend(steady::measure(rig, &mut standby, rig.size.steady_rounds)?);
    }
    make_synchronous(&mut client)?;
    drop(client);

    let path = rig
        .out
        .join(format!("failover-{}.ledger", rig.size.warehouses));
    let killed_at = rig.load_and_kill(path.clone(), 2000)?;
    let target = standby.target(rig.mot.engine, Some(&rig.mot.schema))?;
    let promoted_at = promote(&target)?;
    first_commit(&target)?;
    let seconds = killed_at.elapsed().as_secs_f64();
    // A promoted standby waits for no standby of its own.
    let verified = verify(&target, &path)?;
    standby.stop(crate::cluster::Shutdown::Fast)?;
    Ok(Failover {
        backup_seconds,
        standby_start_seconds,
        seconds,
        promote_seconds: (promoted_at - killed_at).as_secs_f64(),
        acknowledged: verified.acknowledged,
        acknowledged_lost: verified.lost,
        complaints: verified.complaints,
    })
}

/// Makes commits wait for the standby.
pub(super) fn make_synchronous(client: &mut postgres::Client) -> Result<()> {
    let set = format!("ALTER SYSTEM SET synchronous_standby_names = '{STANDBY}'");
    execute(client, &set)?;
    execute(client, "SELECT pg_reload_conf()")?;
    await_replication(client, "sync_state = 'sync' AND state = 'streaming'")
}

/// Makes them wait no longer.
pub(super) fn make_asynchronous(client: &mut postgres::Client) -> Result<()> {
    execute(client, "ALTER SYSTEM RESET synchronous_standby_names")?;
    execute(client, "SELECT pg_reload_conf()")?;
    await_replication(client, "sync_state = 'async'")
}

pub(super) fn await_streaming(client: &mut postgres::Client) -> Result<()> {
    await_replication(client, "state = 'streaming'")
}

/// Waits until the primary says so of its standby.
pub(super) fn await_replication(client: &mut postgres::Client, condition: &str) -> Result<()> {
    let query = format!("SELECT 1 FROM pg_stat_replication WHERE {condition}");
    let deadline = Instant::now() + PATIENCE;
    loop {
        let row = client.query_opt(&query, &[]).map_err(from_client)?;
        if row.is_some() {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(Failure::unexpected("the standby does not catch up"));
        }
        std::thread::sleep(POLL);
    }
}

fn promote(target: &Target) -> Result<Instant> {
    let mut client = target.client()?;
    // The standby must not wait for itself.
    client
        .query_one("SELECT pg_promote(true, 600)", &[])
        .map_err(from_client)?;
    Ok(Instant::now())
}

fn first_commit(target: &Target) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let tried = target
            .client()
            .and_then(|mut client| execute(&mut client, PROBE));
        match tried {
            Ok(()) => return Ok(()),
            Err(failure) if Instant::now() > deadline => return Err(failure),
            Err(_) => std::thread::sleep(POLL),
        }
    }
}
