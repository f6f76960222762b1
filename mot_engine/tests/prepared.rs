//! Prepared transactions: nobody's work any more, resolved by the clock, cleaned up by whoever
//! meets it. Counters stay exact, rows stay reachable, what was rolled back goes, here, on a
//! standby and after a restart.

mod common;

use common::{
    Fate, Me, Row, TABLE, Wal, World, body, check, definition, engine, reader, row, sweep,
};
use mot_engine::log::{Record, RowLock};
use mot_engine::recovery::{Replayer, finish_beside_prepared};
use mot_engine::{
    Build, Clock, CommandId, Entered, LockStrength, Locked, Newest, RowId, RowScan, Session, State,
    TableRef, Transaction, VersionRef, Written, Xid,
};
use std::collections::BTreeMap;

/// A server: one session, one log, one table with a unique index on `a` and another index on `b`.
struct Server<'a> {
    s: &'a Session,
    world: World,
    wal: Wal,
    table: TableRef,
}

impl<'a> Server<'a> {
    fn new(s: &'a Session) -> Server<'a> {
        let world = World::new();
        let mut wal = Wal::default();
        let me = world.begin();
        let xid = Xid(me.top);
        let mut t = Transaction::new();
        let table = t.create_table(s, TABLE, xid).unwrap();
        for index in [
            definition(101, true, &[(1, false)]),
            definition(102, false, &[(2, false)]),
        ] {
            let build = t.create_index(s, &me, table, &index, xid).unwrap();
            assert!(matches!(build, Build::Done(_)));
        }
        wal.xid = me.top;
        t.log(s, &mut wal).unwrap();
        me.end(Fate::Committed);
        t.commit(s);
        Server {
            s,
            world,
            wal,
            table,
        }
    }

    fn log(&mut self, t: &mut Transaction, me: &Me) {
        self.wal.xid = me.top;
        t.log(self.s, &mut self.wal).unwrap();
    }

    fn insert(&self, me: &Me, t: &mut Transaction, a: i32, b: i32, cid: u32) -> Entered {
        let new = body(Row { a, b, c: None });
        let (row_id, version) = t
            .insert(self.s, self.table, &new, Xid(me.top), CommandId(cid))
            .unwrap();
        let entered = t.enter(self.s, me, self.table, row_id, version).unwrap();
        if entered != Entered::Done {
            t.retract(self.s);
        }
        entered
    }

    fn row_id(&self, a: i32) -> Option<RowId> {
        (0..self.table.row_ids_end().0).map(RowId).find(|row_id| {
            matches!(self.s.newest(&reader(&self.world), self.table, *row_id),
                Newest::Live(version) if row(version.body()).a == a)
        })
    }

    /// What a statement of `me` bases its work on.
    fn seen(&self, me: &Me, row_id: RowId) -> VersionRef {
        if let Newest::Live(seen) = self.s.newest(me, self.table, row_id) {
            return seen;
        }
        let snapshot = me.snapshot(0);
        let mut scan = RowScan::new(self.table);
        std::iter::from_fn(|| scan.next(self.s, &snapshot))
            .find(|(found, _)| *found == row_id)
            .expect("the row is there")
            .1
    }

    /// `to`: None deletes.
    fn change(
        &self,
        me: &Me,
        t: &mut Transaction,
        row_id: RowId,
        to: Option<Row>,
        cid: u32,
    ) -> Written {
        let seen = self.seen(me, row_id);
        let (xid, cid) = (Xid(me.top), CommandId(cid));
        let Some(to) = to else {
            return t
                .delete(self.s, me, self.table, row_id, seen, xid, cid)
                .unwrap();
        };
        let written = t
            .update(self.s, me, self.table, row_id, seen, &body(to), xid, cid)
            .unwrap();
        if let Written::Done(version) = written {
            let entered = t.enter(self.s, me, self.table, row_id, version).unwrap();
            assert_eq!(entered, Entered::Done);
        }
        written
    }

    fn lock(&self, me: &Me, t: &mut Transaction, row_id: RowId, strength: LockStrength) -> Locked {
        let seen = self.seen(me, row_id);
        t.lock(self.s, me, self.table, row_id, seen, strength, Xid(me.top))
            .unwrap()
    }

    fn commit(&mut self, me: Me, mut t: Transaction) {
        self.log(&mut t, &me);
        me.end(Fate::Committed);
        t.commit(self.s);
    }

    fn prepare(&mut self, me: &Me, mut t: Transaction) {
        self.wal.xid = me.top;
        t.log_locks(self.s, Xid(me.top), &mut self.wal).unwrap();
        self.log(&mut t, me);
        t.give_up(self.s);
        assert!(t.is_empty());
    }

    fn rows(&self) -> BTreeMap<i32, i32> {
        rows(self.s, &self.world)
    }
}

fn rows(s: &Session, world: &World) -> BTreeMap<i32, i32> {
    let me = reader(world);
    let table = s.find_table(TABLE, &me).unwrap();
    check(s, table, &me);
    let snapshot = me.snapshot(0);
    let mut scan = RowScan::new(table);
    std::iter::from_fn(|| scan.next(s, &snapshot))
        .map(|(_, version)| row(version.body()))
        .map(|row| (row.a, row.b))
        .collect()
}

fn a_row(a: i32, b: i32) -> Row {
    Row { a, b, c: None }
}

/// What a standby has that replays everything, is promoted, and sweeps. `open_from`: what may be
/// prepared then.
fn promoted(
    wal: &Wal,
    world: &World,
    open_from: u64,
    meanwhile: impl FnOnce(&Session),
) -> BTreeMap<i32, i32> {
    // A standby's counters and rows, before and after its sweeper has come by.
    let streams = |s: &Session| {
        let table = s.find_table(TABLE, &reader(world)).unwrap();
        let streaming = rows(s, world);
        sweep(s, world, table);
        assert_eq!(rows(s, world), streaming);
    };
    recovered(wal, world, open_from, streams, meanwhile)
}

/// As `promoted`, of a server that nobody asks before it has recovered but `streams`.
fn recovered(
    wal: &Wal,
    world: &World,
    open_from: u64,
    streams: impl FnOnce(&Session),
    meanwhile: impl FnOnce(&Session),
) -> BTreeMap<i32, i32> {
    let (_region, engine) = engine(16 << 20);
    engine.set_state(State::Replaying);
    let s = &engine.join().unwrap();
    let mut replayer = Replayer::new(1);
    for (lsn, xid, record) in &wal.records {
        replayer.apply(s, record, *lsn, *xid).unwrap();
    }
    /// Nobody runs: what `EndedClock` says.
    struct Nobody<'a>(&'a World);
    impl mot_engine::Clock for Nobody<'_> {
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
    streams(s);
    let open = Xid(open_from)..Xid(world.next());
    finish_beside_prepared(s, &Nobody(world), open, 1).unwrap();
    engine.set_state(State::Ready);
    meanwhile(s);
    let table = s.find_table(TABLE, &reader(world)).unwrap();
    sweep(s, world, table);
    rows(s, world)
}

