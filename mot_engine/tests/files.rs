//! Tables and indexes that are named by their files, beside those that their oids name.

mod common;

use common::{Fate, World};
use mot_engine::key::IndexDefinition;
use mot_engine::{Build, FileKey, RelationKey, Transaction, Xid};

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
