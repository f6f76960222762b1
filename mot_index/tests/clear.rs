//! Clearing a tree bit by bit: each value is told once, whoever goes on, and nothing is left.

mod common;

use common::TestMemory;
use mot_index::{Memory, Tree, TreeRoot};
use proptest::prelude::*;
use std::alloc::Layout;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;

/// A memory whose every so many-th giving back unwinds, once the block is given back.
struct Unwinding<'a> {
    memory: &'a TestMemory,
    every: Cell<u64>,
    given_back: Cell<u64>,
}

impl Memory for Unwinding<'_> {
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        self.memory.allocate(layout)
    }

    unsafe fn free(&self, ptr: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's.
        unsafe { self.memory.free(ptr, layout) };
        let number = self.given_back.replace(self.given_back.get() + 1);
        if number % self.every.get() == self.every.get() - 1 {
            resume_unwind(Box::new(()));
        }
    }

    unsafe fn retire(&self, ptr: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's.
        unsafe { self.memory.retire(ptr, layout) };
    }
}

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

/// Values that unwind, too. [`TestMemory`] notices what is freed twice, and reads of what was.
#[test]
fn nothing_is_given_back_or_told_twice_whatever_unwinds() {
    for every in [1, 2, 3, 7] {
        let root = TreeRoot::new();
        let memory = TestMemory::new();
        let unwinding = Unwinding {
            memory: &memory,
            every: Cell::new(u64::MAX),
            given_back: Cell::new(0),
        };
        // SAFETY: one thread; memory is reclaimed only by `quiesce`, between calls.
        let tree = unsafe { Tree::new(&root, &unwinding) };
        // Layers, bags, and inner nodes of two levels.
        for number in 0..4000u64 {
            let mut key = (number / 2 * 3).to_be_bytes().to_vec();
            key.extend(&b"suffix of a key"[..(number % 2 * 15) as usize]);
            tree.insert(&key, number).unwrap();
            let key = [&[9; 8][..], &number.to_be_bytes()].concat();
            tree.insert(&key, 4000 + number).unwrap();
        }
        memory.quiesce();
        unwinding.every.set(every);
        let mut told = BTreeSet::new();
        let mut times = 0;
        loop {
            times += 1;
            let is_empty = catch_unwind(AssertUnwindSafe(|| {
                let value = |value| {
                    assert!(told.insert(value), "told twice: {value}");
                    if value % (40 * every) == 0 {
                        resume_unwind(Box::new(()));
                    }
                };
                // SAFETY: nobody else uses the tree.
                unsafe { tree.clear_some(usize::MAX, value) }
            }));
            match is_empty {
                Ok(is_empty) => break assert!(is_empty),
                Err(payload) => assert!(payload.is::<()>(), "something else unwound"),
            }
        }
        assert!(times > 100 / every, "{times}");
        assert_eq!(told.len(), 8000);
        memory.lose_all();
    }
}
