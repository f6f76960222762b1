//! Random operations against `BTreeMap`, on one thread.

mod common;

use common::{
    TestMemory, any_key, half_alike_key, layered_key, long_key, number_key, random_key,
    suffixed_key, value,
};
use mot_index::{Batch, Bound, Change, Cursor, Direction, Tree, TreeRoot};
use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::ops;

type Model = BTreeMap<Vec<u8>, u64>;

#[derive(Clone, Debug)]
enum Op {
    Insert(Vec<u8>, u64),
    Remove(Vec<u8>),
    Get(Vec<u8>),
    Update(Vec<u8>, Decision),
    Scan {
        bound: Vec<u8>,
        included: bool,
        direction: Direction,
        capacity: usize,
    },
}

#[derive(Clone, Copy, Debug)]
enum Decision {
    Keep,
    Remove,
    Set(u64),
}

fn op(key: impl Strategy<Value = Vec<u8>> + 'static) -> impl Strategy<Value = Op> {
    let key = key.boxed();
    let decision = prop_oneof![
        Just(Decision::Keep),
        Just(Decision::Remove),
        value().prop_map(Decision::Set)
    ];
    let direction = prop_oneof![Just(Direction::Forward), Just(Direction::Backward)];
    prop_oneof![
        5 => (key.clone(), value()).prop_map(|(key, value)| Op::Insert(key, value)),
        3 => key.clone().prop_map(Op::Remove),
        1 => key.clone().prop_map(Op::Get),
        2 => (key.clone(), decision).prop_map(|(key, decision)| Op::Update(key, decision)),
        1 => (key, any::<bool>(), direction, 1usize..40).prop_map(
            |(bound, included, direction, capacity)| {
                Op::Scan { bound, included, direction, capacity }
            }
        ),
    ]
}

fn expected(model: &Model, bound: Bound<'_>, direction: Direction) -> Vec<(Vec<u8>, u64)> {
    let bound = match bound {
        Bound::Start | Bound::End => ops::Bound::Unbounded,
        Bound::Included(key) => ops::Bound::Included(key.to_vec()),
        Bound::Excluded(key) => ops::Bound::Excluded(key.to_vec()),
    };
    let own = |(key, value): (&Vec<u8>, &u64)| (key.clone(), *value);
    match direction {
        Direction::Forward => model
            .range((bound, ops::Bound::Unbounded))
            .map(own)
            .collect(),
        Direction::Backward => model
            .range((ops::Bound::Unbounded, bound))
            .rev()
            .map(own)
            .collect(),
    }
}

fn check_scan(
    tree: &Tree<'_, TestMemory>,
    model: &Model,
    bound: Bound<'_>,
    direction: Direction,
    capacity: usize,
) {
    let expected = expected(model, bound, direction);
    let mut batch = Batch::with_capacity(capacity);
    tree.scan_batch(bound, direction, &mut batch);
    assert!(batch.len() <= capacity);
    assert!(batch.is_exhausted() || batch.len() == capacity);
    assert!(!batch.is_exhausted() || batch.len() == expected.len());
    let got: Vec<_> = batch
        .iter()
        .map(|(key, value)| (key.to_vec(), value))
        .collect();
    assert_eq!(got, expected[..batch.len()]);
    let ends = [
        vec![],
        vec![0; 8],
        b"a".repeat(9),
        vec![0xFF; 17],
        match bound {
            Bound::Start | Bound::End => vec![0x80],
            Bound::Included(key) | Bound::Excluded(key) => key.to_vec(),
        },
    ];
    check_until(tree, &expected, (bound, direction), capacity, &ends);
    let mut cursor = Cursor::new();
    cursor.seek(bound, direction);
    let mut got = Vec::new();
    while let Some((key, value)) = cursor.next(tree) {
        got.push((key.to_vec(), value));
    }
    assert_eq!(got, expected);
}

