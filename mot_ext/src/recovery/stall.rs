//! Messages about a replay that waits for memory: in the server log and in the process title.
//!
//! - The process that replays reports while it is in `Replay::apply` or `Replay::drain`: it meets
//!   the stall itself.
//! - The checkpoint worker reports when threads wait for memory while that process waits for the
//!   next WAL record. PostgreSQL runs no code of ours in the startup process then: its latch could
//!   be set, but its loop calls no extension. The record at which the threads wait may be the last
//!   for a long time. The startup process makes room, as long as no session reads, when it has the
//!   next record.
//!
//! The first keeps `RecoveryStats::waits_for_memory` up meanwhile, and then the worker is silent.
//! The worker also waits a moment before it reports. So both report at one time only if the one
//! begins while the other ends.
use super::replay::has_readers;
use crate::pg::text::show_lsn;
use crate::pg::title;
use crate::transaction::applied::FULL_REPORT;
use crate::{errors, shared_memory};
use mot_engine::Lsn;
use mot_engine::memory::ArenaFull;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// So long the threads' stall must last before the worker reports it: sweeping ends most of them
/// sooner.
const WORKER_PATIENCE: Duration = Duration::from_millis(500);

/// Says that replay waits for memory, as long as this lives.
pub struct Waiting {
    title_before: String,
    reported: Option<Instant>,
}

impl Waiting {
    pub fn begin(end: Lsn) -> Waiting {
        let title_before = title::current();
        title::show(&format!("waiting for mot.max_memory at {}", show_lsn(end)));
        Waiting {
            title_before,
            reported: None,
        }
    }

    /// Writes the log line, if it is time for one.
    pub fn report(&mut self, end: Lsn, full: ArenaFull) {
        if self.reported.is_none_or(|at| at.elapsed() >= FULL_REPORT) {
            self.reported = Some(Instant::now());
            errors::report_replay_waits(&show_lsn(end), full, has_readers());
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        title::show(&self.title_before);
    }
}

/// The worker's eye on the threads.
#[derive(Default)]
pub struct StallWatch {
    since: Option<Instant>,
    waiting: Option<Waiting>,
}

impl StallWatch {
    /// Called at every turn of the worker.
    pub fn look(&mut self) {
        let engine = shared_memory::engine().expect("preloaded");
        let is_reported = || {
            let stats = &shared_memory::control().recovery;
            stats.waits_for_memory.load(Ordering::Relaxed)
        };
        let Some((at, full)) = engine.replay_stall().filter(|_| !is_reported()) else {
            *self = StallWatch::default();
            return;
        };
        let since = *self.since.get_or_insert_with(Instant::now);
        if since.elapsed() >= WORKER_PATIENCE {
            let waiting = self.waiting.get_or_insert_with(|| Waiting::begin(at));
            waiting.report(at, full);
        }
    }
}
