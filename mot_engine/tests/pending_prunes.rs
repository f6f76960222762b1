//! Commits take out what the session's earlier ones left behind, and nothing else.

mod common;

use common::{Row, World, body};
use mot_engine::transaction::free_pending;
use mot_engine::{CommandId, Entered, RelationKey, RowId, Session, TableRef, Transaction, Written};

const ROWS: i32 = 100;

struct Place {
    session: Session,
    world: World,
}

impl Place {
    fn new(session: Session) -> Place {
        Place {
            session,
            world: World::new(),
        }
    }

    fn table(&self) -> (TableRef, Vec<RowId>) {
        let indexes = [
            common::definition(101, true, &[(1, false)]),
            common::definition(102, false, &[(2, false)]),
        ];
        let table = common::table(&self.session, &self.world, &indexes);
        let row_ids = common::transact(&self.session, &self.world, |work, me, xid| {
            let insert = |a| {
                let tuple = body(Row { a, b: 0, c: None });
                let (row_id, version) = work
                    .insert(&self.session, table, &tuple, xid, CommandId(1))
                    .unwrap();
                let entered = work.enter(&self.session, me, table, row_id, version);
                assert_eq!(entered.unwrap(), Entered::Done);
                row_id
            };
            (0..ROWS).map(insert).collect()
        });
        (table, row_ids)
    }

    /// A transaction of its own gives rows another `b`, or with `None` deletes them.
    fn set(&self, table: TableRef, row_ids: &[RowId], b: Option<i32>) {
        common::transact(&self.session, &self.world, |work, me, xid| {
            row_ids
                .iter()
                .for_each(|row_id| self.set_one(work, me, xid, (table, *row_id), b));
        });
    }

    fn set_one(
        &self,
        work: &mut Transaction,
        me: &common::Me,
        xid: mot_engine::Xid,
        (table, row_id): (TableRef, RowId),
        b: Option<i32>,
    ) {
        let session = &self.session;
        let seen = session.visible(table, row_id, &me.snapshot(1)).unwrap();
        let cid = CommandId(1);
        let written = match b {
            Some(b) => {
                let a = common::row(seen.body()).a;
                let new = body(Row { a, b, c: None });
                work.update(session, me, table, row_id, seen, &new, xid, cid)
            }
            None => work.delete(session, me, table, row_id, seen, xid, cid),
        };
        let Ok(Written::Done(version)) = written else {
            panic!("{written:?}")
        };
        if b.is_some() {
            let entered = work.enter(session, me, table, row_id, version);
            assert_eq!(entered.unwrap(), Entered::Done);
        }
    }

    fn raise_horizon(&self) {
        self.session.engine().raise_horizon(self.world.horizon());
    }

    fn versions(&self, table: TableRef) -> i32 {
        let reader = common::reader(&self.world);
        common::check(&self.session, table, &reader).versions as i32
    }
}

#[test]
fn commits_take_out_what_earlier_ones_left_and_nobody_sees() {
    let (_region, engine) = common::engine(32 << 20);
    let place = Place::new(engine.join().unwrap());
    let (table, row_ids) = place.table();
    let some = &row_ids[..20];
    let one = &row_ids[50..51];

    place.set(table, some, Some(1));
    assert_eq!(place.versions(table), ROWS + 20);
    place.set(table, one, Some(1));
    assert_eq!(
        place.versions(table),
        ROWS + 21,
        "the horizon has not passed"
    );
    place.raise_horizon();
    place.set(table, one, Some(2));
    assert_eq!(place.versions(table), ROWS + 1);

    // As long as a snapshot sees what was replaced, it stays.
    place.raise_horizon();
    let old = common::reader(&place.world).snapshot(0);
    place.set(table, some, Some(3));
    place.raise_horizon();
    place.set(table, one, Some(4));
    place.raise_horizon();
    place.set(table, one, Some(5));
    for row_id in some {
        let seen = place.session.visible(table, *row_id, &old).unwrap();
        assert_eq!(common::row(seen.body()).b, 1);
    }
    assert!(place.versions(table) >= ROWS + 20);
    drop(old);
    place.raise_horizon();
    place.set(table, one, Some(6));
    assert_eq!(place.versions(table), ROWS + 1);

    // Rows that are gone go with their entries and row ids, though more slowly where there are
    // many.
    place.set(table, &row_ids[..40], None);
    place.raise_horizon();
    place.set(table, one, Some(7));
    assert!(place.versions(table) > ROWS - 40 + 1);
    place.raise_horizon();
    place.set(table, one, Some(8));
    assert_eq!(place.versions(table), ROWS - 40 + 1);
    let before = table.row_ids_end();
    place.table_grows(table, 40);
    assert_eq!(table.row_ids_end(), before, "the row ids are used again");

    // What a commit took out the sweeper need not.
    place.raise_horizon();
    let clock = common::reader(&place.world);
    let swept = place.session.sweep(&clock, table, false, || {});
    assert_eq!(swept.versions_removed, 1);
    assert_eq!(swept.groups_waiting, 0);
}

