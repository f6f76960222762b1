//! What the drills found: as text, and as `summary.json`.

mod figures;
mod render;

use super::drills::Verified;
use super::steady::Steady;
use crate::failure::{Failure, Result};
use serde::Serialize;
use serde_json::{Value, json};
use std::path::Path;

/// A start of the server.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Start {
    /// Until the server answers at all.
    pub up_seconds: f64,
    /// Until a row of a MOT table is read.
    pub first_query_seconds: f64,
    /// mot.stat_recovery after it.
    pub server: Value,
    /// The extension's lines in the server's log.
    pub log: Vec<String>,
}

impl Start {
    fn number(&self, name: &str) -> f64 {
        self.server.get(name).and_then(Value::as_f64).unwrap_or(0.0)
    }

    /// Seconds the extension needed for checkpoint files, rows and indexes.
    fn load_seconds(&self) -> f64 {
        self.number("load_ms") / 1e3
    }

    /// Row changes replayed per second, if the server counted both.
    fn changes_per_second(&self) -> Option<f64> {
        let seconds = self.number("replay_ms") / 1e3;
        (seconds > 0.0).then(|| self.number("changes_replayed") / seconds)
    }
}

/// Heap tables of the same content.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Heap {
    pub up_seconds: f64,
    pub prewarm_seconds: f64,
}

/// Start after kill -9 under load.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Crash {
    pub start: Start,
    pub acknowledged: usize,
    pub acknowledged_lost: usize,
    pub complaints: Vec<String>,
}

impl Crash {
    pub(super) fn new(start: Start, verified: Verified) -> Self {
        Crash {
            start,
            acknowledged: verified.acknowledged,
            acknowledged_lost: verified.lost,
            complaints: verified.complaints,
        }
    }
}

/// Failover under load.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Failover {
    pub backup_seconds: f64,
    pub standby_start_seconds: f64,
    /// From the kill to the first committed transaction.
    pub seconds: f64,
    /// Of these, until the standby said that it is promoted.
    pub promote_seconds: f64,
    pub acknowledged: usize,
    pub acknowledged_lost: usize,
    pub complaints: Vec<String>,
}

/// One size.
#[derive(Clone, Debug, Serialize)]
pub(super) struct SizeReport {
    pub warehouses: i32,
    /// Rows and indexes in memory.
    pub mot_bytes: i64,
    pub cold_start: Option<Start>,
    pub heap: Option<Heap>,
    pub warm_restart: Option<Start>,
    pub crash: Option<Crash>,
    pub failover: Option<Failover>,
    /// Runs with and without replication and checkpoints.
    pub steady: Vec<Steady>,
    pub notes: Vec<String>,
}

