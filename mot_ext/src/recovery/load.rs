//! Bringing the tables into memory: the newest checkpoint, then the WAL between it and where
//! PostgreSQL begins.
//!
//! In the startup process this is part of `rm_startup`; after a clean shutdown, when PostgreSQL
//! calls no resource manager, the checkpoint worker does it while statements on tables wait.
//!
//! A standby that begins where a clean shutdown ended can be read before there is a record to
//! replay, perhaps for ever. The worker loads there, too (`load_standby`), so both may begin it
//! at once: the process that claims the load first does it. `rm_startup` waits for a worker that
//! was first, and replays on what that has loaded. If the recovery ends without a record, no
//! process calls `rm_cleanup`: the worker finishes (`finish_standby`); until then no session writes
//! (`transaction::xact::write_xid`).
use super::commit_log::Outcomes;
use super::initial_checkpoint::{begin_without_tables, record_covered, replay_begin};
use super::reader::{self, End, GapVisitor, OwnRecord};
use super::replay::{self, Replay};
use super::{ended, watch};
use crate::checkpoint::files;
use crate::errors;
use crate::pg::text::show_lsn;
use crate::pg::{self, interrupts, slot};
use crate::shared_memory::{self, settings};
use crate::transaction::clock::{self, EndedClock, PgClock};
use crate::transaction::horizon::outcome_bound;
use crate::transaction::session;
use mot_engine::checkpoint::Manifest;
use mot_engine::recovery;
use mot_engine::{EngineError, Lsn, Persistence, Session, State, Walk, Xid};
use pgrx::prelude::*;
use std::cell::Cell;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// How often replay that waits for the worker's load looks again, in milliseconds.
const LOAD_POLL_MS: i64 = 10;

/// Whether the caller is the one that loads. True once in the life of the shared memory.
pub fn claim() -> bool {
    !shared_memory::control()
        .load_is_claimed
        .swap(true, Ordering::SeqCst)
}

/// In `rm_startup`: the worker has claimed the load. Waits until it is done.
pub fn wait_for_worker() -> Result<(), String> {
    let engine = shared_memory::engine().expect("preloaded");
    loop {
        match engine.state() {
            State::Replaying => return Ok(()),
            State::Failed => return Err(shared_memory::control().failure()),
            State::Empty | State::Loading | State::Ready => {}
        }
        interrupts::sleep_ms(LOAD_POLL_MS);
        interrupts::handle_startup_interrupts();
    }
}

/// In the checkpoint worker of a standby that can be read and has not begun to replay. Everything
/// logged before the shutdown is in: the state is as after `rm_startup`.
pub fn load_standby() -> Result<(), String> {
    // SAFETY: reads a shared position; never raises. It is at the shutdown's checkpoint: redo
    // waits for this load.
    let redo = Lsn(unsafe { pg_sys::GetXLogReplayRecPtr(std::ptr::null_mut()) });
    load_for_replay(&mut Replay::new(), redo)?;
    shared_memory::engine()
        .expect("preloaded")
        .set_state(State::Replaying);
    Ok(())
}

/// What a recovery, or a standby, replays on: the checkpoint and the gap behind it, up to `to`.
///
/// A final mark is taken off: it speaks of the WAL up to the shutdown's checkpoint, from where
/// replay continues. If PostgreSQL's redo position then advances without a checkpoint of ours (a
/// standby that cannot be read), the gap that the next start finds is not empty.
pub fn load_for_replay(replay: &mut Replay, to: Lsn) -> Result<(), String> {
    let Some(manifest) = load(Some(to))? else {
        return begin_without_tables(to);
    };
    let was_read = replay_gap(&manifest, replay, to, Behind::Replay)?;
    if !manifest.is_final {
        return Ok(());
    }
    let redo = if is_gap_needed(&manifest, was_read) {
        manifest.redo
    } else {
        replay_begin(to).max(manifest.redo)
    };
    files::begin_from(&manifest, redo).map_err(|e| e.to_string())?;
    record_covered(redo);
    Ok(())
}

