//! The database's side of the comparison: what the ledger's run can have touched.

use crate::check::BULK_READ_SETTINGS;
use crate::effect::Effect;
use crate::failure::{Failure, Result};
use crate::ledger::{Baselines, Ledger, read_baselines};
use crate::row::parse_numeric;
use crate::target::{Target, execute, from_client};
use std::collections::HashMap;

/// An order as the database has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundOrder {
    /// `o_ol_cnt`.
    pub lines_said: i32,
    /// Rows of `bmsql_order_line`.
    pub lines: i64,
    /// Lines with a delivery date.
    pub lines_delivered: i64,
    /// Sum of the lines' amounts.
    pub total_cents: i64,
    /// `o_carrier_id`.
    pub carrier: Option<i32>,
    /// A row in `bmsql_new_order` exists.
    pub is_new: bool,
}

/// A payment as `bmsql_history` has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundPayment {
    /// Terminal and sequence number out of `h_data`.
    pub key: (u32, u64),
    /// The effect it stands for.
    pub effect: Effect,
}

/// The database's side of the comparison.
#[derive(Debug, Default)]
pub struct Found {
    /// Orders made or delivered since the run began, by (w, d, o).
    pub orders: HashMap<(i32, i32, i32), FoundOrder>,
    /// Payments of the run.
    pub payments: Vec<FoundPayment>,
    /// The districts as they are now.
    pub districts: Baselines,
}

/// Gathers the orders, payments and districts that the ledger's run can have touched.
pub fn read_found(target: &Target, ledger: &Ledger) -> Result<Found> {
    let mut client = target.client()?;
    execute(&mut client, BULK_READ_SETTINGS)?;
    let mut found = Found {
        districts: read_baselines(&mut client)?,
        ..Found::default()
    };
    // Every order the run can have made or delivered is not older than the district's oldest new
    // one.
    let oldest = ledger
        .baselines
        .values()
        .map(|baseline| baseline.oldest_new_o)
        .min()
        .unwrap_or(0);
    let query = "SELECT o_w_id, o_d_id, o_id, o_ol_cnt, o_carrier_id, no_o_id IS NOT NULL, \
             coalesce(lines, 0), coalesce(delivered, 0), coalesce(total, 0)::text \
         FROM bmsql_oorder \
         LEFT JOIN bmsql_new_order ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id \
         LEFT JOIN (SELECT ol_w_id, ol_d_id, ol_o_id, count(*) AS lines, \
                 count(ol_delivery_d) AS delivered, sum(ol_amount) AS total \
             FROM bmsql_order_line WHERE ol_o_id >= $1 GROUP BY ol_w_id, ol_d_id, ol_o_id) AS l \
         ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id WHERE o_id >= $1";
    for row in client.query(query, &[&oldest]).map_err(from_client)? {
        let order = FoundOrder {
            lines_said: row.get(3),
            lines: row.get(6),
            lines_delivered: row.get(7),
            total_cents: cents(row.get(8))?,
            carrier: row.get(4),
            is_new: row.get(5),
        };
        found
            .orders
            .insert((row.get(0), row.get(1), row.get(2)), order);
    }
    let query = "SELECT h_data, h_w_id, h_d_id, h_c_w_id, h_c_d_id, h_c_id, h_amount::text \
         FROM bmsql_history WHERE h_data LIKE $1";
    let pattern = format!("{}:%", ledger.run);
    for row in client.query(query, &[&pattern]).map_err(from_client)? {
        let effect = Effect::Payment {
            w: row.get(1),
            d: row.get(2),
            c_w: row.get(3),
            c_d: row.get(4),
            c: row.get(5),
            amount_cents: cents(row.get(6))?,
        };
        found.payments.push(FoundPayment {
            key: payment_key(row.get(0))?,
            effect,
        });
    }
    Ok(found)
}

fn cents(text: &str) -> Result<i64> {
    parse_numeric(text, 2).ok_or_else(|| Failure::unexpected(format!("{text} is not money")))
}

/// Terminal and sequence number out of `run:terminal:seq ...`.
fn payment_key(data: &str) -> Result<(u32, u64)> {
    let tag = data.split(' ').next().unwrap_or_default();
    let mut parts = tag.split(':').skip(1);
    let terminal = parts.next().and_then(|part| part.parse().ok());
    let seq = parts.next().and_then(|part| part.parse().ok());
    terminal
        .zip(seq)
        .ok_or_else(|| Failure::unexpected(format!("h_data \"{data}\" has no tag")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_read_out_of_h_data() {
        assert_eq!(
            payment_key("abc123:17:4711 Wname    D").unwrap(),
            (17, 4711)
        );
        assert_eq!(payment_key("abc123:17:4711").unwrap(), (17, 4711));
        assert!(payment_key("abc123").is_err());
    }
}
