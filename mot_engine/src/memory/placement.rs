//! Placement: which pool of chunks serves an allocation, and which node a pool's chunks are bound
//! to.
//!
//! Contract: pure functions decide; the [`Kernel`] trait carries decisions out, so tests drive a
//! machine that is not there. With one node there is one pool and no binding at all. With n nodes
//! there are n + 1 pools: one per node (memory that its filler will mostly use itself: rows and
//! anchors) and one interleaved over all nodes (what all sessions read: index nodes, catalogs). A
//! refused binding costs speed, not correctness: it is counted and reported.

use super::account::Purpose;
use std::io;
use std::ptr::NonNull;

/// Distinguished nodes. Larger machines exist; their further nodes are served from the interleaved
/// pool's nodes.
pub const NODES_MAX: usize = 32;

/// One pool per node, and the interleaved one.
pub(super) const POOLS_MAX: usize = NODES_MAX + 1;

/// Where memory should lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// On the node of the process that fills it.
    Local,
    /// Spread over all nodes, page by page.
    Interleaved,
}

impl Placement {
    /// Rows and anchors are used most by their writer; what every session walks through is
    /// spread.
    pub fn of(purpose: Purpose) -> Placement {
        match purpose {
            Purpose::Rows | Purpose::Anchors | Purpose::Other => Placement::Local,
            Purpose::Index | Purpose::Catalog => Placement::Interleaved,
        }
    }

    /// The pool that serves this placement, for a process on node number `node` of `nodes`.
    pub(super) fn pool(self, node: usize, nodes: usize) -> usize {
        match self {
            _ if nodes == 1 => 0,
            Placement::Local => node,
            Placement::Interleaved => nodes,
        }
    }
}

/// Pools of a machine with so many nodes.
pub(super) fn pools_of(nodes: usize) -> usize {
    if nodes == 1 { 1 } else { nodes + 1 }
}

/// Which of the arena's nodes a kernel node number is. A node without memory of its own uses
/// another one's.
pub(super) fn node_index(kernel_node: u32, nodes: &[u32]) -> usize {
    nodes
        .iter()
        .position(|&node| node == kernel_node)
        .unwrap_or(kernel_node as usize % nodes.len())
}

/// What a pool asks of the kernel for its chunks.
pub(super) fn binding_of(pool: usize, nodes: &[u32]) -> Binding<'_> {
    match nodes.get(pool) {
        Some(&node) => Binding::Preferred(node),
        None => Binding::Interleaved(nodes),
    }
}

/// A memory policy, in kernel node numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding<'a> {
    /// This node while it has memory, else any: a full node must not fail an allocation the arena
    /// has room for.
    Preferred(u32),
    /// Page by page over these nodes.
    Interleaved(&'a [u32]),
}

/// What the allocator needs of the operating system.
pub trait Kernel {
    /// Kernel number of the node this thread runs on.
    fn current_node(&self) -> u32;

    /// Sets the policy for pages of a range that are touched from now on.
    ///
    /// # Safety
    /// The range is chunks of a mapped region.
    unsafe fn bind(&self, at: NonNull<u8>, bytes: usize, binding: Binding<'_>) -> io::Result<()>;

    /// Gives the pages of a range back; it reads as zero afterwards.
    ///
    /// # Safety
    /// The range is chunks of a mapped region whose contents nothing uses.
    unsafe fn give_back(&self, at: NonNull<u8>, bytes: usize) -> io::Result<()>;

    /// Gives the range its pages now, or says that there are none: on a full file system a touch
    /// later would be a SIGBUS.
    ///
    /// # Safety
    /// The range is chunks of a mapped region.
    unsafe fn populate(&self, at: NonNull<u8>, bytes: usize) -> io::Result<()>;

    /// Makes a huge page of each chunk, on the node where most of its pages lie, or says why not.
    ///
    /// # Safety
    /// The range is chunks of a mapped region.
    unsafe fn collapse(&self, at: NonNull<u8>, bytes: usize) -> io::Result<()>;

    /// Whether the caller can wait for milliseconds: no process waits for it.
    fn may_take_long(&self) -> bool {
        true
    }
}

/// A kernel for callers that others wait for, as for one that allocates an index's node under the
/// latches of those above it: nothing is asked that takes milliseconds and that can be done
/// without.
pub(super) struct NoWait<'a>(pub(super) &'a dyn Kernel);

impl Kernel for NoWait<'_> {
    fn current_node(&self) -> u32 {
        self.0.current_node()
    }

    unsafe fn bind(&self, at: NonNull<u8>, bytes: usize, binding: Binding<'_>) -> io::Result<()> {
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.bind(at, bytes, binding) }
    }

    unsafe fn give_back(&self, at: NonNull<u8>, bytes: usize) -> io::Result<()> {
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.give_back(at, bytes) }
    }

    unsafe fn populate(&self, at: NonNull<u8>, bytes: usize) -> io::Result<()> {
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.populate(at, bytes) }
    }

    unsafe fn collapse(&self, at: NonNull<u8>, bytes: usize) -> io::Result<()> {
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.collapse(at, bytes) }
    }

    fn may_take_long(&self) -> bool {
        false
    }
}