#[test]
fn its_rows_are_held_until_it_is_ended() {
    for fate in [Fate::Committed, Fate::Aborted] {
        let (_region, engine) = engine(16 << 20);
        let session = engine.join().unwrap();
        let mut server = Server::new(&session);
        let (me, mut t) = (server.world.begin(), Transaction::new());
        for a in 1..=3 {
            server.insert(&me, &mut t, a, 0, 0);
        }
        server.commit(me, t);
        let [one, two, three] = [1, 2, 3].map(|a| server.row_id(a).unwrap());

        let (me, mut t) = (server.world.begin(), Transaction::new());
        assert_eq!(
            server.lock(&me, &mut t, one, LockStrength::Update),
            Locked::Done
        );
        server.change(&me, &mut t, one, Some(a_row(1, 10)), 0);
        server.change(&me, &mut t, one, Some(a_row(1, 11)), 1);
        server.change(&me, &mut t, two, None, 2);
        server.change(&me, &mut t, three, Some(a_row(33, 3)), 3);
        assert_eq!(server.insert(&me, &mut t, 4, 40, 4), Entered::Done);
        assert_eq!(server.insert(&me, &mut t, 5, 50, 5), Entered::Done);
        let five = (0..server.table.row_ids_end().0).map(RowId).find(|row_id| {
            matches!(server.s.newest(&me, server.table, *row_id), Newest::Live(v) if row(v.body()).a == 5)
        });
        server.change(&me, &mut t, five.unwrap(), None, 6);
        server.prepare(&me, t);
        let before: BTreeMap<_, _> = [(1, 0), (2, 0), (3, 0)].into();
        assert_eq!(server.rows(), before, "nobody sees it yet");

        // Everybody waits for it: at the rows, and at the keys it took and gave up.
        let (other, mut t) = (server.world.begin(), Transaction::new());
        let busy = Xid(me.top);
        for row_id in [one, two, three] {
            assert_eq!(
                server.change(&other, &mut t, row_id, None, 0),
                Written::Busy(busy)
            );
        }
        assert_eq!(
            server.lock(&other, &mut t, one, LockStrength::KeyShare),
            Locked::Busy(busy)
        );
        for key in [2, 3, 33, 4] {
            let entered = server.insert(&other, &mut t, key, 0, 0);
            assert!(matches!(entered, Entered::Busy(by, _) if by == busy));
        }
        sweep(server.s, &server.world, server.table);
        assert_eq!(server.rows(), before, "the sweeper leaves it alone");

        me.end(fate);
        let after: BTreeMap<_, _> = match fate {
            Fate::Committed => [(1, 11), (4, 40), (33, 3)].into(),
            _ => before,
        };
        assert_eq!(server.rows(), after, "{fate:?}: before anybody cleaned up");
        assert_eq!(
            server.lock(&other, &mut t, one, LockStrength::Update),
            Locked::Done
        );
        other.end(Fate::Aborted);
        t.abort(server.s);
        sweep(server.s, &server.world, server.table);
        assert_eq!(server.rows(), after, "{fate:?}: swept");
        let report = check(server.s, server.table, &reader(&server.world));
        assert_eq!(report.versions, 3, "nothing of it is left behind");

        // The next change of each row is against a base that a standby has, too.
        let (me, mut t) = (server.world.begin(), Transaction::new());
        for a in after.keys() {
            let row_id = server.row_id(*a).unwrap();
            server.change(&me, &mut t, row_id, Some(a_row(*a, 7)), 0);
        }
        server.commit(me, t);
        let world = server.world.clone();
        assert_eq!(
            promoted(&server.wal, &world, u64::MAX, |_| ()),
            server.rows()
        );
    }
}

