//! One table, one session, a scripted clock: the life of rows step by step.

mod common;

use mot_engine::key::{AttributeLayout, IndexDefinition, KeyColumn, KeyKind};
use mot_engine::memory::{ArenaOptions, HugePages, Memory, Purpose, Region};
use mot_engine::{
    Build, Clock, CommandId, Direction, Engine, EngineError, Entered, FileKey, GROUP_ROWS_MAX,
    IndexScan, KeyRange, LockStrength, Locked, Log, Lsn, RelationKey, RowScan, Session, Snapshot,
    TableRef, Transaction, Written, Xid,
};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

#[derive(Default)]
struct World {
    running: RefCell<HashSet<u64>>,
    committed: RefCell<HashMap<u64, bool>>,
}

struct Me<'a>(&'a World, u64);

impl Clock for Me<'_> {
    fn is_current(&self, xid: Xid) -> bool {
        xid.0 == self.1
    }
    fn is_in_progress(&self, xid: Xid) -> bool {
        self.0.running.borrow().contains(&xid.0)
    }
    fn did_commit(&self, xid: Xid) -> bool {
        self.0
            .committed
            .borrow()
            .get(&xid.0)
            .copied()
            .unwrap_or(false)
    }
}

struct Snap<'a> {
    world: &'a World,
    me: u64,
    cid: u32,
    xmax: u64,
    running: HashSet<u64>,
}

impl Snapshot for Snap<'_> {
    fn xmin(&self) -> Xid {
        Xid(self.running.iter().copied().min().unwrap_or(self.xmax))
    }
    fn own(&self, xid: Xid, cid: CommandId) -> Option<bool> {
        (xid.0 == self.me).then_some(cid.0 < self.cid)
    }
    fn running(&self, xid: Xid) -> bool {
        xid.0 >= self.xmax || self.running.contains(&xid.0)
    }
    fn did_commit(&self, xid: Xid) -> bool {
        self.world
            .committed
            .borrow()
            .get(&xid.0)
            .copied()
            .unwrap_or(false)
    }
}

impl World {
    fn begin(&self, xid: u64) -> Transaction {
        self.running.borrow_mut().insert(xid);
        Transaction::new()
    }
    fn snapshot(&self, me: u64, cid: u32) -> Snap<'_> {
        let running = self.running.borrow().clone();
        let ended = self.committed.borrow().keys().copied().max().unwrap_or(0);
        let xmax = running.iter().copied().max().unwrap_or(0).max(ended) + 1;
        Snap {
            world: self,
            me,
            cid,
            xmax,
            running,
        }
    }
    fn commit(&self, session: &Session, mut transaction: Transaction, xid: u64) {
        transaction.log(session, &mut Count(0)).unwrap();
        self.running.borrow_mut().remove(&xid);
        self.committed.borrow_mut().insert(xid, true);
        transaction.commit(session);
    }
    fn abort(&self, session: &Session, mut transaction: Transaction, xid: u64) {
        transaction.abort(session);
        self.running.borrow_mut().remove(&xid);
        self.committed.borrow_mut().insert(xid, false);
    }
}

struct Count(u64);

impl Log for Count {
    fn append(&mut self, record: &[u8]) -> Lsn {
        self.0 += record.len() as u64;
        Lsn(self.0)
    }
}

/// A heap tuple of two int4 columns.
fn row(a: i32, b: i32) -> Vec<u8> {
    let mut body = vec![0u8; 14];
    body[0..2].copy_from_slice(&2u16.to_le_bytes());
    body[4] = 24;
    body[6..10].copy_from_slice(&a.to_le_bytes());
    body[10..14].copy_from_slice(&b.to_le_bytes());
    body
}

fn values(body: &[u8]) -> (i32, i32) {
    let at = |from: usize| i32::from_le_bytes(body[from..from + 4].try_into().unwrap());
    (at(6), at(10))
}

