//! How far a checkpoint has come, for views.
//!
//! Contract: written by the checkpoint's threads with relaxed stores, read by any process; figures
//! are indicative while it runs. All-zero is the state of no checkpoint, so it may lie in zeroed
//! shared memory.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// What a checkpoint is doing.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Phase {
    /// There is none.
    Idle = 0,
    /// It waits for sessions between a log record and its marks.
    WaitingForWriters = 1,
    /// Threads write rows; then their files are synced.
    WritingRows = 2,
    /// WAL is being made durable.
    FlushingWal = 3,
    /// The manifest is put in place.
    WritingManifest = 4,
    /// Complete; files of older ones are being removed.
    RemovingFiles = 5,
}

/// See the module.
#[repr(C)]
#[derive(Default)]
pub struct CheckpointProgress {
    phase: AtomicU32,
    /// Which.
    pub generation: AtomicU64,
    /// Its redo position.
    pub redo: AtomicU64,
    /// Tables, and those whose ranges are all done.
    pub tables_total: AtomicU64,
    pub tables_done: AtomicU64,
    /// Ranges of rows to write, and written so far.
    pub ranges_total: AtomicU64,
    pub ranges_done: AtomicU64,
    /// Ranges taken over from older files.
    pub ranges_reused: AtomicU64,
    /// Bytes written so far, and taken over.
    pub bytes_written: AtomicU64,
    pub bytes_reused: AtomicU64,
}

impl CheckpointProgress {
    /// What it is doing now.
    pub fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Acquire) {
            1 => Phase::WaitingForWriters,
            2 => Phase::WritingRows,
            3 => Phase::FlushingWal,
            4 => Phase::WritingManifest,
            5 => Phase::RemovingFiles,
            _ => Phase::Idle,
        }
    }

    /// Continues with another phase.
    pub fn enter(&self, phase: Phase) {
        self.phase.store(phase as u32, Ordering::Release);
    }

    /// A new checkpoint begins.
    pub fn begin(&self, generation: u64, redo: u64) {
        let figures = [
            &self.tables_total,
            &self.tables_done,
            &self.ranges_total,
            &self.ranges_done,
            &self.ranges_reused,
            &self.bytes_written,
            &self.bytes_reused,
        ];
        for figure in figures {
            figure.store(0, Ordering::Relaxed);
        }
        self.generation.store(generation, Ordering::Relaxed);
        self.redo.store(redo, Ordering::Relaxed);
        self.enter(Phase::WaitingForWriters);
    }
}
