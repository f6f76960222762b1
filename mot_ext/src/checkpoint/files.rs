//! Writing a checkpoint from the server: what the engine's writer needs to know of PostgreSQL, and
//! what the log and the views say of it.
//!
//! - The directory is `mot` under PGDATA, so base backups, pg_rewind and file copies carry it
//!   along. A symbolic link in its place is refused at the server's start, and whenever it is
//!   opened: base backups pass over it.
//! - Unchanged rows are not written again: a checkpoint of an idle mot is a manifest.
//! - Old generations go when the new one is complete, except while a backup may be copying them
//!   (`copies`).
mod newest;
mod wal_and_clog;

use super::base_backups;
use crate::errors;
use crate::pg::checkpointer::{self, Checkpointer};
use crate::pg::text::show_lsn;
use crate::pg::{self, interrupts};
use crate::shared_memory::server_phase::{has_ended_beside_timeline, server_is_stopping};
use crate::shared_memory::{self, CheckpointStats, settings};
use crate::transaction::{clock, session};
use mot_engine::checkpoint::{self, CheckpointContext, DIRECTORY, Manifest, Pace, Phase, Timer};
use mot_engine::disk::{DirectoryDisk, Disk};
use mot_engine::{Engine, EngineError, Lsn, Xid};
use pgrx::prelude::*;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

pub use newest::{fingerprint, newest};
pub use wal_and_clog::{RECOVERY_ENDED, clog_begins};
use wal_and_clog::{committed_among, flush};

/// File that says that there has been a complete checkpoint.
const MARK: &str = "has-held-checkpoints";

/// Pause before what the disk refused is tried again, and between checks for a shutdown meanwhile.
pub const RETRY: Duration = Duration::from_secs(5);
const POLL_MS: i64 = 10;

/// Opens the directory, making it at the first start.
pub fn open() -> Result<DirectoryDisk, EngineError> {
    DirectoryDisk::open(DIRECTORY).map_err(|source| EngineError::Io {
        action: "open",
        file: DIRECTORY.into(),
        source,
    })
}

/// In the postmaster, in the data directory: does not let the server start with a symbolic link in
/// place of the directory. pg_basebackup sends links in pg_tblspc alone, and pg_wal as a directory;
/// any other it passes over with a WARNING, and the restored server would begin without its rows.
pub fn refuse_link() {
    if std::path::Path::new(DIRECTORY).is_symlink() {
        errors::directory_is_link(DIRECTORY);
    }
}

/// The timeline of a position, in the history of the current one. May raise.
///
/// In recovery that is the timeline that it heads for (known to the startup process only) or the
/// replay position's. When replay has ended, the server has chosen the timeline that it continues
/// with, and its last checkpoint of recovery is on that one already.
fn timeline_of(position: Lsn) -> u32 {
    let mut timeline = 0;
    // SAFETY: reads shared positions.
    unsafe {
        if !pg_sys::RecoveryInProgress() {
            timeline = pg::version::insertion_timeline();
        } else {
            let replayed = pg_sys::GetXLogReplayRecPtr(&mut timeline);
            timeline = timeline.max(pg_sys::recoveryTargetTLI);
            if shared_memory::control().redo_ended.load(Ordering::SeqCst) && position.0 >= replayed
            {
                // Chosen by now if there is a redo position at or after the end of replay; 0
                // before.
                timeline = timeline.max(pg::version::insertion_timeline());
            }
        }
    }
    pg::timeline::timeline_of(position.0, timeline)
}

/// An engine's error with the place of its file in the data directory.
pub fn located(mut error: EngineError) -> EngineError {
    if let EngineError::Io { file, .. }
    | EngineError::Damaged { file, .. }
    | EngineError::OtherCluster { file, .. } = &mut error
        && file != DIRECTORY
    {
        *file = match file.as_str() {
            "." => DIRECTORY.into(),
            name => format!("{DIRECTORY}/{name}"),
        };
    }
    error
}

/// A checkpoint under way, for the view; no longer when it is dropped.
struct UnderWay {
    stats: &'static CheckpointStats,
    /// How long before it the previous attempt began; None: it is the first since the server
    /// started.
    since_previous: Option<Duration>,
}

