//! Tables and indexes that come and go with transactions, beside rows and snapshots.

mod common;

use common::{Fate, Me, Positions, Row, Snap, TABLE, World, body, check, row, sweep};
use mot_engine::key::IndexDefinition;
use mot_engine::memory::{Purpose, Urgency};
use mot_engine::transaction::log_and_free_pending;
use mot_engine::{
    Build, CommandId, Direction, EngineError, Entered, IndexRef, IndexScan, KeyRange, LockStrength,
    Locked, Log, Lsn, RowScan, Session, TableRef, Transaction, Written, Xid,
};

fn commit(session: &Session, me: &Me, work: &mut Transaction) {
    work.log(session, &mut Positions::new()).unwrap();
    me.end(Fate::Committed);
    work.commit(session);
}

fn abort(session: &Session, me: &Me, work: &mut Transaction) {
    me.end(Fate::Aborted);
    work.abort(session);
}

fn index(
    session: &Session,
    me: &Me,
    work: &mut Transaction,
    table: TableRef,
    definition: &IndexDefinition,
) -> IndexRef {
    match work
        .create_index(session, me, table, definition, Xid(me.top))
        .unwrap()
    {
        Build::Done(index) => index,
        other => panic!("{other:?}"),
    }
}

fn insert(session: &Session, me: &Me, work: &mut Transaction, table: TableRef, new: Row, cid: u32) {
    let (row_id, version) = work
        .insert(session, table, &body(new), Xid(me.top), CommandId(cid))
        .unwrap();
    assert_eq!(
        work.enter(session, me, table, row_id, version).unwrap(),
        Entered::Done
    );
}

fn rows(session: &Session, table: TableRef, snap: &Snap) -> Vec<Row> {
    let mut scan = RowScan::new(table);
    let mut rows = Vec::new();
    while let Some((_, version)) = scan.next(session, snap) {
        rows.push(row(version.body()));
    }
    rows.sort();
    rows
}

fn rows_by(session: &Session, table: TableRef, index: IndexRef, snap: &Snap) -> Vec<Row> {
    let mut scan = IndexScan::new();
    scan.start(table, index, &KeyRange::new(), Direction::Forward);
    let mut rows = Vec::new();
    while let Some((_, version)) = scan.next(session, snap).unwrap() {
        rows.push(row(version.body()));
    }
    rows.sort();
    rows
}

/// Changes every row the transaction sees.
fn change_all(
    session: &Session,
    me: &Me,
    work: &mut Transaction,
    table: TableRef,
    cid: u32,
    new: impl Fn(Row) -> Option<Row>,
) {
    let snap = me.snapshot(cid);
    let mut scan = RowScan::new(table);
    while let Some((row_id, seen)) = scan.next(session, &snap) {
        let (xid, cid) = (Xid(me.top), CommandId(cid));
        let written = match new(row(seen.body())) {
            Some(new) => work
                .update(session, me, table, row_id, seen, &body(new), xid, cid)
                .unwrap(),
            None => work
                .delete(session, me, table, row_id, seen, xid, cid)
                .unwrap(),
        };
        let Written::Done(version) = written else {
            panic!("{written:?}")
        };
        if !version.is_tombstone() {
            assert_eq!(
                work.enter(session, me, table, row_id, version).unwrap(),
                Entered::Done
            );
        }
    }
}

fn filled(session: &Session, world: &World, count: i32) -> TableRef {
    let me = world.begin();
    let mut work = Transaction::new();
    let table = work.create_table(session, TABLE, Xid(me.top)).unwrap();
    for a in 0..count {
        insert(
            session,
            &me,
            &mut work,
            table,
            Row {
                a,
                b: a % 5,
                c: None,
            },
            1,
        );
    }
    commit(session, &me, &mut work);
    table
}

