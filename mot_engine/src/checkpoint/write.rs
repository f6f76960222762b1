//! Writes a checkpoint with several threads.
//!
//! Each thread takes ranges of row ids, of one table or several, and appends blocks to a file of
//! its own, so the number of files is the number of threads, however many tables there are. Order
//! of durability: rows files (sync each), directory, WAL (`flush`), manifest draft (sync), rename,
//! directory.
//!
//! Contract: `Ok` means the generation is complete and durable. After an error it does not exist,
//! or (if the error came when the manifest was renamed) may; in the first case its files are
//! removed as far as that goes, in the second they are leftovers that `remove_unnamed` takes away,
//! ahead of the next attempt.

use std::ops::Range;
use std::sync::atomic::Ordering;

use super::block::BlockBuilder;
use super::files::{io_error, manifest_draft_name, manifest_name, remove_attempt};
use super::manifest::{FileEntry, IndexEntry, Manifest, RangeEntry, TableEntry};
use super::pace::Pace;
use super::progress::{CheckpointProgress, Phase};
use super::ranges::{Job, Left, ThreadResult};
use super::reuse::{self, Counts, Plan, Unit};
use crate::disk::Disk;
use crate::errors::EngineError;
use crate::ids::{IndexId, Lsn, RowId, TableId, Xid};
use crate::pause::{Point, allowed};
use crate::table::RANGE_ROW_IDS;
use crate::threads::{give_way, on_threads};
use crate::transaction::LocksOf;

/// A thread more, and so a file, is worth so many rows.
const ROWS_PER_THREAD: u64 = if cfg!(test) { 1 } else { 16 << 10 };

/// Answers which of some transactions, ascending, have committed, in that order.
pub type Outcomes<'a> = dyn FnMut(&[Xid]) -> Result<Vec<Xid>, EngineError> + 'a;

/// What the caller knows about a checkpoint.
pub struct CheckpointContext<'a> {
    /// The cluster.
    pub system_id: u64,
    /// The current timeline.
    pub timeline: u32,
    /// PostgreSQL's redo position: fixed before the call.
    pub redo: Lsn,
    /// A new generation (`next_generation`).
    pub generation: u64,
    /// Every xid below is finished: no transaction below it runs or is prepared.
    pub finished_below: Xid,
    /// Nothing will be logged after this checkpoint (shutdown).
    pub is_final: bool,
    /// Threads to write with.
    pub threads: usize,
    /// How fast.
    pub pace: Pace<'a>,
    /// Where it is reported how far it has come.
    pub progress: &'a CheckpointProgress,
    /// Called once, after the walk and before `flush`: of these transactions those that have
    /// committed. Among them are all whose commit record is before `redo`: a recovery does not
    /// replay it, and may find that the commit log was cut off since.
    pub outcomes: &'a mut Outcomes<'a>,
    /// Called once, after all rows are durable and before the manifest is: makes durable all WAL
    /// inserted so far (at least up to the LSN given) and answers up to where. In recovery: answers
    /// the replay position. WAL inserted so far, not only the rows' records: commit records that
    /// made a version "known to be committed" must be durable too, or after a crash the xid could
    /// be used again by a transaction that then appears to have written the row.
    pub flush: &'a mut dyn FnMut(Lsn) -> Result<Lsn, EngineError>,
}

/// What was written.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Written {
    /// The generation.
    pub generation: u64,
    /// WAL is durable and needed up to here.
    pub flushed: Lsn,
    /// Rows in all tables, about: deleted ones may count for a while.
    pub rows: u64,
    /// Bytes written, the manifest's excepted.
    pub bytes: u64,
    /// Files written, the manifest excepted.
    pub files: usize,
    /// Ranges of which all or some rows were written.
    pub ranges: u64,
    /// Of those the ones of which only changed rows were written.
    pub ranges_in_part: u64,
    /// Bytes and files of older generations that are part of this one, and ranges of which nothing
    /// was written.
    pub bytes_reused: u64,
    /// See `bytes_reused`.
    pub ranges_reused: u64,
    /// See `bytes_reused`.
    pub files_reused: usize,
    /// Why nothing could be taken over although there was something to take over.
    pub base_lost: Option<String>,
}

/// The tables with logged definitions (without ranges), and the next ids.
pub struct Definitions {
    /// The tables.
    pub tables: Vec<TableEntry>,
    /// See `Manifest::next_table`.
    pub next_table: TableId,
    /// See `Manifest::next_index`.
    pub next_index: IndexId,
    /// See `Manifest::defined`.
    pub defined: Lsn,
    /// See `Manifest::locks`.
    pub locks: Vec<LocksOf>,
}

