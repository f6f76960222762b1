//! Random transactions, checkpoints in their midst, a crash at any point of the log, recovery into
//! another arena, and on from there.
//!
//! The model: what each committed transaction left of each row, by the LSN of its commit. After a
//! crash at LSN p the rows are what the commits up to p left, reachable through every index.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Range;
use std::rc::Rc;

use super::{HandOver, ParallelReplayer, Replayer, finish, load, settle_dropped_indexes};
use crate::checkpoint::{
    self, BlockBuilder, CheckpointContext, CheckpointProgress, EngineSource, Pace, RowSource,
    TableEntry, begin_round, newest, next_generation, read_base, write_from,
};
use crate::disk::simulated::SimulatedDisk;
use crate::errors::EngineError;
use crate::ids::{CommandId, IndexId, Lsn, RelationKey, Slot, TableId, Xid};
use crate::key::{AttributeLayout, IndexDefinition, KeyColumn, KeyKind};
use crate::limits::{INDEXES_PER_TABLE_MAX, KEY_BYTES_MAX};
use crate::memory::{ArenaOptions, HugePages, Memory, Region};
use crate::row::VersionRef;
use crate::scan::{Direction, IndexScan, KeyRange, RowScan};
use crate::session::Session;
use crate::transaction::{Entered, Log, Transaction, Written};
use crate::{Build, Clock, Engine, Newest, Snapshot, State};

pub(super) const SYSTEM: u64 = 42;
const KEYS: u64 = 24;

pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % bound
    }
}

/// The verdicts about transactions, as PostgreSQL would have them.
#[derive(Default)]
pub(super) struct Outcomes {
    pub(super) running: RefCell<BTreeSet<u64>>,
    pub(super) committed: RefCell<HashSet<u64>>,
}

pub(super) struct TestClock<'a> {
    pub(super) outcomes: &'a Outcomes,
    pub(super) me: u64,
}

impl Clock for TestClock<'_> {
    fn is_current(&self, xid: Xid) -> bool {
        xid.0 == self.me
    }
    fn is_in_progress(&self, xid: Xid) -> bool {
        self.outcomes.running.borrow().contains(&xid.0)
    }
    fn did_commit(&self, xid: Xid) -> bool {
        self.outcomes.committed.borrow().contains(&xid.0)
    }
}

/// Sees all that is committed.
struct Everything<'a>(&'a Outcomes);

impl Snapshot for Everything<'_> {
    fn xmin(&self) -> Xid {
        Xid(self.0.running.borrow().first().copied().unwrap_or(u64::MAX))
    }
    fn own(&self, _xid: Xid, _cid: CommandId) -> Option<bool> {
        None
    }
    fn running(&self, xid: Xid) -> bool {
        self.0.running.borrow().contains(&xid.0)
    }
    fn did_commit(&self, xid: Xid) -> bool {
        self.0.committed.borrow().contains(&xid.0)
    }
}

/// What lies in the log.
#[derive(Clone)]
pub(super) enum Entry {
    Record { xid: u64, bytes: Vec<u8> },
    Commit { xid: u64 },
}

/// A row's place and what a transaction left there.
type Effect = ((RelationKey, TableId, u64), Option<Vec<u8>>);

/// All that outlives a crash, cut at its LSN.
#[derive(Clone, Default)]
pub(super) struct Wal {
    pub(super) entries: Vec<(u64, Entry)>,
    effects: Vec<(u64, Vec<Effect>)>,
    /// Relations by the tables that store them, by commit LSN.
    storages: Vec<(u64, RelationKey, Option<TableId>)>,
    pub(super) end: u64,
}

impl Wal {
    fn append(&mut self, entry: Entry) -> u64 {
        self.end += 40
            + match &entry {
                Entry::Record { bytes, .. } => bytes.len() as u64,
                Entry::Commit { .. } => 0,
            };
        self.entries.push((self.end, entry));
        self.end
    }

    pub(super) fn cut(&mut self, at: u64) {
        self.entries.retain(|(lsn, _)| *lsn <= at);
        self.effects.retain(|(lsn, _)| *lsn <= at);
        self.storages.retain(|(lsn, ..)| *lsn <= at);
    }

    fn committed(&self) -> HashSet<u64> {
        self.entries
            .iter()
            .filter_map(|(_, entry)| match entry {
                Entry::Commit { xid } => Some(*xid),
                Entry::Record { .. } => None,
            })
            .collect()
    }