#[test]
fn it_outlives_a_restart() {
    for fate in [Fate::Committed, Fate::Aborted] {
        let (_region, engine) = engine(16 << 20);
        let session = engine.join().unwrap();
        let mut server = Server::new(&session);
        let (me, mut t) = (server.world.begin(), Transaction::new());
        for a in 1..=3 {
            server.insert(&me, &mut t, a, 0, 0);
        }
        server.commit(me, t);
        let [one, two, three] = [1, 2, 3].map(|a| server.row_id(a).unwrap());

        let (me, mut t) = (server.world.begin(), Transaction::new());
        server.change(&me, &mut t, one, Some(a_row(1, 10)), 0);
        server.change(&me, &mut t, two, None, 1);
        server.insert(&me, &mut t, 4, 40, 2);
        let mut open = server.world.begin();
        server.prepare(&me, t);
        // Logged, and lost with the server.
        let mut lost = Transaction::new();
        server.change(&open, &mut lost, three, Some(a_row(3, 30)), 0);
        server.insert(&open, &mut lost, 5, 50, 1);
        server.log(&mut lost, &open);
        open.end(Fate::Aborted);
        lost.abort(server.s);

        let world = server.world.clone();
        let busy = Xid(me.top);
        let found = promoted(&server.wal, &world, me.top, |s| {
            let table = s.find_table(TABLE, &reader(&world)).unwrap();
            let before: BTreeMap<_, _> = [(1, 0), (2, 0), (3, 0)].into();
            assert_eq!(rows(s, &world), before);
            open = world.begin();
            let mut t = Transaction::new();
            let restarted = Server {
                s,
                world: world.clone(),
                wal: Wal::default(),
                table,
            };
            // Whatever it did to the row, nobody gets at it.
            assert_eq!(
                restarted.lock(&open, &mut t, one, LockStrength::KeyShare),
                Locked::Busy(busy)
            );
            assert_eq!(
                restarted.change(&open, &mut t, two, None, 0),
                Written::Busy(busy)
            );
            let entered = restarted.insert(&open, &mut t, 4, 0, 0);
            assert!(matches!(entered, Entered::Busy(by, _) if by == busy));
            // What was lost is in nobody's way.
            assert_eq!(
                restarted.lock(&open, &mut t, three, LockStrength::Update),
                Locked::Done
            );
            open.end(Fate::Aborted);
            t.abort(s);
            me.end(fate);
        });
        let after: BTreeMap<_, _> = match fate {
            Fate::Committed => [(1, 10), (3, 0), (4, 40)].into(),
            _ => [(1, 0), (2, 0), (3, 0)].into(),
        };
        assert_eq!(found, after, "{fate:?}");
    }
}