impl UnderWay {
    fn begin() -> Self {
        let stats = &shared_memory::control().checkpoint;
        // SAFETY: reads the clock.
        let now = unsafe { pg_sys::GetCurrentTimestamp() } as u64;
        let previous = stats.started_at.swap(now, Ordering::Relaxed);
        let since_previous = Duration::from_micros(now.saturating_sub(previous));
        UnderWay {
            stats,
            since_previous: (previous != 0).then_some(since_previous),
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.stats.progress.enter(Phase::Idle);
    }
}

/// Part of the time in which PostgreSQL writes its buffers that ours takes, so that both are done
/// together.
const SPREAD: f64 = 0.8;

/// Time for a checkpoint with a bandwidth or a schedule, and whether a process waits for it. Asked
/// by threads, so it calls nothing of PostgreSQL.
struct ServerTimer {
    start: Instant,
    checkpointer: Option<Checkpointer>,
    /// A last checkpoint hurries from the beginning.
    last: bool,
    /// It began while the server recovered: when replay has ended, the last checkpoint of recovery
    /// waits at the gate.
    in_recovery: bool,
    engine: Engine,
}

impl Timer for ServerTimer {
    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    fn sleep(&self, time: Duration) {
        std::thread::sleep(time);
    }

    fn must_hurry(&self) -> bool {
        self.last
            || crate::pg::worker::shutdown_asked()
            || (self.in_recovery && shared_memory::control().redo_ended.load(Ordering::SeqCst))
    }

    fn has_time(&self) -> bool {
        let checkpointer = self.checkpointer.as_ref();
        checkpointer.is_some_and(Checkpointer::takes_its_time)
            // Tables whose rows are still to be written keep their memory until they are.
            && !self.engine.dropped_tables_are_held()
            && !self.engine.is_short_of_memory()
    }

