//! The views of the extension: memory, tables, indexes, transactions, checkpoints, recovery.
//!
//! Figures are read without stopping any process; they are exact when nothing is written meanwhile.
//!
//! The views of memory, tables, indexes and transactions use `session::session()`: while tables are
//! loaded after a start they wait (`mot.load_timeout`). All others ask `shared_memory::engine()`,
//! and answer at once.
//!
//! # To add a view
//!
//! 1. The figures. Those of workers and recovery are in the control block
//!    (`shared_memory::Control`), which is zero at each start. Those of the engine are in its root
//!    (`mot_engine/src/engine.rs`) or in a table's counters. A warm restart keeps both, so a new
//!    field there needs a new `LAYOUT_VERSION` (`memory/arena.rs`). If it counts since the start,
//!    add it to the `restart` beside it, which `quiescent.rs` calls.
//! 2. A function here with `#[pg_extern]`. `.ci/install` makes the extension's SQL from these.
//! 3. Its `CREATE VIEW` in the block below, with the function in `REVOKE`, `GRANT` and `requires`,
//!    and the view in the last `GRANT`. The views are for members of `pg_monitor`;
//!    `sql/settings_views.sql` fails for one that others may read, or that these may not.
//! 4. The same test: a statement whose figures follow what was done. Its expected result lists all
//!    views with their columns, which are an interface.
//! 5. `comments.sql`: a comment for the view, each column and the function; the test asks for them.
//! 6. README.md names the view under "Operate" (tidy test). A guide in `docs/` tells of it where
//!    its comments do not suffice.
//! 7. Until 0.1.0 is released a change of the SQL reaches new databases only: say so in
//!    CHANGELOG.md. After a release raise the version in Cargo.toml and `mot.control`, and add
//!    `mot_ext/sql/mot--OLD--NEW.sql`. A function that a release declared keeps its columns.
//!
//! A view of a lower room's own structures may be there, as `mot.stat_horizon` is.
use crate::pg::text;
use crate::transaction::clock::PgClock;
use crate::transaction::session;
use crate::{shared_memory, storage};
use mot_engine::checkpoint::Phase;
use mot_engine::engine::Reached;
use mot_engine::memory::Purpose;
use mot_engine::{Session, State, Walk};
use pgrx::datum::TimestampWithTimeZone;
use pgrx::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};

fn figure(counter: &AtomicU64) -> i64 {
    counter.load(Ordering::Relaxed) as i64
}

/// An LSN, NULL if it is 0.
fn lsn(value: u64) -> Option<String> {
    (value != 0).then(|| crate::pg::text::show_lsn(mot_engine::Lsn(value)))
}

/// A timestamp of PostgreSQL's, NULL if it is 0.
fn time(value: &AtomicU64) -> Option<TimestampWithTimeZone> {
    let value = value.load(Ordering::Relaxed) as i64;
    (value != 0)
        .then(|| TimestampWithTimeZone::try_from(value).ok())
        .flatten()
}

#[pg_extern(stable, parallel_safe)]
#[allow(clippy::type_complexity)]
fn memory_usage() -> TableIterator<
    'static,
    (
        name!(arena_bytes_used, i64),
        name!(arena_bytes_limit, i64),
        name!(row_bytes, i64),
        name!(anchor_bytes, i64),
        name!(index_bytes, i64),
        name!(catalog_bytes, i64),
        name!(other_bytes, i64),
        name!(block_bytes_free, i64),
        name!(processes, i64),
        name!(garbage_bytes_orphaned, i64),
    ),
> {
    let memory = session::session().memory().memory();
    let report = memory.report();
    TableIterator::once((
        memory.arena_bytes_used() as i64,
        memory.arena_bytes_limit() as i64,
        memory.purpose_bytes(Purpose::Rows),
        memory.purpose_bytes(Purpose::Anchors),
        memory.purpose_bytes(Purpose::Index),
        memory.purpose_bytes(Purpose::Catalog),
        memory.purpose_bytes(Purpose::Other),
        report.block_bytes_free() as i64,
        report.epochs.participants as i64,
        report.epochs.orphan_bytes as i64,
    ))
}

