//! Everything the demo measured, and `summary.json`.
//!
//! Keys that scripts may rely on: `tpmc.{interactive,procedures}.{mot,heap}`,
//! `wal_bytes_per_txn.{mot,heap}`, `cpu_seconds_per_txn.{mot,heap}`, `memory_bytes.{mot,heap}`,
//! `errors`, `crash.{acknowledged_lost,consistency_violations,recovery_seconds}`. README.md has
//! what they mean.

use super::Plan;
use super::crash::CrashOutcome;
use crate::cli::DemoArgs;
use crate::meter::Measured;
use crate::report::RunReport;
use crate::stats::median;
use crate::terminal::Mode;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt;

/// A column of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Column {
    /// Memory-optimized tables.
    Mot,
    /// Heap tables.
    Heap,
}

impl Column {
    pub(super) const ALL: [Column; 2] = [Column::Mot, Column::Heap];
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Column::Mot => "mot",
            Column::Heap => "heap",
        })
    }
}

/// The loaded database of one column.
#[derive(Clone, Debug)]
pub(super) struct Loaded {
    pub seconds: f64,
    pub copy_seconds: f64,
    pub key_seconds: f64,
    pub rows: i64,
    pub memory_bytes: i64,
}

/// All of it.
pub(super) struct Summary {
    pub machine: String,
    pub quick: bool,
    pub stand_in: bool,
    pub warehouses: i32,
    pub terminals: u32,
    pub rounds: u32,
    pub seconds_per_run: f64,
    pub loaded: BTreeMap<Column, Loaded>,
    pub measured: Vec<(Column, Measured)>,
    pub crowd: Option<RunReport>,
    pub heap_violations: i64,
    pub crash: Option<CrashOutcome>,
    pub seconds_taken: f64,
}

impl Summary {
    pub(super) fn new(args: &DemoArgs, plan: &Plan, machine: String) -> Self {
        Summary {
            machine,
            quick: args.quick,
            stand_in: args.heap_in_place_of_mot,
            warehouses: plan.scale.warehouses,
            terminals: plan.terminals,
            rounds: plan.rounds,
            seconds_per_run: plan.duration.as_secs_f64(),
            loaded: BTreeMap::new(),
            measured: Vec::new(),
            crowd: None,
            heap_violations: 0,
            crash: None,
            seconds_taken: 0.0,
        }
    }

    fn runs(&self, column: Column, mode: Option<Mode>) -> impl Iterator<Item = &Measured> {
        self.measured
            .iter()
            .filter(move |(of, run)| {
                *of == column && mode.is_none_or(|mode| run.report.mode == mode)
            })
            .map(|(_, run)| run)
    }

    /// Median tpmC.
    pub(super) fn tpmc(&self, column: Column, mode: Mode) -> f64 {
        median(
            self.runs(column, Some(mode))
                .map(|run| run.report.tpmc)
                .collect(),
        )
    }

    /// The run in the middle, for its response times.
    pub(super) fn middle_run(&self, column: Column, mode: Mode) -> Option<&Measured> {
        let mut runs: Vec<_> = self.runs(column, Some(mode)).collect();
        runs.sort_by(|a, b| a.report.tpmc.total_cmp(&b.report.tpmc));
        runs.get(runs.len() / 2).copied()
    }

    /// Something per transaction, over all runs of `mode` or of both modes together.
    fn per_transaction(
        &self,
        column: Column,
        mode: Option<Mode>,
        of: impl Fn(&Measured) -> f64,
    ) -> f64 {
        let (mut sum, mut transactions) = (0.0, 0);
        for run in self.runs(column, mode) {
            sum += of(run);
            transactions += run.report.transactions;
        }
        sum / transactions as f64
    }

    pub(super) fn wal_bytes(&self, column: Column, mode: Option<Mode>) -> f64 {
        self.per_transaction(column, mode, |run| run.wal_bytes as f64)
    }

    pub(super) fn cpu_seconds(&self, column: Column, mode: Option<Mode>) -> f64 {
        self.per_transaction(column, mode, |run| run.server_cpu.as_secs_f64())
    }

    fn client_cpu_seconds(&self, column: Column) -> f64 {
        self.per_transaction(column, None, |run| run.client_cpu.as_secs_f64())
    }

    /// WAL per transaction less full-page images, from the runs that were looked into.
    pub(super) fn wal_record_bytes(&self, column: Column) -> f64 {
        let (mut bytes, mut transactions) = (0.0, 0);
        for run in self.runs(column, None) {
            if let Some(share) = run.full_page_share {
                bytes += run.wal_bytes as f64 * (1.0 - share);
                transactions += run.report.transactions;
            }
        }
        bytes / transactions as f64
    }

    pub(super) fn memory_bytes(&self, column: Column) -> f64 {
        self.loaded
            .get(&column)
            .map_or(f64::NAN, |loaded| loaded.memory_bytes as f64)
    }

    pub(super) fn bytes_per_row(&self, column: Column) -> f64 {
        self.loaded.get(&column).map_or(f64::NAN, |loaded| {
            loaded.memory_bytes as f64 / loaded.rows as f64
        })
    }

