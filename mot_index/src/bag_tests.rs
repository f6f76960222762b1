//! What bags hold and when they are made anew.

use super::*;
use crate::node::NODE_LAYOUT;
use crate::tree::{Tree, TreeRoot};
use std::cell::Cell;

/// A memory that counts bags and gives nothing back before the process ends: every epoch is pinned
/// for ever.
#[derive(Default)]
struct Counting {
    bags: Cell<usize>,
}

impl Memory for Counting {
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        if layout != NODE_LAYOUT {
            self.bags.set(self.bags.get() + 1);
        }
        // SAFETY: trees ask for blocks of more than zero bytes.
        NonNull::new(unsafe { std::alloc::alloc(layout) })
    }

    unsafe fn free(&self, _: NonNull<u8>, _: Layout) {}

    unsafe fn retire(&self, _: NonNull<u8>, _: Layout) {}
}

/// A key alone on its slice.
fn key(number: usize, suffix_bytes: usize) -> Vec<u8> {
    let mut key = format!("{number:08}").into_bytes();
    key.extend((0..suffix_bytes).map(|at| (number + at) as u8));
    key
}

#[test]
fn a_bag_is_rebuilt_twice_until_its_leaf_is_full() {
    let (root, memory) = (TreeRoot::new(), Counting::default());
    // SAFETY: nothing is ever freed.
    let tree = unsafe { Tree::new(&root, &memory) };
    for number in 0..LEAF_ENTRIES {
        assert_eq!(tree.insert(&key(number, 14), 1), Ok(None));
    }
    assert_eq!(memory.bags.get(), 3);
}

#[test]
fn suffixes_stay_what_they_are_however_their_bag_is_rebuilt() {
    let (root, memory) = (TreeRoot::new(), Counting::default());
    // SAFETY: nothing is ever freed.
    let tree = unsafe { Tree::new(&root, &memory) };
    let there = |numbers: &mut dyn Iterator<Item = usize>| {
        for number in numbers {
            let found = tree.get(&key(number, 1 + number * 5));
            assert_eq!(found, Some(number as u64), "{number}");
        }
        tree.verify().expect("the tree is sound");
    };
    let put = |number: usize| {
        let value = number as u64;
        assert_eq!(tree.insert(&key(number, 1 + number * 5), value), Ok(None));
    };
    // Without anything given up: bags are copied as they are.
    for number in 0..10 {
        put(number);
        there(&mut (0..=number));
    }
    // With it: they are put together anew.
    for number in (0..10).step_by(2) {
        let removed = tree.remove(&key(number, 1 + number * 5));
        assert_eq!(removed, Some(number as u64));
    }
    for number in 10..20 {
        put(number);
        there(&mut (1..10).step_by(2).chain(10..=number));
    }
}

#[test]
fn the_room_for_entries_to_come_is_bounded() {
    for entries in 1..=LEAF_ENTRIES {
        for each in [4, 12, 40, 400, MAX_KEY_BYTES] {
            let bytes = entries * each;
            let made = with_reserve(bytes, entries);
            assert!(made >= bytes && made <= MAX_BYTES - HEADER_BYTES);
            assert!(made <= LEAF_ENTRIES * each, "{entries} of {each}");
            assert!(made - bytes <= RESERVE_BYTES_MAX.max(bytes / 4));
        }
    }
}

#[test]
fn an_address_that_does_not_fit_into_a_cell_is_given_back() {
    /// Hands out one address, which nobody may touch.
    struct Far(Cell<usize>);

    impl Memory for Far {
        fn allocate(&self, _: Layout) -> Option<NonNull<u8>> {
            NonNull::new(core::ptr::without_provenance_mut(1 << ADDRESS_BITS))
        }

        unsafe fn free(&self, _: NonNull<u8>, _: Layout) {
            self.0.set(self.0.get() + 1);
        }

        unsafe fn retire(&self, _: NonNull<u8>, _: Layout) {
            unreachable!("nobody saw the bag");
        }
    }

    let memory = Far(Cell::new(0));
    assert!(Bag::create(&memory, 20).is_err());
    assert_eq!(memory.0.get(), 1);
}
