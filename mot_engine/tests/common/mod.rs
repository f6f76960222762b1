//! A transaction manager in memory, as PostgreSQL's looks to the engine: subtransactions,
//! snapshots, a horizon. Usable from threads.
#![allow(dead_code)]

use mot_engine::key::{
    AttributeLayout, IndexDefinition, KeyBuffer, KeyColumn, KeyKind, KeyValue, Tail,
};
use mot_engine::memory::{ArenaOptions, HugePages, Memory, Region};
use mot_engine::{
    Build, CheckReport, Clock, CommandId, Engine, FileKey, Log, Lsn, OldSnapshot, OldSnapshots,
    Problem, RelationKey, Session, Snapshot, TableRef, Transaction, Xid,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub enum Fate {
    Running,
    Committed,
    Aborted,
}

#[derive(Default)]
struct State {
    next: u64,
    fates: HashMap<u64, Fate>,
    /// Every transaction id's top-level one.
    tops: HashMap<u64, u64>,
    /// Released subtransactions' ids and the open level they belong to now.
    parents: HashMap<u64, u64>,
    /// Ids of transactions, subtransactions included, that have not ended.
    running: BTreeSet<u64>,
    /// Registered snapshots' xmins and xmaxs, counted.
    registered: BTreeMap<(u64, u64), usize>,
}

/// The transaction manager.
#[derive(Clone, Default)]
pub struct World(Arc<Mutex<State>>);

/// One transaction's view.
#[derive(Clone)]
pub struct Me {
    pub world: World,
    pub top: u64,
}

impl Clock for Me {
    fn is_current(&self, xid: Xid) -> bool {
        assert_eq!(
            mot_engine::memory::latches_held(),
            0,
            "a clock under a latch"
        );
        let state = self.world.0.lock().unwrap();
        state.tops.get(&xid.0) == Some(&self.top) && state.fates[&xid.0] == Fate::Running
    }
    fn is_in_progress(&self, xid: Xid) -> bool {
        self.world.0.lock().unwrap().running.contains(&xid.0)
    }
    fn did_commit(&self, xid: Xid) -> bool {
        self.world.fate(xid.0) == Fate::Committed
    }
}

/// A snapshot; registered as long as it lives.
pub struct Snap {
    world: World,
    pub top: u64,
    pub cid: u32,
    pub xmin: u64,
    pub xmax: u64,
    pub running: BTreeSet<u64>,
    /// As registered: a test may change the bounds.
    span: (u64, u64),
}

impl Drop for Snap {
    fn drop(&mut self) {
        let mut state = self.world.0.lock().unwrap();
        let count = state.registered.get_mut(&self.span).unwrap();
        *count -= 1;
        if *count == 0 {
            state.registered.remove(&self.span);
        }
    }
}

impl Snapshot for Snap {
    fn xmin(&self) -> Xid {
        Xid(self.xmin)
    }
    fn own(&self, xid: Xid, cid: CommandId) -> Option<bool> {
        let state = self.world.0.lock().unwrap();
        let mine = self.top != 0
            && state.tops.get(&xid.0) == Some(&self.top)
            && state.fates[&xid.0] == Fate::Running;
        mine.then_some(cid.0 < self.cid)
    }
    fn running(&self, xid: Xid) -> bool {
        xid.0 >= self.xmax || self.running.contains(&xid.0)
    }
    fn did_commit(&self, xid: Xid) -> bool {
        self.world.fate(xid.0) == Fate::Committed
    }
}

impl World {
    pub fn new() -> World {
        let world = World::default();
        world.0.lock().unwrap().next = 3;
        world
    }

    /// A new top-level transaction.
    pub fn begin(&self) -> Me {
        let mut state = self.0.lock().unwrap();
        let xid = state.next;
        state.next += 1;
        state.fates.insert(xid, Fate::Running);
        state.tops.insert(xid, xid);
        state.running.insert(xid);
        Me {
            world: self.clone(),
            top: xid,
        }
    }

    /// The next transaction's id.
    pub fn next(&self) -> u64 {
        self.0.lock().unwrap().next
    }

    /// Loses the ids from here on, with what they stood for, as a crash does of which nothing has
    /// reached the log.
    pub fn lose_from(&self, xid: u64) {
        let mut state = self.0.lock().unwrap();
        state.next = xid;
        state.fates.retain(|id, _| *id < xid);
        state.tops.retain(|id, _| *id < xid);
        state.parents.retain(|id, _| *id < xid);
        state.running.retain(|id| *id < xid);
    }

    pub fn fate(&self, xid: u64) -> Fate {
        self.0
            .lock()
            .unwrap()
            .fates
            .get(&xid)
            .copied()
            .unwrap_or(Fate::Aborted)
    }

    pub fn top(&self, xid: u64) -> u64 {
        self.0.lock().unwrap().tops[&xid]
    }

    /// What a sweeper can know of old snapshots, if those are told of that `tells` says so of by
    /// their bounds.
    pub fn old_snapshots(&self, tells: impl Fn(u64, u64) -> bool) -> OldSnapshots {
        let state = self.0.lock().unwrap();
        let mut old = OldSnapshots {
            recent: Xid(state.running.first().copied().unwrap_or(state.next)),
            snapshots: Vec::new(),
        };
        for &(xmin, xmax) in state.registered.keys() {
            if tells(xmin, xmax) {
                old.snapshots.push(OldSnapshot {
                    xmin: Xid(xmin),
                    xmax: Xid(xmax),
                });
            } else {
                old.recent = old.recent.min(Xid(xmin));
            }
        }
        old
    }

    /// Versions below this are dead to everybody.
    pub fn horizon(&self) -> Xid {
        let state = self.0.lock().unwrap();
        let running = state.running.first().copied().unwrap_or(state.next);
        let registered = state
            .registered
            .keys()
            .next()
            .map_or(state.next, |span| span.0);
        Xid(running.min(registered).min(state.next))
    }
}

impl Me {
    /// A new subtransaction.
    pub fn savepoint(&self) -> u64 {
        let mut state = self.world.0.lock().unwrap();
        let xid = state.next;
        state.next += 1;
        state.fates.insert(xid, Fate::Running);
        state.tops.insert(xid, self.top);
        state.running.insert(xid);
        xid
    }

    /// Ends a level of the transaction, with what was released into it.
    pub fn abort_one(&self, xid: u64) {
        let mut state = self.world.0.lock().unwrap();
        let mut ending = vec![xid];
        while let Some(xid) = ending.pop() {
            state.fates.insert(xid, Fate::Aborted);
            state.running.remove(&xid);
            ending.extend(
                state
                    .parents
                    .iter()
                    .filter(|(_, up)| **up == xid)
                    .map(|(id, _)| *id),
            );
        }
    }

    /// A released subtransaction belongs to the level above.
    pub fn adopt(&self, released: u64, above: u64) {
        self.world.0.lock().unwrap().parents.insert(released, above);
    }

    /// Ends the transaction: all ids that still run.
    pub fn end(&self, fate: Fate) {
        let mut state = self.world.0.lock().unwrap();
        let ids: Vec<u64> = state
            .running
            .iter()
            .copied()
            .filter(|xid| state.tops[xid] == self.top)
            .collect();
        for xid in ids {
            state.fates.insert(xid, fate);
            state.running.remove(&xid);
        }
    }

    pub fn snapshot(&self, cid: u32) -> Snap {
        let mut state = self.world.0.lock().unwrap();
        let running = state.running.clone();
        // As GetSnapshotData: the own id counts for xmin, too.
        let xmin = running.first().copied().unwrap_or(state.next);
        let span = (xmin, state.next);
        *state.registered.entry(span).or_default() += 1;
        Snap {
            world: self.world.clone(),
            top: self.top,
            cid,
            xmin,
            xmax: state.next,
            running,
            span,
        }
    }
}

/// Somebody who reads only.
pub fn reader(world: &World) -> Me {
    Me {
        world: world.clone(),
        top: 0,
    }
}

/// Numbers that a seed other than 0 repeats.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % end
    }

    pub fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}

