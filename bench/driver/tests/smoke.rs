//! The whole benchmark with tiny sizes on a server of its own: every part runs, and every goal is answered or says why not.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Every part of the benchmark.
const PARTS: [&str; 10] = [
    "statements",
    "hot_row",
    "plpgsql",
    "ingest",
    "scan",
    "memory",
    "sysbench",
    "tpcc",
    "endurance",
    "engine",
];

/// Goals that the smallest run on the version at hand answers with a figure.
const ANSWERED: [&str; 14] = [
    "point SELECT, of the floor",
    "point SELECT",
    "UPDATE, synchronous, 32 clients",
    "INSERT, synchronous, 32 clients",
    "UPDATE in a PL/pgSQL loop",
    "SELECT in a PL/pgSQL loop",
    "one hot row, 8 clients, asynchronous UPDATE",
    "sysbench oltp_read_only against heap",
    "sysbench oltp_read_write against heap",
    "TPC-C procedures, synchronous",
    "TPC-C interactive, synchronous",
    "WAL bytes per TPC-C transaction",
    "COPY of 200-byte rows, 3 indexes",
    "full scan with filter",
];

fn bench(out: &Path, further: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mot_bench"));
    command.arg("--smoke").arg("--out").arg(out).args(further);
    if let Some(bindir) = std::env::var_os("PG_BIN") {
        command.arg("--bindir").arg(bindir);
    }
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{errors}\n{}",
        String::from_utf8_lossy(&output.stdout)
    );
    let text = std::fs::read_to_string(out.join("results/latest.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn goal<'a>(latest: &'a Value, name: &str) -> &'a Value {
    let goals = latest["goals"].as_array().unwrap();
    goals
        .iter()
        .find(|goal| goal["name"] == name)
        .unwrap_or_else(|| panic!("no goal {name}"))
}

fn out_directory() -> PathBuf {
    tpcc::cluster::scratch_directory("mot-bench-smoke")
}

#[test]
fn every_part_runs_and_every_goal_is_there() {
    let out = out_directory();
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
        assert_eq!(
            goal["measured"].is_number(),
            goal["met"].is_boolean(),
            "{goal}"
        );
        assert!(
            goal["measured"].is_number() || goal["note"].is_string(),
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