fn definition(oid: u32, attnum: u16, unique: bool) -> IndexDefinition {
    let int4 = AttributeLayout {
        len: 4,
        align: 4,
        by_value: true,
    };
    let column = KeyColumn {
        attnum,
        kind: KeyKind::Int4,
        descending: false,
        nulls_first: false,
        nullable: false,
        collation: None,
    };
    IndexDefinition {
        relation: oid,
        file: FileKey::NONE,
        unique,
        nulls_not_distinct: false,
        columns: vec![column],
        layout: vec![int4; attnum as usize],
        missing: Vec::new(),
        computed: None,
    }
}

fn engine() -> (Region, Session) {
    let region = Region::create(64 << 20, HugePages::Off).unwrap();
    // SAFETY: the region is fresh and kept by the caller for as long as the session.
    let memory = unsafe { Memory::format(&region, &ArenaOptions::default()) }.unwrap();
    let session = Engine::format(memory).unwrap().join().unwrap();
    (region, session)
}

const TABLE: RelationKey = RelationKey::of_file(1, 0, 100);

fn all(session: &Session, table: TableRef, snapshot: &Snap<'_>) -> Vec<(i32, i32)> {
    let mut scan = RowScan::new(table);
    let rows: Vec<_> = std::iter::from_fn(|| scan.next(session, snapshot))
        .map(|(_, v)| values(v.body()))
        .collect();
    for single in [0, 1, 9] {
        assert_eq!(all_by_groups(session, table, snapshot, single), rows);
    }
    rows
}

/// Some rows one by one, the others as they are looked up together.
fn all_by_groups(
    session: &Session,
    table: TableRef,
    snapshot: &Snap<'_>,
    single: usize,
) -> Vec<(i32, i32)> {
    let mut scan = RowScan::new(table);
    let mut rows: Vec<_> = std::iter::from_fn(|| scan.next(session, snapshot))
        .take(single)
        .map(|(_, v)| values(v.body()))
        .collect();
    loop {
        let group = scan.next_group(session, snapshot);
        if group.len() == 0 {
            break;
        }
        assert!(group.len() <= GROUP_ROWS_MAX);
        rows.extend(group.map(|(_, v)| values(v.body())));
    }
    rows
}

fn by_index(
    session: &Session,
    table: TableRef,
    oid: u32,
    clock: &Me<'_>,
    snapshot: &Snap<'_>,
    direction: Direction,
) -> Vec<(i32, i32)> {
    let index = session.find_index(table, oid, clock).unwrap();
    let mut scan = IndexScan::new();
    scan.start(table, index, &KeyRange::new(), direction);
    std::iter::from_fn(|| scan.next(session, snapshot).unwrap())
        .map(|(_, v)| values(v.body()))
        .collect()
}

