//! Bulk loading, and how much memory entries take.

mod common;

use common::{TestMemory, any_key, half_alike_key, layered_key, suffixed_key};
use mot_index::{BulkError, Cursor, MAX_KEY_BYTES, MAX_VALUE, Tree, TreePart, TreeRoot, may_part};
use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Loads the keys, then checks that the tree is what it should be and can be changed.
fn load(keys: Vec<Vec<u8>>) {
    load_by(keys, |tree, keys| {
        tree.bulk_load(keys.iter().zip(0..)).expect("loads")
    });
}

/// Builds the parts of a tree between `cuts`, where keys may be cut at all.
fn build_parts(
    tree: &Tree<'_, TestMemory>,
    keys: &[Vec<u8>],
    cuts: &[usize],
) -> Result<Vec<TreePart>, BulkError> {
    let mut cuts: Vec<usize> = cuts
        .iter()
        .copied()
        .filter(|cut| (1..keys.len()).contains(cut) && may_part(&keys[*cut - 1], &keys[*cut]))
        .chain([0, keys.len()])
        .collect();
    cuts.sort_unstable();
    cuts.dedup();
    let mut parts = Vec::new();
    for cut in cuts.windows(2) {
        let before = cut[0].checked_sub(1).map(|at| &keys[at][..]);
        let after = keys.get(cut[1]).map(|key| &key[..]);
        let entries = keys[cut[0]..cut[1]].iter().zip(cut[0] as u64..);
        match tree.build_part(before, entries, after) {
            Ok(part) => parts.push(part),
            Err(error) => {
                for part in parts {
                    tree.free_part(part);
                }
                return Err(error);
            }
        }
    }
    Ok(parts)
}

fn load_parts(keys: Vec<Vec<u8>>, cuts: &[prop::sample::Index]) {
    load_by(keys, |tree, keys| {
        let cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(keys.len() + 1)).collect();
        let parts = build_parts(tree, keys, &cuts).expect("builds");
        tree.join_parts(parts).expect("joins")
    });
}

fn load_by(mut keys: Vec<Vec<u8>>, load: impl Fn(&Tree<'_, TestMemory>, &[Vec<u8>]) -> u64) {
    keys.sort();
    keys.dedup();
    let root = TreeRoot::new();
    let memory = TestMemory::new();
    // SAFETY: one thread; memory is reclaimed only by `quiesce`, between calls.
    let tree = unsafe { Tree::new(&root, &memory) };
    assert_eq!(load(&tree, &keys), keys.len() as u64);
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
    fn half_alike_keys(keys in prop::collection::vec(half_alike_key(), 0..1000)) {
        load(keys);
    }

    #[test]
    fn parts_of_half_alike_keys(
        keys in prop::collection::vec(half_alike_key(), 0..600),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        load_parts(keys, &cuts);
    }

    #[test]
    fn suffixed_keys(keys in prop::collection::vec(suffixed_key(), 0..100)) {
        load(keys);
    }

    #[test]
    fn parts_of_suffixed_keys(
        keys in prop::collection::vec(suffixed_key(), 0..60),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        load_parts(keys, &cuts);
    }

    #[test]
    fn all_keys(keys in prop::collection::vec(any_key(), 0..600)) {
        load(keys);
    }

    #[test]
    fn parts_of_layered_keys(
        keys in prop::collection::vec(layered_key(), 0..600),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..30),
    ) {
        load_parts(keys, &cuts);
    }

    #[test]
    fn parts_of_all_keys(
        keys in prop::collection::vec(any_key(), 0..300),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..10),
    ) {
        load_parts(keys, &cuts);
    }
}

/// Layers three deep that hold all keys or many, cut everywhere: parts that lie within one layer,
/// end several, begin several.
#[test]
fn parts_within_deep_layers() {
    let keys: Vec<Vec<u8>> = (0..3000u64)
        .map(|number| {
            let groups = [7, number / 700, number / 40, number];
            groups.map(u64::to_be_bytes).concat()
        })
        .collect();
    for step in [1, 2, 39, 40, 41, 350, 700, 1400] {
        load_by(keys.clone(), |tree, keys| {
            let cuts: Vec<usize> = (0..keys.len()).step_by(step).collect();
            let parts = build_parts(tree, keys, &cuts).expect("builds");
            assert_eq!(parts.len(), keys.len().div_ceil(step));
            tree.join_parts(parts).expect("joins")
        });
    }
}