/// A log that only counts positions.
pub struct Positions(pub Arc<AtomicU64>);

impl Positions {
    pub fn new() -> Positions {
        Positions(Arc::default())
    }
}

impl Log for Positions {
    fn append(&mut self, record: &[u8]) -> Lsn {
        let bytes = record.len() as u64 + 24;
        Lsn(self.0.fetch_add(bytes, Ordering::SeqCst) + bytes)
    }
}

/// A log that keeps its records, stamped with the transaction that its user says is writing.
#[derive(Default)]
pub struct Wal {
    pub end: u64,
    pub xid: u64,
    pub records: Vec<(Lsn, Xid, Vec<u8>)>,
}

impl Log for Wal {
    fn append(&mut self, record: &[u8]) -> Lsn {
        self.end += record.len() as u64 + 24;
        let place = (Lsn(self.end), Xid(self.xid), record.to_vec());
        self.records.push(place);
        Lsn(self.end)
    }
}

pub const TABLE: RelationKey = RelationKey::of_file(1, 0, 100);

/// What a row holds: two integers, an integer that may be NULL, and padding.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Debug, Hash)]
pub struct Row {
    pub a: i32,
    pub b: i32,
    pub c: Option<i32>,
}

/// A heap tuple.
pub fn body(row: Row) -> Vec<u8> {
    let mut body = vec![0u8; 6];
    body[0..2].copy_from_slice(&3u16.to_le_bytes());
    body[4] = 24;
    body.extend_from_slice(&row.a.to_le_bytes());
    body.extend_from_slice(&row.b.to_le_bytes());
    match row.c {
        Some(c) => body.extend_from_slice(&c.to_le_bytes()),
        None => {
            body[2] = 1;
            body[5] = 0b011;
        }
    }
    body
}

/// Back from a heap tuple.
pub fn row(body: &[u8]) -> Row {
    let at = |from: usize| i32::from_le_bytes(body[from..from + 4].try_into().unwrap());
    let c = (body[2] & 1 == 0).then(|| at(14));
    Row {
        a: at(6),
        b: at(10),
        c,
    }
}

