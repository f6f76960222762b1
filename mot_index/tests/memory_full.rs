//! A memory that is full at any moment: nothing is lost, nothing leaks, removal always works.

mod common;

use common::TestMemory;
use mot_index::{BulkError, Change, Memory, OutOfMemory, Tree, TreeRoot};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::alloc::Layout;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ptr::NonNull;

/// Keys that make every kind of allocation: leaves, narrow ones and wide ones in their places,
/// inner nodes, bags, layers, chains of layers; slices with about as many as make a layer.
fn keys(seed: u64) -> Vec<Vec<u8>> {
    println!("seed {seed:#x}");
    let mut random = StdRng::seed_from_u64(seed);
    (0..1500)
        .map(|number: u64| match number % 7 {
            0 => number.to_be_bytes().to_vec(),
            1 => random.random::<u64>().to_be_bytes().to_vec(),
            2 => format!("a shared beginning, then {}", random.random_range(0..300)).into_bytes(),
            3 => (0..random.random_range(0..24))
                .map(|_| random.random_range(0..2))
                .collect(),
            4 => format!("slice {:02} and {}", number / 7 % 60, number).into_bytes(),
            // Narrow leaves, and keys that they do not hold.
            5 => [
                (1 << 24) | (number as u32 / 300),
                random.random_range(0..100),
            ]
            .map(u32::to_be_bytes)
            .concat(),
            _ => [random.random::<u64>(), number]
                .map(u64::to_be_bytes)
                .concat(),
        })
        .collect()
}

/// Inserts (some keys are removed again, too) while the allocations in `[from, until)` fail.
/// Returns how many allocations there were.
fn run(keys: &[Vec<u8>], from: u64, until: u64) -> u64 {
    let root = TreeRoot::new();
    let memory = TestMemory::new();
    // SAFETY: one thread; memory is reclaimed only by `quiesce`, between calls.
    let tree = unsafe { Tree::new(&root, &memory) };
    memory.fail_between(from, until);
    let mut model = BTreeMap::new();
    for (number, key) in keys.iter().enumerate() {
        let mut called = false;
        let keep = number % 7 == 6;
        let result = tree.update(key, |old| {
            called = true;
            (
                if keep {
                    Change::Keep
                } else {
                    Change::Set(number as u64)
                },
                old,
            )
        });
        match result {
            Ok(old) => {
                assert_eq!(old, model.get(key).copied());
                if !keep {
                    model.insert(key.clone(), number as u64);
                }
            }
            Err(OutOfMemory) => assert!(!called, "decided although memory was full"),
        }
        assert_eq!(tree.get(key), model.get(key).copied());
        if number % 11 == 10 {
            let key = &keys[number / 2];
            assert_eq!(tree.remove(key), model.remove(key));
        }
        memory.quiesce();
    }
    let stats = tree.verify().expect("the tree is sound");
    assert_eq!(stats.entries, model.len() as u64);
    assert_eq!(stats.bytes_used as usize, memory.bytes_live());
    for (key, value) in &model {
        assert_eq!(tree.get(key), Some(*value));
    }
    // From now on memory stays full: everything can still be taken out.
    let allocations = memory.allocations();
    memory.fail_between(0, u64::MAX);
    for (key, value) in model {
        assert_eq!(tree.remove(&key), Some(value));
        assert_eq!(tree.remove(&key), None);
        memory.quiesce();
    }
    assert!(root.is_empty());
    assert_eq!(memory.bytes_live(), 0);
    assert_eq!(memory.allocations(), allocations, "removal allocated");
    allocations
}

#[test]
fn one_failing_allocation_at_any_place() {
    let keys = keys(1);
    let allocations = run(&keys, 0, 0);
    assert!(allocations > 300, "only {allocations} places");
    for fail_at in 0..allocations {
        run(&keys, fail_at, fail_at + 1);
    }
}

#[test]
fn full_from_some_moment_on() {
    let keys = keys(2);
    let allocations = run(&keys, 0, 0);
    for from in (0..allocations).step_by(3) {
        run(&keys, from, u64::MAX);
    }
}

#[test]
fn full_for_a_while() {
    let keys = keys(3);
    let allocations = run(&keys, 0, 0);
    for from in (0..allocations).step_by(5) {
        run(&keys, from, from + 25);
    }
}

#[test]
fn bulk_load_fails_without_a_trace() {
    let mut keys = keys(4);
    keys.sort();
    keys.dedup();
    let mut fail_at = 0;
    loop {
        let root = TreeRoot::new();
        let memory = TestMemory::new();
        // SAFETY: one thread; memory is reclaimed only by `quiesce`, between calls.
        let tree = unsafe { Tree::new(&root, &memory) };
        memory.fail_between(fail_at, fail_at + 1);
        match tree.bulk_load(keys.iter().map(|key| (key, 7))) {
            Ok(count) => {
                assert_eq!(count, keys.len() as u64);
                assert_eq!(
                    memory.allocations(),
                    fail_at,
                    "every allocation has failed once"
                );
                // SAFETY: nobody else uses the tree.
                unsafe { tree.clear() };
                return;
            }
            Err(error) => {
                assert_eq!(error, BulkError::OutOfMemory);
                assert!(root.is_empty());
                assert_eq!(memory.bytes_live(), 0);
            }
        }
        fail_at += 1;
    }
}

/// Blocks at an address that no value has room for.
#[derive(Default)]
struct Beyond {
    allocated: Cell<u64>,
    freed: Cell<u64>,
}

impl Memory for Beyond {
    fn allocate(&self, _: Layout) -> Option<NonNull<u8>> {
        self.allocated.set(self.allocated.get() + 1);
        NonNull::new(std::ptr::without_provenance_mut(1 << 60))
    }

    unsafe fn free(&self, ptr: NonNull<u8>, _: Layout) {
        assert_eq!(ptr.addr().get(), 1 << 60);
        self.freed.set(self.freed.get() + 1);
    }

    unsafe fn retire(&self, _: NonNull<u8>, _: Layout) {
        unreachable!("nothing was published");
    }
}

#[test]
fn nodes_are_not_made_where_no_value_can_lead() {
    let (root, memory) = (TreeRoot::new(), Beyond::default());
    // SAFETY: one thread, and nothing is reclaimed.
    let tree = unsafe { Tree::new(&root, &memory) };
    assert_eq!(tree.insert(b"key", 1), Err(OutOfMemory));
    assert!(tree.bulk_load([(b"key", 1)]).is_err());
    assert!(root.is_empty());
    assert_eq!((memory.allocated.get(), memory.freed.get()), (2, 2));
}
