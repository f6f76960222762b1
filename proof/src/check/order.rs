//! The order of each key's versions, and the dependencies that follow.
//!
//! Lists tell it themselves: the longest value read is the order, and all others must be beginnings
//! of it. Of registers only those writes have a place that came right after a read of what they
//! replaced, in a transaction that no other could come between.

use super::anomaly::{Anomaly, Finding};
use super::graph::{Graph, Why};
use super::view::{Seen, Views};
use crate::history::record::{Action, By, History, Kind, Level};
use std::collections::{BTreeMap, HashMap};

/// The graph with all dependencies among committed transactions.
pub fn dependencies(history: &History, views: &Views, findings: &mut Vec<Finding>) -> Graph {
    let mut graph = Graph::new(history);
    match history.header.kind {
        Kind::List => lists(history, views, &mut graph, findings),
        Kind::Register => registers(history, views, &mut graph, findings),
    }
    graph
}

/// A row lock that found nothing under READ COMMITTED: it may have waited for a row that was
/// deleted then, whose successor with the same key its statement's snapshot does not see.
/// PostgreSQL's manual says so of rows that do not fit any more.
fn proves_nothing(history: &History, index: usize, seen: &Seen) -> bool {
    history.transactions[index].level == Level::ReadCommitted
        && seen.by.is_locking()
        && seen.values.is_empty()
}

/// What is known of one list.
#[derive(Default)]
struct List<'a> {
    longest: Vec<i64>,
    by: usize,
    /// Committed transactions' reads.
    reads: Vec<(usize, &'a Seen)>,
    /// Values of committed transactions.
    installed: Vec<(usize, i64)>,
}

fn lists(history: &History, views: &Views, graph: &mut Graph, findings: &mut Vec<Finding>) {
    let mut keys: BTreeMap<u64, List<'_>> = BTreeMap::new();
    for index in 0..history.transactions.len() {
        for seen in &views.reads[index] {
            let list = keys.entry(seen.key).or_default();
            // A transaction that failed was shown committed values as well.
            if seen.values.len() > list.longest.len() {
                list.longest.clone_from(&seen.values);
                list.by = index;
            }
            if views.is_committed[index] && !proves_nothing(history, index, seen) {
                list.reads.push((index, seen));
            }
        }
        if views.is_committed[index] {
            for (key, values) in &views.installed[index] {
                let list = keys.entry(*key).or_default();
                list.installed
                    .extend(values.iter().map(|value| (index, *value)));
            }
        }
    }
    for (index, reads) in views.reads.iter().enumerate() {
        for seen in reads {
            let list = &keys[&seen.key];
            if !list.longest.starts_with(&seen.values) {
                findings.push(Finding::forbidden(
                    Anomaly::IncompatibleOrder,
                    format!(
                        "key {}: T{index} (session {}, outcome {:?}) read {:?}, T{} (session {}) read {:?}",
                        seen.key,
                        history.transactions[index].process,
                        history.transactions[index].outcome,
                        seen.values,
                        list.by,
                        history.transactions[list.by].process,
                        list.longest,
                    ),
                ));
            }
        }
    }
    for (key, list) in &keys {
        one_list(*key, list, views, graph);
    }
}

fn one_list(key: u64, list: &List<'_>, views: &Views, graph: &mut Graph) {
    let writer = |value: i64| {
        let writer = views.writers.get(&(key, value))?;
        (views.is_committed[writer.transaction] && !writer.is_undone).then_some(writer.transaction)
    };
    // Read by nobody: after all that were, if they are there at all.
    let unread: Vec<(usize, i64)> = list
        .installed
        .iter()
        .copied()
        .filter(|(_, value)| !list.longest.contains(value))
        .collect();
    let followers = |before: i64, graph: &mut Graph, next: &[(usize, i64)]| {
        if let Some(from) = writer(before) {
            for (to, after) in next {
                graph.add(
                    from,
                    *to,
                    Why::Overwritten {
                        key,
                        before,
                        after: *after,
                    },
                );
            }
        }
    };
    let next_of = |place: usize| -> Vec<(usize, i64)> {
        match list.longest.get(place) {
            Some(value) => writer(*value)
                .map(|writer| (writer, *value))
                .into_iter()
                .collect(),
            None => unread.clone(),
        }
    };
    for (place, value) in list.longest.iter().enumerate() {
        followers(*value, graph, &next_of(place + 1));
    }
    for (reader, seen) in &list.reads {
        let saw = seen.values.last().copied();
        if let Some(value) = saw
            && let Some(writer) = writer(value)
        {
            graph.add(writer, *reader, Why::WasRead { key, value });
        }
        for (next, missed) in next_of(seen.values.len()) {
            graph.add(
                *reader,
                next,
                Why::ReadBefore {
                    key,
                    saw,
                    missed,
                    by: seen.by,
                },
            );
        }
    }
}

