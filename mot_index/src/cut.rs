//! Where a full leaf is cut in two.
//!
//! The cut follows how the leaf is being filled. The leaf remembers the slot filled last. A run
//! continues if an insert is right after that slot (or right before it) and far from the key
//! beyond. Then the leaf is cut there: the complete part stays full, and the run continues at the
//! edge of a leaf. Otherwise the leaf, unless a neighbour takes some entries (`redistribute.rs`),
//! is halved. Entries that share a slice always stay together, for inner nodes know slices only.

use crate::node::Node;
use crate::permutation::LEAF_ENTRIES;
use crate::slice::{SLICE_BYTES, SUFFIXES_OF_A_SLICE};

/// In a run, how many times farther than to the key before it a key is to the next foreign one.
const RUN_GAP: u64 = 8;

// A slice has entries of every length that ends in it, and suffixes: fewer than a leaf, with one to
// come.
const _: () = assert!(SLICE_BYTES + 1 + SUFFIXES_OF_A_SLICE < LEAF_ENTRIES);

/// Where a full leaf is cut.
pub(crate) struct Cut {
    /// How many entries stay.
    pub(crate) left: usize,
    /// The least slice right of the cut.
    pub(crate) separator: u64,
    pub(crate) run: Run,
}

/// How a leaf is being filled, as far as it knows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Run {
    /// In no order.
    None,
    /// Each key next to the one before it, ascending.
    Up,
    /// The same, descending.
    Down,
}

/// Chooses where to cut a full leaf into which an absent key of `slice` goes at `position`.
pub(crate) fn choose_cut(leaf: &Node, position: usize, slice: u64) -> Cut {
    let permutation = leaf.permutation();
    let key = |position: usize| leaf.key(permutation.slot(position));
    let last = leaf.kinds().last();
    let behind_last = position > 0 && permutation.slot(position - 1) == last;
    let before_last = position < LEAF_ENTRIES && permutation.slot(position) == last;
    let run = |left, separator, run| Cut {
        left,
        separator,
        run,
    };
    if position == LEAF_ENTRIES {
        // At the right edge of a run, or of the layer: all entries stay, the key starts a leaf.
        if (behind_last || leaf.next() == 0) && key(LEAF_ENTRIES - 1) < slice {
            return run(LEAF_ENTRIES, slice, Run::Up);
        }
    } else if position == 0 {
        if before_last && slice < key(0) {
            return run(0, key(0), Run::Down);
        }
    } else {
        let (below, above) = (key(position - 1), key(position));
        // Random keys, too, fall next to the last one now and then. In a run they lie much closer.
        let closer = |to: u64, than: u64| slice.abs_diff(to) < slice.abs_diff(than) / RUN_GAP;
        if behind_last && closer(below, above) && below < above {
            return run(position, above, Run::Up);
        } else if before_last && closer(above, below) && below < slice {
            return run(position, slice, Run::Down);
        }
    }
    // Both halves get eight with the new entry, if slices allow; there are at least two slices
    // (below).
    let middle: usize = if position < LEAF_ENTRIES.div_ceil(2) {
        7
    } else {
        8
    };
    let is_boundary = |left: usize| key(left - 1) < key(left);
    let left = (0..LEAF_ENTRIES)
        .flat_map(|distance| [middle.wrapping_sub(distance), middle + distance])
        .find(|left| (1..LEAF_ENTRIES).contains(left) && is_boundary(*left))
        .expect("a slice does not fill a leaf");
    Cut {
        left,
        separator: key(left),
        run: Run::None,
    }
}
