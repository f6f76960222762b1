//! The ledger: what the client was told is durable, kept outside the server.
//!
//! A text file, one line per event, written by the driver after the server's answer:
//!
//! ```text
//! H run schema terminals              header
//! B w d next_o oldest_new_o           a district before the run; no undelivered order: next_o
//! A terminal seq <effect>             acknowledged: the COMMIT was answered
//! I terminal seq <effect>             in flight: the connection was lost after COMMIT was sent
//! E terminal seq                      the terminal ended; it started nothing after seq
//! ```
//!
//! An effect is `N w d o lines total_cents`, `P w d c_w c_d c amount_cents` or
//! `D w carrier d:o:amount_cents,...`. Sequence numbers count a terminal's transactions from 1; a
//! payment's row in `bmsql_history` starts with `run:terminal:seq`, so that each is found exactly.
//!
//! Invariant: a line is handed to the kernel in one `write` before the terminal goes on, so the
//! file is complete even if the driver is killed; only the machine's own power failure could cut
//! it, and that would take the server's word with it.

mod read;
mod write;

use crate::failure::{Failure, Result};
use std::collections::BTreeMap;

pub use read::{Entry, Ledger};
pub use write::LedgerWriter;

/// Characters of a run's name: with terminal and sequence number it must leave room in `h_data`.
const RUN_NAME_CHARS: usize = 6;

/// A name for a run, different for each, out of a number.
pub fn run_name(number: u64) -> String {
    let mut rest = number;
    let digit = |rest: &mut u64| {
        let digit = (*rest % 36) as u32;
        *rest /= 36;
        char::from_digit(digit, 36).unwrap_or('0')
    };
    (0..RUN_NAME_CHARS).map(|_| digit(&mut rest)).collect()
}

/// One district before the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Baseline {
    /// The number the next order gets.
    pub next_o: i32,
    /// The oldest undelivered order; `next_o` if there is none.
    pub oldest_new_o: i32,
}

/// Baselines by (warehouse, district).
pub type Baselines = BTreeMap<(i32, i32), Baseline>;

/// Reads every district's baseline.
pub fn read_baselines(client: &mut postgres::Client) -> Result<Baselines> {
    let query = "SELECT d_w_id, d_id, d_next_o_id, coalesce(oldest, d_next_o_id) \
         FROM bmsql_district LEFT JOIN (SELECT no_w_id, no_d_id, min(no_o_id) AS oldest \
             FROM bmsql_new_order GROUP BY no_w_id, no_d_id) AS undelivered \
         ON no_w_id = d_w_id AND no_d_id = d_id";
    let rows = client
        .query(query, &[])
        .map_err(|error| Failure::unexpected(format!("reading the districts: {error:?}")))?;
    let entry = |row: postgres::Row| {
        let baseline = Baseline {
            next_o: row.get(2),
            oldest_new_o: row.get(3),
        };
        ((row.get(0), row.get(1)), baseline)
    };
    Ok(rows.into_iter().map(entry).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_names_leave_room_in_h_data() {
        let name = run_name(u64::MAX);
        assert_eq!(name.len(), RUN_NAME_CHARS);
        assert!(format!("{name}:{}:{}", 999, 9_999_999).len() <= crate::effect::MAX_TAG_BYTES);
    }
}
