//! Rows looked up by many keys at once, and rows that changed their keys many times.

mod common;

use common::{Fate, Me, Row, World, body, row};
use mot_engine::key::{KeyBuffer, encode_row};
use mot_engine::{
    Build, CommandId, Direction, Engine, Entered, IndexRef, IndexScan, KeyRange, Newest, RowId,
    Session, Snapshot, TableRef, Transaction, Written, Xid,
};

struct Place {
    session: Session,
    world: World,
    table: TableRef,
    index: IndexRef,
    row_ids: Vec<RowId>,
}

impl Place {
    /// A table with a unique index on `a`, one on `b`, and rows `a` of 0, 2, 4 and so on.
    fn new(engine: Engine, rows: i32) -> Place {
        let session = engine.join().unwrap();
        let world = World::new();
        let me = world.begin();
        let mut work = Transaction::new();
        let xid = Xid(me.top);
        let table = work.create_table(&session, common::TABLE, xid).unwrap();
        let mut indexes = Vec::new();
        for (oid, unique, column) in [(101, true, 1), (102, false, 2)] {
            let definition = common::definition(oid, unique, &[(column, false)]);
            match work.create_index(&session, &me, table, &definition, xid) {
                Ok(Build::Done(index)) => indexes.push(index),
                other => panic!("{other:?}"),
            }
        }
        let mut place = Place {
            session,
            world,
            table,
            index: indexes[0],
            row_ids: Vec::new(),
        };
        for a in 0..rows {
            place.insert(&mut work, &me, a * 2);
        }
        me.end(Fate::Committed);
        work.commit(&place.session);
        place
    }

    fn insert(&mut self, work: &mut Transaction, me: &Me, a: i32) {
        let (session, table) = (&self.session, self.table);
        let tuple = body(Row { a, b: a, c: None });
        let (row_id, version) = work
            .insert(session, table, &tuple, Xid(me.top), CommandId(1))
            .unwrap();
        let entered = work.enter(session, me, table, row_id, version).unwrap();
        assert_eq!(entered, Entered::Done);
        self.row_ids.push(row_id);
    }

    /// A transaction of its own gives a row other keys.
    fn set(&self, row_id: RowId, a: i32, b: i32) {
        let me = self.world.begin();
        let Newest::Live(seen) = self.session.newest(&me, self.table, row_id) else {
            panic!("the row is there");
        };
        let mut work = Transaction::new();
        let (session, new) = (&self.session, body(Row { a, b, c: None }));
        let (xid, cid) = (Xid(me.top), CommandId(1));
        let written = work.update(session, &me, self.table, row_id, seen, &new, xid, cid);
        let Ok(Written::Done(version)) = written else {
            panic!("{written:?}")
        };
        let entered = work.enter(session, &me, self.table, row_id, version);
        assert_eq!(entered.unwrap(), Entered::Done);
        me.end(Fate::Committed);
        work.commit(session);
    }

    fn key(&self, a: i32) -> Vec<u8> {
        let definition = self.session.definition(self.index).unwrap();
        let mut key = KeyBuffer::new();
        encode_row(definition, &body(Row { a, b: 0, c: None }), &mut key).unwrap();
        key.as_slice().to_vec()
    }

    /// What a look-up of each key finds, all together.
    fn together(&self, keys: &[i32], snapshot: &impl Snapshot) -> Vec<i32> {
        let keys: Vec<Vec<u8>> = keys.iter().map(|a| self.key(*a)).collect();
        let mut scan = IndexScan::new();
        scan.start_points(self.table, self.index, keys.iter().map(|key| &key[..]))
            .unwrap();
        std::iter::from_fn(|| scan.next(&self.session, snapshot).unwrap())
            .map(|(_, version)| row(version.body()).a)
            .collect()
    }

    /// The same, one by one.
    fn alone(&self, keys: &[i32], snapshot: &impl Snapshot) -> Vec<i32> {
        let mut scan = IndexScan::new();
        let mut found = Vec::new();
        for a in keys {
            let mut range = KeyRange::new();
            range.set_point(&self.key(*a)).unwrap();
            scan.start(self.table, self.index, &range, Direction::Forward);
            while let Some((_, version)) = scan.next(&self.session, snapshot).unwrap() {
                found.push(row(version.body()).a);
            }
        }
        found
    }
}

#[test]
fn keys_looked_up_together_find_what_they_find_alone() {
    const ROWS: i32 = 1000;
    let (_region, engine) = common::engine(64 << 20);
    let mut place = Place::new(engine, ROWS);
    let before = common::reader(&place.world).snapshot(0);
    // Keys that move to rows beside them, come back, or go: entries whose rows have other keys for
    // one of the snapshots, and keys of several rows.
    for at in (0..ROWS).step_by(3) {
        let row_id = place.row_ids[at as usize];
        place.set(row_id, at * 2 + 1, 0);
        if at % 2 == 0 {
            place.set(row_id, at * 2, 0);
        } else {
            let me = place.world.begin();
            let mut work = Transaction::new();
            place.insert(&mut work, &me, at * 2);
            me.end(Fate::Committed);
            work.commit(&place.session);
        }
    }
    let after = common::reader(&place.world).snapshot(0);
    let backwards: Vec<i32> = (-5..ROWS * 2 + 5).rev().collect();
    let twice: Vec<i32> = (0..300).map(|at| at * 7919 % 100).collect();
    for keys in [&backwards[..], &twice[..], &[4][..], &[][..]] {
        for snapshot in [&before, &after] {
            assert_eq!(place.together(keys, snapshot), place.alone(keys, snapshot));
        }
    }
    let even: Vec<i32> = (0..ROWS).map(|at| at * 2).collect();
    assert_eq!(place.together(&even, &before), even);
    assert_eq!(place.together(&even, &after), even);
    drop((before, after));
    let clock = common::reader(&place.world);
    common::check(&place.session, place.table, &clock);
}

/// Versions of one row, each with keys of its own, are taken out in as many steps as there are:
/// with the square of it this would not end.
#[test]
fn a_row_that_changed_its_keys_very_often_is_swept() {
    const CHANGES: i32 = 100_000;
    let (_region, engine) = common::engine(128 << 20);
    let place = Place::new(engine, 2);
    let seen = common::reader(&place.world).snapshot(0);
    for change in 1..=CHANGES {
        place.set(place.row_ids[0], change * 2 + 1, change);
    }
    let clock = common::reader(&place.world);
    let sweep = || {
        let session = &place.session;
        session.engine().raise_horizon(place.world.horizon());
        session
            .sweep(&clock, place.table, true, || {})
            .versions_removed
    };
    assert_eq!(sweep(), 0, "an old snapshot sees the first state");
    assert_eq!(place.together(&[0, 2], &seen), [0, 2]);
    drop(seen);
    assert_eq!(sweep(), CHANGES as u64);
    let report = common::check(&place.session, place.table, &clock);
    assert_eq!(report.versions, 2);
    let now = common::reader(&place.world).snapshot(0);
    let last = CHANGES * 2 + 1;
    assert_eq!(place.together(&[0, 2, 3, last], &now), [2, last]);
}