/// Where the rows come from: the engine, or a test.
pub trait RowSource: Sync {
    /// What a thread needs to walk rows, made in the thread.
    type Walker<'a>
    where
        Self: 'a;
    /// Called once.
    fn definitions(&self) -> Result<Definitions, EngineError>;
    /// Whether a row of the range that this row id begins may have changed since the base
    /// generation.
    fn has_changed(&self, table: TableId, first: RowId) -> Result<bool, EngineError>;
    /// Whether rows of the table may have changed since the base generation without another LSN.
    fn was_reformed(&self, table: TableId) -> Result<bool, EngineError>;
    /// Reads the LSNs of the range's rows: how many there are above each of those in `above`,
    /// which rise.
    fn count(
        &self,
        table: TableId,
        row_ids: Range<RowId>,
        above: &[Lsn],
    ) -> Result<Counts, EngineError>;
    /// Makes a thread's walker.
    fn walker(&self) -> Result<Self::Walker<'_>, EngineError>;
    /// Walks on from `row_ids.start` until the end of `row_ids` or until `block` is full, and gives
    /// the row id to continue from and how many live rows it met. Rows with an LSN at or before
    /// `since` are passed over; NONE: no row is.
    fn walk(
        &self,
        walker: &mut Self::Walker<'_>,
        table: TableId,
        row_ids: Range<RowId>,
        since: Lsn,
        block: &mut BlockBuilder,
    ) -> Result<(RowId, u64), EngineError>;
    /// Called once for each table, by any thread, without a pin: nothing of it is asked for any
    /// more.
    fn release(&self, _table: TableId) {}
}

/// Writes all rows of `source` that cannot be taken over from `base`, the generation since which
/// the source counts changes.
pub fn write_from<S: RowSource>(
    source: &S,
    disk: &dyn Disk,
    context: &mut CheckpointContext<'_>,
    base: Option<&Manifest>,
) -> Result<Written, EngineError> {
    let attempt = Attempt {
        disk,
        generation: context.generation,
    };
    let (manifest, written) = write_rows(source, disk, context, base)?;
    context.progress.enter(Phase::WritingManifest);
    write_draft(disk, &manifest)?;
    // From here on the manifest may be in place, whatever is answered.
    core::mem::forget(attempt);
    put_in_place(disk, context.generation)?;
    Ok(written)
}

/// The files of an attempt, removed unless it is forgotten: also when one of the caller's functions
/// unwinds, or the disk would fill with each that follows.
struct Attempt<'d> {
    disk: &'d dyn Disk,
    generation: u64,
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        remove_attempt(self.disk, self.generation);
    }
}

/// Everything but the manifest.
fn write_rows<S: RowSource>(
    source: &S,
    disk: &dyn Disk,
    context: &mut CheckpointContext<'_>,
    base: Option<&Manifest>,
) -> Result<(Manifest, Written), EngineError> {
    let progress = context.progress;
    let Definitions {
        mut tables,
        next_table,
        next_index,
        defined,
        locks,
    } = source.definitions()?;
    let base = base.filter(|base| reuse::is_usable(base, context.generation, context.redo));
    let Plan {
        units,
        kept,
        mut files,
        bytes_kept,
        ranges_kept,
    } = reuse::plan(source, &tables, base, &context.pace)?;
    let mut written = Written {
        generation: context.generation,
        bytes_reused: bytes_kept,
        ranges: units.len() as u64,
        ranges_in_part: units.iter().filter(|unit| unit.since != Lsn::NONE).count() as u64,
        ranges_reused: ranges_kept,
        files_reused: files.len(),
        ..Written::default()
    };
    let left = Left::new(source, &tables, &units, progress);
    progress.ranges_reused.store(ranges_kept, Ordering::Relaxed);
    progress.bytes_reused.store(bytes_kept, Ordering::Relaxed);
    progress.enter(Phase::WritingRows);

    let results = write_units(source, disk, context, &tables, &units, &left)?;
    let (open, lsn_max) = gather(results, kept, &mut tables, &mut files, &mut written)?;
    allowed(Point::CheckpointSyncRowsDirectory)
        .and_then(|()| disk.sync_directory())
        .map_err(io_error("could not sync", "."))?;

    progress.enter(Phase::FlushingWal);
    let lsn_max = locks.iter().fold(lsn_max, |max, it| max.max(it.lsn));
    let (committed, flushed) = flush(context, open, lsn_max)?;
    let manifest = Manifest {
        system_id: context.system_id,
        timeline: context.timeline,
        is_final: context.is_final,
        redo: context.redo,
        // What was taken over may be newer than anything written now.
        flushed: base.map_or(flushed, |base| flushed.max(base.flushed)),
        generation: context.generation,
        finished_below: context.finished_below,
        next_table,
        next_index,
        defined,
        range_row_ids: RANGE_ROW_IDS as u32,
        tables,
        files,
        committed,
        locks,
    };
    written.flushed = manifest.flushed;
    Ok((manifest, written))
}

