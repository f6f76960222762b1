//! Temporary tables: two sessions with one file number, what their tables take, and the limit.

mod common;

use common::{Fate, Me, Row, World};
use mot_engine::memory::{LimitOf, Purpose};
use mot_engine::{
    Build, CommandId, Engine, EngineError, Persistence, RelationKey, RowId, Session, TableRef,
    Transaction, VersionRef, Written, Xid,
};

const FILE: RelationKey = RelationKey::of_file(1, 0, 100);
const LIMIT: u64 = 1 << 20;

fn limit() -> u64 {
    LIMIT
}

/// A table with a key, of the session with this number.
fn create(work: &mut Transaction, session: &Session, me: &Me, backend: u32) -> TableRef {
    let xid = Xid(me.top);
    let key = FILE.of_temporary(backend);
    let made = work.create_table_as(session, key, Persistence::Temporary, xid);
    let table = made.unwrap();
    let definition = common::definition(50, true, &[(1, false)]);
    let built = work.create_index(session, me, table, &definition, xid);
    assert!(matches!(built, Ok(Build::Done(_))), "{built:?}");
    table
}

fn insert(
    work: &mut Transaction,
    session: &Session,
    me: &Me,
    table: TableRef,
    a: i32,
) -> Result<(RowId, VersionRef), EngineError> {
    let body = common::body(Row { a, b: 1, c: None });
    let xid = Xid(me.top);
    let (row_id, version) = work.insert(session, table, &body, xid, CommandId(0))?;
    work.enter(session, me, table, row_id, version)?;
    Ok((row_id, version))
}

/// Inserts rows from `from` on until that fails.
fn insert_all(
    work: &mut Transaction,
    session: &Session,
    me: &Me,
    table: TableRef,
    from: i32,
) -> (i32, EngineError) {
    let mut a = from;
    loop {
        if let Err(error) = insert(work, session, me, table, a) {
            return (a - from, error);
        }
        a += 1;
    }
}

fn in_use(engine: Engine) -> i64 {
    let memory = engine.memory();
    Purpose::ALL
        .iter()
        .map(|purpose| memory.purpose_bytes(*purpose))
        .sum()
}

#[test]
fn sessions_with_one_file_number_have_a_table_each() {
    let (_region, engine) = common::engine(16 << 20);
    let sessions = [engine.join().unwrap(), engine.join().unwrap()];
    let world = World::new();
    let tables = [1, 2].map(|backend| {
        common::transact(&sessions[backend as usize - 1], &world, |work, me, _| {
            create(work, &sessions[backend as usize - 1], me, backend)
        })
    });
    let clock = common::reader(&world);
    for (backend, table) in (1..).zip(tables) {
        let key = FILE.of_temporary(backend);
        assert_eq!(sessions[0].find_table(key, &clock), Some(table));
    }
    assert_eq!(sessions[0].find_table(FILE, &clock), None);
}

#[test]
fn a_session_at_its_limit_fails_alone_and_goes_on_when_a_table_is_gone() {
    let (_region, engine) = common::engine(64 << 20);
    let (one, other) = (&engine.join().unwrap(), &engine.join().unwrap());
    one.limit_temporary_by(limit);
    let world = World::new();
    let (table, permanent) = common::transact(one, &world, |work, me, xid| {
        let permanent = work.create_table(one, common::TABLE, xid).unwrap();
        (create(work, one, me, 1), permanent)
    });
    let me = world.begin();
    let mut work = Transaction::new();
    let (row_id, version) = insert(&mut work, one, &me, table, -1).unwrap();
    let (rows, error) = insert_all(&mut work, one, &me, table, 0);
    let EngineError::ArenaFull(full) = error else {
        panic!("{error:?}")
    };
    assert_eq!((full.limit_of, full.limit), (LimitOf::Session, LIMIT));
    assert!(full.used <= LIMIT && full.used + full.requested > LIMIT / 2);
    assert!(one.temporary_bytes() <= LIMIT && rows > 1000);
    // Others, and other tables of the session, have all the arena.
    insert(&mut work, one, &me, permanent, 1).unwrap();
    common::transact(other, &world, |work, me, _| {
        let table = create(work, other, me, 2);
        for a in 0..2 * rows {
            insert(work, other, me, table, a).unwrap();
        }
        assert!(other.temporary_bytes() > LIMIT);
    });
    // Rows can be deleted, which is how room is made.
    let deleted = work.delete(one, &me, table, row_id, version, Xid(me.top), CommandId(1));
    assert!(matches!(deleted, Ok(Written::Done(_))), "{deleted:?}");
    me.end(Fate::Aborted);
    work.abort(one);
    let left = one.temporary_bytes();
    assert!(left < LIMIT / 2, "{left} bytes after a rollback");
    // Again, and a drop.
    common::transact(one, &world, |work, me, _| {
        let (again, _) = insert_all(work, one, me, table, 0);
        assert!(again > rows / 3);
    });
    assert!(one.temporary_bytes() > LIMIT / 2);
    common::transact(one, &world, |work, _, xid| {
        work.drop_table(one, table, xid).unwrap();
    });
    assert_eq!(one.temporary_bytes(), 0);
}

