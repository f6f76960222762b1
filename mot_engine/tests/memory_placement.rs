//! Placement on machines that are not there: what is bound where, and that freeing moves no memory
//! between nodes.

use mot_engine::memory::*;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::ptr::NonNull;
use std::rc::Rc;

const MIB: usize = 1 << 20;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Bound {
    Preferred(u32),
    Interleaved(Vec<u32>),
}

#[derive(Default)]
struct Machine {
    node: Cell<u32>,
    refuses: Cell<bool>,
    bound: RefCell<HashMap<usize, Bound>>,
    given_back: RefCell<Vec<usize>>,
    /// What got its pages before it was touched: addresses and lengths.
    filled: RefCell<Vec<(usize, usize)>>,
    /// Chunks that were to become huge pages, and what is answered to that.
    collapsed: RefCell<Vec<usize>>,
    collapse_fails_with: Cell<Option<i32>>,
    /// Whether nodes of an index are being allocated: under its latches.
    allocates_nodes: Cell<bool>,
}

/// A kernel that remembers what it was told, shared by the participants of one test.
#[derive(Clone, Default)]
struct MadeUp(Rc<Machine>);

impl Kernel for MadeUp {
    fn current_node(&self) -> u32 {
        self.0.node.get()
    }

    unsafe fn bind(&self, at: NonNull<u8>, bytes: usize, binding: Binding<'_>) -> io::Result<()> {
        assert_eq!(latches_held(), 0, "a system call under a latch");
        if self.0.refuses.get() {
            return Err(io::Error::from_raw_os_error(libc::EPERM));
        }
        let bound = match binding {
            Binding::Preferred(node) => Bound::Preferred(node),
            Binding::Interleaved(nodes) => Bound::Interleaved(nodes.to_vec()),
        };
        for chunk in (0..bytes).step_by(CHUNK_BYTES) {
            self.0
                .bound
                .borrow_mut()
                .insert(at.addr().get() + chunk, bound.clone());
        }
        Ok(())
    }

    unsafe fn give_back(&self, at: NonNull<u8>, bytes: usize) -> io::Result<()> {
        assert_eq!(latches_held(), 0, "a system call under a latch");
        self.0.given_back.borrow_mut().push(bytes);
        // SAFETY: the caller's promise is the same.
        unsafe { LinuxKernel.give_back(at, bytes) }
    }

