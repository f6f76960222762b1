//! Compares a database with a ledger after a crash, in both directions: nothing that was
//! acknowledged may be missing or changed, and nothing may be there that was neither acknowledged
//! nor in flight.
//!
//! To be run after the ledger's run and before anything else writes to the tables. The comparison
//! itself ([`compare`]) is plain data against plain data; [`read_found`] gathers the database's
//! side.

mod compare;
mod found;

use crate::failure::Result;
use crate::ledger::Ledger;
use crate::target::Target;
use std::fmt;

pub use compare::compare;
pub use found::{Found, FoundOrder, FoundPayment, read_found};

/// What the comparison found.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Acknowledged transactions in the ledger.
    pub acknowledged: usize,
    /// Acknowledged transactions that are missing or changed.
    pub lost: Vec<String>,
    /// Transactions in the database that nobody can have committed.
    pub extra: Vec<String>,
    /// In-flight transactions that did take effect.
    pub in_flight_kept: usize,
    /// In-flight transactions that did not.
    pub in_flight_gone: usize,
}

impl Verdict {
    /// True if nothing is lost and nothing is extra.
    pub fn holds(&self) -> bool {
        self.lost.is_empty() && self.extra.is_empty()
    }
}

/// Complaints printed per direction.
const SHOWN: usize = 20;

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} acknowledged, {} lost, {} extra; in flight: {} kept, {} gone",
            self.acknowledged,
            self.lost.len(),
            self.extra.len(),
            self.in_flight_kept,
            self.in_flight_gone
        )?;
        for (what, list) in [("LOST", &self.lost), ("EXTRA", &self.extra)] {
            for line in list.iter().take(SHOWN) {
                writeln!(f, "{what} {line}")?;
            }
        }
        Ok(())
    }
}

/// Reads the database and compares it with `ledger`.
pub fn check(target: &Target, ledger: &Ledger) -> Result<Verdict> {
    Ok(compare(ledger, &read_found(target, ledger)?))
}