    /// The rows of all relations that exist.
    fn rows(&self) -> BTreeMap<(RelationKey, TableId, u64), Vec<u8>> {
        let mut rows = BTreeMap::new();
        for (_, effects) in &self.effects {
            for (place, body) in effects {
                match body {
                    Some(body) => rows.insert(*place, body.clone()),
                    None => rows.remove(place),
                };
            }
        }
        let mut storage = BTreeMap::new();
        for (_, key, table) in &self.storages {
            storage.insert(*key, *table);
        }
        rows.retain(|(key, table, _), _| storage.get(key) == Some(&Some(*table)));
        rows
    }
}

struct Appender<'a> {
    wal: &'a RefCell<Wal>,
    xid: u64,
}

impl Log for Appender<'_> {
    fn append(&mut self, record: &[u8]) -> Lsn {
        let entry = Entry::Record {
            xid: self.xid,
            bytes: record.to_vec(),
        };
        Lsn(self.wal.borrow_mut().append(entry))
    }
}

struct Open {
    xid: u64,
    cid: u32,
    transaction: Transaction,
    touched: BTreeSet<(RelationKey, TableId, u64)>,
    storages: Vec<(RelationKey, Option<TableId>)>,
    /// Relations locked exclusively.
    locked: Option<RelationKey>,
    logged: bool,
}

/// An engine in an arena of its own, and transactions running on it.
pub(super) struct World {
    pub(super) random: Random,
    pub(super) wal: Rc<RefCell<Wal>>,
    outcomes: Outcomes,
    open: Vec<Open>,
    next_xid: Cell<u64>,
    session: Session,
    engine: Engine,
    _region: Region,
}

fn arena() -> (Region, Engine) {
    let region = Region::create(64 << 20, HugePages::Off).expect("memory");
    // SAFETY: the region is fresh and outlives the engine.
    let memory = unsafe { Memory::format(&region, &ArenaOptions::default()) }.expect("formats");
    (region, Engine::format(memory).expect("formats"))
}

/// (key int4, other int4, text of varying length)
fn image(key: u64, other: u64, filler: usize) -> Vec<u8> {
    let mut image = vec![0; 24];
    image[18] = 3;
    image[22] = 24;
    image.extend_from_slice(&(key as u32).to_le_bytes());
    image.extend_from_slice(&(other as u32).to_le_bytes());
    image.push((filler as u8 + 1) << 1 | 1);
    image.extend(std::iter::repeat_n(b'x', filler));
    image
}

/// An index of one int4 column.
pub(super) fn index(relation: u32, attnum: u16, unique: bool) -> IndexDefinition {
    IndexDefinition {
        relation,
        unique,
        nulls_not_distinct: false,
        columns: vec![KeyColumn {
            attnum,
            kind: KeyKind::Int4,
            descending: false,
            nulls_first: false,
            nullable: false,
        }],
        layout: vec![
            AttributeLayout {
                len: 4,
                align: 4,
                by_value: true
            };
            attnum.into()
        ],
    }
}

const RELATIONS: [RelationKey; 2] = [
    RelationKey {
        database: 1,
        relation: 100,
    },
    RelationKey {
        database: 1,
        relation: 200,
    },
];

impl World {
    pub(super) fn new(seed: u64) -> World {
        let (region, engine) = arena();
        engine.set_state(State::Ready);
        World {
            random: Random(seed),
            wal: Rc::default(),
            outcomes: Outcomes::default(),
            open: Vec::new(),
            next_xid: Cell::new(10),
            session: engine.join().expect("joins"),
            engine,
            _region: region,
        }
    }

    fn begin(&mut self) -> usize {
        let xid = self.next_xid.get();
        self.next_xid.set(xid + 1);
        self.outcomes.running.borrow_mut().insert(xid);
        self.open.push(Open {
            xid,
            cid: 0,
            transaction: Transaction::new(),
            touched: BTreeSet::new(),
            storages: Vec::new(),
            locked: None,
            logged: false,
        });
        self.open.len() - 1
    }

    fn abort(&mut self, at: usize) {
        let mut open = self.open.remove(at);
        open.transaction.abort(&self.session);
        self.outcomes.running.borrow_mut().remove(&open.xid);
    }

