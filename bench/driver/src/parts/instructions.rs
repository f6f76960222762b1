//! Instructions of single statements, counted one by one: a figure that neither neighbours nor the
//! machine change.
//!
//! Hardware counters are what virtual machines lack. So the server runs under valgrind's
//! `callgrind`, some fifty times slower, which counts what each process executes of its own, the
//! kernel's work left out, and writes the sum when the process ends. A session's sum is what it
//! takes to begin, to plan and to end, and its statements; the difference between a long session
//! and a short one is that of so many statements.
//!
//! The scripts and loops are those of the parts `statements` and `plpgsql`. A statement has its
//! commit with it, asynchronous; the WAL writer is another process and not counted. What is not
//! seen here: waiting for memory, the kernel, other processes.

use super::{Bench, plpgsql, statements};
use crate::pgbench;
use crate::plan::{Form, Length};
use crate::record::{Place, quantity};
use crate::rig::Rig;
use crate::side::Side;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tpcc::cluster::Shutdown;
use tpcc::failure::{Failure, Result};
use tpcc::target::from_client;

pub(crate) const PART: &str = "instructions";
/// The setting's name.
const SETTING: &str = "1 session";
/// The statements of the smoke form.
const SMOKE: [&str; 2] = ["point_select", "insert"];
/// What the files of sums are called; the process's number follows.
const FILES: &str = "callgrind.";
/// Sessions of one run of pgbench with one client: it makes one to look around, and the client's.
const PGBENCH_SESSIONS: usize = 2;
/// Settings while valgrind runs the server: no process but those that are looked at comes and goes,
/// which page of a heap table is changed for the first time since a checkpoint does not matter, and
/// the arena fits into valgrind's own space.
const SETTINGS: [(&str, &str); 5] = [
    ("autovacuum", "off"),
    ("max_parallel_maintenance_workers", "0"),
    ("max_parallel_workers_per_gather", "0"),
    ("full_page_writes", "off"),
    ("mot.max_memory", "2GB"),
];
/// How many times as often the empty loop goes round: sessions differ by some hundred thousand
/// instructions in how they begin and end, and it takes a few hundred.
const EMPTY_TIMES: u32 = 10;
/// Time a session gets to write its sum.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time in which no process ends, when a start is over.
const QUIET: Duration = Duration::from_secs(1);
/// Pause between two looks for it.
const POLL: Duration = Duration::from_millis(20);

pub(crate) fn measure(bench: &mut Bench<'_>) -> Result<()> {
    let looked = Command::new("valgrind")
        .arg("--version")
        .stdout(Stdio::null())
        .status();
    if !looked.is_ok_and(|status| status.success()) {
        let why = "not counted: valgrind is not installed";
        bench.notes.push(why.into());
        return Ok(());
    }
    for side in [Side::Mot, Side::Heap] {
        statements::fill(bench.rig, side)?;
        plpgsql::define(bench.rig, side)?;
    }
    statements::write_scripts(bench.rig)?;
    bench.rig.checkpoint()?;
    let before = SETTINGS.map(|(name, _)| {
        let value = bench.rig.cluster.setting(name).map(str::to_owned);
        (name, value)
    });
    let counted = under_valgrind(bench);
    // Whatever came of it, the parts that follow have the server as it was.
    let cluster = &mut bench.rig.cluster;
    cluster.run_under(&[]);
    for (name, value) in before {
        match value {
            Some(value) => cluster.set(name, &value),
            None => cluster.unset(name),
        }
    }
    if cluster.postmaster_pid().is_ok() {
        cluster.stop(Shutdown::Immediate)?;
    }
    counted
}

fn under_valgrind(bench: &mut Bench<'_>) -> Result<()> {
    let cluster = &mut bench.rig.cluster;
    cluster.stop(Shutdown::Fast)?;
    for (name, value) in SETTINGS {
        cluster.set(name, value);
    }
    let files = cluster.directory().join(format!("{FILES}%p"));
    cluster.run_under(&[
        "valgrind".into(),
        "--tool=callgrind".into(),
        "--quiet".into(),
        "--trace-children=yes".into(),
        format!("--callgrind-out-file={}", files.display()),
    ]);
    cluster.start_and_wait()?;
    settle(bench.rig)?;
    let lengths = bench.rig.plan.counted_statements;
    for (name, writes, _) in statements::FLOORS {
        by_pgbench(bench, name, writes, Side::Floor, lengths)?;
    }
    let is_smoke = bench.rig.plan.form == Form::Smoke;
    for work in statements::WORKS {
        // A session takes most of a second to begin and to end.
        let is_measured = !is_smoke || SMOKE.contains(&work.name);
        if bench.wants(work.name) && is_measured {
            for side in [Side::Mot, Side::Heap] {
                by_pgbench(bench, work.name, work.writes, side, lengths)?;
            }
        }
    }
    for side in [Side::Mot, Side::Heap] {
        in_loops(bench, side, lengths)?;
    }
    bench.notes.push(
        "of the session's process, the kernel's left out, commit included; counted by valgrind as the \
         difference between \
         a long and a short session"
            .into(),
    );
    Ok(())
}

/// The first sessions make what later ones find (the relation cache's file), and what a start has
/// begun ends.
fn settle(rig: &Rig) -> Result<()> {
    for side in [Side::Mot, Side::Heap] {
        statements::refresh(&mut rig.client(side)?, side)?;
    }
    let mut before = BTreeSet::new();
    loop {
        std::thread::sleep(QUIET);
        let after = files(rig)?;
        if after == before {
            return Ok(());
        }
        before = after;
    }
}

