//! The checker and the lock-step tester see: a server with one step left out (`mot.test_switch`) is
//! found out, each time within a minute. The server runs the `checked` extension.

use proof::check::{Anomaly, check};
use proof::history::record::{History, Kind, Level};
use proof::history::run::{Plan, Target, run};
use proof::history::tables::Tables;
use proof::history::upset::Servers;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// A run that is short and most often enough.
const RUN: Duration = Duration::from_secs(2);
const LIMIT: Duration = Duration::from_secs(60);

fn history(servers: &mut Servers, level: Level, kind: Kind, switch: &str, seed: u64) -> History {
    let plan = Plan {
        level,
        kind,
        tables: Tables::Mot,
        connections: 8,
        duration: RUN,
        seed,
        settings: vec![format!("SET mot.test_switch = '{switch}'")],
        strikes: 0,
    };
    run(&plan, &mut Target::Private(servers)).unwrap()
}

/// Nothing may be found. What is found will not come again at will: the history is kept, for `proof
/// check`.
fn expect_nothing(history: &History) {
    let report = check(history);
    if report.holds() {
        return;
    }
    let level = history.header.level.to_string().replace(' ', "-");
    let directory = std::env::var_os("MOT_SCRATCH").map_or_else(std::env::temp_dir, PathBuf::from);
    let path = directory.join(format!("found-{level}-{}.jsonl", std::process::id()));
    let kept = match history.write(&path) {
        Ok(()) => format!("the history is in {}", path.display()),
        Err(failure) => format!("the history could not be written: {failure}"),
    };
    panic!("nothing left out, {level}:\n{report}{kept}");
}

#[test]
fn each_step_left_out_is_found_within_a_minute() {
    let mut servers = Servers::start(None, false).unwrap();
    let lost = [
        Anomaly::LostUpdate,
        Anomaly::IncompatibleOrder,
        Anomaly::StaleRead,
    ];
    let skewed = [Anomaly::G2Item, Anomaly::G2];
    let cases: [(&str, Level, Kind, &[Anomaly]); 7] = [
        (
            "skip-update-recheck",
            Level::ReadCommitted,
            Kind::List,
            &lost,
        ),
        (
            "skip-update-recheck",
            Level::ReadCommitted,
            Kind::Register,
            &lost,
        ),
        (
            "skip-update-recheck",
            Level::RepeatableRead,
            Kind::List,
            &lost,
        ),
        (
            "skip-update-recheck",
            Level::RepeatableRead,
            Kind::Register,
            &lost,
        ),
        ("skip-row-locks", Level::ReadCommitted, Kind::List, &lost),
        (
            "skip-predicate-locks",
            Level::Serializable,
            Kind::List,
            &skewed,
        ),
        (
            "skip-predicate-locks",
            Level::Serializable,
            Kind::Register,
            &skewed,
        ),
    ];
    for (switch, level, kind, wanted) in cases {
        let start = Instant::now();
        let mut seed = 1;
        loop {
            let report = check(&history(&mut servers, level, kind, switch, seed));
            if !report.holds() {
                assert!(
                    wanted.iter().any(|anomaly| report.has(*anomaly)),
                    "{switch}, {level}:\n{report}"
                );
                println!(
                    "{switch}, {level}, {kind:?}: found in {:.1} s",
                    start.elapsed().as_secs_f64()
                );
                break;
            }
            assert!(
                start.elapsed() < LIMIT,
                "{switch}, {level}, {kind:?}: not found:\n{report}"
            );
            seed += 1;
        }
    }
    for level in Level::ALL {
        expect_nothing(&history(&mut servers, level, Kind::List, "none", 1));
    }
}

#[test]
fn the_lock_step_tester_finds_a_missing_second_judgement() {
    let run = Command::new(env!("CARGO_BIN_EXE_proof"))
        .env_remove("PROOF_URL")
        .args(["differential", "--seconds", "60"])
        .args(["--test-switch", "skip-update-recheck"])
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&run.stdout);
    assert_eq!(run.status.code(), Some(1), "{told}");
    assert!(told.contains("again: proof differential --seed"), "{told}");
}