/// The same scan, to each of some ends: all before it and at it, and at most one entry more. `ends`
/// beside those that are keys, and beside those that are next to keys.
fn check_until(
    tree: &Tree<'_, TestMemory>,
    expected: &[(Vec<u8>, u64)],
    (bound, direction): (Bound<'_>, Direction),
    capacity: usize,
    ends: &[Vec<u8>],
) {
    let some = expected.iter().step_by(expected.len() / 2 + 1);
    let near = some.flat_map(|(key, _)| {
        let (mut less, mut short) = (key.clone(), key.clone());
        if let Some(last) = less.last_mut() {
            *last = last.wrapping_sub(1);
        }
        short.pop();
        short.truncate(short.len() / 8 * 8);
        [key.clone(), [key, &[0][..]].concat(), less, short]
    });
    let mut batch = Batch::with_capacity(capacity);
    for until in near.chain(ends.iter().cloned()) {
        let is_beyond = |key: &[u8]| match direction {
            Direction::Forward => key > &until[..],
            Direction::Backward => key < &until[..],
        };
        tree.scan_batch_until(bound, Some(&until), direction, &mut batch);
        let count = batch.len();
        assert!(count <= capacity);
        let same = batch
            .iter()
            .zip(expected)
            .all(|(entry, expected)| entry == (&expected.0[..], expected.1));
        assert!(same && count <= expected.len(), "to {until:?}");
        let within = expected.partition_point(|(key, _)| !is_beyond(key));
        if batch.is_exhausted() {
            assert!(count >= within, "to {until:?}");
        } else {
            assert_eq!(count, capacity, "to {until:?}");
        }
        assert!(count <= within + 1, "to {until:?}");
    }
}

/// All keys there are at once, each beside one that is not there as a rule.
fn check_together(tree: &Tree<'_, TestMemory>, model: &Model) {
    let mut keys = Vec::new();
    for key in model.keys() {
        keys.push(key.clone());
        keys.push([&key[..], &[7]].concat());
    }
    let mut found = vec![None; keys.len()];
    tree.get_many(
        keys.len(),
        |number| &keys[number],
        |number, value| assert_eq!(found[number].replace(value), None),
    );
    for (key, found) in keys.iter().zip(found) {
        assert_eq!(found, Some(model.get(key).copied()), "{key:?}");
    }
}

fn check_whole(tree: &Tree<'_, TestMemory>, model: &Model) {
    check_together(tree, model);
    check_scan(tree, model, Bound::Start, Direction::Forward, 7);
    check_scan(tree, model, Bound::End, Direction::Backward, 7);
    let stats = tree.verify().expect("the tree is sound");
    assert_eq!(stats.entries, model.len() as u64);
    assert_eq!(stats.bytes_used as usize, tree.memory().bytes_live());
}

fn apply(tree: &Tree<'_, TestMemory>, model: &mut Model, op: Op) {
    match op {
        Op::Insert(key, value) => {
            let old = tree.insert(&key, value).expect("memory is not full");
            assert_eq!(old, model.insert(key.clone(), value));
            assert_eq!(tree.get(&key), Some(value));
        }
        Op::Remove(key) => {
            assert_eq!(tree.remove(&key), model.remove(&key));
            assert_eq!(tree.get(&key), None);
        }
        Op::Get(key) => assert_eq!(tree.get(&key), model.get(&key).copied()),
        Op::Update(key, decision) => {
            let mut calls = 0;
            let change = match decision {
                Decision::Keep => Change::Keep,
                Decision::Remove => Change::Remove,
                Decision::Set(value) => Change::Set(value),
            };
            let old = tree.update(&key, |old| {
                calls += 1;
                (change, old)
            });
            assert_eq!(calls, 1);
            assert_eq!(old, Ok(model.get(&key).copied()));
            match decision {
                Decision::Keep => {}
                Decision::Remove => {
                    model.remove(&key);
                }
                Decision::Set(value) => {
                    model.insert(key.clone(), value);
                }
            }
            assert_eq!(tree.get(&key), model.get(&key).copied());
        }
        Op::Scan {
            bound,
            included,
            direction,
            capacity,
        } => {
            let bound = if included {
                Bound::Included(&bound)
            } else {
                Bound::Excluded(&bound)
            };
            check_scan(tree, model, bound, direction, capacity);
        }
    }
}

/// Applies the operations, then takes everything out again in a shuffled order.
fn run(ops: Vec<Op>) {
    let root = TreeRoot::new();
    let memory = TestMemory::new();
    // SAFETY: one thread; memory is reclaimed only by `quiesce`, between calls.
    let tree = unsafe { Tree::new(&root, &memory) };
    let mut model = Model::new();
    for op in ops {
        apply(&tree, &mut model, op);
        memory.quiesce();
    }
    check_whole(&tree, &model);
    let mut keys: Vec<_> = model.keys().cloned().collect();
    let mut random = StdRng::seed_from_u64(keys.len() as u64);
    while !keys.is_empty() {
        let key = keys.swap_remove(random.random_range(0..keys.len()));
        assert_eq!(tree.remove(&key), model.remove(&key));
        memory.quiesce();
        if keys.len() % 16 == 0 {
            check_whole(&tree, &model);
        }
    }
    assert!(root.is_empty());
    assert_eq!(memory.bytes_live(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn numbers(ops in prop::collection::vec(op(number_key()), 0..1500)) {
        run(ops);
    }

    #[test]
    fn layered_keys(ops in prop::collection::vec(op(layered_key()), 0..800)) {
        run(ops);
    }

    #[test]
    fn half_alike_keys(ops in prop::collection::vec(op(half_alike_key()), 0..1000)) {
        run(ops);
    }

    #[test]
    fn suffixed_keys(ops in prop::collection::vec(op(suffixed_key()), 0..400)) {
        run(ops);
    }

    #[test]
    fn few_suffixed_keys(ops in prop::collection::vec(op(suffixed_key()), 0..40)) {
        run(ops);
    }

    #[test]
    fn random_keys(ops in prop::collection::vec(op(random_key()), 0..400)) {
        run(ops);
    }

    #[test]
    fn long_keys(ops in prop::collection::vec(op(long_key()), 0..60)) {
        run(ops);
    }

    #[test]
    fn all_keys(ops in prop::collection::vec(op(any_key()), 0..800)) {
        run(ops);
    }
}

/// Large enough for several levels of inner nodes, grown and shrunk a few times.
#[test]
fn many_numbers_come_and_go() {
    let seed = 0x6d6f_7401;
    println!("seed {seed:#x}");
    let mut random = StdRng::seed_from_u64(seed);
    let root = TreeRoot::new();
    let memory = TestMemory::new();
    // SAFETY: one thread; memory is reclaimed only by `quiesce`, between calls.
    let tree = unsafe { Tree::new(&root, &memory) };
    let mut model = Model::new();
    for round in 0..6u64 {
        // Odd rounds shrink the tree, and every round prefers another region.
        let insert_share = if round % 2 == 0 { 0.9 } else { 0.15 };
        let base = (round % 3) * 10_000;
        for _ in 0..30_000 {
            let number = base + random.random_range(0..20_000u64);
            let key = number.to_be_bytes().to_vec();
            if random.random_bool(insert_share) {
                apply(&tree, &mut model, Op::Insert(key, number));
            } else {
                apply(&tree, &mut model, Op::Remove(key));
            }
            memory.quiesce();
        }
        check_whole(&tree, &model);
    }
    while let Some((key, _)) = model.pop_last() {
        assert!(tree.remove(&key).is_some());
        memory.quiesce();
    }
    assert!(root.is_empty());
}

/// A queue: inserts at one end, removals at the other, in both directions.
#[test]
fn queues_keep_little_memory() {
    for descending in [false, true] {
        let root = TreeRoot::new();
        let memory = TestMemory::new();
        // SAFETY: one thread; memory is reclaimed only by `quiesce`, between calls.
        let tree = unsafe { Tree::new(&root, &memory) };
        let key = |number: u64| {
            if descending {
                (!number).to_be_bytes()
            } else {
                number.to_be_bytes()
            }
        };
        for number in 0..40_000u64 {
            assert_eq!(tree.insert(&key(number), number), Ok(None));
            if number >= 500 {
                assert_eq!(tree.remove(&key(number - 500)), Some(number - 500));
            }
            memory.quiesce();
        }
        let stats = tree.verify().expect("the tree is sound");
        assert_eq!(stats.entries, 500);
        assert!(stats.bytes_used < 500 * 40, "{stats:?}");
        // SAFETY: nobody else uses the tree.
        unsafe { tree.clear() };
        assert_eq!(memory.bytes_live(), 0);
    }
}

/// Keys of all lengths, under layers of all depths: scans put them together from prefixes and
/// suffixes that are copied in larger pieces than they have bytes.
#[test]
fn scans_put_keys_of_all_lengths_together() {
    for depth in [0, 1, 3, 4, 5, 8, 9, 12] {
        let root = TreeRoot::new();
        let memory = TestMemory::new();
        // SAFETY: one thread; memory is reclaimed only by `quiesce`, between calls.
        let tree = unsafe { Tree::new(&root, &memory) };
        let mut model = Model::new();
        for number in 0..if cfg!(miri) { 60 } else { 400 } {
            let mut key: Vec<u8> = (0..8 * depth).collect();
            key.extend((number / 3 * 0x0101_0101u64).to_be_bytes());
            let length = number as usize * 7 % 80;
            key.extend((0..length).map(|at| (at + number as usize) as u8));
            if number % 5 == 0 {
                key.truncate(key.len() - length.min(8) / 2);
            }
            assert_eq!(tree.insert(&key, number), Ok(model.insert(key, number)));
        }
        check_whole(&tree, &model);
        for capacity in [1, 2, 50, 1000] {
            check_scan(&tree, &model, Bound::Start, Direction::Forward, capacity);
            check_scan(&tree, &model, Bound::End, Direction::Backward, capacity);
        }
        // SAFETY: nobody else uses the tree.
        unsafe { tree.clear() };
    }
}

/// What a closure that unwinds leaves behind: nothing.
#[test]
fn a_decision_that_panics_changes_nothing() {
    let root = TreeRoot::new();
    let memory = TestMemory::new();
    // SAFETY: one thread; memory is reclaimed only by `quiesce`, between calls.
    let tree = unsafe { Tree::new(&root, &memory) };
    let mut model = Model::new();
    std::panic::set_hook(Box::new(|_| ()));
    // Ascending numbers meet splits at the right edge; strings meet bags and new layers.
    let numbers = (0..200u64).map(|number| number.to_be_bytes().to_vec());
    let strings = (0..200u64).map(|number| format!("a string, shared {number}").into_bytes());
    for key in numbers.chain(strings) {
        for _ in 0..2 {
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                tree.update(&key, |_| -> (Change, ()) { panic!("no decision") })
            }));
            assert!(result.is_err());
            memory.quiesce();
            assert_eq!(tree.get(&key), model.get(&key).copied());
            let stats = tree.verify();
            assert_eq!(stats.map(|stats| stats.entries), Ok(model.len() as u64));
            apply(&tree, &mut model, Op::Insert(key.clone(), 1));
        }
    }
    drop(std::panic::take_hook());
    check_whole(&tree, &model);
    // SAFETY: nobody else uses the tree.
    unsafe { tree.clear() };
}

