//! A table's rows in another storage: who sees what there, and what of it survives in the log, in
//! checkpoints and after rollbacks.

mod common;

use common::{Fate, Me, Row, Snap, Wal, World, body, reader, row};
use mot_engine::checkpoint::{CheckpointContext, CheckpointProgress, Pace, read_manifest, write};
use mot_engine::disk::DirectoryDisk;
use mot_engine::recovery::{Replayer, finish, load};
use mot_engine::transaction::{TableCopy, Which};
use mot_engine::{
    Build, CommandId, Newest, RelationKey, RowId, RowScan, Session, State, TableRef, Transaction,
    VersionRef, Written, Xid,
};
use std::sync::atomic::Ordering;

const OLD: RelationKey = RelationKey::of_file(1, 0, 100);
const NEW: RelationKey = RelationKey::of_file(1, 0, 200);

fn a_row(a: i32, b: i32) -> Row {
    Row { a, b, c: Some(7) }
}

/// One session's calls on a table.
struct Place<'a> {
    session: &'a Session,
    world: World,
    table: TableRef,
}

impl<'a> Place<'a> {
    fn new(session: &'a Session) -> Place<'a> {
        let world = World::new();
        let table = common::transact(session, &world, |work, _, xid| {
            work.create_table(session, OLD, xid).unwrap()
        });
        Place {
            session,
            world,
            table,
        }
    }

    fn insert(&self, work: &mut Transaction, xid: Xid, row: Row) -> RowId {
        let new = body(row);
        let inserted = work.insert(self.session, self.table, &new, xid, CommandId(0));
        inserted.unwrap().0
    }

    fn newest(&self, table: TableRef, me: &Me, row_id: RowId) -> VersionRef {
        match self.session.newest(me, table, row_id) {
            Newest::Live(version) => version,
            other => panic!("{other:?}"),
        }
    }

    fn update(&self, work: &mut Transaction, me: &Me, row_id: RowId, row: Row) {
        self.update_in(self.table, work, me, row_id, row);
    }

    fn update_in(&self, table: TableRef, work: &mut Transaction, me: &Me, row_id: RowId, row: Row) {
        let seen = self.newest(table, me, row_id);
        let (xid, cid) = (Xid(me.top), CommandId(0));
        let written = work.update(self.session, me, table, row_id, seen, &body(row), xid, cid);
        assert!(matches!(written, Ok(Written::Done(_))));
    }

    fn delete(&self, work: &mut Transaction, me: &Me, row_id: RowId) {
        let seen = self.newest(self.table, me, row_id);
        let (xid, cid) = (Xid(me.top), CommandId(0));
        let written = work.delete(self.session, me, self.table, row_id, seen, xid, cid);
        assert!(matches!(written, Ok(Written::Done(_))));
    }

    fn committed<T>(&self, action: impl FnOnce(&mut Transaction, &Me) -> T) -> T {
        common::transact(self.session, &self.world, |work, me, _| action(work, me))
    }

    /// Copies all rows into a new storage, with an index on column a.
    fn copy(&self, work: &mut Transaction, me: &Me, xid: Xid) -> TableRef {
        let session = self.session;
        session.engine().raise_horizon(self.world.horizon());
        let to = work.create_table(session, NEW, xid).unwrap();
        let mut copy = TableCopy::begin(session, me, self.table, to, xid);
        for row_id in 0..self.table.row_ids_end().0 {
            copy.row(work, RowId(row_id), Which::All, None).unwrap();
        }
        let definition = common::definition(201, true, &[(1, false)]);
        let built = work.create_index(session, me, to, &definition, xid);
        assert!(matches!(built, Ok(Build::Done(_))));
        work.drop_table(session, self.table, xid).unwrap();
        to
    }
}

/// What a snapshot sees, ordered.
fn seen(session: &Session, table: TableRef, snapshot: &Snap) -> Vec<(i32, i32)> {
    let mut scan = RowScan::new(table);
    let mut rows: Vec<_> = std::iter::from_fn(|| scan.next(session, snapshot))
        .map(|(_, version)| row(version.body()))
        .map(|row| (row.a, row.b))
        .collect();
    rows.sort_unstable();
    rows
}

/// Rows of every history before the copy; the snapshots of before and of in between.
struct History<'a> {
    place: Place<'a>,
    rows: Vec<RowId>,
    before: Snap,
    between: Snap,
}