    fn log(&mut self, at: usize) {
        let open = &mut self.open[at];
        let mut log = Appender {
            wal: &self.wal,
            xid: open.xid,
        };
        open.transaction.log(&self.session, &mut log).expect("logs");
        open.logged = true;
    }

    fn commit(&mut self, at: usize) {
        let mut open = self.open.remove(at);
        let clock = TestClock {
            outcomes: &self.outcomes,
            me: open.xid,
        };
        let mut effects = Vec::new();
        for place in &open.touched {
            let (key, id, slot) = *place;
            let walks = self.session.tables();
            let Some(walk) = walks.iter().find(|walk| walk.table().id() == id) else {
                continue;
            };
            assert_eq!(walk.table().key(), key);
            let body = match self.session.newest(&clock, walk.table(), Slot(slot)) {
                Newest::Live(version) => Some(version.body().to_vec()),
                _ => None,
            };
            effects.push((*place, body));
        }
        let mut wal = self.wal.borrow_mut();
        let lsn = wal.append(Entry::Commit { xid: open.xid });
        wal.effects.push((lsn, effects));
        for (key, table) in open.storages.drain(..) {
            wal.storages.push((lsn, key, table));
        }
        drop(wal);
        self.outcomes.running.borrow_mut().remove(&open.xid);
        self.outcomes.committed.borrow_mut().insert(open.xid);
        open.transaction.commit(&self.session);
    }

    /// One random step of one transaction.
    pub(super) fn step(&mut self) {
        let dice = self.random.below(100);
        if self.open.len() < 3 && (self.open.is_empty() || dice < 15) {
            self.begin();
            return;
        }
        let at = self.random.below(self.open.len() as u64) as usize;
        if self.open[at].logged {
            match dice {
                0..70 => self.commit(at),
                70..85 => self.abort(at),
                _ => {}
            }
            return;
        }
        match dice {
            0..14 => self.log(at),
            14..18 => self.abort(at),
            18..22 => self.define(at),
            22..25 => self.sweep(),
            _ => self.write(at),
        }
    }

    pub(super) fn sweep(&mut self) {
        let oldest = self.outcomes.running.borrow().first().copied();
        self.engine
            .raise_horizon(Xid(oldest.unwrap_or(self.next_xid.get())));
        let clock = TestClock {
            outcomes: &self.outcomes,
            me: 0,
        };
        for walk in self.session.tables() {
            self.session.sweep(&clock, walk.table(), true, || {});
        }
        let mut log = Appender {
            wal: &self.wal,
            xid: 0,
        };
        crate::transaction::log_and_free_doomed(&self.session, &mut log, || ()).expect("memory");
    }

    /// Creates, truncates or drops a table, or an index, if nobody else uses the relation.
    fn define(&mut self, at: usize) {
        let key = RELATIONS[self.random.below(2) as usize];
        let others = self.open.iter().enumerate().any(|(other, open)| {
            other != at
                && (open.locked == Some(key) || open.touched.iter().any(|(used, ..)| *used == key))
        });
        let mine = self.open[at].locked;
        if others || mine.is_some_and(|locked| locked != key) {
            return;
        }
        let what = self.random.below(10);
        let open = &mut self.open[at];
        let (session, xid) = (&self.session, Xid(open.xid));
        let clock = TestClock {
            outcomes: &self.outcomes,
            me: open.xid,
        };
        open.locked = Some(key);
        let Some(table) = session.find_table(key, &clock) else {
            let table = open
                .transaction
                .create_table(session, key, xid)
                .expect("memory");
            for definition in [index(1000, 1, true), index(1001, 2, false)] {
                let built = open
                    .transaction
                    .create_index(session, &clock, table, &definition, xid);
                assert!(matches!(built, Ok(Build::Done(_))));
            }
            open.storages.push((key, Some(table.id())));
            return;
        };
        match what {
            0 => {
                open.transaction
                    .drop_table(session, table, xid)
                    .expect("memory");
                open.storages.push((key, None));
            }
            1 => {
                let fresh = open
                    .transaction
                    .truncate_table(session, &clock, table, xid)
                    .expect("memory");
                open.storages.push((key, Some(fresh.id())));
            }
            2..5 => {
                open.transaction
                    .drop_index(session, &clock, table, 1001, xid)
                    .expect("memory");
            }
            _ => {
                if session.find_index(table, 1001, &clock).is_none() {
                    let built = open.transaction.create_index(
                        session,
                        &clock,
                        table,
                        &index(1001, 2, false),
                        xid,
                    );
                    assert!(matches!(built, Ok(Build::Done(_))));
                }
            }
        }
    }

