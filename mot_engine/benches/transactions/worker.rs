//! One thread's way to the engine: finding, changing, inserting and deleting rows of 32-bit numbers
//! and filler.

use crate::world::{Buffer, Snap, World};
use mot_engine::key::{
    AttributeLayout, IndexDefinition, KeyBuffer, KeyColumn, KeyKind, KeyValue, encode_value,
};
use mot_engine::{
    Build, CommandId, Direction, Engine, Entered, FileKey, IndexRef, IndexScan, KeyRange,
    KeysUnchanged, Newest, RelationKey, RowId, Session, TableRef, Transaction, VersionRef, Written,
    Xid,
};

const CID: CommandId = CommandId(1);
/// Transactions between two looks at the horizon, and between two sweeps.
const HORIZON_EVERY: u64 = 16;
const SWEEP_EVERY: u64 = 2_000;
/// Where a body's numbers begin.
pub const BODY_HEADER_BYTES: usize = 6;

/// A table and its indexes. Valid as long as the bench's arena.
#[derive(Clone)]
pub struct Table {
    pub rows: TableRef,
    pub indexes: Vec<IndexRef>,
    /// Of what is assigned to: no key.
    pub unchanged: KeysUnchanged,
}

// SAFETY: addresses in the arena, which outlives all threads of the bench.
unsafe impl Send for Table {}
// SAFETY: as above.
unsafe impl Sync for Table {}

fn column(attnum: u16, kind: KeyKind) -> KeyColumn {
    KeyColumn {
        attnum,
        kind,
        descending: false,
        nulls_first: false,
        nullable: false,
        collation: None,
    }
}

/// Text is in the attribute `text`, if there is one; all before it are numbers.
fn definition(relation: u32, unique: bool, columns: &[u16], text: u16) -> IndexDefinition {
    let is_text = |attnum: u16| attnum == text;
    let kind = |attnum| {
        if is_text(attnum) {
            KeyKind::Text
        } else {
            KeyKind::Int4
        }
    };
    let last = *columns.iter().max().expect("has columns");
    IndexDefinition {
        relation,
        file: FileKey::NONE,
        unique,
        nulls_not_distinct: false,
        columns: columns
            .iter()
            .map(|attnum| column(*attnum, kind(*attnum)))
            .collect(),
        layout: (1..=last)
            .map(|attnum| AttributeLayout {
                len: if is_text(attnum) { -1 } else { 4 },
                align: 4,
                by_value: !is_text(attnum),
            })
            .collect(),
        missing: Vec::new(),
        computed: None,
    }
}

/// A tuple: numbers, a text, filler up to a size.
pub fn body(numbers: &[u32], text: &str, bytes: usize) -> Vec<u8> {
    let filled = BODY_HEADER_BYTES + 4 * numbers.len() + 1 + text.len();
    let mut body = Vec::with_capacity(bytes.max(filled));
    body.resize(BODY_HEADER_BYTES, 0u8);
    body[0] = numbers.len() as u8 + 2;
    body[2] = 2;
    body[4] = 24;
    for number in numbers {
        body.extend_from_slice(&number.to_le_bytes());
    }
    body.push((text.len() as u8 + 1) << 1 | 1);
    body.extend_from_slice(text.as_bytes());
    body.resize(bytes.max(body.len()), b'x');
    body
}

/// Number `at` (from 0) of a tuple.
pub fn number(body: &[u8], at: usize) -> u32 {
    let from = BODY_HEADER_BYTES + 4 * at;
    u32::from_le_bytes(body[from..from + 4].try_into().expect("four bytes"))
}

pub fn set_number(body: &mut [u8], at: usize, value: u32) {
    let from = BODY_HEADER_BYTES + 4 * at;
    body[from..from + 4].copy_from_slice(&value.to_le_bytes());
}

pub struct Worker<'a> {
    pub session: Session,
    pub world: &'a World,
    thread: usize,
    log: Buffer<'a>,
    work: Transaction,
    xid: Xid,
    snapshot: Snap<'a>,
    key: KeyBuffer,
    /// Of `find_all`, one behind the other.
    keys: Vec<u8>,
    range: KeyRange,
    scan: IndexScan,
    body: Vec<u8>,
    done: u64,
    pub waits: u64,
}

