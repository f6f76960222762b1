//! What a session keeps from others: memory that it has retired, pins, places. It may be idle for
//! hours, or look at a large table, or be one of very many.

mod common;

use common::{Asked, Fate, Me, Positions, Row, World, body, reader};
use mot_engine::limits::{SESSIONS_MAX, SESSIONS_NOT_OF_CLIENTS};
use mot_engine::steps::steps_taken;
use mot_engine::transaction::free_pending;
use mot_engine::{
    Build, CommandId, EngineError, Entered, Log, Lsn, Problem, RelationKey, RowId, Session, State,
    TableRef, Transaction, VersionRef, Written, Xid,
};
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, Ordering};

/// Blocks that nobody minds if they stay: a session collects whenever it has retired 64.
const FEW_BLOCKS: usize = 4 * 64;
const ROWS: i32 = 20_000;

fn table(session: &Session, world: &World) -> TableRef {
    let indexes = [
        common::definition(101, true, &[(1, false)]),
        common::definition(102, false, &[(2, false)]),
    ];
    common::table(session, world, &indexes)
}

fn insert(
    session: &Session,
    me: &Me,
    work: &mut Transaction,
    table: TableRef,
    a: i32,
    xid: u64,
) -> Result<(RowId, VersionRef), EngineError> {
    let new = body(Row { a, b: a, c: None });
    let (row_id, version) = work.insert(session, table, &new, Xid(xid), CommandId(1))?;
    assert_eq!(
        work.enter(session, me, table, row_id, version)?,
        Entered::Done
    );
    Ok((row_id, version))
}

fn garbage(session: &Session) -> usize {
    session.memory().garbage_blocks()
}

#[test]
fn what_a_rollback_takes_back_is_free_when_it_is_over() {
    let (_region, engine) = common::engine(64 << 20);
    let session = &engine.join().unwrap();
    let world = World::new();
    let table = table(session, &world);
    let mut work = Transaction::new();
    let me = world.begin();
    for a in 0..ROWS {
        insert(session, &me, &mut work, table, a, me.top).unwrap();
    }
    me.end(Fate::Aborted);
    work.abort(session);
    assert!(garbage(session) <= FEW_BLOCKS, "{}", garbage(session));

    let me = world.begin();
    insert(session, &me, &mut work, table, -1, me.top).unwrap();
    let inner = me.savepoint();
    work.set_level(2).unwrap();
    for a in 0..ROWS {
        insert(session, &me, &mut work, table, a, inner).unwrap();
    }
    me.abort_one(inner);
    work.savepoint_abort(session, 2);
    assert!(garbage(session) <= FEW_BLOCKS, "{}", garbage(session));
    me.end(Fate::Committed);
    work.commit(session);
    assert_eq!(common::check(session, table, &reader(&world)).rows, 1);
}

/// Rows that a transaction changed often lose what lies between the first and the last state.
#[test]
fn what_a_commit_takes_out_is_free_when_it_is_over() {
    for is_prepared in [false, true] {
        let (_region, engine) = common::engine(64 << 20);
        let session = &engine.join().unwrap();
        let world = World::new();
        let table = table(session, &world);
        let mut work = Transaction::new();
        let me = world.begin();
        let xid = Xid(me.top);
        for a in 0..ROWS / 2 {
            let (row_id, mut seen) = insert(session, &me, &mut work, table, a, me.top).unwrap();
            for cid in 2..4 {
                let new = body(Row {
                    a,
                    b: a,
                    c: Some(cid as i32),
                });
                let cid = CommandId(cid);
                let written = work.update(session, &me, table, row_id, seen, &new, xid, cid);
                let Ok(Written::Done(version)) = written else {
                    panic!("{written:?}")
                };
                let entered = work.enter(session, &me, table, row_id, version);
                assert_eq!(entered.unwrap(), Entered::Done);
                seen = version;
            }
        }
        work.log(session, &mut Positions::new()).unwrap();
        if is_prepared {
            work.give_up(session);
            me.end(Fate::Committed);
        } else {
            me.end(Fate::Committed);
            work.commit(session);
        }
        assert!(garbage(session) <= FEW_BLOCKS, "{}", garbage(session));
        let report = common::check(session, table, &reader(&world));
        assert_eq!(
            (report.rows, report.versions),
            (ROWS as u64 / 2, ROWS as u64 / 2)
        );
    }
}

