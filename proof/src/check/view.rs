//! Each transaction taken apart: what it learned of others, what it left behind, and whether it
//! agrees with itself.

use super::anomaly::{Anomaly, Finding};
use crate::history::record::{Action, By, History, Kind, Level, Outcome, Transaction};
use std::collections::{HashMap, HashSet};

/// What a transaction saw of other transactions' writes to a key.
#[derive(Debug)]
pub struct Seen {
    pub key: u64,
    /// The values; of a register, at most one.
    pub values: Vec<i64>,
    pub by: By,
    /// Place in the transaction.
    pub place: usize,
}

/// Who wrote a value.
#[derive(Clone, Copy, Debug)]
pub struct Writer {
    pub transaction: usize,
    /// Taken back by its own transaction.
    pub is_undone: bool,
    /// Replaced by its own transaction.
    pub is_intermediate: bool,
}

/// All transactions.
pub struct Views {
    /// Reads of each transaction.
    pub reads: Vec<Vec<Seen>>,
    /// What each transaction left at each key it wrote, in order.
    pub installed: Vec<HashMap<u64, Vec<i64>>>,
    pub writers: HashMap<(u64, i64), Writer>,
    /// Committed as the client was told, or as others saw.
    pub is_committed: Vec<bool>,
}

/// Takes the transactions apart.
pub fn views(history: &History, findings: &mut Vec<Finding>) -> Views {
    let count = history.transactions.len();
    let mut views = Views {
        reads: Vec::with_capacity(count),
        installed: Vec::with_capacity(count),
        writers: HashMap::new(),
        is_committed: history
            .transactions
            .iter()
            .map(|transaction| transaction.outcome == Outcome::Committed)
            .collect(),
    };
    for (index, transaction) in history.transactions.iter().enumerate() {
        let mut installed: HashMap<u64, Vec<i64>> = HashMap::new();
        for operation in &transaction.operations {
            if let Action::Write { value, undone } = operation.action {
                let writer = Writer {
                    transaction: index,
                    is_undone: undone,
                    is_intermediate: false,
                };
                views.writers.insert((operation.key, value), writer);
                if !undone {
                    installed.entry(operation.key).or_default().push(value);
                }
            }
        }
        for (key, values) in &installed {
            for value in &values[..values.len() - 1] {
                if let Some(writer) = views.writers.get_mut(&(*key, *value)) {
                    writer.is_intermediate = true;
                }
            }
        }
        views.installed.push(installed);
    }
    for (index, transaction) in history.transactions.iter().enumerate() {
        let reads = match history.header.kind {
            Kind::List => read_lists(index, transaction, findings),
            Kind::Register => read_registers(index, transaction, findings),
        };
        for seen in &reads {
            for value in &seen.values {
                if let Some(writer) = views.writers.get(&(seen.key, *value))
                    && history.transactions[writer.transaction].outcome == Outcome::Unknown
                {
                    views.is_committed[writer.transaction] = true;
                }
            }
        }
        views.reads.push(reads);
    }
    for (index, transaction) in history.transactions.iter().enumerate() {
        judge_values(index, transaction, history, &views, findings);
    }
    views
}

/// Values that must not be seen by anybody, committed or not: no level shows them.
fn judge_values(
    index: usize,
    transaction: &Transaction,
    history: &History,
    views: &Views,
    findings: &mut Vec<Finding>,
) {
    for seen in &views.reads[index] {
        let key = seen.key;
        let mut met = HashSet::new();
        let mut bad = None;
        for (place, value) in seen.values.iter().enumerate() {
            let told = || {
                format!(
                    "T{index} (session {}) read key {key} as {:?}",
                    transaction.process, seen.values
                )
            };
            if !met.insert(value) {
                findings.push(Finding::forbidden(
                    Anomaly::Duplicate,
                    format!("{}: {value} is there twice", told()),
                ));
            }
            let Some(writer) = views.writers.get(&(key, *value)) else {
                findings.push(Finding::forbidden(
                    Anomaly::Garbage,
                    format!("{}: nobody wrote {value}", told()),
                ));
                continue;
            };
            let by = writer.transaction;
            if writer.is_undone || history.transactions[by].outcome == Outcome::Aborted {
                let how = if writer.is_undone {
                    "was rolled back to a savepoint"
                } else {
                    "aborted"
                };
                findings.push(Finding::forbidden(
                    Anomaly::G1a,
                    format!("{}: T{by}, who wrote {value}, {how}", told()),
                ));
                bad = Some(*value);
                continue;
            }
            if let Some(below) = bad.take() {
                findings.push(Finding::forbidden(
                    Anomaly::DirtyUpdate,
                    format!(
                        "{}: {value} of T{by} stands on {below}, which did not commit",
                        told()
                    ),
                ));
            }
            if writer.is_intermediate && place + 1 == seen.values.len() {
                findings.push(Finding::forbidden(
                    Anomaly::G1b,
                    format!("{}: T{by} wrote another value after {value}", told()),
                ));
            }
        }
    }
}

