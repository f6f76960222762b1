//! Rows that a transaction inserts into tables that it has made: they take no memory of its
//! process, and commit, log, savepoints and PREPARE find each of them. `MOT_TEST_SEED=n` repeats
//! one history.
#![cfg(debug_assertions)]

mod common;

use common::{Fate, Me, Random, Row, Wal, World, body, check, definition, engine, reader, row};
use mot_engine::recovery::{Replayer, finish_beside_prepared};
use mot_engine::{
    CommandId, Entered, Log, Lsn, Newest, RelationKey, RowId, Session, State, TableRef,
    Transaction, VersionRef, Written, Xid,
};
use std::collections::{BTreeMap, BTreeSet};

const SEEDS: u64 = 200;
const STEPS: u64 = 80;
/// Names of tables; each may be made, dropped, and made again.
const NAMES: u32 = 3;

/// Rows by table: the values of the unique column.
type Rows = BTreeMap<u32, BTreeSet<i32>>;

fn key(name: u32) -> RelationKey {
    RelationKey::of_file(1, 0, 100 + name)
}

/// The rows that are there for `clock`, of all tables, each of which is sound.
fn rows_of(session: &Session, clock: &Me) -> Rows {
    let mut found = Rows::new();
    for name in 0..NAMES {
        let Some(table) = session.find_table(key(name), clock) else {
            continue;
        };
        check(session, table, clock);
        let row_ids = (0..table.row_ids_end().0).map(RowId);
        let live = row_ids.filter_map(|row_id| match session.newest(clock, table, row_id) {
            Newest::Live(version) => Some(row(version.body()).a),
            _ => None,
        });
        found.insert(name, live.collect());
    }
    found
}

/// A transaction under way, beside what is to be there.
struct Work<'a> {
    session: &'a Session,
    me: Me,
    work: Transaction,
    /// Ids of the open levels, and what was there when they began.
    open: Vec<(u64, Rows)>,
    now: Rows,
    cid: u32,
    next: i32,
}

impl Work<'_> {
    fn xid(&self) -> Xid {
        Xid(self.open.last().expect("the top level is open").0)
    }

    fn level(&mut self) {
        self.work.set_level(self.open.len() as i32).unwrap();
    }

    fn table(&self, name: u32) -> TableRef {
        self.session.find_table(key(name), &self.me).unwrap()
    }

    fn some_table(&self, random: &mut Random) -> Option<u32> {
        let names: Vec<u32> = self.now.keys().copied().collect();
        (!names.is_empty()).then(|| names[random.below(names.len() as u64) as usize])
    }

    fn make(&mut self, name: u32) {
        let xid = self.xid();
        let made = self.work.create_table(self.session, key(name), xid);
        let index = definition(200 + name, true, &[(1, false)]);
        self.work
            .create_index(self.session, &self.me, made.unwrap(), &index, xid)
            .unwrap();
        self.now.insert(name, BTreeSet::new());
    }

    fn insert(&mut self, name: u32, a: i32) -> bool {
        let (table, xid) = (self.table(name), self.xid());
        let new = body(Row { a, b: 0, c: None });
        let cid = CommandId(self.cid);
        let (row_id, version) = self
            .work
            .insert(self.session, table, &new, xid, cid)
            .unwrap();
        let entered = self
            .work
            .enter(self.session, &self.me, table, row_id, version)
            .unwrap();
        match entered {
            Entered::Done => {}
            Entered::Duplicate(_) => {
                let taken_back = self
                    .work
                    .retract_insert(self.session, table, row_id, version);
                assert!(taken_back);
                return false;
            }
            Entered::Busy(xid, _) => panic!("{xid:?} is at work in a table of ours"),
        }
        assert!(self.now.get_mut(&name).unwrap().insert(a));
        true
    }

    /// Changes or deletes a row.
    fn change(&mut self, name: u32, random: &mut Random) {
        let table = self.table(name);
        let live: Vec<_> = (0..table.row_ids_end().0)
            .map(RowId)
            .filter_map(
                |row_id| match self.session.newest(&self.me, table, row_id) {
                    Newest::Live(version) => Some((row_id, version)),
                    _ => None,
                },
            )
            .collect();
        if live.is_empty() {
            return;
        }
        let (row_id, seen) = live[random.below(live.len() as u64) as usize];
        let before = row(seen.body()).a;
        let (xid, cid) = (self.xid(), CommandId(self.cid));
        self.now.get_mut(&name).unwrap().remove(&before);
        let written = if random.below(2) == 0 {
            self.work
                .delete(self.session, &self.me, table, row_id, seen, xid, cid)
                .unwrap()
        } else {
            self.next += 1;
            let a = self.next;
            self.now.get_mut(&name).unwrap().insert(a);
            let new = body(Row { a, b: 1, c: None });
            let written = self
                .work
                .update(self.session, &self.me, table, row_id, seen, &new, xid, cid)
                .unwrap();
            if let Written::Done(version) = written {
                let entered = self
                    .work
                    .enter(self.session, &self.me, table, row_id, version)
                    .unwrap();
                assert_eq!(entered, Entered::Done);
            }
            written
        };
        assert!(matches!(written, Written::Done(_)), "{written:?}");
    }

    fn step(&mut self, random: &mut Random) {
        self.cid += 1;
        match random.below(20) {
            0 => {
                let name = random.below(u64::from(NAMES)) as u32;
                if !self.now.contains_key(&name) {
                    self.make(name);
                }
            }
            1 => {
                if let Some(name) = self.some_table(random) {
                    let (table, xid) = (self.table(name), self.xid());
                    match random.below(2) {
                        0 => {
                            self.work.drop_table(self.session, table, xid).unwrap();
                            self.now.remove(&name);
                        }
                        _ => {
                            self.work
                                .truncate_table(self.session, &self.me, table, xid)
                                .unwrap();
                            self.now.insert(name, BTreeSet::new());
                        }
                    }
                }
            }
            2 | 3 => {
                let xid = self.me.savepoint();
                self.open.push((xid, self.now.clone()));
                self.level();
            }
            4 if self.open.len() > 1 => {
                let level = self.open.len() as i32;
                let (xid, _) = self.open.pop().unwrap();
                self.me.adopt(xid, self.open.last().unwrap().0);
                self.work.savepoint_commit(level);
                self.level();
            }
            5 if self.open.len() > 1 => {
                let level = self.open.len() as i32;
                let (xid, before) = self.open.pop().unwrap();
                self.me.abort_one(xid);
                self.work.savepoint_abort(self.session, level);
                self.now = before;
                self.level();
            }
            6 | 7 => {
                if let Some(name) = self.some_table(random) {
                    self.change(name, random);
                }
            }
            8 => {
                // A key that is there.
                if let Some(name) = self.some_table(random)
                    && let Some(a) = self.now[&name].first().copied()
                {
                    assert!(!self.insert(name, a));
                }
            }
            _ => {
                if let Some(name) = self.some_table(random) {
                    for _ in 0..=random.below(4) {
                        self.next += 1;
                        assert!(self.insert(name, self.next));
                    }
                }
            }
        }
    }
}

