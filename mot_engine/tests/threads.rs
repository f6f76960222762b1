//! Threads against each other: transfers that keep a sum, fights for keys, one hot row, aborts and
//! savepoints, and a sweeper in between.

mod common;

use common::{Fate, Me, Positions, Row, Snap, World, body, row};
use mot_engine::key::IndexDefinition;
use mot_engine::{
    Build, CommandId, Direction, Engine, Entered, IndexRef, IndexScan, KeyRange, LockStrength,
    Locked, Newest, RowId, RowScan, Session, TableRef, Transaction, VersionRef, Written, Xid,
};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

/// Random numbers from a seed that is printed (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % end
    }

    fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}

const THREADS: u64 = 4;
/// Looks at another transaction before a waiter gives up: it may be a deadlock.
const PATIENCE: u32 = 2_000;

fn seed() -> u64 {
    let seed = std::env::var("MOT_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64);
    println!("MOT_SEED={seed}");
    seed
}

/// Transactions per thread.
fn rounds() -> u64 {
    std::env::var("MOT_ROUNDS")
        .ok()
        .and_then(|rounds| rounds.parse().ok())
        .unwrap_or(1_500)
}

#[derive(Copy, Clone)]
struct Place {
    table: TableRef,
    by_a: IndexRef,
    by_b: IndexRef,
    by_c: IndexRef,
}

// SAFETY: addresses of storages that live as long as the arena; nothing is dropped in these tests.
unsafe impl Send for Place {}
// SAFETY: as above.
unsafe impl Sync for Place {}

fn definitions() -> [IndexDefinition; 3] {
    [
        common::definition(101, true, &[(1, false)]),
        common::definition(102, false, &[(2, true)]),
        common::definition(103, true, &[(3, false)]),
    ]
}

fn create(session: &Session, world: &World) -> Place {
    let me = world.begin();
    let mut work = Transaction::new();
    let table = work
        .create_table(session, common::TABLE, Xid(me.top))
        .unwrap();
    let [by_a, by_b, by_c] = definitions().map(|definition| {
        match work
            .create_index(session, &me, table, &definition, Xid(me.top))
            .unwrap()
        {
            Build::Done(index) => index,
            other => panic!("{other:?}"),
        }
    });
    me.end(Fate::Committed);
    work.commit(session);
    Place {
        table,
        by_a,
        by_b,
        by_c,
    }
}

/// Why a transaction cannot go on.
struct GiveUp;

/// A transaction of a thread, with what PostgreSQL's executor does around the engine's calls.
struct Tx<'a> {
    session: &'a Session,
    place: Place,
    me: Me,
    work: Transaction,
    cid: u32,
    levels: Vec<u64>,
}

