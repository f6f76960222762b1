//! Prepared transactions that create, drop and truncate: nobody sees it before they are ended,
//! everybody at once afterwards, and whoever sweeps resolves it, here, on a standby and after a
//! restart.

mod common;

use common::{
    Fate, Me, Row, TABLE, Wal, World, body, check, definition, engine, reader, row, sweep,
};
use mot_engine::recovery::{AppliedHorizon, Replayer, finish_beside_prepared, resolve_definitions};
use mot_engine::transaction::log_and_free_pending;
use mot_engine::{
    Build, Clock, CommandId, Entered, RelationKey, RowScan, Session, State, TableRef, Transaction,
    Xid,
};

const OTHER: RelationKey = RelationKey::of_file(1, 0, 200);

/// What somebody finds of a relation: its rows, and the oids of its indexes.
type Found = Option<(Vec<i32>, Vec<u32>)>;

/// What somebody finds of both relations.
fn found(s: &Session, me: &Me) -> [Found; 2] {
    [TABLE, OTHER].map(|key| {
        let table = s.find_table(key, me)?;
        check(s, table, me);
        let snapshot = me.snapshot(9);
        let mut scan = RowScan::new(table);
        let mut rows: Vec<i32> = std::iter::from_fn(|| scan.next(s, &snapshot))
            .map(|(_, version)| row(version.body()).a)
            .collect();
        rows.sort_unstable();
        let mut oids = s.index_oids(table, me);
        oids.sort_unstable();
        Some((rows, oids))
    })
}

struct Server<'a> {
    s: &'a Session,
    world: World,
    wal: Wal,
}

impl<'a> Server<'a> {
    /// A table with three rows and two indexes.
    fn new(s: &'a Session) -> Server<'a> {
        let mut server = Server {
            s,
            world: World::new(),
            wal: Wal::default(),
        };
        let me = server.world.begin();
        let mut t = Transaction::new();
        server.create(&mut t, &me, TABLE);
        for a in 1..=3 {
            server.insert(&mut t, &me, TABLE, a);
        }
        server.log(&mut t, &me);
        me.end(Fate::Committed);
        t.commit(s);
        server
    }

    fn table(&self, me: &Me, key: RelationKey) -> TableRef {
        self.s.find_table(key, me).expect("exists")
    }

    fn create(&self, t: &mut Transaction, me: &Me, key: RelationKey) {
        t.create_table(self.s, key, Xid(me.top)).unwrap();
        self.create_index(t, me, key, 101, 1);
        self.create_index(t, me, key, 102, 2);
    }

    fn create_index(&self, t: &mut Transaction, me: &Me, key: RelationKey, oid: u32, column: u16) {
        let table = self.table(me, key);
        // By a subtransaction.
        let xid = Xid(me.savepoint());
        let index = definition(oid, column == 1, &[(column, false)]);
        let built = t.create_index(self.s, me, table, &index, xid).unwrap();
        assert!(matches!(built, Build::Done(_)));
    }

    fn insert(&self, t: &mut Transaction, me: &Me, key: RelationKey, a: i32) {
        let (s, table) = (self.s, self.table(me, key));
        let new = body(Row { a, b: a, c: None });
        let (row_id, version) = t.insert(s, table, &new, Xid(me.top), CommandId(0)).unwrap();
        let entered = t.enter(s, me, table, row_id, version).unwrap();
        assert_eq!(entered, Entered::Done);
    }

    fn log(&mut self, t: &mut Transaction, me: &Me) {
        self.wal.xid = me.top;
        t.log(self.s, &mut self.wal).unwrap();
    }

    /// A transaction that does `case`, and is prepared.
    fn prepare(&mut self, case: usize) -> Me {
        let (s, me) = (self.s, self.world.begin());
        let mut t = Transaction::new();
        let xid = Xid(me.top);
        let table = s.find_table(TABLE, &me);
        match case {
            0 => {
                self.create(&mut t, &me, OTHER);
                self.insert(&mut t, &me, OTHER, 7);
            }
            1 => t.drop_table(s, table.expect("exists"), xid).unwrap(),
            2 => {
                self.insert(&mut t, &me, TABLE, 8);
                t.truncate_table(s, &me, table.expect("exists"), xid)
                    .unwrap();
                self.insert(&mut t, &me, TABLE, 7);
            }
            3 => {
                let table = table.expect("exists");
                assert!(t.drop_index(s, &me, table, 102, xid).unwrap());
                self.create_index(&mut t, &me, TABLE, 103, 2);
            }
            4 => {
                self.create(&mut t, &me, OTHER);
                self.insert(&mut t, &me, OTHER, 7);
                t.drop_table(s, self.table(&me, OTHER), xid).unwrap();
                self.insert(&mut t, &me, TABLE, 7);
            }
            // Twice, and a savepoint in between is rolled back.
            _ => {
                let first = t
                    .truncate_table(s, &me, table.expect("exists"), xid)
                    .unwrap();
                self.insert(&mut t, &me, TABLE, 6);
                t.set_level(2).unwrap();
                let sub = me.savepoint();
                t.truncate_table(s, &me, first, Xid(sub)).unwrap();
                me.abort_one(sub);
                t.savepoint_abort(s, 2);
                t.set_level(1).unwrap();
                t.truncate_table(s, &me, first, xid).unwrap();
                self.insert(&mut t, &me, TABLE, 7);
            }
        }
        self.log(&mut t, &me);
        t.give_up(s);
        assert!(t.is_empty());
        me
    }
}

const CASES: usize = 6;

fn before() -> [Found; 2] {
    [Some((vec![1, 2, 3], vec![101, 102])), None]
}

fn after(case: usize) -> [Found; 2] {
    let [table, _] = before();
    let both = vec![101, 102];
    match case {
        0 => [table, Some((vec![7], both))],
        1 => [None, None],
        3 => [Some((vec![1, 2, 3], vec![101, 103])), None],
        4 => [Some((vec![1, 2, 3, 7], both)), None],
        _ => [Some((vec![7], both)), None],
    }
}

/// Sweeps, resolves and frees as the reclaimer does, and answers how much it has freed.
fn reclaim(s: &Session, world: &World, wal: &mut Wal) -> usize {
    let me = reader(world);
    wal.xid = 0;
    s.resolve_given_up(&me);
    let freed = log_and_free_pending(s, wal, || ()).unwrap();
    for walk in s.tables() {
        sweep(s, world, walk.table());
    }
    freed
}

/// Everything is resolved: nobody is asked about any transaction.
fn is_resolved(s: &Session) {
    struct Silent;
    impl Clock for Silent {
        fn is_current(&self, _: Xid) -> bool {
            panic!("asked about a transaction")
        }
        fn is_in_progress(&self, _: Xid) -> bool {
            panic!("asked about a transaction")
        }
        fn did_commit(&self, _: Xid) -> bool {
            panic!("asked about a transaction")
        }
    }
    for key in [TABLE, OTHER] {
        if let Some(table) = s.find_table(key, &Silent) {
            s.index_oids(table, &Silent);
        }
    }
}

/// Nobody runs: what is known at the end of a recovery.
struct Nobody<'a>(&'a World);

