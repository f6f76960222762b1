//! The checker finds each class of anomaly in a history written by hand, and nothing in histories
//! of databases that keep their word.

mod simulator;

use proof::check::{Anomaly, Report, check};
use proof::history::record::{
    Action, By, Header, History, Kind, Level, Operation, Outcome, Transaction,
};
use proptest::prelude::*;
use simulator::{Database, simulate};

const RC: Level = Level::ReadCommitted;
const RR: Level = Level::RepeatableRead;
const SER: Level = Level::Serializable;

/// A transaction from `begin` to `end`. Its operations: `r1=1,2` reads key 1 as [1, 2]; `p1=` reads
/// it by a condition, empty; `l1=` locks it; `w1=3` writes 3 to key 1; `u1=3` writes it and takes
/// it back.
fn tx(process: u32, begin: u64, end: u64, operations: &str) -> Transaction {
    let operation = |(statement, text): (usize, &str)| {
        let (what, values) = text.split_once('=').unwrap();
        let values: Vec<i64> = values
            .split(',')
            .filter(|value| !value.is_empty())
            .map(|value| value.parse().unwrap())
            .collect();
        let read = |by| Action::Read {
            seen: values.clone(),
            by,
        };
        let action = match &what[..1] {
            "r" => read(By::Key),
            "p" => read(By::Predicate),
            "l" => read(By::Lock),
            "w" => Action::Write {
                value: values[0],
                undone: false,
            },
            "u" => Action::Write {
                value: values[0],
                undone: true,
            },
            other => panic!("{other}"),
        };
        Operation {
            key: what[1..].parse().unwrap(),
            statement: statement as u32,
            form: what.to_owned(),
            action,
        }
    };
    Transaction {
        process,
        level: RC,
        begin,
        end,
        outcome: Outcome::Committed,
        error: None,
        operations: operations
            .split_whitespace()
            .enumerate()
            .map(operation)
            .collect(),
    }
}

fn ended(mut transaction: Transaction, outcome: Outcome) -> Transaction {
    transaction.outcome = outcome;
    transaction
}

fn judge(kind: Kind, level: Level, transactions: &[Transaction]) -> Report {
    let mut transactions = transactions.to_vec();
    for transaction in &mut transactions {
        transaction.level = level;
    }
    check(&History {
        header: Header {
            kind,
            level,
            seed: 0,
            note: String::new(),
        },
        transactions,
    })
}

/// The one class found, and the lowest level that forbids it; below, it must be allowed.
#[track_caller]
fn found_from(lowest: Level, anomaly: Anomaly, transactions: &[Transaction]) {
    for level in Level::ALL {
        let report = judge(Kind::List, level, transactions);
        assert!(
            report.has(anomaly),
            "{level}: {anomaly} not found:\n{report}"
        );
        assert_eq!(report.holds(), level < lowest, "{level}:\n{report}");
    }
}

#[test]
fn a_write_cycle_is_g0() {
    found_from(
        RC,
        Anomaly::G0,
        &[
            tx(1, 0, 10, "w1=1 w2=1"),
            tx(2, 0, 10, "w1=2 w2=2"),
            tx(3, 0, 20, "r1=1,2 r2=2,1"),
        ],
    );
}

#[test]
fn reading_what_was_aborted_is_g1a() {
    found_from(
        RC,
        Anomaly::G1a,
        &[
            ended(tx(1, 0, 10, "w1=1"), Outcome::Aborted),
            tx(2, 0, 10, "r1=1"),
        ],
    );
}

#[test]
fn reading_what_a_savepoint_took_back_is_g1a() {
    found_from(
        RC,
        Anomaly::G1a,
        &[tx(1, 0, 10, "u1=1 w1=2"), tx(2, 0, 10, "r1=1")],
    );
}

#[test]
fn writing_over_what_was_aborted_is_a_dirty_update() {
    found_from(
        RC,
        Anomaly::DirtyUpdate,
        &[
            ended(tx(1, 0, 10, "w1=1"), Outcome::Aborted),
            tx(2, 0, 10, "w1=2"),
            tx(3, 0, 20, "r1=1,2"),
        ],
    );
}