    fn write(&mut self, at: usize) {
        let key = RELATIONS[self.random.below(2) as usize];
        let foreign = self
            .open
            .iter()
            .enumerate()
            .any(|(other, open)| other != at && open.locked == Some(key));
        let me = self.open[at].xid;
        let table = {
            let clock = TestClock {
                outcomes: &self.outcomes,
                me,
            };
            self.session.find_table(key, &clock)
        };
        let (Some(table), false) = (table, foreign) else {
            if !foreign {
                self.define(at);
            }
            return;
        };
        let new = image(
            self.random.below(KEYS),
            self.random.below(4),
            [0, 3, 40][self.random.below(3) as usize],
        );
        let slot = Slot(self.random.below(table.slots_end().0.max(1)));
        let dice = self.random.below(10);
        let open = &mut self.open[at];
        open.cid += 1;
        let (xid, cid) = (Xid(open.xid), CommandId(open.cid));
        let clock = TestClock {
            outcomes: &self.outcomes,
            me,
        };
        let session = &self.session;
        let transaction = &mut open.transaction;
        let (slot, version): (Slot, Option<VersionRef>) = if dice < 4 {
            let (slot, version) = transaction
                .insert(session, table, &new, xid, cid)
                .expect("memory");
            (slot, Some(version))
        } else {
            let Newest::Live(seen) = session.newest(&clock, table, slot) else {
                return;
            };
            let mut changed = seen.image().to_vec();
            if dice < 8 {
                changed[28] = changed[28].wrapping_add(1) % 4;
            } else {
                changed = new;
            }
            let written = if dice == 9 {
                transaction.delete(session, &clock, table, slot, seen, xid, cid)
            } else {
                transaction.update(session, &clock, table, slot, seen, &changed, xid, cid)
            };
            match written.expect("memory") {
                Written::Done(_) if dice == 9 => (slot, None),
                Written::Done(version) => (slot, Some(version)),
                _ => return,
            }
        };
        open.touched.insert((key, table.id(), slot.0));
        let entered = version.map(|version| {
            transaction
                .enter(session, &clock, table, slot, version)
                .expect("enters")
        });
        if !matches!(entered, None | Some(Entered::Done)) {
            self.abort(at);
        }
    }

    /// A checkpoint during which transactions go on. Gives the LSN up to which WAL is durable then.
    fn checkpoint(&mut self, disk: &SimulatedDisk, steps: u64) -> u64 {
        let wal = Rc::clone(&self.wal);
        let flush = &mut |_| Ok(Lsn(wal.borrow().end));
        let written = self.try_checkpoint(disk, steps, flush).expect("writes");
        written.flushed.0
    }

    /// As `checkpoint`, on a machine that may go down.
    pub(super) fn try_checkpoint(
        &mut self,
        disk: &SimulatedDisk,
        steps: u64,
        flush: &mut dyn FnMut(Lsn) -> Result<Lsn, EngineError>,
    ) -> Result<checkpoint::Written, EngineError> {
        let redo = Lsn(self.wal.borrow().end);
        for _ in 0..self.random.below(steps + 1) {
            self.step();
        }
        let engine = self.engine;
        let round = begin_round(engine)?;
        let (base, _) = read_base(self.engine, disk);
        let settled = self.outcomes.running.borrow().first().copied();
        let settled = Xid(settled.unwrap_or(self.next_xid.get()));
        let session = self.engine.join().expect("joins");
        let inner = EngineSource::collect(&session, redo, settled).expect("collects");
        let source = Fuzzy {
            inner,
            world: RefCell::new(self),
            steps,
        };
        let progress = CheckpointProgress::default();
        let generation = next_generation(disk)?;
        let mut context = CheckpointContext {
            system_id: SYSTEM,
            timeline: 1,
            redo,
            generation,
            settled,
            is_final: false,
            threads: 1,
            pace: Pace::unlimited(),
            progress: &progress,
            flush,
        };
        let written = write_from(&source, disk, &mut context, base.as_ref())?;
        engine.set_base(generation, round);
        let manifest = crate::checkpoint::read_manifest(disk, generation)?;
        for table in &manifest.tables {
            for parts in table.ranges.chunk_by(|one, next| one.number == next.number) {
                // The newest may have more: rows that were marked while it was written.
                let kept = &parts[..parts.len() - 1];
                let entries: Vec<_> = parts.iter().map(|part| part.entries).collect();
                assert!(
                    kept.is_sorted_by(|older, newer| older.entries > newer.entries),
                    "parts of {entries:?} rows"
                );
            }
        }
        Ok(written)
    }