#[test]
fn a_table_made_and_dropped_again_and_again_leaves_nothing() {
    let (_region, engine) = common::engine(16 << 20);
    let session = &engine.join().unwrap();
    session.limit_temporary_by(limit);
    let world = World::new();
    let mut after_first = 0;
    for round in 0..200 {
        let table = common::transact(session, &world, |work, me, _| {
            let table = create(work, session, me, 1);
            for a in 0..10 {
                insert(work, session, me, table, a).unwrap();
            }
            table
        });
        assert!(session.temporary_bytes() > 0);
        common::transact(session, &world, |work, _, xid| {
            work.drop_table(session, table, xid).unwrap();
        });
        assert_eq!(session.temporary_bytes(), 0, "round {round}");
        assert_eq!(session.tables().len(), 0);
        session.memory().collect_all(|| {});
        session.memory().flush();
        if round == 0 {
            after_first = in_use(engine);
        }
    }
    assert_eq!(in_use(engine), after_first);
}

/// Whoever walks a table keeps it, and it counts no more all the same.
#[test]
fn a_table_that_is_walked_is_freed_later_and_counts_no_more() {
    let (_region, engine) = common::engine(16 << 20);
    let (session, sweeper) = (&engine.join().unwrap(), &engine.join().unwrap());
    let world = World::new();
    let table = common::transact(session, &world, |work, me, _| {
        let table = create(work, session, me, 1);
        for a in 0..100 {
            insert(work, session, me, table, a).unwrap();
        }
        table
    });
    let walks = sweeper.tables();
    common::transact(session, &world, |work, _, xid| {
        work.drop_table(session, table, xid).unwrap();
    });
    assert_eq!(session.temporary_bytes(), 0);
    drop(walks);
    assert_eq!(mot_engine::transaction::free_pending(sweeper, || {}), 1);
    assert_eq!(session.temporary_bytes(), 0);
}

/// A reader of an index and a dropped index count, too, and the sums are even at the end.
#[test]
fn an_index_that_goes_takes_what_it_took_along() {
    let (_region, engine) = common::engine(64 << 20);
    let (session, sweeper) = (&engine.join().unwrap(), &engine.join().unwrap());
    let world = World::new();
    let table = common::transact(session, &world, |work, me, _| {
        let table = create(work, session, me, 1);
        for a in 0..5000 {
            insert(work, session, me, table, a).unwrap();
        }
        table
    });
    let without = session.temporary_bytes();
    for walked in [false, true] {
        let definition = common::definition(51, false, &[(2, false)]);
        common::transact(session, &world, |work, me, xid| {
            let built = work.create_index(session, me, table, &definition, xid);
            assert!(matches!(built, Ok(Build::Done(_))), "{built:?}");
        });
        assert!(session.temporary_bytes() > without + 50_000);
        let walks = walked.then(|| sweeper.tables());
        common::transact(session, &world, |work, me, xid| {
            assert!(work.drop_index(session, me, table, 51, xid).unwrap());
        });
        drop(walks);
        let left = session.temporary_bytes().abs_diff(without);
        assert!(left < 2000, "{left} bytes apart");
    }
    assert_eq!(mot_engine::transaction::free_pending(sweeper, || {}), 2);
    common::transact(session, &world, |work, _, xid| {
        work.drop_table(session, table, xid).unwrap();
    });
    assert_eq!(session.temporary_bytes(), 0);
}

/// ON COMMIT acts behind the moment in which the log was told everything.
#[test]
fn a_sealed_transaction_still_empties_and_drops_temporary_tables() {
    let (_region, engine) = common::engine(16 << 20);
    let session = &engine.join().unwrap();
    let world = World::new();
    let (table, permanent) = common::transact(session, &world, |work, me, xid| {
        let permanent = work.create_table(session, common::TABLE, xid).unwrap();
        let table = create(work, session, me, 1);
        insert(work, session, me, table, 1).unwrap();
        (table, permanent)
    });
    let me = world.begin();
    let xid = Xid(me.top);
    let mut work = Transaction::new();
    insert(&mut work, session, &me, table, 2).unwrap();
    insert(&mut work, session, &me, permanent, 2).unwrap();
    work.log(session, &mut common::Positions::new()).unwrap();
    work.seal();
    let fresh = work.truncate_table(session, &me, table, xid).unwrap();
    assert!(insert(&mut work, session, &me, permanent, 3).is_err());
    assert!(work.drop_table(session, permanent, xid).is_err());
    me.end(Fate::Committed);
    work.commit(session);
    work.unseal();
    let clock = common::reader(&world);
    assert_eq!(session.find_table(table_key(), &clock), Some(fresh));
    assert_eq!(fresh.row_count_estimate(), 0);
    assert_eq!(common::check(session, fresh, &clock).problems, 0);
}

fn table_key() -> RelationKey {
    FILE.of_temporary(1)
}
