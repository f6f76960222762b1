//! Replay workers: threads that apply the log, each for its share of the rows.
//!
//! Every worker reads every record and applies the changes of its own rows. Which worker a row
//! belongs to never changes. So the changes of one row are applied in the order of the log, and
//! those of different rows in any order (README.md).
//!
//! Contract: workers run with all signals blocked and call nothing of PostgreSQL. They never wait
//! for another worker, nor for their process. So a process that waits for them waits for the
//! processor, or for memory. They end when the [`Stopper`] says so, and nothing of the process may
//! go away before.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use super::queue::{Batch, Queue};
use super::replay::Replayer;
use crate::engine::Engine;
use crate::engine::REPLAY_WORKERS_MAX;
use crate::errors::EngineError;
use crate::ids::{Lsn, RowId, TableId, Xid};
use crate::memory::ArenaFull;
use crate::pause::reach_in_replay;
use crate::session::Session;
use crate::threads::SignalsBlocked;

/// Rows of so many neighbouring row ids belong to one worker: they share cache lines and a bit of
/// the directory, and when they were inserted one after the other also leaves of indexes, at which
/// workers would meet row by row.
const NEIGHBOURS_SHIFT: u32 = 9;

/// The worker of a row. In turns, so that a bulk load is spread evenly within each record; small
/// tables begin at different workers.
fn worker_of(table: TableId, row_id: RowId, workers: usize) -> usize {
    ((table.0 + (row_id.0 >> NEIGHBOURS_SHIFT)) % workers as u64) as usize
}

/// Ends the workers of a replayer, whichever process calls it: also when the process exits below
/// the frames that use them.
#[derive(Clone)]
pub struct Stopper {
    engine: Engine,
    queue: Arc<Queue>,
    threads: Arc<Mutex<Vec<JoinHandle<()>>>>,
}

impl Stopper {
    /// Ends the workers and waits for them. What was handed over and is not applied stays so, and
    /// readers that need it are informed. Idempotent.
    pub fn stop(&self) {
        self.queue.stop();
        let mut threads = self.threads.lock().unwrap_or_else(|lock| lock.into_inner());
        if threads.is_empty() {
            return;
        }
        for thread in threads.drain(..) {
            // A panic was caught and reported inside.
            let _ = thread.join();
        }
        self.engine.root().replay.close();
    }
}

/// Running workers, seen from the dispatcher.
pub(super) struct ReplayWorkers {
    pub(super) queue: Arc<Queue>,
    pub(super) stopper: Stopper,
}

impl ReplayWorkers {
    /// Starts so many workers. Fails if one of them cannot begin; then there are none.
    pub(super) fn start(engine: Engine, count: usize) -> Result<ReplayWorkers, EngineError> {
        let count = count.clamp(1, REPLAY_WORKERS_MAX);
        let queue = Arc::new(Queue::new(count));
        let stopper = Stopper {
            engine,
            queue: Arc::clone(&queue),
            threads: Arc::default(),
        };
        engine.root().replay.open(count);
        let (joined, all_joined) = channel();
        let mut begun = Ok(());
        let blocked = SignalsBlocked::new();
        for number in 0..count {
            let worker = ReplayWorker {
                number,
                count,
                engine,
                queue: Arc::clone(&queue),
            };
            let joined = joined.clone();
            let spawned = std::thread::Builder::new()
                .name(format!("mot replay {number}"))
                .spawn(move || worker.run(joined));
            let mut threads = stopper
                .threads
                .lock()
                .unwrap_or_else(|lock| lock.into_inner());
            match spawned {
                Ok(thread) => threads.push(thread),
                Err(_) => begun = Err(EngineError::OutOfProcessMemory),
            }
        }
        drop(blocked);
        drop(joined);
        // Ends when each has reported, or ended without a word.
        for outcome in all_joined {
            begun = begun.and(outcome);
        }
        if let Err(error) = begun {
            stopper.stop();
            engine.root().replay.close();
            return Err(error);
        }
        Ok(ReplayWorkers { queue, stopper })
    }
}

