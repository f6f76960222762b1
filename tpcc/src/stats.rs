//! What a run measures: response times per transaction type, retries and errors by SQLSTATE.
//!
//! Each terminal records on its own; the coordinator merges at the end, so recording needs no lock.

use crate::failure::{Failure, SqlState};
use crate::inputs::Kind;
use crate::terminal::Outcome;
use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use std::time::Duration;

/// Histograms keep three significant digits, in microseconds.
const SIGNIFICANT_DIGITS: u8 = 3;

/// Key under which failures without a SQLSTATE are counted.
pub const NO_SQLSTATE: &str = "unexpected";

/// The middle one; the mean of the middle two; not a number if there are none.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => values[odd / 2],
        even => (values[even / 2 - 1] + values[even / 2]) / 2.0,
    }
}

/// The measurements of one transaction type.
pub struct KindStats {
    /// Response times in microseconds, rollbacks by design included.
    pub micros: Histogram<u64>,
    /// New orders that rolled back, as one in a hundred must.
    pub rollbacks: u64,
}

impl Default for KindStats {
    fn default() -> Self {
        let micros = Histogram::new(SIGNIFICANT_DIGITS).expect("three digits are always valid");
        KindStats {
            micros,
            rollbacks: 0,
        }
    }
}

/// The measurements of one terminal, or of all of them once merged.
#[derive(Default)]
pub struct TerminalStats {
    kinds: [KindStats; Kind::ALL.len()],
    /// Transactions tried again, by SQLSTATE.
    pub retries: BTreeMap<String, u64>,
    /// Transactions given up, by SQLSTATE.
    pub errors: BTreeMap<String, u64>,
    /// The first message seen for each key of `errors`.
    pub first_messages: BTreeMap<String, String>,
    /// Sessions lost.
    pub disconnects: u64,
}

impl TerminalStats {
    /// Records a finished transaction.
    pub fn record(&mut self, kind: Kind, outcome: Outcome, took: Duration) {
        let stats = &mut self.kinds[kind as usize];
        let micros = took.as_micros() as u64;
        stats
            .micros
            .record(micros)
            .expect("an auto-resizing histogram takes any value");
        stats.rollbacks += u64::from(outcome == Outcome::RolledBack);
    }

    /// Counts a transaction tried again.
    pub fn retry(&mut self, state: SqlState) {
        *self.retries.entry(state.as_str().to_owned()).or_default() += 1;
    }

    /// Counts a transaction given up.
    pub fn error(&mut self, state: SqlState, kind: Kind, message: &str) {
        let message = format!("{}: {message}", kind.name());
        self.count_error(state.as_str(), message);
    }

    /// Counts the failure that ended the terminal.
    pub fn end_with(&mut self, failure: &Failure) {
        match failure {
            Failure::Disconnected(why) => {
                self.disconnects += 1;
                self.first_messages
                    .entry("disconnect".into())
                    .or_insert_with(|| why.clone());
            }
            Failure::Server { state, message } => {
                let key = state.as_str().to_owned();
                self.count_error(&key, message.clone());
            }
            Failure::Unexpected(what) => self.count_error(NO_SQLSTATE, what.clone()),
        }
    }

    fn count_error(&mut self, key: &str, message: String) {
        *self.errors.entry(key.to_owned()).or_default() += 1;
        self.first_messages.entry(key.to_owned()).or_insert(message);
    }

    /// Adds another terminal's measurements.
    pub fn merge(&mut self, other: TerminalStats) {
        for (mine, theirs) in self.kinds.iter_mut().zip(&other.kinds) {
            mine.micros
                .add(&theirs.micros)
                .expect("an auto-resizing histogram takes any value");
            mine.rollbacks += theirs.rollbacks;
        }
        for (mine, theirs) in [
            (&mut self.retries, other.retries),
            (&mut self.errors, other.errors),
        ] {
            for (state, count) in theirs {
                *mine.entry(state).or_default() += count;
            }
        }
        for (state, message) in other.first_messages {
            self.first_messages.entry(state).or_insert(message);
        }
        self.disconnects += other.disconnects;
    }

    /// The measurements of one type.
    pub fn kind(&self, kind: Kind) -> &KindStats {
        &self.kinds[kind as usize]
    }

    /// All recorded transactions.
    pub fn total(&self) -> u64 {
        self.kinds.iter().map(|stats| stats.micros.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_histograms_hold_what_each_terminal_saw() {
        let mut merged = TerminalStats::default();
        for terminal in 0..4u64 {
            let mut stats = TerminalStats::default();
            for step in 1..=100 {
                let took = Duration::from_micros(1000 * terminal + step);
                stats.record(Kind::Payment, Outcome::Committed, took);
            }
            stats.record(
                Kind::NewOrder,
                Outcome::RolledBack,
                Duration::from_secs(3600),
            );
            stats.retry(SqlState::DEADLOCK_DETECTED);
            stats.error(SqlState(*b"23505"), Kind::Payment, "duplicate key");
            merged.merge(stats);
        }
        assert_eq!(merged.kind(Kind::Payment).micros.len(), 400);
        assert_eq!(merged.kind(Kind::Payment).micros.min(), 1);
        assert!(
            merged
                .kind(Kind::Payment)
                .micros
                .value_at_quantile(0.99)
                .abs_diff(3096)
                <= 4
        );
        assert_eq!(merged.kind(Kind::NewOrder).rollbacks, 4);
        assert!(merged.kind(Kind::NewOrder).micros.max() >= 3_596_000_000);
        assert_eq!(merged.retries["40P01"], 4);
        assert_eq!(merged.errors["23505"], 4);
        assert_eq!(merged.total(), 404);
    }

    #[test]
    fn medians_are_in_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0]), 2.5);
        assert!(median(Vec::new()).is_nan());
    }

    #[test]
    fn a_lost_session_is_not_an_error_of_its_own() {
        let mut stats = TerminalStats::default();
        stats.end_with(&Failure::Disconnected("gone".into()));
        assert_eq!((stats.disconnects, stats.errors.len()), (1, 0));
        stats.end_with(&Failure::unexpected("no customer"));
        assert_eq!(stats.errors[NO_SQLSTATE], 1);
    }
}