#[test]
fn an_index_made_late_serves_older_snapshots_and_moved_rows() {
    let (_region, engine) = common::engine(64 << 20);
    let session = &engine.join().unwrap();
    let world = World::new();
    let table = filled(session, &world, 300);
    let before = common::reader(&world).snapshot(0);
    let me = world.begin();
    let mut work = Transaction::new();
    change_all(session, &me, &mut work, table, 1, |row| {
        (row.a % 3 != 0).then_some(Row {
            b: row.b + 100,
            ..row
        })
    });
    commit(session, &me, &mut work);
    let after = common::reader(&world).snapshot(0);

    let me = world.begin();
    let unique = index(
        session,
        &me,
        &mut work,
        table,
        &common::definition(101, true, &[(1, false)]),
    );
    let other = index(
        session,
        &me,
        &mut work,
        table,
        &common::definition(102, false, &[(2, true)]),
    );
    assert!(
        session
            .find_index(table, 101, &common::reader(&world))
            .is_none()
    );
    assert_eq!(session.find_index(table, 101, &me), Some(unique));
    commit(session, &me, &mut work);
    assert_eq!(
        session.indexes(table, &common::reader(&world)),
        [unique, other]
    );
    for snap in [&before, &after] {
        let expected = rows(session, table, snap);
        assert_eq!(
            expected.len(),
            if snap.xmax == before.xmax { 300 } else { 200 }
        );
        assert_eq!(rows_by(session, table, unique, snap), expected);
        assert_eq!(rows_by(session, table, other, snap), expected);
    }
    check(session, table, &common::reader(&world));
    drop((before, after));
    sweep(session, &world, table);
    let report = check(session, table, &common::reader(&world));
    assert_eq!(
        (report.rows, report.versions, report.entries),
        (200, 200, 400)
    );
    assert_eq!(report.row_ids_free, 100);
}

#[test]
fn duplicates_stop_a_unique_index_and_leave_nothing() {
    let (_region, engine) = common::engine(64 << 20);
    let session = &engine.join().unwrap();
    let world = World::new();
    let table = filled(session, &world, 20);
    let me = world.begin();
    let mut work = Transaction::new();
    let definition = common::definition(101, true, &[(2, false)]);
    let build = work
        .create_index(session, &me, table, &definition, Xid(me.top))
        .unwrap();
    let Build::Duplicate { row_ids } = build else {
        panic!("{build:?}")
    };
    assert_ne!(row_ids[0], row_ids[1]);
    abort(session, &me, &mut work);
    // Deleted rows are no duplicates, even while older snapshots need them.
    let before = common::reader(&world).snapshot(0);
    let me = world.begin();
    change_all(session, &me, &mut work, table, 1, |row| {
        (row.a < 5).then_some(row)
    });
    commit(session, &me, &mut work);
    let me = world.begin();
    let unique = index(session, &me, &mut work, table, &definition);
    commit(session, &me, &mut work);
    assert_eq!(rows_by(session, table, unique, &before).len(), 20);
    assert_eq!(
        rows_by(session, table, unique, &common::reader(&world).snapshot(0)).len(),
        5
    );
    check(session, table, &common::reader(&world));
}

