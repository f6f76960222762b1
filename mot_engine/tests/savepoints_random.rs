//! Random transactions with many savepoints on few rows, against a map: several indexes, unique
//! ones among them, few keys, so that many row ids share one; locks of others in between; old
//! snapshots; ends of all kinds, some without process memory. `MOT_TEST_SEED=n` repeats one.
#![cfg(debug_assertions)]

mod common;

use common::{Fate, Me, Random, Row, Snap, World, computed, formed, reader, row};
use mot_engine::key::IndexDefinition;
use mot_engine::{
    Build, CommandId, Entered, LockStrength, Locked, Newest, RowId, Session, TableRef, Transaction,
    Written, Xid,
};
use std::collections::{BTreeMap, BTreeSet};

const SEEDS: u64 = 60;
const TRANSACTIONS: usize = 25;
const STEPS: u64 = 60;
/// Values of the unique column.
const KEYS: u64 = 12;

/// Allocations of this thread fail while it is set, each second one or all.
mod no_memory {
    use std::alloc::{GlobalAlloc, Layout, System};
    use std::cell::Cell;

    thread_local! {
        static REFUSED: Cell<u8> = const { Cell::new(0) };
        static COUNT: Cell<u8> = const { Cell::new(0) };
    }

    struct Refusing;

    #[global_allocator]
    static ALLOCATOR: Refusing = Refusing;

    // SAFETY: the system's allocator, which may refuse.
    unsafe impl GlobalAlloc for Refusing {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            let every = REFUSED.get();
            let count = COUNT.get().wrapping_add(1);
            COUNT.set(count);
            if every != 0 && count.is_multiple_of(every) {
                return std::ptr::null_mut();
            }
            // SAFETY: the caller's.
            unsafe { System.alloc(layout) }
        }

        unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
            // SAFETY: the caller's.
            unsafe { System.dealloc(block, layout) }
        }
    }

    /// Runs `work` while each allocation whose number is divisible by `every` fails; none for 0.
    pub fn with<T>(every: u8, work: impl FnOnce() -> T) -> T {
        REFUSED.set(every);
        let done = work();
        REFUSED.set(0);
        done
    }
}

fn random_row(random: &mut Random) -> Row {
    Row {
        a: random.below(KEYS) as i32,
        b: random.below(3) as i32,
        c: (!random.one_in(3)).then(|| random.below(4) as i32),
    }
}

/// What is to be there: rows, and the unique index on `a`, if there is one.
#[derive(Clone, Default)]
struct Now {
    rows: BTreeMap<RowId, Row>,
    unique: Option<u32>,
    indexes: BTreeSet<u32>,
}

struct Place<'a> {
    session: &'a Session,
    world: World,
    table: TableRef,
    random: Random,
    committed: Now,
    next_index: u32,
    old: Vec<(Snap, BTreeMap<RowId, Row>)>,
}

struct Work {
    me: Me,
    work: Transaction,
    /// Ids of the open levels, and what was there when they began.
    open: Vec<(u64, Now)>,
    now: Now,
    cid: u32,
    has_definitions: bool,
}

impl Work {
    fn xid(&self) -> Xid {
        Xid(self.open.last().unwrap().0)
    }

    fn level(&mut self) {
        self.work.set_level(self.open.len() as i32).unwrap();
    }

    fn savepoint(&mut self) {
        self.open.push((self.me.savepoint(), self.now.clone()));
        self.level();
    }

    fn release(&mut self) {
        let level = self.open.len() as i32;
        let (xid, _) = self.open.pop().unwrap();
        self.me.adopt(xid, self.open.last().unwrap().0);
        self.work.savepoint_commit(level);
        self.level();
    }
}

fn unique_on_a(oid: u32) -> IndexDefinition {
    common::definition(oid, true, &[(1, false)])
}

impl<'a> Place<'a> {
    fn new(session: &'a Session, seed: u64) -> Place<'a> {
        let world = World::new();
        let indexes = [
            unique_on_a(101),
            common::definition(102, false, &[(2, false)]),
            common::definition(103, true, &[(3, false), (1, true)]),
            computed(104, false),
        ];
        let table = common::table(session, &world, &indexes);
        Place {
            session,
            world,
            table,
            random: Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1),
            committed: Now {
                rows: BTreeMap::new(),
                unique: Some(101),
                indexes: [101, 102, 103, 104].into(),
            },
            next_index: 200,
            old: Vec::new(),
        }
    }

    /// Whether an index forbids this row beside the others.
    fn is_duplicate(now: &Now, id: Option<RowId>, new: Row) -> bool {
        now.rows.iter().any(|(other, row)| {
            Some(*other) != id
                && row.a == new.a
                && (now.unique.is_some() || (row.c.is_some() && row.c == new.c))
        })
    }