/// Locks without a change are logged; put back after a restart they hold as before, and go with
/// their transaction.
#[test]
fn bare_row_locks_are_put_back() {
    for fate in [Fate::Committed, Fate::Aborted] {
        let (_region, engine) = engine(16 << 20);
        let session = engine.join().unwrap();
        let mut server = Server::new(&session);
        let (me, mut t) = (server.world.begin(), Transaction::new());
        for a in 1..=4 {
            server.insert(&me, &mut t, a, 0, 0);
        }
        server.commit(me, t);
        let [one, two, three, four] = [1, 2, 3, 4].map(|a| server.row_id(a).unwrap());

        let (me, mut t) = (server.world.begin(), Transaction::new());
        server.lock(&me, &mut t, one, LockStrength::KeyShare);
        server.lock(&me, &mut t, two, LockStrength::Share);
        server.lock(&me, &mut t, two, LockStrength::Update);
        server.lock(&me, &mut t, three, LockStrength::NoKeyUpdate);
        // Held by the change, until that is taken back.
        t.set_level(2).unwrap();
        server.change(&me, &mut t, three, Some(a_row(3, 1)), 0);
        let of = |row_id, strength| RowLock {
            table: server.table.id(),
            strength,
            row_id,
        };
        let mut kept = vec![
            of(one, LockStrength::KeyShare),
            of(two, LockStrength::Share),
            of(two, LockStrength::Update),
        ];
        assert_eq!(locks_of(&server, &mut t, &me), kept);
        t.savepoint_abort(server.s, 2);
        kept.insert(2, of(three, LockStrength::NoKeyUpdate));
        assert_eq!(locks_of(&server, &mut t, &me), kept);
        server.change(&me, &mut t, four, Some(a_row(4, 1)), 1);
        server.prepare(&me, t);
        let kept_by = |s: &Session| s.engine().kept_lock_records();
        // Two were for a look alone. On the server that goes on they are dropped at the end.
        assert_eq!(kept_by(server.s), 3);

        let world = server.world.clone();
        let busy = Xid(me.top);
        promoted(&server.wal, &world, me.top, |s| {
            let table = s.find_table(TABLE, &reader(&world)).unwrap();
            assert_eq!(kept_by(s), 1);
            sweep(s, &world, table);
            let restarted = Server {
                s,
                world: world.clone(),
                wal: Wal::default(),
                table,
            };
            let open = world.begin();
            let mut t = Transaction::new();
            let mut lock = |row_id, strength| restarted.lock(&open, &mut t, row_id, strength);
            assert_eq!(lock(one, LockStrength::Update), Locked::Busy(busy));
            assert_eq!(lock(one, LockStrength::NoKeyUpdate), Locked::Done);
            assert_eq!(lock(two, LockStrength::KeyShare), Locked::Busy(busy));
            assert_eq!(lock(three, LockStrength::Share), Locked::Busy(busy));
            assert_eq!(lock(three, LockStrength::KeyShare), Locked::Done);
            me.end(fate);
            let is_over = |xid: Xid| !reader(&world).is_in_progress(xid);
            assert_eq!(s.drop_ended_locks(is_over).unwrap(), 0);
            sweep(s, &world, table);
            for row_id in [one, two, three, four] {
                assert_eq!(lock(row_id, LockStrength::Update), Locked::Done);
            }
            open.end(Fate::Aborted);
            t.abort(s);
        });
    }
}