struct ReplayWorker {
    number: usize,
    count: usize,
    engine: Engine,
    queue: Arc<Queue>,
}

impl ReplayWorker {
    fn run(&self, joined: Sender<Result<(), EngineError>>) {
        let session = match self.engine.join_for_recovery() {
            Ok(session) => session,
            Err(error) => {
                // The starter of the workers waits for this.
                let _ = joined.send(Err(error));
                return;
            }
        };
        let _ = joined.send(Ok(()));
        drop(joined);
        let mut at = Lsn::NONE;
        let worked = catch_unwind(AssertUnwindSafe(|| self.work(&session, &mut at)));
        let error = match worked {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error,
            Err(_) => EngineError::Corrupt {
                what: "a thread that replays has panicked",
            },
        };
        self.queue.fail(at, error);
    }

    /// Applies batches until the worker is to end. `at` says how far it is, should it fail.
    fn work(&self, session: &Session, at: &mut Lsn) -> Result<(), EngineError> {
        let mut replayer = Replayer::new(1);
        let mut definitions = 0;
        while let Some(batch) = self.queue.take(self.number) {
            if batch.definitions != definitions {
                definitions = batch.definitions;
                replayer.forget_tables();
            }
            if !self.apply(session, &mut replayer, &batch, at)? {
                return Ok(());
            }
            self.queue.done(self.number, batch);
        }
        Ok(())
    }

    /// Applies this worker's share of a batch; false: the worker is to end.
    fn apply(
        &self,
        session: &Session,
        replayer: &mut Replayer,
        batch: &Batch,
        at: &mut Lsn,
    ) -> Result<bool, EngineError> {
        let positions = &self.engine.root().replay;
        for (record, lsn, xid) in batch.records() {
            *at = lsn;
            reach_in_replay();
            let mut stalled: Option<Stalled<'_>> = None;
            let mut answers = 0;
            while let Err(error) = self.apply_record(session, replayer, record, lsn, xid) {
                let EngineError::ArenaFull(full) = error else {
                    return Err(error);
                };
                stalled.get_or_insert_with(|| Stalled::begin(self, lsn, full));
                match self.queue.stall(self.number, lsn, full, answers) {
                    Some(call) => answers = call,
                    None => return Ok(false),
                }
            }
            drop(stalled);
            positions.applied(self.number, lsn);
        }
        Ok(true)
    }

    fn apply_record(
        &self,
        session: &Session,
        replayer: &mut Replayer,
        record: &[u8],
        lsn: Lsn,
        xid: Xid,
    ) -> Result<(), EngineError> {
        replayer.apply_share(session, record, lsn, xid, |table, row_id| {
            worker_of(table, row_id, self.count) == self.number
        })
    }
}

/// The worker waits for memory, for all to see, as long as this lives.
struct Stalled<'a>(&'a ReplayWorker);

impl<'a> Stalled<'a> {
    fn begin(worker: &'a ReplayWorker, lsn: Lsn, full: ArenaFull) -> Self {
        let positions = &worker.engine.root().replay;
        positions.stall_begins(lsn, full.requested);
        Stalled(worker)
    }
}

impl Drop for Stalled<'_> {
    fn drop(&mut self) {
        self.0.engine.root().replay.stall_ends();
        self.0.queue.end_stall(self.0.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Neighbours stay together, and every worker gets its share.
    #[test]
    fn workers_share_the_rows() {
        const WORKERS: usize = 3;
        let mut rows = [0u64; WORKERS];
        for table in 1..=100 {
            for row_id in 0..(3 * WORKERS as u64) << NEIGHBOURS_SHIFT {
                let worker = worker_of(TableId(table), RowId(row_id), WORKERS);
                let first = row_id >> NEIGHBOURS_SHIFT << NEIGHBOURS_SHIFT;
                assert_eq!(worker, worker_of(TableId(table), RowId(first), WORKERS));
                rows[worker] += 1;
            }
        }
        let fair = rows.iter().sum::<u64>() / WORKERS as u64;
        assert!(
            rows.iter().all(|rows| rows.abs_diff(fair) < fair / 10),
            "{rows:?}"
        );
    }
}
