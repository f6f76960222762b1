//! Random transactions against a simple model: rows as lists of versions.
//!
//! Several transactions with savepoints are interleaved by a random script, old snapshots stay
//! open, and the moment between PostgreSQL's decision and the engine's commit or abort is stretched
//! over other transactions' work. After every step all snapshots must see what the model says,
//! through a row scan and through each index, and every writer's outcome must be the model's. Of a
//! table of the access method, every tuple id that a transaction has must name the state that it
//! was given with.

#[path = "model/believed.rs"]
mod believed;
mod common;
#[path = "model/looks.rs"]
mod looks;
#[path = "model/named.rs"]
mod named;
#[path = "model/script.rs"]
mod script;
#[path = "model/statements.rs"]
mod statements;
#[path = "model/transactions.rs"]
mod transactions;

use believed::ModelRow;
use common::{Fate, Positions, Snap, World};
use mot_engine::key::IndexDefinition;
use mot_engine::{Build, IndexRef, RowId, Session, TableRef, Transaction, Xid};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use script::{SNAPSHOTS, Step, TRANSACTIONS, steps};
use std::collections::BTreeMap;
use transactions::Running;

struct Test {
    world: World,
    session: Session,
    table: TableRef,
    indexes: Vec<(IndexRef, IndexDefinition)>,
    rows: BTreeMap<RowId, ModelRow>,
    running: Vec<Option<Running>>,
    held: Vec<Option<Snap>>,
    log: Positions,
}

fn run(script: &[Step]) {
    let (_region, engine) = common::engine(32 << 20);
    let session = engine.join().unwrap();
    let world = World::new();
    let me = world.begin();
    let mut work = Transaction::new();
    let table = work
        .create_table(&session, common::TABLE, Xid(me.top))
        .unwrap();
    let mut indexes = Vec::new();
    for (oid, unique, columns) in [
        (101, true, &[(1, false)][..]),
        (102, false, &[(2, true)][..]),
        (103, true, &[(3, false)][..]),
        (104, false, &[(3, true), (1, false)][..]),
    ] {
        let definition = common::definition(oid, unique, columns);
        let build = work
            .create_index(&session, &me, table, &definition, Xid(me.top))
            .unwrap();
        let Build::Done(index) = build else {
            panic!("{build:?}")
        };
        indexes.push((index, definition));
    }
    me.end(Fate::Committed);
    work.commit(&session);
    let mut test = Test {
        world,
        session,
        table,
        indexes,
        rows: BTreeMap::new(),
        running: (0..TRANSACTIONS).map(|_| None).collect(),
        held: (0..SNAPSHOTS).map(|_| None).collect(),
        log: Positions::new(),
    };
    for step in script {
        test.apply(step);
        test.forget_aborted();
        test.compare();
    }
    for t in 0..TRANSACTIONS {
        test.apply(&Step::Decide {
            t,
            commit: t % 2 == 0,
            log: true,
        });
        test.apply(&Step::Finish { t });
    }
    test.forget_aborted();
    test.compare();
    test.held.clear();
    common::sweep(&test.session, &test.world, test.table);
    test.compare();
    let report = common::check(&test.session, test.table, &common::reader(&test.world));
    // Nobody is left who needs more than each row's newest state.
    assert_eq!(report.versions, report.rows);
    assert_eq!(report.entries, report.rows * test.indexes.len() as u64);
    test.session.memory().collect();
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(),
        max_shrink_iters: 4000,
        // Beside this file: its default place needs a `main.rs` or `lib.rs` above it.
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("proptest-regressions"))),
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_engine_does_what_the_model_does(script in proptest::collection::vec(steps(), 1..120)) {
        run(&script);
    }
}

/// How many scripts to run: PROPTEST_CASES, or a number that takes a few seconds.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok())
        .unwrap_or(400)
}
