//! Replay with workers, beside readers, the sweeper and the checkpoint writer: what each of them
//! may find, and how it ends.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::tests::{Random, index};
use super::{AppliedHorizon, HandOver, ParallelReplayer, finish, resolve_definitions};
use crate::all_committed::AllCommitted;
use crate::checkpoint::begin_round;
use crate::engine::{Engine, Reached, State};
use crate::errors::EngineError;
use crate::ids::{CommandId, IndexId, Lsn, RelationKey, RowId, TableId, Xid};
use crate::log::{Base, DefinitionsWriter, RowsWriter};
use crate::memory::{ArenaOptions, HugePages, Memory, Purpose, Region, Urgency};
use crate::scan::{Direction, IndexScan, KeyRange, RowScan};
use crate::session::Session;
use crate::table::Persistence;
use crate::{Clock, Snapshot};

const KEY: RelationKey = RelationKey::of_file(1, 0, 2);
const ACCOUNTS: TableId = TableId(1);
const WORKERS: usize = 3;
const AHEAD: HandOver = HandOver {
    is_ahead: true,
    bytes_max: 1 << 20,
    has_readers: true,
};

fn arena(bytes: usize) -> (Region, Engine) {
    let region = Region::create(bytes, HugePages::Off).expect("memory");
    // SAFETY: the region is fresh and outlives the engine.
    let memory = unsafe { Memory::format(&region, &ArenaOptions::default()) }.expect("formats");
    let engine = Engine::format(memory).expect("formats");
    engine.set_state(State::Replaying);
    (region, engine)
}

/// A table with a unique index on its first column and another on its second.
fn define(table: TableId, relation: u32) -> Vec<u8> {
    let mut definitions = DefinitionsWriter::new();
    let key = RelationKey::of_file(1, 0, relation);
    definitions
        .create_table(table, key, Persistence::Logged)
        .expect("memory");
    for (number, definition) in [index(77, 1, true), index(78, 2, false)].iter().enumerate() {
        let id = IndexId(table.0 * 2 + number as u64);
        definitions
            .create_index(id, table, definition)
            .expect("memory");
    }
    definitions.record().to_vec()
}

/// (key int4, value int4, filler whose length depends on the value, so that a difference against a
/// wrong base shows)
fn body(key: u32, value: i32) -> Vec<u8> {
    let mut body = vec![2, 0, 0, 0, 24, 0];
    body.extend_from_slice(&key.to_le_bytes());
    body.extend_from_slice(&value.to_le_bytes());
    body.extend(std::iter::repeat_n(
        value as u8,
        20 + value.rem_euclid(29) as usize,
    ));
    body
}

fn numbers(body: &[u8]) -> (u32, i32) {
    let word = |at: usize| body[at..at + 4].try_into().expect("4 bytes");
    (u32::from_le_bytes(word(6)), i32::from_le_bytes(word(10)))
}

/// What the server does at a place of the log.
enum Step {
    Record { xid: u64, bytes: Vec<u8> },
    End { xid: u64, commits: bool },
}

const ROWS: usize = 48;
const TRANSACTIONS: u64 = 2500;
/// Rows lie so far apart that neighbours belong to different workers.
const APART: u64 = 512;
const OPENING: i32 = 100;

#[derive(Clone)]
struct Account {
    key: u32,
    value: i32,
    lsn: Lsn,
    /// The last logged change was rolled back.
    whole_next: bool,
}