impl Clock for Nobody<'_> {
    fn is_current(&self, _: Xid) -> bool {
        false
    }
    fn is_in_progress(&self, _: Xid) -> bool {
        false
    }
    fn did_commit(&self, xid: Xid) -> bool {
        self.0.fate(xid.0) == Fate::Committed
    }
}

/// Replays the log, as a standby that is read, or nobody reads (`has_readers`), and ends recovery
/// with what may be prepared from `open_from` on.
fn restarted(
    wal: &Wal,
    world: &World,
    has_readers: bool,
    open_from: u64,
    meanwhile: impl FnOnce(&Session),
) {
    let (_region, engine) = engine(16 << 20);
    engine.set_state(State::Replaying);
    let s = &engine.join().unwrap();
    let mut replayer = Replayer::new(1);
    replayer.set_has_readers(has_readers);
    for (lsn, xid, record) in &wal.records {
        replayer.apply(s, record, *lsn, *xid).unwrap();
    }
    if has_readers {
        // As of the standby: its horizon is the oldest that runs.
        let mut applied = AppliedHorizon::default();
        applied.raise(engine, world.horizon());
        resolve_definitions(s, &reader(world), applied);
    }
    let open = Xid(open_from)..Xid(world.next());
    finish_beside_prepared(s, &Nobody(world), open, 1).unwrap();
    engine.set_state(State::Ready);
    meanwhile(s);
}

