//! Programs at random over narrow leaves and keys that these do not hold: every call's answer
//! against `BTreeMap`'s.

use super::noted::widened;
use crate::batch::{Batch, Bound};
use crate::direction::Direction;
use crate::node::MAX_VALUE;
use crate::scan::tests::Keeping;
use crate::tree::{Tree, TreeRoot};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;

const STEPS: usize = if cfg!(miri) { 700 } else { 20_000 };
/// Programs; of each shape of keys a third.
const PROGRAMS: u64 = 12;

/// Keys of a program: numbers of eight bytes from regions far from each other, those with suffixes,
/// or numbers of four bytes and some with more behind.
fn key(random: &mut StdRng, shape: u64) -> Vec<u8> {
    let few = if cfg!(miri) { 40 } else { 300 };
    let region = random.random_range(0..8u32);
    let number = random.random_range(0..few);
    let mut key = [region * region, number].map(u32::to_be_bytes).concat();
    match shape {
        0 => {}
        1 => key.extend(&b"ab"[..random.random_range(1..3)]),
        _ => {
            key.drain(..4);
            if number % 16 == 3 {
                key.extend([0, region as u8, 1]);
            }
        }
    }
    key
}

fn check(tree: &Tree<'_, Keeping>, model: &BTreeMap<Vec<u8>, u64>) {
    let mut batch = Batch::with_capacity(model.len() + 1);
    let entries: Vec<(&[u8], u64)> = model
        .iter()
        .map(|(key, value)| (&key[..], *value))
        .collect();
    tree.scan_batch(Bound::Start, Direction::Forward, &mut batch);
    assert!(batch.is_exhausted() && batch.iter().eq(entries.iter().copied()));
    tree.scan_batch(Bound::End, Direction::Backward, &mut batch);
    assert!(batch.is_exhausted() && batch.iter().eq(entries.iter().rev().copied()));
}

#[test]
fn programs_at_random_over_narrow_leaves() {
    let before = widened();
    for program in 0..PROGRAMS {
        println!("program {program}: {} widenings before", widened() - before);
        let random = &mut StdRng::seed_from_u64(program);
        let root = TreeRoot::new();
        // SAFETY: nothing is ever freed.
        let tree = unsafe { Tree::new(&root, &Keeping) };
        let mut model = BTreeMap::new();
        let mut narrow = 0;
        for step in 0..STEPS {
            if step % (STEPS / 7) == 0 {
                narrow += tree.verify().expect("the tree is sound").narrow_leaves;
                check(&tree, &model);
            }
            let key = key(random, program % 3);
            if random.random_bool(if step < STEPS / 2 { 0.7 } else { 0.4 }) {
                let value = random.random_range(0..=MAX_VALUE);
                assert_eq!(
                    tree.insert(&key, value),
                    Ok(model.insert(key.clone(), value))
                );
            } else {
                assert_eq!(tree.remove(&key), model.remove(&key));
            }
            assert_eq!(tree.get(&key), model.get(&key).copied());
        }
        for key in model.keys() {
            assert!(tree.remove(key).is_some());
        }
        assert!(root.is_empty());
        assert!(narrow > 0, "no leaf was narrow");
    }
    assert!(widened() - before > 10, "hardly any leaf was widened");
}

/// A narrow leaf is widened once at most, and only split ones are made: so wideners are no more
/// than inserts in a dozen, whatever the order.
#[test]
fn leaves_are_seldom_widened() {
    const INSERTS: u32 = if cfg!(miri) { 500 } else { 40_000 };
    type Key = fn(&mut StdRng, u32) -> [u32; 2];
    let orders: [(&str, Key); 5] = [
        ("of regions in turn", |_, at| [at % 64, at / 64]),
        ("of orders with a few lines", |_, at| [at / 10, at % 10]),
        ("of orders in no order", |random, _| {
            [random.random_range(0..4_000), random.random_range(0..10)]
        }),
        ("of regions in no order", |random, at| {
            [random.random_range(0..64), at]
        }),
        ("in no order", |random, _| random.random()),
    ];
    for (name, key) in orders {
        let before = widened();
        let random = &mut StdRng::seed_from_u64(7);
        let root = TreeRoot::new();
        // SAFETY: nothing is ever freed.
        let tree = unsafe { Tree::new(&root, &Keeping) };
        for at in 0..INSERTS {
            let key = key(random, at).map(u32::to_be_bytes).concat();
            tree.insert(&key, 1).expect("there is memory");
        }
        let widenings = widened() - before;
        println!("{name}: {widenings} widenings, {:?}", tree.verify());
        assert!(widenings < u64::from(INSERTS) / 12, "{name}: {widenings}");
    }
}

#[test]
#[should_panic(expected = "a value of more than 48 bits")]
fn a_value_that_narrow_leaves_have_no_room_for_is_refused() {
    let root = TreeRoot::new();
    // SAFETY: nothing is ever freed.
    let tree = unsafe { Tree::new(&root, &Keeping) };
    let _ = tree.insert(b"key", MAX_VALUE + 1);
}
