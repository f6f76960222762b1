//! How fast tables come back: reading a checkpoint, its rows, its indexes, and the log behind it.
//!
//! `cargo bench -p mot_engine --bench recovery`. The files lie in `MOT_SCRATCH` (or the system's
//! directory for temporary files). Times of loading are the processor's, summed over threads, so
//! that a busy machine and a slow disk disturb them little: the figures are per core. Those of
//! replay with so many threads are the clock's. Read them as ratios to `read`, the bare read of the
//! same files with their checksums.

use criterion::measurement::{Measurement, ValueFormatter, WallTime};
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use mot_engine::checkpoint::{
    BlockReader, CheckpointContext, CheckpointProgress, Manifest, Pace, blocks_of, newest,
    read_block, write,
};
use mot_engine::disk::DirectoryDisk;
use mot_engine::key::{AttributeLayout, IndexDefinition, KeyColumn, KeyKind};
use mot_engine::log::{Base, DefinitionsWriter, RowsWriter};
use mot_engine::memory::{ArenaOptions, HugePages, Memory, Region};
use mot_engine::recovery::{HandOver, ParallelReplayer, load};
use mot_engine::{
    Engine, FileKey, IndexId, Lsn, Persistence, RelationKey, RowId, Session, State, TableId, Xid,
};
use std::time::Duration;

/// Warehouses: each has the rows below.
const WAREHOUSES: u32 = 2;
const DISTRICTS: u32 = 10;
const CUSTOMERS: u32 = 3000;
const ITEMS: u32 = 100_000;
const ORDERS: u32 = 3000;
const LINES: u32 = 10;

const ARENA_BYTES: usize = 4 << 30;
const SYSTEM: u64 = 1;
/// New-order transactions in the log that is replayed.
const TRANSACTIONS: u64 = 20_000;

const CUSTOMER: TableId = TableId(1);
const STOCK: TableId = TableId(2);
const ORDER_LINE: TableId = TableId(3);

/// Processor time of the whole process.
struct CpuTime;

impl Measurement for CpuTime {
    type Intermediate = Duration;
    type Value = Duration;

    fn start(&self) -> Duration {
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: writes to the place given.
        let failed = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
        assert_eq!(failed, 0);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    }

    fn end(&self, begin: Duration) -> Duration {
        self.start() - begin
    }

    fn add(&self, a: &Duration, b: &Duration) -> Duration {
        *a + *b
    }

    fn zero(&self) -> Duration {
        Duration::ZERO
    }

    fn to_f64(&self, value: &Duration) -> f64 {
        value.as_nanos() as f64
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        WallTime.formatter()
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % u64::from(bound)) as u32
    }

    /// As TPC-C's NURand: some rows are hit far more often than others.
    fn skewed(&mut self, most: u32, bound: u32) -> u32 {
        (self.below(most) | self.below(bound)) % bound
    }
}

/// The bytes of a tuple after its stamp: integers, a short text, filler.
fn body(numbers: &[u32], text: &str, bytes: usize) -> Vec<u8> {
    let mut body = vec![8, 0, 2, 0, 24, 0];
    for number in numbers {
        body.extend_from_slice(&number.to_le_bytes());
    }
    body.push((text.len() as u8 + 1) << 1 | 1);
    body.extend_from_slice(text.as_bytes());
    body.resize(bytes.max(body.len()), b'x');
    body
}

fn customer(w: u32, d: u32, c: u32) -> Vec<u8> {
    const SYLLABLES: [&str; 10] = [
        "BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING",
    ];
    let name = c % 1000;
    let name = [name / 100, name / 10 % 10, name % 10].map(|at| SYLLABLES[at as usize]);
    body(&[w, d, c], &name.concat(), 560)
}

fn stock(w: u32, i: u32, quantity: u32) -> Vec<u8> {
    body(&[w, i, quantity], "", 310)
}

fn order_line(w: u32, d: u32, o: u32, number: u32) -> Vec<u8> {
    body(&[w, d, o, number], "", 76)
}

