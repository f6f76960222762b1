//! Looks that see unfinished work, and entries that are made index by index.

mod common;

use common::{Fate, Me, Row, TABLE, World, body, reader, row};
use mot_engine::key::IndexDefinition;
use mot_engine::{
    CommandId, Direction, Entered, IndexRef, IndexScan, KeyRange, LockStrength, Locked, Newest,
    RowId, Session, TableRef, Transaction, VersionRef, Written, Xid,
};

const CID: CommandId = CommandId(0);

struct Place<'a> {
    session: &'a Session,
    world: World,
    table: TableRef,
    /// Unique on a, plain on b, unique on c.
    definitions: [IndexDefinition; 3],
    indexes: [IndexRef; 3],
}

fn a_row(a: i32, b: i32) -> Row {
    Row { a, b, c: Some(a) }
}

impl Place<'_> {
    fn new(session: &Session) -> Place<'_> {
        let world = World::new();
        let definitions = [
            common::definition(101, true, &[(1, false)]),
            common::definition(102, false, &[(2, false)]),
            common::definition(103, true, &[(3, false)]),
        ];
        let table = common::transact(session, &world, |work, me, xid| {
            let table = work.create_table(session, TABLE, xid).unwrap();
            for definition in &definitions {
                let built = work.create_index(session, me, table, definition, xid);
                assert!(matches!(built, Ok(mot_engine::Build::Done(_))));
            }
            table
        });
        let clock = reader(&world);
        let indexes = [101, 102, 103].map(|oid| session.find_index(table, oid, &clock).unwrap());
        Place {
            session,
            world,
            table,
            definitions,
            indexes,
        }
    }

    fn insert(&self, me: &Me, work: &mut Transaction, row: Row) -> RowId {
        let (session, table) = (self.session, self.table);
        let xid = Xid(me.top);
        let (row_id, version) = work.insert(session, table, &body(row), xid, CID).unwrap();
        let entered = work.enter(session, me, table, row_id, version).unwrap();
        assert_eq!(entered, Entered::Done);
        row_id
    }

    /// Updates a row, or deletes it, by a (sub)transaction.
    fn change(&self, me: &Me, xid: u64, work: &mut Transaction, row_id: RowId, to: Option<Row>) {
        let (session, table, xid) = (self.session, self.table, Xid(xid));
        let Newest::Live(seen) = session.newest(me, table, row_id) else {
            panic!("the row is gone")
        };
        let written = match to {
            Some(to) => work.update(session, me, table, row_id, seen, &body(to), xid, CID),
            None => work.delete(session, me, table, row_id, seen, xid, CID),
        };
        let Ok(Written::Done(version)) = written else {
            panic!("{written:?}")
        };
        if to.is_some() {
            let entered = work.enter(session, me, table, row_id, version).unwrap();
            assert_eq!(entered, Entered::Done);
        }
    }

    /// What a scan of one key of an index tells: rows, and whom to wait for.
    fn look(&self, me: &Me, index: usize, like: Row) -> Vec<(RowId, Row, Option<u64>)> {
        let definition = &self.definitions[index];
        let key = common::key(definition, like);
        let mut range = KeyRange::new();
        match definition.unique {
            true => range.set_point(&key).unwrap(),
            false => range.set_prefix(&key).unwrap(),
        }
        self.scan(me, index, &range)
    }

    fn scan(&self, me: &Me, index: usize, range: &KeyRange) -> Vec<(RowId, Row, Option<u64>)> {
        let mut scan = IndexScan::new();
        scan.start(self.table, self.indexes[index], range, Direction::Forward);
        let found = |row_id: RowId, version: VersionRef, xid: Option<Xid>| {
            assert!(self.session.memory().is_pinned());
            (row_id, row(version.body()), xid.map(|xid| xid.0))
        };
        let next = || {
            scan.next_unfinished_or_current(self.session, me, found)
                .unwrap()
        };
        std::iter::from_fn(next).collect()
    }

    /// All states of a row by the value of `a`, and whom to wait for.
    fn states(&self, me: &Me, row_id: RowId) -> Vec<(i32, Option<u64>)> {
        let mut states = Vec::new();
        let told = |states: &[(VersionRef, Option<Xid>)]| {
            assert!(self.session.memory().is_pinned());
            let told = states.iter();
            told.map(|(version, xid)| (row(version.body()).a, xid.map(|xid| xid.0)))
                .collect()
        };
        self.session
            .unfinished_and_current(me, (self.table, row_id), &mut states, told)
            .unwrap()
    }

    fn check(&self) {
        common::sweep(self.session, &self.world, self.table);
        common::check(self.session, self.table, &reader(&self.world));
    }
}