/// The row locks that a transaction would log.
fn locks_of(server: &Server<'_>, t: &mut Transaction, me: &Me) -> Vec<RowLock> {
    let mut wal = Wal::default();
    t.log_locks(server.s, Xid(me.top), &mut wal).unwrap();
    let [(_, _, record)] = &wal.records[..] else {
        panic!("one record");
    };
    let Ok(Record::Locks(locks)) = Record::parse(record) else {
        panic!("row locks");
    };
    locks.collect::<Result<_, _>>().unwrap()
}

/// Of a transaction whose id the server does not know any more only rows are left (a
/// subtransaction's, in a checkpoint). The id is given out again.
#[test]
fn what_bears_a_lost_id_is_not_the_next_owners() {
    let (_region, engine) = engine(16 << 20);
    let session = engine.join().unwrap();
    let mut server = Server::new(&session);
    let (me, mut t) = (server.world.begin(), Transaction::new());
    for a in 1..=2 {
        server.insert(&me, &mut t, a, 0, 0);
    }
    server.commit(me, t);
    let [one, two] = [1, 2].map(|a| server.row_id(a).unwrap());

    let (prepared, mut t) = (server.world.begin(), Transaction::new());
    server.change(&prepared, &mut t, one, Some(a_row(1, 10)), 0);
    server.insert(&prepared, &mut t, 3, 30, 1);
    server.prepare(&prepared, t);
    let (lost, mut t) = (server.world.begin(), Transaction::new());
    server.change(&lost, &mut t, two, Some(a_row(2, 20)), 0);
    server.insert(&lost, &mut t, 4, 40, 1);
    server.log(&mut t, &lost);
    // The rows are still there where the log is replayed to, under an id that is not.
    let world = server.world.clone();
    world.lose_from(lost.top);

    let before: BTreeMap<_, _> = [(1, 0), (2, 0)].into();
    let found = recovered(
        &server.wal,
        &world,
        prepared.top,
        |_| (),
        |s| {
            let next = world.begin();
            assert_eq!(next.top, lost.top, "the id is given out again");
            let table = s.find_table(TABLE, &reader(&world)).unwrap();
            assert_eq!(rows(s, &world), before);
            let restarted = Server {
                s,
                world: world.clone(),
                wal: Wal::default(),
                table,
            };
            let mut work = Transaction::new();
            let busy = Written::Busy(Xid(prepared.top));
            assert_eq!(restarted.change(&next, &mut work, one, None, 0), busy);
            let strength = LockStrength::Update;
            assert_eq!(
                restarted.lock(&next, &mut work, two, strength),
                Locked::Done
            );
            assert_eq!(
                restarted.insert(&next, &mut work, 4, 44, 1),
                Entered::Done,
                "the key is free"
            );
            next.end(Fate::Committed);
            work.commit(s);
            let now: BTreeMap<_, _> = [(1, 0), (2, 0), (4, 44)].into();
            assert_eq!(rows(s, &world), now);
            prepared.end(Fate::Committed);
        },
    );
    let after: BTreeMap<_, _> = [(1, 10), (2, 0), (3, 30), (4, 44)].into();
    assert_eq!(found, after);
}

