//! Rows that are taken back while row locks lie between or above their states: what is left of them
//! is nothing, and their row ids are used again.

mod common;

use common::{Fate, Me, Row, World, body, check, reader};
use mot_engine::{
    CommandId, Entered, LockStrength, Locked, RowId, Session, TableRef, Transaction, VersionRef,
    Written, Xid,
};

/// So many rows come and go one after the other, in so few row ids.
const TIMES: i32 = 500;
const ROW_IDS: u64 = 200;

struct Place {
    session: Session,
    world: World,
    table: TableRef,
    _region: mot_engine::memory::Region,
}

impl Place {
    fn new() -> Place {
        let (region, engine) = common::engine(64 << 20);
        let session = engine.join().unwrap();
        let world = World::new();
        let indexes = [
            common::definition(101, true, &[(1, false)]),
            common::definition(102, false, &[(2, false)]),
        ];
        let table = common::table(&session, &world, &indexes);
        Place {
            session,
            world,
            table,
            _region: region,
        }
    }

    fn insert(&self, me: &Me, work: &mut Transaction, xid: Xid, a: i32) -> (RowId, VersionRef) {
        let new = body(Row { a, b: 0, c: None });
        let made = work.insert(&self.session, self.table, &new, xid, CommandId(1));
        let (row_id, version) = made.unwrap();
        self.enter(me, work, row_id, version);
        (row_id, version)
    }

    fn enter(&self, me: &Me, work: &mut Transaction, row_id: RowId, version: VersionRef) {
        let entered = work.enter(&self.session, me, self.table, row_id, version);
        assert_eq!(entered.unwrap(), Entered::Done);
    }

    fn lock(&self, me: &Me, work: &mut Transaction, xid: Xid, row_id: RowId, seen: VersionRef) {
        let strength = LockStrength::Update;
        let locked = work.lock(&self.session, me, self.table, row_id, seen, strength, xid);
        assert_eq!(locked.unwrap(), Locked::Done);
    }

    fn update(
        &self,
        me: &Me,
        work: &mut Transaction,
        xid: Xid,
        row_id: RowId,
        seen: VersionRef,
        a: i32,
    ) {
        let new = body(Row { a, b: a, c: None });
        let (session, table, cid) = (&self.session, self.table, CommandId(3));
        let written = work.update(session, me, table, row_id, seen, &new, xid, cid);
        let Ok(Written::Done(version)) = written else {
            panic!("{written:?}")
        };
        self.enter(me, work, row_id, version);
    }

    /// Nothing is there, and row ids were used again.
    fn is_empty(&self) {
        common::sweep(&self.session, &self.world, self.table);
        let report = check(&self.session, self.table, &reader(&self.world));
        assert_eq!((report.versions, report.entries), (0, 0));
        let used = self.table.row_ids_end().0;
        assert!(used <= ROW_IDS, "{used} row ids for one row at a time");
    }
}

#[test]
fn a_row_made_locked_and_changed_gives_its_row_id_back() {
    let place = Place::new();
    for _ in 0..TIMES {
        let me = place.world.begin();
        let xid = Xid(me.top);
        let mut work = Transaction::new();
        let (row_id, seen) = place.insert(&me, &mut work, xid, 1);
        place.lock(&me, &mut work, xid, row_id, seen);
        place.update(&me, &mut work, xid, row_id, seen, 2);
        me.end(Fate::Aborted);
        work.abort(&place.session);
    }
    place.is_empty();
}

#[test]
fn a_row_of_a_savepoint_gives_its_row_id_back() {
    let place = Place::new();
    let me = place.world.begin();
    let mut work = Transaction::new();
    for _ in 0..TIMES {
        let xid = Xid(me.savepoint());
        work.set_level(2).unwrap();
        let (row_id, seen) = place.insert(&me, &mut work, xid, 1);
        place.lock(&me, &mut work, xid, row_id, seen);
        place.update(&me, &mut work, xid, row_id, seen, 2);
        me.abort_one(xid.0);
        work.savepoint_abort(&place.session, 2);
        work.set_level(1).unwrap();
    }
    me.end(Fate::Committed);
    work.commit(&place.session);
    place.is_empty();
}

/// The states go at once, but the lock only when nobody can have seen its transaction run.
#[test]
fn a_prepared_row_that_is_taken_back_gives_its_row_id_back() {
    let place = Place::new();
    for _ in 0..TIMES {
        let me = place.world.begin();
        let xid = Xid(me.top);
        let mut work = Transaction::new();
        let (row_id, seen) = place.insert(&me, &mut work, xid, 1);
        place.lock(&me, &mut work, xid, row_id, seen);
        work.log(&place.session, &mut common::Positions::new())
            .unwrap();
        work.give_up(&place.session);
        let old = reader(&place.world).snapshot(0);
        me.end(Fate::Aborted);
        common::sweep(&place.session, &place.world, place.table);
        drop(old);
        common::sweep(&place.session, &place.world, place.table);
    }
    place.is_empty();
}