/// A log of transfers: values move between rows, unique keys are swapped, some are rolled back
/// after they were logged; tables are created, filled, and rolled back or dropped by a transaction
/// that goes on to log rows of them.
fn story(random: &mut Random) -> (Vec<(Lsn, Step)>, Vec<Account>) {
    let mut log: Vec<(Lsn, Step)> = Vec::new();
    let mut end = 0;
    let mut append = |step: Step| {
        end += 60;
        log.push((Lsn(end), step));
        Lsn(end)
    };
    append(Step::Record {
        xid: 10,
        bytes: define(ACCOUNTS, KEY.relation),
    });
    let mut writer = RowsWriter::new();
    for row in 0..ROWS as u64 {
        let image = body(row as u32, OPENING);
        writer
            .insert(ACCOUNTS, RowId(row * APART), &image)
            .expect("memory");
    }
    let bytes = writer.record().to_vec();
    writer.clear();
    let lsn = append(Step::Record { xid: 10, bytes });
    append(Step::End {
        xid: 10,
        commits: true,
    });
    let mut accounts: Vec<Account> = (0..ROWS as u32)
        .map(|key| Account {
            key,
            value: OPENING,
            lsn,
            whole_next: false,
        })
        .collect();
    // Transactions that have logged and not ended, with what they did.
    let mut open: Vec<(u64, Vec<(usize, Account)>)> = Vec::new();
    let end_one = |open: &mut Vec<(u64, Vec<(usize, Account)>)>,
                   accounts: &mut Vec<Account>,
                   append: &mut dyn FnMut(Step) -> Lsn,
                   random: &mut Random| {
        let (xid, before) = open.remove(random.below(open.len() as u64) as usize);
        let commits = random.below(4) > 0;
        if !commits {
            for (row, old) in before {
                accounts[row].key = old.key;
                accounts[row].value = old.value;
                accounts[row].whole_next = true;
            }
        }
        append(Step::End { xid, commits });
    };
    let mut next_table = 2;
    for xid in 11..11 + TRANSACTIONS {
        while open.len() > random.below(4) as usize {
            end_one(&mut open, &mut accounts, &mut append, random);
        }
        if random.below(40) == 0 {
            fleeting(xid, TableId(next_table), random, &mut append);
            next_table += 1;
            continue;
        }
        let taken: BTreeSet<usize> = open
            .iter()
            .flat_map(|(_, rows)| rows.iter().map(|(row, _)| *row))
            .collect();
        let mut pick = || {
            (0..100)
                .map(|_| random.below(ROWS as u64) as usize)
                .find(|row| !taken.contains(row))
                .expect("few are taken")
        };
        let (a, b) = (pick(), pick());
        if a == b {
            continue;
        }
        let old = [(a, accounts[a].clone()), (b, accounts[b].clone())];
        let amount = random.below(50) as i32;
        accounts[a].value -= amount;
        accounts[b].value += amount;
        if random.below(3) == 0 {
            let key = accounts[a].key;
            accounts[a].key = accounts[b].key;
            accounts[b].key = key;
        }
        // One record or two.
        let is_split = random.below(2) == 0;
        let mut written = Vec::new();
        for (row, before) in &old {
            let base = body(before.key, before.value);
            let base = (!before.whole_next).then_some(Base {
                lsn: before.lsn,
                body: &base,
            });
            let now = &accounts[*row];
            writer
                .update(
                    ACCOUNTS,
                    RowId(*row as u64 * APART),
                    base,
                    &body(now.key, now.value),
                )
                .expect("memory");
            written.push(*row);
            if is_split || *row == b {
                let bytes = writer.record().to_vec();
                writer.clear();
                let lsn = append(Step::Record { xid, bytes });
                for row in written.drain(..) {
                    accounts[row].lsn = lsn;
                    accounts[row].whole_next = false;
                }
            }
        }
        open.push((xid, old.to_vec()));
    }
    while !open.is_empty() {
        end_one(&mut open, &mut accounts, &mut append, random);
    }
    (log, accounts)
}

/// A table that does not stay: rolled back with its rows, or dropped by a transaction that logs
/// rows of it behind that.
fn fleeting(xid: u64, table: TableId, random: &mut Random, append: &mut dyn FnMut(Step) -> Lsn) {
    let relation = 1000 + table.0 as u32;
    append(Step::Record {
        xid,
        bytes: define(table, relation),
    });
    let is_dropped = random.below(2) == 0;
    if is_dropped {
        let mut definitions = DefinitionsWriter::new();
        definitions.drop_table(table).expect("memory");
        let bytes = definitions.record().to_vec();
        append(Step::Record { xid, bytes });
    }
    let mut rows = RowsWriter::new();
    for row_id in 0..200 {
        rows.insert(table, RowId(row_id * 8), &body(row_id as u32, 1))
            .expect("memory");
    }
    let bytes = rows.record().to_vec();
    append(Step::Record { xid, bytes });
    append(Step::End {
        xid,
        commits: is_dropped,
    });
}