fn place_with(test: impl FnOnce(&Place<'_>)) {
    let (_region, engine) = common::engine(32 << 20);
    let session = engine.join().unwrap();
    test(&Place::new(&session));
}

#[test]
fn a_row_that_is_being_inserted_is_told_of_with_its_maker() {
    place_with(|place| {
        let me = place.world.begin();
        let mut work = Transaction::new();
        let new = a_row(1, 5);
        let row_id = place.insert(&me, &mut work, new);
        let other = reader(&place.world);
        for index in 0..3 {
            let told = place.look(&other, index, new);
            assert_eq!(told, [(row_id, new, Some(me.top))], "index {index}");
            assert_eq!(place.look(&me, index, new), [(row_id, new, None)]);
        }
        me.end(Fate::Committed);
        assert_eq!(place.look(&other, 0, new), [(row_id, new, None)]);
        work.commit(place.session);
        assert_eq!(place.look(&other, 1, new), [(row_id, new, None)]);
        assert_eq!(place.look(&other, 1, a_row(1, 6)), []);
        place.check();
    });
}

/// The key that only the replaced state has may come back, and the one that only the new state has
/// may come to stay.
#[test]
fn both_keys_of_an_unfinished_update_are_told_of_until_it_ends() {
    for fate in [Fate::Committed, Fate::Aborted] {
        place_with(|place| {
            let (old, new) = (a_row(1, 5), a_row(2, 6));
            let row_id = common::transact(place.session, &place.world, |work, me, _| {
                place.insert(me, work, old)
            });
            let me = place.world.begin();
            let mut work = Transaction::new();
            place.change(&me, me.top, &mut work, row_id, Some(new));
            let other = reader(&place.world);
            for index in 0..3 {
                let told = [old, new].map(|row| place.look(&other, index, row));
                assert_eq!(told[0], [(row_id, old, Some(me.top))]);
                assert_eq!(told[1], [(row_id, new, Some(me.top))]);
                let own = [old, new].map(|row| place.look(&me, index, row));
                assert_eq!(own, [vec![], vec![(row_id, new, None)]]);
                assert_eq!(place.scan(&other, index, &KeyRange::new()).len(), 2);
            }
            me.end(fate);
            // The engine hears of it later.
            for heard in [false, true] {
                match fate {
                    _ if !heard => {}
                    Fate::Committed => work.commit(place.session),
                    _ => work.abort(place.session),
                }
                let (stays, goes) = match fate {
                    Fate::Committed => (new, old),
                    _ => (old, new),
                };
                for index in 0..3 {
                    assert_eq!(place.look(&other, index, stays), [(row_id, stays, None)]);
                    assert_eq!(place.look(&other, index, goes), []);
                }
            }
            place.check();
        });
    }
}

#[test]
fn a_row_that_is_being_deleted_is_told_of_and_a_locked_one_waits_for_nobody() {
    place_with(|place| {
        let old = a_row(1, 5);
        let row_id = common::transact(place.session, &place.world, |work, me, _| {
            place.insert(me, work, old)
        });
        let other = reader(&place.world);
        let me = place.world.begin();
        let mut work = Transaction::new();
        let (session, table, xid) = (place.session, place.table, Xid(me.top));
        let Newest::Live(seen) = session.newest(&me, table, row_id) else {
            panic!("the row is gone")
        };
        let strength = LockStrength::Update;
        let locked = work.lock(session, &me, table, row_id, seen, strength, xid);
        assert_eq!(locked.unwrap(), Locked::Done);
        assert_eq!(place.look(&other, 0, old), [(row_id, old, None)]);
        let inner = me.savepoint();
        work.set_level(2).unwrap();
        place.change(&me, inner, &mut work, row_id, None);
        assert_eq!(place.look(&other, 0, old), [(row_id, old, Some(inner))]);
        assert_eq!(place.look(&me, 0, old), []);
        me.abort_one(inner);
        work.savepoint_abort(session, 2);
        assert_eq!(place.look(&other, 0, old), [(row_id, old, None)]);
        place.change(&me, me.top, &mut work, row_id, None);
        me.end(Fate::Committed);
        work.commit(session);
        assert_eq!(place.look(&other, 0, old), []);
        place.check();
    });
}

/// Of what is unfinished, its maker; of what is replaced, who has replaced it.
#[test]
fn each_state_of_a_row_is_told_of_with_the_transaction_to_wait_for() {
    place_with(|place| {
        let row_id = common::transact(place.session, &place.world, |work, me, _| {
            place.insert(me, work, a_row(1, 5))
        });
        let me = place.world.begin();
        let mut work = Transaction::new();
        place.change(&me, me.top, &mut work, row_id, Some(a_row(2, 6)));
        let inner = me.savepoint();
        place.change(&me, inner, &mut work, row_id, Some(a_row(3, 7)));
        let other = reader(&place.world);
        let told = [(3, Some(inner)), (2, Some(me.top)), (1, Some(inner))];
        assert_eq!(place.states(&other, row_id), told);
        for (a, xid) in told {
            let like = a_row(a, a + 4);
            assert_eq!(place.look(&other, 0, like), [(row_id, like, xid)]);
        }
        assert_eq!(place.look(&other, 0, a_row(4, 8)), []);
        assert_eq!(place.states(&me, row_id), [(3, None)]);
        assert_eq!(
            place.look(&me, 0, a_row(3, 7)),
            [(row_id, a_row(3, 7), None)]
        );
        for (a, b) in [(2, 6), (1, 5)] {
            assert_eq!(place.look(&me, 0, a_row(a, b)), []);
        }
        me.end(Fate::Aborted);
        work.abort(place.session);
        assert_eq!(place.states(&other, row_id), [(1, None)]);
        place.check();
    });
}

/// A scan of all rows gets what is replaced together with what replaces it.
#[test]
fn all_states_of_a_row_come_together() {
    place_with(|place| {
        let row_id = common::transact(place.session, &place.world, |work, me, _| {
            place.insert(me, work, a_row(1, 5))
        });
        let ask = |me: &Me| place.states(me, row_id);
        let other = reader(&place.world);
        assert_eq!(ask(&other), [(1, None)]);
        let me = place.world.begin();
        let mut work = Transaction::new();
        place.change(&me, me.top, &mut work, row_id, Some(a_row(2, 6)));
        let inner = me.savepoint();
        work.set_level(2).unwrap();
        place.change(&me, inner, &mut work, row_id, Some(a_row(3, 7)));
        let top = me.top;
        assert_eq!(
            ask(&other),
            [(3, Some(inner)), (2, Some(top)), (1, Some(inner))]
        );
        assert_eq!(ask(&me), [(3, None)]);
        me.abort_one(inner);
        work.savepoint_abort(place.session, 2);
        assert_eq!(ask(&other), [(2, Some(top)), (1, Some(top))]);
        place.change(&me, me.top, &mut work, row_id, None);
        assert_eq!(ask(&other).last(), Some(&(1, Some(top))));
        assert_eq!(ask(&me), []);
        me.end(Fate::Committed);
        work.commit(place.session);
        assert_eq!(ask(&other), []);
        place.check();
    });
}

/// More entries than are read at a time, most of them of rows that are gone or going.
#[test]
fn a_long_scan_passes_over_what_is_gone() {
    place_with(|place| {
        let row_ids = common::transact(place.session, &place.world, |work, me, _| {
            let rows = 0..3000;
            rows.map(|a| place.insert(me, work, a_row(a, 5)))
                .collect::<Vec<_>>()
        });
        let snapshot = reader(&place.world).snapshot(0);
        common::transact(place.session, &place.world, |work, me, _| {
            for row_id in row_ids.iter().filter(|row_id| row_id.0 % 100 != 7) {
                place.change(me, me.top, work, *row_id, None);
            }
        });
        let other = reader(&place.world);
        let found = place.look(&other, 1, a_row(0, 5));
        assert_eq!(found.len(), 30);
        assert!(
            found
                .iter()
                .all(|(row_id, _, xid)| row_id.0 % 100 == 7 && xid.is_none())
        );
        drop(snapshot);
        place.check();
    });
}

#[test]
fn entries_made_one_by_one_are_those_made_together() {
    place_with(|place| {
        let (session, table) = (place.session, place.table);
        let me = place.world.begin();
        let mut work = Transaction::new();
        let xid = Xid(me.top);
        let new = a_row(1, 5);
        let (row_id, version) = work.insert(session, table, &body(new), xid, CID).unwrap();
        for index in place.indexes {
            // Twice, as after a wait.
            for _ in 0..2 {
                let entered = work.enter_index(session, &me, table, row_id, version, index);
                assert_eq!(entered.unwrap(), Entered::Done);
            }
        }
        me.end(Fate::Committed);
        work.commit(session);
        place.check();
        // The second one meets the first in the unique indexes alone.
        let me = place.world.begin();
        let xid = Xid(me.top);
        let (row_id, version) = work.insert(session, table, &body(new), xid, CID).unwrap();
        let [a, b, c] = place.indexes;
        let mut enter = |index| {
            work.enter_index(session, &me, table, row_id, version, index)
                .unwrap()
        };
        assert_eq!(enter(a), Entered::Duplicate(a));
        assert_eq!(enter(b), Entered::Done);
        assert_eq!(enter(c), Entered::Duplicate(c));
        assert!(work.retract_insert(session, table, row_id, version));
        assert!(work.is_empty());
        me.end(Fate::Committed);
        work.commit(session);
        assert_eq!(common::check(session, table, &reader(&place.world)).rows, 1);
    });
}

/// However many entries a row has by then, none is left when it is taken back, and nothing else of
/// its transaction goes.
#[test]
fn a_row_taken_back_leaves_no_entries() {
    for made in 0..=3 {
        place_with(|place| {
            let (session, table) = (place.session, place.table);
            let me = place.world.begin();
            let mut work = Transaction::new();
            let xid = Xid(me.top);
            let kept = place.insert(&me, &mut work, a_row(8, 8));
            let new = a_row(1, 5);
            let (row_id, version) = work.insert(session, table, &body(new), xid, CID).unwrap();
            for index in &place.indexes[..made] {
                let entered = work.enter_index(session, &me, table, row_id, version, *index);
                assert_eq!(entered.unwrap(), Entered::Done);
            }
            assert!(work.retract_insert(session, table, row_id, version));
            assert_eq!(session.newest(&me, table, row_id), Newest::None);
            // It was the last one, once.
            assert!(!work.retract_insert(session, table, row_id, version));
            let again = place.insert(&me, &mut work, new);
            let Newest::Live(newest) = session.newest(&me, table, again) else {
                panic!("the row is gone")
            };
            place.change(&me, me.top, &mut work, kept, Some(a_row(9, 9)));
            assert!(!work.retract_insert(session, table, again, newest));
            me.end(Fate::Committed);
            work.commit(session);
            place.check();
            let report = common::check(session, table, &reader(&place.world));
            assert_eq!((report.rows, report.entries), (2, 6));
        });
    }
}