#[test]
fn rows_live_through_insert_update_delete_and_savepoints() {
    let (_region, session) = engine();
    let s = &session;
    let world = World::default();

    let mut t = world.begin(10);
    let me = Me(&world, 10);
    let table = t.create_table(s, TABLE, Xid(10)).unwrap();
    for (oid, attnum, unique) in [(101, 1, true), (102, 2, false)] {
        let build = t
            .create_index(s, &me, table, &definition(oid, attnum, unique), Xid(10))
            .unwrap();
        assert!(matches!(build, Build::Done(_)));
    }
    for a in 0..100 {
        let (row_id, version) = t
            .insert(s, table, &row(a, a % 7), Xid(10), CommandId(1))
            .unwrap();
        assert_eq!(
            t.enter(s, &me, table, row_id, version).unwrap(),
            Entered::Done
        );
    }
    let other = Me(&world, 11);
    assert!(s.find_table(TABLE, &other).is_none(), "not committed yet");
    world.commit(s, t, 10);
    assert_eq!(s.find_table(TABLE, &other), Some(table));

    // A snapshot before and after an update that moves keys.
    let before = world.snapshot(0, 0);
    let mut t = world.begin(11);
    let index = s.find_index(table, 101, &other).unwrap();
    let mut range = KeyRange::new();
    range
        .set_point(&{
            let mut key = mot_engine::key::KeyBuffer::new();
            mot_engine::key::encode_row(s.definition(index).unwrap(), &row(5, 0), &mut key)
                .unwrap();
            key.as_slice().to_vec()
        })
        .unwrap();
    let mut scan = IndexScan::new();
    scan.start(table, index, &range, Direction::Forward);
    let (row_id, seen) = scan.next(s, &before).unwrap().unwrap();
    assert_eq!(values(seen.body()), (5, 5));
    let written = t
        .update(
            s,
            &other,
            table,
            row_id,
            seen,
            &row(500, 5),
            Xid(11),
            CommandId(1),
        )
        .unwrap();
    let Written::Done(version) = written else {
        panic!("{written:?}")
    };
    assert_eq!(
        t.enter(s, &other, table, row_id, version).unwrap(),
        Entered::Done
    );

    // Another writer must wait, for the row and for its old key.
    let third = Me(&world, 12);
    let mut t3 = world.begin(12);
    assert_eq!(
        t3.update(
            s,
            &third,
            table,
            row_id,
            seen,
            &row(5, 9),
            Xid(12),
            CommandId(1)
        )
        .unwrap(),
        Written::Busy(Xid(11))
    );
    assert_eq!(
        t3.lock(
            s,
            &third,
            table,
            row_id,
            seen,
            LockStrength::KeyShare,
            Xid(12)
        )
        .unwrap(),
        Locked::Busy(Xid(11))
    );
    let (row_id3, version3) = t3
        .insert(s, table, &row(5, 1), Xid(12), CommandId(1))
        .unwrap();
    assert_eq!(
        t3.enter(s, &third, table, row_id3, version3).unwrap(),
        Entered::Busy(Xid(11), index.relation_oid())
    );
    world.commit(s, t, 11);
    assert_eq!(
        t3.enter(s, &third, table, row_id3, version3).unwrap(),
        Entered::Done
    );
    assert_eq!(
        t3.update(
            s,
            &third,
            table,
            row_id,
            seen,
            &row(5, 9),
            Xid(12),
            CommandId(2)
        )
        .unwrap(),
        Written::Changed
    );
    let (row_id4, version4) = t3
        .insert(s, table, &row(500, 1), Xid(12), CommandId(2))
        .unwrap();
    assert_eq!(
        t3.enter(s, &third, table, row_id4, version4).unwrap(),
        Entered::Duplicate(index)
    );
    t3.retract(s);
    world.abort(s, t3, 12);

    let after = world.snapshot(0, 0);
    let reader = Me(&world, 0);
    let old = by_index(s, table, 101, &reader, &before, Direction::Forward);
    assert_eq!(old, (0..100).map(|a| (a, a % 7)).collect::<Vec<_>>());
    let mut expected: Vec<_> = (0..100).filter(|a| *a != 5).map(|a| (a, a % 7)).collect();
    expected.push((500, 5));
    assert_eq!(
        by_index(s, table, 101, &reader, &after, Direction::Forward),
        expected
    );
    expected.reverse();
    assert_eq!(
        by_index(s, table, 101, &reader, &after, Direction::Backward),
        expected
    );
    assert_eq!(
        by_index(s, table, 102, &reader, &after, Direction::Forward).len(),
        100
    );

    // What comes behind a range, in both directions: 5 became 500.
    let mut scan = IndexScan::new();
    let mut behind = |prefix: &[u8], direction| {
        let mut range = KeyRange::new();
        range.set_prefix(prefix).unwrap();
        scan.key_behind(s, index, &range, direction)
            .map(|key| key.to_vec())
    };
    let five_hundred = Some(vec![0x80, 0, 1, 0xF4]);
    assert_eq!(behind(&[0x80, 0, 0], Direction::Forward), five_hundred);
    assert_eq!(behind(&[0x80, 0, 0, 100], Direction::Forward), five_hundred);
    assert_eq!(
        behind(&[0x80, 0, 1], Direction::Backward),
        Some(vec![0x80, 0, 0, 99])
    );
    assert_eq!(behind(&[0x80, 0, 1], Direction::Forward), None);
    assert_eq!(behind(&[0x7F], Direction::Backward), None);
    assert_eq!(behind(&[0xFF], Direction::Forward), None);

    // Savepoints: an update in a rolled-back level leaves the outer one's state.
    let mut t = world.begin(20);
    let me = Me(&world, 20);
    t.set_level(1).unwrap();
    let snapshot = world.snapshot(20, 1);
    let seen = s.visible(table, row_id, &snapshot).unwrap();
    let Written::Done(outer) = t
        .update(
            s,
            &me,
            table,
            row_id,
            seen,
            &row(501, 6),
            Xid(20),
            CommandId(1),
        )
        .unwrap()
    else {
        panic!()
    };
    assert_eq!(
        t.enter(s, &me, table, row_id, outer).unwrap(),
        Entered::Done
    );
    t.set_level(2).unwrap();
    let Written::Done(inner) = t
        .update(
            s,
            &me,
            table,
            row_id,
            outer,
            &row(502, 7),
            Xid(20),
            CommandId(2),
        )
        .unwrap()
    else {
        panic!()
    };
    assert_eq!(
        t.enter(s, &me, table, row_id, inner).unwrap(),
        Entered::Done
    );
    let snapshot = world.snapshot(20, 3);
    assert_eq!(
        values(s.visible(table, row_id, &snapshot).unwrap().body()),
        (502, 7)
    );
    t.savepoint_abort(s, 2);
    assert_eq!(
        values(s.visible(table, row_id, &snapshot).unwrap().body()),
        (501, 6)
    );
    let found = by_index(s, table, 101, &me, &snapshot, Direction::Backward);
    assert_eq!(found[0], (501, 6));
    assert_eq!(found.len(), 100);
    world.commit(s, t, 20);

    // Delete.
    let mut t = world.begin(30);
    let me = Me(&world, 30);
    let snapshot = world.snapshot(30, 1);
    let seen = s.visible(table, row_id, &snapshot).unwrap();
    assert!(matches!(
        t.delete(s, &me, table, row_id, seen, Xid(30), CommandId(1))
            .unwrap(),
        Written::Done(_)
    ));
    world.commit(s, t, 30);
    let after = world.snapshot(0, 0);
    assert_eq!(all(s, table, &after).len(), 99);
    assert_eq!(table.row_count_estimate(), 99);
    assert_eq!(all(s, table, &before).len(), 100);
}

/// A version has 48 bits for its maker's id: one that does not fit is refused before anything is
/// there, and the greatest that does reads back.
#[test]
fn transaction_ids_beyond_what_a_version_holds_are_refused() {
    let (_region, engine) = common::engine(16 << 20);
    let session = &engine.join().unwrap();
    let world = common::World::new();
    let table = common::table(session, &world, &[]);
    let bytes = || engine.memory().purpose_bytes(Purpose::Rows);
    let (before, cid) = (bytes(), CommandId(1));
    let mut work = Transaction::new();
    let too_high = work.insert(session, table, &row(1, 1), Xid(Xid::MAX.0 + 1), cid);
    assert!(
        matches!(too_high, Err(EngineError::XidTooHigh { max }) if max == Xid::MAX.0),
        "{too_high:?}"
    );
    assert_eq!(bytes(), before);
    let (_, version) = work
        .insert(session, table, &row(1, 1), Xid::MAX, cid)
        .unwrap();
    assert_eq!(version.xid(), Xid::MAX);
    work.abort(session);
}
