//! The index against other ordered maps: `cargo bench -p mot_index --features crossbeam --bench
//! compare [-- WORD ...]`.
//!
//! Words choose what runs: names of maps (`mot`, `masstree`, ...), of keys (`integers`, ...), of
//! work (`get`, ...; a change is a remove and an insert), `keys=N`, `rounds=N`, `threads=N`,
//! `times=N` for so many times the operations of a round, and `from=N` for scans that begin with
//! the first N bytes of keys instead of whole ones.
//!
//! Before times are taken some scans of each map are compared with the sorted keys; what is wrong
//! is told below the table. (The `masstree` crate, 0.9.5, begins elsewhere where a scan's first key
//! leads through several layers, which is less work: compare scans of URLs with `from=16`.)
//!
//! All maps are filled with the same keys in the same random order and asked the same things.
//! Rounds go over all maps in turn, so that what else the machine does hits them alike; times are
//! the threads' own processor time, and the median of the rounds counts. Every map is on the same
//! allocator and pins its epoch once for 64 operations. Bytes are what the allocator was asked for,
//! divided by entries, the copy of the key included where the map needs one.
//!
//! The allocator is mimalloc, which the `masstree` crate's own figures are taken with;
//! `MOT_BENCH_ALLOCATOR=system` in the environment asks for the system's. With glibc's, a map pays
//! for each block that is to be aligned to more than 16 bytes: it takes the slow way there, which
//! neither the engine's arena nor other modern allocators have, and of which a map is free that
//! pools its nodes.

mod keys;
mod maps;

use keys::Keys;
use maps::{MAPS, Ordered};
use mimalloc::MiMalloc;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicI64, AtomicU8, Ordering};

/// One of two allocators, counting.
struct Counting;

static BYTES: AtomicI64 = AtomicI64::new(0);
/// Which allocator serves the process: not chosen yet, or one of the following two.
static CHOSEN: AtomicU8 = AtomicU8::new(0);
const MIMALLOC: u8 = 1;
const SYSTEM: u8 = 2;

/// Whether the system's allocator serves, from the first block on to the last.
#[inline]
fn is_system() -> bool {
    match CHOSEN.load(Ordering::Relaxed) {
        0 => choose(),
        chosen => chosen == SYSTEM,
    }
}

/// Chooses, while there is one thread still.
#[cold]
fn choose() -> bool {
    // SAFETY: a C string, and nobody changes the environment before `main`. std's way to ask would
    // allocate.
    let asked = unsafe { libc::getenv(c"MOT_BENCH_ALLOCATOR".as_ptr()) };
    // SAFETY: what `getenv` returns is null or a C string.
    let is_system = !asked.is_null() && unsafe { std::ffi::CStr::from_ptr(asked) } == c"system";
    CHOSEN.store(if is_system { SYSTEM } else { MIMALLOC }, Ordering::Relaxed);
    is_system
}

// SAFETY: passes everything on to one allocator, always the same.
unsafe impl GlobalAlloc for Counting {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe {
            if is_system() {
                System.alloc(layout)
            } else {
                MiMalloc.alloc(layout)
            }
        }
    }

    #[inline]
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe {
            if is_system() {
                System.dealloc(at, layout)
            } else {
                MiMalloc.dealloc(at, layout)
            }
        }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const SEED: u64 = 7;
/// What a round asks of each map and thread.
const GETS: usize = 200_000;
const CHANGES: usize = 100_000;
const SHORT_SCANS: usize = 20_000;
const LONG_SCANS: usize = 5_000;
const WORK: [&str; 5] = ["insert", "get", "change", "scan10", "scan100"];

/// Processor time of the calling thread.
fn thread_nanos() -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes to the place given.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(failed, 0);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Nanoseconds of processor time for one of `count` operations on each of several threads.
fn timed(threads: usize, count: usize, work: impl Fn(usize) + Sync) -> f64 {
    let nanos: f64 = std::thread::scope(|scope| {
        let work = &work;
        let timed = move |thread| {
            let begin = thread_nanos();
            work(thread);
            thread_nanos() - begin
        };
        let handles: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || timed(thread)))
            .collect();
        handles
            .into_iter()
            .map(|handle| handle.join().expect("the thread is content"))
            .sum()
    });
    nanos / (threads * count) as f64
}

/// Scans that are looked at.
const SCANS_CHECKED: usize = 200;

/// How many of some scans read the keys that follow the one they begin at.
fn right_scans(map: &dyn Ordered, keys: &Keys, from: usize) -> usize {
    const ENTRIES: usize = 100;
    let mut sorted: Vec<&[u8]> = keys.iter().map(|(key, _)| key).collect();
    sorted.sort_unstable();
    let picked = begins(&picks(keys, 0, 0, SCANS_CHECKED), from);
    let is_right = |(key, _): &(&[u8], u64)| {
        let begin = sorted.partition_point(|other| other < key);
        let expected = &sorted[begin..(begin + ENTRIES).min(sorted.len())];
        map.keys_from(key, ENTRIES) == expected
    };
    picked.iter().filter(is_right).count()
}

/// The keys' first bytes.
fn begins(keys: &Keys, bytes: usize) -> Keys {
    let mut begins = Keys::default();
    for (key, number) in keys.iter() {
        begins.push(&key[..bytes.min(key.len())], number);
    }
    begins
}

/// The keys a thread asks for in a round.
fn picks(keys: &Keys, round: usize, thread: usize, count: usize) -> Keys {
    let mut random = StdRng::seed_from_u64(SEED + (round * 64 + thread) as u64);
    keys.pick((0..count).map(|_| random.random_range(0..keys.len())))
}