#[test]
fn a_failed_join_leaves_nothing() {
    let keys: Vec<Vec<u8>> = (0..2000u64)
        .map(|number| [3, number / 300, number].map(u64::to_be_bytes).concat())
        .collect();
    let cuts: Vec<usize> = (0..keys.len()).step_by(170).collect();
    let mut fail_at = 0;
    let (mut failed_builds, mut failed_joins) = (0, 0);
    loop {
        let root = TreeRoot::new();
        let memory = TestMemory::new();
        // SAFETY: one thread; memory is reclaimed only by `quiesce`, between calls.
        let tree = unsafe { Tree::new(&root, &memory) };
        memory.fail_between(fail_at, fail_at + 1);
        let outcome = build_parts(&tree, &keys, &cuts)
            .inspect_err(|_| failed_builds += 1)
            .and_then(|parts| tree.join_parts(parts).inspect_err(|_| failed_joins += 1));
        match outcome {
            Ok(count) => {
                assert_eq!(count, keys.len() as u64);
                // SAFETY: nobody else uses the tree.
                unsafe { tree.clear() };
                break;
            }
            Err(error) => {
                assert_eq!(error, BulkError::OutOfMemory);
                assert!(root.is_empty());
                assert_eq!(memory.bytes_live(), 0);
            }
        }
        fail_at += 1;
    }
    assert!(failed_builds > 100 && failed_joins > 5);
}

