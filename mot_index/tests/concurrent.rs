//! Four threads at once: keys of one thread are checked fully, shared ones for sanity, scans for
//! order and for entries nobody touches.

use mot_index::{Batch, Bound, Change, Cursor, Direction, Memory, Tree, TreeRoot};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::alloc::Layout;
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

/// Blocks on the heap that are poisoned when the epoch gives them back.
struct PoisoningMemory<'g> {
    guard: &'g crossbeam_epoch::Guard,
    bytes_live: &'g Arc<AtomicI64>,
}

/// Poisons and frees a block.
///
/// # Safety
/// A block of this layout from the heap that nobody can reach any more.
unsafe fn poison(ptr: NonNull<u8>, layout: Layout) {
    // SAFETY: the caller's promise.
    unsafe {
        ptr.as_ptr().write_bytes(0xDD, layout.size());
        std::alloc::dealloc(ptr.as_ptr(), layout);
    }
}

impl Memory for PoisoningMemory<'_> {
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        self.bytes_live
            .fetch_add(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: trees ask for blocks of more than zero bytes.
        NonNull::new(unsafe { std::alloc::alloc(layout) })
    }

    unsafe fn free(&self, ptr: NonNull<u8>, layout: Layout) {
        self.bytes_live
            .fetch_sub(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { poison(ptr, layout) };
    }

    unsafe fn retire(&self, ptr: NonNull<u8>, layout: Layout) {
        self.bytes_live
            .fetch_sub(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller's promise; the closure runs when all pinned now have unpinned.
        unsafe { self.guard.defer_unchecked(move || poison(ptr, layout)) };
    }
}

#[derive(Default)]
struct Shared {
    root: TreeRoot,
    bytes_live: Arc<AtomicI64>,
}

impl Shared {
    fn with<R>(&self, work: impl FnOnce(&Tree<'_, PoisoningMemory<'_>>) -> R) -> R {
        let guard = crossbeam_epoch::pin();
        let memory = PoisoningMemory {
            guard: &guard,
            bytes_live: &self.bytes_live,
        };
        // SAFETY: pinned while `work` runs; all handles on the root are made here.
        let tree = unsafe { Tree::new(&self.root, &memory) };
        work(&tree)
    }

    /// Checks the quiescent tree and empties it.
    fn finish(&self, entries: u64) {
        self.with(|tree| {
            let stats = tree.verify().expect("the tree is sound");
            assert_eq!(stats.entries, entries);
            assert_eq!(
                stats.bytes_used as i64,
                self.bytes_live.load(Ordering::Relaxed)
            );
            // SAFETY: all other threads are gone.
            unsafe { tree.clear() };
        });
        assert_eq!(self.bytes_live.load(Ordering::Relaxed), 0);
    }
}

const THREADS: u64 = 4;

/// The shapes of keys the threads use: a number made into bytes, in the numbers' order.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// Eight bytes.
    Number,
    /// All in one layer some levels below the first.
    Deep,
    /// Many small layers.
    Layers,
    /// Strings that are alone on their slices, or not.
    Text,
    /// Numbers of regions far from each other: narrow leaves, and keys of the next region that
    /// these do not hold.
    Regions,
    /// Numbers in the upper half of a slice, and some with a bit in the lower one.
    Halves,
}

const SHAPES: [Shape; 6] = [
    Shape::Number,
    Shape::Deep,
    Shape::Layers,
    Shape::Text,
    Shape::Regions,
    Shape::Halves,
];

impl Shape {
    fn key(self, number: u64) -> Vec<u8> {
        match self {
            Shape::Number => number.to_be_bytes().to_vec(),
            Shape::Deep => [b"one prefix for all of them", &number.to_be_bytes()[..]].concat(),
            Shape::Layers => [number / 6, number % 6].map(u64::to_be_bytes).concat(),
            Shape::Text => {
                format!("{:07}{}", number / 3, "abc".repeat(number as usize % 3 + 1)).into_bytes()
            }
            Shape::Regions => (((number / 60) << 32) | (number % 60))
                .to_be_bytes()
                .to_vec(),
            Shape::Halves => (number << 32 | u64::from(number % 41 == 5))
                .to_be_bytes()
                .to_vec(),
        }
    }
}

/// Rounds of each thread: enough for many splits and unlinks of every kind.
const ROUNDS: u64 = if cfg!(miri) {
    60
} else if cfg!(feature = "jitter") {
    40_000
} else {
    200_000
};

