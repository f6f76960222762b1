//! The sweeper clears KEYS_MOVED, and scans that come late still find the right rows.

use crate::common::{self, Fate, Me, Row, Snap, World, body, key};
use crate::pause::{Point, set_hook};
use crate::row::Head;
use crate::table::{IndexRef, TableRef};
use crate::{
    CommandId, Direction, Entered, IndexScan, KeyRange, LockStrength, Locked, RowId, Session,
    Transaction, Written, Xid,
};
use std::cell::RefCell;
use std::rc::Rc;

const UNIQUE: u32 = 101;
const OTHER: u32 = 102;
/// A number that rows have at first, and another.
const FIRST: i32 = 10;
const MOVED: i32 = 20;

type Work = Box<dyn FnOnce()>;

thread_local! {
    /// What happens at the next stop at this point.
    static MEANWHILE: RefCell<Option<(Point, Work)>> = const { RefCell::new(None) };
}

fn at_point(point: Point) {
    let is_it = MEANWHILE.with_borrow(|work| work.as_ref().is_some_and(|work| work.0 == point));
    if is_it {
        let (_, work) = MEANWHILE.take().expect("it is there");
        work();
    }
}

/// Runs `work`; `meanwhile` happens in it, at a point that it comes to.
fn beside<R>(point: Point, meanwhile: impl FnOnce() + 'static, work: impl FnOnce() -> R) -> R {
    MEANWHILE.set(Some((point, Box::new(meanwhile))));
    set_hook(Some(at_point));
    let done = work();
    set_hook(None);
    assert!(MEANWHILE.take().is_none(), "nothing happened meanwhile");
    done
}

fn row(b: i32) -> Row {
    Row { a: 1, b, c: None }
}

/// One row, with an entry of its `b` in two indexes.
struct Place {
    session: Session,
    /// The session that sweeps.
    sweeper: Session,
    world: World,
    table: TableRef,
    row_id: RowId,
    _region: crate::memory::Region,
}

impl Place {
    fn new() -> Rc<Place> {
        let (region, engine) = common::engine(32 << 20);
        let session = engine.join().unwrap();
        let world = World::new();
        let indexes = [
            common::definition(UNIQUE, true, &[(2, false)]),
            common::definition(OTHER, false, &[(2, false)]),
        ];
        let table = common::table(&session, &world, &indexes);
        let row_id = common::transact(&session, &world, |work, me, xid| {
            let (row_id, version) = work
                .insert(&session, table, &body(row(FIRST)), xid, CommandId(1))
                .unwrap();
            let entered = work.enter(&session, me, table, row_id, version).unwrap();
            assert_eq!(entered, Entered::Done);
            row_id
        });
        Rc::new(Place {
            sweeper: engine.join().unwrap(),
            session,
            world,
            table,
            row_id,
            _region: region,
        })
    }

    /// Gives the row another number, in a transaction that is still running.
    fn give(&self, b: i32) -> (Me, Transaction) {
        let me = self.world.begin();
        let mut work = Transaction::new();
        let session = &self.session;
        let seen = session
            .visible(self.table, self.row_id, &me.snapshot(1))
            .unwrap();
        let (xid, cid, new) = (Xid(me.top), CommandId(1), body(row(b)));
        let written = work.update(session, &me, self.table, self.row_id, seen, &new, xid, cid);
        let Ok(Written::Done(version)) = written else {
            panic!("{written:?}")
        };
        let entered = work.enter(session, &me, self.table, self.row_id, version);
        assert_eq!(entered.unwrap(), Entered::Done);
        (me, work)
    }

    fn give_committed(&self, b: i32) {
        let (me, mut work) = self.give(b);
        me.end(Fate::Committed);
        work.commit(&self.session);
    }

    fn sweep(&self) {
        common::sweep(&self.sweeper, &self.world, self.table);
    }

    fn has_moved(&self) -> bool {
        let anchor = self.table.anchor(self.row_id).unwrap();
        anchor.head().has(Head::KEYS_MOVED)
    }