/// What is known of one register.
#[derive(Default)]
struct Register<'a> {
    reads: Vec<(usize, &'a Seen)>,
    /// Who put a value in the place of which.
    successors: HashMap<Option<i64>, Vec<(usize, i64)>>,
    /// Who wrote without a known place.
    unplaced: Vec<(usize, i64)>,
}

fn registers(history: &History, views: &Views, graph: &mut Graph, findings: &mut Vec<Finding>) {
    let mut keys: BTreeMap<u64, Register<'_>> = BTreeMap::new();
    for index in (0..history.transactions.len()).filter(|index| views.is_committed[*index]) {
        for seen in &views.reads[index] {
            if !proves_nothing(history, index, seen) {
                keys.entry(seen.key).or_default().reads.push((index, seen));
            }
        }
        for (key, values) in &views.installed[index] {
            let Some(value) = values.last() else { continue };
            let register = keys.entry(*key).or_default();
            match replaced(history, views, index, *key) {
                Some(before) => register
                    .successors
                    .entry(before)
                    .or_default()
                    .push((index, *value)),
                None => register.unplaced.push((index, *value)),
            }
        }
    }
    for (key, register) in &keys {
        one_register(*key, register, views, graph, findings);
    }
}

/// The value that a transaction's write to a key replaced, if that is known.
fn replaced(history: &History, views: &Views, index: usize, key: u64) -> Option<Option<i64>> {
    let transaction = &history.transactions[index];
    let is_first_write = |action: &Action| matches!(action, Action::Write { undone: false, .. });
    let write = transaction
        .operations
        .iter()
        .position(|operation| operation.key == key && is_first_write(&operation.action))?;
    let read = views.reads[index]
        .iter()
        .rfind(|seen| seen.key == key && seen.place < write)?;
    let is_certain = match transaction.level {
        Level::ReadCommitted => read.by == By::Lock && read.place + 1 == write,
        Level::RepeatableRead | Level::Serializable => true,
    };
    // Nothing there and a row put there by ON CONFLICT DO UPDATE: under READ COMMITTED another may
    // have come first; a lock on nothing locks nothing.
    let is_certain =
        is_certain && (!read.values.is_empty() || transaction.level != Level::ReadCommitted);
    is_certain.then(|| read.values.first().copied())
}

fn one_register(
    key: u64,
    register: &Register<'_>,
    views: &Views,
    graph: &mut Graph,
    findings: &mut Vec<Finding>,
) {
    let writer = |value: i64| {
        let writer = views.writers.get(&(key, value))?;
        views.is_committed[writer.transaction].then_some(writer.transaction)
    };
    for (before, next) in &register.successors {
        if next.len() > 1 {
            let told: Vec<String> = next
                .iter()
                .map(|(who, value)| format!("T{who} with {value}"))
                .collect();
            findings.push(Finding::forbidden(
                Anomaly::LostUpdate,
                format!("key {key}: {} each replaced {before:?}", told.join(" and ")),
            ));
        }
        if let Some(before) = before
            && let Some(from) = writer(*before)
        {
            for (to, after) in next {
                graph.add(
                    from,
                    *to,
                    Why::Overwritten {
                        key,
                        before: *before,
                        after: *after,
                    },
                );
            }
        }
    }
    for (reader, seen) in &register.reads {
        let saw = seen.values.first().copied();
        let mut missed: Vec<(usize, i64)> =
            register.successors.get(&saw).cloned().unwrap_or_default();
        match saw {
            Some(value) => {
                if let Some(writer) = writer(value) {
                    graph.add(writer, *reader, Why::WasRead { key, value });
                }
            }
            // Every write comes after nothing.
            None => missed.extend_from_slice(&register.unplaced),
        }
        for (next, value) in missed {
            graph.add(
                *reader,
                next,
                Why::ReadBefore {
                    key,
                    saw,
                    missed: value,
                    by: seen.by,
                },
            );
        }
    }
}