/// Threads own every fourth number; a small range makes leaves empty out and come back.
#[test]
fn disjoint_keys_are_what_their_thread_made_them() {
    for (shape, range) in SHAPES
        .into_iter()
        .flat_map(|shape| [(shape, 12u64), (shape, 700)])
    {
        let seed = 11 + range;
        println!("{shape:?}, {range} numbers, seed {seed}");
        let shared = Shared::default();
        let entries = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (shared, entries) = (&shared, &entries);
                scope.spawn(move || {
                    let mut random = StdRng::seed_from_u64(seed + thread);
                    let mut model = BTreeMap::new();
                    for round in 0..ROUNDS {
                        // Phases of growing and of shrinking, different for each thread.
                        let insert = if (round / 5_000 + thread) % 2 == 0 {
                            0.8
                        } else {
                            0.2
                        };
                        let number = random.random_range(0..range) * THREADS + thread;
                        let key = shape.key(number);
                        shared.with(|tree| {
                            if random.random_bool(insert) {
                                let old = tree.insert(&key, round);
                                assert_eq!(old, Ok(model.insert(number, round)));
                            } else {
                                assert_eq!(tree.remove(&key), model.remove(&number));
                            }
                            let other = random.random_range(0..range) * THREADS + thread;
                            let value = model.get(&other).copied();
                            assert_eq!(tree.get(&shape.key(other)), value);
                        });
                    }
                    shared.with(|tree| {
                        for (number, value) in &model {
                            assert_eq!(tree.get(&shape.key(*number)), Some(*value));
                        }
                    });
                    entries.fetch_add(model.len() as u64, Ordering::Relaxed);
                });
            }
        });
        shared.finish(entries.into_inner());
    }
}

/// All threads change the same few keys; each counts what it put in and took out.
#[test]
fn shared_keys_change_hands_whole() {
    for shape in SHAPES {
        let seed = 23;
        println!("{shape:?}, seed {seed}");
        let shared = Shared::default();
        let balance = AtomicI64::new(0);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (shared, balance) = (&shared, &balance);
                scope.spawn(move || {
                    let mut random = StdRng::seed_from_u64(seed + thread);
                    for _ in 0..ROUNDS / 2 {
                        let number = random.random_range(0..40u64);
                        let key = shape.key(number);
                        let change = random.random_range(0..4);
                        let added = shared.with(|tree| {
                            tree.update(&key, |old| {
                                // A value names its key, so a mix-up shows.
                                assert!(old.is_none_or(|old| old >> 32 == number));
                                let count = old.map_or(0, |old| old & 0xFFFF_FFFF);
                                match change {
                                    0 => (Change::Keep, 0),
                                    1 => (Change::Remove, -(count as i64)),
                                    _ => (Change::Set(number << 32 | (count + 1)), 1),
                                }
                            })
                        });
                        balance.fetch_add(added.expect("memory is not full"), Ordering::Relaxed);
                        let seen = shared.with(|tree| tree.get(&key));
                        assert!(seen.is_none_or(|seen| seen >> 32 == number));
                    }
                });
            }
        });
        let left = shared.with(|tree| {
            let mut cursor = Cursor::new();
            let (mut entries, mut sum) = (0, 0);
            while let Some((_, value)) = cursor.next(tree) {
                entries += 1;
                sum += (value & 0xFFFF_FFFF) as i64;
            }
            (entries, sum)
        });
        assert_eq!(left.1, balance.into_inner());
        shared.finish(left.0);
    }
}

/// A value of which each part tells of the others.
fn whole_value(part: u64) -> u64 {
    part << 32 | part << 16 | part
}

fn assert_whole(value: u64) {
    assert_eq!(value, whole_value(value & 0xFFFF), "{value:#x} is of two");
}

/// Values are replaced, where leaves are narrow by two stores, and nobody sees half of one.
#[test]
fn values_are_read_whole() {
    const RANGE: u64 = 240;
    for shape in SHAPES {
        let shared = Shared::default();
        let is_kept = |number: u64| number.is_multiple_of(3);
        for number in (0..RANGE).filter(|number| is_kept(*number)) {
            shared.with(|tree| {
                tree.insert(&shape.key(number), whole_value(1))
                    .expect("room")
            });
        }
        let writing = AtomicBool::new(true);
        std::thread::scope(|scope| {
            let writers: Vec<_> = (0..2)
                .map(|thread| {
                    let shared = &shared;
                    scope.spawn(move || {
                        let mut random = StdRng::seed_from_u64(41 + thread);
                        for _ in 0..ROUNDS / 2 {
                            let number = random.random_range(0..RANGE);
                            let value = whole_value(random.random_range(0..1 << 16));
                            let key = shape.key(number);
                            // What is not kept comes and goes, and with it leaves that are narrow
                            // or widened.
                            let insert = is_kept(number) || random.random();
                            if let Some(old) = shared.with(|tree| match insert {
                                true => tree.insert(&key, value).expect("room"),
                                false => tree.remove(&key),
                            }) {
                                assert_whole(old);
                            }
                        }
                    })
                })
                .collect();
            for direction in [Direction::Forward, Direction::Backward] {
                let (shared, writing) = (&shared, &writing);
                scope.spawn(move || {
                    let mut random = StdRng::seed_from_u64(43);
                    let mut batch = Batch::with_capacity(1);
                    while writing.load(Ordering::Relaxed) {
                        let number = random.random_range(0..RANGE / 3) * 3;
                        let key = shape.key(number);
                        shared.with(|tree| {
                            assert_whole(tree.get(&key).expect("it is kept"));
                            let keys = [&key[..], &shape.key(number + 3), &shape.key(0)];
                            tree.get_many(
                                keys.len(),
                                |at| keys[at],
                                |at, value| {
                                    assert!(value.is_some() || at == 1);
                                    value.into_iter().for_each(assert_whole);
                                },
                            );
                            batch.set_capacity(random.random_range(1..40));
                            tree.scan_batch(Bound::Included(&key), direction, &mut batch);
                            batch.iter().for_each(|(_, value)| assert_whole(value));
                        });
                    }
                });
            }
            for writer in writers {
                writer.join().expect("the writer is content");
            }
            writing.store(false, Ordering::Relaxed);
        });
        let stats = shared.with(|tree| tree.verify().expect("the tree is sound"));
        println!("{shape:?}: {stats:?}");
        shared.finish(stats.entries);
    }
}