    /// The machine goes down with the log durable up to `at`, and comes up again.
    fn recover(mut self, disk: &SimulatedDisk, at: u64) -> World {
        let wal = std::mem::take(&mut *self.wal.borrow_mut());
        World::try_recover(&mut self.random, wal, disk, at, &mut |_| Ok(())).expect("recovers")
    }

    /// As `recover`, on a machine that may go down again. `replayed` is called between records, at which a standby may write
    /// checkpoints.
    pub(super) fn try_recover(
        random: &mut Random,
        mut wal: Wal,
        disk: &SimulatedDisk,
        at: u64,
        replayed: &mut dyn FnMut(Replayed<'_>) -> Result<(), EngineError>,
    ) -> Result<World, EngineError> {
        wal.cut(at);
        let outcomes = Outcomes::default();
        *outcomes.committed.borrow_mut() = wal.committed();
        let (region, engine) = arena();
        let session = engine.join().expect("joins");
        engine.set_state(State::Loading);
        let mut from = 0;
        if let Some(manifest) = newest(disk, SYSTEM, |_, _| true)? {
            let threads = 1 + random.below(2) as usize;
            let loaded = load(engine, disk, &manifest, threads)?;
            assert!(loaded.flushed.0 <= at);
            // The server may go back further than the checkpoint.
            from = loaded.redo.0 * random.below(3) / 2;
        }
        engine.set_state(State::Replaying);
        // Alone, or with lanes, which are then behind at any moment.
        let lanes = [0, 2, 3][random.below(3) as usize];
        let mut replayer = ParallelReplayer::new(engine, lanes, 2);
        let mut next_xid = 10;
        for (lsn, entry) in &wal.entries {
            let (Entry::Record { xid, .. } | Entry::Commit { xid }) = entry;
            // An xid that left no trace in the log is used again.
            next_xid = next_xid.max(xid + 1);
            if let Entry::Record { xid, bytes } = entry
                && *lsn > from.min(at)
            {
                let how = HandOver {
                    is_ahead: random.below(8) > 0,
                    bytes_max: 1 << (8 + random.below(8)),
                    has_readers: random.below(2) == 0,
                };
                replayer
                    .apply(&session, bytes, Lsn(*lsn), Xid(*xid), how, &mut || {})
                    .unwrap_or_else(|error| panic!("{error}"));
            }
            replayed(Replayed {
                session: &session,
                wal: &wal,
                lsn: *lsn,
            })?;
        }
        replayer.drain(&mut || {}).expect("applies");
        finish(
            &session,
            &TestClock {
                outcomes: &outcomes,
                me: 0,
            },
            2,
        )
        .expect("finishes");
        engine.set_state(State::Ready);
        let random = Random(random.below(u64::MAX));
        // The old engine is gone without a word.
        Ok(World {
            random,
            wal: Rc::new(RefCell::new(wal)),
            outcomes,
            open: Vec::new(),
            next_xid: Cell::new(next_xid),
            session,
            engine,
            _region: region,
        })
    }

    /// Compares with the model. No transaction may be open.
    pub(super) fn check(&self) {
        let expected = self.wal.borrow().rows();
        let clock = TestClock {
            outcomes: &self.outcomes,
            me: 0,
        };
        let everything = Everything(&self.outcomes);
        let mut found = BTreeMap::new();
        for key in RELATIONS {
            let Some(table) = self.session.find_table(key, &clock) else {
                continue;
            };
            let mut scan = RowScan::new(table);
            let mut slots = Vec::new();
            while let Some((slot, version)) = scan.next(&self.session, &everything) {
                found.insert((key, table.id(), slot.0), version.body().to_vec());
                slots.push(slot);
            }
            assert_eq!(
                table.row_count_estimate(),
                slots.len() as u64,
                "rows counted"
            );
            let mut problems = Vec::new();
            let report = self
                .session
                .check(table, &clock, |problem| problems.push(problem))
                .expect("looks at all");
            assert_eq!(problems, []);
            assert_eq!(report.rows, slots.len() as u64);
            for index in self.session.indexes(table, &clock) {
                let mut scan = IndexScan::new();
                scan.start(table, index, &KeyRange::new(), Direction::Forward);
                let mut reached = Vec::new();
                while let Some((slot, _)) = scan.next(&self.session, &everything).expect("scans") {
                    reached.push(slot);
                }
                reached.sort_unstable();
                assert_eq!(
                    reached,
                    slots,
                    "rows through index {}",
                    index.relation_oid()
                );
            }
        }
        assert_eq!(
            found.keys().collect::<Vec<_>>(),
            expected.keys().collect::<Vec<_>>()
        );
        assert_eq!(found, expected);
    }

    pub(super) fn end_all(&mut self) {
        while !self.open.is_empty() {
            if self.open[0].logged {
                self.commit(0);
            } else {
                self.abort(0);
            }
        }
    }
}

/// Replay has come so far.
pub(super) struct Replayed<'a> {
    pub(super) session: &'a Session,
    pub(super) wal: &'a Wal,
    pub(super) lsn: u64,
}