#[test]
fn definitions_follow_their_transaction_and_savepoints() {
    let (_region, engine) = common::engine(64 << 20);
    let session = &engine.join().unwrap();
    let world = World::new();
    let everyone = common::reader(&world);
    let table = filled(session, &world, 50);
    let mut work = Transaction::new();
    let me = world.begin();
    let kept = index(
        session,
        &me,
        &mut work,
        table,
        &common::definition(101, true, &[(1, false)]),
    );
    commit(session, &me, &mut work);

    // Everything in a savepoint that is rolled back: drop an index, make one, truncate, insert.
    let me = world.begin();
    work.set_level(1).unwrap();
    insert(
        session,
        &me,
        &mut work,
        table,
        Row {
            a: 1000,
            b: 0,
            c: None,
        },
        1,
    );
    let level = me.savepoint();
    work.set_level(2).unwrap();
    let xid = Xid(level);
    assert!(work.drop_index(session, &me, table, 101, xid).unwrap());
    assert!(session.find_index(table, 101, &me).is_none());
    assert!(session.find_index(table, 101, &everyone).is_some());
    // A dropped index no longer keeps keys unique, but gets its entries: the drop may be rolled
    // back.
    let (row_id, version) = work
        .insert(
            session,
            table,
            &body(Row {
                a: 7,
                b: 0,
                c: None,
            }),
            xid,
            CommandId(2),
        )
        .unwrap();
    assert_eq!(
        work.enter(session, &me, table, row_id, version).unwrap(),
        Entered::Done
    );
    let late = work.create_index(
        session,
        &me,
        table,
        &common::definition(102, false, &[(2, false)]),
        xid,
    );
    assert!(matches!(late.unwrap(), Build::Done(_)));
    let fresh = work.truncate_table(session, &me, table, xid).unwrap();
    assert_eq!(session.find_table(TABLE, &me), Some(fresh));
    assert_eq!(session.find_table(TABLE, &everyone), Some(table));
    assert_eq!(session.indexes(fresh, &me).len(), 1);
    insert_as(
        session,
        &me,
        &mut work,
        fresh,
        Row {
            a: 1,
            b: 1,
            c: None,
        },
        xid,
    );
    me.abort_one(level);
    work.savepoint_abort(session, 2);
    assert_eq!(session.find_table(TABLE, &me), Some(table));
    assert_eq!(session.find_index(table, 101, &me), Some(kept));
    assert_eq!(session.indexes(table, &me), [kept]);
    commit(session, &me, &mut work);
    mot_engine::transaction::free_pending(session, || ());
    let snap = everyone.snapshot(0);
    assert_eq!(rows(session, table, &snap).len(), 51);
    assert_eq!(rows_by(session, table, kept, &snap).len(), 51);
    drop(snap);
    check(session, table, &everyone);

    // And for good.
    let me = world.begin();
    let fresh = work
        .truncate_table(session, &me, table, Xid(me.top))
        .unwrap();
    insert(
        session,
        &me,
        &mut work,
        fresh,
        Row {
            a: 1,
            b: 1,
            c: None,
        },
        1,
    );
    commit(session, &me, &mut work);
    assert_eq!(session.find_table(TABLE, &everyone), Some(fresh));
    assert_eq!(rows(session, fresh, &everyone.snapshot(0)).len(), 1);
    // What the log could not be told of is not freed.
    let refused = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        log_and_free_pending(session, &mut Told(None), || ())
    }));
    assert!(refused.is_err());
    let mut told = Told(Some(Vec::new()));
    let old = table.id();
    assert_eq!(log_and_free_pending(session, &mut told, || ()).unwrap(), 1);
    assert_eq!(told.0.unwrap(), [format!("free table {}", old.0)]);
    check(session, fresh, &everyone);
    let me = world.begin();
    work.drop_table(session, fresh, Xid(me.top)).unwrap();
    commit(session, &me, &mut work);
    assert_eq!(session.find_table(TABLE, &everyone), None);
    mot_engine::transaction::free_pending(session, || ());
    assert_eq!(session.tables().len(), 0);
}

/// What the log was told; None: it is full.
struct Told(Option<Vec<String>>);

impl Log for Told {
    fn append(&mut self, record: &[u8]) -> Lsn {
        let told = self.0.as_mut().expect("there is room");
        told.push(mot_engine::log::describe(record));
        Lsn(1 << 40)
    }
}

fn insert_as(
    session: &Session,
    me: &Me,
    work: &mut Transaction,
    table: TableRef,
    new: Row,
    xid: Xid,
) {
    let (row_id, version) = work
        .insert(session, table, &body(new), xid, CommandId(3))
        .unwrap();
    assert_eq!(
        work.enter(session, me, table, row_id, version).unwrap(),
        Entered::Done
    );
}

