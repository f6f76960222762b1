//! A scan that resolves rows before they are asked for gives those that it would give one by one,
//! whatever happens meanwhile.

mod common;

use common::{Fate, Me, Row, Snap, World, body, row};
use mot_engine::{
    CommandId, Direction, Entered, IndexRef, IndexScan, KeyRange, RowId, Session, Snapshot,
    TableRef, Transaction, Written, Xid,
};
use std::cell::Cell;

const ROWS: i32 = 120;
/// Command of the snapshots: what their transaction did before is seen, what it does during a scan
/// is not.
const COMMAND: u32 = 5;

/// A snapshot that resolves no row early, and counts what it is asked that it must not see.
struct OneByOne<'a> {
    snap: &'a Snap,
    passed_over: Cell<u32>,
}

impl<'a> OneByOne<'a> {
    fn new(snap: &'a Snap) -> Self {
        OneByOne {
            snap,
            passed_over: Cell::new(0),
        }
    }
}

impl Snapshot for OneByOne<'_> {
    fn xmin(&self) -> Xid {
        self.snap.xmin()
    }
    fn own(&self, xid: Xid, cid: CommandId) -> Option<bool> {
        self.snap.own(xid, cid)
    }
    fn running(&self, xid: Xid) -> bool {
        let is_running = self.snap.running(xid);
        self.passed_over
            .set(self.passed_over.get() + u32::from(is_running));
        is_running
    }
    fn did_commit(&self, xid: Xid) -> bool {
        self.snap.did_commit(xid)
    }
    fn may_resolve_early(&self) -> bool {
        false
    }
}

struct Random(u32);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 8) as usize % end
    }
}

struct Place {
    session: Session,
    world: World,
    table: TableRef,
    indexes: Vec<IndexRef>,
    row_ids: Vec<RowId>,
}

impl Place {
    fn new(session: Session) -> Place {
        let world = World::new();
        let definitions = [
            common::definition(101, true, &[(1, false)]),
            common::definition(102, false, &[(2, false)]),
        ];
        let table = common::table(&session, &world, &definitions);
        let indexes = session.indexes(table, &common::reader(&world));
        let mut place = Place {
            session,
            world,
            table,
            indexes,
            row_ids: Vec::new(),
        };
        let me = place.world.begin();
        let mut work = Transaction::new();
        for a in 0..ROWS {
            place.insert(&mut work, &me, a * 10, 1);
        }
        me.end(Fate::Committed);
        work.commit(&place.session);
        place
    }

    fn insert(&mut self, work: &mut Transaction, me: &Me, a: i32, command: u32) {
        let (session, table) = (&self.session, self.table);
        let tuple = body(Row { a, b: a, c: None });
        let (xid, cid) = (Xid(me.top), CommandId(command));
        let (row_id, version) = work.insert(session, table, &tuple, xid, cid).unwrap();
        match work.enter(session, me, table, row_id, version).unwrap() {
            Entered::Done => self.row_ids.push(row_id),
            _ => work.retract(session),
        }
    }

    /// Gives a row another `b`, and with it another key, or takes it away; nothing if another
    /// transaction has it.
    fn change(&self, work: &mut Transaction, me: &Me, row_id: RowId, b: Option<i32>, command: u32) {
        let (session, table) = (&self.session, self.table);
        let Some(seen) = session.visible(table, row_id, &me.snapshot(COMMAND + 10)) else {
            return;
        };
        let (xid, cid) = (Xid(me.top), CommandId(command));
        let written = match b {
            Some(b) => {
                let new = body(Row {
                    b,
                    ..row(seen.body())
                });
                work.update(session, me, table, row_id, seen, &new, xid, cid)
            }
            None => work.delete(session, me, table, row_id, seen, xid, cid),
        };
        if let Written::Done(version) = written.unwrap()
            && b.is_some()
        {
            let entered = work.enter(session, me, table, row_id, version);
            assert_eq!(entered.unwrap(), Entered::Done);
        }
    }

