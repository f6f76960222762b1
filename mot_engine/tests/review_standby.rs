//! A standby: replay beside the sweeper. What was rolled back on the primary is taken out of the
//! rows while the next change, logged whole and perhaps with the same keys, is put on top.

mod common;

use common::{Fate, Row, TABLE, World, body, check, definition, engine, reader, row};
use mot_engine::log::{DefinitionsWriter, RowsWriter};
use mot_engine::recovery::{AppliedHorizon, Replayer, finish, resolve_definitions};
use mot_engine::row::TombstoneNote;
use mot_engine::transaction::free_pending;
use mot_engine::{
    Direction, IndexId, IndexScan, KeyRange, Lsn, Persistence, RowId, State, TableId, Transaction,
    Xid,
};
use std::sync::atomic::{AtomicBool, Ordering};

const ROW_IDS: u64 = 4;

/// Rounds of the test below.
fn rounds() -> i32 {
    std::env::var("MOT_ROUNDS")
        .ok()
        .and_then(|rounds| rounds.parse().ok())
        .unwrap_or(600)
}

#[test]
fn rows_stay_reachable_when_replay_and_sweep_meet() {
    let (_region, engine) = engine(32 << 20);
    engine.set_state(State::Replaying);
    let session = &engine.join().unwrap();
    let world = &World::new();
    let mut replayer = Replayer::new(1);
    let mut lsn = 0;
    let mut apply = |record: &[u8], xid: u64| {
        lsn += 100;
        replayer.apply(session, record, Lsn(lsn), Xid(xid)).unwrap();
    };

    let me = world.begin();
    let mut definitions = DefinitionsWriter::new();
    definitions
        .create_table(TableId(1), TABLE, Persistence::Logged)
        .unwrap();
    let by_b = definition(101, true, &[(2, false)]);
    definitions
        .create_index(IndexId(1), TableId(1), &by_b)
        .unwrap();
    apply(definitions.record(), me.top);
    me.end(Fate::Committed);
    let table = session.find_table(TABLE, &reader(world)).unwrap();

    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let session = engine.join().unwrap();
            let clock = reader(world);
            let walks = session.tables();
            while !stop.load(Ordering::Relaxed) {
                engine.raise_horizon(world.horizon());
                session.sweep(&clock, walks[0].table(), true, || {});
            }
        });
        let rounds = rounds();
        let mut exists = [false; ROW_IDS as usize];
        for round in 0..rounds {
            let row_id = round as u64 % ROW_IDS;
            let mut change = |b: i32, fate: Fate| {
                let me = world.begin();
                let body = &body(Row {
                    a: row_id as i32,
                    b,
                    c: None,
                });
                let mut rows = RowsWriter::new();
                if exists[row_id as usize] {
                    rows.update(TableId(1), RowId(row_id), None, body).unwrap();
                } else {
                    rows.insert(TableId(1), RowId(row_id), body).unwrap();
                }
                apply(rows.record(), me.top);
                me.end(fate);
                exists[row_id as usize] |= fate == Fate::Committed;
            };
            // The same key again, and for the last round of each row id the key it will be looked
            // up by.
            change(round, Fate::Aborted);
            change(round, Fate::Committed);
            if round < rounds - ROW_IDS as i32 && round % 3 == 0 {
                let me = world.begin();
                let mut rows = RowsWriter::new();
                rows.delete(TableId(1), RowId(row_id), TombstoneNote::NONE)
                    .unwrap();
                apply(rows.record(), me.top);
                me.end(Fate::Committed);
                exists[row_id as usize] = false;
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    finish(session, &reader(world), 1).unwrap();
    engine.set_state(State::Ready);

    let me = reader(world);
    check(session, table, &me);
    let snapshot = me.snapshot(0);
    let index = session.find_index(table, 101, &me).unwrap();
    let mut scan = IndexScan::new();
    scan.start(table, index, &KeyRange::new(), Direction::Forward);
    let found: Vec<i32> = std::iter::from_fn(|| scan.next(session, &snapshot).unwrap())
        .map(|(_, version)| row(version.body()).b)
        .collect();
    let rounds = rounds();
    assert_eq!(found, (rounds - ROW_IDS as i32..rounds).collect::<Vec<_>>());
}

/// At the end of replay a table is finished while others are not, and the sweeper comes by: a row
/// id that it frees is used again.
#[test]
fn row_ids_freed_while_other_tables_are_finished_are_listed() {
    const ROWS: u64 = 8;
    let (_region, engine) = engine(16 << 20);
    engine.set_state(State::Replaying);
    let session = &engine.join().unwrap();
    let world = &World::new();
    let mut replayer = Replayer::new(1);
    let mut lsn = 0;
    let mut apply = |record: &[u8]| {
        let me = world.begin();
        lsn += 100;
        replayer
            .apply(session, record, Lsn(lsn), Xid(me.top))
            .unwrap();
        me.end(Fate::Committed);
    };
    let mut definitions = DefinitionsWriter::new();
    definitions
        .create_table(TableId(1), TABLE, Persistence::Logged)
        .unwrap();
    apply(definitions.record());
    let mut rows = RowsWriter::new();
    for row_id in 0..ROWS {
        let (a, b) = (row_id as i32, row_id as i32);
        rows.insert(TableId(1), RowId(row_id), &body(Row { a, b, c: None }))
            .unwrap();
    }
    apply(rows.record());
    let mut rows = RowsWriter::new();
    for row_id in 0..ROWS {
        rows.delete(TableId(1), RowId(row_id), TombstoneNote::NONE)
            .unwrap();
    }
    apply(rows.record());
    // Somebody still sees the rows, so they stay.
    let clock = reader(world);
    finish(session, &clock, 1).unwrap();
    let table = session.find_table(TABLE, &clock).unwrap();
    assert_eq!(check(session, table, &clock).row_ids_free, 0);
    engine.raise_horizon(world.horizon());
    session.sweep(&clock, table, true, || {});
    engine.set_state(State::Ready);
    assert_eq!(check(session, table, &clock).row_ids_free, ROWS);
}

/// A table dropped, an index rolled back: the standby's reclaimer frees them beside replay, and
/// resolves what stays.
#[test]
fn a_standby_frees_what_was_dropped_and_resolves_what_stays() {
    let (_region, engine) = engine(32 << 20);
    engine.set_state(State::Replaying);
    let session = &engine.join().unwrap();
    let world = &World::new();
    let mut replayer = Replayer::new(1);
    let mut lsn = 0;
    let mut applied = AppliedHorizon::default();
    let mut apply = |definitions: &DefinitionsWriter, fate: Fate| {
        let me = world.begin();
        lsn += 100;
        replayer
            .apply(session, definitions.record(), Lsn(lsn), Xid(me.top))
            .unwrap();
        me.end(fate);
    };
    let by_b = definition(101, true, &[(2, false)]);
    let mut first = DefinitionsWriter::new();
    first
        .create_table(TableId(1), TABLE, Persistence::Logged)
        .unwrap();
    apply(&first, Fate::Committed);
    let mut index = DefinitionsWriter::new();
    index.create_index(IndexId(1), TableId(1), &by_b).unwrap();
    apply(&index, Fate::Aborted);
    let mut truncate = DefinitionsWriter::new();
    truncate
        .create_table(TableId(2), TABLE, Persistence::Logged)
        .unwrap();
    truncate
        .create_index(IndexId(2), TableId(2), &by_b)
        .unwrap();
    truncate.drop_table(TableId(1)).unwrap();
    // Rolled back at first: nothing of the old storage may go.
    apply(&truncate, Fate::Aborted);
    engine.raise_horizon(world.horizon());
    applied.raise(engine, world.horizon());
    let clock = reader(world);
    assert_eq!(
        resolve_definitions(session, &clock, applied),
        2,
        "the index, the fresh storage"
    );
    assert_eq!(free_pending(session, || ()), 2);
    assert_eq!(session.find_table(TABLE, &clock).unwrap().id(), TableId(1));

    let mut truncate = DefinitionsWriter::new();
    truncate
        .create_table(TableId(3), TABLE, Persistence::Logged)
        .unwrap();
    truncate
        .create_index(IndexId(3), TableId(3), &by_b)
        .unwrap();
    truncate.drop_table(TableId(1)).unwrap();
    apply(&truncate, Fate::Committed);
    assert_eq!(
        resolve_definitions(session, &clock, applied),
        0,
        "someone may still be reading"
    );
    engine.raise_horizon(world.horizon());
    applied.raise(engine, world.horizon());
    assert_eq!(resolve_definitions(session, &clock, applied), 1);
    assert_eq!(free_pending(session, || ()), 1);

    // The commit log may be gone: nobody is asked any more.
    let nobody = reader(&World::new());
    let table = session.find_table(TABLE, &nobody).unwrap();
    assert_eq!(table.id(), TableId(3));
    assert!(session.find_index(table, 101, &nobody).is_some());
}

/// Who is pinned may be looking at an index that is just being taken away.
#[test]
fn nothing_is_freed_under_the_eyes_of_who_is_pinned() {
    let (_region, engine) = engine(16 << 20);
    engine.set_state(State::Ready);
    let session = &engine.join().unwrap();
    let world = &World::new();
    let me = world.begin();
    let mut t = Transaction::new();
    t.create_table(session, TABLE, Xid(me.top)).unwrap();
    let pin = session.memory().pin();
    me.end(Fate::Aborted);
    t.abort(session);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let session = engine.join().unwrap();
            assert_eq!(free_pending(&session, || ()), 1);
            done.store(true, Ordering::SeqCst);
        });
        for _ in 0..200 {
            std::thread::sleep(std::time::Duration::from_micros(100));
            assert!(!done.load(Ordering::SeqCst));
        }
        drop(pin);
    });
    assert!(done.load(Ordering::SeqCst));
}