/// What a server has that replays the log alone.
fn replayed(world: &World, wal: &Wal) -> Rows {
    let (_region, engine) = engine(64 << 20);
    let session = engine.join_for_recovery().unwrap();
    let mut replayer = Replayer::new(1);
    for (lsn, xid, record) in &wal.records {
        replayer.apply(&session, record, *lsn, *xid).unwrap();
    }
    engine.set_state(State::Ready);
    let clock = reader(world);
    let open = world.horizon()..Xid(world.next());
    finish_beside_prepared(&session, &clock, open, 2).unwrap();
    rows_of(&session, &clock)
}

fn history(seed: u64) {
    let mut random = Random(seed | 1);
    let (_region, engine) = engine(64 << 20);
    engine.set_state(State::Ready);
    let session = engine.join().unwrap();
    let world = World::new();
    let mut wal = Wal::default();
    let mut committed = Rows::new();
    let mut next = 0;
    for _ in 0..4 {
        let me = world.begin();
        let mut work = Work {
            session: &session,
            open: vec![(me.top, committed.clone())],
            me: me.clone(),
            work: Transaction::new(),
            now: committed.clone(),
            cid: 0,
            next,
        };
        work.level();
        for _ in 0..STEPS {
            work.step(&mut random);
            assert_eq!(rows_of(&session, &me), work.now, "seed {seed}");
        }
        while work.open.len() > 1 {
            let level = work.open.len() as i32;
            let (xid, _) = work.open.pop().unwrap();
            me.adopt(xid, work.open.last().unwrap().0);
            work.work.savepoint_commit(level);
        }
        next = work.next;
        wal.xid = me.top;
        let commits = random.below(4) > 0;
        let is_logged = random.below(4) > 0 || commits;
        if is_logged {
            work.work.log(&session, &mut wal).unwrap();
        }
        let fate = match commits {
            true => Fate::Committed,
            false => Fate::Aborted,
        };
        let is_prepared = is_logged && random.below(3) == 0;
        if is_prepared {
            work.work.give_up(&session);
            me.end(fate);
        } else {
            me.end(fate);
            match fate {
                Fate::Committed => work.work.commit(&session),
                _ => work.work.abort(&session),
            }
        }
        if commits {
            committed = work.now;
        }
        let clock = reader(&world);
        assert_eq!(rows_of(&session, &clock), committed, "seed {seed}");
        session.resolve_given_up(&clock);
        for (name, rows) in &committed {
            let table = session.find_table(key(*name), &clock).unwrap();
            // What was prepared and rolled back is counted until then.
            common::sweep(&session, &world, table);
            assert_eq!(table.row_count_estimate(), rows.len() as u64, "seed {seed}");
            let bytes = table
                .counters()
                .row_bytes
                .load(std::sync::atomic::Ordering::Relaxed);
            assert!(
                rows.is_empty() == (bytes == 0),
                "seed {seed}: {bytes} bytes"
            );
        }
        assert_eq!(replayed(&world, &wal), committed, "seed {seed}");
    }
}