/// Has threads write the ranges that are not taken over.
fn write_units<'d, S: RowSource>(
    source: &S,
    disk: &'d dyn Disk,
    context: &CheckpointContext<'_>,
    tables: &[TableEntry],
    units: &[Unit],
    left: &Left,
) -> Result<Vec<ThreadResult<'d>>, EngineError> {
    let job = Job {
        source,
        disk,
        generation: context.generation,
        finished_below: context.finished_below,
        pace: &context.pace,
        progress: context.progress,
        tables,
        units,
        left,
    };
    let rows: u64 = units.iter().map(Unit::rows_to_write).sum();
    let threads = context
        .threads
        .min(usize::try_from(1 + rows / ROWS_PER_THREAD).unwrap_or(usize::MAX));
    let threads = threads.min(units.len());
    on_threads(threads, units.len(), |number, next| {
        // They hold what others wait for for an instant only: a latch when they leave the arena or
        // let go of a table. A pin only keeps memory from being used again. The caller's own thread
        // is no such one: it then is to sync the files and to take the server's locks.
        if threads > 1 {
            give_way();
        }
        job.work(number as u32, next)
    })
}

/// Makes the threads' files durable, gives the tables their ranges, those that are kept and those
/// that were written, and counts their rows. Reports the makers of what is not known to be
/// committed, and the newest row's LSN.
fn gather(
    results: Vec<ThreadResult<'_>>,
    kept: Vec<(usize, RangeEntry)>,
    tables: &mut [TableEntry],
    files: &mut Vec<FileEntry>,
    written: &mut Written,
) -> Result<(Vec<Xid>, Lsn), EngineError> {
    for (table, range) in kept {
        tables[table].ranges.push(range);
    }
    let mut open = makers_of_definitions(tables);
    let mut lsn_max = Lsn(0);
    for result in results {
        open.extend(result.open);
        lsn_max = lsn_max.max(result.lsn_max);
        for (table, mut range) in result.ranges {
            if range.blocks > 0 {
                range.file = files.len() as u32;
            }
            tables[table].ranges.push(range);
        }
        // By the caller's own thread: what a sync keeps others from in the file system it does not
        // keep them from at a lower priority.
        if let Some(file) = result.file.finish()? {
            written.bytes += file.bytes;
            written.files += 1;
            files.push(file);
        }
    }
    for table in tables {
        // It keeps what was written now behind what was kept of the same range.
        table.ranges.sort_by_key(|range| range.number);
        let newest = table.ranges.chunk_by(|one, next| one.number == next.number);
        table.rows = newest
            .filter_map(|parts| parts.last())
            .map(|newest| newest.range_rows)
            .sum();
        written.rows += table.rows;
    }
    Ok((open, lsn_max))
}

/// Has all WAL so far made durable. Answers which of the makers have committed, and up to where WAL
/// is durable.
fn flush(
    context: &mut CheckpointContext<'_>,
    mut open: Vec<Xid>,
    lsn_max: Lsn,
) -> Result<(Vec<Xid>, Lsn), EngineError> {
    open.sort_unstable();
    open.dedup();
    // Before the flush, which makes their commit records durable.
    let committed = (context.outcomes)(&open)?;
    let flushed = (context.flush)(lsn_max)?;
    if flushed < lsn_max {
        return Err(EngineError::Corrupt {
            what: "WAL is not durable up to the checkpoint's newest row",
        });
    }
    Ok((committed, flushed))
}

/// The transactions that created or dropped a table or an index, where that is not resolved.
fn makers_of_definitions(tables: &[TableEntry]) -> Vec<Xid> {
    let of_index = |index: &IndexEntry| [index.creator, index.dropper];
    tables
        .iter()
        .flat_map(|table| {
            let own = [table.creator, table.dropper].into_iter();
            own.chain(table.indexes.iter().flat_map(of_index))
        })
        .filter(|xid| xid.is_some())
        .collect()
}

/// Puts the manifest in place. The caller may also replace one of the same generation: when nothing
/// was logged since that checkpoint began, its redo position advances without writing a row.
pub fn seal(disk: &dyn Disk, manifest: &Manifest) -> Result<(), EngineError> {
    write_draft(disk, manifest)?;
    put_in_place(disk, manifest.generation)
}

fn write_draft(disk: &dyn Disk, manifest: &Manifest) -> Result<(), EngineError> {
    let draft = manifest_draft_name(manifest.generation);
    let mut writer = disk
        .create(&draft)
        .map_err(io_error("could not create", &draft))?;
    writer
        .append(&manifest.to_bytes()?)
        .map_err(io_error("could not write", &draft))?;
    allowed(Point::CheckpointSyncManifest)
        .and_then(|()| writer.sync())
        .map_err(io_error("could not sync", &draft))
}

/// From here on the generation exists, or (after an error) may.
fn put_in_place(disk: &dyn Disk, generation: u64) -> Result<(), EngineError> {
    let (draft, name) = (manifest_draft_name(generation), manifest_name(generation));
    disk.rename(&draft, &name)
        .map_err(io_error("could not rename", &draft))?;
    allowed(Point::CheckpointSyncManifestDirectory)
        .and_then(|()| disk.sync_directory())
        .map_err(io_error("could not sync", "."))
}
