//! Programs made at random over one or two slices with one to seven keys behind each: writers that
//! enter the same keys, writers that read what they wrote, look-ups of every kind and scans, while
//! suffixes move to layers, slots are used again and layers go.

use super::programs::{Asked, TURNS, Turn, scan};
use super::*;
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// How often keys came and went, as their writers were told.
type Balance = Mutex<BTreeMap<Vec<u8>, i64>>;

/// What a thread does.
#[derive(Clone, Debug)]
enum Step {
    /// Enters a key unless it is there, as an unique index does; by an insert position found before
    /// the others' steps, perhaps.
    Claim(Vec<u8>, bool),
    /// Takes a key out if it is there.
    Drop(Vec<u8>),
    /// Enters a key that only this thread has, reads it, takes it out, and reads that.
    Own(Vec<u8>, bool),
    /// Enters a key that is there already.
    Again(Vec<u8>),
    Get(Vec<u8>),
    Scan(Asked),
}

struct Program {
    kept: Vec<Vec<u8>>,
    going: Vec<Vec<u8>>,
    /// All keys that may be seen.
    known: Vec<Vec<u8>>,
    threads: Vec<Vec<Step>>,
}

const TAILS: [&[u8]; 14] = [
    b"1",
    b"2",
    b"3",
    b"4",
    b"5",
    b"6",
    b"\0",
    b"\0\0",
    b"further 1",
    b"further 2",
    b"further 3",
    b"further ",
    b"\xFF",
    b"a longer suffix than all others of these",
];
const ENDS: [&[u8]; 6] = [b"", b"a", b"a slice", b"a slice,", b"b", b"b slice,"];

fn program(seed: u64) -> Program {
    let mut random = StdRng::seed_from_u64(seed);
    let random = &mut random;
    let above = *[&b""[..], b"", b"a slice,"].choose(random).expect("some");
    let slices: &[&[u8]] = if random.random() {
        &[b"a slice,"]
    } else {
        &[b"a slice,", b"b slice,"]
    };
    let mut pool = Vec::new();
    for slice in slices {
        let wanted = random.random_range(1..=7);
        for tail in TAILS.choose_multiple(random, wanted) {
            pool.push([above, *slice, *tail].concat());
        }
    }
    // Others, of which some fill the leaf, so that it is split.
    for end in ENDS {
        if random.random_bool(0.2) {
            pool.push([above, end].concat());
        }
    }
    if random.random_bool(0.3) {
        for at in 0..random.random_range(5..14u8) {
            pool.push([above, &[b'b', at]].concat());
        }
    }
    pool.sort();
    pool.dedup();
    pool.shuffle(random);
    let share = random.random_range(0.2..0.9);
    let (kept, others): (Vec<_>, Vec<_>) = pool
        .iter()
        .cloned()
        .partition(|_| random.random_bool(share));
    let mut going = others.clone();
    going.retain(|_| random.random_bool(0.4));
    let mut known = pool.clone();
    let count = random.random_range(2..=4);
    let mut own = Vec::new();
    for thread in 0..count {
        let keys: Vec<Vec<u8>> = (0..2)
            .map(|at| {
                [
                    above,
                    slices[0],
                    format!("{}own {thread}", at * 4).as_bytes(),
                ]
                .concat()
            })
            .collect();
        known.extend(keys.iter().cloned());
        own.push(keys);
    }
    let anything = |random: &mut StdRng| {
        if random.random_bool(0.8) {
            known.choose(random).expect("some").clone()
        } else {
            let tail = TAILS.choose(random).expect("some");
            [above, slices[0], *tail].concat()
        }
    };
    let mut threads = Vec::new();
    for own in &own {
        let mut steps = Vec::new();
        let reads = random.random_bool(0.4);
        for _ in 0..random.random_range(1..6) {
            let kind = if reads {
                random.random_range(6..10)
            } else {
                random.random_range(0..8)
            };
            steps.push(match kind {
                0 | 1 if !others.is_empty() => Step::Claim(
                    others.choose(random).expect("some").clone(),
                    random.random(),
                ),
                2 | 3 if !others.is_empty() => {
                    Step::Drop(others.choose(random).expect("some").clone())
                }
                4 => Step::Own(own.choose(random).expect("some").clone(), random.random()),
                5 if !kept.is_empty() => Step::Again(kept.choose(random).expect("some").clone()),
                8 | 9 => Step::Scan(Asked::draw(random, anything, (0.6, 0.5), &[1, 2, 3, 5, 16])),
                _ => Step::Get(anything(random)),
            });
        }
        threads.push(steps);
    }
    Program {
        kept,
        going,
        known,
        threads,
    }
}

/// Whether a scan from a key on begins with it.
fn begins_with(shared: &Shared, key: &[u8]) -> bool {
    let mut batch = Batch::with_capacity(1);
    let forward = key.len().is_multiple_of(2);
    let direction = if forward {
        Direction::Forward
    } else {
        Direction::Backward
    };
    shared
        .with(|tree| tree.scan_batch_until(Bound::Included(key), Some(key), direction, &mut batch));
    batch.iter().next().is_some_and(|(found, value)| {
        assert!(found != key || value == value_of(key));
        found == key
    })
}

