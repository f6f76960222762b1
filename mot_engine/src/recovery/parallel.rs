//! Replay with several threads: the dispatcher, which is the process that reads the log.
//!
//! It is called like `Replayer`, by one thread. It applies a record itself, or hands it over to the
//! workers and continues to read. README.md has the protocol. What is decided here:
//!
//! | record | while workers are at work | while they are not |
//! |---|---|---|
//! | Rows, while more of the log is there to be read | handed over | handed over |
//! | Rows, small, at the end of the log | handed over | applied here |
//! | Rows, when the arena is nearly full | applied here once all else is | applied here |
//! | Rows, with one row of many megabytes | applied here once all else is | applied here |
//! | Definitions, and keys put behind rows | applied here once all else is | applied here |
//! | what cannot be read | applied here once all else is | applied here |
//!
//! What is applied here wakes no thread, and no reader waits for it. A row of many megabytes is
//! never copied.

use super::outcomes::resolve_below;
use super::queue::{Trouble, cost};
use super::replay::{Replayer, note_replayed};
use super::workers::{ReplayWorkers, Stopper};
use crate::clock::Clock;
use crate::engine::{Engine, Reached};
use crate::errors::EngineError;
use crate::ids::{Lsn, Xid};
use crate::limits::LOG_RECORD_BYTES_MAX;
use crate::log::{Record, is_logical};
use crate::session::Session;
use crate::transaction::free_pending;
use std::sync::atomic::Ordering;

/// A record up to this is applied by the dispatcher itself at the end of the log.
const SMALL_BYTES: usize = 16 << 10;
/// A longer record, which is one row, is never copied.
const COPIED_BYTES_MAX: usize = 2 * LOG_RECORD_BYTES_MAX;

/// What the caller knows of the log, and of readers.
#[derive(Copy, Clone, Debug)]
pub struct HandOver {
    /// More of the log is there to be read, so it pays to hand over.
    pub is_ahead: bool,
    /// Most bytes that may be handed over and not applied yet. A longer record goes alone.
    pub bytes_max: usize,
    /// Statements may run beside: `Replayer::set_has_readers`.
    pub has_readers: bool,
}

/// Applies records, in the order of the log, with threads. Process-local.
pub struct ParallelReplayer {
    here: Replayer,
    engine: Engine,
    /// Workers to start when they are first needed.
    wanted: usize,
    workers: Option<ReplayWorkers>,
    failed_at: Option<Lsn>,
    could_not_start: Option<EngineError>,
}

impl ParallelReplayer {
    /// A replayer with up to `workers` threads, which begin when the first record is handed over;
    /// 0: it applies everything itself. Indexes are built with `build_threads`.
    pub fn new(engine: Engine, workers: usize, build_threads: usize) -> ParallelReplayer {
        ParallelReplayer {
            here: Replayer::new(build_threads),
            engine,
            wanted: workers,
            workers: None,
            failed_at: None,
            could_not_start: None,
        }
    }

    /// Applies the record that ends at `lsn`, logged by (top-level) transaction `xid`, or hands it
    /// over. `pause` is called while this waits; it may unwind or not return.
    ///
    /// After `ArenaFull` the record is not in yet, and may be given again once there is room; after
    /// `TooManyIndexes`, once `resolve_gone_indexes` has found places. After any other error replay
    /// cannot continue. Either may be of an earlier record (`failed_at`).
    pub fn apply(
        &mut self,
        session: &Session,
        record: &[u8],
        lsn: Lsn,
        xid: Xid,
        how: HandOver,
        pause: &mut dyn FnMut(),
    ) -> Result<(), EngineError> {
        self.failed_at = None;
        if is_logical(record) {
            return Ok(());
        }
        let progress = self.engine.progress();
        if lsn.0 <= progress.replayed_lsn.load(Ordering::Relaxed) {
            return Ok(());
        }
        if !how.has_readers && self.engine.is_short_of_memory() {
            free_pending(session, &mut *pause);
        }
        if self.is_for_workers(record, how) && self.has_workers() {
            let workers = self.workers.as_ref().expect("just asked");
            let waited = workers
                .queue
                .wait_for_room(cost(record), how.bytes_max, pause);
            waited.map_err(|trouble| self.note_failure(trouble))?;
            let workers = self.workers.as_ref().expect("asked above");
            // Before a worker can see the record.
            self.engine.root().replay.hand(lsn);
            workers.queue.put(record, lsn, xid)?;
            note_replayed(self.engine, lsn);
            return Ok(());
        }
        self.drain(pause)?;
        if let (Some(workers), Ok(Record::Definitions(_))) = (&self.workers, Record::parse(record))
        {
            workers.queue.definitions_change();
        }
        self.here.set_has_readers(how.has_readers);
        self.here.apply(session, record, lsn, xid)
    }

