//! The twelve consistency conditions of TPC-C clause 3.3.2, each as one query that counts the
//! places where it does not hold.

use crate::failure::{Failure, Result};
use crate::scale::{DISTRICTS, LoadedConfig};
use crate::target::{Target, execute, from_client};
use serde::{Deserialize, Serialize};

/// For sessions that read the whole database: memory for their hash tables, and no nested loops,
/// into which statistics older than the run would lead the planner.
pub const BULK_READ_SETTINGS: &str = "SET work_mem = '256MB'; SET enable_nestloop = off";

/// One condition.
pub struct Condition {
    /// Its number in clause 3.3.2.
    pub number: u32,
    /// What it says.
    pub says: &'static str,
    query: &'static str,
}

/// What the queries call `:delivered` and `:first_delivery_sum`: per district, the orders the load
/// left delivered, and the sum of `c_delivery_cnt` after the load.
const DELIVERED: &str = ":delivered";
const FIRST_DELIVERY_SUM: &str = ":first_delivery_sum";

/// All twelve, in order. Missing counterparts are caught by outer joins and `IS DISTINCT FROM`.
pub const CONDITIONS: [Condition; 12] = [
    Condition {
        number: 1,
        says: "w_ytd is the sum of the districts' d_ytd",
        query: "SELECT count(*) FROM bmsql_warehouse FULL JOIN (
            SELECT d_w_id, sum(d_ytd) AS ytd FROM bmsql_district GROUP BY d_w_id) AS d
            ON d_w_id = w_id WHERE w_ytd IS DISTINCT FROM ytd",
    },
    Condition {
        number: 2,
        says: "d_next_o_id - 1 is the highest order and, if any is undelivered, the highest new order",
        query: "SELECT count(*) FROM bmsql_district
            FULL JOIN (SELECT o_w_id, o_d_id, max(o_id) AS highest FROM bmsql_oorder
                GROUP BY o_w_id, o_d_id) AS o ON o_w_id = d_w_id AND o_d_id = d_id
            FULL JOIN (SELECT no_w_id, no_d_id, max(no_o_id) AS highest_new FROM bmsql_new_order
                GROUP BY no_w_id, no_d_id) AS n ON no_w_id = d_w_id AND no_d_id = d_id
            WHERE d_next_o_id - 1 IS DISTINCT FROM highest
               OR d_next_o_id - 1 IS DISTINCT FROM coalesce(highest_new, highest)",
    },
    Condition {
        number: 3,
        says: "the undelivered orders of a district have no gap",
        query: "SELECT count(*) FROM (SELECT 1 FROM bmsql_new_order GROUP BY no_w_id, no_d_id
            HAVING max(no_o_id) - min(no_o_id) + 1 <> count(*)) AS gaps",
    },
    Condition {
        number: 4,
        says: "a district has as many order lines as its orders say",
        query: "SELECT count(*) FROM (SELECT o_w_id, o_d_id, sum(o_ol_cnt) AS said
                FROM bmsql_oorder GROUP BY o_w_id, o_d_id) AS o
            FULL JOIN (SELECT ol_w_id, ol_d_id, count(*) AS present
                FROM bmsql_order_line GROUP BY ol_w_id, ol_d_id) AS l
            ON ol_w_id = o_w_id AND ol_d_id = o_d_id WHERE said IS DISTINCT FROM present",
    },
    Condition {
        number: 5,
        says: "an order has no carrier exactly if it is in new_order",
        query: "SELECT count(*) FROM bmsql_oorder
            FULL JOIN bmsql_new_order ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id
            WHERE o_id IS NULL OR (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL)",
    },
    Condition {
        number: 6,
        says: "an order has as many lines as o_ol_cnt says",
        query: "SELECT count(*) FROM bmsql_oorder FULL JOIN (
            SELECT ol_w_id, ol_d_id, ol_o_id, count(*) AS present FROM bmsql_order_line
                GROUP BY ol_w_id, ol_d_id, ol_o_id) AS l
            ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
            WHERE o_ol_cnt IS DISTINCT FROM present",
    },
    Condition {
        number: 7,
        says: "an order line has no delivery date exactly if its order has no carrier",
        query: "SELECT count(*) FROM bmsql_order_line LEFT JOIN bmsql_oorder
            ON o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id
            WHERE o_id IS NULL OR (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL)",
    },
    Condition {
        number: 8,
        says: "w_ytd is the sum of the warehouse's payments",
        query: "SELECT count(*) FROM bmsql_warehouse FULL JOIN (
            SELECT h_w_id, sum(h_amount) AS paid FROM bmsql_history GROUP BY h_w_id) AS h
            ON h_w_id = w_id WHERE w_ytd IS DISTINCT FROM paid",
    },
    Condition {
        number: 9,
        says: "d_ytd is the sum of the district's payments",
        query: "SELECT count(*) FROM bmsql_district FULL JOIN (
            SELECT h_w_id, h_d_id, sum(h_amount) AS paid FROM bmsql_history
                GROUP BY h_w_id, h_d_id) AS h
            ON h_w_id = d_w_id AND h_d_id = d_id WHERE d_ytd IS DISTINCT FROM paid",
    },
    Condition {
        number: 10,
        says: "c_balance is what was delivered to the customer less what the customer paid",
        query: "SELECT count(*) FROM bmsql_customer
            FULL JOIN (SELECT o_w_id, o_d_id, o_c_id, sum(ol_amount) AS delivered
                FROM bmsql_oorder JOIN bmsql_order_line
                ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
                WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) AS o
                ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id
            FULL JOIN (SELECT h_c_w_id, h_c_d_id, h_c_id, sum(h_amount) AS paid
                FROM bmsql_history GROUP BY h_c_w_id, h_c_d_id, h_c_id) AS h
                ON h_c_w_id = c_w_id AND h_c_d_id = c_d_id AND h_c_id = c_id
            WHERE c_balance IS DISTINCT FROM coalesce(delivered, 0) - coalesce(paid, 0)",
    },
    Condition {
        number: 11,
        says: "orders that are not new are those the load delivered and those delivered since",
        query: "SELECT count(*) FROM (SELECT c_w_id, c_d_id, sum(c_delivery_cnt) AS deliveries
                FROM bmsql_customer GROUP BY c_w_id, c_d_id) AS c
            FULL JOIN (SELECT o_w_id, o_d_id, count(*) AS orders FROM bmsql_oorder
                GROUP BY o_w_id, o_d_id) AS o ON o_w_id = c_w_id AND o_d_id = c_d_id
            FULL JOIN (SELECT no_w_id, no_d_id, count(*) AS new_orders FROM bmsql_new_order
                GROUP BY no_w_id, no_d_id) AS n ON no_w_id = c_w_id AND no_d_id = c_d_id
            WHERE orders - coalesce(new_orders, 0)
                IS DISTINCT FROM :delivered + deliveries - :first_delivery_sum",
    },
    Condition {
        number: 12,
        says: "c_balance + c_ytd_payment is what was delivered to the customer",
        query: "SELECT count(*) FROM bmsql_customer
            FULL JOIN (SELECT o_w_id, o_d_id, o_c_id, sum(ol_amount) AS delivered
                FROM bmsql_oorder JOIN bmsql_order_line
                ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
                WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) AS o
                ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id
            WHERE c_balance + c_ytd_payment IS DISTINCT FROM coalesce(delivered, 0)",
    },
];

