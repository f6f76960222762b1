//! sysbench's OLTP scripts, unmodified, on MOT and heap tables and on MariaDB's InnoDB, synchronous
//! commit.

use super::Bench;
use crate::mariadb::{DATABASE, Mariadb};
use crate::plan::Length;
use crate::record::{Place, quantity};
use crate::rig::Rig;
use crate::side::{Side, turns};
use std::process::Command;
use tpcc::failure::{Failure, Result};
use tpcc::target::execute;

pub(crate) const PART: &str = "sysbench";

/// How a setting is called.
pub(crate) fn threads_setting(threads: u32) -> String {
    format!("{threads} threads")
}

pub(crate) fn measure(bench: &mut Bench<'_>) -> Result<()> {
    let plan = bench.rig.plan.clone();
    let mariadb = Mariadb::start(bench.rig)?;
    let mut sides = vec![Side::Mot, Side::Heap];
    match &mariadb {
        Some(_) => sides.push(Side::Innodb),
        None => bench
            .notes
            .push("InnoDB not measured: mariadbd is not installed".into()),
    }
    for &side in &sides {
        bench.say(&format!("sysbench prepare, {side}"));
        prepare(bench.rig, side, mariadb.as_ref())?;
    }
    bench.rig.checkpoint()?;
    for test in plan.sysbench_tests {
        if !bench.wants(test) {
            continue;
        }
        let is_writing = test.contains("write") || test.contains("update");
        for &threads in plan.sysbench_threads {
            bench.say(&format!("sysbench {test}, {threads} threads"));
            let place = Place::new(PART, *test, threads_setting(threads));
            for round in 0..plan.rounds {
                bench.rig.make_room_for_wal()?;
                for side in turns(&sides, round) {
                    if side == Side::Heap && is_writing {
                        vacuum(bench.rig)?;
                    }
                    let cpu_of_innodb = mariadb.as_ref().map(Mariadb::cpu_time);
                    let begin = bench.rig.read()?;
                    let (transactions, per_second) =
                        run(bench.rig, side, mariadb.as_ref(), test, threads)?;
                    let spent = bench.rig.spent_since(begin)?;
                    let cpu = match (side, &mariadb, cpu_of_innodb) {
                        (Side::Innodb, Some(server), Some(before)) => server.cpu_time() - before,
                        _ => spent.cpu,
                    };
                    let micros = cpu.as_secs_f64() * 1e6 / transactions;
                    bench
                        .record
                        .add(&place, side, quantity::PER_SECOND, per_second);
                    bench.record.add(&place, side, quantity::SERVER_CPU, micros);
                    if side != Side::Innodb && is_writing {
                        let bytes = spent.wal_bytes as f64 / transactions;
                        bench.record.add(&place, side, quantity::WAL_BYTES, bytes);
                    }
                }
            }
        }
    }
    bench.notes.push(format!(
        "{} tables of {} rows; InnoDB under its default isolation level, REPEATABLE READ, PostgreSQL under \
         READ COMMITTED",
        plan.sysbench_tables, plan.sysbench_rows
    ));
    Ok(())
}

fn prepare(rig: &Rig, side: Side, mariadb: Option<&Mariadb>) -> Result<()> {
    let threads = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
    sysbench(rig, side, mariadb, "oltp_common", threads, &["prepare"])?;
    if side != Side::Innodb {
        let mut client = rig.client(side)?;
        for table in 1..=rig.plan.sysbench_tables {
            execute(&mut client, &side.settle(&format!("sbtest{table}")))?;
        }
    }
    Ok(())
}

/// Before each run that writes, as with the other statements: none pays for another's dead rows.
/// InnoDB purges by itself.
fn vacuum(rig: &Rig) -> Result<()> {
    let mut client = rig.client(Side::Heap)?;
    for table in 1..=rig.plan.sysbench_tables {
        execute(&mut client, &format!("VACUUM sbtest{table}"))?;
    }
    Ok(())
}

/// Transactions, and those per second.
fn run(
    rig: &Rig,
    side: Side,
    mariadb: Option<&Mariadb>,
    test: &str,
    threads: u32,
) -> Result<(f64, f64)> {
    let length = match rig.plan.sysbench {
        Length::Seconds(seconds) => vec![format!("--time={seconds}"), "--events=0".to_owned()],
        Length::Transactions(count) => vec![
            "--time=0".to_owned(),
            format!("--events={}", count * threads),
        ],
    };
    let mut rest: Vec<&str> = length.iter().map(String::as_str).collect();
    rest.push("run");
    let text = sysbench(rig, side, mariadb, test, threads, &rest)?;
    parse(&text).ok_or_else(|| {
        Failure::unexpected(format!(
            "sysbench {test} on {side} printed no figures: {text}"
        ))
    })
}

fn sysbench(
    rig: &Rig,
    side: Side,
    mariadb: Option<&Mariadb>,
    test: &str,
    threads: u32,
    rest: &[&str],
) -> Result<String> {
    let mut command: Command = rig.cluster.program("/usr/bin/sysbench");
    command
        .arg(test)
        .arg(format!("--tables={}", rig.plan.sysbench_tables))
        .arg(format!("--table-size={}", rig.plan.sysbench_rows))
        .arg(format!("--threads={threads}"))
        .args(["--report-interval=0", "--rand-type=uniform"]);
    match (side, mariadb) {
        (Side::Innodb, Some(server)) => {
            command
                .args([
                    "--db-driver=mysql",
                    "--mysql-user=root",
                    "--mysql-password=",
                ])
                .arg(format!("--mysql-db={DATABASE}"))
                .arg(format!("--mysql-socket={}", server.socket().display()));
        }
        _ => {
            let method = if side == Side::Mot { "mot" } else { "heap" };
            command
                .env(
                    "PGOPTIONS",
                    format!(
                        "-c search_path={} -c default_table_access_method={method}",
                        side.schema()
                    ),
                )
                .args([
                    "--db-driver=pgsql",
                    "--pgsql-user=postgres",
                    "--pgsql-password=",
                    "--pgsql-db=postgres",
                ])
                .arg(format!(
                    "--pgsql-host={}",
                    rig.cluster.directory().display()
                ));
        }
    }
    let output = command
        .args(rest)
        .output()
        .map_err(|error| Failure::unexpected(format!("sysbench: {error}")))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(text);
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(Failure::unexpected(format!(
        "sysbench {test} {} on {side}: {errors}{text}",
        rest.join(" ")
    )))
}

/// "transactions:    1234   (123.45 per sec.)"
fn parse(text: &str) -> Option<(f64, f64)> {
    let line = text
        .lines()
        .find_map(|line| line.trim_start().strip_prefix("transactions:"))?;
    let (count, rate) = line.split_once('(')?;
    let transactions: f64 = count.trim().parse().ok()?;
    let per_second: f64 = rate.split_whitespace().next()?.parse().ok()?;
    (transactions > 0.0 && per_second.is_finite()).then_some((transactions, per_second))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_transactions_is_read() {
        let text = "SQL statistics:\n    transactions:                        4190   (1396.06 per sec.)\n    \
            queries: 83800";
        assert_eq!(parse(text), Some((4190.0, 1396.06)));
        assert_eq!(
            parse("    transactions:                        0   (0.00 per sec.)"),
            None
        );
        assert_eq!(parse("FATAL: no"), None);
    }
}
