//! What scans do when the tree changes between two leaves, step by step.

use super::*;
use crate::memory::Memory;
use crate::permutation::LEAF_ENTRIES;
use crate::redistribute::noted::redistributions;
use crate::tree::TreeRoot;
use core::alloc::Layout;
use core::ptr::NonNull;

/// A memory that gives nothing back before the process ends: every epoch is pinned for ever.
pub(crate) struct Keeping;

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
) -> Result<Vec<u64>, DescendAgain> {
    let root = TreeRoot::new();
    // SAFETY: nothing is ever freed.
    let tree = unsafe { Tree::new(&root, &Keeping) };
    let entries = (0..45u64).map(|number| ((number * 10).to_be_bytes(), number));
    assert_eq!(tree.bulk_load(entries), Ok(45));
    let mut first = Batch::with_capacity(LEAF_ENTRIES);
    let mut frames = Vec::new();
    let layer = tree.first_layer().expect("the tree has a root");
    enter(
        layer,
        None,
        None,
        direction,
        &mut first.entries,
        &mut frames,
    )?;
    let frame = frames.last_mut().expect("the layer was entered");
    assert!(frame.read(&mut first.entries, direction)?.is_none());
    assert_eq!(first.len(), LEAF_ENTRIES);
    change(&tree);
    assert!(tree.verify().is_ok());
    assert!(frame.is_read());
    assert!(frame.advance(direction, 0)?, "there is another leaf");
    let mut second = Batch::with_capacity(100);
    assert!(frame.read(&mut second.entries, direction)?.is_none());
    Ok(second
        .iter()
        .map(|(key, _)| u64::from_be_bytes(key.try_into().expect("eight bytes")))
        .collect())
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
fn a_leaf_that_goes_behind_a_scan_sends_it_down_again() {
    // The second leaf covers what the first one covered, once that is empty.
    let went = after_one_leaf(Direction::Forward, |tree| {
        remove(tree, 0..150);
        remove(tree, 150..170);
        // One before what was read last, and the last one itself.
        assert_eq!(tree.insert(&5u64.to_be_bytes(), 5), Ok(None));
        assert_eq!(tree.insert(&140u64.to_be_bytes(), 14), Ok(None));
    });
    assert!(went.is_err());
}

#[test]
fn entries_redistributed_past_a_scan_send_it_down_again() {
    // The second of three leaves is full, and has room beside it where the scan has been.
    let redistribute = |tree: &Tree<'_, Keeping>| {
        let before = redistributions();
        assert_eq!(tree.insert(&225u64.to_be_bytes(), 1), Ok(None));
        assert_ne!(redistributions(), before);
    };
    let left = after_one_leaf(Direction::Forward, |tree| {
        remove(tree, 0..60);
        redistribute(tree);
    });
    assert!(left.is_err());
    let right = after_one_leaf(Direction::Backward, |tree| {
        remove(tree, 390..450);
        redistribute(tree);
    });
    assert!(right.is_err());
}

