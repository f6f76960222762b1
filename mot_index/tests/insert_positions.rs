//! Entries made at insert positions are those that updates from the root make, whatever happened to
//! the trees in between.

mod common;

use common::{TestMemory, any_key, layered_key, number_key};
use mot_index::{Change, InsertPosition, Tree, TreeRoot};
use proptest::prelude::*;
use std::collections::BTreeMap;

const TREES: usize = 3;

/// Insert positions are found for some keys; then others come and go; then the first ones are
/// decided about.
#[derive(Clone, Debug)]
struct Round {
    keys: Vec<(usize, Vec<u8>, Option<u64>)>,
    between: Vec<(usize, Vec<u8>, Option<u64>)>,
}

fn changes(
    key: BoxedStrategy<Vec<u8>>,
    most: usize,
) -> impl Strategy<Value = Vec<(usize, Vec<u8>, Option<u64>)>> {
    let value = prop_oneof![2 => common::value().prop_map(Some), 1 => Just(None)];
    prop::collection::vec((0..TREES, key, value), 0..most)
}

fn rounds(key: impl Strategy<Value = Vec<u8>> + 'static) -> impl Strategy<Value = Vec<Round>> {
    let key = key.boxed();
    let round = (changes(key.clone(), 20), changes(key, 60))
        .prop_map(|(keys, between)| Round { keys, between });
    prop::collection::vec(round, 0..25)
}

fn change_to(value: Option<u64>) -> Change {
    value.map_or(Change::Remove, Change::Set)
}

fn run(rounds: Vec<Round>) {
    let roots: [TreeRoot; TREES] = Default::default();
    let memory = TestMemory::new();
    // SAFETY: one thread; memory is reclaimed only by `quiesce`, between rounds.
    let trees = roots
        .each_ref()
        .map(|root| unsafe { Tree::new(root, &memory) });
    let mut models: [BTreeMap<Vec<u8>, u64>; TREES] = Default::default();
    for Round { keys, between } in rounds {
        let mut positions: Vec<Option<InsertPosition<'_>>> = vec![None; keys.len()];
        let pairs = keys.iter().map(|(tree, key, _)| (trees[*tree], &key[..]));
        Tree::find_insert_positions(pairs, |number, position| {
            assert!(positions[number].replace(position).is_none());
        });
        for (position, (tree, ..)) in positions.iter().zip(&keys) {
            assert_eq!(position.is_some(), !roots[*tree].is_empty());
        }
        let model =
            |models: &mut [BTreeMap<Vec<u8>, u64>; TREES], tree: usize, key, value| match value {
                Some(value) => models[tree].insert(key, value),
                None => models[tree].remove(&key),
            };
        for (tree, key, value) in between {
            let old = trees[tree].update(&key, |old| (change_to(value), old));
            assert_eq!(old, Ok(model(&mut models, tree, key, value)));
        }
        for (position, (tree, key, value)) in positions.into_iter().zip(keys) {
            let decide = |old: Option<u64>| (change_to(value), old);
            let old = match position {
                // SAFETY: found above for this key in this tree; nothing was reclaimed since.
                Some(position) => unsafe { trees[tree].update_at(position, &key, decide) },
                None => trees[tree].update(&key, decide),
            };
            assert_eq!(old, Ok(model(&mut models, tree, key, value)));
        }
        memory.quiesce();
    }
    for (tree, model) in trees.iter().zip(&models) {
        let stats = tree.verify().expect("the tree is sound");
        assert_eq!(stats.entries, model.len() as u64);
        for (key, value) in model {
            assert_eq!(tree.get(key), Some(*value));
        }
        // SAFETY: nobody else uses it.
        unsafe { tree.clear() };
    }
    memory.quiesce();
    assert_eq!(memory.bytes_live(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn numbers(rounds in rounds(number_key())) {
        run(rounds);
    }

    #[test]
    fn layered_keys(rounds in rounds(layered_key())) {
        run(rounds);
    }

    #[test]
    fn all_keys(rounds in rounds(any_key())) {
        run(rounds);
    }
}
