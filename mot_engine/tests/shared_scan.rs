//! A scan that several share: each row is seen once, by one of them.

mod common;

use common::{Fate, Row, World, body, row};
use mot_engine::{
    CommandId, RowScan, Session, SharedRowScan, Snapshot, TableRef, Transaction, Xid,
};
use std::sync::Barrier;

const ROWS: i32 = 50_000;
const SCANNERS: usize = 4;

/// Rows of which every third is deleted; more are added that no snapshot of before sees.
fn fill(session: &Session, world: &World, table: TableRef, from: i32) {
    let me = world.begin();
    let mut work = Transaction::new();
    let mut made = Vec::new();
    for a in from..from + ROWS {
        let new = body(Row { a, b: 0, c: None });
        let inserted = work.insert(session, table, &new, Xid(me.top), CommandId(1));
        made.push(inserted.unwrap());
    }
    me.end(Fate::Committed);
    work.commit(session);
    let me = world.begin();
    for (row_id, version) in made.into_iter().step_by(3) {
        let (xid, command) = (Xid(me.top), CommandId(1));
        work.delete(session, &me, table, row_id, version, xid, command)
            .unwrap();
    }
    me.end(Fate::Committed);
    work.commit(session);
}

/// What the threads work at.
struct Scene<'a, S> {
    table: TableRef,
    shared: SharedRowScan,
    snapshot: &'a S,
}

// SAFETY: a table may be used from every thread that has a session; this table stays.
unsafe impl<S: Sync> Sync for Scene<'_, S> {}

/// What one of them sees.
fn part<S: Snapshot>(session: &Session, scene: &Scene<'_, S>) -> Vec<i32> {
    let Scene {
        table,
        shared,
        snapshot,
    } = scene;
    let table = *table;
    let mut seen = Vec::new();
    while let Some(mut scan) = shared.take(table) {
        while let Some((_, version)) = scan.next(session, *snapshot) {
            seen.push(row(version.body()).a);
        }
    }
    seen
}

#[test]
fn each_row_is_seen_by_one() {
    let (_region, engine) = common::engine(64 << 20);
    let session = engine.join().unwrap();
    let world = World::new();
    let table = common::table(&session, &world, &[]);
    fill(&session, &world, table, 0);
    let snapshot = common::reader(&world).snapshot(0);
    let mut expected = Vec::new();
    let mut scan = RowScan::new(table);
    while let Some((_, version)) = scan.next(&session, &snapshot) {
        expected.push(row(version.body()).a);
    }
    assert_eq!(expected.len(), ROWS as usize - (ROWS as usize).div_ceil(3));

    let scene = Scene {
        table,
        shared: SharedRowScan::default(),
        snapshot: &snapshot,
    };
    let shared = &scene.shared;
    // Again, as a join does: from the beginning, whatever came of the scan before.
    for round in 0..3 {
        shared.begin(table);
        let start = Barrier::new(SCANNERS);
        let parts: Vec<Vec<i32>> = std::thread::scope(|scope| {
            let scanner = |_| {
                scope.spawn(|| {
                    let session = engine.join().unwrap();
                    start.wait();
                    part(&session, &scene)
                })
            };
            let scanners: Vec<_> = (0..SCANNERS).map(scanner).collect();
            scanners
                .into_iter()
                .map(|scanner| scanner.join().unwrap())
                .collect()
        });
        let mut all = parts.concat();
        all.sort_unstable();
        assert_eq!(all, expected);
        if round == 1 {
            // A scan that ended early, in the middle of a part; and rows that the snapshot does not
            // see.
            let mut scan = shared.take(table);
            assert!(scan.is_none());
            shared.begin(table);
            scan = shared.take(table);
            assert!(scan.unwrap().next(&session, &snapshot).is_some());
            fill(&session, &world, table, ROWS);
        }
    }
}

#[test]
fn nobody_sees_a_row_of_an_empty_table() {
    let (_region, engine) = common::engine(64 << 20);
    let session = engine.join().unwrap();
    let world = World::new();
    let table = common::table(&session, &world, &[]);
    let shared = SharedRowScan::default();
    assert!(shared.take(table).is_none());
    shared.begin(table);
    assert!(shared.take(table).is_none());
}