/// The engine's rows, with transactions going on between one row and the next.
struct Fuzzy<'a> {
    inner: EngineSource<'a>,
    world: RefCell<&'a mut World>,
    steps: u64,
}

// SAFETY: a checkpoint with one thread walks in the caller's thread.
unsafe impl Sync for Fuzzy<'_> {}

impl RowSource for Fuzzy<'_> {
    type Walker<'b>
        = Session
    where
        Self: 'b;

    fn tables(&self) -> Result<(Vec<TableEntry>, TableId, IndexId), EngineError> {
        let tables = self.inner.tables();
        self.go_on();
        tables
    }

    fn has_changed(&self, table: TableId, first: Slot) -> Result<bool, EngineError> {
        let changed = self.inner.has_changed(table, first);
        self.go_on();
        changed
    }

    fn count(
        &self,
        table: TableId,
        slots: Range<Slot>,
        above: &[Lsn],
    ) -> Result<checkpoint::Counts, EngineError> {
        let counts = self.inner.count(table, slots, above);
        self.go_on();
        counts
    }

    fn walker(&self) -> Result<Session, EngineError> {
        self.inner.walker()
    }

    fn walk(
        &self,
        walker: &mut Session,
        table: TableId,
        slots: Range<Slot>,
        since: Lsn,
        block: &mut BlockBuilder,
    ) -> Result<(Slot, u64), EngineError> {
        self.go_on();
        let end = slots.end.min(Slot(
            slots.start.0 + 1 + self.world.borrow_mut().random.below(4),
        ));
        self.inner
            .walk(walker, table, slots.start..end, since, block)
    }

    fn release(&self, table: TableId) {
        self.inner.release(table);
        self.go_on();
    }
}

impl Fuzzy<'_> {
    fn go_on(&self) {
        let mut world = self.world.borrow_mut();
        for _ in 0..world.random.below(self.steps + 1) {
            world.step();
        }
    }
}

fn run(seed: u64) {
    let mut world = World::new(seed);
    let mut disk = SimulatedDisk::new(seed);
    // Before this nothing can be lost.
    let mut durable = 0;
    for _ in 0..4 {
        for _ in 0..world.random.below(3) {
            for _ in 0..world.random.below(150) {
                world.step();
            }
            let steps = world.random.below(12);
            durable = world.checkpoint(&disk, steps);
        }
        for _ in 0..world.random.below(150) {
            world.step();
        }
        if world.random.below(4) == 0 {
            world.end_all();
            world.check();
        }
        let end = world.wal.borrow().end;
        let at = durable + world.random.below(end - durable + 1);
        disk = disk.restart();
        world = world.recover(&disk, at);
        // What was lost is written anew.
        let kept = world.wal.borrow().entries.last().map_or(0, |(lsn, _)| *lsn);
        world.wal.borrow_mut().end = kept.max(durable);
        world.check();
    }
}

