//! Long random programs of every call against `BTreeMap`, over keys of very few slices: leaves
//! where slices have about as many suffixes as may stay, beside keys of all lengths that end in
//! them. `MOT_FUZZ_RUNS=n` runs n times as many programs, `MOT_FUZZ_SEED` others.

mod common;

use common::TestMemory;
use mot_index::{
    Batch, Bound, Change, Cursor, Direction, MAX_VALUE, OutOfMemory, Tree, TreeRoot, may_part,
};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

type Model = BTreeMap<Vec<u8>, u64>;
type Map<'t> = Tree<'t, TestMemory>;

fn from_environment(name: &str, or: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.and_then(|value| value.parse().ok()).unwrap_or(or)
}

/// What keys of a program are made of.
struct Shape {
    slices: Vec<Vec<u8>>,
    tails: Vec<Vec<u8>>,
    /// How many slices a key has at most.
    depth: usize,
    /// Bytes that now and then lie between slices and tail.
    long: usize,
}

/// Slices of few regions: all are alike but for 32 bits in a row, or those of each region are. So
/// leaves are narrow, and slices come that they do not hold.
fn half_alike(random: &mut StdRng) -> Vec<Vec<u8>> {
    let shift = *[0, 0, 8, 16, 20, 24, 32, 32]
        .choose(random)
        .expect("not empty");
    let spread = random.random_range(5..=32);
    let regions: Vec<u64> = (0..random.random_range(1..=5))
        .map(|region| match random.random_range(0..3) {
            0 => random.random(),
            1 => region << 56 | region,
            _ => 1 << random.random_range(0..64),
        })
        .collect();
    (0..random.random_range(20..120))
        .map(|_| {
            let region = *regions.choose(random).expect("not empty");
            let bits = u64::MAX >> (64 - spread);
            let slice = region & !(bits << shift) | (random.random::<u64>() & bits) << shift;
            slice.to_be_bytes().to_vec()
        })
        .collect()
}

impl Shape {
    fn new(random: &mut StdRng) -> Self {
        let alphabets: [&[u8]; 5] = [b"\0", b"\0\x01", b"\0\xFF", b"ab", b"abcdefgh"];
        let alphabet = *alphabets.choose(random).expect("not empty");
        let bytes = |random: &mut StdRng, count: usize| -> Vec<u8> {
            (0..count)
                .map(|_| *alphabet.choose(random).expect("not empty"))
                .collect()
        };
        let count = if random.random_bool(0.2) {
            // Leaves enough that they redistribute to one another.
            random.random_range(20..60)
        } else {
            random.random_range(1..=6)
        };
        let slices = if random.random_bool(0.3) {
            half_alike(random)
        } else {
            (0..count).map(|_| bytes(random, 8)).collect()
        };
        let most = *[1, 2, 3, 9, 17].choose(random).expect("not empty");
        let tails = (0..random.random_range(3..40))
            .map(|_| {
                let count = random.random_range(0..=most);
                bytes(random, count)
            })
            .collect();
        Shape {
            slices,
            tails,
            depth: *[1, 1, 1, 2, 4].choose(random).expect("not empty"),
            long: *[0, 0, 0, 0, 100, 16_000].choose(random).expect("not empty"),
        }
    }

    fn key(&self, random: &mut StdRng) -> Vec<u8> {
        let mut key = Vec::new();
        for _ in 0..random.random_range(0..=self.depth) {
            key.extend(self.slices.choose(random).expect("not empty"));
        }
        if self.long > 0 && random.random_bool(0.2) {
            let long = if random.random() {
                self.long
            } else {
                random.random_range(0..self.long)
            };
            key.extend(std::iter::repeat_n(b'a', long));
        }
        key.extend(self.tails.choose(random).expect("not empty"));
        key
    }
}

fn in_range(key: &[u8], bound: Bound<'_>, direction: Direction) -> bool {
    match (bound, direction) {
        (Bound::Start, Direction::Forward) | (Bound::End, Direction::Backward) => true,
        (Bound::Start, Direction::Backward) | (Bound::End, Direction::Forward) => false,
        (Bound::Included(bound), Direction::Forward) => key >= bound,
        (Bound::Excluded(bound), Direction::Forward) => key > bound,
        (Bound::Included(bound), Direction::Backward) => key <= bound,
        (Bound::Excluded(bound), Direction::Backward) => key < bound,
    }
}

