//! Scans beside programs made at random: which keys there are, what is done to them, where scans
//! begin and end and how many entries they take at a time. Each run has a program of its own, made
//! from its number.

use super::*;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// What is done to a tree, and what a scan of it must see.
struct Program {
    /// There before, during and after.
    kept: Vec<Vec<u8>>,
    /// There before.
    going: Vec<Vec<u8>>,
    /// What writers do, in order: insert or remove.
    steps: Vec<Vec<(bool, Vec<u8>)>>,
    scans: Vec<Asked>,
}

/// A scan.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) direction: Direction,
    pub(super) bound: Option<(Vec<u8>, bool)>,
    pub(super) until: Option<Vec<u8>>,
    pub(super) capacity: usize,
}

impl Asked {
    /// With a bound and an end so often, at places, and a batch of one of the sizes.
    pub(super) fn draw(
        random: &mut StdRng,
        place: impl Fn(&mut StdRng) -> Vec<u8>,
        (bounded, ended): (f64, f64),
        capacities: &[usize],
    ) -> Self {
        Asked {
            direction: if random.random() {
                Direction::Forward
            } else {
                Direction::Backward
            },
            bound: random
                .random_bool(bounded)
                .then(|| (place(random), random.random())),
            until: random.random_bool(ended).then(|| place(random)),
            capacity: *capacities.choose(random).expect("not empty"),
        }
    }
}

/// Keys of few slices, so that they share layers, with ends of every length.
fn key(random: &mut StdRng) -> Vec<u8> {
    const SLICES: [&[u8; 8]; 4] = [
        b"aaaaaaaa",
        b"aaaaaaab",
        b"\0\0\0\0\0\0\0\0",
        b"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF",
    ];
    let mut key = Vec::new();
    for _ in 0..*[0, 0, 1, 1, 1, 2, 3].choose(random).expect("not empty") {
        key.extend_from_slice(*SLICES.choose(random).expect("not empty"));
    }
    let tail = *[0, 1, 1, 2, 2, 7, 8, 9].choose(random).expect("not empty");
    key.extend((0..tail).map(|_| *b"\0abc\xFF".choose(random).expect("not empty")));
    key
}

fn program(seed: u64) -> Program {
    let mut random = StdRng::seed_from_u64(seed);
    let random = &mut random;
    let numbers = random.random_bool(0.3);
    let deep = if random.random_bool(0.3) {
        &b"12345678abcdefgh"[..]
    } else {
        b""
    };
    let mut pool: Vec<Vec<u8>> = Vec::new();
    let wanted = random.random_range(6..40);
    while pool.len() < wanted {
        let rest = if numbers {
            number(random.random_range(0..200))
        } else {
            key(random)
        };
        let key = [deep, &rest].concat();
        if !pool.contains(&key) {
            pool.push(key);
        }
    }
    if random.random_bool(0.5) {
        pool.sort();
    }
    // Stretches of keys that come and go, so that leaves and layers empty out.
    let mut sorted = pool.clone();
    sorted.sort();
    let begin = random.random_range(0..sorted.len());
    let end = random.random_range(begin..=sorted.len());
    let sparse = random.random_bool(0.7);
    let (mut kept, mut going, mut absent) = (Vec::new(), Vec::new(), Vec::new());
    for key in pool {
        let at = sorted.binary_search(&key).expect("of the pool");
        if (begin..end).contains(&at) {
            if random.random_bool(if sparse { 0.2 } else { 0.8 }) {
                going.push(key);
            } else {
                absent.push(key);
            }
        } else if random.random_bool(0.1) {
            absent.push(key);
        } else {
            kept.push(key);
        }
    }
    let changing: Vec<Vec<u8>> = going.iter().chain(&absent).cloned().collect();
    let mut steps = Vec::new();
    for _ in 0..random.random_range(1..=2) {
        let mut own = Vec::new();
        if !changing.is_empty() {
            if random.random_bool(0.4) {
                own.extend(going.iter().map(|key| (false, key.clone())));
            }
            for _ in 0..random.random_range(1..8) {
                let key = changing.choose(random).expect("not empty").clone();
                own.push((random.random_bool(0.5), key));
            }
        }
        steps.push(own);
    }
    let scans = (0..random.random_range(1..=2))
        .map(|_| {
            let some = |random: &mut StdRng| {
                if random.random_bool(0.7) {
                    sorted.choose(random).expect("not empty").clone()
                } else {
                    [deep, &key(random)].concat()
                }
            };
            Asked::draw(random, some, (0.5, 0.4), &[1, 2, 3, 5, 16, 100])
        })
        .collect();
    Program {
        kept,
        going,
        steps,
        scans,
    }
}