/// Of each so many numbers the first few are never touched while scans run: the stretches between
/// are long enough for leaves to empty out.
const STRETCH: u64 = 120;
const UNTOUCHED: u64 = 10;

fn is_untouched(number: u64) -> bool {
    number % STRETCH < UNTOUCHED
}

/// Two threads scan both ways while two put stretches of keys in and take them out.
#[test]
fn scans_see_what_nobody_touches() {
    for (shape, range) in SHAPES
        .into_iter()
        .flat_map(|shape| [(shape, 240u64), (shape, 1_200)])
    {
        let seed = 37;
        println!("{shape:?}, {range} numbers, seed {seed}");
        let shared = Shared::default();
        shared.with(|tree| {
            for number in (0..range).filter(|number| is_untouched(*number)) {
                assert_eq!(tree.insert(&shape.key(number), number), Ok(None));
            }
        });
        let writing = AtomicBool::new(true);
        std::thread::scope(|scope| {
            let writers: Vec<_> = (0..2)
                .map(|thread| {
                    let shared = &shared;
                    scope.spawn(move || {
                        let mut random = StdRng::seed_from_u64(seed + thread);
                        for _ in 0..ROUNDS / 40 {
                            let (insert, upwards) = (random.random(), random.random());
                            let first = random.random_range(0..range);
                            let length = random.random_range(0..80);
                            for step in 0..length {
                                let step = if upwards { step } else { length - step };
                                let number = first + step;
                                if number < range && !is_untouched(number) {
                                    change(shared, &shape.key(number), insert, number);
                                }
                            }
                        }
                    })
                })
                .collect();
            for direction in [Direction::Forward, Direction::Backward] {
                let (shared, writing) = (&shared, &writing);
                scope.spawn(move || {
                    let mut random = StdRng::seed_from_u64(seed + 100);
                    let mut cursor = Cursor::new();
                    let mut scans = 0u64;
                    while writing.load(Ordering::Relaxed) || scans < 10 {
                        let from = random.random_range(0..range);
                        let from = if scans.is_multiple_of(4) {
                            None
                        } else {
                            Some(from)
                        };
                        check_scan(shared, shape, range, from, direction, &mut cursor);
                        scans += 1;
                    }
                });
            }
            for writer in writers {
                writer.join().expect("the writer is content");
            }
            writing.store(false, Ordering::Relaxed);
        });
        let entries = shared.with(|tree| tree.verify().expect("the tree is sound").entries);
        shared.finish(entries);
    }
}

fn change(shared: &Shared, key: &[u8], insert: bool, value: u64) {
    shared.with(|tree| {
        if insert {
            tree.insert(key, value).expect("memory is not full");
        } else {
            tree.remove(key);
        }
    });
}

/// One scan from a number (or from the edge) to the other end.
fn check_scan(
    shared: &Shared,
    shape: Shape,
    range: u64,
    from: Option<u64>,
    direction: Direction,
    cursor: &mut Cursor,
) {
    let forward = direction == Direction::Forward;
    let bound_key = from.map(|number| shape.key(number));
    let bound = match &bound_key {
        Some(key) => Bound::Included(key),
        None if forward => Bound::Start,
        None => Bound::End,
    };
    cursor.seek(bound, direction);
    let mut last: Option<u64> = None;
    let mut untouched = Vec::new();
    loop {
        // The epoch is pinned for one step only: the tree changes between refills.
        let step = shared.with(|tree| cursor.next(tree).map(|(key, value)| (key.to_vec(), value)));
        let Some((key, number)) = step else { break };
        assert_eq!(key, shape.key(number), "a key with another key's value");
        let in_order = last.is_none_or(|last| {
            if forward {
                last < number
            } else {
                last > number
            }
        });
        assert!(in_order, "{number} after {last:?}, {direction:?}");
        let behind = from.is_none_or(|from| {
            if forward {
                from <= number
            } else {
                from >= number
            }
        });
        assert!(behind, "{number} from {from:?}, {direction:?}");
        last = Some(number);
        if is_untouched(number) {
            untouched.push(number);
        }
    }
    let mut expected: Vec<u64> = (0..range).filter(|number| is_untouched(*number)).collect();
    if let Some(from) = from {
        expected.retain(|number| {
            if forward {
                *number >= from
            } else {
                *number <= from
            }
        });
    }
    if !forward {
        expected.reverse();
    }
    assert_eq!(untouched, expected, "from {from:?}, {direction:?}");
}
