//! What was done.
use std::collections::BTreeMap;
use std::fmt;

/// What was done in all rounds.
#[derive(Default)]
pub struct Tally {
    pub rounds: u64,
    pub statements: u64,
    pub(super) waits: u64,
    pub(super) cancelled: u64,
    pub(super) commits: u64,
    pub(super) prepared: u64,
    pub(super) defined: u64,
    /// Rows returned or changed.
    pub(super) rows: u64,
    pub(super) errors: BTreeMap<String, u64>,
    pub(super) allowed: BTreeMap<&'static str, u64>,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |map: Vec<String>| {
            if map.is_empty() {
                "none".to_owned()
            } else {
                map.join(", ")
            }
        };
        write!(
            f,
            "{} rounds, {} statements on each side, {} rows changed or returned, {} commits, {} transactions \
             prepared, {} definitions changed, {} waits, {} second waits cancelled\nerrors on both sides: \
             {}\nallowed differences: {}",
            self.rounds,
            self.statements,
            self.rows,
            self.commits,
            self.prepared,
            self.defined,
            self.waits,
            self.cancelled,
            list(
                self.errors
                    .iter()
                    .map(|(state, count)| format!("{state} {count}"))
                    .collect()
            ),
            list(
                self.allowed
                    .iter()
                    .map(|(name, count)| format!("{name}: {count}"))
                    .collect()
            ),
        )
    }
}