#[test]
fn a_load_that_failed_in_a_full_arena_leaves_it_to_others() {
    let (_region, engine) = common::engine(32 << 20);
    let (failed, other) = (engine.join().unwrap(), engine.join().unwrap());
    let world = World::new();
    let table = table(&failed, &world);
    let fill = |session: &Session, work: &mut Transaction, me: &Me| {
        let mut count = 0;
        while insert(session, me, work, table, count, me.top).is_ok() {
            count += 1;
        }
        count
    };
    let (mut work, me) = (Transaction::new(), world.begin());
    let count = fill(&failed, &mut work, &me);
    assert!(count > ROWS);
    me.end(Fate::Aborted);
    work.abort(&failed);

    let (mut work, me) = (Transaction::new(), world.begin());
    let again = fill(&other, &mut work, &me);
    assert!(again > count * 9 / 10, "{again} rows after {count}");
    me.end(Fate::Aborted);
    work.abort(&other);
}

/// Appending takes long when the log is written out, and nobody's garbage is freed while somebody
/// is pinned.
#[test]
fn nobody_is_pinned_while_the_log_is_written() {
    struct Looks<'a> {
        session: &'a Session,
        records: usize,
        positions: Positions,
    }
    impl Log for Looks<'_> {
        fn append(&mut self, record: &[u8]) -> Lsn {
            assert!(!self.session.memory().is_pinned());
            self.records += 1;
            self.positions.append(record)
        }
    }
    let (_region, engine) = common::engine(64 << 20);
    let session = &engine.join().unwrap();
    let world = World::new();
    let table = common::table(session, &world, &[]);
    let (mut work, me) = (Transaction::new(), world.begin());
    let mut long = body(Row {
        a: 1,
        b: 2,
        c: None,
    });
    for byte in 0..200_000u32 {
        long.push((byte.wrapping_mul(2_654_435_761) >> 24) as u8);
    }
    for _ in 0..60 {
        let (xid, cid) = (Xid(me.top), CommandId(1));
        work.insert(session, table, &long, xid, cid).unwrap();
    }
    let mut log = Looks {
        session,
        records: 0,
        positions: Positions::new(),
    };
    work.log(session, &mut log).unwrap();
    me.end(Fate::Committed);
    work.commit(session);
    assert!(log.records >= 3, "{} records", log.records);
}

#[test]
fn a_check_is_not_pinned_when_it_asks_whether_to_go_on() {
    let (_region, engine) = common::engine(64 << 20);
    let session = &engine.join().unwrap();
    let world = World::new();
    let table = table(session, &world);
    let (mut work, me) = (Transaction::new(), world.begin());
    for a in 0..ROWS {
        insert(session, &me, &mut work, table, a, me.top).unwrap();
    }
    me.end(Fate::Committed);
    work.commit(session);
    let (me, questions) = (reader(&world), Cell::new(0));
    let clock = Asked {
        me: &me,
        is_cancelled: || {
            assert!(!session.memory().is_pinned());
            questions.set(questions.get() + 1);
            false
        },
    };
    let report = session.check(table, &clock, |problem| panic!("{problem:?}"));
    assert_eq!(report.unwrap().entries, 2 * ROWS as u64);
    // Rows and entries alone are asked about sixty times.
    assert!(questions.get() > 65, "{}", questions.get());
}

/// Both hold ShareLock. The index is given up at every moment at which a check, or a walk for its
/// size, asks whether to go on.
#[test]
fn a_check_passes_over_an_index_that_another_transaction_gives_up() {
    const ROWS: i32 = 5_000;
    let (_region, engine) = common::engine(64 << 20);
    let (checks, makes) = (engine.join().unwrap(), engine.join().unwrap());
    let world = World::new();
    let table = common::table(&checks, &world, &[]);
    let (mut work, me) = (Transaction::new(), world.begin());
    for a in 0..ROWS {
        insert(&checks, &me, &mut work, table, a, me.top).unwrap();
    }
    me.end(Fate::Committed);
    work.commit(&checks);
    for moment in 0..20 {
        let maker = world.begin();
        let definition = common::definition(101, true, &[(1, false)]);
        let mut work = Transaction::new();
        let made = work.create_index(&makes, &maker, table, &definition, Xid(maker.top));
        assert!(matches!(made, Ok(Build::Done(_))));
        let work = RefCell::new(work);
        let give_up = || {
            maker.end(Fate::Aborted);
            work.borrow_mut().abort(&makes);
            assert_eq!(free_pending(&makes, || {}), 1);
        };
        let (me, questions) = (reader(&world), Cell::new(0));
        let clock = Asked {
            me: &me,
            is_cancelled: || {
                // Who frees waits for who is pinned.
                if !checks.memory().is_pinned() {
                    if questions.get() == moment {
                        give_up();
                    }
                    questions.set(questions.get() + 1);
                }
                false
            },
        };
        let mut problems: Vec<Problem> = Vec::new();
        let report = checks.check(table, &clock, |problem| problems.push(problem));
        assert_eq!(problems, [], "given up at question {moment}");
        assert_eq!(report.unwrap().rows, ROWS as u64);
        if questions.get() <= moment {
            give_up();
        }
    }
}

