//! Forked processes share one arena, as backends do. One test function: forking wants no other
//! threads about.

use mot_engine::memory::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

const MIB: usize = 1 << 20;
const SLOTS: usize = 256;
const SIZES: [usize; 6] = [16, 48, 80, 400, 3000, 50_000];

/// Runs `work` in a child and leaves it with 0, or 1 if it panicked.
fn fork(work: impl FnOnce()) -> libc::pid_t {
    // SAFETY: the test has one running thread; the child leaves with _exit.
    match unsafe { libc::fork() } {
        0 => {
            let failed = catch_unwind(AssertUnwindSafe(work)).is_err();
            // SAFETY: ends the child without running the parent's exit handlers.
            unsafe { libc::_exit(i32::from(failed)) }
        }
        child => {
            assert!(child > 0, "fork failed");
            child
        }
    }
}

fn wait(child: libc::pid_t) -> i32 {
    let mut status = 0;
    // SAFETY: waits for a child of this process.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    status
}

/// A word in the arena that says "go on".
fn wait_for(word: &AtomicU64, value: u64) {
    while word.load(Ordering::Acquire) != value {
        std::thread::yield_now();
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}

/// A block says its size in its first word and repeats one byte in the rest.
fn new_block(local: &LocalMemory, bytes: usize, byte: u8) -> NonNull<u8> {
    let at = local
        .allocate(bytes, Purpose::Rows, Urgency::Ordinary)
        .expect("room");
    // SAFETY: a block of our own, at least 16 bytes.
    unsafe {
        at.cast::<u64>().write(bytes as u64);
        at.add(8).write_bytes(byte, bytes - 8);
    }
    at
}

fn check_block(at: NonNull<u8>) -> usize {
    // SAFETY: the caller is pinned or owns the block.
    unsafe {
        let bytes = at.cast::<u64>().read_volatile() as usize;
        assert!(SIZES.contains(&bytes), "reused: size {bytes:x}");
        let rest = std::slice::from_raw_parts(at.as_ptr().add(8), bytes - 8);
        assert!(
            rest[0] != 0xDD && rest.iter().all(|&byte| byte == rest[0]),
            "reused: contents"
        );
        bytes
    }
}

fn slots(memory: Memory) -> &'static [AtomicU64; SLOTS] {
    let at = NonNull::new(memory.root(0).load(Ordering::Acquire) as *mut u8).expect("the table");
    // SAFETY: the table is allocated before anybody forks and freed after all have ended.
    unsafe { at.cast().as_ref() }
}

fn block_of(word: u64) -> NonNull<u8> {
    NonNull::new(word as *mut u8).expect("slots are always filled")
}

fn prepare(memory: Memory, local: &LocalMemory) {
    let table = local
        .allocate(SLOTS * 8, Purpose::Catalog, Urgency::Ordinary)
        .unwrap();
    memory
        .root(0)
        .store(table.addr().get() as u64, Ordering::Release);
    for slot in slots(memory) {
        slot.store(
            new_block(local, 80, 1).addr().get() as u64,
            Ordering::Release,
        );
    }
}

/// One child's life: replaces, reads, and keeps private blocks.
fn churn(memory: Memory, seed: u64, turns: usize) {
    let local = memory.join().expect("a line");
    let mut random = Random(seed);
    let mut private = Vec::new();
    for turn in 0..turns {
        let slot = &slots(memory)[random.below(SLOTS)];
        match random.below(4) {
            0 => {
                let bytes = SIZES[random.below(SIZES.len())];
                let new = new_block(&local, bytes, turn as u8 % 200);
                let old = block_of(slot.swap(new.addr().get() as u64, Ordering::AcqRel));
                let bytes = check_block(old);
                // SAFETY: the swap made it unreachable and gave it to this process alone.
                unsafe { local.retire(old, bytes, Purpose::Rows) };
            }
            1 => private.push(new_block(&local, SIZES[random.below(SIZES.len())], 3)),
            2 if private.len() > 20 => {
                let at = private.swap_remove(random.below(private.len()));
                let bytes = check_block(at);
                // SAFETY: this process's own.
                unsafe { local.free(at, bytes, Purpose::Rows) };
            }
            _ => {
                let _pin = local.pin();
                let seen: Vec<_> = slots(memory)[..32]
                    .iter()
                    .map(|slot| block_of(slot.load(Ordering::Acquire)))
                    .collect();
                seen.into_iter().for_each(|at| {
                    check_block(at);
                });
            }
        }
    }
    for at in private {
        let bytes = check_block(at);
        // SAFETY: this process's own.
        unsafe { local.free(at, bytes, Purpose::Rows) };
    }
    assert_eq!(latches_held(), 0);
}