/// Prunes of a table that is dropped in the transaction that is about to make them, or was
/// before, or whose place in memory another has.
#[test]
fn prunes_of_dropped_tables_are_forgotten() {
    let (_region, engine) = common::engine(32 << 20);
    let place = Place::new(engine.join().unwrap());
    let session = &place.session;
    for round in 0..20 {
        let (table, row_ids) = place.table();
        place.set(table, &row_ids, Some(1));
        place.raise_horizon();
        common::transact(session, &place.world, |work, me, xid| {
            if round % 2 == 0 {
                place.set_one(work, me, xid, (table, row_ids[0]), Some(2));
            }
            work.drop_table(session, table, xid).unwrap();
        });
        assert!(free_pending(session, || {}) > 0);
    }
}

/// More rows than are remembered, in more tables than are remembered.
#[test]
fn what_is_forgotten_is_swept() {
    const TABLES: u32 = 20;
    let (_region, engine) = common::engine(64 << 20);
    let place = Place::new(engine.join().unwrap());
    let (session, world) = (&place.session, &place.world);
    let tables: Vec<(TableRef, Vec<RowId>)> = common::transact(session, world, |work, _, xid| {
        let table = |relation| {
            let key = RelationKey::of_file(1, 0, 1000 + relation);
            let table = work.create_table(session, key, xid).unwrap();
            let insert = |a| {
                let tuple = body(Row { a, b: 0, c: None });
                let made = work.insert(session, table, &tuple, xid, CommandId(1));
                made.unwrap().0
            };
            (table, (0..ROWS).map(insert).collect())
        };
        (0..TABLES).map(table).collect()
    });
    for b in 1..10 {
        common::transact(session, world, |work, me, xid| {
            for (table, row_ids) in &tables {
                let change =
                    |row_id: &RowId| place.set_one(work, me, xid, (*table, *row_id), Some(b));
                row_ids.iter().for_each(change);
            }
        });
        place.raise_horizon();
    }
    for (table, _) in &tables {
        common::sweep(session, world, *table);
        assert_eq!(place.versions(*table), ROWS);
    }
}

impl Place {
    fn table_grows(&self, table: TableRef, rows: i32) {
        common::transact(&self.session, &self.world, |work, me, xid| {
            for a in 0..rows {
                let tuple = body(Row { a, b: 0, c: None });
                let (row_id, version) = work
                    .insert(&self.session, table, &tuple, xid, CommandId(1))
                    .unwrap();
                let entered = work.enter(&self.session, me, table, row_id, version);
                assert_eq!(entered.unwrap(), Entered::Done);
            }
        });
    }
}

#[test]
fn what_commits_leave_behind_is_counted() {
    let (_region, engine) = common::engine(32 << 20);
    let place = Place::new(engine.join().unwrap());
    let (table, row_ids) = place.table();
    let left = || place.session.rows_left_behind();
    assert_eq!(left(), 0, "inserts leave nothing");
    place.set(table, &row_ids[..20], Some(1));
    assert_eq!(left(), 20);
    place.set(table, &row_ids[10..40], None);
    assert_eq!(left(), 50);
    // Taken out by now: it was left all the same.
    place.raise_horizon();
    place.set(table, &row_ids[..1], Some(2));
    assert_eq!(left(), 51);
}