impl SizeReport {
    pub(super) fn new(warehouses: i32) -> Self {
        SizeReport {
            warehouses,
            mot_bytes: 0,
            cold_start: None,
            heap: None,
            warm_restart: None,
            crash: None,
            failover: None,
            steady: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Name, seconds: the bars of the chart, for what was run.
    pub(super) fn bars(&self) -> Vec<(&'static str, f64)> {
        let heap = self
            .heap
            .as_ref()
            .map(|heap| heap.up_seconds + heap.prewarm_seconds);
        let first = |start: &Start| start.first_query_seconds;
        [
            ("cold start", self.cold_start.as_ref().map(first)),
            ("heap: start + prewarm", heap),
            ("warm restart", self.warm_restart.as_ref().map(first)),
            (
                "crash recovery",
                self.crash.as_ref().map(|crash| first(&crash.start)),
            ),
            (
                "failover",
                self.failover.as_ref().map(|failover| failover.seconds),
            ),
        ]
        .into_iter()
        .filter_map(|(name, seconds)| Some((name, seconds?)))
        .collect()
    }

    fn lost(&self) -> usize {
        let crash = self.crash.as_ref().map_or(0, |it| it.acknowledged_lost);
        let failover = self.failover.as_ref().map_or(0, |it| it.acknowledged_lost);
        crash + failover
    }

    fn complaints(&self) -> Vec<&String> {
        let crash = self.crash.iter().flat_map(|it| &it.complaints);
        let failover = self.failover.iter().flat_map(|it| &it.complaints);
        crash.chain(failover).collect()
    }
}

/// All of it.
pub(super) struct Report {
    quick: bool,
    pub sizes: Vec<SizeReport>,
    pub seconds_taken: f64,
}

impl Report {
    pub(super) fn new(quick: bool) -> Self {
        Report {
            quick,
            sizes: Vec::new(),
            seconds_taken: 0.0,
        }
    }

    /// True if nothing acknowledged was lost and every check held.
    pub(super) fn is_good(&self) -> bool {
        self.sizes
            .iter()
            .all(|size| size.lost() == 0 && size.complaints().is_empty())
    }

    /// Writes `summary.json` and `report.txt` into `out`. The top level has the largest size's
    /// figures; "sizes" has all.
    pub(super) fn write(&self, out: &Path) -> Result<()> {
        let largest_with = |name: &str| {
            let figures = self.sizes.iter().rev().map(SizeReport::figures);
            figures
                .filter_map(|figures| figures.get(name).cloned())
                .find(|value| !value.is_null())
                .unwrap_or(Value::Null)
        };
        let lost: usize = self.sizes.iter().map(SizeReport::lost).sum();
        let json = json!({
            "quick": self.quick,
            "seconds_taken": self.seconds_taken,
            "failover_seconds": largest_with("failover_seconds"),
            "crash_recovery_seconds": largest_with("crash_recovery_seconds"),
            "cold_start_seconds": largest_with("cold_start_seconds"),
            "warm_restart_seconds": largest_with("warm_restart_seconds"),
            "load_rows_per_second_per_core": largest_with("load_rows_per_second_per_core"),
            "load_bytes_per_second_per_core": largest_with("load_bytes_per_second_per_core"),
            "replay_changes_per_second": largest_with("replay_changes_per_second"),
            "acknowledged_lost": lost,
            "good": self.is_good(),
            "sizes": self.sizes.iter().map(SizeReport::figures).collect::<Vec<_>>(),
            "drills": self.sizes,
        });
        let text = serde_json::to_string_pretty(&json)
            .map_err(|error| Failure::unexpected(error.to_string()))?;
        let put = |name: &str, text: String| {
            let path = out.join(name);
            std::fs::write(&path, text)
                .map_err(|error| Failure::unexpected(format!("{}: {error}", path.display())))
        };
        put("summary.json", text + "\n")?;
        put("report.txt", self.render())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(seconds: f64) -> Start {
        Start {
            up_seconds: seconds / 2.0,
            first_query_seconds: seconds,
            server: json!({"load_ms": 1000, "rows_loaded": 3_000_000, "bytes_loaded": 1_000_000_000,
                "changes_replayed": 10, "replay_ms": 5}),
            log: vec!["mot load complete".into()],
        }
    }

    #[test]
    fn a_lost_transaction_is_not_good_and_figures_follow_the_phases() {
        let mut size = SizeReport::new(10);
        size.cold_start = Some(start(2.0));
        let mut report = Report::new(true);
        report.sizes.push(size.clone());
        assert!(report.is_good());
        let cores = std::thread::available_parallelism().map_or(1.0, |cores| cores.get() as f64);
        let figures = report.sizes[0].figures();
        assert_eq!(
            figures["load_rows_per_second_per_core"],
            json!(3_000_000.0 / cores)
        );
        assert_eq!(figures["failover_seconds"], Value::Null);
        let verified = Verified {
            acknowledged: 7,
            lost: 1,
            complaints: vec!["order 3 is gone".into()],
        };
        report.sizes[0].crash = Some(Crash::new(start(3.0), verified));
        assert!(!report.is_good());
        assert_eq!(
            report.sizes[0].figures()["replay_changes_per_second"],
            json!(2000.0)
        );
        let text = report.render();
        assert!(text.contains("order 3 is gone") && text.contains("SOMETHING WENT WRONG"));
    }
}