/// One batch, against what it may hold.
fn check_batch(
    tree: &Map<'_>,
    model: &Model,
    bound: Bound<'_>,
    until: Option<&[u8]>,
    direction: Direction,
    batch: &mut Batch,
) {
    tree.scan_batch_until(bound, until, direction, batch);
    let mut expected: Vec<(&[u8], u64)> = model
        .iter()
        .map(|(key, value)| (&key[..], *value))
        .filter(|(key, _)| in_range(key, bound, direction))
        .collect();
    if direction == Direction::Backward {
        expected.reverse();
    }
    let is_beyond = |key: &[u8]| {
        until.is_some_and(|until| match direction {
            Direction::Forward => key > until,
            Direction::Backward => key < until,
        })
    };
    let wanted = expected.iter().filter(|(key, _)| !is_beyond(key)).count();
    let found: Vec<(&[u8], u64)> = batch.iter().collect();
    let context = || {
        format!(
            "{bound:?} until {until:?} {direction:?} of {}",
            batch.capacity()
        )
    };
    assert!(found.len() <= batch.capacity());
    assert!(
        found.len() >= wanted.min(batch.capacity()),
        "{} too few",
        context()
    );
    assert!(found.len() <= wanted + 1, "{} too many", context());
    assert_eq!(found, expected[..found.len()], "{}", context());
    if !batch.is_exhausted() {
        assert_eq!(found.len(), batch.capacity(), "{} early", context());
    }
}

fn decide(random: &mut StdRng, value: u64) -> Change {
    match random.random_range(0..6) {
        0 => Change::Keep,
        1 => Change::Remove,
        _ => Change::Set(value),
    }
}

fn note(model: &mut Model, key: &[u8], change: Change) {
    match change {
        Change::Keep => {}
        Change::Set(value) => {
            model.insert(key.to_vec(), value);
        }
        Change::Remove => {
            model.remove(key);
        }
    }
}

/// Keys are entered at insert positions that were all found before the first change.
fn at_insert_positions(tree: &Map<'_>, model: &mut Model, shape: &Shape, random: &mut StdRng) {
    let keys: Vec<Vec<u8>> = (0..random.random_range(1..24))
        .map(|_| shape.key(random))
        .collect();
    let mut positions = vec![None; keys.len()];
    let pairs = keys.iter().map(|key| (*tree, &key[..]));
    Tree::find_insert_positions(pairs, |number, position| positions[number] = Some(position));
    for (key, position) in keys.iter().zip(positions) {
        let value = random.random_range(0..=MAX_VALUE);
        let change = decide(random, value);
        let known = model.get(key).copied();
        let old = match position {
            // SAFETY: found above for this key in this tree; nothing is reclaimed in between.
            Some(position) => unsafe { tree.update_at(position, key, |old| (change, old)) },
            None => tree.update(key, |old| (change, old)),
        };
        assert_eq!(old, Ok(known), "{key:?}");
        note(model, key, change);
    }
}

fn load(tree: &Map<'_>, model: &Model, random: &mut StdRng) {
    let entries: Vec<(&Vec<u8>, u64)> = model.iter().map(|(key, value)| (key, *value)).collect();
    let mut parts = Vec::new();
    let mut begin: usize = 0;
    let often = random.random_range(0.0..0.6);
    for end in 1..=entries.len() {
        let is_last = end == entries.len();
        let may_cut = is_last || may_part(entries[end - 1].0, entries[end].0);
        if !may_cut || !is_last && !random.random_bool(often) {
            continue;
        }
        let before = begin.checked_sub(1).map(|at| &entries[at].0[..]);
        let after = entries.get(end).map(|(key, _)| &key[..]);
        let part = tree.build_part(before, entries[begin..end].iter().copied(), after);
        parts.push(part.expect("builds"));
        begin = end;
    }
    assert_eq!(tree.join_parts(parts), Ok(entries.len() as u64));
}