#[test]
fn reading_the_first_of_two_writes_is_g1b() {
    found_from(
        RC,
        Anomaly::G1b,
        &[tx(1, 0, 10, "w1=1 w1=2"), tx(2, 0, 10, "r1=1")],
    );
}

#[test]
fn reading_each_others_writes_is_g1c() {
    found_from(
        RC,
        Anomaly::G1c,
        &[tx(1, 0, 10, "w1=1 r2=1"), tx(2, 0, 10, "w2=1 r1=1")],
    );
}

#[test]
fn seeing_half_of_a_transaction_is_read_skew() {
    found_from(
        RR,
        Anomaly::GSingle,
        &[tx(1, 0, 10, "w1=1 w2=1"), tx(2, 0, 10, "r1= r2=1")],
    );
}

#[test]
fn appending_after_a_read_that_another_append_made_old_is_a_lost_update() {
    found_from(
        RR,
        Anomaly::LostUpdate,
        &[
            tx(1, 0, 10, "r1= w1=1"),
            tx(2, 0, 10, "r1= w1=2"),
            tx(3, 0, 20, "r1=1,2"),
        ],
    );
}

#[test]
fn two_readers_that_disagree_on_who_was_first_are_not_of_one_snapshot_order() {
    // The long fork, which snapshot isolation rules out and parallel snapshot isolation does not.
    found_from(
        RR,
        Anomaly::GNonadjacent,
        &[
            tx(1, 0, 10, "w1=1"),
            tx(2, 0, 10, "w2=1"),
            tx(3, 0, 20, "r1=1 r2="),
            tx(4, 0, 20, "r1= r2=1"),
        ],
    );
}

#[test]
fn deciding_on_what_the_other_changes_is_write_skew() {
    found_from(
        SER,
        Anomaly::G2Item,
        &[tx(1, 0, 10, "r1= w2=1"), tx(2, 0, 10, "r2= w1=1")],
    );
}

#[test]
fn the_same_by_a_condition_is_a_phantom() {
    found_from(
        SER,
        Anomaly::G2,
        &[tx(1, 0, 10, "p1= w2=1"), tx(2, 0, 10, "p2= w1=1")],
    );
}

#[test]
fn the_read_only_anomaly_is_found() {
    // Fekete, O'Neil and O'Neil 2004: T1 and T2 alone are serializable, the reader's view is not.
    let history = [
        tx(1, 0, 30, "r1= r2=1 w1=2"),
        tx(2, 5, 10, "w2=1"),
        tx(3, 15, 20, "r1= r2=1"),
    ];
    let mut skewed = history.clone();
    skewed[0] = tx(1, 0, 30, "r1= r2= w1=2");
    assert!(judge(Kind::List, SER, &history).holds());
    found_from(
        SER,
        Anomaly::G2Item,
        &[
            skewed[0].clone(),
            skewed[1].clone(),
            skewed[2].clone(),
            tx(4, 31, 40, "r1=2 r2=1"),
        ],
    );
}

#[test]
fn missing_what_was_acknowledged_before_is_a_stale_read() {
    found_from(
        RC,
        Anomaly::StaleRead,
        &[
            tx(1, 0, 10, "w1=1"),
            tx(2, 11, 20, "r1="),
            tx(3, 30, 40, "r1=1"),
        ],
    );
    // Beside each other it is none.
    assert!(
        judge(
            Kind::List,
            SER,
            &[
                tx(1, 0, 10, "w1=1"),
                tx(2, 10, 20, "r1="),
                tx(3, 30, 40, "r1=1")
            ]
        )
        .holds()
    );
}

#[test]
fn an_acknowledged_append_that_nobody_finds_is_a_stale_read() {
    found_from(
        RC,
        Anomaly::StaleRead,
        &[
            tx(1, 0, 10, "w1=1"),
            tx(1, 11, 12, "w1=2"),
            tx(2, 20, 30, "r1=1"),
        ],
    );
}

