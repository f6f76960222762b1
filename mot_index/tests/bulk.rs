//! Bulk loading, and how much memory entries take.

mod common;

use common::{TestMemory, any_key, layered_key};
use mot_index::{BulkError, Cursor, MAX_KEY_BYTES, Tree, TreeRoot};
use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Loads the keys, then checks that the tree is what it should be and can be changed.
fn load(mut keys: Vec<Vec<u8>>) {
    keys.sort();
    keys.dedup();
    let root = TreeRoot::new();
    let memory = TestMemory::new();
    // SAFETY: one thread; memory is reclaimed only by `quiesce`, between calls.
    let tree = unsafe { Tree::new(&root, &memory) };
    let entries = keys.iter().zip(0..);
    assert_eq!(tree.bulk_load(entries), Ok(keys.len() as u64));
    let stats = tree.verify().expect("the tree is sound");
    assert_eq!(stats.entries, keys.len() as u64);
    assert_eq!(stats.bytes_used as usize, memory.bytes_live());
    let mut cursor = Cursor::new();
    for (key, value) in keys.iter().zip(0..) {
        assert_eq!(cursor.next(&tree), Some((&key[..], value)));
        assert_eq!(tree.get(key), Some(value));
    }
    assert_eq!(cursor.next(&tree), None);
    if !keys.is_empty() {
        assert_eq!(tree.bulk_load([(b"more", 1)]), Err(BulkError::NotEmpty));
    }
    for key in &keys {
        let mut longer = key.clone();
        longer.push(0);
        if longer.len() <= MAX_KEY_BYTES && keys.binary_search(&longer).is_err() {
            assert_eq!(tree.insert(&longer, 1), Ok(None));
            assert_eq!(tree.remove(&longer), Some(1));
        }
        memory.quiesce();
    }
    assert_eq!(
        tree.verify().expect("the tree is sound").entries,
        keys.len() as u64
    );
    for key in &keys {
        assert!(tree.remove(key).is_some());
        memory.quiesce();
    }
    assert!(root.is_empty());
    assert_eq!(memory.bytes_live(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn layered_keys(keys in prop::collection::vec(layered_key(), 0..1000)) {
        load(keys);
    }

    #[test]
    fn all_keys(keys in prop::collection::vec(any_key(), 0..600)) {
        load(keys);
    }
}

#[test]
fn refuses_what_is_out_of_order() {
    let root = TreeRoot::new();
    let memory = TestMemory::new();
    // SAFETY: one thread; memory is reclaimed only by `quiesce`, between calls.
    let tree = unsafe { Tree::new(&root, &memory) };
    let key = |number: u64| [b"in a layer".as_slice(), &number.to_be_bytes()].concat();
    let ascending = (0..100).map(|number| (key(number), number));
    for wrong in [0, 50, 99] {
        let entries = ascending.clone().chain([(key(wrong), 1)]);
        assert_eq!(tree.bulk_load(entries), Err(BulkError::OutOfOrder(100)));
        assert!(root.is_empty());
        assert_eq!(memory.bytes_live(), 0);
    }
    let long = vec![0xFF; MAX_KEY_BYTES + 1];
    let entries = ascending.clone().chain([(long, 1)]);
    assert_eq!(tree.bulk_load(entries), Err(BulkError::KeyTooLong(100)));
    assert_eq!(tree.bulk_load(core::iter::empty::<(Vec<u8>, u64)>()), Ok(0));
    assert_eq!(memory.bytes_live(), 0);
    assert_eq!(tree.bulk_load(ascending), Ok(100));
    // SAFETY: nobody else uses the tree.
    unsafe { tree.clear() };
}

#[test]
fn the_longest_keys_fit() {
    let keys = (0..40u8).map(|number| {
        let mut key = vec![number; MAX_KEY_BYTES];
        key[0] = number / 3;
        key
    });
    load(keys.collect());
}

/// Bytes per entry of a tree filled by `keys`.
fn density(keys: impl Iterator<Item = Vec<u8>>) -> f64 {
    let root = TreeRoot::new();
    let memory = TestMemory::new();
    // SAFETY: one thread; memory is reclaimed only by `quiesce`, between calls.
    let tree = unsafe { Tree::new(&root, &memory) };
    for (number, key) in keys.enumerate() {
        tree.insert(&key, number as u64)
            .expect("memory is not full");
        memory.quiesce();
    }
    let stats = tree.verify().expect("the tree is sound");
    // SAFETY: nobody else uses the tree.
    unsafe { tree.clear() };
    let density = stats.bytes_used as f64 / stats.entries as f64;
    println!("{density:.2} bytes per entry: {stats:?}");
    density
}

#[test]
fn entries_take_little_memory() {
    let number = |number: u64| number.to_be_bytes().to_vec();
    let seed = 5;
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    assert!(density((0..100_000).map(|_| number(random.random()))) < 31.0);
    assert!(density((0..100_000).map(number)) < 20.6);
    assert!(density((0..100_000).rev().map(number)) < 20.6);
    // Lines of orders: ten districts, each a run that ascends in the middle of the others.
    let lines = (0..10_000u64).flat_map(|order| {
        let district = order % 10;
        let order = order / 10;
        (0..10u64).map(move |line| district << 56 | order << 16 | line)
    });
    assert!(density(lines.map(number)) < 22.0);
    // The same with a key of two slices: one layer for each order.
    let lines = (0..10_000u64).flat_map(|order| {
        let key = [(order % 10) as u32, (order / 10) as u32]
            .map(u32::to_be_bytes)
            .concat();
        (0..10u64).map(move |line| [&key[..], &line.to_be_bytes()].concat())
    });
    assert!(density(lines) < 55.0);
}
