//! What happens to the server.

use crate::server::{terminal_backends, workers};
use std::time::{Duration, Instant};
use tpcc::cluster::{Cluster, Shutdown};
use tpcc::failure::{Failure, Result};
use tpcc::random::TpccRng;
use tpcc::target::Target;

/// The ways a server can end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Event {
    /// kill -9 of the postmaster.
    KillPostmaster,
    /// kill -9 of one backend: the postmaster throws everyone out and recovers by itself.
    KillBackend,
    /// The same with one of the server's own processes: a worker of the extension, the
    /// checkpointer, the WAL writer.
    KillWorker,
    /// Immediate shutdown.
    Immediate,
    /// Fast shutdown under load.
    Fast,
    /// The clients end of their own will, then a smart shutdown.
    SmartAfterClientsLeft,
    /// kill -9 of the postmaster while a CHECKPOINT runs.
    KillDuringCheckpoint,
    /// kill -9 of the postmaster, and again while it recovers.
    DoubleCrash,
}

impl Event {
    /// Draws one; plain kills are the most frequent.
    pub fn draw(rng: &mut TpccRng) -> Self {
        match rng.uniform(1, 100) {
            1..=25 => Event::KillPostmaster,
            26..=36 => Event::KillBackend,
            37..=44 => Event::KillWorker,
            45..=52 => Event::Immediate,
            53..=64 => Event::Fast,
            65..=74 => Event::SmartAfterClientsLeft,
            75..=87 => Event::KillDuringCheckpoint,
            _ => Event::DoubleCrash,
        }
    }

    /// Makes it happen.
    pub fn strike(self, cluster: &mut Cluster, target: &Target, rng: &mut TpccRng) -> Result<()> {
        match self {
            Event::KillPostmaster | Event::DoubleCrash => cluster.kill_postmaster().map(|_| ()),
            Event::Immediate => cluster.stop(Shutdown::Immediate),
            Event::Fast => cluster.stop(Shutdown::Fast),
            Event::SmartAfterClientsLeft => cluster.stop(Shutdown::Smart),
            Event::KillBackend => kill_one(cluster, &terminal_backends(target)?, rng),
            Event::KillWorker => kill_one(cluster, &workers(cluster, target.engine)?, rng),
            Event::KillDuringCheckpoint => {
                let mut client = target.client()?;
                let checkpoint = std::thread::spawn(move || client.batch_execute("CHECKPOINT"));
                std::thread::sleep(Duration::from_millis(rng.uniform(0, 60) as u64));
                let killed = cluster.kill_postmaster();
                // Finished before the kill or cut off by it: both are fine.
                let _ = checkpoint.join();
                killed.map(|_| ())
            }
        }
    }

    /// Brings the server back; returns how long it took to answer.
    pub fn start_again(self, cluster: &mut Cluster, rng: &mut TpccRng) -> Result<Duration> {
        if matches!(self, Event::KillBackend | Event::KillWorker) {
            let start = Instant::now();
            cluster.wait_until_ready("SELECT 1")?;
            return Ok(start.elapsed());
        }
        if self == Event::DoubleCrash {
            for _ in 0..rng.uniform(1, 3) {
                cluster.start()?;
                std::thread::sleep(Duration::from_millis(rng.uniform(0, 400) as u64));
                cluster.kill_postmaster()?;
            }
        }
        cluster.start_and_wait()
    }
}

fn kill_one(cluster: &Cluster, candidates: &[i32], rng: &mut TpccRng) -> Result<()> {
    let chosen = rng.uniform(0, candidates.len() as i32 - 1) as usize;
    if cluster.kill_child(candidates[chosen])? {
        return Ok(());
    }
    Err(Failure::unexpected(
        "the process to kill is not the server's child",
    ))
}
