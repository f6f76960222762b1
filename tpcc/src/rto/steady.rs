//! What replication and checkpoints cost while the server is up: tpmC with and without them, MOT and heap in turn.
//!
//! Checkpoints run back to back, with PostgreSQL's fast CHECKPOINT: harder than the spread ones of everyday, and the same for both.

use super::drills::Rig;
use crate::failure::{Failure, Result};
use crate::inputs::Kind;
use crate::run::run;
use crate::schema::Engine;
use crate::target::{Target, execute};
use serde::Serialize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Pause between two checkpoints.
const CHECKPOINT_PAUSE: Duration = Duration::from_millis(200);

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
    pub condition: Condition,
    pub engine: Engine,
    pub tpmc: f64,
    /// 99th percentile of new orders, in milliseconds.
    pub p99_ms: f64,
}

/// Measures both engines under one condition.
pub(super) fn measure(rig: &Rig, condition: Condition) -> Result<Vec<Steady>> {
    [&rig.mot, &rig.heap]
        .into_iter()
        .map(|target| measure_one(rig, target, condition))
        .collect()
}

fn measure_one(rig: &Rig, target: &Target, condition: Condition) -> Result<Steady> {
    let mut client = target.client()?;
    execute(&mut client, "CHECKPOINT")?;
    let options = rig.steady_options();
    let is_over = AtomicBool::new(false);
    let report = std::thread::scope(|scope| {
        let checkpoints = scope.spawn(|| -> Result<()> {
            while condition == Condition::Checkpoints && !is_over.load(Ordering::Relaxed) {
                execute(&mut client, "CHECKPOINT")?;
                std::thread::sleep(CHECKPOINT_PAUSE);
            }
            Ok(())
        });
        let report = run(target, &options, &mut ());
        is_over.store(true, Ordering::Relaxed);
        checkpoints
            .join()
            .unwrap_or_else(|_| Err(Failure::unexpected("the checkpoints panicked")))?;
        report
    })?;
    if report.troubles() > 0 {
        let messages = format!("{:?}", report.first_messages);
        return Err(Failure::unexpected(format!("errors: {messages}")));
    }
    let p99_ms = report
        .latency_of(Kind::NewOrder)
        .map_or(f64::NAN, |latency| latency.p99_ms);
    Ok(Steady {
        condition,
        engine: target.engine,
        tpmc: report.tpmc,
        p99_ms,
    })
}