#[test]
fn parts_are_refused_where_they_must_not_be_cut() {
    let root = TreeRoot::new();
    let memory = TestMemory::new();
    // SAFETY: one thread; memory is reclaimed only by `quiesce`, between calls.
    let tree = unsafe { Tree::new(&root, &memory) };
    let refused = |before: Option<&[u8]>, key: &[u8], after: Option<&[u8]>| {
        let part = tree.build_part(before, [(key, 1)], after);
        assert_eq!(memory.bytes_live(), 0);
        part.map(|part| part.entries()).expect_err("is refused")
    };
    assert!(!may_part(b"a", b"a\0") && !may_part(b"12345678", b"12345678x"));
    assert!(may_part(b"a", b"b") && may_part(b"12345678x", b"12345678y"));
    let cut = BulkError::Inseparable;
    assert_eq!(refused(Some(b"a"), b"a\0", None), cut(0));
    assert_eq!(refused(None, b"12345678", Some(b"12345678x")), cut(1));
    assert_eq!(refused(Some(b"b"), b"a", None), BulkError::OutOfOrder(0));
    assert_eq!(refused(None, b"b", Some(b"a")), BulkError::OutOfOrder(1));
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
    // Too far apart for narrow leaves.
    assert!(density((0..100_000).map(|_| number(random.random()))) < 27.0);
    // Numbers of eight bytes, and of four, in no order.
    let mut numbers: Vec<u64> = (0..100_000).collect();
    numbers.shuffle(&mut random);
    assert!(density(numbers.iter().map(|at| number(*at))) < 20.0);
    assert!(
        density(
            numbers
                .iter()
                .map(|at| (*at as u32 * 7).to_be_bytes().to_vec())
        ) < 20.0
    );
    // Orders and lines of them.
    assert!(
        density(
            numbers
                .iter()
                .map(|at| number(((at / 10) << 32) | (at % 10)))
        ) < 20.0
    );
    assert!(density((0..100_000).map(number)) < 16.0);
    assert!(density((0..100_000).rev().map(number)) < 16.0);
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

/// What is loaded at once has the shape of what was put in key by key: layers for more keys than
/// stay in a leaf, and no others.
#[test]
fn loaded_and_inserted_keys_have_the_same_layers() {
    for of_a_slice in 1..8 {
        let mut keys: Vec<Vec<u8>> = (0..40 * of_a_slice)
            .map(|number| format!("slice{:03}, number {}", number % 40, number / 40).into_bytes())
            .collect();
        let root = TreeRoot::new();
        let memory = TestMemory::new();
        // SAFETY: one thread; memory is reclaimed only by `quiesce`, between calls.
        let tree = unsafe { Tree::new(&root, &memory) };
        for key in &keys {
            assert_eq!(tree.insert(key, 1), Ok(None));
            memory.quiesce();
        }
        let inserted = tree.verify().expect("the tree is sound");
        // SAFETY: nobody else uses the tree.
        unsafe { tree.clear() };
        keys.sort();
        tree.bulk_load(keys.iter().map(|key| (key, 1)))
            .expect("loads");
        let loaded = tree.verify().expect("the tree is sound");
        // SAFETY: nobody else uses the tree.
        unsafe { tree.clear() };
        // As many as may stay move to a layer as well where their leaf was full.
        assert!(loaded.layers == inserted.layers || of_a_slice == 4);
        // ", number " is a slice more that they share.
        let layers = if of_a_slice > 4 { 1 + 2 * 40 } else { 1 };
        assert_eq!(loaded.layers, layers, "{of_a_slice}");
        assert!(loaded.bytes_used <= inserted.bytes_used);
    }
}

/// Some regions whose leaves are narrow, each begun amid a leaf, and the same below a slice.
fn regions() -> Vec<Vec<u8>> {
    let numbers = (0..140u64).map(|at| (((at / 37) << 32) | (at % 37 * 3)).to_be_bytes());
    let first: Vec<Vec<u8>> = numbers.clone().map(|key| key.to_vec()).collect();
    let below = numbers.map(|key| {
        [
            &b"~ a layer"[..8],
            &key,
            &b"and more"[..key[7] as usize % 8],
        ]
        .concat()
    });
    first.into_iter().chain(below).collect()
}

#[test]
fn parts_fail_without_a_trace() {
    let keys = regions();
    for cuts in [&[][..], &[50, 170], &[20, 33, 41, 150, 200, 201, 202, 279]] {
        let mut fail_at = 0;
        let mut narrow = None;
        while narrow.is_none() {
            let root = TreeRoot::new();
            let memory = TestMemory::new();
            // SAFETY: one thread; memory is reclaimed only by `quiesce`, between calls.
            let tree = unsafe { Tree::new(&root, &memory) };
            memory.fail_between(fail_at, fail_at + 1);
            match build_parts(&tree, &keys, cuts).and_then(|parts| tree.join_parts(parts)) {
                Ok(count) => {
                    assert_eq!(count, keys.len() as u64);
                    assert_eq!(memory.allocations(), fail_at, "all have failed once");
                    narrow = Some(tree.verify().expect("the tree is sound").narrow_leaves);
                    // SAFETY: nobody else uses the tree.
                    unsafe { tree.clear() };
                }
                Err(error) => assert_eq!(error, BulkError::OutOfMemory),
            }
            assert!(root.is_empty());
            assert_eq!(memory.bytes_live(), 0);
            fail_at += 1;
        }
        assert!(narrow > Some(0), "no leaf is narrow");
    }
}

#[test]
fn a_value_too_great_leaves_nothing_behind() {
    let keys = regions();
    for great in [0, 7, 45, 200] {
        let root = TreeRoot::new();
        let memory = TestMemory::new();
        // SAFETY: one thread; memory is reclaimed only by `quiesce`, between calls.
        let tree = unsafe { Tree::new(&root, &memory) };
        let value = |at| {
            if at == great {
                MAX_VALUE + 1
            } else {
                MAX_VALUE
            }
        };
        let entries = keys.iter().zip((0..).map(value));
        let outcome = catch_unwind(AssertUnwindSafe(|| tree.bulk_load(entries)));
        assert!(outcome.is_err());
        assert!(root.is_empty());
        assert_eq!(memory.bytes_live(), 0);
    }
}

/// An insert whose decision is a value too great did not happen, be its leaf widened for it, split,
/// or of its own.
#[test]
fn a_decision_too_great_changes_nothing() {
    let keys = regions();
    let mut random = StdRng::seed_from_u64(5);
    for round in 0..40 {
        let root = TreeRoot::new();
        let memory = TestMemory::new();
        // SAFETY: one thread; memory is reclaimed only by `quiesce`, between calls.
        let tree = unsafe { Tree::new(&root, &memory) };
        let mut order: Vec<&Vec<u8>> = keys.iter().collect();
        if round > 0 {
            order.shuffle(&mut random);
        }
        for (number, key) in order.iter().enumerate() {
            for known in [None, Some(MAX_VALUE)] {
                let great = catch_unwind(AssertUnwindSafe(|| tree.insert(key, MAX_VALUE + 1)));
                assert!(great.is_err());
                assert_eq!(tree.get(key), known);
                assert_eq!(tree.insert(key, MAX_VALUE), Ok(known));
            }
            let stats = tree.verify().expect("the tree is sound");
            assert_eq!(stats.entries, number as u64 + 1);
            memory.quiesce();
            assert_eq!(stats.bytes_used as usize, memory.bytes_live());
        }
        // SAFETY: nobody else uses the tree.
        unsafe { tree.clear() };
    }
}