fn index(relation: u32, unique: bool, columns: &[(u16, KeyKind)]) -> IndexDefinition {
    let columns: Vec<KeyColumn> = columns
        .iter()
        .map(|&(attnum, kind)| KeyColumn {
            attnum,
            kind,
            descending: false,
            nulls_first: false,
            nullable: false,
            collation: None,
        })
        .collect();
    let last = columns.iter().map(|column| column.attnum).max();
    let layout = (1..=last.expect("has columns"))
        .map(|attnum| {
            let is_text = columns
                .iter()
                .any(|column| column.attnum == attnum && column.kind == KeyKind::Text);
            AttributeLayout {
                len: if is_text { -1 } else { 4 },
                align: 4,
                by_value: !is_text,
            }
        })
        .collect();
    IndexDefinition {
        relation,
        file: FileKey::NONE,
        unique,
        nulls_not_distinct: false,
        columns,
        layout,
        missing: Vec::new(),
        computed: None,
    }
}

fn arena() -> (Region, Engine) {
    let region = Region::create(ARENA_BYTES, HugePages::Off).expect("memory");
    // SAFETY: the region is fresh and outlives the engine.
    let memory = unsafe { Memory::format(&region, &ArenaOptions::default()) }.expect("formats");
    (region, Engine::format(memory).expect("formats"))
}

/// A log: records with their ends.
#[derive(Default)]
struct Wal {
    records: Vec<(Vec<u8>, Lsn)>,
    end: u64,
}

impl Wal {
    fn append(&mut self, record: &[u8]) -> Lsn {
        self.end += record.len() as u64 + 50;
        self.records.push((record.to_vec(), Lsn(self.end)));
        Lsn(self.end)
    }
}

/// What the bench's database looks like now: where each stock row was logged last, how many orders
/// a district has.
struct Model {
    random: Random,
    stock: Vec<(u32, Lsn)>,
    lines: u64,
    orders: Vec<u32>,
}

fn definitions() -> Vec<u8> {
    let mut definitions = DefinitionsWriter::new();
    for (number, table) in [CUSTOMER, STOCK, ORDER_LINE].into_iter().enumerate() {
        let key = RelationKey::of_file(1, 0, 100 + number as u32);
        definitions
            .create_table(table, key, Persistence::Logged)
            .expect("memory");
    }
    let indexes = [
        (
            CUSTOMER,
            index(
                200,
                true,
                &[(1, KeyKind::Int4), (2, KeyKind::Int4), (3, KeyKind::Int4)],
            ),
        ),
        (
            CUSTOMER,
            index(
                201,
                false,
                &[(1, KeyKind::Int4), (2, KeyKind::Int4), (4, KeyKind::Text)],
            ),
        ),
        (
            STOCK,
            index(202, true, &[(1, KeyKind::Int4), (2, KeyKind::Int4)]),
        ),
        (
            ORDER_LINE,
            index(
                203,
                true,
                &[
                    (1, KeyKind::Int4),
                    (2, KeyKind::Int4),
                    (3, KeyKind::Int4),
                    (4, KeyKind::Int4),
                ],
            ),
        ),
    ];
    for (number, (table, definition)) in indexes.into_iter().enumerate() {
        definitions
            .create_index(IndexId(1 + number as u64), table, &definition)
            .expect("memory");
    }
    definitions.record().to_vec()
}

/// The log of a database that is being loaded, row by row in batches.
fn populate(wal: &mut Wal) -> Model {
    wal.append(&definitions());
    let mut writer = RowsWriter::new();
    let mut id = 0;
    for w in 1..=WAREHOUSES {
        for d in 1..=DISTRICTS {
            for c in 1..=CUSTOMERS {
                writer
                    .insert(CUSTOMER, RowId(id), &customer(w, d, c))
                    .expect("memory");
                id += 1;
            }
            wal.append(writer.record());
            writer.clear();
        }
    }
    let mut model = Model {
        random: Random(7),
        stock: Vec::new(),
        lines: 0,
        orders: vec![0; (WAREHOUSES * DISTRICTS) as usize],
    };
    for w in 1..=WAREHOUSES {
        for i in 1..=ITEMS {
            let id = RowId(model.stock.len() as u64);
            writer.insert(STOCK, id, &stock(w, i, 0)).expect("memory");
            model.stock.push((0, Lsn::NONE));
            if i % 1000 == 0 {
                let lsn = wal.append(writer.record());
                writer.clear();
                let from = model.stock.len() - 1000;
                for row in &mut model.stock[from..] {
                    row.1 = lsn;
                }
            }
        }
    }
    for _ in 0..WAREHOUSES * DISTRICTS * ORDERS {
        lines(&mut writer, &mut model);
        wal.append(writer.record());
        writer.clear();
    }
    model
}

