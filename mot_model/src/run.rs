//! Runs: many interleavings of one body, and tests that a body notices what is broken.

use crate::memory;
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, FailurePersistence, MaxSteps, Runner};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Once};
use std::time::Instant;

/// The seed of a run unless `MOT_MODEL_SEED` says another: a test that passes goes on passing.
const SEED: u64 = 1;
/// Accesses of one run after which somebody waits for ever.
const STEPS_MAX: usize = 200_000;
/// The stack of a coroutine: the engine's own frames are small, those of a debug build's formatting
/// are not.
const STACK_BYTES: usize = 1 << 19;
/// Runs of one kind before some of the other.
const TURN_RUNS: usize = 250;
/// Preemptions a run by priorities makes at most; most races need two or three.
const PREEMPTIONS: usize = 3;

thread_local! {
    static BROKEN: Cell<&'static str> = const { Cell::new("") };
}

/// Whether the run is to leave this step out.
pub fn is_broken(step: &'static str) -> bool {
    BROKEN.with(Cell::get) == step
}

/// Lets the scheduler choose who goes on; `false` outside a run, and while a failed one is taken
/// down.
pub(crate) fn switch() -> bool {
    if !memory::is_running() || std::thread::panicking() {
        return false;
    }
    shuttle_engine::runtime::thread::switch();
    true
}

/// Waits for another thread: it cannot go on by itself.
pub fn yield_now() {
    if memory::is_running() && !std::thread::panicking() {
        shuttle::thread::yield_now();
    } else {
        std::thread::yield_now();
    }
}

/// Runs the closures beside each other to their ends.
pub fn threads(bodies: Vec<Box<dyn FnOnce() + Send>>) {
    let begin = memory::knowledge();
    let handles: Vec<_> = bodies
        .into_iter()
        .map(|body| {
            shuttle::thread::spawn(move || {
                memory::learn(&begin);
                body();
                memory::knowledge()
            })
        })
        .collect();
    for handle in handles {
        memory::learn(&handle.join().expect("the thread is content"));
    }
}

fn setting(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(
        value
            .parse()
            .unwrap_or_else(|_| panic!("{name} must be a number, not {value}")),
    )
}

fn config() -> Config {
    let mut config = Config::new();
    config.stack_size = STACK_BYTES;
    config.failure_persistence = FailurePersistence::None;
    config.max_steps = MaxSteps::FailAfter(STEPS_MAX);
    config.silence_warnings = true;
    config
        .ungraceful_shutdown_config
        .immediately_return_on_panic = true;
    config
}

/// Runs `body` under `runs` interleavings, half of each kind; counts those begun in `begun`.
fn run(runs: usize, begun: &Arc<AtomicUsize>, body: &Arc<impl Fn() + Send + Sync + 'static>) {
    let seed = setting("MOT_MODEL_SEED").unwrap_or(SEED);
    let of_a_run = || {
        let (begun, body) = (begun.clone(), body.clone());
        move || {
            begun.fetch_add(1, Ordering::Relaxed);
            memory::reset(true);
            body();
            memory::reset(false);
        }
    };
    // In turns, since what one kind finds at once may take the other long.
    for turn in 0..runs.div_ceil(TURN_RUNS) {
        let left = (runs - turn * TURN_RUNS).min(TURN_RUNS);
        let seed = seed.wrapping_add(turn as u64);
        if turn % 2 == 0 {
            Runner::new(RandomScheduler::new_from_seed(seed, left), config()).run(of_a_run());
        } else {
            let pct = PctScheduler::new_from_seed(seed, PREEMPTIONS, left);
            Runner::new(pct, config()).run(of_a_run());
        }
    }
}