/// One program.
fn run(seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let random = &mut random;
    let shape = Shape::new(random);
    let root = TreeRoot::new();
    let memory = TestMemory::new();
    // SAFETY: one thread; memory is reclaimed only by `quiesce`, between calls.
    let tree = unsafe { Tree::new(&root, &memory) };
    let mut model = Model::new();
    let steps = if shape.long > 1000 { 150 } else { 500 };
    let mut falling = false;
    for _ in 0..steps {
        if random.random_bool(0.02) {
            falling = !falling;
        }
        let key = shape.key(random);
        match random.random_range(0..100) {
            0..25 => {
                let value = random.random_range(0..=MAX_VALUE);
                if falling {
                    assert_eq!(tree.remove(&key), model.remove(&key));
                } else {
                    assert_eq!(tree.insert(&key, value), Ok(model.insert(key, value)));
                }
            }
            25..40 => {
                // Mostly a key that is there.
                let from = model.range(key.clone()..).next();
                let key = from.map_or(key, |(key, _)| key.clone());
                assert_eq!(tree.remove(&key), model.remove(&key));
                if random.random_bool(0.4) {
                    let value = random.random_range(0..=MAX_VALUE);
                    assert_eq!(tree.insert(&key, value), Ok(model.insert(key, value)));
                }
            }
            40..48 => {
                let change = decide(random, 1);
                let known = model.get(&key).copied();
                assert_eq!(tree.update(&key, |old| (change, old)), Ok(known));
                note(&mut model, &key, change);
            }
            48..52 => {
                let change = decide(random, 2);
                let known = model.get(&key).copied();
                assert_eq!(tree.update_present(&key, |old| (change, old)), known);
                if known.is_some() {
                    note(&mut model, &key, change);
                }
            }
            52..58 => at_insert_positions(&tree, &mut model, &shape, random),
            58..62 => {
                let result = catch_unwind(AssertUnwindSafe(|| {
                    tree.update(&key, |_| -> (Change, ()) {
                        std::panic::resume_unwind(Box::new(()))
                    })
                }));
                assert!(result.is_err());
            }
            62..67 => {
                // Memory is full for some allocations.
                let from = memory.allocations() + random.random_range(0..4);
                memory.fail_between(from, from + random.random_range(1..4));
                let result = tree.insert(&key, 5);
                if result != Err(OutOfMemory) {
                    assert_eq!(result, Ok(model.insert(key, 5)));
                }
                memory.fail_between(0, 0);
            }
            67..72 => {
                let keys: Vec<Vec<u8>> = (0..20).map(|_| shape.key(random)).collect();
                let mut told = 0;
                tree.get_many(
                    keys.len(),
                    |number| &keys[number][..],
                    |number, found| {
                        told += 1;
                        assert_eq!(found, model.get(&keys[number]).copied());
                    },
                );
                assert_eq!(told, keys.len());
            }
            72..74 => {
                let mut cursor = Cursor::new();
                cursor.seek(Bound::End, Direction::Backward);
                for (key, value) in model.iter().rev() {
                    assert_eq!(cursor.next(&tree), Some((&key[..], *value)));
                }
                assert_eq!(cursor.next(&tree), None);
            }
            74..75 => {
                // SAFETY: one thread, between calls.
                unsafe { tree.clear() };
                load(&tree, &model, random);
            }
            _ => {
                let until = shape.key(random);
                let until = random.random_bool(0.7).then_some(&until[..]);
                let bound = match random.random_range(0..10) {
                    0 => Bound::Start,
                    1 => Bound::End,
                    2..6 => Bound::Included(&key[..]),
                    _ => Bound::Excluded(&key[..]),
                };
                let direction = if random.random() {
                    Direction::Forward
                } else {
                    Direction::Backward
                };
                let capacity = *[1, 2, 3, 4, 5, 7, 16, 100].choose(random).expect("some");
                let mut batch = Batch::with_capacity(capacity);
                check_batch(&tree, &model, bound, until, direction, &mut batch);
            }
        }
        memory.quiesce();
        if random.random_bool(0.1) {
            let stats = tree.verify().expect("the tree is sound");
            assert_eq!(stats.entries, model.len() as u64);
            assert_eq!(stats.bytes_used as usize, memory.bytes_live());
        }
    }
    for (key, value) in &model {
        assert_eq!(tree.get(key), Some(*value));
    }
    let keys: Vec<Vec<u8>> = model.keys().cloned().collect();
    for key in keys {
        assert!(tree.remove(&key).is_some());
        memory.quiesce();
    }
    assert!(root.is_empty());
    assert_eq!(memory.bytes_live(), 0);
}

#[test]
fn every_call_over_few_slices() {
    let seed = from_environment("MOT_FUZZ_SEED", 1);
    for number in 0..from_environment("MOT_FUZZ_RUNS", 1) * 150 {
        let program = seed << 32 | number;
        let outcome = catch_unwind(|| run(program));
        if let Err(panic) = outcome {
            eprintln!("program {program:#x}");
            std::panic::resume_unwind(panic);
        }
    }
}