fn internal(index: usize, transaction: &Transaction, words: String) -> Finding {
    Finding::forbidden(
        Anomaly::Internal,
        format!(
            "T{index} (session {}, {}): {words}",
            transaction.process, transaction.level
        ),
    )
}

fn read_lists(index: usize, transaction: &Transaction, findings: &mut Vec<Finding>) -> Vec<Seen> {
    let mut own: HashMap<u64, Vec<(i64, bool)>> = HashMap::new();
    let mut before: HashMap<u64, Vec<i64>> = HashMap::new();
    let mut reads = Vec::new();
    for (place, operation) in transaction.operations.iter().enumerate() {
        let key = operation.key;
        match &operation.action {
            Action::Write { value, undone } => own.entry(key).or_default().push((*value, *undone)),
            Action::Read { seen, by } => {
                let mine = own.get(&key).map_or(&[][..], Vec::as_slice);
                let is_own = |value: &i64| mine.iter().any(|(own, _)| own == value);
                let length = seen.iter().position(is_own).unwrap_or(seen.len());
                let (others, rest) = seen.split_at(length);
                let undone = |value: &i64| mine.iter().any(|(own, undone)| own == value && *undone);
                let kept: Vec<i64> = rest
                    .iter()
                    .copied()
                    .filter(|value| !undone(value))
                    .collect();
                let wanted: Vec<i64> = mine
                    .iter()
                    .filter(|(_, undone)| !undone)
                    .map(|(value, _)| *value)
                    .collect();
                if kept != wanted {
                    let words =
                        format!("read key {key} as {seen:?} after writing {wanted:?} itself");
                    findings.push(internal(index, transaction, words));
                }
                if let Some(earlier) = before.get(&key) {
                    let agrees = if transaction.level == Level::ReadCommitted {
                        others.starts_with(earlier) || (others.is_empty() && by.is_locking())
                    } else {
                        others == earlier
                    };
                    if !agrees {
                        let words = format!(
                            "read key {key} as {earlier:?}, then as {others:?} (without its own)"
                        );
                        findings.push(internal(index, transaction, words));
                    }
                }
                before.insert(key, others.to_vec());
                reads.push(Seen {
                    key,
                    values: others.to_vec(),
                    by: *by,
                    place,
                });
            }
        }
    }
    reads
}

fn read_registers(
    index: usize,
    transaction: &Transaction,
    findings: &mut Vec<Finding>,
) -> Vec<Seen> {
    let mut own: HashMap<u64, Vec<(i64, bool)>> = HashMap::new();
    let mut before: HashMap<u64, Option<i64>> = HashMap::new();
    let mut reads = Vec::new();
    for (place, operation) in transaction.operations.iter().enumerate() {
        let key = operation.key;
        match &operation.action {
            Action::Write { value, undone } => own.entry(key).or_default().push((*value, *undone)),
            Action::Read { seen, by } => {
                let value = seen.first().copied();
                let mine = own.get(&key).map_or(&[][..], Vec::as_slice);
                let newest = mine
                    .iter()
                    .rev()
                    .find(|(_, undone)| !undone)
                    .map(|(value, _)| *value);
                let is_undone = mine
                    .iter()
                    .any(|(own, undone)| Some(*own) == value && *undone);
                if newest.is_some() {
                    if value != newest && !is_undone {
                        let words =
                            format!("read key {key} as {value:?} after writing {newest:?} itself");
                        findings.push(internal(index, transaction, words));
                    }
                    continue;
                }
                if is_undone {
                    continue;
                }
                if let Some(earlier) = before.insert(key, value)
                    && earlier != value
                    && transaction.level != Level::ReadCommitted
                {
                    let words = format!("read key {key} as {earlier:?}, then as {value:?}");
                    findings.push(internal(index, transaction, words));
                }
                reads.push(Seen {
                    key,
                    values: value.into_iter().collect(),
                    by: *by,
                    place,
                });
            }
        }
    }
    reads
}
