//! Long programs at random over trees whose leaves redistribute: every call's answer against
//! `BTreeMap`'s.

use super::noted::redistributions;
use crate::batch::{Batch, Bound};
use crate::direction::Direction;
use crate::scan::tests::Keeping;
use crate::tree::{Tree, TreeRoot};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;

const STEPS: usize = if cfg!(miri) { 700 } else { 20_000 };

/// Keys of a program: numbers, slices with one to three suffixes, or both and keys that end in the
/// slice.
fn key(random: &mut StdRng, shape: usize) -> Vec<u8> {
    let number = random.random_range(0..if cfg!(miri) { 120u64 } else { 2_000 });
    let mut key = match shape {
        0 => number.to_be_bytes().to_vec(),
        1 => format!("{:08}{}", number / 3, "abc".repeat(1 + number as usize % 3)).into_bytes(),
        _ => format!("{:06}", number / 4).into_bytes(),
    };
    if shape == 2 {
        key.extend((0..number % 4).map(|at| at as u8));
    }
    key
}

fn check_scan(tree: &Tree<'_, Keeping>, model: &BTreeMap<Vec<u8>, u64>, direction: Direction) {
    let mut batch = Batch::with_capacity(model.len() + 1);
    let bound = match direction {
        Direction::Forward => Bound::Start,
        Direction::Backward => Bound::End,
    };
    tree.scan_batch(bound, direction, &mut batch);
    assert!(batch.is_exhausted());
    let expected = model.iter().map(|(key, value)| (&key[..], *value));
    match direction {
        Direction::Forward => assert!(batch.iter().eq(expected)),
        Direction::Backward => assert!(batch.iter().eq(expected.rev())),
    }
}

#[test]
fn programs_at_random_over_leaves_that_redistribute() {
    let before = redistributions();
    for program in 0..6 {
        println!("program {program}");
        let mut random = StdRng::seed_from_u64(program);
        let random = &mut random;
        let root = TreeRoot::new();
        // SAFETY: nothing is ever freed.
        let tree = unsafe { Tree::new(&root, &Keeping) };
        let mut model = BTreeMap::new();
        let mut growing = true;
        for step in 0..STEPS {
            if step % (STEPS / 7) == 0 {
                growing = !growing || step < STEPS / 2;
                tree.verify().expect("the tree is sound");
                check_scan(&tree, &model, Direction::Forward);
                check_scan(&tree, &model, Direction::Backward);
            }
            let key = key(random, program as usize % 3);
            if random.random_bool(if growing { 0.7 } else { 0.3 }) {
                let old = model.insert(key.clone(), step as u64);
                assert_eq!(tree.insert(&key, step as u64), Ok(old));
            } else {
                assert_eq!(tree.remove(&key), model.remove(&key));
            }
            assert_eq!(tree.get(&key), model.get(&key).copied());
        }
        for (key, value) in &model {
            assert_eq!(tree.get(key), Some(*value));
        }
        for key in model.keys() {
            assert!(tree.remove(key).is_some());
        }
        assert!(root.is_empty());
    }
    let (before, now) = (before, redistributions());
    println!("{now:?}");
    assert!(now.right > before.right && now.left > before.left && now.suffixes > before.suffixes);
}

/// A leaf is rearranged no more than once for an insert, and hardly ever so often, whatever the
/// order.
#[test]
fn redistributions_are_few_for_the_inserts() {
    const INSERTS: u64 = if cfg!(miri) { 500 } else { 40_000 };
    type Order = fn(&mut StdRng, u64) -> Vec<(bool, u64)>;
    let orders: [(&str, Order); 6] = [
        ("in no order", |random, _| vec![(true, random.random())]),
        ("nearly ascending", |random, at| {
            vec![(true, at * 1000 + random.random_range(0..20_000))]
        }),
        ("nearly descending", |random, at| {
            vec![(true, (1 << 40) - at * 1000 + random.random_range(0..20_000))]
        }),
        ("towards the middle", |_, at| {
            let middle = 1 << 40;
            vec![(
                true,
                if at % 2 == 0 {
                    middle - (1 << 30) + at * 999
                } else {
                    middle + (1 << 30) - at * 1001
                },
            )]
        }),
        ("skewed", |random, _| {
            let bits = random.random_range(4..40);
            vec![(true, random.random::<u64>() >> bits)]
        }),
        ("in and out", |_, at| {
            let key = |at: u64| at.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            if at < 3_000 {
                vec![(true, key(at))]
            } else {
                vec![(true, key(at)), (false, key(at - 3_000))]
            }
        }),
    ];
    for (name, order) in orders {
        for suffix in [&b""[..], b"suffix"] {
            let mut random = StdRng::seed_from_u64(1);
            let root = TreeRoot::new();
            // SAFETY: nothing is ever freed.
            let tree = unsafe { Tree::new(&root, &Keeping) };
            let before = redistributions();
            let mut inserts = 0;
            for at in 0..INSERTS {
                for (insert, number) in order(&mut random, at) {
                    let key = [&number.to_be_bytes()[..], suffix].concat();
                    if insert {
                        inserts += u64::from(tree.insert(&key, at) == Ok(None));
                    } else {
                        tree.remove(&key);
                    }
                }
            }
            let now = redistributions();
            let redistributions = now.right + now.left - before.right - before.left;
            let stats = tree.verify().expect("the tree is sound");
            println!(
                "{name}: {redistributions} redistributions, {inserts} inserts, {} entries in {} leaves",
                stats.entries, stats.leaves
            );
            assert!(
                redistributions * 3 < inserts.max(300),
                "{name}: {redistributions} for {inserts}"
            );
        }
    }
}
