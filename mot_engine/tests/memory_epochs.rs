//! Epochs within one process: what pins hold back, what becomes of garbage, how many can take part.

use mot_engine::memory::*;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

const MIB: usize = 1 << 20;

fn arena(bytes: usize) -> (Region, Memory) {
    let region = Region::create(bytes, HugePages::Off).unwrap();
    let options = ArenaOptions {
        topology: Topology::made_up(&[0]),
    };
    // SAFETY: the region is returned along and outlives the handle.
    let memory = unsafe { Memory::format(&region, &options) }.unwrap();
    (region, memory)
}

fn retire_some(local: &LocalMemory, blocks: usize, bytes: usize) {
    for _ in 0..blocks {
        let at = local
            .allocate(bytes, Purpose::Rows, Urgency::Ordinary)
            .unwrap();
        // SAFETY: allocated just now with this size; nobody else knows it.
        unsafe { local.retire(at, bytes, Purpose::Rows) };
    }
}

#[test]
fn nothing_is_freed_while_somebody_is_pinned() {
    let (_region, memory) = arena(64 * MIB);
    let (reader, writer) = (memory.join().unwrap(), memory.join().unwrap());
    assert!(!reader.is_pinned());
    let outer = reader.pin();
    let inner = reader.pin();
    retire_some(&writer, 1000, 64);
    for _ in 0..5 {
        assert_eq!(writer.collect(), 0);
    }
    drop(outer);
    assert!(reader.is_pinned(), "guards nest");
    assert_eq!(writer.collect(), 0);
    assert_eq!(
        (writer.garbage_blocks(), writer.garbage_bytes()),
        (1000, 64_000)
    );
    assert!(memory.report().epochs.oldest_pinned.is_some());
    drop(inner);
    let freed: usize = (0..3).map(|_| writer.collect()).sum();
    assert_eq!((freed, writer.garbage_blocks()), (1000, 0));
    // Unpinned garbage is freed by itself: it stays bounded.
    for _ in 0..100 {
        retire_some(&writer, 100, 64);
        assert!(writer.garbage_blocks() <= 4 * 64);
    }
}

#[test]
fn own_pins_do_not_stop_one_for_good() {
    let (_region, memory) = arena(64 * MIB);
    let local = memory.join().unwrap();
    for _ in 0..1000 {
        let _pin = local.pin();
        retire_some(&local, 10, 48);
    }
    assert!(
        local.garbage_blocks() <= 4 * 64,
        "{}",
        local.garbage_blocks()
    );
}

#[test]
fn unpin_all_ends_pins_whose_guards_were_jumped_over() {
    let (_region, memory) = arena(64 * MIB);
    let (local, other) = (memory.join().unwrap(), memory.join().unwrap());
    std::mem::forget(local.pin());
    let stale = local.pin();
    local.unpin_all();
    assert!(!local.is_pinned());
    let fresh = local.pin();
    drop(stale);
    assert!(
        local.is_pinned(),
        "a guard from before unpin_all ends nothing"
    );
    retire_some(&other, 1, 64);
    assert_eq!((0..5).map(|_| other.collect()).sum::<usize>(), 0);
    drop(fresh);
    assert_eq!((0..3).map(|_| other.collect()).sum::<usize>(), 1);
}

#[test]
fn garbage_outlives_its_process_and_is_freed_by_others() {
    let (_region, memory) = arena(256 * MIB);
    let before = memory.report();
    let (reader, other) = (memory.join().unwrap(), memory.join().unwrap());
    // More than the header's stock of orphan pages holds.
    for blocks in [10, 20_000] {
        let pin = reader.pin();
        let writer = memory.join().unwrap();
        retire_some(&writer, blocks, 100);
        let at = writer
            .allocate(5 * MIB, Purpose::Index, Urgency::Ordinary)
            .unwrap();
        // SAFETY: allocated just now.
        unsafe { writer.retire(at, 5 * MIB, Purpose::Index) };
        drop(writer);
        let epochs = memory.report().epochs;
        assert_eq!(epochs.orphan_blocks, blocks as u64 + 1);
        assert_eq!(epochs.orphan_bytes, (blocks * 100 + 5 * MIB) as u64);
        assert_eq!(other.collect(), 0, "still pinned");
        drop(pin);
        let mut freed = 0;
        while memory.report().epochs.orphan_blocks > 0 {
            freed += other.collect();
        }
        assert!(freed > blocks);
    }
    drop((reader, other));
    let after = memory.report();
    assert_eq!(after.arena_bytes_used, before.arena_bytes_used);
    assert_eq!(after.purpose_bytes, [0; 5]);
    assert_eq!(after.epochs.lost_bytes, 0);
}

#[test]
fn retired_contents_stay_until_everybody_has_unpinned() {
    let (_region, memory) = arena(64 * MIB);
    let reader = memory.join().unwrap();
    let writer = memory.join().unwrap();
    let blocks: Vec<NonNull<u8>> = (0..500)
        .map(|_| {
            writer
                .allocate(16, Purpose::Rows, Urgency::Ordinary)
                .unwrap()
        })
        .collect();
    let pin = reader.pin();
    for &at in &blocks {
        // SAFETY: allocated above with this size.
        unsafe {
            at.write_bytes(7, 16);
            writer.retire(at, 16, Purpose::Rows);
        }
    }
    drop(writer); // 16-byte blocks: orphaning writes nothing into them
    let other = memory.join().unwrap();
    retire_some(&other, 1000, 16);
    for &at in &blocks {
        // SAFETY: pinned since before they were retired.
        assert_eq!(unsafe { at.cast::<[u8; 16]>().read() }, [7; 16]);
    }
    drop(pin);
}