    fn begin(&self) -> Work {
        let me = self.world.begin();
        let mut work = Transaction::new();
        work.set_level(1).unwrap();
        Work {
            open: vec![(me.top, self.committed.clone())],
            me,
            work,
            now: self.committed.clone(),
            cid: 0,
            has_definitions: false,
        }
    }

    fn refused(&mut self) -> u8 {
        [0, 0, 1, 2, 3][self.random.below(5) as usize]
    }

    fn roll_back_to(&mut self, t: &mut Work) {
        let level = t.open.len() as i32;
        let (xid, before) = t.open.pop().unwrap();
        t.me.abort_one(xid);
        let refused = self.refused();
        no_memory::with(refused, || t.work.savepoint_abort(self.session, level));
        t.level();
        t.now = before;
        self.sees(t);
    }

    /// What a statement that fails does: the innermost savepoint goes, or a level that its like
    /// would have made.
    fn insert(&mut self, t: &mut Work, new: Row) {
        t.cid += 1;
        let is_duplicate = Self::is_duplicate(&t.now, None, new);
        let guarded = is_duplicate && self.random.one_in(2);
        if guarded {
            t.savepoint();
        }
        let (xid, cid) = (t.xid(), CommandId(t.cid));
        let made = t
            .work
            .insert(self.session, self.table, &formed(new), xid, cid);
        let (id, version) = made.unwrap();
        let entered = t.work.enter(self.session, &t.me, self.table, id, version);
        match entered.unwrap() {
            Entered::Done => {
                assert!(!is_duplicate, "{new:?} beside {:?}", t.now.rows);
                t.now.rows.insert(id, new);
            }
            Entered::Duplicate(_) => {
                assert!(is_duplicate, "{new:?} beside {:?}", t.now.rows);
                if guarded {
                    self.roll_back_to(t);
                } else {
                    t.work.retract(self.session);
                }
            }
            Entered::Busy(..) => panic!("nobody else has keys"),
        }
    }

    fn some_row(&mut self, now: &Now) -> Option<(RowId, Row)> {
        if now.rows.is_empty() {
            return None;
        }
        // A few rows get most of the changes.
        let most = now.rows.len() as u64;
        let end = if self.random.one_in(3) {
            most
        } else {
            most.min(2)
        };
        let at = self.random.below(end) as usize;
        now.rows.iter().nth(at).map(|(id, row)| (*id, *row))
    }

    fn update(&mut self, t: &mut Work) {
        let Some((id, before)) = self.some_row(&t.now) else {
            return;
        };
        t.cid += 1;
        let mut new = random_row(&mut self.random);
        if self.random.one_in(2) {
            new.a = before.a;
        }
        let is_duplicate = Self::is_duplicate(&t.now, Some(id), new);
        if is_duplicate {
            t.savepoint();
        }
        let snapshot = t.me.snapshot(t.cid);
        let seen = self.session.visible(self.table, id, &snapshot).unwrap();
        assert_eq!(row(seen.body()), before);
        let (xid, cid) = (t.xid(), CommandId(t.cid));
        let written = t
            .work
            .update(
                self.session,
                &t.me,
                self.table,
                id,
                seen,
                &formed(new),
                xid,
                cid,
            )
            .unwrap();
        drop(snapshot);
        match written {
            Written::Done(version) => {
                let entered = t.work.enter(self.session, &t.me, self.table, id, version);
                match entered.unwrap() {
                    Entered::Done => {
                        assert!(!is_duplicate, "{new:?} beside {:?}", t.now.rows);
                        t.now.rows.insert(id, new);
                    }
                    Entered::Duplicate(_) => {
                        assert!(is_duplicate, "{new:?} beside {:?}", t.now.rows);
                        self.roll_back_to(t);
                    }
                    Entered::Busy(..) => panic!("nobody else has keys"),
                }
            }
            Written::Busy(_) => {
                if is_duplicate {
                    self.roll_back_to(t);
                }
            }
            other => panic!("{other:?}"),
        }
    }

    fn delete(&mut self, t: &mut Work) -> Option<Row> {
        let (id, before) = self.some_row(&t.now)?;
        t.cid += 1;
        let snapshot = t.me.snapshot(t.cid);
        let seen = self.session.visible(self.table, id, &snapshot).unwrap();
        let (xid, cid) = (t.xid(), CommandId(t.cid));
        let written = t
            .work
            .delete(self.session, &t.me, self.table, id, seen, xid, cid);
        match written.unwrap() {
            Written::Done(_) => t.now.rows.remove(&id),
            Written::Busy(_) => return None,
            other => panic!("{other:?}"),
        };
        Some(before)
    }

