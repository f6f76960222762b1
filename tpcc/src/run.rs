//! A run: starts the terminals, lets them warm up, measures, stops them and merges what they saw.

use crate::failure::{Failure, Result};
use crate::inputs::Inputs;
use crate::ledger::{LedgerWriter, read_baselines, run_name};
use crate::progress::Progress;
use crate::random::TpccRng;
use crate::report::RunReport;
use crate::scale::{DISTRICTS, LoadedConfig};
use crate::stats::TerminalStats;
use crate::target::Target;
use crate::terminal::{Mode, Phase, Shared, Terminal, TerminalConfig};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Sender, channel};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How often the coordinator looks whether all terminals have ended early.
const POLL: Duration = Duration::from_millis(20);

/// What to run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Number of terminals, each a thread and a connection.
    pub terminals: u32,
    /// Length of the measurement.
    pub duration: Duration,
    /// Time before it in which nothing is recorded.
    pub warmup: Duration,
    /// Statements or procedures.
    pub mode: Mode,
    /// Seed of all input data.
    pub seed: u64,
    /// Where to keep a ledger.
    pub ledger: Option<PathBuf>,
    /// Terminals stay at one warehouse instead of drawing one per transaction.
    pub fixed_warehouse: bool,
    /// Transactions per second that all terminals together begin at most; as many as they can
    /// without.
    pub rate: Option<f64>,
    /// Print a progress line.
    pub progress: bool,
}

/// Moments of a run at which the caller may look at the server.
pub trait Observer {
    /// The measurement begins now.
    fn measurement_begins(&mut self) {}
    /// Time has passed in the measurement; `ended` transactions have ended since it began.
    fn tick(&mut self, _passed: Duration, _ended: u64) {}
    /// The measurement has ended now.
    fn measurement_ended(&mut self) {}
}

/// An observer that looks at nothing.
impl Observer for () {}

/// Tells another thread when all terminals are connected and at work.
struct Begun(Sender<()>);

impl Observer for Begun {
    fn measurement_begins(&mut self) {
        // Nobody may wait.
        let _ = self.0.send(());
    }
}

/// Starts a run in a thread of `scope` and comes back when all its terminals are at work, however
/// long connecting took, or when it has failed, as who joins it is told: for who means to end the
/// server under load.
pub fn start<'scope>(
    scope: &'scope Scope<'scope, '_>,
    target: &'scope Target,
    options: &'scope RunOptions,
) -> ScopedJoinHandle<'scope, Result<RunReport>> {
    let (begun, has_begun) = channel();
    let running = scope.spawn(move || run(target, options, &mut Begun(begun)));
    // An error: it has failed before, and its end of the channel is gone.
    let _ = has_begun.recv();
    running
}

/// Runs the workload of `options` against `target`.
pub fn run(
    target: &Target,
    options: &RunOptions,
    observer: &mut dyn Observer,
) -> Result<RunReport> {
    let mut client = target.client()?;
    let config = LoadedConfig::read(&mut client)?;
    let since_epoch = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let name = run_name(since_epoch.as_millis() as u64);
    let ledger = match &options.ledger {
        None => None,
        Some(path) => {
            let baselines = read_baselines(&mut client)?;
            let made =
                LedgerWriter::create(path, &name, &target.schema, options.terminals, &baselines);
            Some(made.map_err(|error| Failure::unexpected(format!("{}: {error}", path.display())))?)
        }
    };
    drop(client);

    // Stream 0 of the seed makes the constants, stream n + 1 belongs to terminal n.
    let constants = TpccRng::new(options.seed, 0).run_constants(config.constants.c_last);
    let mut terminals = Vec::new();
    for number in 0..options.terminals {
        let turn = number as i32;
        let terminal = TerminalConfig {
            terminal: number,
            district: turn / config.scale.warehouses % DISTRICTS + 1,
            home: options
                .fixed_warehouse
                .then_some(turn % config.scale.warehouses + 1),
            run: &name,
            ledger: ledger.as_ref(),
            pause: options
                .rate
                .map(|rate| Duration::from_secs_f64(f64::from(options.terminals) / rate)),
        };
        let inputs = Inputs::new(config.scale, constants);
        let rng = TpccRng::new(options.seed, u64::from(number) + 1);
        terminals.push(Terminal::new(
            terminal,
            target.session()?,
            options.mode,
            inputs,
            rng,
        )?);
    }

    let shared = Shared::default();
    let mut merged = TerminalStats::default();
    let measured = std::thread::scope(|scope| {
        let shared = &shared;
        let threads: Vec<_> = terminals
            .into_iter()
            .map(|terminal| scope.spawn(move || terminal.run(shared)))
            .collect();
        let all_ended = || threads.iter().all(|thread| thread.is_finished());
        let mut progress = Progress::new(options.progress);
        let mut wait = |length: Duration, look: &mut dyn FnMut(Duration)| {
            let start = Instant::now();
            while start.elapsed() < length && !all_ended() {
                std::thread::sleep(POLL.min(length.saturating_sub(start.elapsed())));
                progress.tick(shared);
                look(start.elapsed());
            }
            start.elapsed()
        };
        wait(options.warmup, &mut |_| {});
        observer.measurement_begins();
        shared.enter(Phase::Measure);
        let before = shared.ended.load(Ordering::Relaxed);
        let measured = wait(options.duration, &mut |passed| {
            observer.tick(passed, shared.ended.load(Ordering::Relaxed) - before);
        });
        shared.enter(Phase::Stop);
        observer.measurement_ended();
        progress.end();
        for thread in threads {
            match thread.join() {
                Ok(stats) => merged.merge(stats),
                Err(_) => merged.end_with(&Failure::unexpected("a terminal's thread panicked")),
            }
        }
        measured
    });
    Ok(RunReport::new(
        target.engine,
        options,
        config.scale,
        measured,
        &merged,
    ))
}