fn update_at_position<R>(
    tree: &Handle<'_>,
    key: &[u8],
    mut decide: impl FnMut(Option<u64>) -> (Change, R),
) -> R {
    let mut found = None;
    Tree::find_insert_positions([(*tree, key)].into_iter(), |_, position| {
        found = Some(position)
    });
    let result = match found {
        // SAFETY: found above for this key in this tree, under the same pin.
        Some(position) => unsafe { tree.update_at(position, key, &mut decide) },
        None => tree.update(key, &mut decide),
    };
    result.expect("the heap has room")
}

fn enter(shared: &Shared, key: &[u8], at_position: bool) -> bool {
    let decide = |old: Option<u64>| {
        assert!(
            old.is_none_or(|old| old == value_of(key)),
            "{key:?} has {old:?}"
        );
        match old {
            None => (Change::Set(value_of(key)), true),
            Some(_) => (Change::Keep, false),
        }
    };
    shared.with(|tree| {
        if at_position {
            update_at_position(tree, key, decide)
        } else {
            tree.update(key, decide).expect("the heap has room")
        }
    })
}

fn perform(shared: &Shared, step: &Step, kept: &[Vec<u8>], known: &[Vec<u8>], balance: &Balance) {
    let count =
        |key: &[u8], by: i64| *balance.lock().unwrap().entry(key.to_vec()).or_default() += by;
    match step {
        Step::Claim(key, at_position) => count(key, enter(shared, key, *at_position).into()),
        Step::Drop(key) => {
            let old = shared.with(|tree| tree.remove(key));
            assert!(
                old.is_none_or(|old| old == value_of(key)),
                "{key:?} has {old:?}"
            );
            count(key, -i64::from(old.is_some()));
        }
        Step::Own(key, at_position) => {
            assert!(enter(shared, key, *at_position), "{key:?} was there");
            shared.get_present(key);
            assert!(begins_with(shared, key), "a scan misses {key:?}");
            assert!(!enter(shared, key, !*at_position), "{key:?} twice");
            let old = shared.with(|tree| tree.remove(key));
            assert_eq!(old, Some(value_of(key)));
            assert!(!begins_with(shared, key), "a scan finds {key:?}");
            assert_eq!(shared.with(|tree| tree.get(key)), None);
        }
        Step::Again(key) => assert!(!enter(shared, key, true), "{key:?} was there"),
        Step::Get(key) => {
            let mut all: Vec<&[u8]> = kept.iter().map(|key| &key[..]).collect();
            shared.get_perhaps(key);
            if kept.contains(key) {
                shared.get_present(key);
            }
            all.truncate(9);
            shared.get_present_together(&all);
        }
        Step::Scan(asked) => scan(shared, asked, kept, known),
    }
}

fn run(seed: u64) {
    let Program {
        kept,
        going,
        known,
        threads: programs,
    } = program(seed);
    let shared = Arc::new(Shared::default());
    kept.iter().chain(&going).for_each(|key| shared.insert(key));
    let balance = Arc::new(Balance::default());
    for key in &going {
        balance.lock().unwrap().insert(key.clone(), 1);
    }
    let works = programs
        .into_iter()
        .map(|steps| {
            let (kept, known, balance) = (kept.clone(), known.clone(), balance.clone());
            work(&shared, move |shared| {
                for step in &steps {
                    perform(shared, step, &kept, &known, &balance);
                }
            })
        })
        .collect();
    threads(works);
    let mut there = kept;
    for (key, count) in &*balance.lock().unwrap() {
        assert!(
            (0..=1).contains(count),
            "{key:?} came {count} times more than it went"
        );
        if *count == 1 {
            there.push(key.clone());
        }
    }
    shared.finish(&there);
}

/// Runs programs one after the other, each a few times; which ones, `MOT_MODEL_SEED` says, too.
fn programs() -> impl Fn() + Send + Sync + 'static {
    let seed = std::env::var("MOT_MODEL_SEED").ok();
    let seed: u64 = seed.and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let next = AtomicU64::new((seed << 32) * TURNS);
    move || {
        let turn = Turn(next.fetch_add(1, Relaxed));
        run(turn.0 / TURNS);
    }
}

#[test]
fn writers_and_readers_of_few_slices() {
    explore("index, programs over few slices", 5_000, programs());
}

/// What these see.
mod seen {
    use super::*;

    const RUNS: usize = 100_000;

    #[test]
    fn dirty_while_suffixes_move() {
        finds(
            "index: dirty while suffixes move to a layer",
            RUNS,
            programs(),
        );
    }

    #[test]
    fn going_down_again_where_suffixes_moved() {
        finds(
            "index: going down again where suffixes moved to a layer",
            RUNS,
            programs(),
        );
    }

    #[test]
    fn looking_whether_a_latched_leaf_covers_the_key() {
        finds(
            "index: looking whether a latched leaf still covers the key",
            RUNS,
            programs(),
        );
    }

    #[test]
    fn validating_behind_a_suffix() {
        finds("index: validating behind a suffix", RUNS, programs());
    }
}