/// Scans and compares with what must be seen and what may be.
pub(super) fn scan(shared: &Shared, asked: &Asked, kept: &[Vec<u8>], perhaps: &[Vec<u8>]) {
    let forward = asked.direction == Direction::Forward;
    let mut batch = Batch::with_capacity(asked.capacity);
    let mut seen: Vec<Vec<u8>> = Vec::new();
    loop {
        let resume = seen.last().cloned();
        let bound = match (&resume, &asked.bound) {
            (Some(key), _) => Bound::Excluded(key),
            (None, Some((key, true))) => Bound::Included(key),
            (None, Some((key, false))) => Bound::Excluded(key),
            (None, None) if forward => Bound::Start,
            (None, None) => Bound::End,
        };
        shared.with(|tree| {
            tree.scan_batch_until(bound, asked.until.as_deref(), asked.direction, &mut batch)
        });
        assert!(batch.len() <= asked.capacity);
        for (key, value) in batch.iter() {
            assert_eq!(value, value_of(key), "{key:?}");
            assert!(
                kept.iter().chain(perhaps).any(|known| known == key),
                "{key:?} was never there"
            );
            seen.push(key.to_vec());
        }
        let beyond = |(key, _): &(&[u8], u64)| {
            let until = asked.until.as_deref();
            until.is_some_and(|until| if forward { *key > until } else { *key < until })
        };
        assert!(batch.iter().filter(beyond).count() <= 1, "{seen:?}");
        if batch.is_exhausted() {
            break;
        }
        assert!(!batch.is_empty(), "neither an entry nor the end");
    }
    let in_order = |a: &Vec<u8>, b: &Vec<u8>| if forward { a < b } else { a > b };
    assert!(seen.is_sorted_by(in_order), "{seen:?}");
    let in_range = |key: &Vec<u8>| {
        asked
            .bound
            .as_ref()
            .is_none_or(|(bound, included)| in_order(bound, key) || *included && bound == key)
    };
    assert!(seen.iter().all(in_range), "{seen:?}");
    for key in kept {
        let wanted = in_range(key)
            && asked
                .until
                .as_ref()
                .is_none_or(|until| !in_order(until, key));
        assert!(
            !wanted || seen.contains(key),
            "{key:?} was there all the time"
        );
    }
}

fn run(seed: u64) {
    let Program {
        kept,
        going,
        steps,
        scans,
    } = program(seed);
    let shared = Arc::new(Shared::default());
    kept.iter().chain(&going).for_each(|key| shared.insert(key));
    let perhaps: Vec<Vec<u8>> = going
        .iter()
        .cloned()
        .chain(
            steps
                .iter()
                .flatten()
                .filter(|(insert, _)| *insert)
                .map(|(_, key)| key.clone()),
        )
        .collect();
    let mut works = Vec::new();
    for own in steps {
        works.push(work(&shared, move |shared| {
            for (insert, key) in own {
                if insert {
                    shared.insert(&key)
                } else {
                    shared.remove(&key)
                }
            }
        }));
    }
    for asked in scans {
        let (kept, perhaps) = (kept.clone(), perhaps.clone());
        works.push(work(&shared, move |shared| {
            scan(shared, &asked, &kept, &perhaps)
        }));
    }
    threads(works);
    shared.with(|tree| {
        tree.verify().expect("the tree is sound");
        // SAFETY: the other threads are gone.
        unsafe { tree.clear() };
    });
}

/// Interleavings of one program.
pub(super) const TURNS: u64 = 8;

/// A program and the number of its turn; says which failed.
pub(super) struct Turn(pub(super) u64);

impl Drop for Turn {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("program {}", self.0 / TURNS);
        }
    }
}

/// Runs programs one after the other, each a few times; which ones, `MOT_MODEL_SEED` says, too.
fn programs() -> impl Fn() + Send + Sync + 'static {
    let seed = std::env::var("MOT_MODEL_SEED").ok();
    let seed: u64 = seed.and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let next = AtomicU64::new(seed << 32);
    move || {
        let turn = Turn(next.fetch_add(1, Relaxed));
        run(turn.0 / TURNS);
    }
}

#[test]
fn scans_beside_programs_at_random() {
    explore("index, scans beside programs", 5_000, programs());
}

/// What these see and the others do not, or later.
mod seen {
    use super::*;

    #[test]
    fn counting_a_removal() {
        finds("index: counting a removal", 40_000, programs());
    }

    #[test]
    fn counting_a_split() {
        finds("index: counting a split", 40_000, programs());
    }

    #[test]
    fn dirty_while_it_is_rearranged() {
        finds("index: dirty while it is rearranged", 40_000, programs());
    }

    #[test]
    fn taking_out_what_did_not_count() {
        finds(
            "index: taking out of a batch what did not count",
            40_000,
            programs(),
        );
    }

    #[test]
    fn validating_a_small_layer() {
        finds("index: validating a small layer", 160_000, programs());
    }

    #[test]
    fn looking_at_the_link_back() {
        finds("index: looking at the link back", 160_000, programs());
    }
}
