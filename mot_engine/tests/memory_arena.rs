//! The arena as its users see it: formatting, blocks, sizes, limits, memory that comes back.

use mot_engine::memory::*;
use std::ptr::NonNull;

const MIB: usize = 1 << 20;

struct Arena {
    memory: Memory,
    region: Region,
}

fn arena(bytes: usize) -> Arena {
    let region = Region::create(bytes, HugePages::Off).unwrap();
    let options = ArenaOptions {
        topology: Topology::made_up(&[0]),
    };
    // SAFETY: the region lives as long as the test's arena.
    let memory = unsafe { Memory::format(&region, &options) }.unwrap();
    Arena { memory, region }
}

/// Fills a block, so that overlaps show.
fn fill(at: NonNull<u8>, bytes: usize, seed: u8) {
    // SAFETY: a block of the test's own.
    unsafe { at.write_bytes(seed, bytes) };
}

fn holds(at: NonNull<u8>, bytes: usize, seed: u8) -> bool {
    // SAFETY: as above.
    unsafe { std::slice::from_raw_parts(at.as_ptr(), bytes) }
        .iter()
        .all(|&byte| byte == seed)
}

#[test]
fn format_attach_and_reset() {
    let Arena { memory, region } = arena(64 * MIB);
    // SAFETY: the region outlives the handles; all of them are done with it before the reset.
    unsafe {
        assert!(matches!(
            Memory::format(&region, &ArenaOptions::default()),
            Err(ArenaError::AlreadyFormatted)
        ));
        let attached = Memory::attach(region.base()).unwrap();
        let fresh = attached.report();
        memory
            .root(3)
            .store(17, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(
            attached.root(3).load(std::sync::atomic::Ordering::Relaxed),
            17
        );
        let local = memory.join().unwrap();
        for bytes in [16, 1000, 100_000, 5 * MIB] {
            local
                .allocate(bytes, Purpose::Rows, Urgency::Ordinary)
                .unwrap();
        }
        assert!(memory.arena_bytes_used() > fresh.arena_bytes_used);
        drop(local);
        region.reset().unwrap();
        assert!(matches!(
            Memory::attach(region.base()),
            Err(ArenaError::NotFormatted)
        ));
        let again = Memory::format(
            &region,
            &ArenaOptions {
                topology: Topology::made_up(&[0]),
            },
        )
        .unwrap();
        assert_eq!(again.report(), fresh);
        assert_eq!(again.root(3).load(std::sync::atomic::Ordering::Relaxed), 0);
    }
}

#[test]
fn too_small_is_refused() {
    let region = Region::create(ARENA_BYTES_MIN / 2, HugePages::Off).unwrap();
    // SAFETY: nothing is kept.
    let refused = unsafe { Memory::format(&region, &ArenaOptions::default()) };
    assert!(matches!(refused, Err(ArenaError::Size { .. })));
}

#[test]
fn blocks_of_all_sizes_are_apart_aligned_and_counted() {
    let Arena {
        memory,
        region: _region,
    } = arena(256 * MIB);
    let before = memory.report();
    let local = memory.join().unwrap();
    let mut blocks = Vec::new();
    let mut expected = 0;
    for bytes in
        (1..600)
            .chain((600..40_000).step_by(61))
            .chain([MIB, 2 * MIB, 2 * MIB + 1, 7 * MIB])
    {
        let at = local
            .allocate(bytes, Purpose::Rows, Urgency::Ordinary)
            .unwrap();
        assert_eq!(at.addr().get() % 8, 0);
        for align in [16, 32, 64] {
            assert!(
                bytes % align != 0 || at.addr().get() % align == 0,
                "{bytes}"
            );
        }
        assert!(memory.contains(at));
        fill(at, bytes, blocks.len() as u8);
        expected += block_bytes(bytes) as i64;
        blocks.push((at, bytes));
    }
    for (number, &(at, bytes)) in blocks.iter().enumerate() {
        assert!(holds(at, bytes, number as u8), "{bytes}");
    }
    local.flush();
    assert_eq!(memory.purpose_bytes(Purpose::Rows), expected);
    for &(at, bytes) in &blocks {
        // SAFETY: allocated above with this size.
        unsafe { local.free(at, bytes, Purpose::Rows) };
    }
    drop(local);
    let after = memory.report();
    assert_eq!(after.purpose_bytes, [0; 5]);
    assert_eq!(after.classes, before.classes);
    assert_eq!(after.arena_bytes_used, before.arena_bytes_used);
}

#[test]
fn full_is_an_error_and_deletes_still_have_the_reserve() {
    let Arena {
        memory,
        region: _region,
    } = arena(64 * MIB);
    let local = memory.join().unwrap();
    let mut rows = Vec::new();
    let full = loop {
        match local.allocate(4000, Purpose::Rows, Urgency::Ordinary) {
            Ok(at) => rows.push(at),
            Err(full) => break full,
        }
    };
    assert_eq!(full.limit, 64 * MIB as u64);
    assert!(full.requested >= 4000 && full.used <= full.limit - RESERVE_BYTES_MIN as u64);
    assert!(memory.arena_bytes_free() >= RESERVE_BYTES_MIN as u64);
    // Another class and a large block are as full.
    assert!(
        local
            .allocate(48, Purpose::Rows, Urgency::Ordinary)
            .is_err()
    );
    assert!(
        local
            .allocate(MIB, Purpose::Rows, Urgency::Ordinary)
            .is_err()
    );
    // A tombstone is possible, and what its span has left does not serve ordinary allocations.
    let tombstone = local.allocate(48, Purpose::Rows, Urgency::Reserve).unwrap();
    for _ in 0..10 {
        assert!(
            local
                .allocate(48, Purpose::Rows, Urgency::Ordinary)
                .is_err()
        );
    }
    let mut tombstones = vec![tombstone];
    while let Ok(at) = local.allocate(48, Purpose::Rows, Urgency::Reserve) {
        tombstones.push(at);
    }
    assert!(
        tombstones.len() * 48 > RESERVE_BYTES_MIN * 9 / 10,
        "{}",
        tombstones.len()
    );
    assert_eq!(memory.arena_bytes_free(), 0);
    // Freeing rows makes everything work again.
    for at in rows.drain(..) {
        // SAFETY: allocated above with this size.
        unsafe { local.free(at, 4000, Purpose::Rows) };
    }
    for at in tombstones {
        // SAFETY: as above.
        unsafe { local.free(at, 48, Purpose::Rows) };
    }
    local.flush();
    assert_eq!(memory.purpose_bytes(Purpose::Rows), 0);
    let at = local
        .allocate(40 * MIB, Purpose::Rows, Urgency::Ordinary)
        .unwrap();
    // SAFETY: allocated just now.
    unsafe { local.free(at, 40 * MIB, Purpose::Rows) };
}

#[test]
fn large_runs_are_contiguous_and_waste_no_chunk() {
    let Arena {
        memory,
        region: _region,
    } = arena(1024 * MIB);
    let before = memory.arena_bytes_used();
    let local = memory.join().unwrap();
    let sizes = [
        300 * MIB,
        2 * MIB,
        2 * MIB + 5,
        33 * MIB + 77_777,
        6 * MIB - 1,
        400_000,
    ];
    let mut blocks = Vec::new();
    for (seed, &bytes) in sizes.iter().enumerate() {
        let at = local
            .allocate(bytes, Purpose::Anchors, Urgency::Ordinary)
            .unwrap();
        fill(at, bytes, seed as u8 + 1);
        blocks.push(at);
    }
    for (seed, (&at, &bytes)) in blocks.iter().zip(&sizes).enumerate() {
        assert!(holds(at, bytes, seed as u8 + 1));
    }
    let spans: usize = sizes
        .iter()
        .map(|bytes| bytes.next_multiple_of(SPAN_BYTES))
        .sum();
    assert_eq!(memory.arena_bytes_used() - before, spans as u64);
    assert!(
        local
            .allocate(2048 * MIB, Purpose::Anchors, Urgency::Reserve)
            .is_err()
    );
    assert!(
        local
            .allocate(usize::MAX / 2, Purpose::Anchors, Urgency::Reserve)
            .is_err()
    );
    for (&at, &bytes) in blocks.iter().zip(&sizes) {
        // SAFETY: allocated above with this size.
        unsafe { local.free(at, bytes, Purpose::Anchors) };
    }
    assert_eq!(memory.arena_bytes_used(), before);
    // All but a few chunks' pages went back to the kernel.
    let chunks = memory.report().chunks;
    assert!(chunks.free_resident <= 32, "{chunks:?}");
    assert!(chunks.free_untouched > 400, "{chunks:?}");
    let at = local
        .allocate(900 * MIB, Purpose::Anchors, Urgency::Ordinary)
        .unwrap();
    // SAFETY: allocated just now; the middle of it lies in pages that were given back, which read
    // as zero.
    unsafe {
        assert_eq!(at.add(200 * MIB).read(), 0);
        local.free(at, 900 * MIB, Purpose::Anchors);
    }
}

#[test]
fn chunks_change_their_class() {
    let Arena {
        memory,
        region: _region,
    } = arena(64 * MIB);
    let before = memory.report();
    let local = memory.join().unwrap();
    // Each class in turn takes almost the whole arena: possible only if the one before gave
    // everything back.
    for bytes in [16, 208, 1000, 3000, 32768, 65536, 3 * MIB, 64, 2048] {
        let mut blocks = Vec::new();
        while let Ok(at) = local.allocate(bytes, Purpose::Rows, Urgency::Ordinary) {
            blocks.push(at);
        }
        assert!(
            blocks.len() * block_bytes(bytes) > 40 * MIB,
            "{bytes}: {}",
            blocks.len()
        );
        // Odd ones first, so that spans become free in no particular order.
        for turn in [1, 0] {
            for at in blocks.iter().skip(turn).step_by(2) {
                // SAFETY: allocated above with this size.
                unsafe { local.free(*at, bytes, Purpose::Rows) };
            }
        }
    }
    drop(local);
    let after = memory.report();
    assert_eq!(after.arena_bytes_used, before.arena_bytes_used);
    assert_eq!(after.classes, before.classes);
    assert_eq!(after.purpose_bytes, [0; 5]);
}

#[test]
fn one_block_of_every_size_takes_one_span_per_class() {
    let Arena {
        memory,
        region: _region,
    } = arena(64 * MIB);
    let before = memory.arena_bytes_used();
    let local = memory.join().unwrap();
    let mut sizes: Vec<usize> = (1..=SMALL_BYTES_MAX).map(block_bytes).collect();
    sizes.dedup();
    for &bytes in &sizes {
        local
            .allocate(bytes, Purpose::Rows, Urgency::Ordinary)
            .unwrap();
    }
    assert_eq!(
        memory.arena_bytes_used() - before,
        (sizes.len() * SPAN_BYTES) as u64
    );
    assert!(sizes.len() < 100);
}

#[test]
fn the_cache_is_bounded() {
    let Arena {
        memory,
        region: _region,
    } = arena(256 * MIB);
    let local = memory.join().unwrap();
    let mut blocks = Vec::new();
    for bytes in (16..=SMALL_BYTES_MAX).step_by(400) {
        for _ in 0..40 {
            blocks.push((
                local
                    .allocate(bytes, Purpose::Rows, Urgency::Ordinary)
                    .unwrap(),
                bytes,
            ));
        }
    }
    for (at, bytes) in blocks {
        // SAFETY: allocated above with this size.
        unsafe { local.free(at, bytes, Purpose::Rows) };
        assert!(local.cache_bytes() <= MIB);
    }
    assert!(local.cache_bytes() > 0);
    local.flush();
    assert_eq!(local.cache_bytes(), 0);
}
