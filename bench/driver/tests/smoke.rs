//! The whole benchmark with tiny sizes on a server of its own: every part runs, every goal is
//! answered or says why not, a part that fails leaves the others, and an interrupted run leaves
//! nothing.

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Every part of the benchmark.
const PARTS: [&str; 14] = [
    "statements",
    "instructions",
    "hot_row",
    "queue",
    "plpgsql",
    "tables",
    "ingest",
    "scan",
    "memory",
    "churn",
    "sysbench",
    "tpcc",
    "endurance",
    "engine",
];

/// Goals that the smallest run on the version at hand answers with a figure.
const ANSWERED: [&str; 21] = [
    "point SELECT, of the floor",
    "point SELECT",
    "UPDATE, synchronous, 32 clients",
    "INSERT, synchronous, 32 clients",
    "UPDATE in a PL/pgSQL loop",
    "SELECT in a PL/pgSQL loop",
    "one hot row, 8 clients, asynchronous UPDATE",
    "UPDATE of 1,000 rows by a range",
    "DELETE of 1,000 rows by a range",
    "MERGE of 1,000 rows",
    "check of a foreign key, INSERT in a PL/pgSQL loop",
    "children of one parent, 8 sessions",
    "sysbench oltp_read_only against heap",
    "sysbench oltp_read_write against heap",
    "TPC-C procedures, synchronous",
    "TPC-C interactive, synchronous",
    "TPC-C procedures with foreign keys, synchronous",
    "TPC-C interactive with foreign keys, synchronous",
    "WAL bytes per TPC-C transaction",
    "COPY of 200-byte rows, 3 indexes",
    "full scan with filter",
];

fn command(out: &Path, further: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mot_bench"));
    command.arg("--smoke").arg("--out").arg(out).args(further);
    if let Some(bindir) = std::env::var_os("PG_BIN") {
        command.arg("--bindir").arg(bindir);
    }
    command
}

fn latest(out: &Path) -> Value {
    let text = std::fs::read_to_string(out.join("results/latest.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn bench(out: &Path, further: &[&str]) -> Value {
    let output = command(out, further).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{errors}\n{}",
        String::from_utf8_lossy(&output.stdout)
    );
    latest(out)
}

fn goal<'a>(latest: &'a Value, name: &str) -> &'a Value {
    let goals = latest["goals"].as_array().unwrap();
    goals
        .iter()
        .find(|goal| goal["name"] == name)
        .unwrap_or_else(|| panic!("no goal {name}"))
}

/// Of one test: `purpose` tells it from the others of this process.
fn out_directory(purpose: &str) -> PathBuf {
    tpcc::cluster::scratch_directory(&format!("mot-bench-{purpose}"))
}

#[test]
fn every_part_runs_and_every_goal_is_there() {
    let out = out_directory("whole");
    let latest = bench(&out, &[]);
    for part in PARTS {
        assert!(
            latest["parts"][part]["failure"].is_null() && latest["parts"][part].is_object(),
            "{part}: {}",
            latest["parts"]
        );
    }
    assert_eq!(latest["parts"].as_object().unwrap().len(), PARTS.len());
    for goal in latest["goals"].as_array().unwrap() {
        // A figure may have no verdict, never a verdict no figure.
        assert!(
            goal["measured"].is_number() || goal["met"].is_null(),
            "{goal}"
        );
        assert!(
            goal["met"].is_boolean() || goal["note"].is_string(),
            "{goal}"
        );
    }
    for name in ANSWERED {
        assert!(
            goal(&latest, name)["measured"].is_number(),
            "{}",
            goal(&latest, name)
        );
    }
    // A session that inserts executes more than one that asks for nothing, and what it executes is
    // there for both kinds of table.
    let instructions = |work: &str, side: &str| {
        let all = latest["series"].as_array().unwrap();
        let found = all.iter().find(|series| {
            series["part"] == "instructions" && series["work"] == work && series["side"] == side
        });
        found.unwrap_or_else(|| panic!("{work}, {side}"))["median"]
            .as_f64()
            .unwrap()
    };
    for side in ["mot", "heap"] {
        let (select, insert) = (
            instructions("point_select", side),
            instructions("insert", side),
        );
        assert!(
            1000.0 < select && select < insert,
            "{side}: {select}, {insert}"
        );
        assert!(instructions("loop: select", side) < select);
    }
    let results = std::fs::read_to_string(out.join("RESULTS.md")).unwrap();
    for chart in ["statements.svg", "sysbench.svg", "tpcc.svg", "ingest.svg"] {
        assert!(results.contains(chart), "{chart}");
        assert!(out.join("results").join(chart).exists(), "{chart}");
    }

    // One line again: the rest stays.
    let again = bench(&out, &["--only", "memory,statements/update"]);
    let series = |latest: &Value, work: &str| {
        let all = latest["series"].as_array().unwrap();
        all.iter()
            .find(|series| series["work"] == work && series["side"] == "mot")
            .unwrap()
            .clone()
    };
    assert_eq!(series(&again, "insert"), series(&latest, "insert"));
    assert_ne!(series(&again, "update"), series(&latest, "update"));
    assert_eq!(
        again["goals"].as_array().unwrap().len(),
        latest["goals"].as_array().unwrap().len()
    );
    std::fs::remove_dir_all(&out).unwrap();
}

#[test]
fn a_part_that_fails_leaves_the_others() {
    let out = out_directory("fails");
    // Too few connections for the eight clients of one part, enough for the other.
    let further = ["--only", "hot_row,memory", "--setting", "max_connections=6"];
    let output = command(&out, &further).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{errors}");
    assert!(errors.contains("1 of its parts failed"), "{errors}");
    let latest = latest(&out);
    assert!(latest["parts"]["hot_row"]["failure"].is_string());
    assert!(latest["parts"]["memory"]["failure"].is_null());
    assert!(goal(&latest, "memory: row, beyond its tuple")["measured"].is_number());
    let hot_row = goal(&latest, "one hot row, 8 clients, asynchronous UPDATE");
    let note = hot_row["note"].as_str().unwrap();
    assert!(note.contains("part hot_row failed"), "{note}");
    let results = std::fs::read_to_string(out.join("RESULTS.md")).unwrap();
    assert!(results.contains("**Part `hot_row` failed:**"), "{results}");
    std::fs::remove_dir_all(&out).unwrap();
}

#[test]
fn an_interrupted_run_leaves_nothing() {
    let out = out_directory("stops");
    let mut run = command(&out, &["--only", "statements"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(run.stderr.take().unwrap()).lines();
    // From its first word on the server is there, and the part takes seconds.
    let begun = lines.find(|line| line.as_ref().unwrap().contains("part statements"));
    assert!(begun.is_some());
    let pid = run.id();
    let sent = Command::new("sh")
        .args(["-c", &format!("kill {pid}")])
        .status()
        .unwrap();
    assert!(sent.success());
    // Read on, so that nobody waits for us, until all who could write are gone.
    let _: Vec<_> = lines.collect();
    assert_eq!(run.wait().unwrap().code(), Some(130));
    let name = format!("mot-bench-{pid}-");
    let left: Vec<String> = std::fs::read_dir(out.parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|found| found.starts_with(&name))
        .collect();
    assert!(left.is_empty(), "{left:?}");
    for process in std::fs::read_dir("/proc").unwrap() {
        let words = std::fs::read(process.unwrap().path().join("cmdline")).unwrap_or_default();
        assert!(
            !String::from_utf8_lossy(&words).contains(&name),
            "a program of the run is left: {}",
            String::from_utf8_lossy(&words)
        );
    }
    std::fs::remove_dir_all(&out).unwrap();
}