#[test]
fn random_ones_among_others() {
    let rounds = std::env::var("MOT_ROUNDS").map_or(40, |rounds| rounds.parse().unwrap());
    for seed in 0..rounds {
        random_round(seed);
    }
}

fn random_round(seed: u64) {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut below = |bound: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % bound
    };
    let (_region, engine) = engine(16 << 20);
    let session = engine.join().unwrap();
    let mut server = Server::new(&session);
    let mut model: BTreeMap<i32, i32> = BTreeMap::new();
    let mut prepared: Vec<(Me, BTreeMap<i32, Option<i32>>)> = Vec::new();
    let apply = |model: &mut BTreeMap<i32, i32>, effects: BTreeMap<i32, Option<i32>>| {
        for (a, b) in effects {
            match b {
                Some(b) => model.insert(a, b),
                None => model.remove(&a),
            };
        }
    };
    for step in 0..150 {
        let (me, mut t) = (server.world.begin(), Transaction::new());
        let mut effects = BTreeMap::new();
        for cid in 0..=below(4) as u32 {
            let (a, b) = (below(6) as i32, step * 10 + cid as i32);
            let mine = (0..server.table.row_ids_end().0).map(RowId).find(|row_id| {
                matches!(server.s.newest(&me, server.table, *row_id),
                    Newest::Live(version) if row(version.body()).a == a)
            });
            match mine {
                None => {
                    if server.insert(&me, &mut t, a, b, cid) == Entered::Done {
                        effects.insert(a, Some(b));
                    }
                }
                Some(row_id) => {
                    let to = (below(3) > 0).then(|| a_row(a, b));
                    if let Written::Done(_) = server.change(&me, &mut t, row_id, to, cid) {
                        // What it made itself and took away again was never there.
                        if to.is_none() && !model.contains_key(&a) {
                            effects.remove(&a);
                        } else {
                            effects.insert(a, to.map(|to| to.b));
                        }
                    }
                }
            }
        }
        match below(3) {
            0 => {
                server.commit(me, t);
                apply(&mut model, effects);
            }
            1 => {
                server.log(&mut t, &me);
                me.end(Fate::Aborted);
                t.abort(server.s);
            }
            _ => {
                server.prepare(&me, t);
                prepared.push((me, effects));
            }
        }
        if prepared.len() > below(4) as usize {
            let (me, effects) = prepared.swap_remove(below(prepared.len() as u64) as usize);
            if below(2) == 0 {
                me.end(Fate::Committed);
                apply(&mut model, effects);
            } else {
                me.end(Fate::Aborted);
            }
        }
        if below(4) == 0 {
            sweep(server.s, &server.world, server.table);
        }
        assert_eq!(server.rows(), model, "seed {seed}, step {step}");
    }
    let world = server.world.clone();
    let open_from = prepared
        .iter()
        .map(|(me, _)| me.top)
        .min()
        .unwrap_or(u64::MAX);
    let mut after = model.clone();
    let ends: Vec<_> = prepared
        .into_iter()
        .map(|(me, effects)| (me, effects, below(2) == 0))
        .collect();
    let found = promoted(&server.wal, &world, open_from, |s| {
        assert_eq!(rows(s, &world), model, "seed {seed}: restarted");
        for (me, effects, commits) in ends {
            me.end(if commits {
                Fate::Committed
            } else {
                Fate::Aborted
            });
            if commits {
                apply(&mut after, effects);
            }
        }
    });
    assert_eq!(found, after, "seed {seed}: restarted and ended");
    sweep(server.s, &server.world, server.table);
    assert_eq!(server.rows(), after, "seed {seed}: ended");
    assert_eq!(
        promoted(&server.wal, &world, u64::MAX, |_| ()),
        after,
        "seed {seed}: replayed"
    );
}