#[test]
fn definitions_wait_for_the_end() {
    for case in 0..CASES {
        for fate in [Fate::Committed, Fate::Aborted] {
            let what = format!("case {case}, {fate:?}");
            let (_region, engine) = engine(16 << 20);
            let session = engine.join().unwrap();
            let mut server = Server::new(&session);
            let (s, world) = (server.s, server.world.clone());
            let me = server.prepare(case);
            let other = world.begin();
            // What its savepoint left is gone at once.
            let freed = reclaim(s, &world, &mut server.wal);
            assert_eq!(freed > 0, case == 5, "{what}");
            assert_eq!(found(s, &reader(&world)), before(), "{what}: prepared");
            assert_eq!(reclaim(s, &world, &mut server.wal), 0, "{what}");
            let expected = match fate {
                Fate::Committed => after(case),
                _ => before(),
            };
            // Restarts before the end, which comes then; the other one was lost.
            let undecided = server.wal.records.len();
            for has_readers in [false, true] {
                let again = World::new();
                let ids = world.next() - again.next();
                let begun: Vec<Me> = (0..ids).map(|_| again.begin()).collect();
                for one in begun.iter().filter(|one| one.top != me.top) {
                    // Its subtransactions share its fate; what came before committed.
                    let is_mine = one.top > me.top;
                    if !is_mine {
                        one.end(Fate::Committed);
                    } else if one.top == other.top {
                        one.end(Fate::Aborted);
                    }
                }
                restarted(&server.wal, &again, has_readers, me.top, |s| {
                    assert_eq!(found(s, &reader(&again)), before(), "{what}: restarted");
                    let mut wal = Wal {
                        end: server.wal.end,
                        ..Wal::default()
                    };
                    assert_eq!(reclaim(s, &again, &mut wal), 0, "{what}: restarted");
                    for one in begun.iter().filter(|one| one.top >= me.top) {
                        one.end(fate);
                    }
                    assert_eq!(found(s, &reader(&again)), expected, "{what}: ended");
                    reclaim(s, &again, &mut wal);
                    is_resolved(s);
                    assert_eq!(found(s, &reader(&again)), expected, "{what}: resolved");
                });
            }
            me.end(fate);
            assert_eq!(found(s, &reader(&world)), expected, "{what}: ended");
            reclaim(s, &world, &mut server.wal);
            is_resolved(s);
            assert_eq!(found(s, &reader(&world)), expected, "{what}: resolved");
            assert_eq!(s.resolve_given_up(&reader(&world)), 0);
            other.end(Fate::Aborted);
            // Restarts behind the end, before and behind what the reclaimer logged.
            for records in [undecided, server.wal.records.len()] {
                let wal = Wal {
                    records: server.wal.records[..records].to_vec(),
                    ..Wal::default()
                };
                for has_readers in [false, true] {
                    restarted(&wal, &world, has_readers, u64::MAX, |s| {
                        is_resolved(s);
                        assert_eq!(found(s, &reader(&world)), expected, "{what}: replayed");
                    });
                }
            }
        }
    }
}

/// A drop that was rolled back, and is not resolved: another session drops the table meanwhile, and
/// alone resolves that.
#[test]
fn who_drops_behind_a_rolled_back_drop_resolves_it() {
    for fate in [Fate::Committed, Fate::Aborted] {
        let (_region, engine) = engine(16 << 20);
        let session = engine.join().unwrap();
        let mut server = Server::new(&session);
        let (s, world) = (server.s, server.world.clone());
        let prepared = server.prepare(1);
        prepared.end(Fate::Aborted);
        let me = world.begin();
        let mut t = Transaction::new();
        let table = server.table(&me, TABLE);
        t.drop_table(s, table, Xid(me.top)).unwrap();
        s.resolve_given_up(&reader(&world));
        server.log(&mut t, &me);
        me.end(fate);
        // Between the outcome and the session's callback.
        assert_eq!(reclaim(s, &world, &mut server.wal), 0);
        match fate {
            Fate::Committed => t.commit(s),
            _ => t.abort(s),
        }
        let freed = reclaim(s, &world, &mut server.wal);
        assert_eq!(freed, usize::from(fate == Fate::Committed));
        is_resolved(s);
        let expected = match fate {
            Fate::Committed => [None, None],
            _ => before(),
        };
        assert_eq!(found(s, &reader(&world)), expected);
    }
}

/// Two at a time, ended in the other order.
#[test]
fn the_younger_one_is_ended_first() {
    let (_region, engine) = engine(16 << 20);
    let session = engine.join().unwrap();
    let mut server = Server::new(&session);
    let (s, world) = (server.s, server.world.clone());
    let used = engine.memory().arena_bytes_used();
    let older = server.prepare(0);
    let younger = server.prepare(2);
    younger.end(Fate::Committed);
    // The older one holds nothing of it back.
    assert_eq!(reclaim(s, &world, &mut server.wal), 1);
    let [table, _] = after(2);
    assert_eq!(found(s, &reader(&world)), [table.clone(), None]);
    older.end(Fate::Aborted);
    assert_eq!(reclaim(s, &world, &mut server.wal), 1);
    is_resolved(s);
    assert_eq!(found(s, &reader(&world)), [table, None]);
    s.memory().collect_all(|| ());
    let grown = engine.memory().arena_bytes_used().saturating_sub(used);
    assert!(grown < 1 << 20, "{grown} bytes");
}
