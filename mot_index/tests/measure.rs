//! How large a tree is: exactly, if nobody changes it, and without harm, if somebody does.

mod common;

use common::{TestMemory, any_key};
use mot_index::{Measure, Memory, NODE_BYTES, Tree, TreeRoot};
use proptest::prelude::*;
use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};

/// A walk to the end, which goes on for so many leaves at a time.
fn walked<M: Memory>(tree: &Tree<'_, M>, leaves: usize) -> Measure {
    let mut measure = Measure::new();
    while tree.measure(&mut measure, leaves) {}
    measure
}

/// The bytes that such a walk finds.
fn measured<M: Memory>(tree: &Tree<'_, M>, leaves: usize) -> u64 {
    walked(tree, leaves).bytes()
}

/// Parts of a large tree stand for it, whichever part was thinned out, in whichever layer.
#[test]
fn parts_stand_for_a_tree_that_is_thin_somewhere() {
    const KEYS: u64 = 60_000;
    for beginning in ["", "a common beginning"] {
        for thin in [0..0, 0..KEYS / 2, KEYS / 2..KEYS, KEYS / 4..KEYS / 2] {
            let (memory, root) = (TestMemory::new(), TreeRoot::new());
            // SAFETY: one thread; retired blocks stay until `quiesce`.
            let tree = unsafe { Tree::new(&root, &memory) };
            let key = |number: u64| {
                let mut key = beginning.as_bytes().to_vec();
                key.extend(number.to_be_bytes());
                key
            };
            for number in 0..KEYS {
                tree.insert(&key(number * 7919 % KEYS), 1).unwrap();
            }
            for number in thin.clone().filter(|number| number % 15 > 0) {
                tree.remove(&key(number));
            }
            memory.quiesce();
            let whole = walked(&tree, 100);
            let mut parts = tree.walks_apart(8);
            assert!((4..=8).contains(&parts.len()), "{} parts", parts.len());
            for part in &mut parts {
                tree.measure(part, 100);
            }
            let bytes: u64 = parts.iter().map(Measure::bytes).sum();
            let entries: u64 = parts.iter().map(Measure::entries).sum();
            let estimated = bytes * whole.entries() / entries;
            assert!(
                estimated.abs_diff(whole.bytes()) <= whole.bytes() / 3,
                "{estimated} of {} bytes, thin at {thin:?}",
                whole.bytes()
            );
            // SAFETY: nobody else uses the tree.
            unsafe { tree.clear() };
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// As many bytes as were allocated, and all entries, in steps of any size.
    #[test]
    fn a_still_tree_is_measured_exactly(
        keys in prop::collection::vec(any_key(), 0..600),
        gone in 0..4usize,
        leaves in 1..20usize,
    ) {
        let (memory, root) = (TestMemory::new(), TreeRoot::new());
        // SAFETY: one thread; retired blocks stay until `quiesce`.
        let tree = unsafe { Tree::new(&root, &memory) };
        for key in &keys {
            tree.insert(key, 1).unwrap();
        }
        for key in keys.iter().skip(1).step_by(gone + 1) {
            tree.remove(key);
        }
        memory.quiesce();
        prop_assert_eq!(measured(&tree, leaves), memory.bytes_live() as u64);
        let verified = tree.verify().unwrap();
        prop_assert_eq!(verified.bytes_used, memory.bytes_live() as u64);
        prop_assert_eq!(verified.entries, walked(&tree, leaves).entries());
        // SAFETY: nobody else uses the tree.
        unsafe { tree.clear() };
    }

    /// Between two steps nobody is pinned: what was retired is poisoned.
    #[test]
    fn a_tree_may_change_between_two_steps(
        keys in prop::collection::vec(any_key(), 50..600),
        leaves in 1..4usize,
        changes in 1..40usize,
    ) {
        let (memory, root) = (TestMemory::new(), TreeRoot::new());
        // SAFETY: one thread; retired blocks stay until `quiesce`.
        let tree = unsafe { Tree::new(&root, &memory) };
        for key in keys.iter().step_by(2) {
            tree.insert(key, 1).unwrap();
        }
        let mut measure = Measure::new();
        let mut turned = keys.iter().cycle();
        let mut steps = 0;
        while tree.measure(&mut measure, leaves) {
            for key in turned.by_ref().take(changes) {
                if tree.remove(key).is_none() {
                    tree.insert(key, 1).unwrap();
                }
            }
            memory.quiesce();
            steps += 1;
            prop_assert!(steps < 100_000, "the walk does not end");
        }
        tree.verify().unwrap();
        // SAFETY: nobody else uses the tree.
        unsafe { tree.clear() };
        memory.quiesce();
        prop_assert_eq!(measured(&tree, leaves), 0);
    }
}

/// Blocks on the heap that are poisoned when the epoch gives them back.
struct Poisoning<'g>(&'g crossbeam_epoch::Guard);

impl Memory for Poisoning<'_> {
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        // SAFETY: trees ask for blocks of more than zero bytes.
        NonNull::new(unsafe { std::alloc::alloc(layout) })
    }

    unsafe fn free(&self, ptr: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe {
            ptr.as_ptr().write_bytes(0xDD, layout.size());
            std::alloc::dealloc(ptr.as_ptr(), layout);
        }
    }

    unsafe fn retire(&self, ptr: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's promise; the closure runs when all pinned now have unpinned.
        unsafe {
            self.0.defer_unchecked(move || {
                ptr.as_ptr().write_bytes(0xDD, layout.size());
                std::alloc::dealloc(ptr.as_ptr(), layout);
            });
        }
    }
}