/// The kernel we run on.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinuxKernel;

/// From linux/mempolicy.h.
const MPOL_PREFERRED: libc::c_int = 1;
const MPOL_INTERLEAVE: libc::c_int = 3;

/// Bits of the node mask handed to the kernel: its largest build-time node count
/// (CONFIG_NODES_SHIFT = 10).
const NODE_MASK_BITS: usize = 1024;

impl Kernel for LinuxKernel {
    fn current_node(&self) -> u32 {
        let mut node: libc::c_uint = 0;
        // SAFETY: the kernel writes one word through the second pointer; the others may be null.
        let failed = unsafe {
            libc::syscall(
                libc::SYS_getcpu,
                std::ptr::null_mut::<libc::c_uint>(),
                &raw mut node,
                std::ptr::null_mut::<libc::c_void>(),
            )
        };
        if failed == 0 { node } else { 0 }
    }

    unsafe fn bind(&self, at: NonNull<u8>, bytes: usize, binding: Binding<'_>) -> io::Result<()> {
        let (mode, mask) = policy(binding);
        // SAFETY: the range is mapped (caller); the mask outlives the call. The kernel reads one
        // bit less than given.
        let failed = unsafe {
            libc::syscall(
                libc::SYS_mbind,
                at.as_ptr(),
                bytes,
                mode,
                mask.as_ptr(),
                NODE_MASK_BITS + 1,
                0,
            )
        };
        if failed == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }

    unsafe fn give_back(&self, at: NonNull<u8>, bytes: usize) -> io::Result<()> {
        // SAFETY: the caller's promise is the same.
        unsafe { super::region::give_back_pages(at, bytes) }
    }

    unsafe fn populate(&self, at: NonNull<u8>, bytes: usize) -> io::Result<()> {
        // SAFETY: the caller's promise is the same.
        unsafe { super::region::populate_pages(at, bytes) }
    }

    unsafe fn collapse(&self, at: NonNull<u8>, bytes: usize) -> io::Result<()> {
        // SAFETY: the caller's promise is the same.
        unsafe { super::region::collapse_pages(at, bytes) }
    }
}

/// The system call's form of a binding.
fn policy(binding: Binding<'_>) -> (libc::c_int, [u64; NODE_MASK_BITS / 64]) {
    let mut mask = [0; NODE_MASK_BITS / 64];
    let mut add = |node: u32| {
        if let Some(word) = mask.get_mut(node as usize / 64) {
            *word |= 1 << (node % 64);
        }
    };
    let mode = match binding {
        Binding::Preferred(node) => {
            add(node);
            MPOL_PREFERRED
        }
        Binding::Interleaved(nodes) => {
            nodes.iter().for_each(|&node| add(node));
            MPOL_INTERLEAVE
        }
    };
    (mode, mask)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::region::{HugePages, Region};

    #[test]
    fn one_node_has_one_pool() {
        assert_eq!(pools_of(1), 1);
        for purpose in Purpose::ALL {
            assert_eq!(Placement::of(purpose).pool(0, 1), 0);
        }
    }

    #[test]
    fn rows_are_local_and_indexes_interleaved() {
        for nodes in [2, 4, NODES_MAX] {
            assert_eq!(pools_of(nodes), nodes + 1);
            for node in 0..nodes {
                assert_eq!(Placement::of(Purpose::Rows).pool(node, nodes), node);
                assert_eq!(Placement::of(Purpose::Anchors).pool(node, nodes), node);
                assert_eq!(Placement::of(Purpose::Index).pool(node, nodes), nodes);
            }
        }
    }

    #[test]
    fn kernel_numbers_may_have_gaps() {
        let nodes = [0, 2, 8];
        assert_eq!(node_index(8, &nodes), 2);
        assert!(node_index(5, &nodes) < 3);
        assert_eq!(binding_of(1, &nodes), Binding::Preferred(2));
        assert_eq!(binding_of(3, &nodes), Binding::Interleaved(&nodes));
        let (mode, mask) = policy(Binding::Interleaved(&[0, 2, 65]));
        assert_eq!((mode, mask[0], mask[1]), (MPOL_INTERLEAVE, 5, 2));
        let (mode, mask) = policy(Binding::Preferred(3));
        assert_eq!((mode, mask[0]), (MPOL_PREFERRED, 8));
    }

    #[test]
    fn the_real_kernel_knows_its_own_node() {
        let region = Region::create(1 << 21, HugePages::Off).unwrap();
        let node = LinuxKernel.current_node();
        let nodes = [node];
        for binding in [Binding::Preferred(node), Binding::Interleaved(&nodes)] {
            // SAFETY: a whole region of our own.
            match unsafe { LinuxKernel.bind(region.base(), region.bytes(), binding) } {
                Ok(()) => {}
                // Containers without CAP_SYS_NICE, kernels without NUMA.
                Err(error) => assert!(
                    matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOSYS)),
                    "{error}"
                ),
            }
        }
    }
}
