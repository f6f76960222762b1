//! Cycles in words.

use super::anomaly::{Anomaly, Finding};
use super::cycles::Cycle;
use super::graph::{Edge, Graph, Why};
use crate::history::record::{By, History};
use std::collections::BTreeSet;
use std::fmt::Write;

fn is_anti(edge: &Edge) -> bool {
    matches!(edge.why, Why::ReadBefore { .. })
}

fn is_time(edge: &Edge) -> bool {
    matches!(edge.why, Why::Session | Why::Time)
}

/// What a cycle is called.
fn classify(edges: &[Edge]) -> Anomaly {
    let anti = edges.iter().filter(|edge| is_anti(edge)).count();
    let key = |edge: &Edge| match edge.why {
        Why::Overwritten { key, .. } | Why::WasRead { key, .. } | Why::ReadBefore { key, .. } => {
            Some(key)
        }
        Why::Session | Why::Time => None,
    };
    match anti {
        0 if edges
            .iter()
            .all(|edge| matches!(edge.why, Why::Overwritten { .. } | Why::Session | Why::Time)) =>
        {
            Anomaly::G0
        }
        0 => Anomaly::G1c,
        1 => {
            let keys: BTreeSet<_> = edges.iter().map(key).collect();
            if edges.iter().any(is_time) {
                Anomaly::StaleRead
            } else if edges.len() == 2
                && keys.len() == 1
                && edges
                    .iter()
                    .any(|edge| matches!(edge.why, Why::Overwritten { .. }))
            {
                Anomaly::LostUpdate
            } else {
                Anomaly::GSingle
            }
        }
        _ => {
            let next = edges.iter().cycle().skip(1);
            let is_adjacent = edges
                .iter()
                .zip(next)
                .any(|(edge, next)| is_anti(edge) && is_anti(next));
            let by_condition = |edge: &Edge| {
                matches!(
                    edge.why,
                    Why::ReadBefore {
                        by: By::Predicate,
                        ..
                    }
                )
            };
            match () {
                () if !is_adjacent => Anomaly::GNonadjacent,
                () if edges.iter().any(by_condition) => Anomaly::G2,
                () => Anomaly::G2Item,
            }
        }
    }
}

/// The finding that a cycle is.
pub fn cycle(history: &History, graph: &Graph, cycle: &Cycle) -> Finding {
    let mut words = String::new();
    for edge in &cycle.edges {
        let transaction = &history.transactions[edge.from];
        let to = edge.to;
        let seconds = |nanoseconds: u64| nanoseconds as f64 / 1e9;
        let _ = write!(
            words,
            "  T{} (session {}, {}, {:.6} s to {:.6} s) ",
            edge.from,
            transaction.process,
            transaction.level,
            seconds(transaction.begin),
            seconds(transaction.end)
        );
        let form = |key: u64, value: Option<i64>| {
            let of_key = transaction
                .operations
                .iter()
                .filter(|operation| operation.key == key);
            let found = of_key
                .into_iter()
                .find(|operation| match &operation.action {
                    crate::history::record::Action::Write { value: written, .. } => {
                        Some(*written) == value
                    }
                    crate::history::record::Action::Read { seen, .. } => {
                        seen.last().copied() == value
                    }
                });
            found.map_or(String::new(), |operation| format!(" [{}]", operation.form))
        };
        let _ = match edge.why {
            Why::Overwritten { key, before, after } => {
                write!(
                    words,
                    "wrote {before} to key {key}{}; T{to} put {after} right after it",
                    form(key, Some(before))
                )
            }
            Why::WasRead { key, value } => {
                write!(
                    words,
                    "wrote {value} to key {key}{}; T{to} read it",
                    form(key, Some(value))
                )
            }
            Why::ReadBefore {
                key,
                saw: Some(saw),
                missed,
                ..
            } => {
                write!(
                    words,
                    "read key {key} up to {saw}{}; T{to} put {missed} right after that",
                    form(key, Some(saw))
                )
            }
            Why::ReadBefore {
                key,
                saw: None,
                missed,
                ..
            } => {
                write!(
                    words,
                    "read key {key} as empty{}; T{to} put {missed} there",
                    form(key, None)
                )
            }
            Why::Session | Why::Time => {
                let begin = seconds(history.transactions[to].begin);
                write!(words, "was over before T{to} began at {begin:.6} s")
            }
        };
        words.push('\n');
    }
    let levels: BTreeSet<_> = cycle
        .edges
        .iter()
        .map(|edge| graph.levels[edge.from])
        .collect();
    let levels: Vec<String> = levels.iter().map(ToString::to_string).collect();
    let _ = write!(
        words,
        "  and so each of them comes before itself ({})",
        levels.join(", ")
    );
    Finding {
        anomaly: classify(&cycle.edges),
        is_forbidden: cycle.is_forbidden,
        words,
    }
}