/// An order's lines, in a random district.
fn lines(writer: &mut RowsWriter, model: &mut Model) {
    let district = model.random.below(WAREHOUSES * DISTRICTS);
    let order = &mut model.orders[district as usize];
    *order += 1;
    for number in 1..=LINES {
        let row = order_line(
            1 + district / DISTRICTS,
            1 + district % DISTRICTS,
            *order,
            number,
        );
        writer
            .insert(ORDER_LINE, RowId(model.lines), &row)
            .expect("memory");
        model.lines += 1;
    }
}

/// New-order transactions: ten lines, ten stock rows changed.
fn trade(wal: &mut Wal, model: &mut Model) {
    let mut writer = RowsWriter::new();
    for _ in 0..TRANSACTIONS {
        let mut touched: Vec<u32> = (0..LINES)
            .map(|_| model.random.below(WAREHOUSES) * ITEMS + model.random.skewed(8192, ITEMS))
            .collect();
        touched.sort_unstable();
        touched.dedup();
        for &at in &touched {
            let (quantity, lsn) = model.stock[at as usize];
            let (w, i) = (1 + at / ITEMS, 1 + at % ITEMS);
            let old = stock(w, i, quantity);
            let base = Base { lsn, body: &old };
            writer
                .update(
                    STOCK,
                    RowId(at.into()),
                    Some(base),
                    &stock(w, i, quantity + 1),
                )
                .expect("memory");
        }
        lines(&mut writer, model);
        let lsn = wal.append(writer.record());
        writer.clear();
        for at in touched {
            let (quantity, _) = model.stock[at as usize];
            model.stock[at as usize] = (quantity + 1, lsn);
        }
    }
}

/// With so many threads beside the one that reads; 0: that one does it.
fn replay(session: &Session, records: &[(Vec<u8>, Lsn)], threads: usize) {
    let mut replayer = ParallelReplayer::new(session.engine(), threads, 2);
    let how = HandOver {
        is_ahead: true,
        bytes_max: 8 << 20,
        has_readers: false,
    };
    for (at, (record, lsn)) in records.iter().enumerate() {
        let xid = Xid(100 + at as u64);
        replayer
            .apply(session, record, *lsn, xid, how, &mut || {})
            .expect("applies");
    }
    replayer.drain(&mut || {}).expect("applies");
}

/// Reads every block and compares its checksum: what no load can do without.
fn read(disk: &DirectoryDisk, manifest: &Manifest, threads: usize) {
    let (files, blocks) = blocks_of(disk, manifest).expect("opens");
    mot_engine::threads::on_threads(threads, blocks.len(), |_, units| {
        let mut body = Vec::new();
        while let Some(unit) = units.take() {
            read_block(&files, &blocks[unit], &mut body)?;
            BlockReader::new(&blocks[unit], &body).expect("is whole");
        }
        Ok(())
    })
    .expect("reads");
}

/// A checkpoint on a disk, and how the log goes on behind it.
struct Database {
    wal: Wal,
    model: Model,
    disk: DirectoryDisk,
    manifest: Manifest,
    _scratch: tempfile::TempDir,
}

