//! Ingest of 200-byte rows into a table with three indexes: by COPY, and by inserts of ten rows.

use super::Bench;
use super::statements::writing;
use crate::pgbench::{self, Load};
use crate::record::{Place, quantity};
use crate::rig::Rig;
use crate::side::{Side, turns};
use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Instant;
use tpcc::failure::{Failure, Result};
use tpcc::target::{execute, from_client};

pub(crate) const PART: &str = "ingest";
pub(crate) const COPY: &str = "copy";
/// The setting of COPY.
pub(crate) const COPY_SETTING: &str = "1 client";
pub(crate) const TEN_ROWS: &str = "ten_rows";
/// The same, counted by statements.
pub(crate) const TEN_ROWS_STATEMENTS: &str = "ten_rows_statements";

/// With the two integers and the bigint before it a row has 200 bytes.
const PAYLOAD_BYTES: usize = 180;
/// COPY's data is handed over in pieces of this size.
const CHUNK_BYTES: usize = 128 * 1024;
const ROWS_PER_INSERT: u32 = 10;
const CLIENT_STRIDE: i64 = 1_000_000_000_000;
/// Values of the secondary keys, which come in no order.
const ACCOUNTS: i64 = 1_000_003;

pub(crate) fn measure(bench: &mut Bench<'_>) -> Result<()> {
    let sides = Side::TABLES;
    for side in sides {
        let mut client = bench.rig.client(side)?;
        let columns = "id bigint PRIMARY KEY, account int NOT NULL, created bigint NOT NULL, payload text NOT NULL";
        execute(&mut client, &side.create(&format!("ingest ({columns})")))?;
        execute(&mut client, "CREATE INDEX ON ingest (account)")?;
        execute(&mut client, "CREATE INDEX ON ingest (created)")?;
    }
    if bench.wants(COPY) {
        copy_all(bench, &sides)?;
    }
    if bench.wants(TEN_ROWS) {
        insert_all(bench, &sides)?;
    }
    Ok(())
}

fn copy_all(bench: &mut Bench<'_>, sides: &[Side]) -> Result<()> {
    bench.say("COPY");
    let rows = bench.rig.plan.ingest_rows;
    let data = copy_data(rows);
    let place = Place::new(PART, COPY, COPY_SETTING);
    for round in 0..bench.rig.plan.rounds {
        for side in turns(sides, round) {
            prepare(bench.rig, side)?;
            let mut client = bench.rig.client(side)?;
            let begin = Instant::now();
            let mut writer = client
                .copy_in("COPY ingest FROM STDIN")
                .map_err(from_client)?;
            for chunk in data.as_bytes().chunks(CHUNK_BYTES) {
                writer
                    .write_all(chunk)
                    .map_err(|error| Failure::unexpected(error.to_string()))?;
            }
            let copied = writer.finish().map_err(from_client)?;
            let seconds = begin.elapsed().as_secs_f64();
            if copied != rows as u64 {
                return Err(Failure::unexpected(format!(
                    "{copied} of {rows} rows copied"
                )));
            }
            bench.record.add(
                &place,
                side,
                quantity::ROWS_PER_SECOND,
                rows as f64 / seconds,
            );
        }
    }
    Ok(())
}

/// Text that no log can shorten: letters drawn by `seed`, which also is told from every other
/// seed's.
fn payload(seed: u64) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-";
    // SplitMix64; a number gives ten letters of six bits.
    let mut state = seed;
    let mut text = String::with_capacity(PAYLOAD_BYTES);
    while text.len() < PAYLOAD_BYTES {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        for place in 0..10 {
            text.push(char::from(LETTERS[(mixed >> (6 * place) & 63) as usize]));
        }
    }
    text.truncate(PAYLOAD_BYTES);
    text
}

/// Rows as COPY's text format has them.
fn copy_data(rows: i64) -> String {
    let mut data = String::with_capacity(rows as usize * (PAYLOAD_BYTES + 32));
    for id in 1..=rows {
        // Writing to a String cannot fail.
        let _ = writeln!(
            data,
            "{id}\t{}\t{}\t{}",
            id * 7919 % ACCOUNTS,
            id * 104_729 % rows,
            payload(id.unsigned_abs() << 32)
        );
    }
    data
}

fn insert_all(bench: &mut Bench<'_>, sides: &[Side]) -> Result<()> {
    bench.say("inserts of ten rows");
    let script = bench.rig.write_file("ten_rows.sql", &ten_rows_script())?;
    let plan = bench.rig.plan.clone();
    for synchronous in [false, true] {
        for &clients in plan.ingest_clients {
            let setting = writing(clients, synchronous);
            let (statements, rows) = (
                Place::new(PART, TEN_ROWS_STATEMENTS, &setting),
                Place::new(PART, TEN_ROWS, &setting),
            );
            for round in 0..plan.rounds {
                for side in turns(sides, round) {
                    prepare(bench.rig, side)?;
                    let load = Load {
                        script: script.clone(),
                        clients,
                        writes: true,
                        synchronous,
                        length: plan.statement,
                        variables: vec![
                            ("n", 0),
                            ("stride", CLIENT_STRIDE),
                            ("accounts", ACCOUNTS),
                        ],
                    };
                    pgbench::measure(bench.rig, bench.record, &statements, side, &load)?;
                    let each = bench.record.last(&statements, side, quantity::PER_SECOND);
                    let each = each.ok_or_else(|| Failure::unexpected("pgbench left no figure"))?;
                    bench.record.add(
                        &rows,
                        side,
                        quantity::ROWS_PER_SECOND,
                        each * f64::from(ROWS_PER_INSERT),
                    );
                }
            }
        }
    }
    Ok(())
}

fn ten_rows_script() -> String {
    let mut script =
        format!("\\set n :n + {ROWS_PER_INSERT}\n\\set id :client_id * :stride + :n\n");
    let mut rows = Vec::new();
    for row in 0..ROWS_PER_INSERT {
        let _ = writeln!(script, "\\set a{row} random(1, :accounts)");
        rows.push(format!(
            "(:id::bigint + {row}, :a{row}, :a{row} * 7, '{}')",
            payload(u64::from(row) << 32)
        ));
    }
    let _ = writeln!(
        script,
        "INSERT INTO ingest (id, account, created, payload) VALUES {};",
        rows.join(", ")
    );
    script
}

/// An empty table, and for all the same distance from the last checkpoint.
fn prepare(rig: &Rig, side: Side) -> Result<()> {
    execute(&mut rig.client(side)?, "TRUNCATE ingest")?;
    rig.checkpoint()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_copy_have_all_columns_and_distinct_ids() {
        let data = copy_data(3);
        let lines: Vec<Vec<&str>> = data
            .lines()
            .map(|line| line.split('\t').collect())
            .collect();
        assert_eq!(lines.len(), 3);
        assert!(
            lines
                .iter()
                .all(|line| line.len() == 4 && line[3].len() == PAYLOAD_BYTES)
        );
        assert_eq!(lines[2][0], "3");
        assert_ne!(lines[1][3], lines[2][3]);
    }

    #[test]
    fn an_insert_has_ten_rows() {
        assert_eq!(ten_rows_script().matches("(:id::bigint + ").count(), 10);
    }
}