/// Up to six keys behind one slice, beside other slices: every scan from every place near them, to
/// every other one, in batches of all sizes; as they come, go and come again, with and without the
/// layer that more of them have made.
#[test]
fn every_range_among_keys_that_share_a_slice() {
    let slice = b"a slice!";
    let key = |tail: &[u8]| [&slice[..], tail].concat();
    let tails: [&[u8]; 6] = [b"b", b"b\0", b"d, far on", b"d, farther on", b"f", b"h"];
    let around: [&[u8]; 4] = [b"a", slice, b"a slice", b"a slice\"beyond"];
    let mut places: Vec<Vec<u8>> = around.iter().map(|key| key.to_vec()).collect();
    for tail in tails {
        places.extend([key(tail), key(&[tail, b"\0"].concat())]);
    }
    places.extend([b"", &b"c"[..], b"d", b"d, far", b"z"].map(key));
    places.push(b"b".to_vec());
    for orders in [[0, 1, 2, 3, 4, 5], [5, 3, 1, 4, 2, 0], [2, 5, 0, 4, 1, 3]] {
        let root = TreeRoot::new();
        let memory = TestMemory::new();
        // SAFETY: one thread; memory is reclaimed only by `quiesce`, between calls.
        let tree = unsafe { Tree::new(&root, &memory) };
        let mut model = Model::new();
        let mut change = |insert: bool, key: Vec<u8>| {
            let value = key.len() as u64;
            apply(
                &tree,
                &mut model,
                if insert {
                    Op::Insert(key, value)
                } else {
                    Op::Remove(key)
                },
            );
            memory.quiesce();
            tree.verify().expect("the tree is sound");
            for direction in [Direction::Forward, Direction::Backward] {
                for place in &places {
                    for bound in [Bound::Included(place), Bound::Excluded(place)] {
                        let expected = expected(&model, bound, direction);
                        for capacity in 1..8 {
                            check_until(&tree, &expected, (bound, direction), capacity, &places);
                        }
                    }
                }
            }
        };
        around.iter().for_each(|key| change(true, key.to_vec()));
        orders.iter().for_each(|at| change(true, key(tails[*at])));
        orders[..4]
            .iter()
            .for_each(|at| change(false, key(tails[*at])));
        orders[..2]
            .iter()
            .for_each(|at| change(true, key(tails[*at])));
        // SAFETY: nobody else uses the tree.
        unsafe { tree.clear() };
    }
}

/// A full leaf with as many suffixes of a slice as may stay gives them a layer and is not cut; with
/// fewer it is cut.
#[test]
fn a_full_leaf_moves_what_is_about_to_go() {
    for suffixes in [3, 4] {
        let root = TreeRoot::new();
        let memory = TestMemory::new();
        // SAFETY: one thread; memory is reclaimed only by `quiesce`, between calls.
        let tree = unsafe { Tree::new(&root, &memory) };
        let mut model = Model::new();
        let ends = (suffixes..16).map(|at: usize| vec![at as u8 * 10; 8]);
        let behind = (0..suffixes).map(|at| [&[75; 8][..], &[at as u8]].concat());
        for key in behind.chain(ends) {
            apply(&tree, &mut model, Op::Insert(key, 1));
            memory.quiesce();
        }
        check_whole(&tree, &model);
        let stats = tree.verify().expect("the tree is sound");
        let shape = (stats.layers, stats.leaves, stats.inner_nodes);
        assert_eq!(shape, if suffixes == 4 { (2, 2, 0) } else { (1, 2, 1) });
        // SAFETY: nobody else uses the tree.
        unsafe { tree.clear() };
    }
}
