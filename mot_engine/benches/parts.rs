//! What single parts of a transaction cost: log records, keys, memory. `cargo bench -p mot_engine
//! --bench parts`.
//!
//! Checkpoints, loading and replay are in `recovery.rs`, whole transactions in `transactions/`.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use mot_engine::key::{
    AttributeLayout, IndexDefinition, KeyBuffer, KeyColumn, KeyKind, encode_row,
};
use mot_engine::log::{Base, Record, RowsWriter};
use mot_engine::memory::{ArenaOptions, HugePages, Memory, Purpose, Region, Urgency};
use mot_engine::{FileKey, Lsn, RowId, TableId};
use std::hint::black_box;

const ARENA_BYTES: usize = 256 << 20;
/// The body of TPC-C's stock row, about.
const ROW_BYTES: usize = 292;
/// Rows of a NewOrder's record: half new ones, half changed.
const ROWS: u64 = 20;

/// A tuple of four integers and filler.
fn body(numbers: [u32; 4]) -> Vec<u8> {
    let mut body = vec![0u8; 6];
    body[0] = 5;
    body[2] = 2;
    body[4] = 24;
    for number in numbers {
        body.extend_from_slice(&number.to_le_bytes());
    }
    body.resize(ROW_BYTES, b'x');
    body
}

fn write(writer: &mut RowsWriter, old: &[u8], new: &[u8]) {
    writer.clear();
    for at in 0..ROWS / 2 {
        writer.insert(TableId(1), RowId(at), new).expect("memory");
        let base = Base {
            lsn: Lsn(77),
            body: old,
        };
        writer
            .update(TableId(2), RowId(at), Some(base), new)
            .expect("memory");
    }
}

fn bench_log(criterion: &mut Criterion) {
    let (old, new) = (body([1, 2, 3, 4]), body([1, 2, 7, 9]));
    let mut writer = RowsWriter::new();
    let mut group = criterion.benchmark_group("log");
    group.throughput(Throughput::Elements(ROWS));
    group.bench_function("encode", |bench| {
        bench.iter(|| {
            write(&mut writer, &old, black_box(&new));
            writer.record().len()
        });
    });
    write(&mut writer, &old, &new);
    let record = writer.record().to_vec();
    println!("{} bytes for {ROWS} rows", record.len());
    group.bench_function("decode", |bench| {
        bench.iter(|| {
            let Record::Rows(mut rows) = Record::parse(black_box(&record)).expect("whole") else {
                panic!("a record of rows");
            };
            let mut count = 0;
            while let Some(change) = rows.next().expect("whole") {
                black_box(change.row_id);
                count += 1;
            }
            assert_eq!(count, ROWS);
        });
    });
    group.finish();
}

fn bench_keys(criterion: &mut Criterion) {
    let column = |attnum| KeyColumn {
        attnum,
        kind: KeyKind::Int4,
        descending: false,
        nulls_first: false,
        nullable: false,
        collation: None,
    };
    let definition = |columns: &[u16]| IndexDefinition {
        relation: 1,
        file: FileKey::NONE,
        unique: true,
        nulls_not_distinct: false,
        columns: columns.iter().map(|attnum| column(*attnum)).collect(),
        layout: vec![
            AttributeLayout {
                len: 4,
                align: 4,
                by_value: true
            };
            4
        ],
        missing: Vec::new(),
        computed: None,
    };
    let row = body([1, 2, 3, 4]);
    let mut key = KeyBuffer::new();
    let mut group = criterion.benchmark_group("key");
    for (name, columns) in [
        ("one integer", &[1][..]),
        ("four integers", &[1, 2, 3, 4][..]),
    ] {
        let definition = definition(columns);
        group.bench_function(name, |bench| {
            bench.iter(|| {
                encode_row(&definition, black_box(&row), &mut key).expect("a key");
                key.len()
            });
        });
    }
    group.finish();
}

fn bench_memory(criterion: &mut Criterion) {
    let region = Region::create(ARENA_BYTES, HugePages::Off).expect("memory");
    // SAFETY: the region is fresh and outlives all handles.
    let memory = unsafe { Memory::format(&region, &ArenaOptions::default()) }.expect("formats");
    let local = memory.join().expect("joins");
    let mut group = criterion.benchmark_group("memory");
    group.bench_function("pin", |bench| bench.iter(|| black_box(local.pin())));
    for bytes in [96, 288, 2048] {
        let take = || {
            local
                .allocate(bytes, Purpose::Rows, Urgency::Ordinary)
                .expect("room")
        };
        group.bench_function(format!("allocate and free {bytes}"), |bench| {
            // SAFETY: just allocated with this size, used by nobody.
            bench.iter(|| unsafe { local.free(black_box(take()), bytes, Purpose::Rows) });
        });
        group.bench_function(format!("allocate and retire {bytes}"), |bench| {
            // SAFETY: as above.
            bench.iter(|| unsafe { local.retire(black_box(take()), bytes, Purpose::Rows) });
        });
    }
    group.finish();
}

criterion_group!(benches, bench_log, bench_keys, bench_memory);
criterion_main!(benches);
