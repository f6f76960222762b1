//! Runs of pgbench: one custom script, prepared, over the server's socket.

use crate::plan::Length;
use crate::record::{Place, Record, quantity};
use crate::rig::Rig;
use crate::side::Side;
use std::path::PathBuf;
use tpcc::failure::{Failure, Result};

/// One kind of run.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    /// The script, in the server's directory.
    pub script: PathBuf,
    pub clients: u32,
    /// Whether it changes anything; what does not has no WAL of its own.
    pub writes: bool,
    pub synchronous: bool,
    pub length: Length,
    /// Variables the script finds set.
    pub variables: Vec<(&'static str, i64)>,
}

/// What pgbench says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Outcome {
    pub transactions: u64,
    per_second: f64,
}

/// Runs `load` on the tables of `side` once and adds its speed and its cost to the record.
pub(crate) fn measure(
    rig: &Rig,
    record: &mut Record,
    place: &Place,
    side: Side,
    load: &Load,
) -> Result<()> {
    let begin = rig.read()?;
    let outcome = run(rig, side, load)?;
    let spent = rig.spent_since(begin)?;
    let transactions = outcome.transactions as f64;
    record.add(place, side, quantity::PER_SECOND, outcome.per_second);
    record.add(
        place,
        side,
        quantity::SERVER_CPU,
        spent.cpu.as_secs_f64() * 1e6 / transactions,
    );
    if load.writes {
        let bytes = spent.wal_bytes as f64 / transactions;
        record.add(place, side, quantity::WAL_BYTES, bytes);
    }
    if let Some(instructions) = spent.instructions {
        record.add(
            place,
            side,
            quantity::INSTRUCTIONS,
            instructions as f64 / transactions,
        );
    }
    Ok(())
}

/// Runs `load` on the tables of `side`.
pub(crate) fn run(rig: &Rig, side: Side, load: &Load) -> Result<Outcome> {
    let commit = if load.synchronous { "on" } else { "off" };
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
    let mut command = rig.cluster.program("pgbench");
    command
        .env(
            "PGOPTIONS",
            format!(
                "-c search_path={} -c synchronous_commit={commit}",
                side.schema()
            ),
        )
        .args(["-n", "-M", "prepared", "-U", "postgres", "-h"])
        .arg(rig.cluster.directory())
        .arg("-f")
        .arg(&load.script)
        .args([
            "-c",
            &load.clients.to_string(),
            "-j",
            &load.clients.min(cores).to_string(),
        ]);
    match load.length {
        Length::Seconds(seconds) => command.args(["-T", &seconds.to_string()]),
        Length::Transactions(count) => command.args(["-t", &count.to_string()]),
    };
    for (name, value) in &load.variables {
        command.arg("-D").arg(format!("{name}={value}"));
    }
    let output = command
        .arg("postgres")
        .output()
        .map_err(|error| Failure::unexpected(format!("pgbench: {error}")))?;
    let (text, errors) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    match parse(&text) {
        Some(outcome) if output.status.success() => Ok(outcome),
        _ => Err(Failure::unexpected(format!(
            "pgbench of {} on {side}: {errors}{text}",
            load.script.display()
        ))),
    }
}

/// The figures of a run in which every transaction succeeded.
fn parse(text: &str) -> Option<Outcome> {
    let after = |start: &str| text.lines().find_map(|line| line.strip_prefix(start));
    let number = |rest: &str| rest.split([' ', '/']).next()?.parse::<f64>().ok();
    let failed = number(after("number of failed transactions: ")?)?;
    let transactions = number(after("number of transactions actually processed: ")?)?;
    let per_second = number(after("tps = ")?)?;
    let is_whole = failed == 0.0 && transactions > 0.0 && per_second.is_finite();
    is_whole.then_some(Outcome {
        transactions: transactions as u64,
        per_second,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMED: &str = "transaction type: x.sql\nnumber of clients: 8\nduration: 2 s\n\
        number of transactions actually processed: 42\nnumber of failed transactions: 0 (0.000%)\n\
        latency average = 0.1 ms\ninitial connection time = 12.3 ms\ntps = 21.5 (without initial connection time)\n";

    #[test]
    fn timed_and_counted_runs_are_read_and_failed_ones_refused() {
        let expected = Outcome {
            transactions: 42,
            per_second: 21.5,
        };
        assert_eq!(parse(TIMED), Some(expected));
        assert_eq!(
            parse(&TIMED.replace("processed: 42", "processed: 42/42")),
            Some(expected)
        );
        assert_eq!(
            parse(&TIMED.replace("transactions: 0", "transactions: 3")),
            None
        );
        assert_eq!(parse("pgbench: error: connection failed"), None);
    }
}