    /// A key goes and comes again: all its row ids are named by one entry.
    fn churn(&mut self, t: &mut Work) {
        for _ in 0..1 + self.random.below(40) {
            if self.random.one_in(20) {
                t.savepoint();
            }
            if let Some(row) = self.delete(t) {
                self.insert(t, row);
            }
            if t.open.len() > 1 && self.random.one_in(30) {
                self.roll_back_to(t);
            }
        }
    }

    /// So many states upon so many others that what is left is gathered when they go.
    fn change_often(&mut self, t: &mut Work) {
        for _ in 0..20 {
            self.update(t);
        }
        t.savepoint();
        let deep = t.open.len();
        for _ in 0..60 {
            self.update(t);
        }
        if self.random.one_in(2) && t.open.len() == deep {
            self.roll_back_to(t);
        }
    }

    fn lock_own(&mut self, t: &mut Work) {
        let Some((id, _)) = self.some_row(&t.now) else {
            return;
        };
        let strengths = [
            LockStrength::KeyShare,
            LockStrength::Share,
            LockStrength::NoKeyUpdate,
            LockStrength::Update,
        ];
        let strength = strengths[self.random.below(4) as usize];
        let Newest::Live(seen) = self.session.newest(&t.me, self.table, id) else {
            panic!("the row is there")
        };
        let xid = t.xid();
        let locked = t
            .work
            .lock(self.session, &t.me, self.table, id, seen, strength, xid)
            .unwrap();
        assert!(
            matches!(locked, Locked::Done | Locked::Busy(_)),
            "{locked:?}"
        );
    }

    /// Another transaction refers to a committed row.
    fn refer(&mut self) -> Option<(Me, Transaction)> {
        let committed = self.committed.clone();
        let (id, before) = self.some_row(&committed)?;
        let me = self.world.begin();
        let mut work = Transaction::new();
        let snapshot = me.snapshot(0);
        let seen = self.session.visible(self.table, id, &snapshot).unwrap();
        assert_eq!(row(seen.body()), before);
        let strength = LockStrength::KeyShare;
        let xid = Xid(me.top);
        let locked = work.lock(self.session, &me, self.table, id, seen, strength, xid);
        assert!(
            matches!(locked, Ok(Locked::Done | Locked::Busy(_))),
            "{locked:?}"
        );
        drop(snapshot);
        Some((me, work))
    }

    fn definitions(&mut self, t: &mut Work) {
        t.has_definitions = true;
        let xid = t.xid();
        if let Some(oid) = t.now.unique {
            let dropped = t.work.drop_index(self.session, &t.me, self.table, oid, xid);
            assert!(dropped.unwrap());
            t.now.unique = None;
            t.now.indexes.remove(&oid);
            return;
        }
        let oid = self.next_index;
        self.next_index += 1;
        let keys: BTreeSet<i32> = t.now.rows.values().map(|row| row.a).collect();
        let built = t
            .work
            .create_index(self.session, &t.me, self.table, &unique_on_a(oid), xid)
            .unwrap();
        match built {
            Build::Duplicate { .. } => assert!(keys.len() < t.now.rows.len()),
            _ => {
                assert_eq!(keys.len(), t.now.rows.len());
                t.now.unique = Some(oid);
                t.now.indexes.insert(oid);
            }
        }
    }

    fn rows<S: mot_engine::Snapshot>(&self, snapshot: &S) -> BTreeMap<RowId, Row> {
        (0..self.table.row_ids_end().0)
            .filter_map(|id| {
                let seen = self.session.visible(self.table, RowId(id), snapshot)?;
                Some((RowId(id), row(seen.body())))
            })
            .collect()
    }

    /// The transaction sees its rows, others the committed ones; each key is found, or is not.
    fn sees(&mut self, t: &Work) {
        let mine = t.me.snapshot(t.cid + 1);
        assert_eq!(self.rows(&mine), t.now.rows);
        let others = reader(&self.world).snapshot(0);
        assert_eq!(self.rows(&others), self.committed.rows);
        for a in 0..KEYS as i32 {
            let new = Row { a, b: 0, c: None };
            let probed = t
                .work
                .probe(self.session, &t.me, self.table, None, &formed(new));
            let expected = Self::is_duplicate(&t.now, None, new);
            match probed.unwrap() {
                Entered::Done => assert!(!expected, "{a} was not found"),
                Entered::Duplicate(_) => assert!(expected, "{a} was found"),
                Entered::Busy(..) => panic!("nobody else has keys"),
            }
        }
    }