/// Bytes in use by purpose, once everybody has given back what is not needed.
fn used(session: &Session) -> Vec<(Purpose, i64)> {
    for _ in 0..4 {
        session.memory().collect();
    }
    session.memory().flush();
    let memory = session.engine().memory();
    Purpose::ALL
        .iter()
        .map(|purpose| (*purpose, memory.purpose_bytes(*purpose)))
        .collect()
}

#[test]
fn memory_returns_to_its_level_after_churn_and_drop() {
    let (_region, engine) = common::engine(64 << 20);
    let session = &engine.join().unwrap();
    let world = World::new();
    let empty = used(session);
    let table = filled(session, &world, 0);
    let mut work = Transaction::new();
    let me = world.begin();
    for (oid, unique, column) in [(101, true, 1), (102, false, 2), (103, true, 3)] {
        index(
            session,
            &me,
            &mut work,
            table,
            &common::definition(oid, unique, &[(column, false)]),
        );
    }
    commit(session, &me, &mut work);
    let churn = |rounds: i32| {
        let mut work = Transaction::new();
        for round in 0..rounds {
            let me = world.begin();
            for a in 0..500 {
                insert(
                    session,
                    &me,
                    &mut work,
                    table,
                    Row {
                        a,
                        b: round,
                        c: (a % 2 == 0).then_some(a),
                    },
                    1,
                );
            }
            change_all(session, &me, &mut work, table, 2, |row| {
                Some(Row {
                    a: row.a + 1000,
                    ..row
                })
            });
            if round % 3 == 0 {
                abort(session, &me, &mut work);
            } else {
                commit(session, &me, &mut work);
                let me = world.begin();
                change_all(session, &me, &mut work, table, 1, |row| {
                    Some(Row { b: -1, ..row })
                });
                change_all(session, &me, &mut work, table, 2, |_| None);
                commit(session, &me, &mut work);
            }
            sweep(session, &world, table);
            let report = check(session, table, &common::reader(&world));
            assert_eq!((report.rows, report.versions, report.entries), (0, 0, 0));
        }
    };
    churn(2);
    let level = used(session);
    churn(10);
    assert_eq!(used(session), level);
    let me = world.begin();
    work.drop_table(session, table, Xid(me.top)).unwrap();
    commit(session, &me, &mut work);
    mot_engine::transaction::free_pending(session, || ());
    assert_eq!(used(session), empty);
}

/// Each truncate makes each index anew, under an id of its own. What a session has decoded stays
/// until it ends.
#[test]
fn a_session_decodes_no_more_definitions_than_there_are_different_keys() {
    let (_region, engine) = common::engine(32 << 20);
    let session = &engine.join().unwrap();
    let world = World::new();
    let mut table = filled(session, &world, 0);
    let mut work = Transaction::new();
    let me = world.begin();
    let by_a = common::definition(101, true, &[(1, false)]);
    let by_b_and_a = common::definition(102, false, &[(2, false), (1, false)]);
    let first = index(session, &me, &mut work, table, &by_a);
    index(session, &me, &mut work, table, &by_b_and_a);
    commit(session, &me, &mut work);
    let mut ids = std::collections::HashSet::new();
    let mut decoded = std::collections::HashSet::new();
    let kept = session.definition(first).unwrap();
    for _ in 0..2000 {
        let me = world.begin();
        table = work
            .truncate_table(session, &me, table, Xid(me.top))
            .unwrap();
        commit(session, &me, &mut work);
        mot_engine::transaction::free_pending(session, || ());
        for index in session.indexes(table, &common::reader(&world)) {
            let known = session.definition(index).unwrap();
            let made = if index.relation_oid() == 101 {
                &by_a
            } else {
                &by_b_and_a
            };
            assert_eq!((&known.columns, known.unique), (&made.columns, made.unique));
            ids.insert(index.id());
            decoded.insert(std::ptr::from_ref(known));
        }
    }
    assert_eq!(ids.len(), 4000);
    assert_eq!(decoded.len(), 2);
    // The index is long gone.
    assert_eq!(kept.columns, by_a.columns);
}

