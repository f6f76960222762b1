//! Full scans and aggregates over a table that lies in memory: milliseconds.

use super::Bench;
use crate::record::{Place, quantity};
use crate::side::{Side, turns};
use std::time::Instant;
use tpcc::failure::{Failure, Result};
use tpcc::target::{execute, from_client};

pub(crate) const PART: &str = "scan";
pub(crate) const FILTER: &str = "filter";
/// One process for everybody.
pub(crate) const ONE_PROCESS: &str = "one process";
/// As PostgreSQL does it by itself: heap tables are scanned by several.
pub(crate) const PARALLEL: &str = "with parallel workers";

const QUERIES: [(&str, &str); 4] = [
    (
        FILTER,
        "SELECT count(*) FROM scanned WHERE balance % 10 = 3",
    ),
    (
        "sum",
        "SELECT count(*), sum(balance), min(id), max(id) FROM scanned",
    ),
    (
        "group",
        "SELECT branch, count(*), sum(balance) FROM scanned GROUP BY branch",
    ),
    (
        "text_filter",
        "SELECT count(*) FROM scanned WHERE filler LIKE '%77%'",
    ),
];

pub(crate) fn measure(bench: &mut Bench<'_>) -> Result<()> {
    let plan = bench.rig.plan.clone();
    let rows = plan.scan_rows;
    let sides = [Side::Mot, Side::Heap];
    for side in sides {
        let mut client = bench.rig.client(side)?;
        let columns = "id bigint PRIMARY KEY, branch int NOT NULL, balance bigint NOT NULL, filler text NOT NULL";
        execute(&mut client, &side.create(&format!("scanned ({columns})")))?;
        let fill = format!(
            "INSERT INTO scanned SELECT n, n % 100, n * 7919 % 1000003, lpad(n::text, 80, '.') FROM \
             generate_series(1::bigint, {rows}) n"
        );
        execute(&mut client, &fill)?;
        execute(&mut client, &side.settle("scanned"))?;
    }
    for (name, query) in QUERIES {
        if !bench.wants(name) {
            continue;
        }
        bench.say(&format!("scan {name}"));
        let mut answers = Vec::new();
        for side in sides {
            // Also brings everything into memory.
            answers.push(answer(bench, side, query)?);
        }
        if answers[0] != answers[1] {
            return Err(Failure::unexpected(format!(
                "MOT and heap give different answers to {query}"
            )));
        }
        for round in 0..plan.rounds {
            for side in turns(&sides, round) {
                for (setting, workers) in [(ONE_PROCESS, "0"), (PARALLEL, "DEFAULT")] {
                    let mut client = bench.rig.client(side)?;
                    execute(
                        &mut client,
                        &format!("SET max_parallel_workers_per_gather = {workers}"),
                    )?;
                    let statement = client.prepare(query).map_err(from_client)?;
                    client.query(&statement, &[]).map_err(from_client)?;
                    let begin = Instant::now();
                    client.query(&statement, &[]).map_err(from_client)?;
                    let milliseconds = begin.elapsed().as_secs_f64() * 1e3;
                    bench.record.add(
                        &Place::new(PART, name, setting),
                        side,
                        quantity::MILLISECONDS,
                        milliseconds,
                    );
                }
            }
        }
    }
    Ok(())
}

/// What `query` says, as text and in order.
fn answer(bench: &Bench<'_>, side: Side, query: &str) -> Result<Vec<String>> {
    let query = format!("SELECT r::text FROM ({query}) r ORDER BY 1");
    let rows = bench
        .rig
        .client(side)?
        .query(&query, &[])
        .map_err(from_client)?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}