/// A script of pgbench, a statement or transaction at a time.
fn by_pgbench(
    bench: &mut Bench<'_>,
    name: &str,
    writes: bool,
    side: Side,
    lengths: [u32; 2],
) -> Result<()> {
    bench.say(&format!("instructions of {name}, {side}"));
    let mut sums = [0; 2];
    for (sum, length) in sums.iter_mut().zip(lengths) {
        if writes && side != Side::Floor {
            refresh(bench.rig, side)?;
        }
        let length = Length::Transactions(length);
        let load = statements::load(bench.rig, name, writes, 1, false, length);
        let rig = &*bench.rig;
        *sum = sum_of(rig, PGBENCH_SESSIONS, || {
            pgbench::run(rig, side, &load).map(|_| ())
        })?;
    }
    add(bench, name, side, each(sums, lengths)?);
    Ok(())
}

/// The loops in PL/pgSQL, less what the empty one takes.
fn in_loops(bench: &mut Bench<'_>, side: Side, lengths: [u32; 2]) -> Result<()> {
    bench.say(&format!("instructions in loops, {side}"));
    let mut empty = 0.0;
    for (name, body) in plpgsql::LOOPS {
        let lengths = if body.is_empty() {
            lengths.map(|length| length * EMPTY_TIMES)
        } else {
            lengths
        };
        let mut sums = [0; 2];
        for (sum, length) in sums.iter_mut().zip(lengths) {
            refresh(bench.rig, side)?;
            let (rig, rows) = (&*bench.rig, bench.rig.plan.rows);
            *sum = sum_of(rig, 1, || {
                let mut client = rig.client(side)?;
                let query = format!("SELECT loop_{name}($1, $2)");
                let looped = client.query_one(&query, &[&(length as i32), &rows]);
                looped.map(|_| ()).map_err(from_client)
            })?;
        }
        let found = each(sums, lengths)?;
        if body.is_empty() {
            empty = found;
        }
        let net = if body.is_empty() {
            found
        } else {
            found - empty
        };
        add(bench, &format!("loop: {name}"), side, net);
    }
    Ok(())
}

fn add(bench: &mut Bench<'_>, work: &str, side: Side, instructions: f64) {
    let place = Place::new(PART, work, SETTING);
    let quantity = quantity::INSTRUCTIONS;
    bench.record.add(&place, side, quantity, instructions);
}

/// Of one statement, from the sums of two sessions with so many of them.
fn each(sums: [u64; 2], lengths: [u32; 2]) -> Result<f64> {
    let [short, long] = sums;
    let more = long.checked_sub(short).filter(|more| *more > 0);
    let more = more.ok_or_else(|| {
        let what = format!("a session of {lengths:?} statements executed {sums:?} instructions");
        Failure::unexpected(what)
    })?;
    Ok(more as f64 / f64::from(lengths[1] - lengths[0]))
}

/// Before what is counted, in a session that has ended.
fn refresh(rig: &Rig, side: Side) -> Result<()> {
    sum_of(rig, 1, || statements::refresh(&mut rig.client(side)?, side)).map(|_| ())
}

/// Instructions of the sessions, so many of them, that begin and end within `work`.
fn sum_of(rig: &Rig, sessions: usize, work: impl FnOnce() -> Result<()>) -> Result<u64> {
    let before = files(rig)?;
    work()?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        let after = files(rig)?;
        let sums: Option<Vec<u64>> = after.difference(&before).map(sum_in).collect();
        if let Some(sums) = sums.filter(|sums| sums.len() >= sessions) {
            if sums.len() > sessions {
                let what = format!("{} processes ended, not {sessions}", sums.len());
                return Err(Failure::unexpected(what));
            }
            return Ok(sums.iter().sum());
        }
        if Instant::now() > deadline {
            let what = "a session has not written how much it executed";
            return Err(Failure::unexpected(what));
        }
        std::thread::sleep(POLL);
    }
}

/// What processes that have ended wrote.
fn files(rig: &Rig) -> Result<BTreeSet<PathBuf>> {
    let directory = rig.cluster.directory();
    let failed = |error| Failure::unexpected(format!("{}: {error}", directory.display()));
    let mut files = BTreeSet::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.file_name().to_string_lossy().starts_with(FILES) {
            files.insert(entry.path());
        }
    }
    Ok(files)
}

/// The sum in a file; nothing before it is there.
fn sum_in(file: &PathBuf) -> Option<u64> {
    total(&std::fs::read_to_string(file).ok()?)
}

/// A file of callgrind's ends with the sum of all its lines.
fn total(text: &str) -> Option<u64> {
    let last = text.lines().rev().find(|line| !line.is_empty())?;
    last.strip_prefix("totals: ")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_is_read_when_it_is_whole() {
        let text =
            "# callgrind format\nevents: Ir\nsummary: 77\n\nfn=(1) main\n1 70\n\ntotals: 77\n";
        assert_eq!(total(text), Some(77));
        assert_eq!(total(&text[..text.len() - 12]), None);
        assert_eq!(total(""), None);
    }

    #[test]
    fn the_difference_is_shared_out() {
        assert_eq!(each([1_000, 4_000], [10, 40]).unwrap(), 100.0);
        assert!(each([4_000, 4_000], [10, 40]).is_err());
    }
}