    fn index(&self, oid: u32) -> IndexRef {
        let clock = common::reader(&self.world);
        self.session.find_index(self.table, oid, &clock).unwrap()
    }

    /// How often the row is found by a number, in every way in which an index is read.
    /// `meanwhile` happens each time between entries and rows.
    fn finds(
        &self,
        b: i32,
        prepare: impl Fn() -> Snap,
        meanwhile: impl Fn() -> Work,
    ) -> Vec<usize> {
        let session = &self.session;
        let mut range = KeyRange::new();
        let count = |scan: &mut IndexScan, snapshot: &Snap| {
            std::iter::from_fn(|| scan.next(session, snapshot).unwrap()).count()
        };
        let mut counts = Vec::new();
        let mut one = |oid: u32, way: &mut dyn FnMut(&mut IndexScan, IndexRef, &Snap) -> usize| {
            let snapshot = prepare();
            let index = self.index(oid);
            let mut scan = IndexScan::new();
            let found = beside(Point::ScanAfterEntries, meanwhile(), || {
                way(&mut scan, index, &snapshot)
            });
            counts.push(found);
        };
        let definition = common::definition(UNIQUE, true, &[(2, false)]);
        let whole = key(&definition, row(b));
        one(UNIQUE, &mut |scan, index, snapshot| {
            let found = scan.find(session, self.table, index, &whole, snapshot);
            usize::from(found.unwrap().is_some())
        });
        one(UNIQUE, &mut |scan, index, snapshot| {
            scan.look_up(session, self.table, index, &whole).unwrap();
            count(scan, snapshot)
        });
        one(UNIQUE, &mut |scan, index, snapshot| {
            let keys = [&whole[..], &whole[..]];
            scan.start_points(self.table, index, keys[..1].iter().copied())
                .unwrap();
            count(scan, snapshot)
        });
        range.set_prefix(&whole).unwrap();
        for direction in [Direction::Forward, Direction::Backward] {
            one(OTHER, &mut |scan, index, snapshot| {
                scan.start(self.table, index, &range, direction);
                count(scan, snapshot)
            });
        }
        counts
    }
}

fn nothing() -> Work {
    Box::new(|| ())
}

#[test]
fn keys_moved_is_cleared_when_nobody_needs_the_old_one() {
    let place = Place::new();
    let snapshot = || common::reader(&place.world).snapshot(0);
    let old = snapshot();
    place.give_committed(MOVED);
    place.sweep();
    assert!(place.has_moved(), "somebody sees the old key");
    drop(old);
    place.sweep();
    assert!(!place.has_moved());
    assert_eq!(place.finds(MOVED, snapshot, nothing), [1; 5]);
    assert_eq!(place.finds(FIRST, snapshot, nothing), [0; 5]);
    // And again, back to a key that it had.
    place.give_committed(FIRST);
    assert!(place.has_moved());
    place.sweep();
    assert!(!place.has_moved());
    assert_eq!(place.finds(FIRST, snapshot, nothing), [1; 5]);
    common::check(&place.session, place.table, &common::reader(&place.world));
}

/// A row lock that comes when the sweeper is about to, and goes again without a word, does not
/// leave the row as one whose keys have moved.
#[test]
fn keys_moved_is_cleared_behind_a_lock_that_came_meanwhile() {
    let place = Place::new();
    place.give_committed(MOVED);
    let locked = Rc::new(RefCell::new(None));
    let meanwhile = {
        let (place, locked) = (place.clone(), locked.clone());
        move || {
            let me = place.world.begin();
            let (session, snapshot) = (&place.session, me.snapshot(1));
            let seen = session
                .visible(place.table, place.row_id, &snapshot)
                .unwrap();
            let mut work = Transaction::new();
            let (strength, xid) = (LockStrength::Share, Xid(me.top));
            let lock = work.lock(session, &me, place.table, place.row_id, seen, strength, xid);
            assert_eq!(lock.unwrap(), Locked::Done);
            locked.replace(Some((me, work)));
        }
    };
    beside(Point::ReclaimBeforeKeys, meanwhile, || place.sweep());
    assert!(place.has_moved(), "or it proves nothing");
    let (me, mut work) = locked.take().unwrap();
    me.end(Fate::Committed);
    work.commit(&place.session);
    // Only what is dirty.
    let (horizon, clock) = (place.world.horizon(), common::reader(&place.world));
    let sweeper = &place.sweeper;
    sweeper.engine().raise_horizon(horizon);
    sweeper.sweep(&clock, place.table, false, || ());
    assert!(!place.has_moved());
}

