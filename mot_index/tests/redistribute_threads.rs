//! Leaves that redistribute beside scans and look-ups, on real threads: what nobody touches is
//! always seen, once and in order.

use mot_index::{Batch, Bound, Direction, Memory, Tree, TreeRoot};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

struct Poisoning<'g>(&'g crossbeam_epoch::Guard);

/// # Safety
/// A block of this layout from the heap that nobody can reach any more.
unsafe fn poison(ptr: NonNull<u8>, layout: Layout) {
    // SAFETY: the caller's promise.
    unsafe {
        ptr.as_ptr().write_bytes(0xDD, layout.size());
        std::alloc::dealloc(ptr.as_ptr(), layout);
    }
}

impl Memory for Poisoning<'_> {
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        // SAFETY: trees ask for blocks of more than zero bytes.
        NonNull::new(unsafe { std::alloc::alloc(layout) })
    }

    unsafe fn free(&self, ptr: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { poison(ptr, layout) };
    }

    unsafe fn retire(&self, ptr: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's promise; the closure runs when all pinned now have unpinned.
        unsafe { self.0.defer_unchecked(move || poison(ptr, layout)) };
    }
}

#[derive(Default)]
struct Shared(TreeRoot);

impl Shared {
    fn with<R>(&self, work: impl FnOnce(&Tree<'_, Poisoning<'_>>) -> R) -> R {
        let guard = crossbeam_epoch::pin();
        let memory = Poisoning(&guard);
        // SAFETY: pinned while `work` runs; all handles on the root are made here.
        work(&unsafe { Tree::new(&self.0, &memory) })
    }
}

fn key(shape: u64, at: u64) -> Vec<u8> {
    let ends: [&[u8]; 5] = [b"", b"\0", b"\0\0", b"\0\0 and", b"\0\0 and more"];
    match shape {
        0 => (at * 100).to_be_bytes().to_vec(),
        1 => [&(at * 100).to_be_bytes()[..], b"suffix"].concat(),
        2 => [format!("{:06}", at / 5).as_bytes(), ends[at as usize % 5]].concat(),
        3 if at % 9 < 6 => [
            &(at / 9 * 900).to_be_bytes()[..],
            &(at % 9 * 7).to_be_bytes(),
        ]
        .concat(),
        3 => (at * 100).to_be_bytes().to_vec(),
        4 => [
            &b"a slice."[..],
            &(at / 2).to_be_bytes(),
            &b"xyz"[..1 + at as usize % 2],
        ]
        .concat(),
        // Narrow leaves, with the window over the lower half or over the upper one, and keys that
        // these do not hold.
        5 => (((at / 60) << 32) | (at % 60)).to_be_bytes().to_vec(),
        6 => (at << 32 | u64::from(at % 41 == 5)).to_be_bytes().to_vec(),
        _ => [
            &(((at / 100) << 32) | (at % 100 / 2)).to_be_bytes()[..],
            &b"xy"[..1 + at as usize % 2],
        ]
        .concat(),
    }
}

fn seconds() -> f64 {
    let seconds = std::env::var("MOT_REDISTRIBUTE_SECONDS").ok();
    seconds.and_then(|it| it.parse().ok()).unwrap_or(1.0)
}