/// Whether what was read behind the checkpoint must be read again, should it be loaded again: its
/// files have neither the records of ours nor the ends of transactions that were prepared in it.
fn is_gap_needed(manifest: &Manifest, was_read: bool) -> bool {
    let gap_records = &shared_memory::control().recovery.gap_records;
    was_read && (gap_records.load(Ordering::Relaxed) > 0 || manifest.has_open())
}

/// In the checkpoint worker, after `load_standby`: the recovery is over, and there was no record.
/// Statements may read meanwhile, and no session has written yet.
pub fn finish_standby() -> Result<(), String> {
    finish_after_clean_start()
}

/// Loads the newest checkpoint; `None` if there never was one. A recovery says from where it
/// replays.
fn load(replayed_from: Option<Lsn>) -> Result<Option<Manifest>, String> {
    let engine = shared_memory::engine().expect("preloaded");
    if shared_memory::control().taken_over.load(Ordering::SeqCst) {
        return Err("the memory of the last run was taken over, but the server recovers; the next start loads \
            the tables".into());
    }
    engine.set_state(State::Loading);
    let start = Instant::now();
    let disk = files::open().map_err(|e| e.to_string())?;
    let Some(manifest) = files::newest(&disk, replayed_from).map_err(|e| e.to_string())? else {
        // Tables without rows would be the silent end of those that were there.
        if slot::exists() {
            return Err(errors::no_checkpoint());
        }
        return Ok(None);
    };
    // Unlogged rows are in a final checkpoint alone, and core keeps its own after a shutdown alone.
    let follows_shutdown = replayed_from.is_none()
        && shared_memory::control()
            .follows_shutdown
            .load(Ordering::SeqCst);
    let load = match follows_shutdown {
        true => recovery::load_after_shutdown,
        false => recovery::load,
    };
    let loaded = watch::load(
        load,
        engine,
        disk,
        manifest.clone(),
        settings::load_threads(),
    );
    let loaded = loaded.map_err(|e| match e {
        EngineError::ArenaFull(_) => format!(
            "the tables need more memory than mot.max_memory = {} MB allows: raise it",
            settings::MAX_MEMORY_MIB.get()
        ),
        EngineError::Cancelled => "the server shuts down".into(),
        other => files::located(other).to_string(),
    })?;
    let control = shared_memory::control();
    let elapsed = start.elapsed();
    control
        .gap_is_read
        .store(!manifest.is_final, Ordering::SeqCst);
    control.covered.store(manifest.redo.0, Ordering::SeqCst);
    control
        .recovery
        .load_ms
        .store(elapsed.as_millis() as u64, Ordering::Relaxed);
    ereport!(
        PgLogLevel::LOG,
        PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
        format!(
            "mot load complete: {} tables, {} rows, {} indexes, {} bytes; total={:.3} s; redo lsn={}, generation={}",
            loaded.tables,
            loaded.rows,
            loaded.indexes,
            loaded.bytes,
            elapsed.as_secs_f64(),
            show_lsn(manifest.redo),
            manifest.generation,
        )
    );
    Ok(Some(manifest))
}

/// What follows a gap.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Behind {
    /// PostgreSQL replays on.
    Replay,
    /// Nothing: the server was shut down there.
    Nothing,
}

/// The WAL of a gap on its way in.
struct Gap<'a> {
    replay: &'a mut Replay,
    session: &'static Session,
    own_records: &'a Cell<u64>,
    is_reading: &'a Cell<bool>,
    outcomes: Outcomes,
    /// No id in the gap is past it. (PostgreSQL's redo position comes with the next id of a moment
    /// after it.)
    next: Xid,
}

impl GapVisitor for Gap<'_> {
    fn own(&mut self, record: OwnRecord<'_>) {
        self.own_records.set(self.own_records.get() + 1);
        self.is_reading.set(false);
        let xid = clock::widen_before(record.xid, self.next);
        self.replay
            .apply(self.session, record.data, record.end, xid);
        self.is_reading.set(true);
    }

    fn ended(&mut self, xid: pg_sys::TransactionId, end: End) {
        let xid = clock::widen_before(xid, self.next);
        if end == End::Committed {
            self.outcomes.add(xid);
        }
        if !replay::has_readers() {
            ended::add(xid, end);
        }
    }

    fn cut(&mut self, oldest: pg_sys::TransactionId) {
        self.outcomes.cut(clock::widen_before(oldest, self.next));
    }
}

