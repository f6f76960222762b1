//! Putting a wide leaf in the place of a narrow one that does not hold a key that comes.
//!
//! The writer owns the narrow leaf. It makes a wide one of the same entries in the same slots,
//! latches the left neighbour and the parent, as for an unlinking (`unlink.rs`) and in the same
//! order, and gives the new leaf the old one's links and its place in the parent. To all others the
//! old leaf is one that was unlinked: whoever stands on it, reader, waiting writer or insert
//! position, sees that it is deleted and goes down again, to a leaf that covers just what this one
//! did. The new leaf is latched from before it can be reached, and is the writer's in the place of
//! the old one. So nothing changes in it, and no neighbour moves anything to it or from it, before
//! the old one is deleted: who reads that until then, beside the new one, reads what is true.
//!
//! The bag moves along: the new leaf's cell names it before the old leaf is retired, without it.
//!
//! Contract: nothing fails behind the allocation. The leaf is no layer's root, as no narrow one is.

use crate::memory::{Memory, OutOfMemory};
use crate::node::Node;
use crate::slice::cut;
use crate::tree::Tree;
use crate::update::Site;
use crate::version::{CHANGE, DIRTY, LATCHED};

impl<'a, M: Memory> Tree<'a, M> {
    /// Puts a wide leaf in the place of an owned narrow one, which covers the key; returns it,
    /// latched. On `Err` nothing was changed, and the latch has been given back.
    #[cold]
    #[inline(never)]
    pub(crate) fn widen(&self, key: &[u8], site: Site<'a>) -> Result<Site<'a>, OutOfMemory> {
        let leaf = site.leaf;
        debug_assert!(leaf.version.is_narrow() && !leaf.is(site.root));
        let wide = match self.create_node(LATCHED | DIRTY) {
            Ok(wide) => wide,
            Err(full) => {
                // It may be the empty half of one that was split for the key.
                self.release(key, site);
                return Err(full);
            }
        };
        let slice = cut(&key[site.offset..]).0;
        let previous = self.latch_previous(leaf);
        let parent = self.latch_parent(site.root, slice, leaf);
        // Behind the latch of the left neighbour, whose is the link to it.
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

/// How often leaves were widened, for tests that want to have come here.
#[cfg(any(test, feature = "model"))]
pub(crate) mod noted {
    use core::cell::Cell;

    thread_local! {
        static WIDENED: Cell<u64> = const { Cell::new(0) };
    }

    pub(super) fn widen() {
        WIDENED.with(|widened| widened.set(widened.get() + 1));
    }

    /// How often wide leaves took the place of narrow ones, by this thread.
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