#[test]
fn a_full_arena_leaves_everything_usable() {
    let (_region, engine) = common::engine(mot_engine::memory::ARENA_BYTES_MIN);
    let session = &engine.join().unwrap();
    let world = World::new();
    let mut table = filled(session, &world, 0);
    let mut work = Transaction::new();
    let me = world.begin();
    index(
        session,
        &me,
        &mut work,
        table,
        &common::definition(101, true, &[(1, false)]),
    );
    index(
        session,
        &me,
        &mut work,
        table,
        &common::definition(102, false, &[(2, false), (1, false)]),
    );
    commit(session, &me, &mut work);
    for round in 0..3 {
        let mut a = 0;
        let full = loop {
            // A hundred rows a transaction; the one that meets the end is rolled back.
            let me = world.begin();
            let mut fill = || {
                for _ in 0..100 {
                    let new = Row {
                        a,
                        b: round,
                        c: Some(a),
                    };
                    let mut wide = body(new);
                    wide.resize(800, 7);
                    let (row_id, version) =
                        work.insert(session, table, &wide, Xid(me.top), CommandId(1))?;
                    assert_eq!(
                        work.enter(session, &me, table, row_id, version)?,
                        Entered::Done
                    );
                    a += 1;
                }
                Ok::<_, EngineError>(())
            };
            match fill() {
                Ok(()) => commit(session, &me, &mut work),
                Err(error) => {
                    abort(session, &me, &mut work);
                    break error;
                }
            }
        };
        assert!(matches!(full, EngineError::ArenaFull(_)), "{full}");
        let report = check(session, table, &common::reader(&world));
        assert!(report.rows > 1000, "{report:?}");
        // Not a block is left of any size.
        let mut ballast = Vec::new();
        for bytes in (16..=4096).rev().step_by(16) {
            while let Ok(block) =
                session
                    .memory()
                    .allocate(bytes, Purpose::Other, Urgency::Ordinary)
            {
                ballast.push((block, bytes));
            }
        }
        // Reading, deleting and truncating go on; then there is room again.
        let me = world.begin();
        match round {
            0 => change_all(session, &me, &mut work, table, 1, |_| None),
            // As DELETE does behind a BEFORE ROW trigger, or that met a concurrent update.
            1 => {
                let snap = me.snapshot(1);
                let mut scan = RowScan::new(table);
                while let Some((row_id, seen)) = scan.next(session, &snap) {
                    let (xid, cid) = (Xid(me.top), CommandId(1));
                    let mut lock =
                        |strength| work.lock(session, &me, table, row_id, seen, strength, xid);
                    // A lock that no deletion needs is not worth the reserve.
                    let refused = lock(LockStrength::NoKeyUpdate);
                    assert!(
                        matches!(refused, Err(EngineError::ArenaFull(_))),
                        "{refused:?}"
                    );
                    assert_eq!(lock(LockStrength::Update).unwrap(), Locked::Done);
                    let written = work
                        .delete(session, &me, table, row_id, seen, xid, cid)
                        .unwrap();
                    assert!(matches!(written, Written::Done(_)), "{written:?}");
                }
            }
            _ => {
                let xid = Xid(me.top);
                work.truncate_table(session, &me, table, xid).unwrap();
                abort(session, &me, &mut work);
                let me = world.begin();
                let xid = Xid(me.top);
                table = work.truncate_table(session, &me, table, xid).unwrap();
                commit(session, &me, &mut work);
                mot_engine::transaction::free_pending(session, || ());
            }
        }
        if work.has_changes() {
            commit(session, &me, &mut work);
        }
        for (block, bytes) in ballast {
            // SAFETY: allocated above; this test's alone.
            unsafe { session.memory().free(block, bytes, Purpose::Other) };
        }
        sweep(session, &world, table);
        session.memory().collect();
        let report = check(session, table, &common::reader(&world));
        assert_eq!((report.rows, report.versions, report.entries), (0, 0, 0));
    }
}