/// What one condition's query found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Finding {
    /// The condition's number in clause 3.3.2.
    pub condition: u32,
    /// What it says.
    pub says: String,
    /// Places where it does not hold.
    pub violations: i64,
}

impl Finding {
    /// `PASS` or `FAIL`.
    pub fn verdict(&self) -> &'static str {
        if self.violations == 0 { "PASS" } else { "FAIL" }
    }
}

/// Runs all twelve queries in one snapshot.
pub fn check(target: &Target) -> Result<Vec<Finding>> {
    let mut client = target.client()?;
    let config = LoadedConfig::read(&mut client)?;
    let (delivered, first_sum) = (
        config.scale.delivered(),
        config.scale.customers * config.first_delivery_count,
    );
    execute(&mut client, BULK_READ_SETTINGS)?;
    let mut transaction = client
        .build_transaction()
        .isolation_level(postgres::IsolationLevel::RepeatableRead)
        .read_only(true)
        .start()
        .map_err(from_client)?;
    let mut findings = Vec::with_capacity(CONDITIONS.len());
    for condition in &CONDITIONS {
        let query = condition
            .query
            .replace(DELIVERED, &delivered.to_string())
            .replace(FIRST_DELIVERY_SUM, &first_sum.to_string());
        let violations = transaction
            .query_one(&query, &[])
            .map_err(from_client)?
            .get(0);
        let says = condition.says.to_owned();
        findings.push(Finding {
            condition: condition.number,
            says,
            violations,
        });
    }
    transaction.commit().map_err(from_client)?;
    // Conditions over an empty database hold trivially: that is not a pass.
    let districts: i64 = client
        .query_one("SELECT count(*) FROM bmsql_district", &[])
        .map_err(from_client)?
        .get(0);
    let missing = i64::from(config.scale.warehouses * DISTRICTS) - districts;
    if let Some(first) = findings.first_mut() {
        first.violations += missing.abs();
    }
    Ok(findings)
}

/// Has `mot.check` compare the rows and indexes of every MOT table in the target's schema; returns
/// what it complains of. Heap tables have no such function and no complaints.
pub fn table_complaints(target: &Target) -> Result<Vec<String>> {
    let mut complaints = Vec::new();
    if !target.engine.is_mot() {
        return Ok(complaints);
    }
    let mut client = target.client()?;
    let tables = "SELECT c.oid::regclass::text FROM pg_class c JOIN pg_am a ON a.oid = relam \
         WHERE relnamespace = current_schema()::regnamespace AND amname = 'mot'";
    for row in client.query(tables, &[]).map_err(from_client)? {
        let table: String = row.get(0);
        if let Err(error) = client.simple_query(&format!("SELECT mot.check('{table}')")) {
            match from_client(error) {
                Failure::Server { message, .. } => {
                    complaints.push(format!("mot.check of {table}: {message}"));
                }
                other => return Err(other),
            }
        }
    }
    Ok(complaints)
}

/// Prints a line per condition; true if all of them hold.
pub fn print(findings: &[Finding]) -> bool {
    for finding in findings {
        let extra = match finding.violations {
            0 => String::new(),
            count => format!(" ({count} violations)"),
        };
        println!(
            "{:>2} {} {}{extra}",
            finding.condition,
            finding.verdict(),
            finding.says
        );
    }
    findings.iter().all(|finding| finding.violations == 0)
}

/// The sum of all violations.
pub fn violations(findings: &[Finding]) -> i64 {
    findings.iter().map(|finding| finding.violations).sum()
}