/// An index on some of the columns 1 (a), 2 (b), 3 (c, may be NULL).
pub fn definition(oid: u32, unique: bool, columns: &[(u16, bool)]) -> IndexDefinition {
    let int4 = AttributeLayout {
        len: 4,
        align: 4,
        by_value: true,
    };
    IndexDefinition {
        relation: oid,
        file: FileKey::NONE,
        unique,
        nulls_not_distinct: false,
        columns: columns
            .iter()
            .map(|(attnum, descending)| KeyColumn {
                attnum: *attnum,
                kind: KeyKind::Int4,
                descending: *descending,
                nulls_first: *descending,
                nullable: *attnum == 3,
                collation: None,
            })
            .collect(),
        layout: vec![int4; 3],
        missing: Vec::new(),
        computed: None,
    }
}

/// The number of a computed index in rows' tails.
pub const NUMBER: u32 = 500;

/// A partial index with computed keys: of the rows that [`formed`] makes.
pub fn computed(oid: u32, unique: bool) -> IndexDefinition {
    IndexDefinition {
        relation: oid,
        file: FileKey::NONE,
        unique,
        nulls_not_distinct: false,
        columns: vec![KeyColumn {
            attnum: 0,
            kind: KeyKind::Int4,
            descending: false,
            nulls_first: false,
            nullable: true,
            collation: None,
        }],
        layout: Vec::new(),
        missing: Vec::new(),
        computed: Some(NUMBER),
    }
}

/// A heap tuple whose computed key is -b; where `c` is NULL the row is not in the index.
pub fn formed(row: Row) -> Vec<u8> {
    let mut tail = Tail::default();
    match row.c {
        None => tail.leave_out(NUMBER).unwrap(),
        Some(_) => {
            let value = std::iter::once(KeyValue::Fixed((-row.b) as u32 as u64));
            tail.enter(NUMBER, &computed(0, false).columns, value)
                .unwrap();
        }
    }
    let mut with_tail = Vec::new();
    tail.append_to(&body(row), &mut with_tail).unwrap();
    with_tail
}

/// The key of a row.
pub fn key(definition: &IndexDefinition, row: Row) -> Vec<u8> {
    let mut key = KeyBuffer::new();
    mot_engine::key::encode_row(definition, &body(row), &mut key).unwrap();
    key.as_slice().to_vec()
}

/// A fresh engine of so many bytes.
pub fn engine(bytes: usize) -> (Region, Engine) {
    let region = Region::create(bytes, HugePages::Off).unwrap();
    // SAFETY: the region is fresh; the caller keeps it for as long as the engine.
    let memory = unsafe { Memory::format(&region, &ArenaOptions::default()) }.unwrap();
    (region, Engine::format(memory).unwrap())
}

/// A transaction of its own, committed.
pub fn transact<T>(
    session: &Session,
    world: &World,
    work: impl FnOnce(&mut Transaction, &Me, Xid) -> T,
) -> T {
    let me = world.begin();
    let mut transaction = Transaction::new();
    let done = work(&mut transaction, &me, Xid(me.top));
    me.end(Fate::Committed);
    transaction.commit(session);
    done
}

/// An empty table with these indexes.
pub fn table(session: &Session, world: &World, indexes: &[IndexDefinition]) -> TableRef {
    transact(session, world, |work, me, xid| {
        let table = work.create_table(session, TABLE, xid).unwrap();
        for definition in indexes {
            let build = work.create_index(session, me, table, definition, xid);
            assert!(matches!(build, Ok(Build::Done(_))), "{build:?}");
        }
        table
    })
}

/// The clock of somebody who is asked whether he was cancelled.
pub struct Asked<'a, F> {
    pub me: &'a Me,
    pub is_cancelled: F,
}

impl<F: Fn() -> bool> Clock for Asked<'_, F> {
    fn is_current(&self, xid: Xid) -> bool {
        self.me.is_current(xid)
    }
    fn is_in_progress(&self, xid: Xid) -> bool {
        self.me.is_in_progress(xid)
    }
    fn did_commit(&self, xid: Xid) -> bool {
        self.me.did_commit(xid)
    }
    fn is_cancelled(&self) -> bool {
        (self.is_cancelled)()
    }
}

/// Checks a table and fails with what is wrong.
pub fn check(session: &Session, table: TableRef, clock: &Me) -> CheckReport {
    let mut problems: Vec<Problem> = Vec::new();
    let report = session
        .check(table, clock, |problem| problems.push(problem))
        .unwrap();
    assert!(problems.is_empty(), "{problems:?}");
    report
}

/// Sweeps until nothing more goes. Of some old snapshots the sweeper is told.
pub fn sweep(session: &Session, world: &World, table: TableRef) {
    session.set_old_snapshots(world.old_snapshots(|xmin, xmax| (xmin + xmax) % 3 != 0));
    session.engine().raise_horizon(world.horizon());
    let clock = reader(world);
    while session.sweep(&clock, table, false, || {}).versions_removed > 0 {}
}