fn children_share_one_arena(memory: Memory, local: &LocalMemory, seed: u64) {
    for round in 0..3 {
        let children: Vec<_> = (0..4)
            .map(|child| fork(move || churn(memory, seed + round * 10 + child, 8_000)))
            .collect();
        for child in children {
            assert_eq!(wait(child), 0, "a child failed, seed {seed}");
        }
        assert_eq!(
            memory.report().epochs.participants,
            1,
            "lines are given back"
        );
    }
    while memory.report().epochs.orphan_blocks > 0 {
        local.collect();
    }
    local.flush();
    let live: usize = slots(memory)
        .iter()
        .map(|slot| block_bytes(check_block(block_of(slot.load(Ordering::Acquire)))))
        .sum();
    assert_eq!(memory.purpose_bytes(Purpose::Rows), live as i64);
}

/// A child pins, notes what it sees, and looks again after the parent has replaced everything and
/// used the memory.
fn a_pinned_child_keeps_what_it_sees(memory: Memory, local: &LocalMemory) {
    let stage = memory.root(1);
    stage.store(0, Ordering::Release);
    let child = fork(|| {
        let reader = memory.join().expect("a line");
        let pin = reader.pin();
        let seen: Vec<_> = slots(memory)
            .iter()
            .map(|slot| block_of(slot.load(Ordering::Acquire)))
            .collect();
        stage.store(1, Ordering::Release);
        wait_for(stage, 2);
        seen.iter().for_each(|&at| {
            check_block(at);
        });
        drop(pin);
        stage.store(3, Ordering::Release);
        wait_for(stage, 4);
    });
    wait_for(stage, 1);
    let mut fresh = Vec::new();
    for slot in slots(memory) {
        let new = new_block(local, 80, 9);
        let old = block_of(slot.swap(new.addr().get() as u64, Ordering::AcqRel));
        let bytes = check_block(old);
        // SAFETY: the swap made it unreachable.
        unsafe { local.retire(old, bytes, Purpose::Rows) };
        assert_eq!(local.collect(), 0);
    }
    for &bytes in &SIZES {
        for _ in 0..500 {
            let at = local
                .allocate(bytes, Purpose::Rows, Urgency::Ordinary)
                .unwrap();
            // SAFETY: a block of our own; the bytes are what `check_block` calls reused.
            unsafe { at.write_bytes(0xDD, bytes) };
            fresh.push((at, bytes));
        }
    }
    assert_eq!(local.garbage_blocks(), SLOTS);
    stage.store(2, Ordering::Release);
    wait_for(stage, 3);
    let freed: usize = (0..3).map(|_| local.collect()).sum();
    assert_eq!((freed, local.garbage_blocks()), (SLOTS, 0));
    stage.store(4, Ordering::Release);
    assert_eq!(wait(child), 0);
    for (at, bytes) in fresh {
        // SAFETY: allocated above with this size.
        unsafe { local.free(at, bytes, Purpose::Rows) };
    }
}

/// After a kill -9 in the middle, the region is reset, and all is as new.
fn a_killed_child_means_a_reset(region: &Region, memory: Memory, seed: u64) {
    let started = memory.root(2);
    let child = fork(|| {
        started.store(1, Ordering::Release);
        churn(memory, seed, usize::MAX);
    });
    wait_for(started, 1);
    while memory.report().epochs.participants == 0 {
        std::thread::yield_now();
    }
    // SAFETY: a child of this test.
    unsafe { libc::kill(child, libc::SIGKILL) };
    assert_eq!(wait(child), libc::SIGKILL);
    // SAFETY: nobody uses the region any more.
    unsafe { region.reset() }.unwrap();
}

#[test]
fn processes() {
    let seed = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(1, |now| now.as_nanos() as u64 | 1);
    println!("seed {seed}");
    let region = Region::create(128 * MIB, HugePages::Off).unwrap();
    for _restart in 0..2 {
        let options = ArenaOptions {
            topology: Topology::made_up(&[0]),
        };
        // SAFETY: the region outlives the handle.
        let memory = unsafe { Memory::format(&region, &options) }.unwrap();
        let fresh = memory.arena_bytes_used();
        let local = memory.join().unwrap();
        prepare(memory, &local);
        children_share_one_arena(memory, &local, seed);
        a_pinned_child_keeps_what_it_sees(memory, &local);
        for slot in slots(memory) {
            let at = block_of(slot.load(Ordering::Acquire));
            let bytes = check_block(at);
            // SAFETY: nobody else is left.
            unsafe { local.free(at, bytes, Purpose::Rows) };
        }
        let table = block_of(memory.root(0).load(Ordering::Acquire));
        // SAFETY: as above.
        unsafe { local.free(table, SLOTS * 8, Purpose::Catalog) };
        local.flush();
        assert_eq!(memory.report().purpose_bytes, [0; 5]);
        assert_eq!(memory.arena_bytes_used(), fresh);
        prepare(memory, &local);
        drop(local);
        a_killed_child_means_a_reset(&region, memory, seed);
    }
}