impl<'a> Tx<'a> {
    fn begin(session: &'a Session, world: &World, place: Place) -> Tx<'a> {
        let me = world.begin();
        let levels = vec![me.top];
        Tx {
            session,
            place,
            me,
            work: Transaction::new(),
            cid: 0,
            levels,
        }
    }

    fn statement(&mut self) -> Snap {
        self.cid += 1;
        self.work.set_level(self.levels.len() as i32).unwrap();
        self.me.snapshot(self.cid)
    }

    fn xid(&self) -> Xid {
        Xid(*self.levels.last().unwrap())
    }

    fn wait(&self, xid: Xid) -> Result<(), GiveUp> {
        for _ in 0..PATIENCE {
            if self.me.world.fate(xid.0) != Fate::Running {
                return Ok(());
            }
            thread::yield_now();
        }
        Err(GiveUp)
    }

    fn find(
        &self,
        snap: &Snap,
        index: IndexRef,
        definition: &IndexDefinition,
        wanted: Row,
    ) -> Option<(RowId, VersionRef)> {
        let mut range = KeyRange::new();
        range.set_point(&common::key(definition, wanted)).unwrap();
        let mut scan = IndexScan::new();
        scan.start(self.place.table, index, &range, Direction::Forward);
        let found = scan.next(self.session, snap).unwrap();
        assert!(
            found.is_none() || scan.next(self.session, snap).unwrap().is_none(),
            "two rows of a unique key"
        );
        found
    }

    fn by_a(&self, snap: &Snap, a: i32) -> Option<(RowId, VersionRef)> {
        self.find(
            snap,
            self.place.by_a,
            &definitions()[0],
            Row { a, b: 0, c: None },
        )
    }

    /// READ COMMITTED's loop: waits, re-reads the newest state, computes anew.
    fn change(
        &mut self,
        row_id: RowId,
        mut seen: VersionRef,
        compute: impl Fn(Row) -> Option<Row>,
    ) -> Result<bool, GiveUp> {
        let (session, table) = (self.session, self.place.table);
        loop {
            let (xid, cid) = (self.xid(), CommandId(self.cid));
            let written = match compute(row(seen.body())) {
                Some(new) => {
                    self.work
                        .update(session, &self.me, table, row_id, seen, &body(new), xid, cid)
                }
                None => self
                    .work
                    .delete(session, &self.me, table, row_id, seen, xid, cid),
            }
            .map_err(|error| assert!(is_full(&error), "{error}"))
            .map_err(|()| GiveUp)?;
            match written {
                Written::Done(version) => {
                    if !version.is_tombstone() {
                        self.enter(row_id, version)?;
                    }
                    return Ok(true);
                }
                Written::Busy(xid) => self.wait(xid)?,
                Written::Gone | Written::SelfModified(_) => return Ok(false),
                Written::Changed => match session.newest(&self.me, table, row_id) {
                    Newest::Live(version) => seen = version,
                    Newest::Busy(xid) => self.wait(xid)?,
                    Newest::Gone | Newest::None => return Ok(false),
                },
            }
        }
    }

    fn enter(&mut self, row_id: RowId, version: VersionRef) -> Result<(), GiveUp> {
        loop {
            let entered =
                self.work
                    .enter(self.session, &self.me, self.place.table, row_id, version);
            match entered {
                Ok(Entered::Done) => return Ok(()),
                Ok(Entered::Busy(xid, _)) => self.wait(xid)?,
                Ok(Entered::Duplicate(_)) => return Err(GiveUp),
                Err(error) => {
                    assert!(is_full(&error), "{error}");
                    return Err(GiveUp);
                }
            }
        }
    }

    fn insert(&mut self, new: Row) -> Result<(), GiveUp> {
        let (xid, cid) = (self.xid(), CommandId(self.cid));
        match self
            .work
            .insert(self.session, self.place.table, &body(new), xid, cid)
        {
            Ok((row_id, version)) => self.enter(row_id, version),
            Err(error) => {
                assert!(is_full(&error), "{error}");
                Err(GiveUp)
            }
        }
    }

    fn savepoint(&mut self) {
        let xid = self.me.savepoint();
        self.levels.push(xid);
        self.statement();
    }

    fn roll_back(&mut self) {
        let level = self.levels.len() as i32;
        let xid = self.levels.pop().unwrap();
        self.me.abort_one(xid);
        thread::yield_now();
        self.work.savepoint_abort(self.session, level);
    }

    fn end(mut self, fate: Fate, log: &mut Positions) {
        if fate == Fate::Committed {
            self.work.log(self.session, log).unwrap();
        }
        self.me.end(fate);
        // Others may resolve, supersede and prune before the engine hears of it.
        if self.me.top.is_multiple_of(3) {
            thread::yield_now();
        }
        match fate {
            Fate::Committed => self.work.commit(self.session),
            _ => self.work.abort(self.session),
        }
    }
}

fn is_full(error: &mot_engine::EngineError) -> bool {
    matches!(error, mot_engine::EngineError::ArenaFull(_))
}

/// Runs `work` in threads with a sweeper beside, then checks the table.
fn contest(
    engine: Engine,
    world: &World,
    place: Place,
    work: impl Fn(&Session, Place, &mut Numbers, u64) + Sync,
    look: impl Fn(&Session, Place, &mut Numbers) + Sync,
) {
    let seed = seed();
    let left = AtomicU64::new(THREADS);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let (left, over, work, look) = (&left, &over, &work, &look);
        for number in 0..THREADS {
            scope.spawn(move || {
                /// Counts a thread out, also when it panics.
                struct Leave<'a>(&'a AtomicU64, &'a AtomicBool);
                impl Drop for Leave<'_> {
                    fn drop(&mut self) {
                        if self.0.fetch_sub(1, Ordering::SeqCst) == 1 || thread::panicking() {
                            self.1.store(true, Ordering::SeqCst);
                        }
                    }
                }
                let _leave = Leave(left, over);
                let session = engine.join().unwrap();
                let mut numbers = Numbers(seed.wrapping_add(number));
                for round in 0..rounds() {
                    work(&session, place, &mut numbers, round);
                    if over.load(Ordering::SeqCst) {
                        break;
                    }
                }
            });
        }
        scope.spawn(move || {
            let session = engine.join().unwrap();
            let mut numbers = Numbers(seed.wrapping_add(99));
            while !over.load(Ordering::SeqCst) {
                look(&session, place, &mut numbers);
            }
        });
        scope.spawn(move || {
            let place = place;
            let session = engine.join().unwrap();
            while !over.load(Ordering::SeqCst) {
                engine.raise_horizon(world.horizon());
                session.sweep(&common::reader(world), place.table, false, || {});
                session.memory().collect();
                thread::yield_now();
            }
        });
    });
    let session = engine.join().unwrap();
    common::sweep(&session, world, place.table);
    let report = common::check(&session, place.table, &common::reader(world));
    assert_eq!(report.versions, report.rows, "everything else was swept");
    assert_eq!(report.entries, 3 * report.rows);
    assert_eq!(
        place
            .table
            .counters()
            .stale_versions
            .load(Ordering::Relaxed),
        0
    );
}

