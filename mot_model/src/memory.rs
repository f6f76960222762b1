//! What a load may return: the stores to each place in the order in which they happened, and what
//! each thread knows of.
//!
//! Vector clocks, as race detectors and Miri's emulation of weak memory have them. A store
//! remembers who made it and when, and what its maker had synchronized with, if it was a release. A
//! load may return the newest store or an older one, down to the newest that the thread knows of:
//! one that happened before the load, or that was read by something that did.

use core::sync::atomic::Ordering;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

/// Threads of a run, the one that starts the others included.
const THREADS: usize = 8;
/// Stores to one place that are remembered.
const STORES: usize = 6;
/// One load in so many looks at older stores, where there are any it may return.
const STALE_EVERY: u64 = 3;

type Clock = [u32; THREADS];

fn join(clock: &mut Clock, other: &Clock) {
    for (mine, theirs) in clock.iter_mut().zip(other) {
        *mine = (*mine).max(*theirs);
    }
}

struct Store {
    value: u64,
    /// Who made it and when; time 0 happened before everything.
    thread: usize,
    time: u32,
    /// What an acquiring load of it synchronizes with.
    release: Clock,
    /// The last load of it by each thread; 0 for none.
    loads: Clock,
}

#[derive(Clone, Copy, Default)]
struct Thread {
    now: Clock,
    /// What relaxed loads have read, for an acquire fence to come.
    to_acquire: Clock,
    /// What the last release fence published, for relaxed stores to come.
    released: Clock,
}

#[derive(Default)]
struct Memory {
    places: HashMap<usize, Vec<Store>>,
    threads: [Thread; THREADS],
    /// What sequentially consistent fences have passed on to one another.
    sequential: Clock,
    /// Blocks that were freed: address and length.
    freed: BTreeMap<usize, usize>,
}

thread_local! {
    /// The memory of the run, if one is under way on this thread of the machine.
    static MEMORY: RefCell<Option<Memory>> = const { RefCell::new(None) };
}

/// Begins a run with nothing known; `false` ends it.
pub(crate) fn reset(running: bool) {
    MEMORY.with(|memory| *memory.borrow_mut() = running.then(Memory::default));
}

pub(crate) fn is_running() -> bool {
    MEMORY.with(|memory| memory.borrow().is_some())
}

fn with<R>(act: impl FnOnce(&mut Memory, usize) -> R) -> R {
    let me = usize::from(shuttle::current::me());
    assert!(me < THREADS, "too many threads for a model");
    MEMORY.with(|memory| {
        let mut memory = memory.borrow_mut();
        let memory = memory.as_mut().expect("a run is under way");
        memory.threads[me].now[me] += 1;
        act(memory, me)
    })
}

fn acquires(order: Ordering) -> bool {
    matches!(
        order,
        Ordering::Acquire | Ordering::AcqRel | Ordering::SeqCst
    )
}

fn releases(order: Ordering) -> bool {
    matches!(
        order,
        Ordering::Release | Ordering::AcqRel | Ordering::SeqCst
    )
}

impl Memory {
    /// The stores to a place whose bytes are `actual` now. What was written to it without the
    /// atomics counts as known to everybody.
    fn place(&mut self, address: usize, actual: u64) -> &mut Vec<Store> {
        let inside = self.freed.range(..=address).next_back();
        if let Some((&begin, &bytes)) = inside
            && address < begin + bytes
        {
            panic!("freed memory is used: {address:#x}, in a block of {bytes} bytes");
        }
        let stores = self.places.entry(address).or_default();
        if stores.last().is_none_or(|newest| newest.value != actual) {
            stores.clear();
            stores.push(Store {
                value: actual,
                thread: 0,
                time: 0,
                release: Clock::default(),
                loads: Clock::default(),
            });
        }
        stores
    }

    fn sequential_fence(&mut self, me: usize) {
        let thread = &mut self.threads[me];
        join(&mut thread.now, &thread.to_acquire);
        join(&mut thread.now, &self.sequential);
        self.sequential = thread.now;
        thread.released = thread.now;
    }

    fn read(&mut self, me: usize, address: usize, back: usize, order: Ordering) -> u64 {
        let thread = &mut self.threads[me];
        let stores = self.places.get_mut(&address).expect("looked at before");
        let at = stores.len() - 1 - back;
        let store = &mut stores[at];
        store.loads[me] = thread.now[me];
        if acquires(order) {
            join(&mut thread.now, &store.release);
        }
        join(&mut thread.to_acquire, &store.release);
        store.value
    }