    fn sweep(&mut self) {
        common::sweep(self.session, &self.world, self.table);
        for (snapshot, expected) in &self.old {
            assert_eq!(&self.rows(snapshot), expected, "of an old snapshot");
        }
    }

    fn transaction(&mut self) {
        let mut t = self.begin();
        let mut others: Vec<(Me, Transaction)> = Vec::new();
        for _ in 0..1 + self.random.below(STEPS) {
            match self.random.below(24) {
                0..=2 => {
                    let new = random_row(&mut self.random);
                    self.insert(&mut t, new);
                }
                3..=9 => self.update(&mut t),
                10 => {
                    self.delete(&mut t);
                }
                11 => self.churn(&mut t),
                12 | 13 => self.lock_own(&mut t),
                14 => others.extend(self.refer()),
                15 => {
                    if let Some((me, mut work)) = others.pop() {
                        me.end(Fate::Committed);
                        work.commit(self.session);
                    }
                }
                16 | 17 => t.savepoint(),
                18 => {
                    if t.open.len() > 1 {
                        t.release();
                    }
                }
                19 | 20 => {
                    if t.open.len() > 1 {
                        self.roll_back_to(&mut t);
                    }
                }
                21 => self.sweep(),
                22 => {
                    if self.random.one_in(8) {
                        self.change_often(&mut t);
                    }
                    if self.random.one_in(4) {
                        self.definitions(&mut t);
                    }
                }
                _ => self.sees(&t),
            }
        }
        self.sees(&t);
        self.end(t);
        for (me, mut work) in others {
            me.end(Fate::Aborted);
            work.abort(self.session);
        }
    }

    fn end(&mut self, mut t: Work) {
        if self.old.len() > 3 {
            let at = self.random.below(self.old.len() as u64) as usize;
            self.old.swap_remove(at);
        }
        if self.random.one_in(3) {
            let snapshot = reader(&self.world).snapshot(0);
            self.old.push((snapshot, self.committed.rows.clone()));
        }
        while t.open.len() > 1 {
            t.release();
        }
        let refused = self.refused();
        let session = self.session;
        let commits = !self.random.one_in(3);
        let fate = if commits {
            Fate::Committed
        } else {
            Fate::Aborted
        };
        if commits || self.random.one_in(2) {
            let logged = t.work.log(session, &mut common::Positions::new());
            logged.unwrap();
        }
        let prepares = !t.has_definitions && commits && self.random.one_in(3);
        if prepares {
            no_memory::with(refused, || t.work.give_up(session));
            let ends_well = self.random.one_in(2);
            t.me.end(if ends_well { fate } else { Fate::Aborted });
            if !ends_well {
                self.sweep();
                return;
            }
        } else {
            t.me.end(fate);
            no_memory::with(refused, || match commits {
                true => t.work.commit(session),
                false => t.work.abort(session),
            });
        }
        if commits {
            self.committed = t.now;
        }
    }

    fn check(&mut self) {
        let me = reader(&self.world);
        common::check(self.session, self.table, &me);
        let found: BTreeSet<u32> = self
            .session
            .indexes(self.table, &me)
            .iter()
            .map(|index| index.relation_oid())
            .collect();
        assert_eq!(found, self.committed.indexes);
    }
}

fn one(seed: u64) {
    let (_region, engine) = common::engine(64 << 20);
    let session = engine.join().unwrap();
    let mut place = Place::new(&session, seed);
    for _ in 0..TRANSACTIONS {
        place.transaction();
        place.check();
    }
    place.old.clear();
    place.sweep();
    place.sweep();
    place.check();
    let report = common::check(&session, place.table, &reader(&place.world));
    let rows = place.committed.rows.len() as u64;
    assert_eq!((report.rows, report.versions), (rows, rows));
    let outside = place.committed.rows.values().filter(|row| row.c.is_none());
    let all = rows * place.committed.indexes.len() as u64;
    assert_eq!(report.entries, all - outside.count() as u64);
    let table = place.table;
    let world = place.world.clone();
    drop(place);
    drop(session);
    // The session's row ids are given back: none is lost.
    let report = common::check(&engine.join().unwrap(), table, &reader(&world));
    // What was taken of a segment that nobody needed yet is not there to be given back: they end at
    // powers of two.
    let row_ids = table.row_ids_end().0;
    let kept = report.row_ids_free + rows;
    assert!(
        kept == row_ids || (kept < row_ids && kept.is_power_of_two()),
        "{kept} of {row_ids}"
    );
}

#[test]
fn rows_are_what_they_should_be() {
    let seeds = match std::env::var("MOT_TEST_SEED") {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => (1..=SEEDS).collect(),
    };
    for seed in seeds {
        println!("MOT_TEST_SEED={seed}");
        one(seed);
    }
}
