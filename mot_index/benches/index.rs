//! The index against `std::collections::BTreeMap`, one thread, a million keys.
//!
//! `cargo bench -p mot_index --features crossbeam`. The map pins an epoch for each operation.

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use mot_index::{Batch, Bound, Direction, Map};
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::ops;

const KEYS: usize = 1_000_000;
const SEED: u64 = 7;

type Keys = Vec<Vec<u8>>;

/// Eight-byte integers, random.
fn integers(random: &mut StdRng) -> Keys {
    (0..KEYS)
        .map(|_| random.random::<u64>().to_be_bytes().to_vec())
        .collect()
}

/// Sixteen bytes: a thousand groups of a thousand.
fn composites(random: &mut StdRng) -> Keys {
    let mut keys: Keys = (0..KEYS as u64)
        .map(|number| {
            [number / 1000, number % 1000]
                .map(u64::to_be_bytes)
                .concat()
        })
        .collect();
    keys.shuffle(random);
    keys
}

/// About thirty bytes of text, random from the first on.
fn strings(random: &mut StdRng) -> Keys {
    let mut text = |length: usize| -> Vec<u8> {
        (0..length)
            .map(|_| random.random_range(b'a'..=b'z'))
            .collect()
    };
    (0..KEYS).map(|number| text(26 + number % 9)).collect()
}

fn bench_keys(criterion: &mut Criterion, name: &str, keys: &Keys) {
    let map = Map::new();
    let mut standard = BTreeMap::new();
    for (key, value) in keys.iter().zip(0..) {
        map.insert(key, value);
        standard.insert(key.clone(), value);
    }
    println!(
        "{name}: {:.1} bytes an entry",
        map.bytes_used() as f64 / map_len(&map) as f64
    );
    let mut random = StdRng::seed_from_u64(SEED + 1);
    let mut pick = move || &keys[random.random_range(0..keys.len())];
    let mut group = criterion.benchmark_group(name);
    group.bench_function("get/index", |bench| {
        bench.iter_batched(&mut pick, |key| map.get(key), BatchSize::SmallInput)
    });
    group.bench_function("get/std", |bench| {
        bench.iter_batched(
            &mut pick,
            |key| standard.get(key).copied(),
            BatchSize::SmallInput,
        )
    });
    group.bench_function("remove+insert/index", |bench| {
        bench.iter_batched(
            &mut pick,
            |key| {
                map.remove(key);
                map.insert(key, 1)
            },
            BatchSize::SmallInput,
        )
    });
    group.bench_function("remove+insert/std", |bench| {
        bench.iter_batched(
            &mut pick,
            |key| {
                standard.remove(key);
                standard.insert(key.clone(), 1)
            },
            BatchSize::SmallInput,
        )
    });
    for entries in [10, 100] {
        let mut batch = Batch::with_capacity(entries);
        group.bench_function(format!("scan{entries}/index"), |bench| {
            bench.iter_batched(
                &mut pick,
                |key| {
                    map.with_tree(|tree| {
                        tree.scan_batch(Bound::Included(key), Direction::Forward, &mut batch);
                    });
                    batch.iter().map(|(_, value)| value).sum::<u64>()
                },
                BatchSize::SmallInput,
            )
        });
        group.bench_function(format!("scan{entries}/std"), |bench| {
            bench.iter_batched(
                &mut pick,
                |key| {
                    let range = (ops::Bound::Included(&key[..]), ops::Bound::Unbounded);
                    let entries = standard.range::<[u8], _>(range).take(entries);
                    entries
                        .map(|(key, value)| black_box(key).len() as u64 + value)
                        .sum::<u64>()
                },
                BatchSize::SmallInput,
            )
        });
    }
    group.finish();
}

fn map_len(map: &Map) -> u64 {
    map.verify().expect("the map is sound").entries
}

/// Filling an empty map with all keys, one by one and in bulk.
fn bench_fill(criterion: &mut Criterion, name: &str, keys: &Keys) {
    let mut sorted = keys.clone();
    sorted.sort();
    sorted.dedup();
    let mut group = criterion.benchmark_group(format!("fill 1 M {name}"));
    group.sample_size(10);
    let insert_all = |keys: &Keys| {
        let map = Map::new();
        for (key, value) in keys.iter().zip(0..) {
            map.insert(key, value);
        }
        map
    };
    group.bench_function("insert/index", |bench| {
        bench.iter_with_large_drop(|| insert_all(keys));
    });
    group.bench_function("insert/std", |bench| {
        bench.iter_with_large_drop(|| {
            keys.iter()
                .cloned()
                .zip(0..)
                .collect::<Vec<_>>()
                .into_iter()
                .fold(BTreeMap::new(), |mut map, (key, value): (_, u64)| {
                    map.insert(key, value);
                    map
                })
        });
    });
    group.bench_function("insert ascending/index", |bench| {
        bench.iter_with_large_drop(|| insert_all(&sorted));
    });
    group.bench_function("bulk_load/index", |bench| {
        bench.iter_with_large_drop(|| {
            let map = Map::new();
            map.bulk_load(sorted.iter().zip(0..))
                .expect("sorted and empty");
            map
        });
    });
    group.finish();
}

fn bench(criterion: &mut Criterion) {
    println!("seed {SEED}");
    let mut random = StdRng::seed_from_u64(SEED);
    for (name, keys) in [
        ("8-byte integers", integers(&mut random)),
        ("16-byte composites", composites(&mut random)),
        ("30-byte strings", strings(&mut random)),
    ] {
        bench_keys(criterion, name, &keys);
        bench_fill(criterion, name, &keys);
    }
}

criterion_group!(benches, bench);
criterion_main!(benches);