/// A standby's replay asks for no lock, nor need writers wait for who asks for sizes.
#[test]
fn sizes_are_told_and_checks_end_while_the_table_grows() {
    const TIMES: i32 = 20;
    let (_region, engine) = common::engine(128 << 20);
    let session = &engine.join().unwrap();
    let world = World::new();
    let table = table(session, &world);
    // As while a log is replayed, for the check: then it counts on nothing that stands still.
    engine.set_state(State::Replaying);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let session = &engine.join().unwrap();
            let table = session.find_table(common::TABLE, &reader(&world)).unwrap();
            for time in 0..TIMES {
                let (mut work, me) = (Transaction::new(), world.begin());
                for a in 0..ROWS / TIMES {
                    let a = a.wrapping_mul(7919) % (ROWS / TIMES) * TIMES + time;
                    insert(session, &me, &mut work, table, a, me.top).unwrap();
                }
                me.end(Fate::Committed);
                work.commit(session);
            }
            is_over.store(true, Ordering::Relaxed);
        });
        let me = reader(&world);
        let mut before = [0; 2];
        while !is_over.load(Ordering::Relaxed) {
            let sizes = session
                .indexes(table, &me)
                .into_iter()
                .map(|index| session.index_bytes(&me, index).unwrap());
            for (before, size) in before.iter_mut().zip(sizes) {
                // Leaves that are split meanwhile may be missed, or counted twice.
                assert!(size >= *before / 2, "{size} bytes after {before}");
                *before = size;
            }
            session.check(table, &me, |_| {}).unwrap();
        }
    });
    engine.set_state(State::Ready);
    let report = common::check(session, table, &reader(&world));
    assert_eq!(
        (report.rows, report.entries),
        (ROWS as u64, 2 * ROWS as u64)
    );
}

#[test]
fn clients_leave_places_to_workers() {
    let (_region, engine) = common::engine(64 << 20);
    let mut clients: Vec<Session> = Vec::new();
    let refused = loop {
        match engine.join_for_client() {
            Ok(client) => clients.push(client),
            Err(error) => break error,
        }
    };
    let max = SESSIONS_MAX - SESSIONS_NOT_OF_CLIENTS;
    assert_eq!(clients.len(), max);
    assert!(matches!(refused, EngineError::TooManyParticipants(of) if of.max == max));
    let workers: Vec<Session> = (0..SESSIONS_NOT_OF_CLIENTS)
        .map(|_| engine.join().unwrap())
        .collect();
    let refused = engine.join().err();
    assert!(
        matches!(refused, Some(EngineError::TooManyParticipants(of)) if of.max == SESSIONS_MAX)
    );
    drop(workers);
    assert!(engine.join_for_client().is_err());
    clients.pop();
    clients.push(engine.join_for_client().unwrap());
}

/// Row ids that a session took and did not use go back to their tables, each of which is looked
/// for.
#[test]
fn who_leaves_looks_for_its_tables_where_they_are() {
    const TABLES: u32 = 32;
    let (_region, engine) = common::engine(64 << 20);
    let (leaves, stays) = (engine.join().unwrap(), engine.join().unwrap());
    let world = World::new();
    let tables: Vec<TableRef> = (0..TABLES)
        .map(|number| {
            common::transact(&leaves, &world, |work, _, xid| {
                let key = RelationKey::of_file(1, 0, 1000 + number);
                let table = work.create_table(&leaves, key, xid).unwrap();
                let new = body(Row {
                    a: 1,
                    b: 2,
                    c: None,
                });
                work.insert(&leaves, table, &new, xid, CommandId(1))
                    .unwrap();
                table
            })
        })
        .collect();
    let before = steps_taken();
    drop(leaves);
    let steps = steps_taken() - before;
    assert!(steps < 10 * u64::from(TABLES), "{steps} steps");
    for table in tables {
        let report = common::check(&stays, table, &reader(&world));
        assert_eq!((report.rows, report.row_ids_free), (1, 7));
    }
}