impl<'a> Worker<'a> {
    pub fn new(engine: Engine, world: &'a World, thread: usize) -> Worker<'a> {
        let (xid, snapshot) = world.begin(thread, false);
        world.end(thread, true);
        Worker {
            session: engine.join().expect("joins"),
            world,
            thread,
            log: Buffer::new(world),
            work: Transaction::new(),
            xid,
            snapshot,
            key: KeyBuffer::new(),
            keys: Vec::new(),
            range: KeyRange::new(),
            scan: IndexScan::new(),
            body: Vec::new(),
            done: 0,
            waits: 0,
        }
    }

    /// A table with indexes: unique or not, columns, and which attribute is text.
    pub fn create(&mut self, relation: u32, indexes: &[(bool, &[u16])], text: u16) -> Table {
        self.begin(true);
        let rows = self
            .work
            .create_table(
                &self.session,
                RelationKey::of_file(1, 0, relation),
                self.xid,
            )
            .expect("memory");
        let indexes = indexes.iter().enumerate().map(|(at, (unique, columns))| {
            let definition = definition(relation * 10 + at as u32, *unique, columns, text);
            match self
                .work
                .create_index(&self.session, &self.snapshot, rows, &definition, self.xid)
                .expect("memory")
            {
                Build::Done(index) => index,
                other => panic!("{other:?}"),
            }
        });
        let indexes = indexes.collect();
        let unchanged = self
            .session
            .keys_unchanged(rows, |_| false)
            .expect("decodes");
        let table = Table {
            rows,
            indexes,
            unchanged: unchanged.expect("no column is meant"),
        };
        self.commit(&[]);
        table
    }

    pub fn begin(&mut self, writes: bool) {
        (self.xid, self.snapshot) = self.world.begin(self.thread, writes);
    }

    /// Commits; now and then looks after the tables given.
    pub fn commit(&mut self, tables: &[Table]) {
        if self.xid.0 != 0 {
            self.work.log(&self.session, &mut self.log).expect("memory");
        }
        self.world.end(self.thread, true);
        self.work.commit(&self.session);
        self.done += 1;
        if self.done.is_multiple_of(HORIZON_EVERY) {
            self.session.engine().raise_horizon(self.world.horizon());
        }
        if self.done.is_multiple_of(SWEEP_EVERY) && self.thread == 0 {
            for table in tables {
                self.session.sweep(&self.snapshot, table.rows, false, || {});
            }
        }
    }

    pub fn roll_back(&mut self) {
        self.world.end(self.thread, false);
        self.work.abort(&self.session);
    }

    fn encode(&mut self, parts: &[u32], text: Option<&str>) {
        self.key.clear();
        let (int, string) = (column(1, KeyKind::Int4), column(1, KeyKind::Text));
        for part in parts {
            encode_value(&int, KeyValue::Fixed(u64::from(*part)), &mut self.key).expect("short");
        }
        if let Some(text) = text {
            encode_value(&string, KeyValue::Bytes(text.as_bytes()), &mut self.key).expect("short");
        }
    }

    /// The row with this key of a table's first index.
    pub fn find(&mut self, table: &Table, key: &[u32]) -> (RowId, VersionRef) {
        self.encode(key, None);
        let (session, key_bytes) = (&self.session, self.key.as_slice());
        let found = self
            .scan
            .find(
                session,
                table.rows,
                table.indexes[0],
                key_bytes,
                &self.snapshot,
            )
            .expect("memory");
        found.unwrap_or_else(|| panic!("no row {key:?}"))
    }

    /// Visits the rows with these keys of a table's first index, in that order.
    pub fn find_all<const COLUMNS: usize>(
        &mut self,
        table: &Table,
        keys: impl Iterator<Item = [u32; COLUMNS]>,
        mut visit: impl FnMut(RowId, VersionRef),
    ) {
        self.keys.clear();
        for key in keys {
            self.encode(&key, None);
            self.keys.extend_from_slice(self.key.as_slice());
        }
        let keys = self.keys.chunks_exact(self.key.len().max(1));
        self.scan
            .start_points(table.rows, table.indexes[0], keys)
            .expect("memory");
        while let Some((row_id, version)) = self
            .scan
            .next(&self.session, &self.snapshot)
            .expect("memory")
        {
            visit(row_id, version);
        }
    }

    /// Visits rows whose keys begin so, until told to stop.
    pub fn scan(
        &mut self,
        table: &Table,
        index: usize,
        prefix: &[u32],
        text: Option<&str>,
        direction: Direction,
        visit: impl FnMut(RowId, VersionRef) -> bool,
    ) {
        self.encode(prefix, text);
        self.range.set_prefix(self.key.as_slice()).expect("memory");
        self.visit(table, index, direction, visit);
    }

    /// Visits rows from one key up to another.
    pub fn scan_between(
        &mut self,
        table: &Table,
        low: &[u32],
        high: Option<&[u32]>,
        visit: impl FnMut(RowId, VersionRef) -> bool,
    ) {
        self.range.clear();
        self.encode(low, None);
        self.range
            .set_low(self.key.as_slice(), true)
            .expect("memory");
        if let Some(high) = high {
            self.encode(high, None);
            self.range
                .set_high(self.key.as_slice(), false)
                .expect("memory");
        }
        self.visit(table, 0, Direction::Forward, visit);
    }

    fn visit(
        &mut self,
        table: &Table,
        index: usize,
        direction: Direction,
        mut visit: impl FnMut(RowId, VersionRef) -> bool,
    ) {
        self.scan
            .start(table.rows, table.indexes[index], &self.range, direction);
        while let Some((row_id, version)) = self
            .scan
            .next(&self.session, &self.snapshot)
            .expect("memory")
        {
            if !visit(row_id, version) {
                return;
            }
        }
    }

    fn wait(&mut self, xid: Xid) {
        self.waits += 1;
        while self.world.is_running(xid) {
            std::thread::yield_now();
        }
    }

    /// Changes a row that was found, but no column of a key, as READ COMMITTED does: its newest
    /// state, if that is another by now. `false` if it is gone.
    pub fn modify(
        &mut self,
        table: &Table,
        (row_id, seen): (RowId, VersionRef),
        mut change: impl FnMut(&mut [u8]),
    ) -> bool {
        let mut seen = Some(seen);
        loop {
            let busy = {
                let _pin = self.session.memory().pin();
                let newest = match seen.take() {
                    Some(seen) => Newest::Live(seen),
                    None => self.session.newest(&self.snapshot, table.rows, row_id),
                };
                match newest {
                    Newest::Live(seen) => {
                        self.body.clear();
                        self.body.extend_from_slice(seen.body());
                        change(&mut self.body);
                        let (session, clock) = (&self.session, &self.snapshot);
                        let written = self
                            .work
                            .update_non_key(
                                session,
                                clock,
                                table.rows,
                                row_id,
                                seen,
                                &self.body,
                                self.xid,
                                CID,
                                table.unchanged,
                            )
                            .expect("memory");
                        match written {
                            Written::Done(version) => {
                                let entered = self
                                    .work
                                    .enter(session, clock, table.rows, row_id, version)
                                    .expect("memory");
                                assert_eq!(entered, Entered::Done);
                                return true;
                            }
                            Written::Busy(xid) => xid,
                            // The same item may be in an order twice.
                            Written::Changed | Written::SelfModified(_) => continue,
                            Written::Gone => return false,
                        }
                    }
                    Newest::Busy(xid) => xid,
                    Newest::None | Newest::Gone => return false,
                }
            };
            self.wait(busy);
        }
    }

    /// Deletes a row; `false` if somebody else did.
    pub fn delete(&mut self, table: &Table, row_id: RowId, seen: VersionRef) -> bool {
        loop {
            let written = self
                .work
                .delete(
                    &self.session,
                    &self.snapshot,
                    table.rows,
                    row_id,
                    seen,
                    self.xid,
                    CID,
                )
                .expect("memory");
            match written {
                Written::Done(_) => return true,
                Written::Busy(xid) => self.wait(xid),
                _ => return false,
            }
        }
    }

    pub fn insert(&mut self, table: &Table, body: &[u8]) {
        let (session, clock) = (&self.session, &self.snapshot);
        let (row_id, version) = self
            .work
            .insert(session, table.rows, body, self.xid, CID)
            .expect("memory");
        let entered = self
            .work
            .enter(session, clock, table.rows, row_id, version)
            .expect("memory");
        assert_eq!(entered, Entered::Done);
    }
}