#[test]
fn recovers_what_was_committed() {
    let seeds = match std::env::var("MOT_TEST_SEED") {
        Ok(seed) => {
            let seed = seed.parse().expect("a number");
            seed..seed + 1
        }
        Err(_) => 0..300,
    };
    for seed in seeds {
        let outcome = std::panic::catch_unwind(|| run(seed));
        if let Err(payload) = outcome {
            eprintln!("failed with MOT_TEST_SEED={seed}");
            std::panic::resume_unwind(payload);
        }
    }
}

/// An index that is dropped and made again and again, before the reclaimer comes by: on the server each drop gives a place back at its end.
#[test]
fn dropped_indexes_give_their_places_back() {
    let mut world = World::new(1);
    let key = RELATIONS[0];
    for number in 0..=3 * INDEXES_PER_TABLE_MAX {
        let at = world.begin();
        world.open[at].locked = Some(key);
        let clock = TestClock {
            outcomes: &world.outcomes,
            me: world.open[at].xid,
        };
        let (session, open) = (&world.session, &mut world.open[at]);
        let xid = Xid(open.xid);
        let table = match session.find_table(key, &clock) {
            Some(table) => table,
            None => {
                let made = open.transaction.create_table(session, key, xid);
                let table = made.expect("memory");
                open.storages.push((key, Some(table.id())));
                table
            }
        };
        if number % 2 == 0 {
            let definition = index(1001, 2, false);
            let built = open
                .transaction
                .create_index(session, &clock, table, &definition, xid);
            assert!(matches!(built, Ok(Build::Done(_))));
        } else {
            let dropped = open
                .transaction
                .drop_index(session, &clock, table, 1001, xid);
            assert!(dropped.expect("memory"));
        }
        world.log(at);
        // Some drops are rolled back, when they are logged already.
        if number % 10 == 1 {
            world.abort(at);
            let again = world.begin();
            let (session, open) = (&world.session, &mut world.open[again]);
            let clock = TestClock {
                outcomes: &world.outcomes,
                me: open.xid,
            };
            let dropped = open
                .transaction
                .drop_index(session, &clock, table, 1001, Xid(open.xid));
            assert!(dropped.expect("memory"));
            world.log(again);
            world.commit(again);
        } else {
            world.commit(at);
        }
    }
    let wal = world.wal.borrow().clone();
    let outcomes = Outcomes::default();
    let clock = TestClock {
        outcomes: &outcomes,
        me: 0,
    };
    let (_region, engine) = arena();
    let session = engine.join().expect("joins");
    engine.set_state(State::Replaying);
    let mut replayer = Replayer::new(1);
    let mut settled = 0;
    for (lsn, entry) in &wal.entries {
        let (xid, bytes) = match entry {
            Entry::Record { xid, bytes } => (Xid(*xid), bytes),
            Entry::Commit { xid } => {
                outcomes.committed.borrow_mut().insert(*xid);
                continue;
            }
        };
        let mut applied = replayer.apply(&session, bytes, Lsn(*lsn), xid);
        if let Err(EngineError::TooManyIndexes { .. }) = applied {
            settled += settle_dropped_indexes(&session, &clock);
            applied = replayer.apply(&session, bytes, Lsn(*lsn), xid);
        }
        applied.expect("there was a place");
    }
    assert!(settled > 0, "there were places for all");
    finish(&session, &clock, 1).expect("finishes");
    engine.set_state(State::Ready);
    let table = session.find_table(key, &clock).expect("exists");
    let ids = |session: &Session, table, clock: &TestClock<'_>| -> Vec<IndexId> {
        let indexes = session.indexes(table, clock);
        indexes.into_iter().map(|index| index.id()).collect()
    };
    let before = TestClock {
        outcomes: &world.outcomes,
        me: 0,
    };
    let original = world.session.find_table(key, &before).expect("exists");
    assert_eq!(
        ids(&session, table, &clock),
        ids(&world.session, original, &before)
    );
}