#[test]
fn a_serial_order_against_real_time_is_found() {
    // Serializable as T2, T3, T1; but T3 began when T1 was over.
    let report = judge(
        Kind::List,
        SER,
        &[
            tx(1, 0, 10, "r2=1 w1=1"),
            tx(2, 0, 40, "w2=1"),
            tx(3, 20, 30, "r1= w3=1"),
        ],
    );
    assert!(
        report.has(Anomaly::StaleRead) && !report.holds(),
        "{report}"
    );
}

#[test]
fn what_no_append_explains_is_found() {
    found_from(RC, Anomaly::Garbage, &[tx(1, 0, 10, "r1=7")]);
    found_from(
        RC,
        Anomaly::Duplicate,
        &[tx(1, 0, 10, "w1=7"), tx(2, 11, 20, "r1=7,7")],
    );
    found_from(
        RC,
        Anomaly::IncompatibleOrder,
        &[
            tx(1, 0, 10, "w1=1"),
            tx(2, 0, 10, "w1=2"),
            tx(3, 0, 20, "r1=1,2"),
            tx(4, 0, 20, "r1=2,1"),
        ],
    );
}

#[test]
fn a_transaction_that_disagrees_with_itself_is_found() {
    found_from(RC, Anomaly::Internal, &[tx(1, 0, 10, "w1=1 r1=")]);
    let moving = [tx(1, 0, 10, "w1=1"), tx(2, 0, 20, "r1= r1=1")];
    assert!(judge(Kind::List, RC, &moving).holds());
    assert!(judge(Kind::List, RR, &moving).has(Anomaly::Internal));
    // Its own savepoint, seen while it lasted.
    assert!(
        judge(
            Kind::List,
            SER,
            &[tx(1, 0, 10, "w1=1 u1=2 r1=1,2 r1=1 w1=3 r1=1,3")]
        )
        .holds()
    );
    assert!(judge(Kind::List, SER, &[tx(1, 0, 10, "w1=1 u1=2 r1=2")]).has(Anomaly::Internal));
}

#[test]
fn read_committed_never_says_40001() {
    let mut refused = ended(tx(1, 0, 10, "w1=1"), Outcome::Aborted);
    refused.error = Some("40001: could not serialize".to_owned());
    let refused = [refused];
    assert!(judge(Kind::List, RC, &refused).has(Anomaly::UnexpectedError));
    assert!(judge(Kind::List, RR, &refused).holds());
}

#[test]
fn a_lost_acknowledgement_is_decided_by_who_saw_the_transaction() {
    let lost = ended(tx(1, 0, 1, "w1=1 w2=1"), Outcome::Unknown);
    // Nobody did: not committed.
    assert!(judge(Kind::List, SER, &[lost.clone(), tx(2, 20, 30, "r1= r2=")]).holds());
    // Somebody did: then whole. It has no end, so it may have come late.
    assert!(
        judge(
            Kind::List,
            SER,
            &[
                lost.clone(),
                tx(2, 20, 25, "r1= r2="),
                tx(2, 30, 40, "r1=1 r2=1")
            ]
        )
        .holds()
    );
    assert!(judge(Kind::List, RR, &[lost, tx(2, 20, 30, "r1=1 r2=")]).has(Anomaly::GSingle));
}

#[test]
fn replacing_a_registers_value_twice_is_a_lost_update() {
    for level in [RR, SER] {
        let twice = [
            tx(1, 0, 5, "w1=1"),
            tx(2, 10, 20, "r1=1 w1=2"),
            tx(3, 10, 20, "r1=1 w1=3"),
        ];
        assert!(judge(Kind::Register, level, &twice).has(Anomaly::LostUpdate));
    }
    // READ COMMITTED allows it without a lock, and not with one.
    let free = [
        tx(1, 0, 5, "w1=1"),
        tx(2, 10, 20, "r1=1 w1=2"),
        tx(3, 10, 20, "r1=1 w1=3"),
    ];
    assert!(judge(Kind::Register, RC, &free).holds());
    let locked = [
        tx(1, 0, 5, "w1=1"),
        tx(2, 10, 20, "l1=1 w1=2"),
        tx(3, 10, 20, "l1=1 w1=3"),
    ];
    assert!(judge(Kind::Register, RC, &locked).has(Anomaly::LostUpdate));
}