/// Reads and applies the WAL between the checkpoint and `to`. False: there is none, or nothing of
/// ours is in it.
pub fn replay_gap(
    manifest: &Manifest,
    replay: &mut Replay,
    to: Lsn,
    behind: Behind,
) -> Result<bool, String> {
    if manifest.redo >= to {
        return Ok(false);
    }
    let session = session::join_uncounted();
    let start = Instant::now();
    let (own_records, is_reading) = (Cell::new(0u64), Cell::new(true));
    let read = pg::catch(|| {
        let mut gap = Gap {
            replay,
            session,
            own_records: &own_records,
            is_reading: &is_reading,
            outcomes: Outcomes::of_gap(behind == Behind::Nothing),
            next: Xid(pg::next_full_xid()),
        };
        let read = reader::read_gap(manifest.redo, to, &mut gap);
        is_reading.set(false);
        gap.replay.drain(session);
        // Else there is nothing that they could be outcomes of.
        if read.is_ok() && (own_records.get() > 0 || manifest.has_open()) {
            gap.outcomes.resolve_rows(gap.replay, session, gap.next, to);
        }
        read
    });
    match read {
        Ok(Ok(found)) => {
            let control = shared_memory::control();
            control
                .recovery
                .gap_records
                .store(found.own_records, Ordering::Relaxed);
            if found.own_records > 0 {
                ereport!(
                    PgLogLevel::LOG,
                    PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
                    format!(
                        "mot replayed {} of {} WAL records between its checkpoint at {} and {}; total={:.3} s",
                        found.own_records,
                        found.records,
                        show_lsn(manifest.redo),
                        show_lsn(to),
                        start.elapsed().as_secs_f64(),
                    )
                );
            }
            Ok(true)
        }
        Err(error) if !is_reading.get() => Err(error),
        // Written when the last writer was gone, and no start has taken that mark off since:
        // nothing of ours is in the gap. Not so where files of before were put in place of those
        // that a later start has left.
        Ok(Err(_)) | Err(_)
            if manifest.is_final && own_records.get() == 0 && !slot::is_ahead_of(manifest.redo) =>
        {
            Ok(false)
        }
        Ok(Err(error)) | Err(error) => Err(unreadable_gap(manifest.redo, to, &error)),
    }
}

/// Why the start fails: WAL of ours cannot be read.
fn unreadable_gap(from: Lsn, to: Lsn, error: &str) -> String {
    format!(
        "the WAL from {} to {} is needed and cannot be read: {error} (max_slot_wal_keep_size, or dropping \
         the slot \"mot\", lets PostgreSQL remove it; with the files back in pg_wal, from an archive, the \
         start succeeds)",
        show_lsn(from),
        show_lsn(to),
    )
}

/// In place of `load`: the tables are in memory since the last run (`crate::recovery::warm`).
/// Nothing was logged since its final checkpoint, and nothing is left to resolve: every session of
/// that run has left.
fn take_over() -> Result<Option<Manifest>, String> {
    let engine = shared_memory::engine().expect("preloaded");
    engine.set_state(State::Loading);
    let start = Instant::now();
    let disk = files::open().map_err(|e| e.to_string())?;
    let manifest = files::newest(&disk, None).map_err(|e| e.to_string())?;
    let manifest = manifest.filter(|manifest| manifest.is_final);
    let Some(manifest) = manifest else {
        return Err("the memory of the last run was taken over, but there is no final checkpoint; the next \
            start loads the tables".into());
    };
    let control = shared_memory::control();
    // In the postmaster, and here.
    let load_ms = &control.recovery.load_ms;
    load_ms.fetch_add(start.elapsed().as_millis() as u64, Ordering::Relaxed);
    ereport!(
        PgLogLevel::LOG,
        PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
        format!(
            "mot warm restart: took over {} rows, {} bytes in {} ms; redo lsn={}, generation={}",
            engine.progress().rows_loaded.load(Ordering::Relaxed),
            engine.memory().arena_bytes_used(),
            load_ms.load(Ordering::Relaxed),
            show_lsn(manifest.redo),
            manifest.generation,
        )
    );
    Ok(Some(manifest))
}

