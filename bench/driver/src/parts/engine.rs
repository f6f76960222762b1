//! Index and engine without SQL: runs the benches of their crates and reads the tables they print.
//!
//! `compare` sets the index beside the `masstree` crate; `transactions` runs TPC-C on the engine's
//! own calls. Both count the threads' own processor time, so their figures are per core.

use super::Bench;
use crate::plan::Form;
use crate::record::{Place, quantity};
use crate::side::Side;
use std::os::unix::process::CommandExt;
use std::process::Command;
use tpcc::failure::{Failure, Result};

pub(crate) const PART: &str = "engine";
/// The work that is compared with masstree, and what the bench's columns call it.
const INDEX_WORKS: [(&str, &str); 3] = [
    ("get", "get"),
    ("insert", "insert"),
    ("scan of 100", "scan100"),
];
/// Rounds within one run of the index's bench, which tells their median: the first has memory of
/// its own to touch.
const INDEX_ROUNDS: &str = "rounds=3";
/// Keys whose scans begin with their first bytes: from whole ones the `masstree` crate (0.9.5)
/// begins at another key, where almost all is in the cache, and so reads other entries than were
/// asked for (the bench says so below its table).
const SCANNED_FROM_A_PREFIX: (&str, &str, &str) = ("urls", "scan of 100", "from=16");
/// The kinds of keys, as the bench calls them, are this part's settings; the goals ask for all that
/// were measured.
pub(crate) const TPCC: &str = "TPC-C in the engine";
/// Its setting.
pub(crate) const TPCC_SETTING: &str = "1 thread";

pub(crate) fn measure(bench: &mut Bench<'_>) -> Result<()> {
    let form = bench.rig.plan.form;
    if form == Form::Smoke {
        let why = "not run in the smoke form: the benches would have to be built";
        bench.notes.push(why.into());
        return Ok(());
    }
    let rounds = bench.rig.plan.rounds;
    bench.say("the index beside masstree");
    let mut words = vec!["mot", "masstree", INDEX_ROUNDS];
    if form == Form::Quick {
        words.push("keys=500000");
    }
    let (prefixed, scan, from) = SCANNED_FROM_A_PREFIX;
    let scans = [words.as_slice(), &[prefixed, "scan100", from]].concat();
    for _ in 0..rounds {
        let is_prefixed = |keys: &str, work: &str| (keys, work) == (prefixed, scan);
        let mut times = index_times(&words)?;
        times.retain(|(keys, work, ..)| !is_prefixed(keys, work));
        let more = index_times(&scans)?.into_iter();
        times.extend(more.filter(|(keys, work, ..)| is_prefixed(keys, work)));
        for (keys, work, side, nanos) in times {
            let place = Place::new(PART, work, keys);
            bench.record.add(&place, side, quantity::NANOSECONDS, nanos);
        }
    }
    bench.notes.push(format!(
        "scans of {prefixed} begin with their first 16 bytes: from whole ones masstree reads other keys than \
         were asked for; of composites it leaves the first out"
    ));
    bench.say("TPC-C in the engine");
    let rounds_word = format!("rounds={rounds}");
    let words = ["tpcc", "threads=1", &rounds_word];
    let text = cargo_bench(&["-p", "mot_engine", "--bench", "transactions"], &words)?;
    let rates = parse_tpcc(&text).ok_or_else(|| {
        Failure::unexpected(format!(
            "the engine's bench printed no line of TPC-C: {text}"
        ))
    })?;
    for rate in rates {
        bench.record.add(
            &Place::new(PART, TPCC, TPCC_SETTING),
            Side::Mot,
            quantity::PER_SECOND,
            rate,
        );
    }
    bench.notes.push(
        "for a second of a thread's processor time; masstree and MOT's index take turns in each round".into(),
    );
    Ok(())
}

/// What the index's bench finds.
fn index_times(words: &[&str]) -> Result<Vec<Time>> {
    let target = [
        "-p",
        "mot_index",
        "--features",
        "crossbeam",
        "--bench",
        "compare",
    ];
    let text = cargo_bench(&target, words)?;
    let times = parse_index(&text);
    if times.is_empty() {
        return Err(Failure::unexpected(format!(
            "the index's bench printed no table: {text}"
        )));
    }
    Ok(times)
}

/// What a bench prints.
fn cargo_bench(target: &[&str], words: &[&str]) -> Result<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["bench", "--quiet"])
        .args(target)
        .arg("--")
        .args(words)
        // What it starts ends with it.
        .process_group(0)
        .output()
        .map_err(|error| Failure::unexpected(format!("cargo: {error}")))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let last = errors.lines().rev().take(5).collect::<Vec<_>>();
    Err(Failure::unexpected(format!(
        "cargo bench {}: {}",
        target.join(" "),
        last.join("; ")
    )))
}

/// The cells of a line of a Markdown table.
fn cells(line: &str) -> Option<Vec<&str>> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    Some(inner.split('|').map(str::trim).collect())
}

/// Keys, work, side, nanoseconds.
type Time = (String, &'static str, Side, f64);

/// Out of tables whose head names the keys and the works, and whose lines name the map.
fn parse_index(text: &str) -> Vec<Time> {
    let mut times = Vec::new();
    let mut head: Vec<&str> = Vec::new();
    for cells in text.lines().filter_map(cells) {
        let side = match cells[0] {
            "mot" => Side::Mot,
            "masstree" => Side::Masstree,
            _ => {
                if cells.contains(&"get") {
                    head = cells;
                }
                continue;
            }
        };
        for (work, column) in INDEX_WORKS {
            let at = head.iter().position(|name| *name == column);
            let nanos = at.and_then(|at| cells.get(at)?.parse::<f64>().ok());
            if let (Some(keys), Some(nanos)) = (head.first(), nanos) {
                times.push(((*keys).to_owned(), work, side, nanos));
            }
        }
    }
    times
}

/// Transactions a second of the line in which every thread works at a warehouse of its own: the
/// least, the median and the most of its rounds.
fn parse_tpcc(text: &str) -> Option<[f64; 3]> {
    let mut lines = text.lines().filter_map(cells);
    let line = lines
        .find(|cells| cells[0].starts_with("TPC-C") && cells[0].ends_with("own warehouses"))?;
    let (least, most) = line.get(2)?.split_once(" - ")?;
    let number = |text: &str| text.trim().parse().ok();
    Some([number(least)?, number(line.get(1)?)?, number(most)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_of_the_benches_are_read() {
        let text = "1000 keys, 3 rounds\n\n| integers | insert | get | change | scan10 | scan100 | bytes a key |\n\
            |---|---|---|---|---|---|---|\n| mot | 110 | 90 | 200 | 50 | 120 | 12.5 |\n| masstree | 150 | 140 \
            | 300 | 300 | 900 | 40.0 |\n";
        let times = parse_index(text);
        assert_eq!(times.len(), 6);
        assert_eq!(times[0], ("integers".to_owned(), "get", Side::Mot, 90.0));
        assert_eq!(
            times[5],
            ("integers".to_owned(), "scan of 100", Side::Masstree, 900.0)
        );
        let text = "| what | transactions for a second of one core | spread | |\n|---|---|---|---|\n\
            | TPC-C, 2 warehouses, 1 threads, own warehouses | 61234 | 60000 - 62000 | 1 |\n\
            | TPC-C, 2 warehouses, 1 threads, one warehouse | 50000 | 1 - 2 | 1 |\n";
        assert_eq!(parse_tpcc(text), Some([60000.0, 61234.0, 62000.0]));
        assert_eq!(parse_tpcc("nothing"), None);
    }
}