#[test]
fn leaving_a_full_arena_loses_nothing() {
    let (_region, memory) = arena(32 * MIB);
    let reader = memory.join().unwrap();
    let writer = memory.join().unwrap();
    let pin = reader.pin();
    let mut blocks = Vec::new();
    for bytes in [64 << 10, 4096, 2048, 512] {
        while let Ok(at) = writer.allocate(bytes, Purpose::Rows, Urgency::Reserve) {
            blocks.push((at, bytes));
        }
    }
    assert_eq!(memory.arena_bytes_free(), 0);
    let retired = blocks.len() as u64;
    for (at, bytes) in blocks {
        // SAFETY: allocated above with this size.
        unsafe { writer.retire(at, bytes, Purpose::Rows) };
    }
    drop(writer);
    let epochs = memory.report().epochs;
    assert_eq!((epochs.orphan_blocks, epochs.lost_bytes), (retired, 0));
    drop(pin);
    while memory.report().epochs.orphan_blocks > 0 {
        reader.collect();
    }
    reader.flush();
    assert_eq!(memory.purpose_bytes(Purpose::Rows), 0);
}

#[test]
fn the_table_of_participants_is_finite_and_reusable() {
    let (_region, memory) = arena(32 * MIB);
    let mut locals: Vec<_> = (0..EPOCH_PARTICIPANTS_MAX)
        .map(|_| memory.join().unwrap())
        .collect();
    let max = EPOCH_PARTICIPANTS_MAX;
    assert_eq!(memory.join().err(), Some(TooManyParticipants { max }));
    assert_eq!(
        memory.report().epochs.participants,
        EPOCH_PARTICIPANTS_MAX as u64
    );
    drop(locals.swap_remove(1000));
    let again = memory.join().unwrap();
    let _pin = again.pin();
    assert!(memory.join().is_err());
    drop(locals);
    assert_eq!(memory.report().epochs.participants, 1);
}

/// Slots hold blocks of 8 equal words. Writers replace them and retire the old ones; readers,
/// pinned, must never see a block that is reused (mixed or poisoned words).
#[test]
fn threads_replace_and_read() {
    const SLOTS: usize = 64;
    const WORDS: usize = 8;
    const TURNS_MIN: u64 = 100_000;
    const SCANS_MIN: u64 = 20_000;
    let (_region, memory) = arena(64 * MIB);
    let before = memory.report();
    let slots: Vec<AtomicPtr<u64>> = (0..SLOTS).map(|_| AtomicPtr::default()).collect();
    let stop = AtomicBool::new(false);
    // Writers go on until the readers have seen enough, however the scheduler treats them.
    let scans = AtomicU64::new(0);
    let block_bytes = WORDS * 8;
    let new_block = |local: &LocalMemory, value: u64| {
        let at = local
            .allocate(block_bytes, Purpose::Rows, Urgency::Ordinary)
            .unwrap()
            .cast::<u64>();
        for word in 0..WORDS {
            // SAFETY: a block of our own, not published yet.
            unsafe { at.add(word).write(value) };
        }
        at.as_ptr()
    };
    let main = memory.join().unwrap();
    for slot in &slots {
        slot.store(new_block(&main, 1), Ordering::Release);
    }
    std::thread::scope(|scope| {
        for number in 0..2_u64 {
            let (slots, stop, scans) = (&slots, &stop, &scans);
            scope.spawn(move || {
                let local = memory.join().unwrap();
                for turn in 0.. {
                    if turn >= TURNS_MIN && scans.load(Ordering::Relaxed) >= SCANS_MIN {
                        break;
                    }
                    let value = (turn << 8) | number;
                    let slot = &slots[(turn as usize * 7 + number as usize) % SLOTS];
                    let old = slot.swap(new_block(&local, value), Ordering::AcqRel);
                    // SAFETY: the swap made it unreachable, and gave it to this thread alone.
                    unsafe {
                        let old = NonNull::new(old).unwrap().cast();
                        local.retire(old, block_bytes, Purpose::Rows);
                    }
                }
                stop.store(true, Ordering::Relaxed);
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                let local = memory.join().unwrap();
                while !stop.load(Ordering::Relaxed) {
                    let _pin = local.pin();
                    let seen: Vec<*mut u64> = slots
                        .iter()
                        .map(|slot| slot.load(Ordering::Acquire))
                        .collect();
                    for at in seen {
                        // SAFETY: found under the pin, so not reused while it lasts.
                        let words = unsafe { at.cast::<[u64; WORDS]>().read_volatile() };
                        let intact = words.iter().all(|&word| word == words[0]);
                        if !intact || words[0] == u64::from_ne_bytes([0xDD; 8]) {
                            scans.store(SCANS_MIN, Ordering::Relaxed); // let the writers end
                            panic!("reused while pinned: {words:x?}");
                        }
                    }
                    scans.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    for slot in &slots {
        let at = NonNull::new(slot.load(Ordering::Acquire)).unwrap().cast();
        // SAFETY: nobody else is left.
        unsafe { main.free(at, block_bytes, Purpose::Rows) };
    }
    while memory.report().epochs.orphan_blocks > 0 {
        main.collect();
    }
    drop(main);
    let after = memory.report();
    assert_eq!(after.arena_bytes_used, before.arena_bytes_used);
    assert_eq!(after.purpose_bytes, [0; 5]);
}