const ACCOUNTS: i32 = 12;
const BALANCE: i32 = 1_000;

fn accounts(session: &Session, world: &World) -> Place {
    let place = create(session, world);
    let mut tx = Tx::begin(session, world, place);
    for a in 0..ACCOUNTS {
        tx.statement();
        assert!(
            tx.insert(Row {
                a,
                b: BALANCE,
                c: Some(a)
            })
            .is_ok()
        );
    }
    tx.end(Fate::Committed, &mut Positions::new());
    place
}

/// Every snapshot sees every account once, and the same sum, whichever way it looks.
fn audit(session: &Session, world: &World, place: Place, numbers: &mut Numbers) {
    let me = common::reader(world);
    let snap = me.snapshot(0);
    for _ in 0..2 {
        let mut rows = Vec::new();
        if numbers.one_in(3) {
            let mut scan = RowScan::new(place.table);
            while let Some((_, version)) = scan.next(session, &snap) {
                rows.push(row(version.body()));
            }
        } else {
            let index = [place.by_a, place.by_b, place.by_c][numbers.below(3) as usize];
            let direction = if numbers.one_in(2) {
                Direction::Forward
            } else {
                Direction::Backward
            };
            let mut scan = IndexScan::new();
            scan.start(place.table, index, &KeyRange::new(), direction);
            while let Some((_, version)) = scan.next(session, &snap).unwrap() {
                rows.push(row(version.body()));
            }
        }
        rows.sort();
        let found: Vec<i32> = rows.iter().map(|row| row.a).collect();
        assert_eq!(found, (0..ACCOUNTS).collect::<Vec<_>>());
        assert_eq!(
            rows.iter().map(|row| row.b).sum::<i32>(),
            ACCOUNTS * BALANCE
        );
        thread::yield_now();
    }
}

#[test]
fn transfers_keep_the_sum_in_every_snapshot() {
    let (_region, engine) = common::engine(64 << 20);
    let session = engine.join().unwrap();
    let world = World::new();
    let place = accounts(&session, &world);
    let log = Positions::new();
    let world = &world;
    let (done, given_up) = (AtomicU64::new(0), AtomicU64::new(0));
    contest(
        engine,
        world,
        place,
        |session, place, numbers, round| {
            let mut tx = Tx::begin(session, world, place);
            let outcome = transfer(&mut tx, numbers, round);
            let commit = outcome.is_ok() && !numbers.one_in(8);
            if outcome.is_ok() { &done } else { &given_up }.fetch_add(1, Ordering::Relaxed);
            let fate = if commit {
                Fate::Committed
            } else {
                Fate::Aborted
            };
            tx.end(fate, &mut Positions(log.0.clone()));
        },
        |session, place, numbers| {
            audit(session, world, place, numbers);
        },
    );
    println!("{done:?} done, {given_up:?} given up");
    audit(&session, world, place, &mut Numbers(0));
    assert_eq!(place.table.row_count_estimate(), ACCOUNTS as u64);
}