    unsafe fn populate(&self, at: NonNull<u8>, bytes: usize) -> io::Result<()> {
        assert_eq!(latches_held(), 0, "a system call under a latch");
        self.0.filled.borrow_mut().push((at.addr().get(), bytes));
        if self.0.refuses.get() {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        // SAFETY: the caller's promise is the same.
        unsafe { LinuxKernel.populate(at, bytes) }
    }

    unsafe fn collapse(&self, at: NonNull<u8>, bytes: usize) -> io::Result<()> {
        assert_eq!(latches_held(), 0, "a system call under a latch");
        assert_eq!((at.addr().get() % CHUNK_BYTES, bytes), (0, CHUNK_BYTES));
        assert!(!self.0.allocates_nodes.get(), "writers of an index wait");
        let first_page = (at.addr().get(), 4096);
        assert_eq!(self.0.filled.borrow().last(), Some(&first_page));
        self.0.collapsed.borrow_mut().push(at.addr().get());
        match self.0.collapse_fails_with.get() {
            Some(error) => Err(io::Error::from_raw_os_error(error)),
            None => Ok(()),
        }
    }
}

impl MadeUp {
    fn bound_to(&self, at: NonNull<u8>) -> Option<Bound> {
        self.0
            .bound
            .borrow()
            .get(&(at.addr().get() / CHUNK_BYTES * CHUNK_BYTES))
            .cloned()
    }
}

fn arena(bytes: usize, nodes: &[u32]) -> (Region, Memory, MadeUp) {
    arena_with(bytes, nodes, HugePages::Off)
}

fn arena_with(bytes: usize, nodes: &[u32], huge_pages: HugePages) -> (Region, Memory, MadeUp) {
    let region = Region::create(bytes, huge_pages).unwrap();
    let options = ArenaOptions {
        topology: Topology::made_up(nodes),
    };
    // SAFETY: the region is returned along and outlives the handle.
    let memory = unsafe { Memory::format(&region, &options) }.unwrap();
    (region, memory, MadeUp::default())
}

/// Takes the header's own, never bound, chunk out of the game.
fn use_up_header_chunk(local: &LocalMemory) {
    let mut rest = 31 * SPAN_BYTES;
    while rest > 0 {
        match local.allocate(rest, Purpose::Other, Urgency::Ordinary) {
            Ok(_) => rest -= SPAN_BYTES,
            Err(full) => panic!("{full}"),
        }
    }
}

#[test]
fn rows_lie_where_they_are_written_and_indexes_everywhere() {
    for nodes in [&[0, 1][..], &[0, 2, 4, 6][..]] {
        let (_region, memory, machine) = arena(512 * MIB, nodes);
        let local = memory.join_with(Box::new(machine.clone())).unwrap();
        machine.0.node.set(nodes[0]);
        use_up_header_chunk(&local);
        for &node in nodes {
            machine.0.node.set(node);
            local.flush(); // else it follows with its next miss, and first uses up what it has
            for bytes in [100, 5000, 100_000, 3 * MIB] {
                for _ in 0..300_usize.min(10 * MIB / bytes) {
                    let at = local
                        .allocate(bytes, Purpose::Rows, Urgency::Ordinary)
                        .unwrap();
                    assert_eq!(
                        machine.bound_to(at),
                        Some(Bound::Preferred(node)),
                        "{bytes}"
                    );
                    let at = local
                        .allocate(bytes, Purpose::Index, Urgency::Ordinary)
                        .unwrap();
                    assert_eq!(
                        machine.bound_to(at),
                        Some(Bound::Interleaved(nodes.to_vec()))
                    );
                }
            }
        }
    }
}

#[test]
fn freeing_on_another_node_moves_nothing() {
    let (_region, memory, machine) = arena(256 * MIB, &[0, 1]);
    let before = memory.report();
    let local = memory.join_with(Box::new(machine.clone())).unwrap();
    let fill = |node: u32| {
        machine.0.node.set(node);
        let take = || {
            local
                .allocate(256, Purpose::Rows, Urgency::Ordinary)
                .unwrap()
        };
        (0..50_000).map(|_| take()).collect::<Vec<_>>()
    };
    let mut zero = fill(0);
    let mut one = fill(1);
    // On node 1, free half of node 0's rows, then write new ones: none may lie on node 0.
    for at in zero.drain(..25_000) {
        // SAFETY: allocated above with this size.
        unsafe { local.free(at, 256, Purpose::Rows) };
    }
    for _ in 0..20_000 {
        let at = local
            .allocate(256, Purpose::Rows, Urgency::Ordinary)
            .unwrap();
        assert_eq!(machine.bound_to(at), Some(Bound::Preferred(1)));
        one.push(at);
    }
    for at in zero.into_iter().chain(one) {
        // SAFETY: allocated above with this size.
        unsafe { local.free(at, 256, Purpose::Rows) };
    }
    drop(local);
    let after = memory.report();
    assert_eq!(after.arena_bytes_used, before.arena_bytes_used);
    assert_eq!(after.purpose_bytes, [0; 5]);
}

#[test]
fn a_full_node_borrows_and_free_chunks_change_node() {
    let (_region, memory, machine) = arena(64 * MIB, &[0, 1]);
    let local = memory.join_with(Box::new(machine.clone())).unwrap();
    for node in [0, 1, 0, 1] {
        machine.0.node.set(node);
        let mut blocks = Vec::new();
        while let Ok(at) = local.allocate(1000, Purpose::Rows, Urgency::Ordinary) {
            blocks.push(at);
        }
        assert!(
            blocks.len() * 1000 > 45 * MIB,
            "node {node}: {}",
            blocks.len()
        );
        let at_home = blocks
            .iter()
            .filter(|&&at| machine.bound_to(at) == Some(Bound::Preferred(node)));
        assert!(at_home.count() * 100 > blocks.len() * 90);
        // The other node finds no chunk free, but what the reserve allows, and frees for the first
        // one.
        machine.0.node.set(1 - node);
        let urgent = local
            .allocate(1000, Purpose::Rows, Urgency::Reserve)
            .unwrap();
        blocks.push(urgent);
        for at in blocks {
            // SAFETY: allocated above with this size.
            unsafe { local.free(at, 1000, Purpose::Rows) };
        }
        local.flush();
    }
    assert!(
        !machine.0.given_back.borrow().is_empty(),
        "pages moved without being given back"
    );
}

#[test]
fn a_kernel_that_refuses_costs_nothing_but_speed() {
    let (_region, memory, machine) = arena(64 * MIB, &[0, 1]);
    machine.0.refuses.set(true);
    let local = memory.join_with(Box::new(machine)).unwrap();
    let at = local
        .allocate(4 * MIB, Purpose::Index, Urgency::Ordinary)
        .unwrap();
    // SAFETY: allocated just now.
    unsafe { local.free(at, 4 * MIB, Purpose::Index) };
    assert_eq!(memory.report().bind_failures, 2);
}

#[test]
fn one_node_is_never_bound() {
    let (_region, memory, machine) = arena(256 * MIB, &[3]);
    let local = memory.join_with(Box::new(machine.clone())).unwrap();
    for bytes in [16, 1000, 100_000, 9 * MIB] {
        local
            .allocate(bytes, Purpose::Rows, Urgency::Ordinary)
            .unwrap();
        local
            .allocate(bytes, Purpose::Index, Urgency::Ordinary)
            .unwrap();
    }
    assert!(machine.0.bound.borrow().is_empty());
}

#[test]
fn a_load_gets_its_pages_ahead_and_nobody_else() {
    for refuses in [false, true] {
        let (_region, memory, machine) = arena(64 * MIB, &[0]);
        let local = memory.join_with(Box::new(machine.clone())).unwrap();
        machine.0.refuses.set(refuses);
        let allocate = |bytes: usize| {
            let at = local.allocate(bytes, Purpose::Rows, Urgency::Ordinary);
            let at = at.unwrap();
            // SAFETY: fresh memory of this test.
            unsafe { at.write_bytes(7, bytes) };
            at.addr().get()
        };
        let is_filled = |at: usize, bytes: usize| {
            let filled = machine.0.filled.borrow();
            filled
                .iter()
                .any(|(from, length)| *from <= at && at + bytes <= from + length)
        };
        let sizes = [100, 3000, 100_000, 3 * MIB];
        for bytes in sizes {
            allocate(bytes);
        }
        assert!(machine.0.filled.borrow().is_empty(), "nobody asked for it");
        memory.prefault_spans(true);
        // Other classes: those used before have blocks left.
        for bytes in sizes.map(|bytes| bytes / 2) {
            let at = allocate(bytes);
            assert!(is_filled(at, bytes), "{bytes}");
        }
        memory.prefault_spans(false);
        let count = machine.0.filled.borrow().len();
        for bytes in sizes.map(|bytes| bytes / 3) {
            allocate(bytes);
        }
        assert_eq!(machine.0.filled.borrow().len(), count);
    }
}

/// Chunks that hold blocks of these sizes, each once.
fn chunks_of(blocks: &[NonNull<u8>]) -> Vec<usize> {
    let mut chunks: Vec<usize> = blocks
        .iter()
        .map(|at| at.addr().get() / CHUNK_BYTES * CHUNK_BYTES)
        .collect();
    chunks.sort_unstable();
    chunks.dedup();
    chunks
}

fn take(local: &LocalMemory, bytes: usize, purpose: Purpose, count: usize) -> Vec<NonNull<u8>> {
    (0..count)
        .map(|_| local.allocate(bytes, purpose, Urgency::Ordinary).unwrap())
        .collect()
}

#[test]
fn each_chunk_taken_becomes_a_huge_page_once() {
    let (_region, memory, machine) = arena_with(128 * MIB, &[0], HugePages::Try);
    let local = memory.join_with(Box::new(machine.clone())).unwrap();
    use_up_header_chunk(&local);
    let rows = take(&local, 20_000, Purpose::Rows, 1000);
    let chunks = chunks_of(&rows);
    assert!(chunks.len() > 5);
    let mut collapsed = machine.0.collapsed.borrow().clone();
    collapsed.sort_unstable();
    collapsed.retain(|chunk| chunks.contains(chunk));
    // The header's chunk has its pages before anybody takes from it.
    assert!(collapsed.len() + 1 >= chunks.len());
    let asked = machine.0.collapsed.borrow().len();
    // Freed and taken again its pages stay: nobody asks again.
    for at in rows {
        // SAFETY: just allocated with that size, and used by nobody.
        unsafe { local.free(at, 20_000, Purpose::Rows) };
    }
    take(&local, 20_000, Purpose::Rows, 500);
    assert_eq!(machine.0.collapsed.borrow().len(), asked);
}

#[test]
fn without_huge_pages_nobody_asks_for_them() {
    let (_region, memory, machine) = arena(128 * MIB, &[0]);
    let local = memory.join_with(Box::new(machine.clone())).unwrap();
    take(&local, 20_000, Purpose::Rows, 1000);
    assert!(machine.0.collapsed.borrow().is_empty());
}

#[test]
fn a_refused_huge_page_is_not_asked_for_with_each_chunk() {
    for error in [libc::ENOMEM, libc::EINVAL, libc::EBUSY] {
        let (_region, memory, machine) = arena_with(256 * MIB, &[0], HugePages::Try);
        machine.0.collapse_fails_with.set(Some(error));
        let local = memory.join_with(Box::new(machine.clone())).unwrap();
        let rows = take(&local, 20_000, Purpose::Rows, 6000);
        assert!(chunks_of(&rows).len() > 50);
        let asked = machine.0.collapsed.borrow().len();
        assert!((1..=3).contains(&asked), "{error}: {asked}");
    }
}

/// Nobody waits for a huge page under an index's latches, and the index's chunks are huge
/// nevertheless.
#[test]
fn an_index_finds_chunks_that_are_huge_already() {
    let (_region, memory, machine) = arena_with(256 * MIB, &[0], HugePages::Try);
    let local = memory.join_with(Box::new(machine.clone())).unwrap();
    let mut nodes = Vec::new();
    for _ in 0..200 {
        take(&local, 20_000, Purpose::Rows, 20);
        machine.0.allocates_nodes.set(true);
        nodes.extend((0..20).map(|_| {
            let node = local.allocate_no_wait(20_000, Purpose::Index, Urgency::Ordinary);
            node.unwrap()
        }));
        machine.0.allocates_nodes.set(false);
    }
    let chunks = chunks_of(&nodes);
    assert!(chunks.len() > 30);
    let collapsed = machine.0.collapsed.borrow();
    let ordinary = chunks.iter().filter(|chunk| !collapsed.contains(chunk));
    // The header's chunk, and the first that was taken.
    assert!(ordinary.count() <= 2);
}

/// EINVAL is what a kernel says that does not know the request, and what the others say where there
/// is no room at the moment.
#[test]
fn huge_pages_refused_for_a_while_come_later() {
    for error in [libc::ENOMEM, libc::EINVAL, libc::EBUSY] {
        let (_region, memory, machine) = arena_with(256 * MIB, &[0], HugePages::Try);
        machine.0.collapse_fails_with.set(Some(error));
        let local = memory.join_with(Box::new(machine.clone())).unwrap();
        take(&local, 20_000, Purpose::Rows, 1000);
        machine.0.collapse_fails_with.set(None);
        machine.0.collapsed.borrow_mut().clear();
        let chunks = chunks_of(&take(&local, 20_000, Purpose::Rows, 6000));
        let asked = machine.0.collapsed.borrow().len();
        assert!(asked > chunks.len() / 3, "{error}: {asked}");
    }
}

#[test]
fn a_huge_page_lies_on_one_node_and_what_is_spread_has_none() {
    let (_region, memory, machine) = arena_with(256 * MIB, &[0, 1], HugePages::Try);
    let local = memory.join_with(Box::new(machine.clone())).unwrap();
    use_up_header_chunk(&local);
    let rows = chunks_of(&take(&local, 20_000, Purpose::Rows, 1000));
    let entries = chunks_of(&take(&local, 20_000, Purpose::Index, 1000));
    let collapsed = machine.0.collapsed.borrow();
    assert!(rows.iter().all(|chunk| collapsed.contains(chunk)));
    assert!(entries.iter().all(|chunk| !collapsed.contains(chunk)));
}

#[test]
fn the_real_kernel_keeps_what_lies_in_a_chunk() {
    let region = Region::create(64 * MIB, HugePages::Try).unwrap();
    // SAFETY: the region outlives the handle.
    let memory = unsafe { Memory::format(&region, &ArenaOptions::default()) }.unwrap();
    let local = memory.join().unwrap();
    let blocks = take(&local, 30_000, Purpose::Rows, 600);
    for (number, at) in blocks.iter().enumerate() {
        // SAFETY: a block of our own of that length.
        unsafe { at.write_bytes(number as u8, 30_000) };
    }
    for &chunk in &chunks_of(&blocks) {
        let at = NonNull::new(chunk as *mut u8).unwrap();
        // A kernel without it refuses; either way nothing changes.
        // SAFETY: a chunk of the region.
        let _ = unsafe { LinuxKernel.collapse(at, CHUNK_BYTES) };
    }
    for (number, at) in blocks.iter().enumerate() {
        // SAFETY: written above.
        let bytes = unsafe { std::slice::from_raw_parts(at.as_ptr(), 30_000) };
        assert!(bytes.iter().all(|&byte| byte == number as u8));
    }
}