/// Runs `body` under many interleavings; it fails with the first that does. `MOT_MODEL_RUNS`
/// multiplies how many, `MOT_MODEL_SEED` is where they begin.
pub fn explore(name: &str, runs: usize, body: impl Fn() + Send + Sync + 'static) {
    let runs = runs * setting("MOT_MODEL_RUNS").unwrap_or(1) as usize;
    let begun = Arc::new(AtomicUsize::new(0));
    let start = Instant::now();
    let body = Arc::new(body);
    let outcome = catch_unwind(AssertUnwindSafe(|| run(runs, &begun, &body)));
    memory::reset(false);
    let begun = begun.load(Ordering::Relaxed);
    if let Err(failure) = outcome {
        println!("model {name}: failed in interleaving {begun}");
        std::panic::resume_unwind(failure);
    }
    let seconds = start.elapsed().as_secs_f64();
    println!("model {name}: {begun} interleavings in {seconds:.1} s");
}

/// Runs nothing, once, before there are children. What the scheduler makes for a process at its
/// first run (a panic hook, under a lock) another thread may just be making as this one forks: the
/// child would wait for that thread, which it does not have, for ever.
fn make_ready() {
    static READY: Once = Once::new();
    READY.call_once(|| {
        Runner::new(RandomScheduler::new_from_seed(SEED, 1), config()).run(|| {});
    });
}

/// Fails unless `body` does when `step` is left out, within so many interleavings. In a process of
/// its own: what is broken may follow any address, and dying of it counts as noticing.
pub fn finds(step: &'static str, runs: usize, body: impl Fn() + Send + Sync + 'static) {
    let count = SharedCount::new();
    make_ready();
    // SAFETY: the child runs `body` on its one thread and leaves by `_exit`; it prints nothing, and
    // what the scheduler locks once was made, so it needs no lock that another thread may have
    // held.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "no process for a model");
    if child == 0 {
        std::panic::set_hook(Box::new(|_| {}));
        // SAFETY: plain system calls.
        unsafe { libc::dup2(libc::open(c"/dev/null".as_ptr(), libc::O_WRONLY), 2) };
        BROKEN.with(|broken| broken.set(step));
        let begun = Arc::new(AtomicUsize::new(0));
        let noted = begun.clone();
        let place = count.0.as_ptr() as usize;
        let body = Arc::new(move || {
            let begun = noted.load(Ordering::Relaxed);
            // SAFETY: the count's page is shared with the parent, which keeps it.
            unsafe { (*(place as *const AtomicUsize)).store(begun, Ordering::Relaxed) };
            body();
        });
        let outcome = catch_unwind(AssertUnwindSafe(|| run(runs, &begun, &body)));
        // SAFETY: a child ends so that nothing of its parent is torn down.
        unsafe { libc::_exit(i32::from(outcome.is_err())) };
    }
    let mut status = 0;
    // SAFETY: our child.
    let waited = unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!(waited, child, "the child can be waited for");
    let begun = count.get();
    assert_ne!(
        status, 0,
        "{step} left out, and {begun} interleavings did not notice"
    );
    println!("model without {step}: noticed in interleaving {begun}");
}

/// A number in memory that a child shares.
struct SharedCount(std::ptr::NonNull<AtomicUsize>);

impl SharedCount {
    fn new() -> SharedCount {
        // SAFETY: a fresh mapping, zeroed, large enough for the number.
        let page = unsafe {
            let (protection, flags) = (
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
            );
            libc::mmap(
                std::ptr::null_mut(),
                size_of::<AtomicUsize>(),
                protection,
                flags,
                -1,
                0,
            )
        };
        assert_ne!(page, libc::MAP_FAILED, "no page for a model's count");
        SharedCount(std::ptr::NonNull::new(page.cast()).expect("not a null mapping"))
    }

    fn get(&self) -> usize {
        // SAFETY: the mapping lives as long as the value.
        unsafe { self.0.as_ref() }.load(Ordering::Relaxed)
    }
}

impl Drop for SharedCount {
    fn drop(&mut self) {
        // SAFETY: mapped in `new`, used by nobody after this.
        unsafe { libc::munmap(self.0.as_ptr().cast(), size_of::<AtomicUsize>()) };
    }
}