    /// Something that others, or the reader's own transaction in a later command, do to some row;
    /// or the sweeper comes by.
    fn meanwhile(&mut self, random: &mut Random, own: &mut Transaction, me: &Me) {
        let row_id = self.row_ids[random.below(self.row_ids.len())];
        let b = (random.below(4) > 0).then(|| random.below(1000) as i32);
        match random.below(6) {
            0 => self.change(own, me, row_id, b, COMMAND + 1),
            1..4 => {
                let other = self.world.begin();
                let mut work = Transaction::new();
                self.change(&mut work, &other, row_id, b, 1);
                let a = random.below(1200) as i32;
                self.insert(&mut work, &other, a, 1);
                let fate = [Fate::Committed, Fate::Aborted][usize::from(random.below(4) == 0)];
                other.end(fate);
                match fate {
                    Fate::Aborted => work.abort(&self.session),
                    _ => work.commit(&self.session),
                }
            }
            _ => {
                common::sweep(&self.session, &self.world, self.table);
                self.session.memory().collect();
            }
        }
    }
}

#[test]
fn rows_resolved_early_are_those_resolved_one_by_one() {
    for seed in 0..60 {
        let (_region, engine) = common::engine(32 << 20);
        let mut place = Place::new(engine.join().unwrap());
        let random = &mut Random(seed);
        let me = place.world.begin();
        let mut own = Transaction::new();
        for _ in 0..20 {
            place.meanwhile(random, &mut own, &me);
            let row_id = place.row_ids[random.below(place.row_ids.len())];
            place.change(&mut own, &me, row_id, Some(500), 1);
        }
        let snap = me.snapshot(COMMAND);
        let one_by_one = OneByOne::new(&snap);
        let direction = [Direction::Forward, Direction::Backward][random.below(2)];
        let index = place.indexes[random.below(2)];
        let mut range = KeyRange::new();
        if random.below(2) == 0 {
            let low = common::key(
                &common::definition(1, true, &[(1, false)]),
                Row {
                    a: 300,
                    b: 0,
                    c: None,
                },
            );
            range.set_low(&low, true).unwrap();
        }
        let (mut ahead, mut alone) = (IndexScan::new(), IndexScan::new());
        ahead.start(place.table, index, &range, direction);
        alone.start(place.table, index, &range, direction);
        let mut rows = 0;
        loop {
            let found = ahead.next(&place.session, &snap).unwrap();
            let wanted = alone.next(&place.session, &one_by_one).unwrap();
            assert_eq!(found, wanted, "seed {seed}");
            let Some((_, version)) = found else {
                break;
            };
            assert!((0..=1200).contains(&row(version.body()).b), "freed memory");
            rows += 1;
            place.meanwhile(random, &mut own, &me);
        }
        assert!(ahead.is_exhausted() && alone.is_exhausted());
        assert!(rows > 20, "{rows} rows");
        me.end(Fate::Committed);
        own.commit(&place.session);
        let clock = common::reader(&place.world);
        common::check(&place.session, place.table, &clock);
    }
}

/// A snapshot that keeps account of what it passes over is not told of rows that nobody asked for;
/// any other looks at a few.
#[test]
fn who_keeps_account_resolves_no_row_early() {
    let (_region, engine) = common::engine(32 << 20);
    let mut place = Place::new(engine.join().unwrap());
    let other = place.world.begin();
    let mut work = Transaction::new();
    // Behind each row one that the snapshot does not see.
    for a in 0..ROWS {
        place.insert(&mut work, &other, a * 10 + 5, 1);
    }
    let snap = common::reader(&place.world).snapshot(0);
    let one_by_one = OneByOne::new(&snap);
    let mut scan = IndexScan::new();
    let range = KeyRange::new();
    scan.start(place.table, place.indexes[0], &range, Direction::Forward);
    for passed in 0..ROWS as u32 {
        assert!(scan.next(&place.session, &one_by_one).unwrap().is_some());
        assert_eq!(one_by_one.passed_over.get(), passed);
    }
    other.end(Fate::Committed);
    work.commit(&place.session);
}
