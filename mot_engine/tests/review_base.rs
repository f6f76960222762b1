//! A logged difference must be against the row's last logged state, whoever else logged and was
//! rolled back in between, and whatever a restart forgot. Every log here is replayed from its
//! beginning, as a standby does, and must give the rows of the primary.

mod common;

use common::{Fate, Me, Row, TABLE, Wal, World, body, check, definition, engine, reader, row};
use mot_engine::checkpoint::{CheckpointContext, CheckpointProgress, Pace, read_manifest, write};
use mot_engine::disk::DirectoryDisk;
use mot_engine::recovery::{Replayer, finish, load};
use mot_engine::{
    Build, CommandId, Entered, FileKey, Lsn, Newest, RowId, RowScan, Session, State, TableRef,
    Transaction, VersionRef, Written, Xid,
};

impl Wal {
    fn log(&mut self, session: &Session, transaction: &mut Transaction, me: &Me) {
        self.xid = me.top;
        transaction.log(session, self).unwrap();
    }
}

fn a_row(b: i32) -> Row {
    Row { a: 1, b, c: None }
}

/// A wide difference from `a_row`, so that a difference against the wrong base shows.
fn other_row(b: i32, c: i32) -> Row {
    Row {
        a: 1,
        b,
        c: Some(c),
    }
}

fn create(s: &Session, world: &World, wal: &mut Wal) -> (TableRef, RowId) {
    let me = world.begin();
    let mut t = Transaction::new();
    let xid = Xid(me.top);
    let table = t.create_table(s, TABLE, xid).unwrap();
    let build = t
        .create_index(s, &me, table, &definition(101, true, &[(1, false)]), xid)
        .unwrap();
    assert!(matches!(build, Build::Done(_)));
    let (row_id, version) = t
        .insert(s, table, &body(a_row(0)), xid, CommandId(0))
        .unwrap();
    assert_eq!(
        t.enter(s, &me, table, row_id, version).unwrap(),
        Entered::Done
    );
    wal.log(s, &mut t, &me);
    me.end(Fate::Committed);
    t.commit(s);
    (table, row_id)
}

fn update(
    s: &Session,
    me: &Me,
    t: &mut Transaction,
    (table, row_id): (TableRef, RowId),
    to: Row,
    cid: u32,
) -> VersionRef {
    let Newest::Live(seen) = s.newest(me, table, row_id) else {
        panic!("the row is there")
    };
    let written = t
        .update(
            s,
            me,
            table,
            row_id,
            seen,
            &body(to),
            Xid(me.top),
            CommandId(cid),
        )
        .unwrap();
    let Written::Done(version) = written else {
        panic!("{written:?}")
    };
    assert_eq!(
        t.enter(s, me, table, row_id, version).unwrap(),
        Entered::Done
    );
    version
}

fn rows(s: &Session, world: &World) -> Vec<Row> {
    let me = reader(world);
    let table = s.find_table(TABLE, &me).unwrap();
    check(s, table, &me);
    let snapshot = me.snapshot(0);
    let mut scan = RowScan::new(table);
    std::iter::from_fn(|| scan.next(s, &snapshot))
        .map(|(_, version)| row(version.body()))
        .collect()
}

/// What a standby that replays everything has.
fn replayed(wal: &Wal, world: &World) -> Vec<Row> {
    let (_region, engine) = engine(16 << 20);
    engine.set_state(State::Replaying);
    let s = engine.join().unwrap();
    let mut replayer = Replayer::new(1);
    for (lsn, xid, record) in &wal.records {
        replayer.apply(&s, record, *lsn, *xid).unwrap();
    }
    finish(&s, &reader(world), 1).unwrap();
    engine.set_state(State::Ready);
    rows(&s, world)
}

/// T2 has committed, but its own callback comes late: meanwhile T3 changed the row, logged it, and
/// was rolled back.
#[test]
fn a_late_commit_does_not_forget_that_another_change_was_rolled_back() {
    let (_region, engine) = engine(16 << 20);
    let s = &engine.join().unwrap();
    let world = World::new();
    let mut wal = Wal::default();
    let place = create(s, &world, &mut wal);

    let (me2, mut t2) = (world.begin(), Transaction::new());
    update(s, &me2, &mut t2, place, a_row(1), 0);
    update(s, &me2, &mut t2, place, a_row(2), 1);
    wal.log(s, &mut t2, &me2);
    me2.end(Fate::Committed);

    let (me3, mut t3) = (world.begin(), Transaction::new());
    update(s, &me3, &mut t3, place, other_row(77, 78), 0);
    wal.log(s, &mut t3, &me3);
    me3.end(Fate::Aborted);
    t3.abort(s);

    t2.commit(s);

    let (me4, mut t4) = (world.begin(), Transaction::new());
    update(s, &me4, &mut t4, place, a_row(3), 0);
    wal.log(s, &mut t4, &me4);
    me4.end(Fate::Committed);
    t4.commit(s);

    assert_eq!(rows(s, &world), [a_row(3)]);
    assert_eq!(replayed(&wal, &world), [a_row(3)]);

    // And once the whole row was logged, differences do again.
    let (me5, mut t5) = (world.begin(), Transaction::new());
    update(s, &me5, &mut t5, place, a_row(4), 0);
    let before = wal.end;
    wal.log(s, &mut t5, &me5);
    let short = wal.end - before;
    me5.end(Fate::Committed);
    t5.commit(s);
    assert!(short < 24 + 4 + 2 + 2 + 18, "{short} bytes");
    assert_eq!(replayed(&wal, &world), [a_row(4)]);
}