fn with<R>(root: &TreeRoot, work: impl FnOnce(&Tree<'_, Poisoning<'_>>) -> R) -> R {
    let guard = crossbeam_epoch::pin();
    let memory = Poisoning(&guard);
    // SAFETY: pinned while `work` runs; all handles on the root are made here.
    work(&unsafe { Tree::new(root, &memory) })
}

/// A key of one of four shapes: numbers, layers of few keys, suffixes that share a slice, one layer
/// far down.
fn key(number: u64) -> Vec<u8> {
    match number % 4 {
        0 => number.to_be_bytes().to_vec(),
        1 => [number / 24, number % 24].map(u64::to_be_bytes).concat(),
        2 => format!(
            "{:07}{}",
            number / 12,
            "abc".repeat(number as usize % 3 + 1)
        )
        .into_bytes(),
        _ => [b"one prefix of them all", &number.to_be_bytes()[..]].concat(),
    }
}

/// Whoever measures or verifies follows nothing but addresses of nodes, and comes to an end; what
/// he finds wrong is for him to judge.
#[test]
fn a_tree_is_looked_at_while_threads_fill_and_empty_it() {
    const KEYS: u64 = if cfg!(miri) { 60 } else { 4_000 };
    const ROUNDS: usize = if cfg!(miri) { 2 } else { 12 };
    let root = TreeRoot::new();
    let is_over = AtomicBool::new(false);
    let (root, is_over) = (&root, &is_over);
    std::thread::scope(|scope| {
        let looks = [1, 7, 256].map(|leaves| {
            scope.spawn(move || {
                let (mut looks, mut most) = (0u64, 0);
                while !is_over.load(Ordering::Relaxed) || looks == 0 {
                    let mut measure = Measure::new();
                    while with(root, |tree| tree.measure(&mut measure, leaves)) {}
                    most = most.max(measure.bytes());
                    let _: Result<_, _> = with(root, |tree| tree.verify());
                    looks += 1;
                }
                most
            })
        });
        for round in 0..ROUNDS {
            // The tree is empty in between, and begins with a root that is a leaf.
            for number in 0..KEYS {
                let key = key(number.wrapping_mul(7919) % KEYS + round as u64 % 3);
                with(root, |tree| tree.insert(&key, 1)).unwrap();
            }
            for number in 0..KEYS + 3 {
                with(root, |tree| tree.remove(&key(number)));
            }
        }
        is_over.store(true, Ordering::Relaxed);
        for look in looks {
            let most = look.join().expect("looks without harm");
            // Twice of all that is there, and more, would be a walk that goes in circles.
            assert!(most < KEYS * NODE_BYTES as u64 * 4, "{most} bytes");
        }
    });
    with(root, |tree| {
        assert_eq!(measured(tree, 3), tree.verify().unwrap().bytes_used);
        // SAFETY: the threads have ended.
        unsafe { tree.clear() };
    });
}
