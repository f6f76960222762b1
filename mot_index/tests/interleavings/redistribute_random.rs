//! Programs made at random over a few leaves, some full and some not, so that they redistribute to
//! one another in each direction, beside writers, insert positions, look-ups and scans. Which
//! programs, `MOT_MODEL_SEED` says, too.

use super::programs::{Asked, TURNS, Turn, scan};
use super::*;
use mot_index::redistributions;
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// The shapes of keys, each in the order of their numbers.
const SHAPES: u64 = 6;

fn key(shape: u64, at: u64) -> Vec<u8> {
    let ends: [&[u8]; 5] = [b"", b"\0", b"\0\0", b"\0\0 and", b"\0\0 and more"];
    match shape {
        0 => number(at * 100),
        1 => [&number(at * 100)[..], b"suffix"].concat(),
        2 => [format!("{:06}", at / 5).as_bytes(), ends[at as usize % 5]].concat(),
        // A layer here and there, beside keys with no and with other ends.
        3 if at % 9 < 6 => [&number(at / 9 * 900)[..], &number(at % 9 * 7)].concat(),
        3 => number(at * 100),
        4 => [&b"a slice."[..], &number(at * 100)].concat(),
        // A layer's leaves of entries with suffixes.
        _ => [
            &b"a slice."[..],
            &number(at / 2),
            &b"xyz"[..1 + at as usize % 2],
        ]
        .concat(),
    }
}

#[derive(Clone, Debug)]
enum Step {
    Insert(Vec<u8>),
    Remove(Vec<u8>),
    InsertPositions(Vec<Vec<u8>>),
}

fn run(seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let random = &mut random;
    let shape = random.random_range(0..SHAPES);
    let leaves = random.random_range(2..=4);
    let all: Vec<Vec<u8>> = (0..leaves * 30).map(|at| key(shape, at)).collect();
    assert!(all.is_sorted_by(|a, b| a < b), "{shape}");
    // Every other one is loaded, into full leaves; some lose entries again.
    let loaded: Vec<usize> = (0..all.len()).step_by(2).collect();
    let shared = Arc::new(Shared::default());
    let mut present: BTreeSet<usize> = loaded.iter().copied().collect();
    shared
        .with(|tree| tree.bulk_load(loaded.iter().map(|at| (&all[*at][..], value_of(&all[*at])))))
        .expect("loads");
    for leaf in loaded.chunks(15) {
        let share = *[0.0, 0.0, 0.3, 0.6, 0.95].choose(random).expect("some");
        for at in leaf {
            if random.random_bool(share) {
                present.remove(at);
                shared.remove(&all[*at]);
            }
        }
    }
    // A stretch is where most of it happens.
    let begin = random.random_range(0..all.len() - 10);
    let stretch = begin..(begin + random.random_range(10..30)).min(all.len());
    let mut absent: Vec<usize> = stretch.clone().filter(|at| !present.contains(at)).collect();
    absent.shuffle(random);
    absent.truncate(random.random_range(1..10));
    let mut going: Vec<usize> = present.iter().copied().collect();
    let chance = *[0.0, 0.1, 0.4].choose(random).expect("some");
    let near = begin.saturating_sub(10)..stretch.end + 10;
    going.retain(|at| near.contains(at) && random.random_bool(chance));
    let writers = random.random_range(1..=2);
    let mut steps = vec![Vec::new(); writers];
    let mut after = present.clone();
    let changing: Vec<usize> = absent.iter().chain(&going).copied().collect();
    let mut order: Vec<usize> = changing.clone();
    if random.random_bool(0.5) {
        order.shuffle(random);
    }
    for at in order {
        let own = &mut steps[random.random_range(0..writers)];
        let key = all[at].clone();
        if after.remove(&at) {
            own.push(Step::Remove(key.clone()));
            if random.random_bool(0.3) {
                own.push(Step::Insert(key));
                after.insert(at);
            }
        } else {
            after.insert(at);
            match own.last_mut() {
                Some(Step::InsertPositions(keys)) if random.random_bool(0.7) => keys.push(key),
                _ if random.random_bool(0.3) => own.push(Step::InsertPositions(vec![key])),
                _ => {
                    own.push(Step::Insert(key.clone()));
                    if random.random_bool(0.15) {
                        own.push(Step::Remove(key));
                        after.remove(&at);
                    }
                }
            }
        }
    }
    let kept: Vec<Vec<u8>> = present
        .iter()
        .filter(|at| !going.contains(at))
        .map(|at| all[*at].clone())
        .collect();
    let perhaps: Vec<Vec<u8>> = changing.iter().map(|at| all[*at].clone()).collect();
    let mut works = Vec::new();
    for own in steps {
        works.push(work(&shared, move |shared| {
            for step in own {
                match step {
                    Step::Insert(key) => shared.insert(&key),
                    Step::Remove(key) => shared.remove(&key),
                    Step::InsertPositions(keys) => shared.insert_at_positions(&keys),
                }
            }
        }));
    }
    for _ in 0..random.random_range(1..=2) {
        if random.random_bool(0.25) {
            let near: Vec<Vec<u8>> = (0..8)
                .filter_map(|_| kept.choose(random).cloned())
                .collect();
            works.push(work(&shared, move |shared| {
                let keys: Vec<&[u8]> = near.iter().map(|key| &key[..]).collect();
                shared.get_present_together(&keys);
                keys.iter().take(3).for_each(|key| shared.get_present(key));
            }));
            continue;
        }
        let place = |random: &mut StdRng| {
            let at = random.random_range(near.start..near.end.min(all.len()));
            all[at].clone()
        };
        let asked = Asked::draw(random, place, (0.6, 0.5), &[1, 3, 7, 16, 40, 200]);
        let (kept, perhaps) = (kept.clone(), perhaps.clone());
        works.push(work(&shared, move |shared| {
            scan(shared, &asked, &kept, &perhaps)
        }));
    }
    threads(works);
    let after: Vec<Vec<u8>> = after.iter().map(|at| all[*at].clone()).collect();
    shared.finish(&after);
}

#[test]
fn leaves_redistribute_in_programs_at_random() {
    let seed = std::env::var("MOT_MODEL_SEED").ok();
    let seed: u64 = seed.and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let next = AtomicU64::new(seed << 32);
    let before = redistributions();
    explore("index, redistribution in programs", 2_000, move || {
        let turn = Turn(next.fetch_add(1, Relaxed));
        run(turn.0 / TURNS);
    });
    let now = redistributions();
    println!("{before:?} {now:?}");
    assert!(now.right > before.right && now.left > before.left && now.suffixes > before.suffixes);
}
