//! How far the log was handed over to the replay workers, and how far each of them has come.
//!
//! Positions lie in the shared root, because readers and the checkpoint worker, which wait for
//! them, are other processes. A position is the end of a record. The dispatcher alone stores
//! `handed`, before a worker can see the record. Each worker stores its own `applied` after its
//! last change of a record is complete. Every worker passes every record, also one that has nothing
//! for it. So a position is reached when all workers have passed it.
//!
//! A reader takes its snapshot first, then reads `handed`. If the snapshot takes a transaction for
//! ended, its records were handed over before the server replayed its end, hence before `handed`
//! was read.

use super::Engine;
use crate::ids::Lsn;
use crate::memory::{ArenaFull, LimitOf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Most workers there can be: each reads every record, so more of them do not get further.
pub const REPLAY_WORKERS_MAX: usize = 16;

/// A word on a cache line of its own.
#[repr(C, align(64))]
struct Line(AtomicU64);

/// All-zero is the first state: nothing was handed over, no worker runs.
#[repr(C)]
pub(crate) struct Positions {
    handed: Line,
    workers: AtomicU32,
    /// Workers that wait for memory.
    stalled: AtomicU32,
    /// At which record the one stands that began last, and how much it asked for.
    stalled_at: AtomicU64,
    requested: AtomicU64,
    /// The workers ended without having applied everything.
    given_up: AtomicU32,
    applied: [Line; REPLAY_WORKERS_MAX],
}

/// Whether replay has applied what was handed over up to a position.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Reached {
    /// It has.
    Yes,
    /// It is at work.
    NotYet,
    /// It waits until there is room in the arena.
    NoMemory,
    /// It never will: the process that replays has ended, or ends.
    GivenUp,
}

impl Positions {
    /// Workers begin; nothing is under way.
    pub(crate) fn open(&self, workers: usize) {
        let handed = self.handed.0.load(Ordering::SeqCst);
        for line in &self.applied {
            line.0.store(handed, Ordering::SeqCst);
        }
        self.workers.store(workers as u32, Ordering::SeqCst);
    }

    /// The workers have ended.
    pub(crate) fn close(&self) {
        if self.reached(Lsn(self.handed.0.load(Ordering::SeqCst))) {
            self.workers.store(0, Ordering::SeqCst);
        } else {
            self.given_up.store(1, Ordering::SeqCst);
        }
        self.stalled.store(0, Ordering::SeqCst);
    }

    pub(crate) fn hand(&self, lsn: Lsn) {
        self.handed.0.store(lsn.0, Ordering::SeqCst);
    }

    pub(crate) fn applied(&self, worker: usize, lsn: Lsn) {
        self.applied[worker].0.store(lsn.0, Ordering::Release);
    }

    pub(crate) fn stall_begins(&self, lsn: Lsn, requested: u64) {
        self.stalled_at.store(lsn.0, Ordering::Relaxed);
        self.requested.store(requested, Ordering::Relaxed);
        // Release: a reader that counts it reads what is above.
        self.stalled.fetch_add(1, Ordering::Release);
    }

    pub(crate) fn stall_ends(&self) {
        self.stalled.fetch_sub(1, Ordering::Relaxed);
    }

    fn reached(&self, lsn: Lsn) -> bool {
        let workers = self.workers.load(Ordering::Acquire) as usize;
        self.applied[..workers]
            .iter()
            .all(|line| line.0.load(Ordering::Acquire) >= lsn.0)
    }
}

impl Engine {
    /// Up to where the log was handed over to those that apply it. A reader that reads by a
    /// snapshot taken before this was asked waits until it is reached.
    pub fn replay_handed(self) -> Lsn {
        Lsn(self.root().replay.handed.0.load(Ordering::SeqCst))
    }

    /// Whether everything handed over up to `lsn` is applied.
    pub fn replay_reached(self, lsn: Lsn) -> Reached {
        let positions = &self.root().replay;
        if positions.reached(lsn) {
            Reached::Yes
        } else if positions.given_up.load(Ordering::SeqCst) != 0 {
            Reached::GivenUp
        } else if positions.stalled.load(Ordering::Relaxed) != 0 {
            Reached::NoMemory
        } else {
            Reached::NotYet
        }
    }

    /// Where a worker waits for memory, if one does: for a process that reports it in the
    /// dispatcher's place.
    pub fn replay_stall(self) -> Option<(Lsn, ArenaFull)> {
        let positions = &self.root().replay;
        if positions.stalled.load(Ordering::Acquire) == 0 {
            return None;
        }
        let memory = self.memory();
        let full = ArenaFull {
            used: memory.arena_bytes_used(),
            limit: memory.arena_bytes_limit(),
            requested: positions.requested.load(Ordering::Relaxed),
            limit_of: LimitOf::Arena,
        };
        Some((Lsn(positions.stalled_at.load(Ordering::Relaxed)), full))
    }

    /// Workers that apply the log now.
    pub fn replay_workers(self) -> usize {
        self.root().replay.workers.load(Ordering::Relaxed) as usize
    }
}