#[test]
fn registers_show_write_skew_stale_reads_and_lost_writes() {
    let skew = [
        tx(1, 0, 5, "w1=1 w2=1"),
        tx(2, 10, 20, "r1=1 r2=1 w1=2"),
        tx(3, 10, 20, "r1=1 r2=1 w2=3"),
    ];
    assert!(judge(Kind::Register, RR, &skew).holds());
    assert!(judge(Kind::Register, SER, &skew).has(Anomaly::G2Item));
    let stale = [
        tx(1, 0, 5, "w1=1"),
        tx(2, 10, 20, "l1=1 w1=2"),
        tx(3, 30, 40, "r1=1"),
    ];
    assert!(judge(Kind::Register, RC, &stale).has(Anomaly::StaleRead));
    let intermediate = [tx(1, 0, 5, "w1=1 w1=2"), tx(2, 10, 20, "r1=1")];
    assert!(judge(Kind::Register, RC, &intermediate).has(Anomaly::G1b));
}

/// What a broken database shows within a few tries.
fn shows_within(tries: u64, database: Database, level: Level, wanted: &[Anomaly]) {
    let found = (0..tries).any(|seed| {
        let report = check(&simulate(database, level, seed));
        wanted.iter().any(|anomaly| report.has(*anomaly)) && !report.holds()
    });
    assert!(found, "{database:?} keeps its word at {level}");
}

#[test]
fn databases_that_leave_out_a_step_are_found_out() {
    shows_within(
        20,
        Database::SnapshotWithoutFirstUpdaterWins,
        RR,
        &[Anomaly::LostUpdate, Anomaly::GSingle],
    );
    shows_within(20, Database::Snapshot, SER, &[Anomaly::G2Item, Anomaly::G2]);
    shows_within(
        20,
        Database::ReadUncommitted,
        RC,
        &[Anomaly::G1a, Anomaly::G1b, Anomaly::G1c],
    );
    shows_within(
        20,
        Database::ReadCommitted,
        RR,
        &[Anomaly::GSingle, Anomaly::Internal],
    );
    shows_within(20, Database::StaleSnapshot, RR, &[Anomaly::StaleRead]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn databases_that_keep_their_word_are_clean(seed: u64) {
        for (database, level) in [
            (Database::Serial, SER),
            (Database::TwoPhaseLocking, SER),
            (Database::Snapshot, RR),
            (Database::ReadCommitted, RC),
        ] {
            let history = simulate(database, level, seed);
            let report = check(&history);
            prop_assert!(report.holds(), "{:?} at {}, seed {}:\n{}", database, level, seed, report);
            prop_assert!(report.committed > 20, "{:?} commits too little: {}", database, report);
        }
    }

    #[test]
    fn a_written_history_reads_back_as_it_was(seed: u64) {
        let history = simulate(Database::Snapshot, RR, seed);
        let path = std::env::temp_dir().join(format!("proof-{}-{seed}.jsonl", std::process::id()));
        history.write(&path).unwrap();
        let read = History::read(&path);
        std::fs::remove_file(&path).unwrap();
        prop_assert_eq!(read.unwrap().transactions, history.transactions);
    }
}

#[test]
fn a_row_lock_that_finds_nothing_proves_nothing_under_read_committed() {
    // It waited for a row that was deleted, and does not see the one put in its place.
    let history = [
        tx(1, 0, 10, "w1=1"),
        tx(2, 11, 20, "l1="),
        tx(3, 30, 40, "r1=1"),
    ];
    assert!(judge(Kind::List, RC, &history).holds());
    assert!(judge(Kind::Register, RC, &history).holds());
    assert!(judge(Kind::List, RR, &history).has(Anomaly::StaleRead));
}
