//! Entering keys into several trees: all descents are made first, side by side, and their ends are
//! kept.
//!
//! A row has an entry in each of its table's indexes. One after the other, each descent would wait
//! for its misses alone. So all descents proceed in turns (`many.rs`), which overlaps the misses.
//! An update then begins at the [`InsertPosition`] where the key's descent ended, and needs no
//! second descent.
//!
//! An insert position is what a writer has before it latches: a leaf, and the version under which
//! the leaf covered the key. Whatever happened since, the latch's owner learns from the version
//! whether the leaf still covers the key. A writer that descends at once does exactly the same
//! (`update.rs`). If the leaf does not cover the key any more, the writer descends from the root.
//! Only the time between the two steps is longer. An insert position is an address, so it is valid
//! while the epoch stays pinned, and no longer.

use crate::bag::Bag;
use crate::many::{Descent, run_descents};
use crate::memory::{Memory, OutOfMemory};
use crate::node::Node;
use crate::slice::{LONGER, SLICE_BYTES, cut};
use crate::tree::Tree;
use crate::update::{Change, Site, assert_length, latch_covering};
use crate::version::Seen;

/// Where a key's entry is, or would go, in a tree.
#[derive(Clone, Copy)]
pub struct InsertPosition<'a> {
    leaf: &'a Node,
    seen: Seen,
    root: &'a Node,
    offset: usize,
}

impl<'a, M: Memory> Tree<'a, M> {
    /// Finds the insert positions of keys in trees, with overlapping misses and in no order.
    /// `found` gets a pair's number and the insert position. An empty tree has none.
    pub fn find_insert_positions<'k>(
        pairs: impl Iterator<Item = (Tree<'a, M>, &'k [u8])>,
        mut found: impl FnMut(usize, InsertPosition<'a>),
    ) {
        let descents = pairs.enumerate().filter_map(|(number, (tree, key))| {
            let root = tree.first_layer()?;
            Some(Descent::new(number, key, tree.root, root))
        });
        run_descents(descents, |descent, end| {
            let Some(end) = end else {
                return;
            };
            if cut(end.rest).1 == LONGER {
                Bag::prefetch_to_put(end.leaf.bag(), end.rest.len() - SLICE_BYTES);
            }
            let position = InsertPosition {
                leaf: end.leaf,
                seen: end.seen,
                root: end.root,
                offset: descent.key.len() - end.rest.len(),
            };
            found(descent.number, position);
        });
    }

    /// Like [`Tree::update`], but begins at the key's insert position. If the key now belongs
    /// elsewhere, the update begins at the root.
    ///
    /// # Panics
    /// As [`Tree::update`].
    ///
    /// # Safety
    /// The insert position was found for this key in this tree, and the calling thread has been
    /// pinned since.
    pub unsafe fn update_at<R>(
        &self,
        position: InsertPosition<'a>,
        key: &[u8],
        decide: impl FnMut(Option<u64>) -> (Change, R),
    ) -> Result<R, OutOfMemory> {
        assert_length(key);
        let InsertPosition {
            leaf,
            seen,
            root,
            offset,
        } = position;
        if let Some(place) = latch_covering(leaf, seen, &key[offset..]) {
            return self.decide_at(key, Site { leaf, root, offset }, place, decide);
        }
        self.update(key, decide)
    }
}
