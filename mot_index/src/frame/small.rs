//! Reading a layer at once if it is one leaf with nothing below, as most layers of long keys are.
//!
//! A root that is a leaf is its whole layer: other leaves have an inner node above them. So the
//! layer is what the leaf held while its version stood. That is what a frame would have read,
//! without the cost of a frame.

use super::{Frame, Reading};
use crate::direction::Direction;
use crate::entries::Entries;
use crate::node::Node;
use crate::sync::is_broken;
use crate::version::{is_deleted, is_inner};

impl<'a> Frame<'a> {
    /// Reads the layer that the last entry read leads to, if it is one leaf with nothing below. The
    /// batch must have room for all of it, and the scan must not end in it. Otherwise, or if the
    /// layer changes meanwhile, nothing is read and the result is `false`.
    #[inline]
    pub(crate) fn read_small_layer(
        &self,
        layer: &'a Node,
        entries: &mut Entries,
        direction: Direction,
    ) -> bool {
        let seen = layer.version.stable();
        if is_inner(seen) || is_deleted(seen) || self.end_below().is_some() {
            return false;
        }
        let permutation = layer.permutation();
        let count = permutation.count();
        if count > entries.room() || layer.kinds().may_have_layers() {
            return false;
        }
        let reading = Reading {
            leaf: layer,
            seen,
            permutation,
        };
        let mark = entries.mark();
        entries.push_slice(self.last_slice());
        let reached = reading.put_into(entries, 0..count, direction);
        entries.pop_slice();
        let is_read = reached.is_some_and(|put| put.read == count && put.layer == 0)
            && (layer.is_still(seen) || is_broken("index: validating a small layer"));
        if !is_read {
            entries.go_back(mark);
        }
        is_read
    }
}
