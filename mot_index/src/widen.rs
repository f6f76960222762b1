//! Replacing a narrow leaf with a wide one, when a key comes that the narrow leaf does not hold.
//!
//! The writer owns the narrow leaf. It makes a wide leaf of the same entries in the same slots. It
//! latches the left neighbour and the parent, as for an unlinking (`unlink.rs`) and in the same
//! order. Then it moves the old leaf's links and its place in the parent to the new leaf. To all
//! others the old leaf is one that was unlinked. A reader, a waiting writer or an insert position
//! that stands on it sees that it is deleted. It descends again, to a leaf that covers just what
//! the old one covered.
//!
//! The new leaf is latched from before it can be reached, and this writer owns it in the place of
//! the old one. So nothing changes in it, and no neighbour moves anything to it or from it, before
//! the old one is deleted. A reader that reads the old leaf until then, beside the new one, reads
//! the truth.
//!
//! The bag moves along: the new leaf's cell names it before the old leaf is retired, without it.
//!
//! Contract: nothing fails after the allocation. The leaf is no layer's root, as no narrow one is.

use crate::memory::{Memory, OutOfMemory};
use crate::node::Node;
use crate::slice::cut;
use crate::tree::Tree;
use crate::update::Site;
use crate::version::{CHANGE, DIRTY, LATCHED};

impl<'a, M: Memory> Tree<'a, M> {
    /// Replaces an owned narrow leaf, which covers the key, with a wide one. Returns that, latched.
    /// On `Err` nothing was changed, and the latch has been released.
    #[cold]
    #[inline(never)]
    pub(crate) fn widen(&self, key: &[u8], site: Site<'a>) -> Result<Site<'a>, OutOfMemory> {
        let leaf = site.leaf;
        debug_assert!(leaf.version.is_narrow() && !leaf.is(site.root));
        let wide = match self.create_node(LATCHED | DIRTY) {
            Ok(wide) => wide,
            Err(full) => {
                // The leaf may be the empty half of a leaf that was split for the key.
                self.release(key, site);
                return Err(full);
            }
        };
        let slice = cut(&key[site.offset..]).0;
        let previous = self.latch_previous(leaf);
        let parent = self.latch_parent(site.root, slice, leaf);
        // After the latch of the left neighbour, to which the link to this leaf belongs.
        wide.take_content(leaf);
        wide.version.make_clean(0);
        parent.version.make_dirty();
        // SAFETY: `leaf`, owned by us, keeps its right neighbour from being unlinked.
        if let Some(next) = unsafe { Node::at(leaf.next()) } {
            next.set_previous(wide.address());
        }
        if let Some(previous) = previous {
            previous.set_next(wide.address());
            previous.version.unlatch(0);
        }
        parent.set_child(parent.route(slice), wide.address());
        leaf.version.unlatch_deleted();
        parent.version.unlatch(CHANGE);
        self.retire_node(leaf);
        noted::widen();
        Ok(Site { leaf: wide, ..site })
    }
}

/// How often leaves were widened, for tests that must reach this code.
#[cfg(any(test, feature = "model"))]
pub(crate) mod noted {
    use core::cell::Cell;

    thread_local! {
        static WIDENED: Cell<u64> = const { Cell::new(0) };
    }

    pub(super) fn widen() {
        WIDENED.with(|widened| widened.set(widened.get() + 1));
    }

    /// How often this thread replaced narrow leaves with wide ones.
    pub fn widened() -> u64 {
        WIDENED.with(Cell::get)
    }
}

/// Nothing is noted but in tests.
#[cfg(not(any(test, feature = "model")))]
mod noted {
    pub(super) fn widen() {}
}

#[cfg(test)]
#[path = "widen_tests.rs"]
mod tests;