fn transfer(tx: &mut Tx<'_>, numbers: &mut Numbers, round: u64) -> Result<(), GiveUp> {
    let from = numbers.below(ACCOUNTS as u64) as i32;
    // Account 0 is hot.
    let to = if numbers.one_in(3) {
        0
    } else {
        numbers.below(ACCOUNTS as u64) as i32
    };
    let amount = numbers.below(5) as i32;
    if round.is_multiple_of(7) {
        // Work that is rolled back: a wild change of both.
        tx.savepoint();
        let snap = tx.statement();
        let found = tx.by_a(&snap, to).expect("the account is there");
        let wild = tx.change(found.0, found.1, |row| {
            Some(Row {
                b: row.b * 2,
                c: None,
                ..row
            })
        });
        tx.roll_back();
        wild?;
    }
    let (first, second) = if numbers.one_in(4) {
        (to, from)
    } else {
        (from.min(to), from.max(to))
    };
    for account in [first, second] {
        let snap = tx.statement();
        let (row_id, seen) = tx.by_a(&snap, account).expect("the account is there");
        if numbers.one_in(3) {
            match tx.work.lock(
                tx.session,
                &tx.me,
                tx.place.table,
                row_id,
                seen,
                LockStrength::NoKeyUpdate,
                tx.xid(),
            ) {
                Ok(Locked::Busy(xid)) => tx.wait(xid)?,
                Ok(_) => {}
                Err(error) => panic!("{error}"),
            }
        }
        let mut change = 0;
        if account == from && from != to {
            change -= amount;
        }
        if account == to && from != to {
            change += amount;
        }
        // Some also move in the index on c: to NULL and back.
        let moves = numbers.one_in(3);
        let changed = tx.change(row_id, seen, |row| {
            let c = match row.c {
                Some(_) if moves => None,
                None if moves => Some(row.a),
                c => c,
            };
            Some(Row {
                b: row.b + change,
                c,
                ..row
            })
        })?;
        assert!(changed, "accounts are never deleted");
    }
    Ok(())
}

#[test]
fn a_unique_key_has_one_row_in_every_snapshot() {
    let (_region, engine) = common::engine(64 << 20);
    let session = engine.join().unwrap();
    let world = World::new();
    let place = create(&session, &world);
    let log = Positions::new();
    let world = &world;
    contest(
        engine,
        world,
        place,
        |session, place, numbers, _| {
            let mut tx = Tx::begin(session, world, place);
            let mut outcome = Ok(());
            for _ in 0..numbers.below(4) {
                if outcome.is_ok() {
                    outcome = fight(&mut tx, numbers);
                }
            }
            let commit = outcome.is_ok() && !numbers.one_in(5);
            let fate = if commit {
                Fate::Committed
            } else {
                Fate::Aborted
            };
            tx.end(fate, &mut Positions(log.0.clone()));
        },
        |session, place, numbers| {
            let snap = common::reader(world).snapshot(0);
            let mut seen = Vec::new();
            let mut scan = RowScan::new(place.table);
            while let Some((row_id, version)) = scan.next(session, &snap) {
                seen.push((row(version.body()), row_id));
            }
            seen.sort();
            assert!(
                seen.windows(2).all(|pair| pair[0].0.a != pair[1].0.a),
                "{seen:?}"
            );
            let mut keys: Vec<i32> = seen.iter().filter_map(|(row, _)| row.c).collect();
            keys.sort();
            assert!(keys.windows(2).all(|pair| pair[0] != pair[1]), "{seen:?}");
            let index = [place.by_a, place.by_b, place.by_c][numbers.below(3) as usize];
            let mut found = Vec::new();
            let mut scan = IndexScan::new();
            scan.start(place.table, index, &KeyRange::new(), Direction::Forward);
            while let Some((row_id, version)) = scan.next(session, &snap).unwrap() {
                found.push((row(version.body()), row_id));
            }
            found.sort();
            assert_eq!(found, seen);
        },
    );
}

/// Takes a key, moves a row to another, or lets one go.
fn fight(tx: &mut Tx<'_>, numbers: &mut Numbers) -> Result<(), GiveUp> {
    let savepoint = numbers.one_in(3);
    if savepoint {
        tx.savepoint();
    }
    let (a, b) = (numbers.below(10) as i32, numbers.below(3) as i32);
    let c = (!numbers.one_in(3)).then(|| numbers.below(8) as i32);
    let snap = tx.statement();
    let outcome = match tx.by_a(&snap, a) {
        None => tx.insert(Row { a, b, c }),
        Some((row_id, seen)) if numbers.one_in(2) => tx.change(row_id, seen, |_| None).map(|_| ()),
        Some((row_id, seen)) => {
            let new = numbers.below(10) as i32;
            tx.change(row_id, seen, |_| Some(Row { a: new, b, c }))
                .map(|_| ())
        }
    };
    if savepoint && (outcome.is_err() || numbers.one_in(4)) {
        tx.roll_back();
        return Ok(());
    }
    if savepoint {
        // Released: its id lives on under the level above.
        let level = tx.levels.len() as i32;
        let released = tx.levels.pop().unwrap();
        tx.work.savepoint_commit(level);
        tx.me.adopt(released, *tx.levels.last().unwrap());
    }
    outcome
}