const READERS: usize = 2;

/// What a standby knows of transactions.
#[derive(Default)]
struct Server {
    running: BTreeSet<u64>,
    committed: HashSet<u64>,
    next: u64,
    /// The xmin of each reader's snapshot.
    held: [Option<u64>; READERS],
}

#[derive(Default)]
struct Standby(Mutex<Server>);

impl Standby {
    fn with<R>(&self, work: impl FnOnce(&mut Server) -> R) -> R {
        work(&mut self.0.lock().expect("no thread panicked"))
    }
}

impl Clock for &Standby {
    fn is_current(&self, _xid: Xid) -> bool {
        false
    }
    fn is_in_progress(&self, xid: Xid) -> bool {
        self.with(|server| server.running.contains(&xid.0))
    }
    fn did_commit(&self, xid: Xid) -> bool {
        self.with(|server| server.committed.contains(&xid.0))
    }
}

struct Seen<'a> {
    standby: &'a Standby,
    running: BTreeSet<u64>,
    xmax: u64,
}

impl Seen<'_> {
    fn take(standby: &Standby, reader: usize) -> Seen<'_> {
        standby.with(|server| {
            let xmin = server.running.first().copied().unwrap_or(server.next);
            server.held[reader] = Some(xmin);
            Seen {
                standby,
                running: server.running.clone(),
                xmax: server.next,
            }
        })
    }
}

impl Snapshot for Seen<'_> {
    fn xmin(&self) -> Xid {
        Xid(self.running.first().copied().unwrap_or(self.xmax))
    }
    fn own(&self, _xid: Xid, _cid: CommandId) -> Option<bool> {
        None
    }
    fn running(&self, xid: Xid) -> bool {
        xid.0 >= self.xmax || self.running.contains(&xid.0)
    }
    fn did_commit(&self, xid: Xid) -> bool {
        Clock::did_commit(&self.standby, xid)
    }
}

/// One look at all accounts, by the table or an index: the sum of the values never changes, and
/// each key is there once.
fn look(session: &Session, standby: &Standby, reader: usize, through: u32) -> bool {
    let snapshot = Seen::take(standby, reader);
    let engine = session.engine();
    let handed = engine.replay_handed();
    loop {
        match engine.replay_reached(handed) {
            Reached::Yes => break,
            Reached::NotYet => std::thread::yield_now(),
            trouble => panic!("{trouble:?}"),
        }
    }
    if snapshot.running(Xid(10)) {
        standby.with(|server| server.held[reader] = None);
        return false;
    }
    let table = session
        .find_table(KEY, &standby)
        .expect("its creation is seen");
    let mut rows = Vec::new();
    if through == 0 {
        let mut scan = RowScan::new(table);
        while let Some((_, version)) = scan.next(session, &snapshot) {
            rows.push(numbers(version.body()));
        }
    } else {
        let index = session
            .find_index(table, through, &standby)
            .expect("exists");
        let mut scan = IndexScan::new();
        scan.start(table, index, &KeyRange::new(), Direction::Forward);
        while let Some((_, version)) = scan.next(session, &snapshot).expect("scans") {
            rows.push(numbers(version.body()));
        }
    }
    standby.with(|server| server.held[reader] = None);
    let keys: BTreeSet<u32> = rows.iter().map(|(key, _)| *key).collect();
    let sum: i32 = rows.iter().map(|(_, value)| value).sum();
    assert_eq!((rows.len(), keys.len()), (ROWS, ROWS), "through {through}");
    assert_eq!(sum, OPENING * ROWS as i32, "through {through}");
    true
}