    /// [`Replayer::set_next_xid`].
    pub fn set_next_xid(&mut self, next_xid: fn() -> Xid) {
        self.here.set_next_xid(next_xid);
    }

    /// Waits until everything handed over is applied. Errors as of `apply`.
    pub fn drain(&mut self, pause: &mut dyn FnMut()) -> Result<(), EngineError> {
        self.failed_at = None;
        match &self.workers {
            Some(workers) if self.is_at_work() => {
                let waited = workers.queue.wait_until_empty(pause);
                waited.map_err(|trouble| self.note_failure(trouble))
            }
            _ => Ok(()),
        }
    }

    /// Resolves what transactions older than `below` left (`outcomes.rs`). Called before the
    /// server's commit log is truncated there, when all that was handed over is applied (`drain`).
    /// Returns how many versions were resolved.
    pub fn resolve_below(
        &mut self,
        session: &Session,
        clock: &impl Clock,
        below: Xid,
        threads: usize,
    ) -> Result<u64, EngineError> {
        // Tables may go.
        self.here.forget_tables();
        if let Some(workers) = &self.workers {
            workers.queue.definitions_change();
        }
        resolve_below(session, clock, below, threads)
    }

    /// The end of the record that the last error is about, if it is an earlier one than the given
    /// one.
    pub fn failed_at(&self) -> Option<Lsn> {
        self.failed_at
    }

    /// Ends the workers from anywhere, once they run.
    pub fn stopper(&self) -> Option<Stopper> {
        self.workers.as_ref().map(|workers| workers.stopper.clone())
    }

    /// Why there are no workers although some were wanted; reported once.
    pub fn take_start_error(&mut self) -> Option<EngineError> {
        self.could_not_start.take()
    }

    fn is_at_work(&self) -> bool {
        let handed = self.engine.replay_handed();
        self.engine.replay_reached(handed) != Reached::Yes
    }

    fn is_for_workers(&self, record: &[u8], how: HandOver) -> bool {
        let pays = how.is_ahead || record.len() > SMALL_BYTES || self.is_at_work();
        let is_short = self.engine.is_short_of_memory();
        // With little memory the dispatcher applies records itself and stops where memory runs out.
        // So readers do not wait for records that were handed over and cannot be applied.
        self.wanted > 0
            && pays
            && !is_short
            && record.len() <= COPIED_BYTES_MAX
            && matches!(Record::parse(record), Ok(Record::Rows(_)))
    }

    /// Starts the workers if they do not run.
    fn has_workers(&mut self) -> bool {
        if self.workers.is_none() {
            match ReplayWorkers::start(self.engine, self.wanted) {
                Ok(workers) => self.workers = Some(workers),
                Err(error) => {
                    self.wanted = 0;
                    self.could_not_start = Some(error);
                }
            }
        }
        self.workers.is_some()
    }

    fn note_failure(&mut self, trouble: Trouble) -> EngineError {
        let (lsn, error) = match trouble {
            Trouble::Failed(lsn, error) => (lsn, error),
            Trouble::Full(lsn, full) => (lsn, full.into()),
        };
        self.failed_at = Some(lsn);
        error
    }
}

impl Drop for ParallelReplayer {
    fn drop(&mut self) {
        if let Some(workers) = &self.workers {
            workers.stopper.stop();
        }
    }
}
