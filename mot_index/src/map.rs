//! The tree as an ordinary map of one process: nodes on the heap, epochs by `crossbeam-epoch`.

use crate::batch::Bound;
use crate::bulk::BulkError;
use crate::cursor::Cursor;
use crate::direction::Direction;
use crate::memory::{Memory, OutOfMemory};
use crate::tree::{Tree, TreeRoot};
use crate::update::Change;
use crate::verify::{Corruption, TreeStats};
use core::alloc::Layout;
use core::ptr::NonNull;
use crossbeam_epoch::Guard;
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A thread retires so many blocks before it asks the collector to free what it may. Left alone,
/// the collector runs every 128 pins only, and frees less then than a busy writer has retired.
const RETIRED_MAX: usize = 64;

thread_local! {
    /// Blocks this thread has retired since it last asked.
    static RETIRED: Cell<usize> = const { Cell::new(0) };
}

/// The process's heap as the memory of a tree, in the epoch of a guard.
pub struct CrossbeamMemory<'g> {
    guard: &'g Guard,
    bytes_used: &'g AtomicUsize,
}

impl<'g> CrossbeamMemory<'g> {
    /// The heap, reclaimed under `guard`'s collector. `bytes_used` counts what is allocated and not
    /// freed. Retired blocks count as freed.
    pub fn new(guard: &'g Guard, bytes_used: &'g AtomicUsize) -> Self {
        CrossbeamMemory { guard, bytes_used }
    }
}

impl Memory for CrossbeamMemory<'_> {
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        assert!(layout.size() > 0);
        // SAFETY: the layout is not of size zero.
        let block = NonNull::new(unsafe { std::alloc::alloc(layout) })?;
        self.bytes_used.fetch_add(layout.size(), Ordering::Relaxed);
        Some(block)
    }

    unsafe fn free(&self, ptr: NonNull<u8>, layout: Layout) {
        self.bytes_used.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise: a block from `allocate`, freed once, that no thread can
        // reach.
        unsafe { std::alloc::dealloc(ptr.as_ptr(), layout) }
    }

    unsafe fn retire(&self, ptr: NonNull<u8>, layout: Layout) {
        self.bytes_used.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise, and the collector runs this after all threads pinned now
        // have unpinned. The heap may be freed from any thread.
        unsafe {
            self.guard
                .defer_unchecked(move || std::alloc::dealloc(ptr.as_ptr(), layout));
        }
        RETIRED.with(|retired| retired.set(retired.get() + 1));
    }
}

/// An ordered concurrent map of byte keys to 48-bit values.
///
/// Every method pins the epoch for its duration. What needs memory panics through
/// [`std::alloc::handle_alloc_error`] if the heap is full, as other maps do.
#[derive(Default)]
pub struct Map {
    root: TreeRoot,
    bytes_used: AtomicUsize,
}

fn unwrap<R>(result: Result<R, OutOfMemory>) -> R {
    result.unwrap_or_else(|OutOfMemory| std::alloc::handle_alloc_error(crate::node::NODE_LAYOUT))
}

impl Map {
    /// An empty map.
    pub const fn new() -> Self {
        Map {
            root: TreeRoot::new(),
            bytes_used: AtomicUsize::new(0),
        }
    }

    /// Runs `work` on the tree in a pinned epoch; many operations under one pin are cheaper.
    #[inline]
    pub fn with_tree<R>(&self, work: impl FnOnce(&Tree<'_, CrossbeamMemory<'_>>) -> R) -> R {
        let guard = crossbeam_epoch::pin();
        let memory = CrossbeamMemory::new(&guard, &self.bytes_used);
        // SAFETY: `guard` pins this thread while `work` has the handle. A guard, and with it the
        // memory and the handle, cannot leave the thread. All handles on the root are made here.
        let tree = unsafe { Tree::new(&self.root, &memory) };
        let result = work(&tree);
        RETIRED.with(|retired| {
            if retired.get() >= RETIRED_MAX {
                retired.set(0);
                guard.flush();
            }
        });
        result
    }

    /// The value of a key.
    pub fn get(&self, key: &[u8]) -> Option<u64> {
        self.with_tree(|tree| tree.get(key))
    }

    /// Sets the value of a key; returns the one it had.
    ///
    /// # Panics
    /// As [`Tree::insert`].
    pub fn insert(&self, key: &[u8], value: u64) -> Option<u64> {
        self.with_tree(|tree| unwrap(tree.insert(key, value)))
    }

    /// Removes the entry of a key and returns its value.
    pub fn remove(&self, key: &[u8]) -> Option<u64> {
        self.with_tree(|tree| tree.remove(key))
    }

    /// Decides about the entry of a key: see [`Tree::update`], also for its panics.
    pub fn update<R>(&self, key: &[u8], decide: impl FnMut(Option<u64>) -> (Change, R)) -> R {
        self.with_tree(|tree| unwrap(tree.update(key, decide)))
    }

    /// Builds the empty map from sorted entries, see [`Tree::bulk_load`].
    pub fn bulk_load<K: AsRef<[u8]>>(
        &self,
        entries: impl IntoIterator<Item = (K, u64)>,
    ) -> Result<u64, BulkError> {
        self.with_tree(|tree| tree.bulk_load(entries))
    }

    /// Checks the structure of a map that no thread changes: see [`Tree::verify`].
    pub fn verify(&self) -> Result<TreeStats, Corruption> {
        self.with_tree(|tree| tree.verify())
    }

    /// Bytes of all nodes and bags.
    pub fn bytes_used(&self) -> usize {
        self.bytes_used.load(Ordering::Relaxed)
    }

    /// The entries that follow `bound` in `direction`. The epoch is pinned only while a batch of
    /// them is read.
    pub fn range(&self, bound: Bound<'_>, direction: Direction) -> Range<'_> {
        let mut cursor = Cursor::new();
        cursor.seek(bound, direction);
        Range { map: self, cursor }
    }

    /// All entries in ascending order.
    pub fn iter(&self) -> Range<'_> {
        self.range(Bound::Start, Direction::Forward)
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        self.with_tree(|tree| {
            // SAFETY: `&mut self`: no other thread uses the map, and no handle outlives a call.
            unsafe { tree.clear() }
        });
    }
}

/// The iterator [`Map::range`] returns.
pub struct Range<'m> {
    map: &'m Map,
    cursor: Cursor,
}

impl Iterator for Range<'_> {
    type Item = (Box<[u8]>, u64);

    fn next(&mut self) -> Option<Self::Item> {
        let Range { map, cursor } = self;
        map.with_tree(|tree| cursor.next(tree).map(|(key, value)| (key.into(), value)))
    }
}