#[test]
fn what_stays_is_seen_beside_leaves_that_redistribute() {
    for (shape, range) in (0..8).flat_map(|shape| [(shape, 240u64), (shape, 2400)]) {
        let shared = Shared::default();
        let is_kept = |at: u64| at.is_multiple_of(4) && (at / 60).is_multiple_of(2);
        let keys: Vec<Vec<u8>> = (0..range).map(|at| key(shape, at)).collect();
        for at in (0..range).filter(|at| is_kept(*at)) {
            shared.with(|tree| tree.insert(&keys[at as usize], at).expect("room"));
        }
        let stop = AtomicBool::new(false);
        let (scans, changes) = (AtomicU64::new(0), AtomicU64::new(0));
        let seed = std::env::var("MOT_REDISTRIBUTE_SEED").ok();
        let seed: u64 = seed.and_then(|it| it.parse().ok()).unwrap_or(1);
        std::thread::scope(|scope| {
            for thread in 0..2u64 {
                let (shared, keys, stop, changes) = (&shared, &keys, &stop, &changes);
                scope.spawn(move || {
                    let mut random = StdRng::seed_from_u64(seed * 100 + thread);
                    while !stop.load(Ordering::Relaxed) {
                        // A stretch fills up, another one empties, at random within.
                        let begin = random.random_range(0..range - 40);
                        let length = random.random_range(5..40);
                        let insert = random.random_bool(0.5);
                        for _ in 0..length * 2 {
                            let at = begin + random.random_range(0..length);
                            if is_kept(at) {
                                continue;
                            }
                            let key = &keys[at as usize];
                            shared.with(|tree| {
                                if insert {
                                    tree.insert(key, at).expect("room");
                                } else {
                                    tree.remove(key);
                                }
                            });
                            changes.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                });
            }
            for thread in 0..3u64 {
                let (shared, keys, stop, scans) = (&shared, &keys, &stop, &scans);
                scope.spawn(move || {
                    let mut random = StdRng::seed_from_u64(seed * 100 + 50 + thread);
                    let mut batch = Batch::with_capacity(1);
                    while !stop.load(Ordering::Relaxed) {
                        let from = random.random_range(0..range);
                        let until = random
                            .random_bool(0.7)
                            .then(|| random.random_range(0..range));
                        let forward = random.random_bool(0.5);
                        let direction = if forward {
                            Direction::Forward
                        } else {
                            Direction::Backward
                        };
                        batch.set_capacity(random.random_range(1..120));
                        let include = random.random_bool(0.5);
                        let edge = &keys[from as usize];
                        let bound = if include {
                            Bound::Included(edge)
                        } else {
                            Bound::Excluded(edge)
                        };
                        let end = until.map(|at| &keys[at as usize][..]);
                        shared.with(|tree| {
                            tree.scan_batch_until(bound, end, direction, &mut batch)
                        });
                        let seen: Vec<u64> = batch.iter().map(|(_, value)| value).collect();
                        for (found, value) in batch.iter() {
                            assert_eq!(found, &keys[value as usize][..]);
                        }
                        let sorted = seen.is_sorted_by(|a, b| if forward { a < b } else { a > b });
                        assert!(sorted, "{shape} {direction:?} {seen:?}");
                        // The range the batch tells about.
                        let mut last = if forward { range - 1 } else { 0 };
                        if batch.is_exhausted() {
                            last = until.unwrap_or(last);
                        } else {
                            last = *seen.last().expect("not exhausted");
                            if let Some(until) = until {
                                last = if forward { last.min(until) } else { last.max(until) };
                            }
                        }
                        let (low, high) = if forward { (from, last) } else { (last, from) };
                        let mut at = 0;
                        let mut in_order = seen.clone();
                        in_order.sort();
                        for wanted in low..high.saturating_add(1).max(low) {
                            if !is_kept(wanted) || (wanted == from && !include) {
                                continue;
                            }
                            while at < in_order.len() && in_order[at] < wanted {
                                at += 1;
                            }
                            assert!(
                                in_order.get(at) == Some(&wanted),
                                "{shape} {direction:?} from {from} until {until:?}: {wanted} in {seen:?}"
                            );
                        }
                        let some = random.random_range(0..range / 4) * 4;
                        if is_kept(some) {
                            let found = shared.with(|tree| tree.get(&keys[some as usize]));
                            assert_eq!(found, Some(some));
                        }
                        scans.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            std::thread::sleep(std::time::Duration::from_secs_f64(seconds()));
            stop.store(true, Ordering::Relaxed);
        });
        println!("shape {shape}, {range}: {scans:?} scans, {changes:?} changes");
        shared.with(|tree| {
            tree.verify().expect("the tree is sound");
            // SAFETY: all other threads are gone.
            unsafe { tree.clear() };
        });
    }
}
