//! Windows that hold the slices of narrow leaves, and narrow leaves beside wide ones.
use super::*;
use crate::node::{NARROW_LAYOUT, NODE_LAYOUT, Node, Place};
use crate::permutation::Permutation;
use crate::slice::LONGER;
use crate::version::{LATCHED, is_inner};
use core::cmp;
use proptest::prelude::*;
use std::alloc::Layout;

/// Slices that are alike in some bits, so that some sets of them have a window.
fn slices() -> impl Strategy<Value = Vec<u64>> {
    let shift = prop::sample::select(vec![0, 3, 8, 16, 29, 32, 40]);
    let bits = prop::sample::select(vec![1, 4, 16, 31, 32, 33, 63]);
    let halves = prop::sample::select(vec![0, 1, 0x8000, 0xFFFF]);
    (any::<u64>(), shift, bits, halves).prop_flat_map(|(shared, shift, bits, halves)| {
        let mask = match halves {
            0 => (u64::MAX >> (64 - bits)) << shift,
            of_each => of_each << 32 | of_each,
        };
        let slice = any::<u64>().prop_map(move |slice| shared & !mask | slice & mask);
        prop::collection::vec(slice, 1..=LEAF_ENTRIES)
    })
}

/// The window of some slices.
fn window_over(slices: &[u64]) -> Option<Window> {
    let differing = slices.iter().map(|slice| slice ^ slices[0]);
    Window::by(slices[0], differing.fold(0, |all, bits| all | bits))
}

fn leaf(window: Option<Window>) -> (&'static Node, NonNull<u8>, Layout) {
    let layout = if window.is_some() {
        NARROW_LAYOUT
    } else {
        NODE_LAYOUT
    };
    // SAFETY: of more than zero bytes.
    let block = NonNull::new(unsafe { std::alloc::alloc(layout) }).expect("there is memory");
    // SAFETY: the block is new; the tests free it when they are done.
    let node = unsafe { Node::create(block, window, LATCHED) };
    assert_eq!(node.layout(), layout);
    (node, block, layout)
}

fn place(leaf: &Node, slice: u64, class: u64) -> (usize, Option<usize>) {
    match leaf.search(leaf.permutation(), slice, class, |_| cmp::Ordering::Equal) {
        Place::At(position, slot) => (position, Some(slot)),
        Place::Before(position, _) => (position, None),
    }
}