/// Every thread's operations on its own share of the keys, in the order of `keys`.
fn share(thread: usize, threads: usize, keys: usize) -> std::ops::Range<usize> {
    thread * keys / threads..(thread + 1) * keys / threads
}

fn round(
    map: &dyn Ordered,
    keys: &Keys,
    round: usize,
    threads: usize,
    (times, from): (usize, usize),
    work: &[&str],
) -> [f64; 4] {
    let runs = |name| work.contains(&name);
    let each = |count: usize, work: &(dyn Fn(&Keys) + Sync)| {
        let picked: Vec<Keys> = (0..threads)
            .map(|thread| picks(keys, round, thread, count))
            .collect();
        timed(threads, count, |thread| work(&picked[thread]))
    };
    let scans = |count: usize, entries: usize| {
        let picked: Vec<Keys> = (0..threads)
            .map(|thread| begins(&picks(keys, round, thread, count), from))
            .collect();
        timed(threads, count, |thread| map.scan(&picked[thread], entries))
    };
    let get = if runs("get") {
        each(GETS * times, &|picked| map.get(picked))
    } else {
        0.0
    };
    // Removed and put back by its own thread: the map is the same after the round.
    let count = CHANGES / threads;
    let own: Vec<Keys> = (0..threads)
        .map(|thread| {
            let own = share(thread, threads, keys.len());
            let stride = (own.len() / count).max(1);
            keys.pick(own.skip(round % stride).step_by(stride).take(count))
        })
        .collect();
    let change = if runs("change") {
        timed(threads, own[0].len(), |thread| map.change(&own[thread]))
    } else {
        0.0
    };
    let short = if runs("scan10") {
        scans(SHORT_SCANS * times, 10)
    } else {
        0.0
    };
    let long = if runs("scan100") {
        scans(LONG_SCANS * times, 100)
    } else {
        0.0
    };
    [get, change, short, long]
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with("--"))
        .collect();
    let number = |name: &str, default: usize| {
        let found = words
            .iter()
            .find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        found.map_or(default, |text| text.parse().expect("a number"))
    };
    let (count, rounds, threads) = (
        number("keys", 1_000_000),
        number("rounds", 7),
        number("threads", 1),
    );
    let chosen = |names: &[&'static str]| -> Vec<&'static str> {
        let any = words.iter().any(|word| names.contains(&word.as_str()));
        names
            .iter()
            .copied()
            .filter(|name| !any || words.iter().any(|word| word == name))
            .collect()
    };
    let work = chosen(&WORK);
    let (times_more, from) = (number("times", 1), number("from", usize::MAX));
    println!(
        "{count} keys, {rounds} rounds, {threads} threads, seed {SEED}, {}; ns of processor time an operation",
        if is_system() {
            "the system's allocator"
        } else {
            "mimalloc"
        }
    );
    let names: Vec<&'static str> = MAPS.iter().map(|(name, _)| *name).collect();
    for kind in chosen(&keys::KINDS.map(|(name, _)| name)) {
        let keys = keys::of(kind, count, SEED);
        let names: Vec<&str> = chosen(&names)
            .into_iter()
            .filter(|name| *name != "congee" || keys.get(0).0.len() == 8)
            .collect();
        let shares: Vec<Keys> = (0..threads)
            .map(|thread| keys.pick(share(thread, threads, keys.len())))
            .collect();
        let mut times = vec![vec![Vec::new(); WORK.len()]; names.len()];
        let mut bytes = vec![0.0; names.len()];
        let mut right = Vec::new();
        let mut maps: Vec<Option<Box<dyn Ordered>>> = names.iter().map(|_| None).collect();
        for at in 0..rounds {
            for (number, name) in names.iter().enumerate() {
                let create = MAPS
                    .iter()
                    .find(|(known, _)| known == name)
                    .expect("chosen of these")
                    .1;
                maps[number] = None;
                let before = BYTES.load(Ordering::Relaxed);
                let map = create();
                let insert = timed(threads, keys.len() / threads, |thread| {
                    map.fill(&shares[thread])
                });
                bytes[number] = (BYTES.load(Ordering::Relaxed) - before) as f64 / keys.len() as f64;
                times[number][0].push(insert);
                maps[number] = Some(map);
            }
            for (number, map) in maps.iter().enumerate() {
                let map = map.as_deref().expect("just filled");
                if at == 0 && work.iter().any(|work| work.starts_with("scan")) {
                    right.push(right_scans(map, &keys, from));
                }
                for (done, nanos) in round(map, &keys, at, threads, (times_more, from), &work)
                    .into_iter()
                    .enumerate()
                {
                    times[number][done + 1].push(nanos);
                }
            }
        }
        println!("\n| {kind} | {} | bytes a key |", WORK.join(" | "));
        println!("|---|{}---|", "---|".repeat(WORK.len()));
        for ((name, times), bytes) in names.iter().zip(&mut times).zip(&bytes) {
            let cells: Vec<String> = times
                .iter_mut()
                .map(|times| format!("{:.0}", median(times)))
                .collect();
            println!("| {name} | {} | {bytes:.1} |", cells.join(" | "));
        }
        for (name, right) in names.iter().zip(&right) {
            if *right < SCANS_CHECKED {
                println!("{name}: {right} of {SCANS_CHECKED} scans of {kind} read the right keys");
            }
        }
    }
}