/// What the reclaimer of a standby does, again and again.
fn reclaim(session: &Session, standby: &Standby, applied: &mut AppliedHorizon, begun: u64) {
    let horizon = standby.with(|server| {
        let running = server.running.first().copied().unwrap_or(server.next);
        let held = server.held.iter().flatten().min().copied();
        held.unwrap_or(running).min(running)
    });
    let engine = session.engine();
    engine.raise_horizon(Xid(horizon));
    applied.raise(engine, Xid(horizon));
    resolve_definitions(session, &standby, *applied);
    crate::transaction::free_pending(session, || ());
    for walk in session.tables() {
        session.sweep(&standby, walk.table(), begun.is_multiple_of(16), || {});
    }
    session.memory().collect();
}

#[test]
fn readers_beside_workers_see_whole_transactions() {
    for seed in 0..3 {
        standby_with_readers(seed);
    }
}

fn standby_with_readers(seed: u64) {
    let mut random = Random(seed);
    let (log, accounts) = story(&mut random);
    let (_region, engine) = arena(128 << 20);
    let session = engine.join().expect("joins");
    let standby = Standby::default();
    let (ended, looks, sweeps) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        // Ends the others also when something fails here.
        struct AtEnd<'a>(&'a AtomicBool);
        impl Drop for AtEnd<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let _at_end = AtEnd(&ended);
        for reader in 0..READERS {
            let (standby, ended, looks) = (&standby, &ended, &looks);
            scope.spawn(move || {
                let session = engine.join().expect("joins");
                let mut turn = reader;
                while !ended.load(Ordering::Relaxed) {
                    let through = [0, 77, 78][turn % 3];
                    turn += 1;
                    if look(&session, standby, reader, through) {
                        looks.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
        scope.spawn(|| {
            let session = engine.join().expect("joins");
            let mut applied = AppliedHorizon::default();
            while !ended.load(Ordering::Relaxed) {
                let begun = sweeps.fetch_add(1, Ordering::Relaxed);
                reclaim(&session, &standby, &mut applied, begun);
            }
        });
        let mut replayer = ParallelReplayer::new(engine, WORKERS, 2);
        for (number, (lsn, step)) in log.iter().enumerate() {
            match step {
                Step::Record { xid, bytes } => {
                    standby.with(|server| {
                        server.running.insert(*xid);
                        server.next = server.next.max(xid + 1);
                    });
                    let how = HandOver {
                        is_ahead: random.below(10) > 0,
                        bytes_max: 1 << (9 + random.below(9)),
                        has_readers: true,
                    };
                    replayer
                        .apply(&session, bytes, *lsn, Xid(*xid), how, &mut || {})
                        .unwrap_or_else(|error| panic!("{error}"));
                }
                Step::End { xid, commits } => standby.with(|server| {
                    if *commits {
                        server.committed.insert(*xid);
                    }
                    server.running.remove(xid);
                }),
            }
            // Readers and the sweeper are to meet most places of the log, on a machine with few
            // cores, too.
            if number % 64 == 0 {
                let (seen, swept) = (
                    looks.load(Ordering::Relaxed),
                    sweeps.load(Ordering::Relaxed),
                );
                while number > 64
                    && (looks.load(Ordering::Relaxed) == seen
                        || sweeps.load(Ordering::Relaxed) == swept)
                {
                    std::thread::yield_now();
                }
            }
        }
        replayer.drain(&mut || {}).expect("applies");
    });
    finish(&session, &&standby, 2).expect("finishes");
    engine.set_state(State::Ready);
    let table = session.find_table(KEY, &&standby).expect("exists");
    let mut problems = Vec::new();
    let report = session
        .check(table, &&standby, |problem| problems.push(problem))
        .expect("looks at all");
    assert_eq!(problems, []);
    assert_eq!(report.rows, ROWS as u64);
    // Aborted changes are gone with their entries, superseded ones may wait for the horizon.
    let mut found = BTreeMap::new();
    let mut scan = RowScan::new(table);
    let all = Seen::take(&standby, 0);
    while let Some((row_id, version)) = scan.next(&session, &all) {
        found.insert(row_id.0 / APART, numbers(version.body()));
    }
    let expected: BTreeMap<u64, (u32, i32)> = (0..)
        .zip(accounts.iter().map(|account| (account.key, account.value)))
        .collect();
    assert_eq!(found, expected, "seed {seed}");
    crate::transaction::free_pending(&session, || ());
    assert_eq!(session.tables().len(), 1, "fleeting tables are gone");
}

fn with_accounts(bytes: usize, test: impl FnOnce(Engine, &Session, &mut ParallelReplayer)) {
    let (_region, engine) = arena(bytes);
    let session = engine.join().expect("joins");
    let mut replayer = ParallelReplayer::new(engine, WORKERS, 1);
    let definitions = define(ACCOUNTS, KEY.relation);
    replayer
        .apply(&session, &definitions, Lsn(8), Xid(5), AHEAD, &mut || {})
        .expect("has room");
    test(engine, &session, &mut replayer);
}

fn inserts(row_ids: std::ops::Range<u64>) -> Vec<u8> {
    let mut rows = RowsWriter::new();
    for row_id in row_ids {
        rows.insert(ACCOUNTS, RowId(row_id), &body(row_id as u32, row_id as i32))
            .expect("memory");
    }
    rows.record().to_vec()
}

/// All of the arena that is left, in pieces.
struct Ballast(Vec<std::ptr::NonNull<u8>>);

impl Ballast {
    const BYTES: usize = 16 << 10;

    fn fill(session: &Session) -> Ballast {
        let memory = session.memory();
        let take = || {
            memory
                .allocate(Self::BYTES, Purpose::Rows, Urgency::Reserve)
                .ok()
        };
        Ballast(std::iter::from_fn(take).collect())
    }

    fn give_back(&mut self, session: &Session, pieces: usize) {
        for _ in 0..pieces {
            let block = self.0.pop().expect("the rows fit the whole arena");
            // SAFETY: allocated above with this size; nothing else has it.
            unsafe { session.memory().free(block, Self::BYTES, Purpose::Rows) };
        }
    }
}

/// Rows of one record, more than there is room for, in an arena that is not nearly full when it is
/// handed over.
const MANY: u64 = 30_000;

#[test]
fn workers_that_find_no_memory_go_on_when_there_is_room() {
    with_accounts(32 << 20, |engine, session, replayer| {
        let mut ballast = Ballast::fill(session);
        ballast.give_back(session, 200);
        let apply = |replayer: &mut ParallelReplayer, lsn, record: &[u8]| {
            replayer.apply(session, record, Lsn(lsn), Xid(6), AHEAD, &mut || {})
        };
        apply(replayer, 16, &inserts(0..MANY)).expect("is handed over");
        let last = inserts(MANY..MANY + 1);
        let mut stops = 0;
        while let Err(error) = apply(replayer, 24, &last) {
            assert!(matches!(error, EngineError::ArenaFull(_)), "{error}");
            stops += 1;
            // A reader is told, and what stalls is named.
            if replayer.failed_at().is_some() {
                assert_eq!(replayer.failed_at(), Some(Lsn(16)));
                assert_ne!(engine.replay_reached(engine.replay_handed()), Reached::Yes);
            }
            ballast.give_back(session, 40);
        }
        // How often depends on which worker takes what is given back.
        assert!(stops > 0, "the arena was never full");
        replayer.drain(&mut || {}).expect("has room");
        assert_eq!(engine.replay_reached(engine.replay_handed()), Reached::Yes);
        let changes = &engine.progress().changes_replayed;
        assert!(changes.load(Ordering::Relaxed) > MANY);
        finish(session, &AllCommitted, 2).expect("finishes");
        let table = session.find_table(KEY, &AllCommitted).expect("exists");
        let mut problems = Vec::new();
        let report = session
            .check(table, &AllCommitted, |problem| problems.push(problem))
            .expect("looks at all");
        assert_eq!(problems, []);
        assert_eq!(
            (report.rows, report.versions),
            (MANY + 1, MANY + 1),
            "applied once"
        );
    });
}

/// Readers and the checkpoint writer must not take what will never be applied for applied, nor wait
/// for it.
#[test]
fn whoever_waits_is_told_when_replay_is_given_up() {
    with_accounts(32 << 20, |engine, session, replayer| {
        let mut ballast = Ballast::fill(session);
        ballast.give_back(session, 200);
        let record = inserts(0..MANY);
        replayer
            .apply(session, &record, Lsn(16), Xid(6), AHEAD, &mut || {})
            .expect("is handed over");
        let handed = engine.replay_handed();
        assert_eq!(handed, Lsn(16));
        while engine.replay_reached(handed) == Reached::NotYet {
            std::thread::yield_now();
        }
        assert_eq!(engine.replay_reached(handed), Reached::NoMemory);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| begin_round(engine));
            replayer.stopper().expect("runs").stop();
            let outcome = writer.join().expect("does not panic");
            assert!(matches!(outcome, Err(EngineError::Cancelled)));
        });
        assert_eq!(engine.replay_reached(handed), Reached::GivenUp);
    });
}