proptest! {
    /// What comes of a full leaf and one slice more is the same whatever the leaf's form.
    #[test]
    fn leaves_of_both_forms_tell_the_same_window(slices in slices(), others in prop::collection::vec(any::<u64>(), 4)) {
        let Some(window) = window_over(&slices) else {
            return Ok(());
        };
        let leaves = [Some(window), None].map(leaf);
        let all: Vec<u64> = slices.iter().copied().cycle().take(LEAF_ENTRIES).collect();
        for (leaf, ..) in leaves {
            for (slot, slice) in all.iter().enumerate() {
                leaf.set_key(slot, *slice);
            }
        }
        for coming in slices.iter().copied().chain(others) {
            let wanted = window_over(&[&all[..], &[coming]].concat());
            for (leaf, ..) in leaves {
                prop_assert_eq!(leaf.window_with(coming), wanted);
            }
        }
        for (_, block, layout) in leaves {
            // SAFETY: allocated above with this layout, and not used any more.
            unsafe { std::alloc::dealloc(block.as_ptr(), layout) };
        }
    }

    #[test]
    fn a_window_tells_slices_from_their_parts_and_keeps_their_order(
        slices in slices(),
        others in prop::collection::vec(any::<u64>(), 8),
    ) {
        let Some(window) = window_over(&slices) else {
            let varying = slices.iter().fold(0, |varying, slice| varying | (slice ^ slices[0]));
            prop_assert!(varying >> 32 != 0, "the lower half would do");
            prop_assert!(varying << 32 != 0, "the upper half would do");
            prop_assert!(varying & 0xFFFF_0000_FFFF_0000 != 0, "the lower parts of both would do");
            return Ok(());
        };
        let near = slices.iter().flat_map(|slice| [slice.wrapping_sub(1), slice.wrapping_add(1), slice ^ 1 << 63]);
        for slice in slices.iter().copied() {
            prop_assert!(window.holds(slice));
            prop_assert_eq!(window.slice(window.part(slice)), slice);
        }
        for other in others.iter().copied().chain(near) {
            let greatest = if window.holds(other) { Some(window.part(other)) } else { window.greatest_before(other) };
            prop_assert!(greatest.is_none_or(|part| window.slice(part) <= other));
            let next = greatest.map_or(Some(0), |part| part.checked_add(1));
            prop_assert!(next.is_none_or(|part| window.slice(part) > other));
            prop_assert_eq!(window.holds(other), greatest.is_some_and(|part| window.slice(part) == other));
        }
    }

    #[test]
    fn a_narrow_leaf_answers_as_a_wide_one_of_the_same_entries(
        mut slices in slices(),
        values in prop::collection::vec(0..=MAX_VALUE, LEAF_ENTRIES),
        others in prop::collection::vec(any::<u64>(), 8),
        gone in 0..LEAF_ENTRIES,
    ) {
        slices.sort_unstable();
        slices.dedup();
        let Some(window) = window_over(&slices) else {
            return Ok(());
        };
        let leaves = [Some(window), None].map(leaf);
        let [narrow, wide] = [leaves[0].0, leaves[1].0];
        for leaf in [narrow, wide] {
            for (slot, slice) in slices.iter().enumerate() {
                let kind = if slot % 3 == 2 { crate::slice::SUFFIX } else { 8 };
                leaf.fill(slot, *slice, kind, values[slot]);
            }
            let mut permutation = Permutation::first(slices.len());
            if gone < slices.len() {
                permutation = permutation.remove(gone);
            }
            leaf.set_permutation(permutation);
        }
        let near = slices.iter().flat_map(|slice| [*slice, slice.wrapping_sub(1), slice.wrapping_add(1)]);
        for other in others.iter().copied().chain(near) {
            for class in [8, LONGER] {
                prop_assert_eq!(place(narrow, other, class), place(wide, other, class));
            }
            prop_assert_eq!(
                narrow.find(narrow.permutation(), other, 8),
                wide.find(wide.permutation(), other, 8)
            );
            let longer = |leaf: &Node| leaf.longer(leaf.permutation(), leaf.kinds(), other).collect::<Vec<_>>();
            prop_assert_eq!(longer(narrow), longer(wide));
        }
        for slot in 0..slices.len() {
            prop_assert_eq!((narrow.key(slot), narrow.value(slot)), (slices[slot], values[slot]));
        }
        // And taken over by a wide one, it is that.
        let (taker, block, layout) = leaf(None);
        taker.version.make_dirty();
        taker.take_content(narrow);
        prop_assert!(!is_inner(taker.version.owned()) && !taker.version.is_narrow());
        prop_assert_eq!(taker.permutation(), narrow.permutation());
        for slot in 0..slices.len() {
            prop_assert_eq!((taker.key(slot), taker.value(slot)), (slices[slot], values[slot]));
        }
        for (_, block, layout) in leaves.into_iter().chain([(taker, block, layout)]) {
            // SAFETY: allocated above with this layout, and not used any more.
            unsafe { std::alloc::dealloc(block.as_ptr(), layout) };
        }
    }
}

#[test]
fn windows_lie_where_keys_differ() {
    let at = |slices: &[u64]| window_over(slices).map(|window| window.shifts);
    // Numbers of eight bytes, also with gaps, and only one.
    assert_eq!(at(&[5 << 40 | 1, 5 << 40 | 0xFFFF_FFFF]), Some([0, 16]));
    assert_eq!(at(&[256, 512]), Some([0, 16]));
    assert_eq!(at(&[7]), Some([0, 16]));
    // Numbers of four.
    assert_eq!(at(&[1 << 32, 2 << 32, 3 << 60]), Some([32, 48]));
    // Text that begins alike.
    assert_eq!(
        at(&[0x6162_6300_0000_0000, 0x6162_637A_7A7A_0000]),
        Some([8, 24])
    );
    assert_eq!(at(&[0, u64::MAX]), None);
    // Lines of orders.
    assert_eq!(at(&[1 << 32, 1 << 32 | 1, 2 << 32]), Some([0, 32]));
    assert_eq!(at(&[1 << 32, 1 << 32 | 1 << 16 | 1, 2 << 32]), None);
}