#[test]
fn entries_redistributed_ahead_of_a_scan_are_read_where_they_came() {
    let right = after_one_leaf(Direction::Forward, |tree| {
        remove(tree, 390..450);
        assert_eq!(tree.insert(&225u64.to_be_bytes(), 1), Ok(None));
    });
    let seen: Vec<u64> = (150..230)
        .step_by(10)
        .chain([225])
        .chain((230..270).step_by(10))
        .collect();
    let mut seen = seen;
    seen.sort();
    assert_eq!(right.ok(), Some(seen));
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

/// A leaf with an entry that leads to a layer between others; a scan that has come to the layer;
/// and then `change`.
fn at_a_layer(
    direction: Direction,
    change: impl FnOnce(&Tree<'_, Keeping>),
) -> Result<Vec<Vec<u8>>, DescendAgain> {
    at_a_layer_until(None, direction, change)
}

/// The same, of a scan that ends somewhere.
fn at_a_layer_until(
    until: Option<&[u8]>,
    direction: Direction,
    change: impl FnOnce(&Tree<'_, Keeping>),
) -> Result<Vec<Vec<u8>>, DescendAgain> {
    let root = TreeRoot::new();
    // SAFETY: nothing is ever freed.
    let tree = unsafe { Tree::new(&root, &Keeping) };
    for (key, value) in KEYS.into_iter().zip(0..) {
        assert_eq!(tree.insert(key, value), Ok(None));
    }
    // As many that share a slice make a layer, which stays when some go.
    let more = [b"layer of a", b"layer of b", b"layer of c"];
    more.iter()
        .for_each(|key| assert_eq!(tree.insert(*key, 9), Ok(None)));
    more.iter()
        .for_each(|key| assert_eq!(tree.remove(*key), Some(9)));
    let mut batch = Batch::with_capacity(100);
    let mut frames = Vec::new();
    let layer = tree.first_layer().expect("the tree has a root");
    enter(
        layer,
        None,
        until,
        direction,
        &mut batch.entries,
        &mut frames,
    )?;
    let frame = frames.last_mut().expect("the layer was entered");
    let below = frame.read(&mut batch.entries, direction)?;
    assert!(below.is_some());
    change(&tree);
    assert!(tree.verify().is_ok());
    assert!(frame.read(&mut batch.entries, direction)?.is_none());
    assert!(frame.is_read());
    assert_eq!(frame.is_last(), until.is_some());
    Ok(batch.iter().map(|(key, _)| key.to_vec()).collect())
}

const KEYS: [&[u8]; 6] = [
    b"a",
    b"b",
    b"layer of one",
    b"layer of two",
    b"x and a suffix",
    b"y",
];

/// Some of `KEYS`, by their numbers.
fn keys(numbers: &[usize]) -> Vec<Vec<u8>> {
    numbers.iter().map(|at| KEYS[*at].to_vec()).collect()
}

#[test]
fn a_leaf_is_read_on_behind_a_layer() {
    let seen = at_a_layer(Direction::Forward, |_| ()).ok();
    assert_eq!(seen, Some(keys(&[0, 1, 4, 5])));
    let seen = at_a_layer(Direction::Backward, |_| ()).ok();
    assert_eq!(seen, Some(keys(&[5, 4, 1, 0])));
}

#[test]
fn a_slot_used_again_behind_a_layer_is_not_read_as_what_it_was() {
    // Each removed key's slot goes to one on the side that the scan has left behind, or to one
    // ahead.
    for direction in [Direction::Forward, Direction::Backward] {
        let seen = at_a_layer(direction, |tree| {
            for (old, new) in [(KEYS[4], b"c"), (KEYS[0], b"z"), (KEYS[1], b"0")] {
                assert!(tree.remove(old).is_some());
                assert_eq!(tree.insert(new, 9), Ok(None));
            }
        });
        let expected: [&[u8]; 4] = match direction {
            Direction::Forward => [KEYS[0], KEYS[1], KEYS[5], b"z"],
            Direction::Backward => [KEYS[5], KEYS[4], b"c", b"0"],
        };
        assert_eq!(seen.ok(), Some(expected.map(<[u8]>::to_vec).to_vec()));
    }
}

#[test]
fn a_suffix_bag_replaced_behind_a_layer_is_read_on() {
    let seen = at_a_layer(Direction::Forward, |tree| {
        let long = [b"w and a suffix ".repeat(9), b"x!".repeat(40)];
        for key in &long {
            assert_eq!(tree.insert(key, 9), Ok(None));
        }
    });
    // What was put in under the version the scan goes on with is not read; what was there is.
    assert_eq!(seen.ok(), Some(keys(&[0, 1, 4, 5])));
}

#[test]
fn a_leaf_split_behind_a_layer_sends_the_scan_down_again() {
    for direction in [Direction::Forward, Direction::Backward] {
        let split = |tree: &Tree<'_, Keeping>| {
            for at in 0..LEAF_ENTRIES as u8 {
                assert_eq!(tree.insert(&[b'm', at], 1), Ok(None));
            }
        };
        assert!(at_a_layer(direction, split).is_err());
    }
}

#[test]
fn a_layer_that_goes_while_it_is_read_is_passed() {
    let seen = at_a_layer(Direction::Forward, |tree| {
        assert!(tree.remove(KEYS[2]).is_some());
        assert!(tree.remove(KEYS[3]).is_some());
    });
    assert_eq!(seen.ok(), Some(keys(&[0, 1, 4, 5])));
}

#[test]
fn no_entry_behind_the_end_is_read() {
    let read = |until: &[u8], direction| at_a_layer_until(Some(until), direction, |_| ()).ok();
    assert_eq!(read(b"x", Direction::Forward), Some(keys(&[0, 1])));
    assert_eq!(
        read(b"x and more", Direction::Forward),
        Some(keys(&[0, 1, 4]))
    );
    assert_eq!(read(b"y", Direction::Forward), Some(keys(&[0, 1, 4, 5])));
    assert_eq!(read(b"b", Direction::Backward), Some(keys(&[5, 4, 1])));
    assert_eq!(read(b"c", Direction::Backward), Some(keys(&[5, 4])));
}

#[test]
fn entries_are_not_counted_that_came_after_the_end_was_looked_for() {
    let put = |tree: &Tree<'_, Keeping>| {
        for key in [b"0", b"c", b"w", b"z"] {
            assert_eq!(tree.insert(key, 9), Ok(None));
        }
    };
    let seen = at_a_layer_until(Some(b"xx"), Direction::Forward, put);
    assert_eq!(seen.ok(), Some(keys(&[0, 1, 4])));
    let seen = at_a_layer_until(Some(b"aa"), Direction::Backward, put);
    assert_eq!(seen.ok(), Some(keys(&[5, 4, 1])));
}

#[test]
fn the_end_is_looked_for_again_when_the_leaf_has_changed() {
    // What stood at the end goes, on both sides others come.
    let change = |tree: &Tree<'_, Keeping>| {
        assert!(tree.remove(KEYS[4]).is_some());
        assert!(tree.remove(KEYS[0]).is_some());
        for key in [b"0", b"m", b"w", b"z"] {
            assert_eq!(tree.insert(key, 9), Ok(None));
        }
    };
    let end = b"x and a suffix";
    let seen = at_a_layer_until(Some(end), Direction::Forward, change);
    let expected: [&[u8]; 4] = [KEYS[0], KEYS[1], b"m", b"w"];
    assert_eq!(seen.ok(), Some(expected.map(<[u8]>::to_vec).to_vec()));
    let seen = at_a_layer_until(Some(KEYS[0]), Direction::Backward, change);
    assert_eq!(seen.ok(), Some(keys(&[5, 4, 1])));
}