#[test]
fn what_does_not_fit_a_row_stops_replay_for_good() {
    with_accounts(32 << 20, |_, session, replayer| {
        let mut apply = |lsn, record: &[u8]| {
            replayer
                .apply(session, record, Lsn(lsn), Xid(6), AHEAD, &mut || {})
                .map_err(|error| (replayer.failed_at(), error))
        };
        apply(16, &inserts(0..1000)).expect("fits");
        let mut rows = RowsWriter::new();
        let old = body(700, 700);
        let wrong = Base {
            lsn: Lsn(9),
            body: &old,
        };
        rows.update(ACCOUNTS, RowId(700), Some(wrong), &body(700, 701))
            .expect("memory");
        apply(24, rows.record()).expect("is handed over");
        // Records go on to be handed over until it is noticed.
        let failed = (4..).find_map(|number| apply(number * 8, &inserts(1000..1001)).err());
        match failed.expect("ends only so") {
            (
                Some(Lsn(24)),
                EngineError::BaseMismatch {
                    table,
                    row_id,
                    lsn,
                    row_lsn,
                    ..
                },
            ) => assert_eq!((table, row_id, lsn, row_lsn), (1, 700, 24, 16)),
            other => panic!("{other:?}"),
        }
        assert!(apply(1 << 40, &inserts(1001..1002)).is_err());
    });
}

/// A standby that keeps up is not slowed down: no thread is woken, or begun, for small records.
#[test]
fn small_records_of_a_log_that_is_not_ahead_are_applied_at_once() {
    let how = HandOver {
        is_ahead: false,
        ..AHEAD
    };
    with_accounts(32 << 20, |engine, session, replayer| {
        for number in 0..20 {
            let record = inserts(number..number + 1);
            replayer
                .apply(
                    session,
                    &record,
                    Lsn(16 + number * 8),
                    Xid(6),
                    how,
                    &mut || {},
                )
                .expect("fits");
        }
        assert!(replayer.stopper().is_none() && engine.replay_workers() == 0);
        assert_eq!(engine.replay_handed(), Lsn::NONE);
        // A large one is worth it.
        let record = inserts(20..2000);
        replayer
            .apply(session, &record, Lsn(1000), Xid(6), how, &mut || {})
            .expect("fits");
        assert_eq!(engine.replay_handed(), Lsn(1000));
        assert_eq!(engine.replay_workers(), WORKERS);
        replayer.drain(&mut || {}).expect("applies");
        let changes = &engine.progress().changes_replayed;
        assert_eq!(changes.load(Ordering::Relaxed), 2000);
    });
}
