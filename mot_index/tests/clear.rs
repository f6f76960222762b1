//! Clearing a tree bit by bit: each value is told once, whoever goes on, and nothing is left.

mod common;

use common::TestMemory;
use mot_index::{Tree, TreeRoot};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn in_any_stretches(
        keys in prop::collection::vec(common::any_key(), 0..1500),
        numbers in 0..2000u64,
        nodes in 1..40usize,
    ) {
        let root = TreeRoot::new();
        let memory = TestMemory::new();
        let mut entries = BTreeMap::new();
        {
            // SAFETY: one thread; memory is reclaimed only by `quiesce`, between calls.
            let tree = unsafe { Tree::new(&root, &memory) };
            let numbers = (0..numbers).map(|number| number.to_be_bytes().to_vec());
            for (value, key) in keys.into_iter().chain(numbers).enumerate() {
                if tree.insert(&key, value as u64).is_ok() {
                    entries.insert(key, value as u64);
                }
            }
            memory.quiesce();
        }
        let mut told = Vec::new();
        let mut left = memory.bytes_live();
        loop {
            // A handle of its own each time, as of another process.
            // SAFETY: nobody else uses the tree.
            let is_empty = unsafe { Tree::new(&root, &memory).clear_some(nodes, |value| told.push(value)) };
            if is_empty {
                break;
            }
            prop_assert!(memory.bytes_live() < left, "nothing was freed");
            left = memory.bytes_live();
        }
        prop_assert_eq!(memory.bytes_live(), 0);
        prop_assert_eq!(told.len(), entries.len());
        prop_assert_eq!(told.into_iter().collect::<BTreeSet<_>>(), entries.into_values().collect());
        // It can be used again.
        // SAFETY: as above.
        let tree = unsafe { Tree::new(&root, &memory) };
        prop_assert_eq!(tree.insert(b"key", 1), Ok(None));
        prop_assert_eq!(tree.get(b"key"), Some(1));
        // SAFETY: as above.
        unsafe { tree.clear() };
    }
}
