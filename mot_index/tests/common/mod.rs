//! A memory that counts, poisons and can be made full, and keys that stress the trie.
#![allow(dead_code)] // Each test file uses its part.

use mot_index::{MAX_VALUE, Memory};
use proptest::prelude::*;
use std::alloc::Layout;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ptr::NonNull;

/// What freed memory is filled with: a read of it shows.
pub const POISON: u8 = 0xDD;

/// The memory of one thread. Retired blocks stay as they are until [`TestMemory::quiesce`]; freed
/// ones are poisoned and kept, so that a later write to them is found.
#[derive(Default)]
pub struct TestMemory {
    live: RefCell<HashMap<usize, Layout>>,
    retired: RefCell<Vec<(NonNull<u8>, Layout)>>,
    poisoned: RefCell<Vec<(NonNull<u8>, Layout)>>,
    allocations: Cell<u64>,
    fail_from: Cell<u64>,
    fail_until: Cell<u64>,
}

impl TestMemory {
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes the allocations numbered in `[from, until)` fail, counted from 0.
    pub fn fail_between(&self, from: u64, until: u64) {
        self.fail_from.set(from);
        self.fail_until.set(until);
    }

    /// Allocations asked for so far.
    pub fn allocations(&self) -> u64 {
        self.allocations.get()
    }

    /// Bytes allocated and neither freed nor retired.
    pub fn bytes_live(&self) -> usize {
        let live: usize = self.live.borrow().values().map(Layout::size).sum();
        let retired: usize = self
            .retired
            .borrow()
            .iter()
            .map(|(_, layout)| layout.size())
            .sum();
        live - retired
    }

    /// Gives up what is live and will not be freed any more.
    pub fn lose_all(&self) {
        for (address, layout) in self.live.take() {
            let block = std::ptr::with_exposed_provenance_mut(address);
            // SAFETY: a live block of this layout, which nobody uses again (caller).
            unsafe { std::alloc::dealloc(block, layout) };
        }
    }

    /// Frees what was retired: no operation is running.
    pub fn quiesce(&self) {
        for (block, layout) in self.retired.take() {
            self.poison(block, layout);
        }
        if self.poisoned.borrow().len() > 2000 {
            self.release_poisoned();
        }
    }

    fn poison(&self, block: NonNull<u8>, layout: Layout) {
        let known = self.live.borrow_mut().remove(&block.addr().get());
        assert_eq!(known, Some(layout), "freed twice or with another layout");
        // SAFETY: a live block of this layout that the tree gave back.
        unsafe { block.as_ptr().write_bytes(POISON, layout.size()) };
        self.poisoned.borrow_mut().push((block, layout));
    }

    fn release_poisoned(&self) {
        for (block, layout) in self.poisoned.take() {
            // SAFETY: a block of ours, poisoned and not released yet.
            unsafe {
                let bytes = std::slice::from_raw_parts(block.as_ptr(), layout.size());
                assert!(
                    bytes.iter().all(|byte| *byte == POISON),
                    "written to after it was freed"
                );
                std::alloc::dealloc(block.as_ptr(), layout);
            }
        }
    }
}

impl Memory for TestMemory {
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        let number = self.allocations.replace(self.allocations.get() + 1);
        if (self.fail_from.get()..self.fail_until.get()).contains(&number) {
            return None;
        }
        // SAFETY: trees ask for blocks of more than zero bytes.
        let block = NonNull::new(unsafe { std::alloc::alloc(layout) })?;
        // SAFETY: the block is new; content of any kind must do.
        unsafe { block.as_ptr().write_bytes(0xA5, layout.size()) };
        self.live
            .borrow_mut()
            .insert(block.expose_provenance().get(), layout);
        Some(block)
    }

    unsafe fn free(&self, ptr: NonNull<u8>, layout: Layout) {
        self.poison(ptr, layout);
    }

    unsafe fn retire(&self, ptr: NonNull<u8>, layout: Layout) {
        let retired = self.retired.borrow().iter().any(|(block, _)| *block == ptr);
        assert!(!retired, "retired twice");
        self.retired.borrow_mut().push((ptr, layout));
    }
}

