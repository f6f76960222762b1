//! What the drills found: as text, and as `summary.json`.

use super::cost::{self, Cost};
use super::drills::Verified;
use super::steady::{Condition, Steady};
use crate::failure::{Failure, Result};
use crate::schema::Engine;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
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

    /// The figures a reader compares, by the names of `summary.json`.
    fn figures(&self) -> Map<String, Value> {
        let cores = std::thread::available_parallelism().map_or(1.0, |cores| cores.get() as f64);
        let per_core = |name: &str| {
            let start = self.cold_start.as_ref()?;
            let seconds = start.load_seconds();
            (seconds > 0.0).then(|| start.number(name) / seconds / cores)
        };
        let first = |start: &Start| start.first_query_seconds;
        let conditions = [
            Condition::Checkpoints,
            Condition::Asynchronous,
            Condition::Synchronous,
        ];
        let tpmc_kept: Vec<Value> = conditions
            .into_iter()
            .filter_map(|condition| {
                let cost = |engine| cost::of(&self.steady, condition, engine);
                let (mot, heap) = (cost(Engine::Mot)?, cost(Engine::Heap)?);
                Some(json!({
                    "condition": condition,
                    "mot": mot.tpmc.median,
                    "heap": heap.tpmc.median,
                    "mot_cost": mot,
                    "heap_cost": heap,
                }))
            })
            .collect();
        let Value::Object(figures) = json!({
            "warehouses": self.warehouses,
            "mot_bytes": self.mot_bytes,
            "cold_start_seconds": self.cold_start.as_ref().map(first),
            "heap_start_and_prewarm_seconds":
                self.heap.as_ref().map(|heap| heap.up_seconds + heap.prewarm_seconds),
            "warm_restart_seconds": self.warm_restart.as_ref().map(first),
            "crash_recovery_seconds": self.crash.as_ref().map(|it| first(&it.start)),
            "crash_recovery_load_seconds": self.crash.as_ref().map(|it| it.start.load_seconds()),
            "failover_seconds": self.failover.as_ref().map(|it| it.seconds),
            "load_rows_per_second_per_core": per_core("rows_loaded"),
            "load_bytes_per_second_per_core": per_core("bytes_loaded"),
            "replay_changes_per_second":
                self.crash.as_ref().and_then(|it| it.start.changes_per_second()),
            "acknowledged_lost": self.lost(),
            "tpmc_kept": tpmc_kept,
        }) else {
            unreachable!("an object was written above")
        };
        figures
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

    /// Writes `summary.json` and `report.txt` into `out`. The top level has the largest size's figures; "sizes" has all.
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

    /// The report as text.
    pub(super) fn render(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "\nTime until rows can be read or written again, in seconds"
        );
        for size in &self.sizes {
            let _ = writeln!(
                text,
                "\n{} warehouses, {} MB of rows and indexes in memory",
                size.warehouses,
                size.mot_bytes / 1_000_000
            );
            for (name, seconds) in size.bars() {
                let _ = writeln!(text, "  {name:<24}{seconds:>9.2}");
            }
            if let Some(start) = &size.cold_start {
                phases(&mut text, "cold start", start);
            }
            if let Some(crash) = &size.crash {
                phases(&mut text, "crash recovery", &crash.start);
                told(
                    &mut text,
                    "crash",
                    crash.acknowledged,
                    crash.acknowledged_lost,
                );
            }
            if let Some(it) = &size.failover {
                let _ = writeln!(
                    text,
                    "  failover: promoted after {:.2}; before it: base backup {:.1}, standby's start {:.1}",
                    it.promote_seconds, it.backup_seconds, it.standby_start_seconds
                );
                told(&mut text, "failover", it.acknowledged, it.acknowledged_lost);
            }
            for (name, condition) in [
                ("checkpoints back to back", Condition::Checkpoints),
                ("asynchronous standby", Condition::Asynchronous),
                ("synchronous standby", Condition::Synchronous),
            ] {
                let costs = [Engine::Mot, Engine::Heap]
                    .map(|engine| cost::of(&size.steady, condition, engine));
                if let [Some(mot), Some(heap)] = costs {
                    let _ = writeln!(
                        text,
                        "  {name}: of the tpmC without, MOT keeps {}, heap {}; p99 times {} and {}",
                        mot.tpmc, heap.tpmc, mot.p99, heap.p99
                    );
                    for (engine, cost) in [("MOT", &mot), ("heap", &heap)] {
                        cpu(&mut text, engine, cost);
                    }
                    for (engine, cost) in [("MOT", mot), ("heap", heap)] {
                        if let (Some(lag), Some(seconds)) =
                            (cost.lag_bytes_max, cost.catch_up_seconds_max)
                        {
                            let _ = writeln!(
                                text,
                                "    {engine}: the standby was at most {} kB behind, and caught up within {seconds:.2} s of the load's end",
                                lag / 1000
                            );
                        }
                    }
                }
            }
            for note in &size.notes {
                let _ = writeln!(text, "  note: {note}");
            }
            for complaint in size.complaints() {
                let _ = writeln!(text, "  ! {complaint}");
            }
        }
        let verdict = if self.is_good() {
            "nothing acknowledged was lost, every check held"
        } else {
            "SOMETHING WENT WRONG"
        };
        let _ = writeln!(text, "\n{verdict}; {:.0} s", self.seconds_taken);
        text
    }
}

/// What the primary's processes pay, and what a standby takes that elsewhere has a machine of its own.
fn cpu(text: &mut String, engine: &str, cost: &Cost) {
    let primary = cost.primary_cpu_us;
    let _ = write!(
        text,
        "    {engine}: a transaction takes {:.0} us of the primary's CPU, times {} of that without",
        primary.all, cost.primary_cpu
    );
    let _ = match (cost.standby_cpu_us, cost.checkpoints) {
        (Some(standby), _) => writeln!(
            text,
            " (walsender {:.0}), and {:.0} of the standby's (startup process {:.0})",
            primary.log, standby.all, standby.log
        ),
        (None, Some(checkpoints)) => writeln!(text, "; {checkpoints} checkpoints"),
        (None, None) => writeln!(text),
    };
}

fn phases(text: &mut String, drill: &str, start: &Start) {
    let _ = writeln!(
        text,
        "  {drill}: answers after {:.2}, load {:.2} ({} rows, {} MB)",
        start.up_seconds,
        start.load_seconds(),
        start.number("rows_loaded"),
        (start.number("bytes_loaded") / 1e6) as i64
    );
    for line in &start.log {
        let _ = writeln!(text, "    {line}");
    }
}

fn told(text: &mut String, drill: &str, acknowledged: usize, lost: usize) {
    let _ = writeln!(
        text,
        "  {drill}: {acknowledged} transactions acknowledged, {lost} lost"
    );
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
