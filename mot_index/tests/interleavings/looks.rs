//! Trees that are measured and checked while they change: no address is followed that is none, and
//! the walk ends.

use super::*;
use mot_index::{Measure, NODE_BYTES};

/// More than any tree of these tests has, nodes counted twice included.
const NODES_MAX: u64 = 16;

/// Walks the tree a leaf at a time, unpinned in between. What a check finds wrong meanwhile proves
/// nothing.
fn look(shared: &Shared) {
    let mut measure = Measure::new();
    while shared.with(|tree| tree.measure(&mut measure, 1)) {}
    let node = NODE_BYTES as u64;
    assert!(
        (node / 2..NODES_MAX * node).contains(&measure.bytes()),
        "{} bytes",
        measure.bytes()
    );
    let _: Result<_, _> = shared.with(|tree| tree.verify());
}

/// Both see the tree as it is when nobody changes it any more.
fn finish(shared: &Shared, keys: &[Vec<u8>]) {
    let mut measure = Measure::new();
    while shared.with(|tree| tree.measure(&mut measure, 2)) {}
    let stats = shared.with(|tree| tree.verify()).expect("sound");
    assert_eq!(measure.bytes(), stats.bytes_used);
    shared.finish(keys);
}

/// A root that is a full leaf becomes an inner node, and its leaf is split again.
fn beside_a_split() {
    let shared = Arc::new(Shared::default());
    let mut keys: Vec<Vec<u8>> = (0..15).map(|at| number(at * 10)).collect();
    keys.iter().for_each(|key| shared.insert(key));
    threads(vec![
        work(&shared, |shared| {
            [75, 5]
                .map(number)
                .iter()
                .for_each(|key| shared.insert(key));
        }),
        work(&shared, look),
    ]);
    keys.extend([75, 5].map(number));
    finish(&shared, &keys);
}

/// Keys go until one leaf is left, which the root takes back.
fn beside_unlinking() {
    let shared = Arc::new(Shared::default());
    let keys: Vec<Vec<u8>> = (0..17).map(|at| number(at * 10)).collect();
    keys.iter().for_each(|key| shared.insert(key));
    let (kept, going) = keys.split_at(14);
    let going = going.to_vec();
    threads(vec![
        work(&shared, move |shared| {
            going.iter().for_each(|key| shared.remove(key));
        }),
        work(&shared, look),
    ]);
    finish(&shared, kept);
}

/// Suffixes of a slice move to a layer, which goes again with all that is in it.
fn beside_layers() {
    let tails = ["one", "three", "two", "zero", "seven"];
    let keys: Vec<Vec<u8>> = tails
        .map(|tail| format!("a slice,{tail}").into_bytes())
        .to_vec();
    let shared = Arc::new(Shared::default());
    let kept = vec![number(1)];
    shared.insert(&kept[0]);
    keys[..4].iter().for_each(|key| shared.insert(key));
    threads(vec![
        work(&shared, move |shared| {
            shared.insert(&keys[4]);
            keys.iter().for_each(|key| shared.remove(key));
        }),
        work(&shared, look),
    ]);
    finish(&shared, &kept);
}

#[test]
fn looks_beside_writers() {
    explore("index, looks beside a split", 3_000, beside_a_split);
    explore("index, looks beside unlinking", 3_000, beside_unlinking);
    explore("index, looks beside layers", 3_000, beside_layers);
}