impl Drop for TestMemory {
    fn drop(&mut self) {
        self.quiesce();
        self.release_poisoned();
        if !std::thread::panicking() {
            assert!(self.live.borrow().is_empty(), "memory was lost");
        }
    }
}

/// Keys that share slices, end in the middle of slices, contain and end with zero bytes.
pub fn layered_key() -> impl Strategy<Value = Vec<u8>> {
    let block = prop_oneof![
        Just(*b"aaaaaaaa"),
        Just(*b"aaaaaaab"),
        Just([0; 8]),
        Just([0, 0, 0, 0, 0, 0, 0, 1]),
        Just([0xFF; 8]),
    ];
    let blocks = prop::collection::vec(block, 0..4);
    let tail = prop::collection::vec(prop_oneof![Just(0), Just(b'a'), Just(0xFF)], 0..9);
    (blocks, tail).prop_map(|(blocks, tail)| {
        let mut key = blocks.concat();
        key.extend(tail);
        key
    })
}

/// Keys of few slices, each with up to a dozen keys that go on behind it: about as many as share a
/// leaf, and more, which have a layer. Suffixes part in their first byte or behind further slices.
pub fn suffixed_key() -> impl Strategy<Value = Vec<u8>> {
    let slice = prop_oneof![Just(*b"12345678"), Just(*b"12345679"), Just([0; 8])];
    let slices = prop_oneof![
        4 => prop::collection::vec(slice.clone(), 1..=1),
        1 => prop::collection::vec(slice, 0..4),
    ];
    let tail = prop_oneof![
        3 => prop::collection::vec(prop_oneof![Just(0), Just(b'a'), Just(0xFF)], 0..3),
        1 => prop::collection::vec(prop_oneof![Just(0), Just(1)], 7..10),
    ];
    (slices, tail).prop_map(|(slices, tail)| [&slices.concat()[..], &tail].concat())
}

/// Eight-byte numbers close to one another.
pub fn number_key() -> impl Strategy<Value = Vec<u8>> {
    (0u64..400).prop_map(|number| number.to_be_bytes().to_vec())
}

/// Numbers of eight bytes of which many have the upper half in common, of four bytes, and such with
/// a few bytes more: narrow leaves, and keys that they do not hold.
pub fn half_alike_key() -> impl Strategy<Value = Vec<u8>> {
    let half = prop_oneof![8 => 0u32..3, 1 => Just(u32::MAX), 1 => any::<u32>()];
    let tail = prop_oneof![3 => Just(0usize), 1 => 1..3usize];
    (
        half,
        0u32..60,
        prop_oneof![3 => Just(8usize), 1 => Just(4)],
        tail,
    )
        .prop_map(|(upper, lower, bytes, tail)| {
            let mut key = [upper, lower].map(u32::to_be_bytes).concat();
            if bytes == 4 {
                key.drain(..4);
            }
            key.extend(&[7, 7][..tail]);
            key
        })
}

/// Any value an entry may have.
pub fn value() -> impl Strategy<Value = u64> {
    0..=MAX_VALUE
}

/// Keys of 0 to 40 random bytes.
pub fn random_key() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..40)
}

/// Keys of one to four KiB, the most of which they share.
pub fn long_key() -> impl Strategy<Value = Vec<u8>> {
    let tail = prop::collection::vec(prop_oneof![Just(0), Just(1)], 0..12);
    (
        prop_oneof![Just(1024usize), Just(1025), Just(2048), Just(4096)],
        tail,
    )
        .prop_map(|(length, tail)| {
            let mut key = vec![b'x'; length - tail.len()];
            key.extend(tail);
            key
        })
}

/// All of them, small numbers most often.
pub fn any_key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => number_key(),
        2 => half_alike_key(),
        4 => layered_key(),
        2 => suffixed_key(),
        2 => random_key(),
        1 => long_key(),
    ]
}
