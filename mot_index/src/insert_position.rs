//! Entering keys into several trees: the ways down are gone side by side first, and remembered.
//!
//! A row has an entry in each of its table's indexes. One after the other, each descent would wait
//! for its misses alone. So all ways are led to their leaves together (`many.rs`), which overlaps
//! the misses, and an update then begins at the [`InsertPosition`] where its way ended: no second
//! descent.
//!
//! An insert position is what a writer has before it latches: a leaf, and the version under which
//! the leaf covered the key. Whatever happened since, the latch's owner sees by the version whether
//! it still does, exactly as a writer does that comes down at once (`update.rs`), and goes down
//! from the root if not. Only the time between the two is longer. An insert position is an address,
//! so it is good for as long as the epoch stays pinned, and no longer.

use crate::bag::Bag;
use crate::many::{Way, lead};
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
    /// Finds the insert positions of keys in trees, their misses overlapping, in no order: `found`
    /// is given a pair's number and the insert position. An empty tree has none.
    pub fn find_insert_positions<'k>(
        pairs: impl Iterator<Item = (Tree<'a, M>, &'k [u8])>,
        mut found: impl FnMut(usize, InsertPosition<'a>),
    ) {
        let ways = pairs.enumerate().filter_map(|(number, (tree, key))| {
            let root = tree.first_layer()?;
            Some(Way::new(number, key, tree.root, root))
        });
        lead(ways, |way, end| {
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
                offset: way.key.len() - end.rest.len(),
            };
            found(way.number, position);
        });
    }

    /// As [`Tree::update`], from a key's insert position on; from the root, if the key belongs
    /// elsewhere by now.
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