impl World {
    /// A transaction that is logged and commits.
    fn run(&mut self, work: impl FnOnce(&Session, &TestClock<'_>, &mut Open)) {
        let at = self.begin();
        let clock = TestClock {
            outcomes: &self.outcomes,
            me: self.open[at].xid,
        };
        work(&self.session, &clock, &mut self.open[at]);
        self.log(at);
        self.commit(at);
    }
}

/// (text), with a long header.
fn text_image(bytes: usize) -> Vec<u8> {
    let mut image = vec![0; 24];
    image[18] = 1;
    image[22] = 24;
    image.extend_from_slice(&((bytes as u32 + 4) << 2).to_le_bytes());
    image.resize(image.len() + bytes, b'x');
    image
}

/// A state whose key is too long for an index is none of its business if it was gone for everybody before the index was made, or came when the
/// index was dropped. Replay and a start may have both.
#[test]
fn keys_too_long_for_an_index_of_another_time() {
    for has_checkpoints in [false, true] {
        let key = RELATIONS[0];
        let (long, short) = (text_image(KEY_BYTES_MAX + 1), text_image(10));
        let mut by_text = index(1000, 1, false);
        by_text.columns[0].kind = KeyKind::Text;
        by_text.layout[0] = AttributeLayout {
            len: -1,
            align: 4,
            by_value: false,
        };
        let insert = |session: &Session, clock: &TestClock<'_>, open: &mut Open, image: &[u8]| {
            let table = session.find_table(key, clock).expect("exists");
            let (xid, cid) = (Xid(open.xid), CommandId(1));
            let inserted = open.transaction.insert(session, table, image, xid, cid);
            let (slot, version) = inserted.expect("memory");
            open.touched.insert((key, table.id(), slot.0));
            let entered = open.transaction.enter(session, clock, table, slot, version);
            assert_eq!(entered.expect("enters"), Entered::Done);
        };
        let update = |session: &Session, clock: &TestClock<'_>, open: &mut Open, image: &[u8]| {
            let table = session.find_table(key, clock).expect("exists");
            let (xid, cid, slot) = (Xid(open.xid), CommandId(2), Slot(0));
            let Newest::Live(seen) = session.newest(clock, table, slot) else {
                panic!("no row");
            };
            let updated = open
                .transaction
                .update(session, clock, table, slot, seen, image, xid, cid);
            let Ok(Written::Done(version)) = updated else {
                panic!("{updated:?}");
            };
            open.touched.insert((key, table.id(), slot.0));
            let entered = open.transaction.enter(session, clock, table, slot, version);
            assert_eq!(entered.expect("enters"), Entered::Done);
        };
        let mut world = World::new(1);
        let disk = SimulatedDisk::new(1);
        world.run(|session, _, open| {
            let made = open.transaction.create_table(session, key, Xid(open.xid));
            open.storages.push((key, Some(made.expect("memory").id())));
        });
        world.run(|session, clock, open| insert(session, clock, open, &long));
        // The checkpoint cannot tell that nobody sees the long state any more.
        let oldest = world.begin();
        world.run(|session, clock, open| update(session, clock, open, &short));
        if has_checkpoints {
            world.checkpoint(&disk, 0);
        }
        world.abort(oldest);
        world.sweep();
        world.run(|session, clock, open| {
            let table = session.find_table(key, clock).expect("exists");
            let xid = Xid(open.xid);
            let built = open
                .transaction
                .create_index(session, clock, table, &by_text, xid);
            assert!(matches!(built, Ok(Build::Done(_))));
        });
        if has_checkpoints {
            world.checkpoint(&disk, 0);
        }
        let drop_index = |session: &Session, clock: &TestClock<'_>, open: &mut Open| {
            let table = session.find_table(key, clock).expect("exists");
            let xid = Xid(open.xid);
            let dropped = open
                .transaction
                .drop_index(session, clock, table, 1000, xid);
            assert!(dropped.expect("memory"));
        };
        // Taken back: the index minds again what comes then, and has not got what came meanwhile.
        let at = world.begin();
        let clock = TestClock {
            outcomes: &world.outcomes,
            me: world.open[at].xid,
        };
        drop_index(&world.session, &clock, &mut world.open[at]);
        insert(&world.session, &clock, &mut world.open[at], &long);
        update(&world.session, &clock, &mut world.open[at], &long);
        world.log(at);
        world.abort(at);
        world.check();
        if has_checkpoints {
            world.checkpoint(&disk, 0);
        }
        world.run(|session, clock, open| {
            drop_index(session, clock, open);
            insert(session, clock, open, &long);
        });
        world.run(|session, clock, open| insert(session, clock, open, &long));
        world.run(|session, clock, open| update(session, clock, open, &long));
        if has_checkpoints {
            world.checkpoint(&disk, 0);
        }
        world.check();
        let at = world.wal.borrow().end;
        world.recover(&disk.restart(), at).check();
    }
}