#[test]
fn a_separator_says_that_the_leaf_is_the_last() {
    let root = TreeRoot::new();
    // SAFETY: nothing is ever freed.
    let tree = unsafe { Tree::new(&root, &Keeping) };
    let entries = (0..45u64).map(|number| ((number * 10).to_be_bytes(), number));
    assert_eq!(tree.bulk_load(entries), Ok(45));
    let layer = tree.first_layer().expect("the tree has a root");
    let is_last = |from: u64, until: u64, direction| {
        let (from, until) = (from.to_be_bytes(), until.to_be_bytes());
        let edge = Edge {
            rest: &from,
            included: true,
        };
        let mut batch = Batch::with_capacity(20);
        let mut frames = Vec::new();
        let entered = enter(
            layer,
            Some(edge),
            Some(&until),
            direction,
            &mut batch.entries,
            &mut frames,
        );
        assert!(entered.is_ok());
        frames.last().is_some_and(Frame::is_last)
    };
    // Between two leaves, in the next one, and behind all.
    assert!(is_last(140, 145, Direction::Forward));
    assert!(is_last(140, 149, Direction::Forward));
    assert!(!is_last(140, 150, Direction::Forward));
    assert!(!is_last(140, 155, Direction::Forward));
    assert!(!is_last(440, 445, Direction::Forward));
    assert!(is_last(150, 150, Direction::Backward));
    assert!(!is_last(150, 149, Direction::Backward));
    assert!(!is_last(150, 135, Direction::Backward));
    assert!(is_last(0, 0, Direction::Backward));
}

#[test]
fn layers_read_at_once_and_step_by_step_agree() {
    let root = TreeRoot::new();
    // SAFETY: nothing is ever freed.
    let tree = unsafe { Tree::new(&root, &Keeping) };
    // Layers of one entry to more than a leaf, with layers, suffixes and ends of keys in them.
    let mut all: Vec<Vec<u8>> = Vec::new();
    for layer in 0..40usize {
        for entry in 0..=layer / 2 {
            let mut key = format!("layer{layer:03}").into_bytes();
            key.extend(format!("{entry:08}").bytes().take(1 + entry % 8));
            key.push(entry as u8);
            if (layer + entry) % 3 == 0 {
                key.extend_from_slice(b" and a suffix");
            }
            all.push(key.clone());
            if layer % 7 == 0 {
                all.push([&key, &b" of another layer"[..]].concat());
            }
        }
    }
    all.sort();
    all.dedup();
    for (key, value) in all.iter().zip(0..) {
        assert_eq!(tree.insert(key, value), Ok(None));
    }
    for direction in [Direction::Forward, Direction::Backward] {
        let expected: Vec<&Vec<u8>> = match direction {
            Direction::Forward => all.iter().collect(),
            Direction::Backward => all.iter().rev().collect(),
        };
        // Batches of one entry have no room for whole layers, those of all have room for each.
        for capacity in [1, 2, 3, 7, 1 + all.len()] {
            let mut batch = Batch::with_capacity(capacity);
            let mut seen: Vec<Vec<u8>> = Vec::new();
            loop {
                let last = seen.last().cloned();
                let bound = match (&last, direction) {
                    (Some(key), _) => Bound::Excluded(key),
                    (None, Direction::Forward) => Bound::Start,
                    (None, Direction::Backward) => Bound::End,
                };
                tree.scan_batch(bound, direction, &mut batch);
                seen.extend(batch.iter().map(|(key, _)| key.to_vec()));
                if batch.is_exhausted() {
                    break;
                }
                assert_eq!(batch.len(), capacity);
            }
            assert!(seen.iter().eq(expected.iter().copied()), "{capacity}");
        }
    }
}
