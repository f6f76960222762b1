//! The checker: from a history alone, what happened that an isolation level rules out.
//!
//! [`view`] takes each transaction apart into what it learned of others and what it left behind;
//! [`order`] recovers the order of each key's versions and with it the dependencies; [`graph`] adds
//! the order of real time; [`cycles`] searches; [`anomaly`] names what was found and says which
//! level forbids it; [`explain`] tells it in words. The theory is in the README.

pub mod anomaly;
pub mod cycles;
mod explain;
pub mod graph;
mod order;
mod view;

use crate::history::record::{History, Level, Outcome};
pub use anomaly::{Anomaly, Finding};
use std::collections::BTreeMap;
use std::fmt;

/// Most findings of one class that are told in words; the others are counted.
const TOLD_PER_CLASS: usize = 3;

/// What a history shows.
#[derive(Debug, Default)]
pub struct Report {
    /// Everything found, forbidden or not.
    pub findings: Vec<Finding>,
    /// Transactions that committed, and of those, whose acknowledgement was lost.
    pub committed: usize,
    /// Transactions that did not.
    pub aborted: usize,
    /// Transactions of unknown outcome that nobody saw anything of.
    pub unknown: usize,
    /// Reads and writes of committed transactions.
    pub operations: usize,
    /// Dependencies recovered.
    pub dependencies: usize,
}

impl Report {
    /// True if nothing was found that the level forbids.
    pub fn holds(&self) -> bool {
        self.findings.iter().all(|finding| !finding.is_forbidden)
    }

    /// True if one of that class was found.
    pub fn has(&self, anomaly: Anomaly) -> bool {
        self.findings
            .iter()
            .any(|finding| finding.anomaly == anomaly)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} transactions committed, {} aborted, {} unknown; {} operations, {} dependencies",
            self.committed, self.aborted, self.unknown, self.operations, self.dependencies
        )?;
        let mut told: BTreeMap<(bool, Anomaly), Vec<&Finding>> = BTreeMap::new();
        for finding in &self.findings {
            told.entry((!finding.is_forbidden, finding.anomaly))
                .or_default()
                .push(finding);
        }
        for ((is_allowed, anomaly), findings) in told {
            if is_allowed {
                writeln!(
                    f,
                    "allowed at this level, and seen: {anomaly}, {} times",
                    findings.len()
                )?;
                continue;
            }
            writeln!(f, "FORBIDDEN: {anomaly}, {} times", findings.len())?;
            for finding in findings.iter().take(TOLD_PER_CLASS) {
                writeln!(f, "{}", finding.words)?;
            }
        }
        Ok(())
    }
}

/// Checks a history.
pub fn check(history: &History) -> Report {
    let mut findings = Vec::new();
    let views = view::views(history, &mut findings);
    let mut graph = order::dependencies(history, &views, &mut findings);
    let dependencies = graph.edges.len();
    graph.add_time(history, &views.is_committed);
    for cycle in cycles::search(&graph) {
        findings.push(explain::cycle(history, &graph, &cycle));
    }
    refusals(history, &mut findings);
    let mut report = Report {
        findings,
        dependencies,
        ..Report::default()
    };
    for (index, transaction) in history.transactions.iter().enumerate() {
        if views.is_committed[index] {
            report.committed += 1;
            report.operations += transaction.operations.len();
        } else if transaction.outcome == Outcome::Unknown {
            report.unknown += 1;
        } else {
            report.aborted += 1;
        }
    }
    report
}

/// Errors that a level never raises: READ COMMITTED knows no 40001.
fn refusals(history: &History, findings: &mut Vec<Finding>) {
    for transaction in &history.transactions {
        let Some(error) = &transaction.error else {
            continue;
        };
        let is_expected = match error.split(':').next().unwrap_or_default() {
            "lost" | "40P01" => true,
            "40001" => transaction.level != Level::ReadCommitted,
            _ => false,
        };
        if !is_expected {
            findings.push(Finding {
                anomaly: Anomaly::UnexpectedError,
                is_forbidden: true,
                words: format!(
                    "  session {}, {}: {error}",
                    transaction.process, transaction.level
                ),
            });
        }
    }
}
