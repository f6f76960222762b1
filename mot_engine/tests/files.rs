//! Tables and indexes that are named by their files, beside those that their oids name.

mod common;

use common::{Fate, Row, World};
use mot_engine::key::IndexDefinition;
use mot_engine::log::{DefinitionsWriter, RowsWriter};
use mot_engine::recovery::{Replayer, finish};
use mot_engine::{
    Build, FileKey, IndexId, Lsn, Persistence, RelationKey, RowId, State, TableId, Transaction, Xid,
};

fn file(tablespace: u32, relation: u32) -> FileKey {
    FileKey {
        tablespace,
        relation,
    }
}

#[test]
fn one_number_names_a_table_in_each_tablespace_and_a_foreign_one() {
    let (_region, engine) = common::engine(16 << 20);
    let session = &engine.join().unwrap();
    let world = World::new();
    let keys = [
        RelationKey::of_earlier_build(1, 7),
        RelationKey::of_file(1, 0, 7),
        RelationKey::of_file(1, 1663, 7),
        RelationKey::of_file(2, 0, 7),
        RelationKey::of_earlier_build(2, 7),
    ];
    assert_eq!(
        keys.map(RelationKey::is_of_earlier_build),
        [true, false, false, false, true]
    );
    let tables = common::transact(session, &world, |work, _, xid| {
        keys.map(|key| work.create_table(session, key, xid).unwrap())
    });
    let clock = common::reader(&world);
    for (key, table) in keys.into_iter().zip(tables) {
        assert_eq!(session.find_table(key, &clock), Some(table));
        assert_eq!(table.key(), key);
    }
    assert_eq!(
        session.find_table(RelationKey::of_file(2, 1663, 7), &clock),
        None
    );
    common::transact(session, &world, |work, _, xid| {
        work.drop_table(session, tables[2], xid).unwrap();
    });
    assert_eq!(session.find_table(keys[2], &clock), None);
    assert_eq!(session.find_table(keys[1], &clock), Some(tables[1]));
}

/// No server writes such a table: what an earlier build logged is replayed, and goes with a drop.
#[test]
fn a_table_of_an_earlier_build_is_replayed_and_dropped() {
    let (_region, engine) = common::engine(16 << 20);
    engine.set_state(State::Replaying);
    let session = &engine.join().unwrap();
    let world = World::new();
    let key = RelationKey::of_earlier_build(1, 7);
    let me = world.begin();
    let mut definitions = DefinitionsWriter::new();
    definitions
        .create_table(TableId(1), key, Persistence::Logged)
        .unwrap();
    definitions
        .create_index(
            IndexId(1),
            TableId(1),
            &common::definition(50, true, &[(1, false)]),
        )
        .unwrap();
    let mut rows = RowsWriter::new();
    let row = |a| Row { a, b: 0, c: None };
    for a in 0..3 {
        rows.insert(TableId(1), RowId(a), &common::body(row(a as i32)))
            .unwrap();
    }
    let mut replayer = Replayer::new(1);
    for (lsn, record) in [(100, definitions.record()), (200, rows.record())] {
        replayer
            .apply(session, record, Lsn(lsn), Xid(me.top))
            .unwrap();
    }
    me.end(Fate::Committed);
    let clock = common::reader(&world);
    finish(session, &clock, 1).unwrap();
    engine.set_state(State::Ready);
    let table = session.find_table(key, &clock).unwrap();
    assert!(session.find_index(table, 50, &clock).is_some());
    assert_eq!(common::check(session, table, &clock).rows, 3);
    common::transact(session, &world, |work, _, xid| {
        work.drop_table(session, table, xid).unwrap();
    });
    assert_eq!(session.find_table(key, &clock), None);
}

/// REINDEX gives an index another file under the same oid; a change of types that leaves it alone
/// gives its file another oid.
#[test]
fn an_index_is_found_by_its_file_whatever_its_oid() {
    let (_region, engine) = common::engine(16 << 20);
    let session = &engine.join().unwrap();
    let world = World::new();
    let definition = |tablespace: u32, number: u32| IndexDefinition {
        file: file(tablespace, number),
        ..common::definition(50, false, &[(1, false)])
    };
    let table = common::transact(session, &world, |work, _, xid| {
        let key = RelationKey::of_file(1, 0, 7);
        work.create_table(session, key, xid).unwrap()
    });
    let indexes = common::transact(session, &world, |work, me, xid| {
        [definition(0, 60), definition(9, 60), definition(0, 61)].map(|definition| {
            let built = work.create_index(session, me, table, &definition, xid);
            let Ok(Build::Done(index)) = built else {
                panic!("{built:?}")
            };
            assert_eq!((index.relation_oid(), index.file()), (50, definition.file));
            index
        })
    });
    let clock = common::reader(&world);
    let find = |file| session.find_index_of_file(table, file, &clock);
    let all = [file(0, 60), file(9, 60), file(0, 61)];
    assert_eq!(all.map(find), indexes.map(Some));
    assert_eq!(find(file(9, 61)), None);
    // They have their columns in common.
    let decoded = indexes.map(|index| std::ptr::from_ref(session.definition(index).unwrap()));
    assert!(decoded.iter().all(|its| *its == decoded[0]));

    let me = world.begin();
    let mut work = Transaction::new();
    let xid = Xid(me.top);
    for (wanted, is_there) in [(file(9, 61), false), (file(9, 60), true)] {
        let dropped = work.drop_index_of_file(session, &me, table, wanted, xid);
        assert_eq!(dropped.unwrap(), is_there);
    }
    assert_eq!(session.find_index_of_file(table, file(9, 60), &me), None);
    assert_eq!(find(file(9, 60)), Some(indexes[1]));
    me.end(Fate::Aborted);
    work.abort(session);
    assert_eq!(all.map(find), indexes.map(Some));
    common::transact(session, &world, |work, me, xid| {
        let dropped = work.drop_index_of_file(session, me, table, file(0, 60), xid);
        assert!(dropped.unwrap());
    });
    assert_eq!(all.map(find), [None, Some(indexes[1]), Some(indexes[2])]);
}
