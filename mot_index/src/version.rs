//! The version word of a node: its latch, its state and what readers validate against.
//!
//! ```text
//! bit  0      LATCHED  a writer owns the node
//! bit  1      DIRTY    the owner is rearranging it: readers wait
//! bit  2      DELETED  unlinked for good: whoever meets it starts again
//! bit  3      INNER    the node is an inner node, else a leaf
//! bit  4      NARROW   the node is, for as long as it lives, a narrow leaf (`node/narrow.rs`)
//! bits 8..36  changes  counts rearrangements that kept the node's key range
//! bits 36..64 splits   counts rearrangements after which a key may belong elsewhere
//! ```
//!
//! Readers use it as a sequence lock: they take a clean version, read, and validate. They trust
//! what they read only if the version (except for the latch bit) is still the same. Contract: only
//! the owner of the latch stores to the word. No thread waits for a latch or runs foreign code
//! while it owns a dirty node, so waiting for a clean version always ends.
//!
//! Not every change moves the counters. One store of the permutation publishes an insert into a
//! free slot, and one store publishes a wide leaf's value. Neither can mislead a reader that holds
//! the version, because every slot that is free now was freed under an earlier version. A narrow
//! leaf's value is two stores, and counts a change.

use crate::sync::{AtomicU64, Ordering, Wait, fence, is_broken, load_constant};

pub(crate) const LATCHED: u64 = 1;
pub(crate) const DIRTY: u64 = 1 << 1;
pub(crate) const DELETED: u64 = 1 << 2;
pub(crate) const INNER: u64 = 1 << 3;
pub(crate) const NARROW: u64 = 1 << 4;
/// Added to count a change that kept the node's key range. An overflow of the 28 bits carries into
/// the split counter, where it costs a reader a needless restart.
pub(crate) const CHANGE: u64 = 1 << 8;
/// Added to count a change after which a key of the node may have moved elsewhere.
pub(crate) const SPLIT: u64 = 1 << 36;
const SPLITS: u64 = !(SPLIT - 1);
/// What a poisoning allocator leaves behind. A version of this value means a read of freed memory.
#[cfg(debug_assertions)]
const POISON: u64 = 0xDDDD_DDDD_DDDD_DDDD;

/// A clean version as a reader saw it: without the latch bit, and not dirty.
pub(crate) type Seen = u64;

pub(crate) fn is_inner(seen: Seen) -> bool {
    seen & INNER != 0
}

pub(crate) fn is_deleted(seen: Seen) -> bool {
    seen & DELETED != 0
}

/// Whether a node whose version changed from one to the other still covers the same keys, in the
/// same role.
pub(crate) fn same_range(before: Seen, after: Seen) -> bool {
    (before ^ after) & (SPLITS | DELETED | INNER) == 0
}

#[repr(transparent)]
pub(crate) struct Version(AtomicU64);

impl Version {
    /// The word of a node that no other thread has seen: `flags` of this module.
    pub(crate) fn new(flags: u64) -> Self {
        Version(AtomicU64::new(flags))
    }

    /// Whether the node is a narrow leaf.
    #[inline(always)]
    pub(crate) fn is_narrow(&self) -> bool {
        load_constant(&self.0) & NARROW != 0
    }

    /// Waits until the node is clean and returns its version.
    #[inline]
    pub(crate) fn stable(&self) -> Seen {
        let word = self.0.load(Ordering::Acquire);
        if word & DIRTY == 0 {
            return word & !LATCHED;
        }
        self.wait_clean()
    }

    #[cold]
    fn wait_clean(&self) -> Seen {
        let mut wait = Wait::new();
        loop {
            let word = self.0.load(Ordering::Acquire);
            #[cfg(debug_assertions)]
            assert_ne!(word, POISON, "a freed node was read");
            if word & DIRTY == 0 {
                return word & !LATCHED;
            }
            wait.once();
        }
    }

    /// Whether everything read since `seen` was taken belongs to one state of the node.
    #[inline]
    pub(crate) fn is_still(&self, seen: Seen) -> bool {
        fence(Ordering::Acquire);
        self.0.load(Ordering::Relaxed) & !LATCHED == seen
    }

    /// Takes the latch, waiting for its owner.
    #[inline]
    pub(crate) fn latch(&self) {
        if !self.try_latch() {
            self.wait_latch();
        }
    }