#[test]
fn statements_that_find_no_room_take_nothing_with_them() {
    let (_region, engine) = common::engine(mot_engine::memory::ARENA_BYTES_MIN);
    let session = &engine.join().unwrap();
    let world = World::new();
    let table = filled(session, &world, 0);
    let mut work = Transaction::new();
    let me = world.begin();
    for (oid, unique, columns) in [
        (101, true, &[(1, false)][..]),
        (102, false, &[(2, false), (1, false)][..]),
        (103, true, &[(3, false)][..]),
    ] {
        index(
            session,
            &me,
            &mut work,
            table,
            &common::definition(oid, unique, columns),
        );
    }
    commit(session, &me, &mut work);
    // Fill up with rows of many sizes.
    let mut a = 0;
    let mut is_full = false;
    while !is_full {
        let me = world.begin();
        let mut wide = body(Row {
            a,
            b: a % 7,
            c: (a % 3 == 0).then_some(a),
        });
        wide.resize(40 + (a as usize * 37) % 1500, 7);
        let entered = work
            .insert(session, table, &wide, Xid(me.top), CommandId(1))
            .and_then(|(row_id, version)| work.enter(session, &me, table, row_id, version));
        is_full = entered.is_err();
        if is_full {
            abort(session, &me, &mut work);
        } else {
            commit(session, &me, &mut work);
            a += 1;
        }
    }
    let rows_before = check(session, table, &common::reader(&world)).rows;
    assert_eq!(rows_before, a as u64);
    // At the brim: statements in savepoints fail at every possible place, now that every few
    // deletes make a little room.
    let (mut failed, mut done) = (0, 0);
    for round in 0..400i32 {
        let me = world.begin();
        work.set_level(1).unwrap();
        let snap = me.snapshot(1);
        let mut scan = RowScan::new(table);
        let mut position = 0;
        while let Some((row_id, seen)) = scan.next(session, &snap) {
            position += 1;
            if (position + round) % 97 != 0 {
                continue;
            }
            let level = me.savepoint();
            work.set_level(2).unwrap();
            let old = row(seen.body());
            let new = Row {
                a: old.a + 1_000_000,
                b: round,
                c: old.c.map(|c| c + 1_000_000),
            };
            let mut wide = body(new);
            wide.resize(40 + (round as usize * 61 + position as usize) % 1500, 7);
            let (xid, cid) = (Xid(level), CommandId(1));
            let outcome = work
                .update(session, &me, table, row_id, seen, &wide, xid, cid)
                .and_then(|written| {
                    let Written::Done(version) = written else {
                        panic!("{written:?}")
                    };
                    assert_eq!(
                        work.enter(session, &me, table, row_id, version)?,
                        Entered::Done
                    );
                    Ok(())
                });
            match outcome {
                Ok(()) => {
                    done += 1;
                    work.savepoint_commit(2);
                    me.adopt(level, me.top);
                }
                Err(error) => {
                    assert!(matches!(error, EngineError::ArenaFull(_)), "{error}");
                    failed += 1;
                    me.abort_one(level);
                    work.savepoint_abort(session, 2);
                }
            }
            work.set_level(1).unwrap();
        }
        drop(snap);
        if round % 5 == 0 {
            let mut deleted = 0;
            let snap = me.snapshot(2);
            let mut scan = RowScan::new(table);
            while let Some((row_id, seen)) = scan.next(session, &snap) {
                deleted += 1;
                if deleted > 4 {
                    break;
                }
                let written = work
                    .delete(session, &me, table, row_id, seen, Xid(me.top), CommandId(2))
                    .unwrap();
                assert!(matches!(written, Written::Done(_)), "{written:?}");
            }
        }
        if round % 11 == 0 {
            abort(session, &me, &mut work);
        } else {
            commit(session, &me, &mut work);
        }
        if round % 3 == 0 {
            sweep(session, &world, table);
        }
        check(session, table, &common::reader(&world));
    }
    assert!(failed > 100 && done > 100, "{failed} failed, {done} done");
}