    /// How many stores a load may look back.
    fn oldest(&mut self, me: usize, address: usize, actual: u64) -> usize {
        let now = self.threads[me].now;
        let stores = self.place(address, actual);
        let known = stores.iter().rev().position(|store| {
            let read_before =
                (0..THREADS).any(|by| store.loads[by] != 0 && store.loads[by] <= now[by]);
            store.time <= now[store.thread] || read_before
        });
        known.unwrap_or(stores.len() - 1)
    }

    fn write(&mut self, me: usize, address: usize, value: u64, order: Ordering, carried: Clock) {
        let thread = self.threads[me];
        let mut release = if releases(order) {
            thread.now
        } else {
            thread.released
        };
        join(&mut release, &carried);
        let stores = self.places.get_mut(&address).expect("looked at before");
        if stores.len() == STORES {
            stores.remove(0);
        }
        stores.push(Store {
            value,
            thread: me,
            time: thread.now[me],
            release,
            loads: Clock::default(),
        });
    }
}

pub(crate) fn load(address: usize, actual: u64, order: Ordering) -> u64 {
    with(|memory, me| {
        if order == Ordering::SeqCst {
            // It sees what is in the order of such accesses, and adds nothing to it: it is no fence
            // for stores before it.
            let sequential = memory.sequential;
            join(&mut memory.threads[me].now, &sequential);
        }
        let oldest = memory.oldest(me, address, actual) as u64;
        let mut back = 0;
        if oldest > 0 && random().is_multiple_of(STALE_EVERY) {
            back = random() % (oldest + 1);
        }
        memory.read(me, address, back as usize, order)
    })
}

pub(crate) fn store(address: usize, actual: u64, value: u64, order: Ordering) {
    with(|memory, me| {
        memory.place(address, actual);
        memory.write(me, address, value, order, Clock::default());
        if order == Ordering::SeqCst {
            memory.sequential_fence(me);
        }
    });
}

/// A read-modify-write always reads the newest store; `None` makes it a load.
pub(crate) fn update(
    address: usize,
    actual: u64,
    order: Ordering,
    failure: Ordering,
    change: impl FnOnce(u64) -> Option<u64>,
) -> (u64, Option<u64>) {
    with(|memory, me| {
        if order == Ordering::SeqCst {
            memory.sequential_fence(me);
        }
        memory.place(address, actual);
        let new = change(actual);
        memory.read(me, address, 0, if new.is_some() { order } else { failure });
        if let Some(value) = new {
            let newest = memory.places[&address].last().expect("it was read");
            // What the store read released goes on with the new one.
            let carried = newest.release;
            memory.write(me, address, value, order, carried);
        }
        if order == Ordering::SeqCst {
            memory.sequential_fence(me);
        }
        (actual, new)
    })
}

pub(crate) fn fence(order: Ordering) {
    with(|memory, me| {
        if order == Ordering::SeqCst {
            memory.sequential_fence(me);
            return;
        }
        let thread = &mut memory.threads[me];
        if acquires(order) {
            join(&mut thread.now, &thread.to_acquire);
        }
        if releases(order) {
            thread.released = thread.now;
        }
    });
}

/// What a thread knows, for another that begins or goes on after it.
pub(crate) fn knowledge() -> Clock {
    with(|memory, me| memory.threads[me].now)
}

pub(crate) fn learn(clock: &Clock) {
    with(|memory, me| join(&mut memory.threads[me].now, clock));
}

fn random() -> u64 {
    shuttle::rand::RngCore::next_u64(&mut shuttle::rand::thread_rng())
}

/// A block was given back: from now on an access to it fails the run.
pub fn freed(address: usize, bytes: usize) {
    if is_running() {
        with(|memory, _| {
            memory.freed.insert(address, bytes);
        });
    }
}

/// A block was handed out again. Its bytes are what they are, for everybody.
pub fn allocated(address: usize, bytes: usize) {
    if is_running() {
        with(|memory, _| {
            let end = address + bytes;
            let inside: Vec<usize> = memory
                .freed
                .range(..end)
                .rev()
                .take_while(|(begin, bytes)| **begin + **bytes > address)
                .map(|(begin, _)| *begin)
                .collect();
            for begin in inside {
                memory.freed.remove(&begin);
            }
        });
    }
}