    fn must_end(&self) -> bool {
        pg::is_orphaned()
    }
}

/// Writes a checkpoint that covers `redo`; `last` says that nothing will be logged after it.
pub fn write(redo: Lsn, last: bool) -> Result<(), EngineError> {
    write_unlocated(redo, last).map_err(located)
}

fn write_unlocated(redo: Lsn, last: bool) -> Result<(), EngineError> {
    let under_way = UnderWay::begin();
    let progress = &under_way.stats.progress;
    let session = session::join_uncounted();
    let timer = ServerTimer {
        start: Instant::now(),
        checkpointer: Checkpointer::find(),
        last,
        // SAFETY: reads shared state; never raises.
        in_recovery: unsafe { pg_sys::RecoveryInProgress() },
        engine: session.engine(),
    };
    // A restartpoint's time is another one than a checkpoint's, and what a promotion waits for
    // should not be long.
    let spread = match timer.in_recovery {
        true => Duration::ZERO,
        false => checkpointer::time_to_spread(under_way.since_previous).mul_f64(SPREAD),
    };
    let disk = open()?;
    // An attempt that did not remove its files itself must not fill the disk together
    // with those that follow.
    if let Err(error) = remove_unnamed(&disk) {
        errors::report_files_stay(&located(error));
    }
    // Before the walk: what older transactions left is resolved.
    let known_from = clog_begins();
    let mut outcomes = |open: &[Xid]| committed_among(open, known_from);
    let mut flush = |rows| flush(redo, rows);
    let mut context = CheckpointContext {
        // SAFETY: reads the control file's copy in shared memory; never raises.
        system_id: unsafe { pg_sys::GetSystemIdentifier() },
        timeline: timeline_of(redo),
        redo,
        generation: checkpoint::next_generation(&disk)?,
        finished_below: clock::fresh_horizon(),
        is_final: last,
        threads: settings::CHECKPOINT_WORKERS.get() as usize,
        pace: Pace::limited(settings::checkpoint_bandwidth(), &timer).spread_over(spread, &timer),
        progress,
        outcomes: &mut outcomes,
        flush: &mut flush,
    };
    let written = checkpoint::write(session, &disk, &mut context)?;
    if let Some(error) = &written.base_lost {
        errors::report_base_lost(error);
    }
    progress.enter(Phase::RemovingFiles);
    // The checkpoint is complete, whatever becomes of older ones' files.
    let removed = remove_old(&disk).unwrap_or_else(|error| {
        errors::report_files_stay(&located(error));
        0
    });
    record_finished(redo, &written, removed, timer.start);
    leave_mark(&disk)
}

/// Takes the mark "nothing was logged after it" off the newest checkpoint, and moves it to `redo`:
/// before the first statement after a clean start, and before replay. A disk that is full now may
/// not be for ever: the tables are loaded, so it is tried until it succeeds or the server shuts
/// down. (A worker that alone is asked to end tries again: it would leave the server as failed.)
pub fn begin_from(manifest: &Manifest, redo: Lsn) -> Result<(), EngineError> {
    until_begun(|| try_begin_from(manifest, redo))
}

/// Writes a checkpoint without tables at `redo`, before which nothing of ours was logged: for a
/// recovery that has found none. It is tried as `begin_from` is.
pub fn begin_empty(redo: Lsn) -> Result<(), EngineError> {
    until_begun(|| try_begin_empty(redo))
}

fn until_begun(attempt: impl Fn() -> Result<(), EngineError>) -> Result<(), EngineError> {
    let must_end = || {
        !pg::is_under_postmaster() || (crate::pg::worker::shutdown_asked() && server_is_stopping())
    };
    loop {
        let error = match attempt() {
            Err(error @ EngineError::Io { .. }) if !must_end() => error,
            other => return other,
        };
        errors::report_begin_failed(&error);
        let start = Instant::now();
        while start.elapsed() < RETRY && !must_end() {
            interrupts::sleep_ms(POLL_MS);
            interrupts::handle_startup_interrupts();
        }
    }
}

fn try_begin_from(manifest: &Manifest, redo: Lsn) -> Result<(), EngineError> {
    let disk = open()?;
    let mut manifest = manifest.clone();
    manifest.redo = manifest.redo.max(redo);
    manifest.timeline = timeline_of(manifest.redo);
    manifest.flushed = manifest.flushed.max(manifest.redo);
    manifest.is_final = false;
    checkpoint::seal(&disk, &manifest).map_err(located)
}

fn try_begin_empty(redo: Lsn) -> Result<(), EngineError> {
    let disk = open()?;
    // SAFETY: reads the control file's copy in shared memory; never raises.
    let system_id = unsafe { pg_sys::GetSystemIdentifier() };
    checkpoint::seal_empty(&disk, system_id, timeline_of(redo), redo).map_err(located)?;
    leave_mark(&disk).map_err(located)
}

/// Whether files may go: no backup may be copying them, nor may the server yet be lost on its old
/// timeline, of which the newest generation is none.
fn may_remove() -> bool {
    !base_backups::may_be_under_way() && !has_ended_beside_timeline()
}

/// Removes what attempts that came to nothing have left.
fn remove_unnamed(disk: &DirectoryDisk) -> Result<usize, EngineError> {
    if !may_remove() {
        return Ok(0);
    }
    checkpoint::remove_unnamed(disk)
}

/// Removes old generations.
fn remove_old(disk: &DirectoryDisk) -> Result<usize, EngineError> {
    if !may_remove() {
        return Ok(0);
    }
    checkpoint::remove_old(disk, settings::CHECKPOINT_RETAIN.get() as usize, |_| false)
}

/// Leaves a mark in the directory that it has held a complete checkpoint. A copy of the directory
/// that missed every generation (its copier was slower than the checkpoints, and unknown to us) is
/// then distinguished from a cluster that never had one.
fn leave_mark(disk: &DirectoryDisk) -> Result<(), EngineError> {
    if has_mark(disk)? {
        return Ok(());
    }
    let write = || -> std::io::Result<()> {
        let mut writer = disk.create(MARK)?;
        writer.append(
            b"This directory has held complete checkpoints of memory-optimized tables.\n",
        )?;
        writer.sync()?;
        drop(writer);
        disk.sync_directory()
    };
    write().map_err(|source| EngineError::Io {
        action: "write",
        file: MARK.into(),
        source,
    })
}

fn has_mark(disk: &DirectoryDisk) -> Result<bool, EngineError> {
    let names = disk.list().map_err(|source| EngineError::Io {
        action: "list",
        file: DIRECTORY.into(),
        source,
    })?;
    Ok(names.iter().any(|name| name == MARK))
}

fn record_finished(redo: Lsn, written: &checkpoint::Written, removed: usize, start: Instant) {
    let elapsed = start.elapsed();
    let stats = &shared_memory::control().checkpoint;
    stats
        .generation
        .store(written.generation, Ordering::Relaxed);
    stats.written.fetch_add(1, Ordering::Relaxed);
    stats.rows.store(written.rows, Ordering::Relaxed);
    stats.files.store(written.files as u64, Ordering::Relaxed);
    stats.bytes.store(written.bytes, Ordering::Relaxed);
    stats
        .files_reused
        .store(written.files_reused as u64, Ordering::Relaxed);
    stats
        .bytes_reused
        .store(written.bytes_reused, Ordering::Relaxed);
    stats
        .write_ms
        .store(elapsed.as_millis() as u64, Ordering::Relaxed);
    // SAFETY: reads the clock.
    stats.finished_at.store(
        unsafe { pg_sys::GetCurrentTimestamp() } as u64,
        Ordering::Relaxed,
    );
    // SAFETY: a plain setting of this process.
    if unsafe { pg_sys::log_checkpoints } {
        ereport!(
            PgLogLevel::LOG,
            PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
            format!(
                "mot checkpoint complete: wrote {} files, {} bytes, {} ranges; reused {} files, {} bytes, {} \
                 ranges; {} rows; {} old files removed; total={:.3} s; redo lsn={}, generation={}",
                written.files,
                written.bytes,
                written.ranges,
                written.files_reused,
                written.bytes_reused,
                written.ranges_reused,
                written.rows,
                removed,
                elapsed.as_secs_f64(),
                show_lsn(redo),
                written.generation,
            )
        );
    }
}
