//! The memory of index nodes: a session's own.

use super::Session;
use crate::memory::{LocalMemory, Purpose, Urgency};
use std::alloc::Layout;
use std::ptr::NonNull;

/// Allocation and retirement for index nodes.
pub(crate) struct NodeMemory<'a> {
    local: &'a LocalMemory,
    urgency: Urgency,
    /// Whether others may wait for latches of the tree while a node is allocated.
    is_shared: bool,
}

impl mot_index::Memory for NodeMemory<'_> {
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        let bytes = layout.size();
        let block = if self.is_shared {
            let local = self.local;
            local.allocate_no_wait(bytes, Purpose::Index, self.urgency)
        } else {
            self.local.allocate(bytes, Purpose::Index, self.urgency)
        };
        block.ok()
    }

    unsafe fn free(&self, ptr: NonNull<u8>, layout: Layout) {
        // SAFETY: allocated above with this size; the caller promises that nothing else reaches it.
        unsafe { self.local.free(ptr, layout.size(), Purpose::Index) };
    }

    unsafe fn retire(&self, ptr: NonNull<u8>, layout: Layout) {
        // SAFETY: allocated above with this size; unreachable for a process that pins from now on
        // (caller).
        unsafe { self.local.retire(ptr, layout.size(), Purpose::Index) };
    }
}

impl Session {
    pub(crate) fn tree_memory(&self, urgency: Urgency) -> NodeMemory<'_> {
        NodeMemory {
            local: &self.local,
            urgency,
            is_shared: true,
        }
    }

    /// For a tree that nothing else uses yet.
    pub(crate) fn new_tree_memory(&self) -> NodeMemory<'_> {
        NodeMemory {
            is_shared: false,
            ..self.tree_memory(Urgency::Ordinary)
        }
    }
}