impl<'a> History<'a> {
    fn new(session: &'a Session) -> History<'a> {
        let place = Place::new(session);
        let rows: Vec<RowId> = place.committed(|work, me| {
            let insert = |a| place.insert(work, Xid(me.top), a_row(a, 0));
            (0..8).map(insert).collect()
        });
        // Dead for everybody.
        place.committed(|work, me| place.delete(work, me, rows[7]));
        let before = reader(&place.world).snapshot(0);
        place.committed(|work, me| {
            place.update(work, me, rows[0], a_row(0, 1));
            place.delete(work, me, rows[1]);
            // Its key moves.
            place.update(work, me, rows[2], a_row(22, 1));
        });
        let between = reader(&place.world).snapshot(0);
        place.committed(|work, me| {
            place.update(work, me, rows[0], a_row(0, 2));
            place.delete(work, me, rows[2]);
        });
        let me = place.world.begin();
        let mut lost = Transaction::new();
        place.update(&mut lost, &me, rows[3], a_row(3, 99));
        place.insert(&mut lost, Xid(me.top), a_row(98, 98));
        me.end(Fate::Aborted);
        // Nobody has taken it back: the clock resolves.
        std::mem::forget(lost);
        History {
            place,
            rows,
            before,
            between,
        }
    }

    /// The transaction's own changes.
    fn change(&self, work: &mut Transaction, me: &Me) {
        let (place, rows) = (&self.place, &self.rows);
        place.update(work, me, rows[4], a_row(4, 5));
        place.update(work, me, rows[4], a_row(4, 6));
        place.delete(work, me, rows[5]);
        place.insert(work, Xid(me.top), a_row(50, 1));
        let gone = place.insert(work, Xid(me.top), a_row(51, 1));
        place.delete(work, me, gone);
    }
}

const SEEN_BEFORE: [(i32, i32); 7] = [(0, 0), (1, 0), (2, 0), (3, 0), (4, 0), (5, 0), (6, 0)];
const SEEN_BETWEEN: [(i32, i32); 6] = [(0, 1), (3, 0), (4, 0), (5, 0), (6, 0), (22, 1)];
const SEEN_AFTER: [(i32, i32); 5] = [(0, 2), (3, 0), (4, 6), (6, 0), (50, 1)];

#[test]
fn every_snapshot_sees_what_it_saw() {
    let (_region, engine) = common::engine(32 << 20);
    let session = &engine.join().unwrap();
    let history = History::new(session);
    let place = &history.place;
    assert_eq!(seen(session, place.table, &history.before), SEEN_BEFORE);
    assert_eq!(seen(session, place.table, &history.between), SEEN_BETWEEN);
    let me = place.world.begin();
    let mut work = Transaction::new();
    history.change(&mut work, &me);
    let to = place.copy(&mut work, &me, Xid(me.top));
    let check = |when: &str| {
        assert_eq!(seen(session, to, &history.before), SEEN_BEFORE, "{when}");
        assert_eq!(seen(session, to, &history.between), SEEN_BETWEEN, "{when}");
    };
    check("before the commit");
    assert_eq!(seen(session, to, &me.snapshot(1)), SEEN_AFTER);
    common::sweep(session, &place.world, to);
    check("swept");
    me.end(Fate::Committed);
    work.commit(session);
    check("after the commit");
    assert_eq!(to.copied_by(), None);
    assert_eq!(to.row_count_estimate(), 5);
    let after = reader(&place.world).snapshot(0);
    assert_eq!(seen(session, to, &after), SEEN_AFTER);
    common::check(session, to, &reader(&place.world));
    let History {
        place,
        before,
        between,
        ..
    } = history;
    drop((before, between, after));
    common::sweep(session, &place.world, to);
    let stale = &to.counters().stale_versions;
    assert_eq!(stale.load(Ordering::Relaxed), 0);
    common::check(session, to, &reader(&place.world));
}

#[test]
fn a_rollback_to_a_savepoint_takes_the_copy_alone() {
    let (_region, engine) = common::engine(32 << 20);
    let session = &engine.join().unwrap();
    let history = History::new(session);
    let place = &history.place;
    let me = place.world.begin();
    let mut work = Transaction::new();
    history.change(&mut work, &me);
    let inner = me.savepoint();
    work.set_level(2).unwrap();
    let to = place.copy(&mut work, &me, Xid(inner));
    assert_eq!(seen(session, to, &me.snapshot(1)), SEEN_AFTER);
    me.abort_one(inner);
    work.savepoint_abort(session, 2);
    work.set_level(1).unwrap();
    assert!(session.find_table(NEW, &me).is_none());
    assert_eq!(seen(session, place.table, &me.snapshot(1)), SEEN_AFTER);
    let mut wal = Wal {
        xid: me.top,
        ..Wal::default()
    };
    work.log(session, &mut wal).unwrap();
    me.end(Fate::Committed);
    work.commit(session);
    assert_eq!(seen(session, place.table, &history.before), SEEN_BEFORE);
    common::check(session, place.table, &reader(&place.world));
}

#[test]
fn the_log_gives_the_newest_states_to_a_standby_and_says_whose_they_are() {
    let (_region, engine) = common::engine(32 << 20);
    let session = &engine.join().unwrap();
    let history = History::new(session);
    let place = &history.place;
    let me = place.world.begin();
    let mut work = Transaction::new();
    history.change(&mut work, &me);
    let to = place.copy(&mut work, &me, Xid(me.top));
    // Changes of copied rows, and of an own one.
    let of = |a: i32| {
        (0..to.row_ids_end().0).map(RowId).find(|row_id| {
            matches!(session.newest(&me, to, *row_id), Newest::Live(version) if row(version.body()).a == a)
        })
    };
    for a in [3, 50] {
        place.update_in(to, &mut work, &me, of(a).unwrap(), a_row(a, 70));
    }
    let mut wal = Wal {
        xid: me.top,
        ..Wal::default()
    };
    work.log(session, &mut wal).unwrap();
    let expected = [(0, 2), (3, 70), (4, 6), (6, 0), (50, 70)];
    for fate in [Fate::Committed, Fate::Aborted] {
        let world = World::new();
        let (_region, standby) = common::engine(32 << 20);
        let there = &standby.join_for_recovery().unwrap();
        standby.set_state(State::Replaying);
        let mut replayer = Replayer::new(1);
        // The old storage's creation is not in this log.
        standby_of(there, place.table, &world);
        let writer = loop {
            let writer = world.begin();
            if writer.top == me.top {
                break writer;
            }
            writer.end(Fate::Committed);
        };
        for (lsn, xid, record) in &wal.records {
            replayer.apply(there, record, *lsn, *xid).unwrap();
        }
        writer.end(fate);
        let clock = reader(&world);
        finish(there, &clock, 1).unwrap();
        let found = there.find_table(NEW, &clock);
        match fate {
            Fate::Committed => {
                let table = found.unwrap();
                assert_eq!(table.copied_by(), Some(Xid(me.top)));
                assert_eq!(seen(there, table, &clock.snapshot(0)), expected);
                common::check(there, table, &clock);
            }
            _ => assert!(found.is_none()),
        }
    }
    me.end(Fate::Committed);
    work.commit(session);
}

/// Makes a storage with the id of another server's.
fn standby_of(session: &Session, table: TableRef, world: &World) {
    let made = common::transact(session, world, |work, _, xid| {
        work.create_table(session, OLD, xid).unwrap()
    });
    assert_eq!(made.id(), table.id());
}

#[test]
fn a_checkpoint_behind_the_log_holds_the_newest_states() {
    let directory = tempfile::tempdir().unwrap();
    let disk = DirectoryDisk::open(directory.path()).unwrap();
    let (_region, engine) = common::engine(32 << 20);
    let session = &engine.join().unwrap();
    let history = History::new(session);
    let place = &history.place;
    let me = place.world.begin();
    let mut work = Transaction::new();
    history.change(&mut work, &me);
    place.copy(&mut work, &me, Xid(me.top));
    let mut wal = Wal {
        xid: me.top,
        ..Wal::default()
    };
    let redo = work.log(session, &mut wal).unwrap();
    let mut context = CheckpointContext {
        system_id: 1,
        timeline: 1,
        redo,
        generation: 1,
        finished_below: place.world.horizon(),
        is_final: false,
        threads: 1,
        pace: Pace::unlimited(),
        progress: &CheckpointProgress::default(),
        outcomes: &mut |_| Ok(Vec::new()),
        flush: &mut |_| Ok(redo),
    };
    write(session, &disk, &mut context).unwrap();
    let xid = Xid(me.top);
    me.end(Fate::Committed);
    work.commit(session);

    let (_region, loaded) = common::engine(32 << 20);
    loaded.set_state(State::Loading);
    let manifest = read_manifest(&disk, 1).unwrap();
    load(loaded, &disk, &manifest, 1).unwrap();
    let there = &loaded.join_for_recovery().unwrap();
    let clock = reader(&place.world);
    finish(there, &clock, 1).unwrap();
    let table = there.find_table(NEW, &clock).unwrap();
    // A standby may have been started between the two.
    assert_eq!(table.copied_by(), Some(xid));
    assert_eq!(seen(there, table, &clock.snapshot(0)), SEEN_AFTER);
    common::check(there, table, &clock);
}