/// The whole of it in the checkpoint worker, after a clean start. Leaves the engine ready.
pub fn load_in_worker() -> Result<(), String> {
    let is_warm = shared_memory::control().taken_over.load(Ordering::SeqCst);
    let loaded = if is_warm {
        take_over()?.map(|manifest| (manifest, false))
    } else {
        load_and_replay()?
    };
    if let Some((manifest, was_read)) = loaded {
        // SAFETY: reads a shared position; never raises.
        let redo = Lsn(unsafe { pg_sys::GetRedoRecPtr() });
        let from = if is_gap_needed(&manifest, was_read) {
            manifest.redo
        } else {
            manifest.redo.max(redo)
        };
        files::begin_from(&manifest, from).map_err(|e| e.to_string())?;
        shared_memory::control()
            .covered
            .store(from.0, Ordering::SeqCst);
    }
    if is_warm {
        shared_memory::engine()
            .expect("preloaded")
            .set_state(State::Ready);
        return Ok(());
    }
    finish_after_clean_start()
}

/// The whole of it in single-user mode, at the first statement that needs a table. Nothing can be
/// written there, so the checkpoint stays as it is.
pub fn load_single_user() -> Result<(), String> {
    load_and_replay()?;
    finish_after_clean_start()
}

/// The checkpoint, and whether there was a gap behind it.
fn load_and_replay() -> Result<Option<(Manifest, bool)>, String> {
    let Some(manifest) = load(None)? else {
        return Ok(None);
    };
    // SAFETY: reads a shared position; never raises.
    let redo = Lsn(unsafe { pg_sys::GetRedoRecPtr() });
    let was_read = replay_gap(&manifest, &mut Replay::new(), redo, Behind::Nothing)?;
    let follows_shutdown = &shared_memory::control().follows_shutdown;
    let is_unlogged = |walk: &Walk<'_>| walk.table().persistence() == Persistence::Unlogged;
    if !manifest.is_final
        && follows_shutdown.load(Ordering::SeqCst)
        && session::join_uncounted().tables().iter().any(is_unlogged)
    {
        errors::report_unlogged_begin_empty();
    }
    Ok(Some((manifest, was_read)))
}

/// Replay is over: transactions of before are finished and their processes gone, but for prepared
/// ones. Their outcome is read from the commit log, slots without a row are free, statements may
/// run.
///
/// PostgreSQL brings prepared transactions back only after this. Until then it can be distinguished
/// from which transaction id on there are any, but not (without reading its files) the ids of their
/// subtransactions. So what is not known to have committed from there on, up to the next id that
/// will be given out, is left open in rows and definitions, and their row locks are put back; the
/// reclaimer, writers and readers resolve it when PostgreSQL knows again which transactions run.
/// Ids from there on are not assigned yet.
pub fn finish_after_replay() -> Result<(), String> {
    let session = session::join_uncounted();
    let from = clock::widen(pg_sys::TransactionId::from_inner(pg::oldest_prepared_xid()));
    // Asked for them, PostgreSQL has moved this past all their subtransactions.
    let next = Xid(pg::next_full_xid());
    let threads = settings::load_threads();
    shared_memory::control()
        .redo_ends
        .store(true, Ordering::SeqCst);
    // No transaction is running any more, even where the server still remembers the transactions of
    // a primary that is gone.
    recovery::finish_beside_prepared(session, &EndedClock, from..next, threads)
        .map_err(|error| error.to_string())?;
    // Recovery is not over for PostgreSQL, so no process cuts the commit log off yet. States below
    // a row's newest one were not resolved.
    outcome_bound::publish(files::clog_begins());
    shared_memory::engine()
        .expect("preloaded")
        .set_state(State::Ready);
    Ok(())
}

/// There was no replay: PostgreSQL knows already which transactions are prepared, and no other
/// transaction can have work in the tables.
fn finish_after_clean_start() -> Result<(), String> {
    let session = session::join_uncounted();
    // Whose the subtransactions of prepared transactions are is asked below.
    clock::fresh_horizon();
    recovery::finish(session, &PgClock, settings::load_threads())
        .map_err(|error| error.to_string())?;
    shared_memory::engine()
        .expect("preloaded")
        .set_state(State::Ready);
    Ok(())
}
