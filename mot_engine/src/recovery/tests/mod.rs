//! Random transactions, checkpoints in their midst, a crash at any point of the log, recovery into
//! another arena, and on from there. Here: the model, and what the tests beside it share.
//!
//! The model: what each committed transaction left of each row, by the LSN of its commit. After a
//! crash at LSN p the rows are what the commits up to p left, reachable through every index. Of
//! storages whose rows are not logged there are none then, but behind a clean shutdown all. Of the
//! temporary relation there is nothing behind any start.

mod checkpoints;
mod clean_starts;
mod definitions;
mod every_record;
mod held;
mod prepared;
mod recover;
mod transactions;

pub(super) use held::Held;
pub(super) use recover::Replayed;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Range;
use std::rc::Rc;

use super::{
    HandOver, ParallelReplayer, Replayer, finish, finish_beside_prepared, load,
    load_after_shutdown, resolve_gone_indexes,
};
use crate::checkpoint::{
    self, BlockBuilder, CheckpointContext, CheckpointProgress, Definitions, EngineSource, Pace,
    RowSource, begin_round, newest, next_generation, read_base, seal, write_from,
};
use crate::disk::simulated::SimulatedDisk;
use crate::errors::EngineError;
use crate::ids::{CommandId, FileKey, IndexId, Lsn, RelationKey, RowId, TableId, Xid};
use crate::key::{AttributeLayout, IndexDefinition, KeyColumn, KeyKind};
use crate::limits::{INDEXES_PER_TABLE_MAX, KEY_BYTES_MAX};
use crate::log::{Record, RowLock};
use crate::memory::{ArenaOptions, HugePages, Memory, Region};
use crate::row::{LockStrength, VersionRef};
use crate::scan::{Direction, IndexScan, KeyRange, RowScan};
use crate::session::Session;
use crate::table::{Persistence, TableRef};
use crate::transaction::{Entered, Locked, Log, Transaction, Written};
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

/// The outcomes of transactions, as PostgreSQL would have them.
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
    Record {
        xid: u64,
        bytes: Vec<u8>,
    },
    Commit {
        xid: u64,
    },
    /// Prepared: what it does is in the log, and its end is not.
    Prepare {
        xid: u64,
    },
    /// The end of one that was prepared.
    Abort {
        xid: u64,
    },
}

impl Entry {
    /// 0: of no transaction.
    fn xid(&self) -> u64 {
        let (Entry::Record { xid, .. }
        | Entry::Commit { xid }
        | Entry::Prepare { xid }
        | Entry::Abort { xid }) = self;
        *xid
    }
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
    /// Tables whose rows are not logged, by commit LSN.
    unlogged: Vec<(u64, TableId)>,
    /// What prepared transactions will have done, by the LSN of their Prepare.
    prepared: Vec<(u64, Prepared)>,
    pub(super) end: u64,
}

/// A transaction that was prepared.
#[derive(Clone)]
struct Prepared {
    xid: u64,
    effects: Vec<Effect>,
    storages: Vec<(RelationKey, Option<TableId>)>,
    unlogged: Vec<TableId>,
    /// Relations that it changed or locked rows of.
    used: BTreeSet<RelationKey>,
    locked: Option<RelationKey>,
    /// Rows that it locked and did not change.
    rows: Vec<RowLock>,
}

impl Wal {
    fn append(&mut self, entry: Entry) -> u64 {
        self.end += 40
            + match &entry {
                Entry::Record { bytes, .. } => bytes.len() as u64,
                _ => 0,
            };
        self.entries.push((self.end, entry));
        self.end
    }

    pub(super) fn cut(&mut self, at: u64) {
        self.entries.retain(|(lsn, _)| *lsn <= at);
        self.effects.retain(|(lsn, _)| *lsn <= at);
        self.storages.retain(|(lsn, ..)| *lsn <= at);
        self.unlogged.retain(|(lsn, _)| *lsn <= at);
        self.prepared.retain(|(lsn, _)| *lsn <= at);
    }

    /// A crash empties tables whose rows are not logged.
    fn forget_unlogged_rows(&mut self) {
        let unlogged = self.unlogged.iter().map(|(_, table)| *table);
        let prepared = self.prepared.iter();
        let prepared = prepared.flat_map(|(_, prepared)| prepared.unlogged.iter().copied());
        let unlogged: BTreeSet<TableId> = unlogged.chain(prepared).collect();
        for (_, prepared) in &mut self.prepared {
            prepared.rows.retain(|lock| !unlogged.contains(&lock.table));
        }
        let prepared = self.prepared.iter_mut();
        let prepared = prepared.map(|(_, prepared)| &mut prepared.effects);
        let ended = self.effects.iter_mut().map(|(_, effects)| effects);
        for effects in ended.chain(prepared) {
            effects.retain(|((_, table, _), _)| !unlogged.contains(table));
        }
    }