fn database() -> Database {
    let mut wal = Wal::default();
    let model = populate(&mut wal);
    let (region, engine) = arena();
    let session = engine.join().expect("joins");
    engine.set_state(State::Replaying);
    replay(&session, &wal.records, 0);
    let before = std::mem::take(&mut wal.records);
    let redo = before.last().expect("has records").1;
    drop(before);

    let scratch = std::env::var_os("MOT_SCRATCH").map_or_else(std::env::temp_dir, Into::into);
    std::fs::create_dir_all(&scratch).expect("a directory");
    let scratch = tempfile::tempdir_in(scratch).expect("a directory");
    let disk = DirectoryDisk::open(scratch.path().join("mot")).expect("opens");
    let progress = CheckpointProgress::default();
    let mut context = CheckpointContext {
        system_id: SYSTEM,
        timeline: 1,
        redo,
        generation: 1,
        finished_below: Xid(1_000_000_000),
        is_final: false,
        threads: 2,
        pace: Pace::unlimited(),
        progress: &progress,
        outcomes: &mut |_| Ok(Vec::new()),
        flush: &mut |_| Ok(redo),
    };
    write(&session, &disk, &mut context).expect("writes");
    drop(session);
    drop(region);
    let manifest = newest(&disk, SYSTEM, |_, _| true)
        .expect("is whole")
        .expect("was written");
    Database {
        wal,
        model,
        disk,
        manifest,
        _scratch: scratch,
    }
}

fn bench(criterion: &mut Criterion<CpuTime>) {
    let Database {
        disk,
        manifest,
        _scratch,
        ..
    } = database();
    let rows: u64 = manifest.tables.iter().map(|table| table.rows).sum();
    let bytes: u64 = manifest.files.iter().map(|file| file.bytes).sum();
    println!("{rows} rows, {bytes} bytes");
    let mut without_indexes = manifest.clone();
    for table in &mut without_indexes.tables {
        table.indexes.clear();
    }

    let loads = |criterion: &mut Criterion<CpuTime>, name: &str, throughput: &Throughput| {
        let mut group = criterion.benchmark_group(name);
        group.throughput(throughput.clone());
        group.sample_size(10);
        group.measurement_time(Duration::from_secs(5));
        for threads in [1, 2] {
            group.bench_with_input(BenchmarkId::new("read", threads), &threads, |b, threads| {
                b.iter(|| read(&disk, &manifest, *threads));
            });
            for (what, manifest) in [("rows", &without_indexes), ("rows_and_indexes", &manifest)] {
                group.bench_with_input(BenchmarkId::new(what, threads), &threads, |b, threads| {
                    b.iter_batched(
                        arena,
                        |(region, engine)| {
                            load(engine, &disk, manifest, *threads).expect("loads");
                            region
                        },
                        BatchSize::PerIteration,
                    );
                });
            }
        }
    };
    loads(criterion, "load_bytes", &Throughput::Bytes(bytes));
    loads(criterion, "load_rows", &Throughput::Elements(rows));
}

/// Here the time is the clock's: what counts is when it is done.
fn replay_by_threads(criterion: &mut Criterion) {
    let Database {
        mut wal,
        mut model,
        disk,
        manifest,
        _scratch,
    } = database();
    trade(&mut wal, &mut model);
    let changes = TRANSACTIONS * u64::from(2 * LINES);
    let mut group = criterion.benchmark_group("replay_changes");
    group.throughput(Throughput::Elements(changes));
    group.sample_size(10);
    group.measurement_time(Duration::from_secs(5));
    for threads in [0, 1, 2] {
        group.bench_with_input(
            BenchmarkId::new("threads", threads),
            &threads,
            |b, threads| {
                b.iter_batched(
                    || {
                        let (region, engine) = arena();
                        load(engine, &disk, &manifest, 2).expect("loads");
                        engine.set_state(State::Replaying);
                        // The session leaves before its region goes.
                        (engine.join().expect("joins"), region)
                    },
                    |(session, region)| {
                        replay(&session, &wal.records, *threads);
                        (session, region)
                    },
                    BatchSize::PerIteration,
                );
            },
        );
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().with_measurement(CpuTime);
    targets = bench
}
criterion_group!(clock, replay_by_threads);
criterion_main!(benches, clock);