/// The checkpoint has the row without the change that was rolled back, but with that change's LSN.
#[test]
fn a_checkpoint_tells_that_the_last_logged_change_was_rolled_back() {
    for sees_version in [false, true] {
        let (_region, first) = engine(16 << 20);
        let s = &first.join().unwrap();
        let world = World::new();
        let mut wal = Wal::default();
        let place = create(s, &world, &mut wal);

        let (me, mut t) = (world.begin(), Transaction::new());
        let lost = update(s, &me, &mut t, place, other_row(77, 78), 0);
        wal.log(s, &mut t, &me);
        me.end(Fate::Aborted);
        if sees_version {
            // Others know it already, its own process comes late.
            let clock = reader(&world);
            assert!(
                matches!(s.newest(&clock, place.0, place.1), Newest::Live(seen) if seen != lost)
            );
        } else {
            t.abort(s);
        }

        let directory = tempfile::tempdir().unwrap();
        let disk = DirectoryDisk::open(directory.path()).unwrap();
        let end = wal.end;
        let progress = CheckpointProgress::default();
        let mut context = CheckpointContext {
            system_id: 1,
            timeline: 1,
            redo: Lsn(end),
            generation: 1,
            finished_below: world.horizon(),
            is_final: false,
            threads: 1,
            pace: Pace::unlimited(),
            progress: &progress,
            outcomes: &mut |_| Ok(Vec::new()),
            flush: &mut |_| Ok(Lsn(end)),
        };
        write(s, &disk, &mut context).unwrap();

        let (_region2, second) = engine(16 << 20);
        second.set_state(State::Loading);
        load(second, &disk, &read_manifest(&disk, 1).unwrap(), 1).unwrap();
        let s = &second.join().unwrap();
        finish(s, &reader(&world), 1).unwrap();
        second.set_state(State::Ready);
        let table = s.find_table(TABLE, &reader(&world)).unwrap();
        let (me, mut t) = (world.begin(), Transaction::new());
        update(s, &me, &mut t, (table, place.1), a_row(5), 0);
        wal.log(s, &mut t, &me);
        me.end(Fate::Committed);
        t.commit(s);
        assert_eq!(rows(s, &world), [a_row(5)]);
        assert_eq!(replayed(&wal, &world), [a_row(5)], "{sees_version}");
    }
}

/// What is changed after the log was written would be lost.
#[test]
fn nothing_is_changed_after_the_transaction_was_logged() {
    let (_region, engine) = engine(16 << 20);
    let s = &engine.join().unwrap();
    let world = World::new();
    let mut wal = Wal::default();
    let (table, _) = create(s, &world, &mut wal);
    let (me, mut t) = (world.begin(), Transaction::new());
    let xid = Xid(me.top);
    let mut second = a_row(1);
    second.a = 2;
    let (row_id, version) = t
        .insert(s, table, &body(second), xid, CommandId(0))
        .unwrap();
    assert_eq!(
        t.enter(s, &me, table, row_id, version).unwrap(),
        Entered::Done
    );
    wal.log(s, &mut t, &me);
    second.a = 3;
    assert!(
        t.insert(s, table, &body(second), xid, CommandId(1))
            .is_err()
    );
    me.end(Fate::Aborted);
    t.abort(s);
    assert_eq!(rows(s, &world), [a_row(0)]);
}

/// An insert whose key no index can hold leaves nothing behind, not even its row id.
#[test]
fn keys_that_are_too_long_cost_no_row_ids() {
    use mot_engine::EngineError;
    use mot_engine::key::{AttributeLayout, IndexDefinition, KeyColumn, KeyKind};

    let (_region, engine) = engine(16 << 20);
    engine.set_state(State::Ready);
    let s = &engine.join().unwrap();
    let world = World::new();
    let text = IndexDefinition {
        relation: 101,
        file: FileKey::NONE,
        unique: false,
        nulls_not_distinct: false,
        columns: vec![KeyColumn {
            attnum: 1,
            kind: KeyKind::Text,
            descending: false,
            nulls_first: false,
            nullable: false,
            collation: None,
        }],
        layout: vec![AttributeLayout {
            len: -1,
            align: 4,
            by_value: false,
        }],
        missing: Vec::new(),
        computed: None,
    };
    let (me, mut t) = (world.begin(), Transaction::new());
    let table = t.create_table(s, TABLE, Xid(me.top)).unwrap();
    let build = t.create_index(s, &me, table, &text, Xid(me.top)).unwrap();
    assert!(matches!(build, Build::Done(_)));
    me.end(Fate::Committed);
    t.commit(s);

    const TEXT_BYTES: u32 = 16_000;
    let mut long = vec![0u8; 6];
    long[0..2].copy_from_slice(&1u16.to_le_bytes());
    long[4] = 24;
    long.extend_from_slice(&((TEXT_BYTES + 4) << 2).to_le_bytes());
    long.resize(long.len() + TEXT_BYTES as usize, b'x');
    for _ in 0..200 {
        let (me, mut t) = (world.begin(), Transaction::new());
        let (row_id, version) = t
            .insert(s, table, &long, Xid(me.top), CommandId(0))
            .unwrap();
        let entered = t.enter(s, &me, table, row_id, version);
        assert!(matches!(entered, Err(EngineError::KeyTooLong { .. })));
        me.end(Fate::Aborted);
        t.abort(s);
    }
    assert!(
        table.row_ids_end() <= RowId(16),
        "{:?}",
        table.row_ids_end()
    );
}