    #[cold]
    fn wait_latch(&self) {
        let mut wait = Wait::new();
        loop {
            #[cfg(debug_assertions)]
            assert_ne!(
                self.0.load(Ordering::Relaxed),
                POISON,
                "a freed node was latched"
            );
            wait.once();
            if self.try_latch() {
                return;
            }
        }
    }

    /// Takes the latch unless it is owned.
    #[inline]
    pub(crate) fn try_latch(&self) -> bool {
        let word = self.0.load(Ordering::Relaxed);
        let taken = word & LATCHED == 0
            && self
                .0
                .compare_exchange(word, word | LATCHED, Ordering::Acquire, Ordering::Relaxed)
                .is_ok();
        if taken {
            // A reader that sees one of the owner's stores must also see the version that the owner
            // found. That version says whether the slots being filled were free when the reader
            // began.
            fence(Ordering::Release);
        }
        taken
    }

    /// The version as its owner sees it.
    #[inline]
    pub(crate) fn owned(&self) -> Seen {
        let word = self.0.load(Ordering::Relaxed);
        debug_assert!(word & LATCHED != 0);
        word & !(LATCHED | DIRTY)
    }

    /// Makes readers wait: the owner is about to rearrange the node.
    pub(crate) fn make_dirty(&self) {
        let word = self.0.load(Ordering::Relaxed);
        debug_assert!(word & LATCHED != 0);
        if is_broken("index: dirty while it is rearranged") {
            return;
        }
        self.0.store(word | DIRTY, Ordering::Relaxed);
        fence(Ordering::Release);
    }

    /// Lets readers continue, and counts what happened (`CHANGE` or `SPLIT`). The latch stays.
    pub(crate) fn make_clean(&self, count: u64) {
        let word = self.owned();
        let count = unless_broken(count);
        self.0
            .store(word.wrapping_add(count) | LATCHED, Ordering::Release);
    }

    /// Makes the dirty node an inner node or a leaf.
    pub(crate) fn set_inner(&self, inner: bool) {
        let word = self.0.load(Ordering::Relaxed);
        debug_assert!(
            word & (LATCHED | DIRTY) == LATCHED | DIRTY
                || is_broken("index: dirty while it is rearranged")
        );
        let word = if inner { word | INNER } else { word & !INNER };
        self.0.store(word, Ordering::Relaxed);
    }

    /// Releases the latch, and counts what happened (0, `CHANGE` or `SPLIT`).
    #[inline]
    pub(crate) fn unlatch(&self, count: u64) {
        let word = self.owned();
        let count = unless_broken(count);
        self.0.store(word.wrapping_add(count), Ordering::Release);
    }

    /// Releases the latch for good: the node is in no list and no parent any more.
    pub(crate) fn unlatch_deleted(&self) {
        let word = self.owned();
        self.0.store(word | DELETED, Ordering::Release);
    }

    /// Whether the node is being rearranged or unlinked; for checks.
    #[cfg(test)]
    pub(crate) fn is_dirty(&self) -> bool {
        self.0.load(Ordering::Acquire) & DIRTY != 0
    }

    /// Whether the node is latched; for checks of a quiescent tree.
    pub(crate) fn is_owned(&self) -> bool {
        self.0.load(Ordering::Acquire) & (LATCHED | DIRTY) != 0
    }
}

/// What is counted, or nothing if a model's test shows that the count is needed.
#[inline(always)]
fn unless_broken(count: u64) -> u64 {
    match count {
        CHANGE if is_broken("index: counting a removal") => 0,
        SPLIT if is_broken("index: counting a split") => 0,
        count => count,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_split_changes_the_range_and_a_change_does_not() {
        let version = Version::new(0);
        let seen = version.stable();
        version.latch();
        assert!(!version.try_latch());
        assert!(version.is_still(seen), "a latch alone disturbs no reader");
        version.make_dirty();
        assert!(!version.is_still(seen));
        version.make_clean(CHANGE);
        assert!(same_range(seen, version.stable()));
        assert!(!version.is_still(seen));
        version.unlatch(SPLIT);
        assert!(!same_range(seen, version.stable()));
        assert!(!version.is_owned());
    }

    #[test]
    fn deletion_and_a_new_role_change_the_range() {
        let version = Version::new(LATCHED);
        let seen = version.stable();
        version.make_dirty();
        version.set_inner(true);
        version.unlatch(0);
        assert!(is_inner(version.stable()));
        assert!(!same_range(seen, version.stable()));
        version.latch();
        version.unlatch_deleted();
        assert!(is_deleted(version.stable()));
    }
}
