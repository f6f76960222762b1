//! Sessions that write until the server goes away.

use std::time::{Duration, Instant};
use tpcc::failure::{Failure, Result};
use tpcc::random::TpccRng;

/// What the sessions of one round have in common.
#[derive(Clone, Copy)]
pub struct Round {
    /// The suite's seed.
    pub seed: u64,
    pub number: u64,
    /// They end by themselves after so long.
    pub stop_after: Option<Duration>,
}

/// Sessions, and from where on each draws.
#[derive(Clone, Copy)]
pub struct Workers {
    pub count: u64,
    /// Stream of the random numbers of the first worker of the first round.
    pub stream: u64,
}

/// One of them, in one round.
#[derive(Clone, Copy)]
pub struct Worker {
    /// Among those of its round.
    pub number: u64,
    /// Among those of all rounds.
    pub who: u64,
}

impl Workers {
    /// Runs all sessions beside each other: `open` begins one, `step` does one transaction, whose
    /// number it gets.
    pub fn run<S>(
        self,
        round: Round,
        open: impl Fn(Worker) -> Result<S> + Sync,
        step: impl Fn(&mut S, &mut TpccRng, u64) -> Result<()> + Sync,
    ) -> Result<()> {
        let (open, step) = (&open, &step);
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..self.count)
                .map(|number| {
                    let who = round.number * self.count + number;
                    let rng = TpccRng::new(round.seed, self.stream + who);
                    scope.spawn(move || one(round, rng, || open(Worker { number, who }), step))
                })
                .collect();
            workers.into_iter().try_for_each(|worker| {
                worker
                    .join()
                    .unwrap_or_else(|_| Err(Failure::unexpected("a worker panicked")))
            })
        })
    }
}

fn one<S>(
    round: Round,
    mut rng: TpccRng,
    open: impl Fn() -> Result<S>,
    step: impl Fn(&mut S, &mut TpccRng, u64) -> Result<()>,
) -> Result<()> {
    let start = Instant::now();
    let mut session = match open() {
        // The server may be gone before the first connection: a short round.
        Err(Failure::Disconnected(_)) => return Ok(()),
        other => other?,
    };
    for number in 1.. {
        if round
            .stop_after
            .is_some_and(|limit| start.elapsed() >= limit)
        {
            break;
        }
        match step(&mut session, &mut rng, number) {
            Ok(()) => {}
            Err(Failure::Disconnected(_)) => break,
            Err(other) => return Err(other),
        }
    }
    Ok(())
}
