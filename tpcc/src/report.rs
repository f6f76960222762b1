//! What a run reports, as text and as JSON.

use crate::engine::Engine;
use crate::inputs::Kind;
use crate::run::RunOptions;
use crate::scale::Scale;
use crate::stats::{KindStats, TerminalStats};
use crate::terminal::Mode;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Response times of one transaction type, in milliseconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Latency {
    /// Transactions measured.
    pub count: u64,
    /// Of these, rolled back by design.
    pub rollbacks: u64,
    /// Median.
    pub p50_ms: f64,
    /// 90th percentile.
    pub p90_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
    /// Longest.
    pub max_ms: f64,
    /// Mean.
    pub mean_ms: f64,
}

impl Latency {
    fn of(stats: &KindStats) -> Self {
        let millis = |micros: u64| micros as f64 / 1000.0;
        let quantile = |quantile| millis(stats.micros.value_at_quantile(quantile));
        Latency {
            count: stats.micros.len(),
            rollbacks: stats.rollbacks,
            p50_ms: quantile(0.5),
            p90_ms: quantile(0.9),
            p99_ms: quantile(0.99),
            max_ms: millis(stats.micros.max()),
            mean_ms: stats.micros.mean() / 1000.0,
        }
    }
}

/// The outcome of one run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunReport {
    /// Where the tables live.
    pub engine: Engine,
    /// Statements or procedures.
    pub mode: Mode,
    /// Sizes of the tables.
    pub scale: Scale,
    /// Number of terminals.
    pub terminals: u32,
    /// Seed of the input data.
    pub seed: u64,
    /// Length of the measurement in seconds.
    pub seconds: f64,
    /// New orders per minute. As the specification and BenchmarkSQL have it, the one per cent that
    /// rolls back counts.
    #[serde(rename = "tpmC")]
    pub tpmc: f64,
    /// Transactions of all types per minute.
    #[serde(rename = "tpmTotal")]
    pub tpm_total: f64,
    /// Transactions of all types.
    pub transactions: u64,
    /// Response times by type.
    pub latency: BTreeMap<String, Latency>,
    /// Transactions tried again, by SQLSTATE (40001 and 40P01).
    pub retries: BTreeMap<String, u64>,
    /// Transactions given up, by SQLSTATE.
    pub errors: BTreeMap<String, u64>,
    /// The first message for each key of `errors`, and for `disconnect`.
    pub first_messages: BTreeMap<String, String>,
    /// Sessions lost.
    pub disconnects: u64,
}

impl RunReport {
    /// The report of a run that measured for `measured`.
    pub fn new(
        engine: Engine,
        options: &RunOptions,
        scale: Scale,
        measured: Duration,
        stats: &TerminalStats,
    ) -> Self {
        let seconds = measured.as_secs_f64();
        let per_minute = |count: u64| count as f64 * 60.0 / seconds.max(f64::MIN_POSITIVE);
        let latency = Kind::ALL
            .into_iter()
            .map(|kind| (kind.name().to_owned(), Latency::of(stats.kind(kind))))
            .collect();
        RunReport {
            engine,
            mode: options.mode,
            scale,
            terminals: options.terminals,
            seed: options.seed,
            seconds,
            tpmc: per_minute(stats.kind(Kind::NewOrder).micros.len()),
            tpm_total: per_minute(stats.total()),
            transactions: stats.total(),
            latency,
            retries: stats.retries.clone(),
            errors: stats.errors.clone(),
            first_messages: stats.first_messages.clone(),
            disconnects: stats.disconnects,
        }
    }

    /// Errors and retries together: TPC-C under READ COMMITTED needs neither.
    pub fn troubles(&self) -> u64 {
        self.errors.values().sum::<u64>() + self.retries.values().sum::<u64>()
    }

    /// Response times of one type.
    pub fn latency_of(&self, kind: Kind) -> Option<&Latency> {
        self.latency.get(kind.name())
    }
}

impl fmt::Display for RunReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} tables, {}, {} warehouses, {} terminals, {:.1} s, seed {}",
            self.engine, self.mode, self.scale.warehouses, self.terminals, self.seconds, self.seed
        )?;
        writeln!(f, "tpmC {:.0}   tpmTotal {:.0}", self.tpmc, self.tpm_total)?;
        writeln!(
            f,
            "{:<13}{:>9}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}",
            "ms", "count", "rollback", "mean", "p50", "p90", "p99", "max"
        )?;
        for kind in Kind::ALL {
            let Some(line) = self.latency_of(kind) else {
                continue;
            };
            writeln!(
                f,
                "{:<13}{:>9}{:>10}{:>10.2}{:>10.2}{:>10.2}{:>10.2}{:>10.2}",
                kind.name(),
                line.count,
                line.rollbacks,
                line.mean_ms,
                line.p50_ms,
                line.p90_ms,
                line.p99_ms,
                line.max_ms
            )?;
        }
        for (what, counts) in [("retries", &self.retries), ("errors", &self.errors)] {
            let list: Vec<String> = counts
                .iter()
                .map(|(state, count)| format!("{state}: {count}"))
                .collect();
            let list = if list.is_empty() {
                "none".to_owned()
            } else {
                list.join(", ")
            };
            writeln!(f, "{what} {list}")?;
        }
        if self.disconnects > 0 {
            writeln!(f, "sessions lost {}", self.disconnects)?;
        }
        for (state, message) in &self.first_messages {
            writeln!(f, "first {state}: {message}")?;
        }
        Ok(())
    }
}
