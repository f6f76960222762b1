//! Transactions without SQL: TPC-C and YCSB on the engine's own calls, with a transaction manager
//! and a log that cost as little as they can.
//!
//! `cargo bench -p mot_engine --bench transactions [-- WORD ...]`: `tpcc`, `ycsb`, `warehouses=N`,
//! `threads=N`, `seconds=N`, `rounds=N`, `rows=N`, `single` (TPC-C looks each row up alone),
//! `steps=N` (so many transactions a round, for counting instructions). Figures are per second of
//! the threads' own processor time, so that they are per core, whatever else the machine does; the
//! median of the rounds counts, the spread is beside it.

mod tpcc;
mod worker;
mod world;
mod ycsb;

use mot_engine::memory::{ArenaOptions, HugePages, Memory, Region};
use mot_engine::{Engine, State};
use std::time::{Duration, Instant};
use worker::Worker;
use world::World;

const ARENA_BYTES: usize = 6 << 30;
/// Transactions between two looks at the time.
const STEPS: u64 = 200;

/// Processor time of the calling thread, in seconds.
fn thread_seconds() -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes to the place given.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(failed, 0);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn arena() -> (Region, Engine) {
    let region = Region::create(ARENA_BYTES, HugePages::Try).expect("memory");
    // SAFETY: the region is fresh and outlives the engine.
    let memory = unsafe { Memory::format(&region, &ArenaOptions::default()) }.expect("formats");
    let engine = Engine::format(memory).expect("formats");
    engine.set_state(State::Ready);
    (region, engine)
}

/// Steps of one thread until its processor time is used up, or so many: how many, in how many
/// seconds.
fn run(settings: &Settings, mut step: impl FnMut()) -> (u64, f64) {
    let seconds = settings.seconds;
    let begin = thread_seconds();
    let deadline = Instant::now() + Duration::from_secs_f64(seconds * 20.0);
    let mut steps = 0;
    loop {
        for _ in 0..STEPS {
            step();
        }
        steps += STEPS;
        let spent = thread_seconds() - begin;
        let is_over = match settings.steps {
            0 => spent >= seconds || Instant::now() > deadline,
            wanted => steps >= wanted,
        };
        if is_over {
            return (steps, spent);
        }
    }
}

/// All threads' steps for each second of processor time.
fn on_threads(threads: usize, work: impl Fn(usize) -> (u64, f64) + Sync) -> f64 {
    let (steps, seconds) = std::thread::scope(|scope| {
        let work = &work;
        let handles: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || work(thread)))
            .collect();
        let done = handles
            .into_iter()
            .map(|handle| handle.join().expect("the thread is content"));
        done.fold((0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    });
    steps as f64 / seconds
}

fn median(values: &mut [f64]) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    (
        values[values.len() / 2],
        values[0],
        values[values.len() - 1],
    )
}

fn report(name: &str, mut rates: Vec<f64>, notes: &str) {
    let (middle, least, most) = median(&mut rates);
    println!("| {name} | {middle:.0} | {least:.0} - {most:.0} | {notes} |");
}

struct Settings {
    warehouses: u32,
    threads: usize,
    seconds: f64,
    rounds: usize,
    rows: u32,
    single: bool,
    /// 0: as many as fit into the time.
    steps: u64,
}

fn bench_tpcc(settings: &Settings) {
    let (_region, engine) = arena();
    let world = World::new();
    let tables = tpcc::load(&mut Worker::new(engine, &world, 0), settings.warehouses);
    let before = engine.memory().report();
    println!("loaded: {} MiB in the arena", before.arena_bytes_used >> 20);
    for contended in [false, true] {
        let mut rates = Vec::new();
        let (log, mut waits) = (world.log_bytes(), 0);
        let counts = std::sync::Mutex::new(([0u64; tpcc::NAMES.len()], 0u64, 0u64));
        for round in 0..settings.rounds {
            rates.push(on_threads(settings.threads, |thread| {
                let mut worker = Worker::new(engine, &world, thread);
                // Contended: all at one warehouse. Else each at its own, as far as there are
                // enough.
                let home = if contended {
                    1
                } else {
                    thread as u32 % settings.warehouses + 1
                };
                let mut terminal = tpcc::Terminal::new(
                    &mut worker,
                    &tables,
                    home,
                    (round * 8 + thread) as u64,
                    !settings.single,
                );
                let ran = run(settings, || terminal.step());
                let mut counts = counts.lock().expect("nobody panicked");
                for (sum, done) in counts.0.iter_mut().zip(terminal.done) {
                    *sum += done;
                }
                counts.1 += terminal.rolled_back;
                counts.2 += terminal.worker.waits;
                ran
            }));
        }
        let (done, rolled_back, waited) = *counts.lock().expect("nobody panicked");
        waits += waited;
        let all: u64 = done.iter().sum::<u64>() + rolled_back;
        let bytes = (world.log_bytes() - log) / all.max(1);
        let name = format!(
            "TPC-C, {} warehouses, {} threads, rows found {}, {}",
            settings.warehouses,
            settings.threads,
            if settings.single {
                "one by one"
            } else {
                "together"
            },
            if contended {
                "one warehouse"
            } else {
                "own warehouses"
            }
        );
        report(
            &name,
            rates,
            &format!("{bytes} log bytes a transaction, {waits} waits in {all}"),
        );
    }
}

fn bench_ycsb(settings: &Settings) {
    let (_region, engine) = arena();
    let world = World::new();
    let table = ycsb::load(&mut Worker::new(engine, &world, 0), settings.rows);
    let zipf = ycsb::Zipf::new(settings.rows);
    for operations in [1, 16] {
        for skewed in [false, true] {
            for workload in ycsb::WORKLOADS {
                let rates = (0..settings.rounds)
                    .map(|round| {
                        on_threads(settings.threads, |thread| {
                            let mut worker = Worker::new(engine, &world, thread);
                            let zipf = skewed.then_some(&zipf);
                            let seed = (1 + round * 8 + thread) as u64;
                            let mut client = ycsb::Client::new(
                                &mut worker,
                                table.clone(),
                                settings.rows,
                                zipf,
                                operations,
                                seed,
                            );
                            run(settings, || client.step(workload))
                        })
                    })
                    .collect();
                let keys = if skewed { "Zipf 0.99" } else { "uniform" };
                let name = format!(
                    "YCSB {workload}, {keys}, {} rows, {} threads",
                    settings.rows, settings.threads
                );
                report(
                    &name,
                    rates,
                    &format!("{operations} operations a transaction"),
                );
            }
        }
    }
}

fn main() {
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with("--"))
        .collect();
    let number = |name: &str, default: f64| {
        let found = words
            .iter()
            .find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        found.map_or(default, |text| text.parse().expect("a number"))
    };
    let named = |name: &str| words.iter().any(|word| word == name);
    let settings = Settings {
        warehouses: number("warehouses", 2.0) as u32,
        threads: number("threads", 1.0) as usize,
        seconds: number("seconds", 2.0),
        rounds: number("rounds", 5.0) as usize,
        rows: number("rows", 1e6) as u32,
        single: named("single"),
        steps: number("steps", 0.0) as u64,
    };
    let any = named("tpcc") || named("ycsb");
    println!("| what | transactions for a second of one core | spread | |");
    println!("|---|---|---|---|");
    if named("tpcc") || !any {
        bench_tpcc(&settings);
    }
    if named("ycsb") || !any {
        bench_ycsb(&settings);
    }
}
