//! Names of what can go wrong, and which level forbids it.

use std::fmt;

/// Classes of anomalies, worst first. The names are Adya's where he has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Anomaly {
    /// A value was read that nobody wrote.
    Garbage,
    /// A list has a value twice.
    Duplicate,
    /// A value was read whose writer did not commit, or took it back.
    G1a,
    /// A committed value was put on top of one whose writer did not commit.
    DirtyUpdate,
    /// A value was read that its writer replaced before it committed.
    G1b,
    /// Reads of one key tell of two orders of its writes.
    IncompatibleOrder,
    /// A transaction does not see its own writes, or its snapshot moved.
    Internal,
    /// Two transactions replaced the same version, each believing it the newest; or an acknowledged
    /// write is in no later state.
    LostUpdate,
    /// A cycle of writes alone.
    G0,
    /// A cycle of writes and reads of what was written.
    G1c,
    /// A transaction began after another was acknowledged, and did not see it.
    StaleRead,
    /// A cycle with one anti-dependency: read skew.
    GSingle,
    /// A cycle whose anti-dependencies do not follow on each other.
    GNonadjacent,
    /// A cycle with adjacent anti-dependencies of reads by key: write skew.
    G2Item,
    /// The same where a read by a condition takes part: phantoms.
    G2,
    /// An error that the level never raises.
    UnexpectedError,
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Anomaly::Garbage => "garbage (a value that nobody wrote)",
            Anomaly::Duplicate => "duplicate (a value twice)",
            Anomaly::G1a => "G1a (aborted read)",
            Anomaly::DirtyUpdate => "dirty update",
            Anomaly::G1b => "G1b (intermediate read)",
            Anomaly::IncompatibleOrder => "incompatible orders",
            Anomaly::Internal => "internal inconsistency",
            Anomaly::LostUpdate => "lost update",
            Anomaly::G0 => "G0 (write cycle)",
            Anomaly::G1c => "G1c (circular information flow)",
            Anomaly::StaleRead => "stale read",
            Anomaly::GSingle => "G-single (read skew)",
            Anomaly::GNonadjacent => "G-nonadjacent",
            Anomaly::G2Item => "G2-item (write skew)",
            Anomaly::G2 => "G2 (phantom)",
            Anomaly::UnexpectedError => "unexpected error",
        })
    }
}

/// Something found.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What.
    pub anomaly: Anomaly,
    /// Whether the level of those involved forbids it.
    pub is_forbidden: bool,
    /// Who, where, how.
    pub words: String,
}

impl Finding {
    /// Something that every level forbids.
    pub fn forbidden(anomaly: Anomaly, words: impl Into<String>) -> Finding {
        Finding {
            anomaly,
            is_forbidden: true,
            words: format!("  {}", words.into()),
        }
    }
}