    /// No start knows of temporary tables.
    fn forget_temporary(&mut self) {
        self.storages.retain(|(_, key, _)| *key != TEMPORARY);
        for (_, effects) in &mut self.effects {
            effects.retain(|((key, ..), _)| *key != TEMPORARY);
        }
    }

    fn committed(&self) -> HashSet<u64> {
        self.entries
            .iter()
            .filter_map(|(_, entry)| match entry {
                Entry::Commit { xid } => Some(*xid),
                _ => None,
            })
            .collect()
    }

    /// Prepared ones whose end is not in the log.
    fn still_prepared(&self) -> Vec<Prepared> {
        let has_ended = |xid: u64| {
            let mut entries = self.entries.iter();
            entries.any(|(_, entry)| match entry {
                Entry::Commit { xid: ended } | Entry::Abort { xid: ended } => *ended == xid,
                _ => false,
            })
        };
        let prepared = self.prepared.iter().map(|(_, prepared)| prepared);
        prepared
            .filter(|prepared| !has_ended(prepared.xid))
            .cloned()
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
    /// Tables that it made whose rows are not logged.
    unlogged: Vec<TableId>,
    /// Relations locked exclusively.
    locked: Option<RelationKey>,
    logged: bool,
    /// The rows that it locked and did not change, if these are logged.
    rows: Option<Vec<RowLock>>,
    /// Relations that it locked rows of.
    used: BTreeSet<RelationKey>,
    /// Its commit record is written, and no process knows yet.
    ended: bool,
}

/// An engine in an arena of its own, and transactions running on it.
pub(super) struct World {
    pub(super) random: Random,
    pub(super) wal: Rc<RefCell<Wal>>,
    outcomes: Outcomes,
    open: Vec<Open>,
    prepared: Vec<Prepared>,
    next_xid: Cell<u64>,
    /// The next checkpoint is the last one of a shutdown.
    shuts_down: bool,
    session: Session,
    engine: Engine,
    region: Region,
}

fn arena() -> (Region, Engine) {
    let region = Region::create(64 << 20, HugePages::Off).expect("memory");
    // SAFETY: the region is fresh and outlives the engine.
    let memory = unsafe { Memory::format(&region, &ArenaOptions::default()) }.expect("formats");
    (region, Engine::format(memory).expect("formats"))
}

/// (key int4, other int4, text of varying length)
fn body(key: u64, other: u64, filler: usize) -> Vec<u8> {
    let mut body = vec![0; 6];
    body[0] = 3;
    body[4] = 24;
    body.extend_from_slice(&(key as u32).to_le_bytes());
    body.extend_from_slice(&(other as u32).to_le_bytes());
    body.push((filler as u8 + 1) << 1 | 1);
    body.extend(std::iter::repeat_n(b'x', filler));
    body
}

/// An index of one int4 column.
pub(super) fn index(relation: u32, attnum: u16, unique: bool) -> IndexDefinition {
    IndexDefinition {
        relation,
        file: FileKey::NONE,
        unique,
        nulls_not_distinct: false,
        columns: vec![KeyColumn {
            attnum,
            kind: KeyKind::Int4,
            descending: false,
            nulls_first: false,
            nullable: false,
            collation: None,
        }],
        layout: vec![
            AttributeLayout {
                len: 4,
                align: 4,
                by_value: true
            };
            attnum.into()
        ],
        missing: Vec::new(),
        computed: None,
    }
}

const RELATIONS: [RelationKey; 4] = [
    RelationKey::of_file(1, 0, 100),
    RelationKey::of_file(1, 0, 200),
    UNLOGGED,
    TEMPORARY,
];

const UNLOGGED: RelationKey = RelationKey::of_file(1, 0, 300);
const TEMPORARY: RelationKey = RelationKey::of_file(1, 0, 400).of_temporary(1);

/// What of a relation is logged when it is made.
fn persistence_of(key: RelationKey) -> Persistence {
    match key {
        UNLOGGED => Persistence::Unlogged,
        TEMPORARY => Persistence::Temporary,
        _ => Persistence::Logged,
    }
}

impl World {
    pub(super) fn new(seed: u64) -> World {
        let (region, engine) = arena();
        engine.set_state(State::Ready);
        World {
            random: Random(seed),
            wal: Rc::default(),
            outcomes: Outcomes::default(),
            open: Vec::new(),
            prepared: Vec::new(),
            next_xid: Cell::new(10),
            shuts_down: false,
            session: engine.join().expect("joins"),
            engine,
            region,
        }
    }
}