/// The scan has the entry of a number that the row had before. Until it comes to the row, that is
/// swept, and says no longer that its keys have moved.
#[test]
fn a_scan_with_an_old_entry_is_not_led_astray() {
    let place = Place::new();
    let numbers = RefCell::new(FIRST);
    // The row leaves the number that is looked for, which is the one it has.
    let leave = || {
        let next = *numbers.borrow() + 1;
        numbers.replace(next);
        place.give_committed(next);
        common::reader(&place.world).snapshot(0)
    };
    for _ in 0..2 {
        let meanwhile = || -> Work {
            let place = place.clone();
            Box::new(move || {
                place.sweep();
                assert!(!place.has_moved(), "or it proves nothing");
            })
        };
        // One number for each way: the row is moved away from it just before.
        let session = &place.session;
        let mut range = KeyRange::new();
        for way in 0..5 {
            let b = *numbers.borrow();
            let definition = common::definition(UNIQUE, true, &[(2, false)]);
            let whole = key(&definition, row(b));
            let snapshot = leave();
            let mut scan = IndexScan::new();
            let found = beside(Point::ScanAfterEntries, meanwhile(), || {
                let (unique, other) = (place.index(UNIQUE), place.index(OTHER));
                let table = place.table;
                range.set_prefix(&whole).unwrap();
                match way {
                    0 => return scan.find(session, table, unique, &whole, &snapshot),
                    1 => scan.look_up(session, table, unique, &whole).unwrap(),
                    2 => scan.start_points(table, unique, [&whole[..]]).unwrap(),
                    3 => scan.start(table, other, &range, Direction::Forward),
                    _ => scan.start(table, other, &range, Direction::Backward),
                }
                scan.next(session, &snapshot)
            });
            assert!(
                found.unwrap().is_none(),
                "way {way}: found by a number it left"
            );
        }
    }
}

/// The same with the entry of a change that is rolled back meanwhile.
#[test]
fn a_scan_with_an_entry_that_was_taken_back_is_not_led_astray() {
    let place = Place::new();
    let running = RefCell::new(None);
    let prepare = || {
        running.replace(Some(place.give(MOVED)));
        common::reader(&place.world).snapshot(0)
    };
    let meanwhile = || -> Work {
        let (place, running) = (place.clone(), running.take());
        Box::new(move || {
            let (me, mut work): (Me, Transaction) = running.expect("it was begun");
            me.end(Fate::Aborted);
            work.abort(&place.session);
            place.sweep();
            assert!(!place.has_moved(), "or it proves nothing");
        })
    };
    assert_eq!(place.finds(MOVED, prepare, meanwhile), [0; 5]);
    common::check(&place.session, place.table, &common::reader(&place.world));
}

/// The sweeper visits the row while a session is removing entries of versions that it removed. It
/// does not clear KEYS_MOVED, and visits the row again.
#[test]
fn keys_moved_stays_while_entries_are_removed() {
    let place = Place::new();
    let (me, mut work) = place.give(MOVED);
    me.end(Fate::Aborted);
    let meanwhile = {
        let place = place.clone();
        move || {
            let clock = common::reader(&place.world);
            place.table.set_dirty(place.row_id);
            let swept = place.sweeper.sweep(&clock, place.table, false, || {});
            assert_eq!(swept.groups_waiting, 1, "{swept:?}");
            assert!(place.has_moved());
        }
    };
    beside(Point::UnlinkBeforeEntries, meanwhile, || {
        work.abort(&place.session)
    });
    place.sweep();
    assert!(!place.has_moved());
    common::check(&place.session, place.table, &common::reader(&place.world));
}
