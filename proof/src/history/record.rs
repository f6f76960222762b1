//! The form of a history: a header line, then a line for each transaction, in JSON.
//!
//! Values are unique per key. A list's value is what was appended to it, in order; a register is a
//! list that has at most its newest value. A key without a row reads as the empty list.

use crate::failure::{Failure, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;

/// Isolation levels.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum,
)]
pub enum Level {
    /// READ COMMITTED
    #[value(alias = "rc")]
    ReadCommitted,
    /// REPEATABLE READ
    #[value(alias = "rr")]
    RepeatableRead,
    /// SERIALIZABLE
    #[value(alias = "ser")]
    Serializable,
}

impl Level {
    /// All of them.
    pub const ALL: [Level; 3] = [
        Level::ReadCommitted,
        Level::RepeatableRead,
        Level::Serializable,
    ];
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Level::ReadCommitted => "READ COMMITTED",
            Level::RepeatableRead => "REPEATABLE READ",
            Level::Serializable => "SERIALIZABLE",
        })
    }
}

/// What a key holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
pub enum Kind {
    /// A list that is appended to: every read tells the order of all writes before it.
    List,
    /// One value, replaced by each write.
    Register,
}

/// The first line of a history.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Header {
    /// What keys hold.
    pub kind: Kind,
    /// The level of its transactions.
    pub level: Level,
    /// The seed of its workload.
    pub seed: u64,
    /// What else a reader may want to know.
    pub note: String,
}

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// Its COMMIT was acknowledged.
    Committed,
    /// It was rolled back, refused, or cut off before its COMMIT was sent.
    Aborted,
    /// The connection was lost after COMMIT was sent.
    Unknown,
}

/// One read or write of one key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// The key.
    pub key: u64,
    /// Which statement of the transaction it was part of.
    pub statement: u32,
    /// The statement's form, for explanations.
    pub form: String,
    /// What was done.
    pub action: Action,
}

/// Reads and writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Action {
    /// A read.
    Read {
        /// What it saw.
        seen: Vec<i64>,
        /// How.
        by: By,
    },
    /// An append, or a register's new value.
    Write {
        /// The value.
        value: i64,
        /// Taken back by ROLLBACK TO SAVEPOINT.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        undone: bool,
    },
}

/// Ways to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum By {
    /// By the key, under the statement's snapshot.
    Key,
    /// By a condition that more keys may meet.
    Predicate,
    /// The newest state, locked against changes until the transaction's end.
    Lock,
    /// The newest state; others may change it since the lock is weaker (FOR SHARE, FOR KEY SHARE),
    /// or was given up with a savepoint.
    WasLocked,
}

impl By {
    /// Reads of the newest state, whatever the snapshot.
    pub fn is_locking(self) -> bool {
        matches!(self, By::Lock | By::WasLocked)
    }
}

/// One transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transaction {
    /// The session it ran in; a session that lost its connection becomes another.
    pub process: u32,
    /// Its level.
    pub level: Level,
    /// Nanoseconds since the run began, before its first statement was sent.
    pub begin: u64,
    /// The same after its last answer; of no meaning if the outcome is unknown.
    pub end: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// The error that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What it did, in order. What it tried last, and got an error for, is there as well if it was
    /// a write.
    pub operations: Vec<Operation>,
}

/// A history.
#[derive(Clone, Debug)]
pub struct History {
    /// The first line.
    pub header: Header,
    /// The others.
    pub transactions: Vec<Transaction>,
}

impl History {
    /// Writes it to a file.
    pub fn write(&self, path: &Path) -> Result<()> {
        let named =
            |error: &dyn fmt::Display| Failure::other(format!("{}: {error}", path.display()));
        let file = std::fs::File::create(path).map_err(|error| named(&error))?;
        let mut file = BufWriter::new(file);
        let line = serde_json::to_string(&self.header).map_err(|error| named(&error))?;
        writeln!(file, "{line}").map_err(|error| named(&error))?;
        for transaction in &self.transactions {
            let line = serde_json::to_string(transaction).map_err(|error| named(&error))?;
            writeln!(file, "{line}").map_err(|error| named(&error))?;
        }
        file.flush().map_err(|error| named(&error))
    }

    /// Reads one back.
    pub fn read(path: &Path) -> Result<History> {
        let named = |line: usize, error: &dyn fmt::Display| {
            Failure::other(format!("{}, line {line}: {error}", path.display()))
        };
        let file = std::fs::File::open(path).map_err(|error| named(0, &error))?;
        let mut lines = BufReader::new(file).lines().enumerate();
        let (_, first) = lines.next().ok_or_else(|| named(1, &"no header"))?;
        let first = first.map_err(|error| named(1, &error))?;
        let header = serde_json::from_str(&first).map_err(|error| named(1, &error))?;
        let mut transactions = Vec::new();
        for (number, line) in lines {
            let line = line.map_err(|error| named(number + 1, &error))?;
            let transaction =
                serde_json::from_str(&line).map_err(|error| named(number + 1, &error))?;
            transactions.push(transaction);
        }
        Ok(History {
            header,
            transactions,
        })
    }
}