#[test]
fn random_histories_end_as_a_map_says_here_and_where_the_log_is_replayed() {
    if let Ok(seed) = std::env::var("MOT_TEST_SEED") {
        return history(seed.parse().unwrap());
    }
    (1..=SEEDS).for_each(|seed| history(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
}

/// A transaction under way that has made a table at a nest level.
struct Filling<'a> {
    session: &'a Session,
    me: Me,
    work: Transaction,
    xid: Xid,
    table: TableRef,
}

impl Filling<'_> {
    fn insert(&mut self, body: &[u8], xid: Xid) -> (RowId, VersionRef) {
        let (session, table) = (self.session, self.table);
        let inserted = self.work.insert(session, table, body, xid, CommandId(0));
        inserted.unwrap()
    }

    fn commit(mut self) {
        self.me.end(Fate::Committed);
        self.work.commit(self.session);
    }
}

/// Runs a test in an arena of so many bytes.
fn filling(bytes: usize, level: i32, test: impl FnOnce(Filling<'_>)) {
    let (_region, engine) = engine(bytes);
    engine.set_state(State::Ready);
    let session = &engine.join().unwrap();
    let me = World::new().begin();
    let xid = Xid(if level > 1 { me.savepoint() } else { me.top });
    let mut work = Transaction::new();
    work.set_level(level).unwrap();
    let table = work.create_table(session, key(0), xid).unwrap();
    test(Filling {
        session,
        me,
        work,
        xid,
        table,
    });
}

fn row_of(a: i32) -> Vec<u8> {
    body(Row { a, b: 0, c: None })
}

#[test]
fn what_a_savepoint_takes_back_of_a_hot_row_is_known_no_more() {
    filling(64 << 20, 2, |mut filling| {
        let xid = filling.xid;
        let (row_id, mut seen) = filling.insert(&row_of(0), xid);
        let Filling {
            session,
            me,
            mut work,
            table,
            ..
        } = filling;
        for cid in 1..200 {
            let cid = CommandId(cid);
            let written = work.update(session, &me, table, row_id, seen, &row_of(0), xid, cid);
            let Written::Done(version) = written.unwrap() else {
                panic!("nobody else knows the row")
            };
            seen = version;
        }
        assert!(work.own_row(table, row_id).is_some());
        me.abort_one(xid.0);
        work.savepoint_abort(session, 2);
        assert!(work.own_row(table, row_id).is_none());
        me.end(Fate::Aborted);
        work.abort(session);
    });
}

#[test]
fn a_load_into_a_table_of_its_own_takes_no_memory_of_the_process() {
    filling(64 << 20, 1, |mut filling| {
        let (xid, table) = (filling.xid, filling.table);
        for a in 0..100_000 {
            filling.insert(&row_of(a), xid);
        }
        let operations = filling.work.len();
        assert!(operations <= 2, "{operations} operations");
        // In a savepoint each row may have to be taken back alone.
        filling.work.set_level(2).unwrap();
        let inner = Xid(filling.me.savepoint());
        for a in 0..10 {
            filling.insert(&row_of(a), inner);
        }
        let operations = filling.work.len();
        assert!(operations >= 11, "{operations} operations");
        let logged = filling.work.log(filling.session, &mut Wal::default());
        assert!(logged.unwrap() > Lsn::NONE);
        filling.commit();
        assert_eq!(table.row_count_estimate(), 100_010);
    });
}

/// Counts records, each of which is appended under a hold of its own.
#[derive(Default)]
struct Held {
    wal: Wal,
    depth: u32,
    records: u32,
    holds: u32,
}

impl Log for Held {
    fn append(&mut self, record: &[u8]) -> Lsn {
        assert_eq!(self.depth, 1, "a record outside of its hold");
        self.records += 1;
        self.wal.append(record)
    }

    fn held<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        self.depth += 1;
        self.holds += 1;
        let done = work(self);
        self.depth -= 1;
        done
    }
}

#[test]
fn no_checkpoint_waits_for_more_than_a_record_of_a_load() {
    filling(256 << 20, 1, |mut filling| {
        let xid = filling.xid;
        let mut long = row_of(0);
        long.resize(4000, 1);
        for _ in 0..5000 {
            filling.insert(&long, xid);
        }
        let mut log = Held::default();
        filling.work.log(filling.session, &mut log).unwrap();
        assert!(log.records > 3, "{} records", log.records);
        assert_eq!(log.holds, log.records);
        filling.commit();
    });
}