/// The tables of this database that exist for the caller, each kept alive while it is read.
fn tables_here(session: &'static Session) -> impl Iterator<Item = Walk<'static>> {
    // SAFETY: a plain variable of this process.
    let database = unsafe { pg_sys::MyDatabaseId }.to_u32();
    session.tables().into_iter().filter(move |walk| {
        let table = walk.table();
        table.key().database == database && session.find_table(table.key(), &PgClock) == Some(table)
    })
}

#[pg_extern(stable, parallel_safe)]
#[allow(clippy::type_complexity)]
fn table_usage() -> TableIterator<
    'static,
    (
        name!(relid, pg_sys::Oid),
        name!(table_id, i64),
        name!(rows, i64),
        name!(row_bytes, i64),
        name!(anchor_bytes, i64),
        name!(row_ids, i64),
        name!(versions_stale, i64),
        name!(rows_inserted, i64),
        name!(rows_updated, i64),
        name!(rows_deleted, i64),
        name!(scans, i64),
        name!(rows_scanned, i64),
    ),
> {
    let mut rows = Vec::new();
    for walk in tables_here(session::session()) {
        let table = walk.table();
        let counters = table.counters();
        rows.push((
            storage::oid_of(table.key()),
            table.id().0 as i64,
            counters.rows.load(Ordering::Relaxed),
            counters.row_bytes.load(Ordering::Relaxed),
            table.anchor_bytes() as i64,
            table.row_ids_end().0 as i64,
            counters.stale_versions.load(Ordering::Relaxed).max(0),
            figure(&counters.inserted),
            figure(&counters.updated),
            figure(&counters.deleted),
            figure(&counters.scans),
            figure(&counters.rows_scanned),
        ));
    }
    TableIterator::new(rows)
}

#[pg_extern(stable, parallel_safe)]
#[allow(clippy::type_complexity)]
fn index_usage() -> TableIterator<
    'static,
    (
        name!(relid, pg_sys::Oid),
        name!(indexrelid, pg_sys::Oid),
        name!(is_unique, bool),
        name!(entries, i64),
        name!(scans, i64),
    ),
> {
    let session = session::session();
    let mut rows = Vec::new();
    for walk in tables_here(session) {
        let table = walk.table();
        let relid = storage::oid_of(table.key());
        // No lock keeps an index that exists now.
        let _pin = session.memory().pin();
        for index in session.indexes(table, &PgClock) {
            rows.push((
                relid,
                pg_sys::Oid::from(index.relation_oid()),
                index.is_unique(),
                index.entry_count_estimate() as i64,
                index.scans() as i64,
            ));
        }
    }
    // The engine knows of those alone that it keeps unique itself.
    for (_, index, is_unique, ..) in &mut rows {
        *is_unique |= storage::is_unique_to_core(*index);
    }
    TableIterator::new(rows)
}

#[pg_extern(stable, parallel_safe)]
#[allow(clippy::type_complexity)]
fn transaction_usage() -> TableIterator<
    'static,
    (
        name!(commits, i64),
        name!(aborts, i64),
        name!(row_waits, i64),
        name!(key_waits, i64),
        name!(rows_changed_meanwhile, i64),
        name!(unique_violations, i64),
        name!(log_records, i64),
        name!(log_bytes, i64),
        name!(horizon_xid, i64),
    ),
> {
    let engine = session::session().engine();
    let t = engine.transactions();
    TableIterator::once((
        figure(&t.commits),
        figure(&t.aborts),
        figure(&t.conflicts.row_waits),
        figure(&t.conflicts.key_waits),
        figure(&t.conflicts.rows_changed_meanwhile),
        figure(&t.conflicts.unique_violations),
        figure(&t.log_records),
        figure(&t.log_bytes),
        engine.horizon().0 as i64,
    ))
}

#[pg_extern(stable, parallel_safe)]
#[allow(clippy::type_complexity)]
fn checkpoint_usage() -> TableIterator<
    'static,
    (
        name!(generation, i64),
        name!(covered_lsn, Option<String>),
        name!(checkpoints_written, i64),
        name!(checkpoints_failed, i64),
        name!(rows, i64),
        name!(files, i64),
        name!(bytes, i64),
        name!(files_reused, i64),
        name!(bytes_reused, i64),
        name!(write_ms, i64),
        name!(finished_at, Option<TimestampWithTimeZone>),
        name!(worker_pid, Option<i32>),
    ),
> {
    let Some(_) = shared_memory::engine() else {
        crate::errors::not_preloaded()
    };
    let control = shared_memory::control();
    let stats = &control.checkpoint;
    let pid = stats.worker_pid.load(Ordering::Relaxed) as i32;
    TableIterator::once((
        figure(&stats.generation),
        lsn(control.covered.load(Ordering::Relaxed)),
        figure(&stats.written),
        figure(&stats.failed),
        figure(&stats.rows),
        figure(&stats.files),
        figure(&stats.bytes),
        figure(&stats.files_reused),
        figure(&stats.bytes_reused),
        figure(&stats.write_ms),
        time(&stats.finished_at),
        (pid != 0).then_some(pid),
    ))
}

/// One row while a checkpoint is written, none otherwise.
#[pg_extern(stable, parallel_safe)]
#[allow(clippy::type_complexity)]
fn checkpoint_progress() -> TableIterator<
    'static,
    (
        name!(pid, i32),
        name!(phase, &'static str),
        name!(generation, i64),
        name!(redo_lsn, Option<String>),
        name!(started_at, Option<TimestampWithTimeZone>),
        name!(tables_total, i64),
        name!(tables_done, i64),
        name!(ranges_total, i64),
        name!(ranges_done, i64),
        name!(ranges_reused, i64),
        name!(bytes_written, i64),
        name!(bytes_reused, i64),
    ),
> {
    let Some(_) = shared_memory::engine() else {
        crate::errors::not_preloaded()
    };
    let stats = &shared_memory::control().checkpoint;
    let progress = &stats.progress;
    let phase = match progress.phase() {
        Phase::Idle => return TableIterator::new(Vec::new()),
        Phase::WaitingForWriters => "waiting for writers",
        Phase::WritingRows => "writing rows",
        Phase::FlushingWal => "flushing WAL",
        Phase::WritingManifest => "writing manifest",
        Phase::RemovingFiles => "removing old files",
    };
    TableIterator::once((
        stats.worker_pid.load(Ordering::Relaxed) as i32,
        phase,
        figure(&progress.generation),
        lsn(progress.redo.load(Ordering::Relaxed)),
        time(&stats.started_at),
        figure(&progress.tables_total),
        figure(&progress.tables_done),
        figure(&progress.ranges_total),
        figure(&progress.ranges_done),
        figure(&progress.ranges_reused),
        figure(&progress.bytes_written),
        figure(&progress.bytes_reused),
    ))
}

#[pg_extern(stable, parallel_safe)]
#[allow(clippy::type_complexity)]
fn recovery_usage() -> TableIterator<
    'static,
    (
        name!(state, &'static str),
        name!(failure, Option<String>),
        name!(rows_total, i64),
        name!(rows_loaded, i64),
        name!(bytes_total, i64),
        name!(bytes_loaded, i64),
        name!(indexes_total, i64),
        name!(indexes_built, i64),
        name!(index_entries_total, i64),
        name!(index_entries_built, i64),
        name!(load_ms, i64),
        name!(gap_records, i64),
        name!(records_replayed, i64),
        name!(changes_replayed, i64),
        name!(bytes_replayed, i64),
        name!(replay_ms, i64),
        name!(replay_workers, i64),
        name!(replayed_lsn, Option<String>),
        name!(stalled_ms, i64),
        name!(waits_for_memory, bool),
        name!(is_warm, bool),
    ),
> {
    let Some(engine) = shared_memory::engine() else {
        crate::errors::not_preloaded()
    };
    let state = match engine.state() {
        State::Empty => "empty",
        State::Loading => "loading",
        State::Replaying => "replaying",
        State::Ready => "ready",
        State::Failed => "failed",
    };
    let control = shared_memory::control();
    let stats = &control.recovery;
    let progress = engine.progress();
    let failure = control.failure();
    TableIterator::once((
        state,
        (!failure.is_empty()).then(|| text::foreign(&failure)),
        figure(&progress.rows_total),
        figure(&progress.rows_loaded),
        figure(&progress.bytes_total),
        figure(&progress.bytes_loaded),
        figure(&progress.indexes_total),
        figure(&progress.indexes_built),
        figure(&progress.index_entries_total),
        figure(&progress.index_entries_built),
        figure(&stats.load_ms),
        figure(&stats.gap_records),
        figure(&stats.records_replayed),
        figure(&progress.changes_replayed),
        figure(&stats.bytes_replayed),
        (stats.replay_us.load(Ordering::Relaxed) / 1000) as i64,
        engine.replay_workers() as i64,
        lsn(stats.replayed_lsn.load(Ordering::Relaxed)),
        figure(&stats.stalled_ms),
        stats.waits_for_memory.load(Ordering::Relaxed)
            || engine.replay_reached(engine.replay_handed()) == Reached::NoMemory,
        control.taken_over.load(Ordering::Relaxed),
    ))
}

extension_sql!(
    r#"
CREATE VIEW mot.stat_memory AS SELECT * FROM mot.memory_usage();
CREATE VIEW mot.stat_tables AS
  SELECT u.relid, n.nspname AS schemaname, c.relname, u.table_id, u.rows, u.row_bytes, u.anchor_bytes, u.row_ids,
         u.versions_stale, u.rows_inserted, u.rows_updated, u.rows_deleted, u.scans, u.rows_scanned
  FROM mot.table_usage() u JOIN pg_class c ON c.oid = u.relid JOIN pg_namespace n ON n.oid = c.relnamespace;
CREATE VIEW mot.stat_indexes AS
  SELECT u.relid, u.indexrelid, n.nspname AS schemaname, c.relname, i.relname AS indexrelname,
         u.is_unique, u.entries, u.scans
  FROM mot.index_usage() u JOIN pg_class c ON c.oid = u.relid JOIN pg_class i ON i.oid = u.indexrelid
       JOIN pg_namespace n ON n.oid = c.relnamespace;
CREATE VIEW mot.stat_transactions AS SELECT * FROM mot.transaction_usage();
CREATE VIEW mot.stat_checkpoint AS
  SELECT generation, covered_lsn::pg_lsn, checkpoints_written, checkpoints_failed, rows, files, bytes, files_reused,
         bytes_reused, write_ms, finished_at, worker_pid
  FROM mot.checkpoint_usage();
CREATE VIEW mot.stat_progress_checkpoint AS
  SELECT pid, phase, generation, redo_lsn::pg_lsn, started_at, tables_total, tables_done, ranges_total, ranges_done,
         ranges_reused, bytes_written, bytes_reused
  FROM mot.checkpoint_progress();
CREATE VIEW mot.stat_recovery AS
  SELECT state, failure, rows_total, rows_loaded, bytes_total, bytes_loaded, indexes_total, indexes_built,
         index_entries_total, index_entries_built, load_ms, gap_records, records_replayed, changes_replayed,
         bytes_replayed, replay_ms, replay_workers, replayed_lsn::pg_lsn, stalled_ms, waits_for_memory, is_warm
  FROM mot.recovery_usage();
REVOKE EXECUTE ON FUNCTION mot.memory_usage(), mot.table_usage(), mot.index_usage(), mot.transaction_usage(),
  mot.checkpoint_usage(), mot.checkpoint_progress(), mot.recovery_usage() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION mot.memory_usage(), mot.table_usage(), mot.index_usage(), mot.transaction_usage(),
  mot.checkpoint_usage(), mot.checkpoint_progress(), mot.recovery_usage() TO pg_monitor;
GRANT USAGE ON SCHEMA mot TO PUBLIC;
GRANT SELECT ON mot.stat_memory, mot.stat_tables, mot.stat_indexes, mot.stat_transactions, mot.stat_checkpoint,
  mot.stat_progress_checkpoint, mot.stat_recovery TO pg_monitor;
"#,
    name = "views",
    requires = [
        memory_usage,
        table_usage,
        index_usage,
        transaction_usage,
        checkpoint_usage,
        checkpoint_progress,
        recovery_usage
    ]
);

// A psql `\d+` shows them.
extension_sql_file!("comments.sql", name = "comments", finalize);
