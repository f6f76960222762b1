//! What scans do when the tree changes between two leaves, step by step.

use super::*;
use crate::memory::Memory;
use crate::permutation::LEAF_ENTRIES;
use crate::tree::TreeRoot;
use core::alloc::Layout;
use core::ptr::NonNull;

/// A memory that gives nothing back before the process ends: every epoch is pinned for ever.
struct Keeping;

impl Memory for Keeping {
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        // SAFETY: trees ask for blocks of more than zero bytes.
        NonNull::new(unsafe { std::alloc::alloc(layout) })
    }

    unsafe fn free(&self, _: NonNull<u8>, _: Layout) {}

    unsafe fn retire(&self, _: NonNull<u8>, _: Layout) {}
}

/// Three full leaves of the keys 0, 10, … 440 below one inner node; a scan that has read the first
/// (or, backward, the last) of them; and then `change`.
fn after_one_leaf(
    direction: Direction,
    change: impl FnOnce(&Tree<'_, Keeping>),
) -> Result<Vec<u64>, GoneDown> {
    let root = TreeRoot::new();
    // SAFETY: nothing is ever freed.
    let tree = unsafe { Tree::new(&root, &Keeping) };
    let entries = (0..45u64).map(|number| ((number * 10).to_be_bytes(), number));
    assert_eq!(tree.bulk_load(entries), Ok(45));
    let mut batch = Batch::with_capacity(100);
    let first = tree.first_layer().expect("the tree has a root");
    tree.enter(first, None, direction, &mut batch)?;
    let frame = batch
        .scratch
        .frames
        .last_mut()
        .expect("the layer was entered");
    assert_eq!(frame.copy.count, LEAF_ENTRIES);
    frame.read = LEAF_ENTRIES - 1;
    frame.last = Some(frame.entry(direction).order());
    frame.read = LEAF_ENTRIES;
    change(&tree);
    assert!(tree.verify().is_ok());
    assert!(advance(frame, direction, 0)?, "there is another leaf");
    let mut seen = Vec::new();
    while frame.read < frame.copy.count {
        seen.push(frame.entry(direction).slice);
        frame.read += 1;
    }
    Ok(seen)
}

fn remove(tree: &Tree<'_, Keeping>, keys: core::ops::Range<u64>) {
    for key in keys.step_by(10) {
        assert!(tree.remove(&key.to_be_bytes()).is_some());
    }
}

#[test]
fn without_a_change_the_neighbour_follows() {
    let seen = after_one_leaf(Direction::Forward, |_| ()).ok();
    assert_eq!(seen, Some((150..300).step_by(10).collect()));
    let seen = after_one_leaf(Direction::Backward, |_| ()).ok();
    assert_eq!(
        seen,
        Some((15..30).rev().map(|number| number * 10).collect())
    );
}

#[test]
fn a_key_put_where_the_scan_has_been_is_not_read() {
    // The second leaf covers what the first one covered, once that is empty.
    let seen = after_one_leaf(Direction::Forward, |tree| {
        remove(tree, 0..150);
        remove(tree, 150..170);
        // One before what was read last, and the last one itself.
        assert_eq!(tree.insert(&5u64.to_be_bytes(), 5), Ok(None));
        assert_eq!(tree.insert(&140u64.to_be_bytes(), 14), Ok(None));
    });
    assert_eq!(seen.ok().and_then(|seen| seen.first().copied()), Some(170));
}

#[test]
fn a_deleted_neighbour_sends_the_scan_down_again() {
    for direction in [Direction::Forward, Direction::Backward] {
        assert!(after_one_leaf(direction, |tree| remove(tree, 150..300)).is_err());
    }
}

#[test]
fn a_split_of_the_left_neighbour_sends_a_backward_scan_down_again() {
    let split = |tree: &Tree<'_, Keeping>| {
        assert_eq!(tree.insert(&225u64.to_be_bytes(), 1), Ok(None));
    };
    assert!(after_one_leaf(Direction::Backward, split).is_err());
    // Forward the copied link still leads to the left half, and its link to the right one.
    assert_eq!(
        after_one_leaf(Direction::Forward, split)
            .ok()
            .and_then(|seen| seen.first().copied()),
        Some(150)
    );
}
