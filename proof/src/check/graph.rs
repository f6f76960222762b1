//! The graph of transactions: dependencies, and who was over before who began.

use crate::history::record::{Action, By, History, Level};
use std::collections::BTreeSet;

/// Why one transaction comes before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The other replaced its version: write-write.
    Overwritten {
        /// Of this key.
        key: u64,
        /// Its value.
        before: i64,
        /// The other's value.
        after: i64,
    },
    /// The other read its version: write-read.
    WasRead {
        /// Of this key.
        key: u64,
        /// Its value.
        value: i64,
    },
    /// It read a version that the other replaced: read-write, an anti-dependency.
    ReadBefore {
        /// Of this key.
        key: u64,
        /// The newest value it saw.
        saw: Option<i64>,
        /// The other's value.
        missed: i64,
        /// How it read.
        by: By,
    },
    /// Its end was known before the other began, in the same session.
    Session,
    /// Its end was known before the other began.
    Time,
}

/// One edge.
#[derive(Clone, Copy, Debug)]
pub struct Edge {
    /// Index of the earlier transaction.
    pub from: usize,
    /// Index of the later one.
    pub to: usize,
    /// Why.
    pub why: Why,
}

/// Transactions by index into the history.
#[derive(Debug, Default)]
pub struct Graph {
    /// All edges.
    pub edges: Vec<Edge>,
    /// What each transaction was promised; see [`promise`].
    pub levels: Vec<Level>,
}

impl Graph {
    /// For `history`, without edges.
    pub fn new(history: &History) -> Graph {
        Graph {
            edges: Vec::new(),
            levels: history.transactions.iter().map(promise).collect(),
        }
    }

    /// Adds an edge between different transactions.
    pub fn add(&mut self, from: usize, to: usize, why: Why) {
        if from != to {
            self.edges.push(Edge { from, to, why });
        }
    }

    /// Adds the order of real time, without what follows from the rest: an edge to each transaction
    /// that begins, from those that ended and that nobody followed who ended by then. So there are
    /// at most as many edges to a transaction as there are sessions.
    pub fn add_time(&mut self, history: &History, is_committed: &[bool]) {
        let transactions = &history.transactions;
        let known: Vec<usize> = (0..transactions.len())
            .filter(|index| is_committed[*index])
            .collect();
        // An end and a beginning at the same tick are not in order: beginnings first.
        let mut moments: Vec<(u64, bool, usize)> = Vec::with_capacity(known.len() * 2);
        for index in known {
            let transaction = &transactions[index];
            moments.push((transaction.begin, false, index));
            if transaction.outcome == crate::history::record::Outcome::Committed {
                moments.push((transaction.end, true, index));
            }
        }
        moments.sort_unstable();
        // By their end.
        let mut frontier: BTreeSet<(u64, usize)> = BTreeSet::new();
        for (_, is_end, index) in moments {
            let transaction = &transactions[index];
            if is_end {
                let still = frontier.split_off(&(transaction.begin, 0));
                frontier = still;
                frontier.insert((transaction.end, index));
                continue;
            }
            for (_, earlier) in &frontier {
                let same = transactions[*earlier].process == transaction.process;
                let why = if same { Why::Session } else { Why::Time };
                self.edges.push(Edge {
                    from: *earlier,
                    to: index,
                    why,
                });
            }
        }
    }
}

/// The level whose promises hold for a transaction: a READ COMMITTED one that is a single reading
/// statement has one snapshot, as under REPEATABLE READ.
fn promise(transaction: &crate::history::record::Transaction) -> Level {
    let mut statements = BTreeSet::new();
    let only_reads = transaction.operations.iter().all(|operation| {
        statements.insert(operation.statement);
        matches!(operation.action, Action::Read { by, .. } if !by.is_locking())
    });
    if transaction.level == Level::ReadCommitted && only_reads && statements.len() == 1 {
        Level::RepeatableRead
    } else {
        transaction.level
    }
}