    /// Errors, retries and sessions lost in the measured runs and with many terminals.
    pub(super) fn errors(&self) -> u64 {
        let measured = self.measured.iter().map(|(_, run)| &run.report);
        let reports = measured.chain(&self.crowd);
        let runs: u64 = reports
            .map(|report| report.troubles() + report.disconnects)
            .sum();
        runs + self.crash.as_ref().map_or(0, |crash| crash.run_errors)
    }

    /// The first message of each kind of trouble, over all runs.
    pub(super) fn messages(&self) -> Vec<String> {
        let measured = self
            .measured
            .iter()
            .map(|(column, run)| (column.to_string(), &run.report));
        let crowd = self
            .crowd
            .iter()
            .map(|report| ("many terminals".to_owned(), report));
        let mut messages = Vec::new();
        for (whose, report) in measured.chain(crowd) {
            for (state, message) in &report.first_messages {
                messages.push(format!("{whose}, {}: {state}: {message}", report.mode));
            }
        }
        messages.extend(
            self.crash
                .iter()
                .flat_map(|crash| crash.complaints.iter().cloned()),
        );
        messages
    }

    /// True if nothing went wrong. The measures' targets are for the reader to judge.
    pub(super) fn is_good(&self) -> bool {
        let crash_is_good = self.crash.as_ref().is_some_and(|crash| {
            crash.acknowledged_lost == 0
                && crash.unexplained == 0
                && crash.consistency_violations == 0
        });
        self.errors() == 0 && self.heap_violations == 0 && crash_is_good
    }

    fn pair(value: impl Fn(Column) -> f64) -> Value {
        json!({ "mot": value(Column::Mot), "heap": value(Column::Heap) })
    }

    fn by_mode(value: impl Fn(Column, Mode) -> f64) -> Value {
        json!({
            "interactive": Self::pair(|column| value(column, Mode::Interactive)),
            "procedures": Self::pair(|column| value(column, Mode::Procedures)),
        })
    }

    /// `summary.json`.
    pub(super) fn to_json(&self) -> Value {
        let ratio = |value: &dyn Fn(Column) -> f64| value(Column::Mot) / value(Column::Heap);
        let mut latency = Map::new();
        for mode in [Mode::Interactive, Mode::Procedures] {
            let of = |column| self.middle_run(column, mode).map(|run| &run.report.latency);
            latency.insert(
                mode.to_string(),
                json!({ "mot": of(Column::Mot), "heap": of(Column::Heap) }),
            );
        }
        let runs: Vec<Value> = self
            .measured
            .iter()
            .map(|(column, run)| {
                json!({
                    "engine": column.to_string(),
                    "wal_bytes": run.wal_bytes,
                    "wal_full_page_share": run.full_page_share,
                    "server_cpu_seconds": run.server_cpu.as_secs_f64(),
                    "client_cpu_seconds": run.client_cpu.as_secs_f64(),
                    "report": run.report,
                })
            })
            .collect();
        let loads = |field: fn(&Loaded) -> f64| {
            Self::pair(|column| self.loaded.get(&column).map_or(f64::NAN, field))
        };
        json!({
            "machine": self.machine,
            "quick": self.quick,
            "heap_in_place_of_mot": self.stand_in,
            "warehouses": self.warehouses,
            "terminals": self.terminals,
            "rounds": self.rounds,
            "seconds_per_run": self.seconds_per_run,
            "seconds_taken": self.seconds_taken,
            "tpmc": Self::by_mode(|column, mode| self.tpmc(column, mode)),
            "wal_bytes_per_txn": Self::pair(|column| self.wal_bytes(column, None)),
            "wal_record_bytes_per_txn": Self::pair(|column| self.wal_record_bytes(column)),
            "wal_bytes_per_txn_by_mode":
                Self::by_mode(|column, mode| self.wal_bytes(column, Some(mode))),
            "cpu_seconds_per_txn": Self::pair(|column| self.cpu_seconds(column, None)),
            "cpu_seconds_per_txn_by_mode":
                Self::by_mode(|column, mode| self.cpu_seconds(column, Some(mode))),
            "client_cpu_seconds_per_txn": Self::pair(|column| self.client_cpu_seconds(column)),
            "memory_bytes": Self::pair(|column| self.memory_bytes(column)),
            "memory_bytes_per_row": Self::pair(|column| self.bytes_per_row(column)),
            "load_seconds": loads(|loaded| loaded.seconds),
            "load_copy_seconds": loads(|loaded| loaded.copy_seconds),
            "load_key_seconds": loads(|loaded| loaded.key_seconds),
            "ratio": {
                "tpmc": {
                    "interactive": ratio(&|column| self.tpmc(column, Mode::Interactive)),
                    "procedures": ratio(&|column| self.tpmc(column, Mode::Procedures)),
                },
                "wal_bytes_per_txn": ratio(&|column| self.wal_bytes(column, None)),
                "wal_record_bytes_per_txn": ratio(&|column| self.wal_record_bytes(column)),
                "cpu_seconds_per_txn": ratio(&|column| self.cpu_seconds(column, None)),
                "memory_bytes": ratio(&|column| self.memory_bytes(column)),
            },
            "latency_ms": latency,
            "errors": self.errors(),
            "messages": self.messages(),
            "many_terminals": self.crowd,
            "heap_consistency_violations": self.heap_violations,
            "crash": self.crash,
            "good": self.is_good(),
            "runs": runs,
        })
    }
}
