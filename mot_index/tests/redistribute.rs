//! Full leaves that redistribute to a neighbour: what moves, what does not, and what memory it
//! takes.

mod common;

use common::TestMemory;
use mot_index::{Cursor, OutOfMemory, Tree, TreeRoot};
use std::collections::BTreeSet;

/// Entries of a leaf.
const LEAF: u64 = 15;

fn number(number: u64) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

fn suffixed(at: u64) -> Vec<u8> {
    [&number(at)[..], &b"-".repeat(1 + at as usize % 50)].concat()
}

/// Whether the tree holds these keys and no others, in order, and nothing else is in memory.
fn check(tree: &Tree<'_, TestMemory>, keys: &BTreeSet<Vec<u8>>) -> u64 {
    tree.memory().quiesce();
    let stats = tree.verify().expect("the tree is sound");
    assert_eq!(stats.entries, keys.len() as u64);
    assert_eq!(stats.bytes_used as usize, tree.memory().bytes_live());
    let mut cursor = Cursor::new();
    for key in keys {
        assert_eq!(cursor.next(tree).map(|(found, _)| found), Some(&key[..]));
        assert!(tree.get(key).is_some());
    }
    assert_eq!(cursor.next(tree), None);
    stats.leaves
}

/// Three leaves of the numbers 0, 10, … 440, full but for `room` entries at the outer edge of the
/// left or the right one.
fn three_leaves(
    tree: &Tree<'_, TestMemory>,
    key: fn(u64) -> Vec<u8>,
    right: bool,
    room: u64,
) -> BTreeSet<Vec<u8>> {
    let mut keys: BTreeSet<Vec<u8>> = (0..3 * LEAF).map(|at| key(at * 10)).collect();
    tree.bulk_load(keys.iter().map(|key| (key, 1)))
        .expect("loads");
    for at in 0..room {
        let going = key(if right { 440 - at * 10 } else { at * 10 });
        assert_eq!(tree.remove(&going), Some(1));
        keys.remove(&going);
    }
    assert_eq!(check(tree, &keys), 3);
    keys
}

/// Without suffixes, a neighbour with room enough makes a split, and the memory for it, needless.
#[test]
fn a_full_leaf_redistributes_to_a_neighbour_on_either_side() {
    for (right, room) in [true, false]
        .into_iter()
        .flat_map(|right| (0..15).map(move |room| (right, room)))
    {
        let (root, memory) = (TreeRoot::new(), TestMemory::new());
        // SAFETY: one thread; memory is reclaimed only by `quiesce`, between calls.
        let tree = unsafe { Tree::new(&root, &memory) };
        let mut keys = three_leaves(&tree, number, right, room);
        memory.fail_between(0, u64::MAX);
        let mut came = 0;
        // In the middle of the leaf in the middle, in no order.
        for at in [225, 205, 235, 215, 245, 195, 255, 185, 265, 175, 275, 165] {
            match tree.insert(&number(at), 1) {
                Ok(old) => {
                    assert_eq!(old, None);
                    keys.insert(number(at));
                    came += 1;
                }
                Err(OutOfMemory) => assert_eq!(tree.get(&number(at)), None),
            }
            assert_eq!(check(&tree, &keys), 3);
        }
        // Some of the room is not worth it.
        assert!(came <= room.min(12), "{came} in {room}");
        assert!(came + 3 >= room.min(12), "only {came} in {room}");
        memory.fail_between(0, 0);
        for at in (1..450).step_by(7) {
            let key = [&number(at)[..], b"x"].concat();
            assert_eq!(tree.insert(&key, 1), Ok(None));
            keys.insert(key);
            check(&tree, &keys);
        }
        // SAFETY: nobody else uses the tree.
        unsafe { tree.clear() };
    }
}

/// Suffixes go along, to the room there is in the taker's bag or to a new one; if memory for that
/// is full, nothing has happened.
#[test]
fn suffixes_go_along_or_nothing_does() {
    let (mut failed, mut came) = (0, 0);
    for (right, room) in [true, false]
        .into_iter()
        .flat_map(|right| (3..15).map(move |room| (right, room)))
    {
        for fails in 0..6 {
            let (root, memory) = (TreeRoot::new(), TestMemory::new());
            // SAFETY: one thread; memory is reclaimed only by `quiesce`, between calls.
            let tree = unsafe { Tree::new(&root, &memory) };
            let mut keys = three_leaves(&tree, suffixed, right, room);
            for (turn, at) in [225, 205, 235, 215, 245, 195, 255, 185]
                .into_iter()
                .enumerate()
            {
                let from = memory.allocations() + fails;
                // One of the allocations fails, or all from it on.
                let until = if turn % 2 == 0 { from + 1 } else { u64::MAX };
                memory.fail_between(from, until);
                match tree.insert(&suffixed(at), 1) {
                    Ok(old) => {
                        assert_eq!(old, None);
                        keys.insert(suffixed(at));
                        came += 1;
                    }
                    Err(OutOfMemory) => failed += 1,
                }
                memory.fail_between(0, 0);
                check(&tree, &keys);
            }
            for key in &keys {
                assert_eq!(tree.remove(key), Some(1));
                memory.quiesce();
            }
            assert!(root.is_empty());
            assert_eq!(memory.bytes_live(), 0);
        }
    }
    assert!(failed > 50 && came > 500, "{failed} failed, {came} came");
}

/// Inner nodes know slices only, so a slice's entries go all or not at all.
#[test]
fn entries_of_a_slice_stay_together() {
    // Slices of three entries each, one with a suffix, in three leaves of five slices.
    let ends: [&[u8]; 3] = [b"", b"\0", b"\0\0 and more"];
    let key = |slice: usize, end: usize| [format!("{slice:06}").as_bytes(), ends[end]].concat();
    for right in [true, false] {
        for room in 0..15usize {
            let (root, memory) = (TreeRoot::new(), TestMemory::new());
            // SAFETY: one thread; memory is reclaimed only by `quiesce`, between calls.
            let tree = unsafe { Tree::new(&root, &memory) };
            let mut keys: BTreeSet<Vec<u8>> = (0..45).map(|at| key(at / 3 * 10, at % 3)).collect();
            tree.bulk_load(keys.iter().map(|key| (key, 1)))
                .expect("loads");
            let edge: Vec<Vec<u8>> = if right {
                keys.iter().rev().take(room).cloned().collect()
            } else {
                keys.iter().take(room).cloned().collect()
            };
            for going in edge {
                assert_eq!(tree.remove(&going), Some(1));
                keys.remove(&going);
            }
            for at in [75, 72, 73, 85, 65, 77, 55, 95] {
                let coming = key(at, at % 3);
                assert_eq!(tree.insert(&coming, 1), Ok(None));
                keys.insert(coming);
                check(&tree, &keys);
            }
            // SAFETY: nobody else uses the tree.
            unsafe { tree.clear() };
        }
    }
}
