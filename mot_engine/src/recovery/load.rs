//! Loads a checkpoint with several threads and builds every index.
//!
//! Threads take blocks (about 1 MiB of rows of one table), each with its own session, so that
//! versions come from its own chunks. Then indexes are built, each by all threads or many small
//! ones at once: see `../index/build`.
//!
//! Contract: the engine has no tables yet. After an error it is unusable (the caller sets `Failed`
//! or ends the process).

use std::sync::Mutex;
use std::sync::atomic::Ordering;

use super::finish::{Finished, resolve_definitions_below};
use super::rows;
use crate::checkpoint::{Manifest, blocks_of};
use crate::clock::Clock;
use crate::disk::Disk;
use crate::engine::Engine;
use crate::errors::EngineError;
use crate::ids::{CommandId, IndexId, Lsn, TableId, Xid};
use crate::index::Harvest;
use crate::limits::ROW_BYTES_MAX;
use crate::memory::{Memory, Purpose, Urgency};
use crate::row::{BODY_BYTES_MIN, STAMP_BYTES, VersionRef, block_bytes};
use crate::session::Session;
use crate::table::{IndexRef, TableRef};
use crate::threads::on_threads;
use crate::transaction::{NewTable, allocate_table, publish_index};

/// What was loaded.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Loaded {
    /// Replay starts here; what ends at or before it is in.
    pub redo: Lsn,
    /// Readers must not run before replay has passed this: the checkpoint may already hold effects
    /// of WAL up to here.
    pub flushed: Lsn,
    /// Rows, entries of empty row ids excepted.
    pub rows: u64,
    /// Bytes of the files read.
    pub bytes: u64,
    /// Tables.
    pub tables: usize,
    /// Indexes built.
    pub indexes: usize,
}

/// Where the log says that a definition of a checkpoint is: anywhere before its redo position.
const DEFINITION_LSN: u64 = 1;

/// Transactions that the manifest knows to have committed. Of the others nothing is known yet.
#[derive(Copy, Clone)]
pub(super) struct Known<'a>(&'a [Xid]);

impl Clock for Known<'_> {
    fn is_current(&self, _xid: Xid) -> bool {
        false
    }

    fn is_in_progress(&self, xid: Xid) -> bool {
        !self.did_commit(xid)
    }

    fn did_commit(&self, xid: Xid) -> bool {
        self.0.binary_search(&xid).is_ok()
    }
}

/// A table on its way in, with its indexes and what was gathered for them.
pub(super) struct Loading {
    pub(super) table: TableRef,
    pub(super) indexes: Vec<(IndexRef, Harvest)>,
}

// SAFETY: table and index are pointers to storages of atomics that live as long as the arena here:
// nothing is dropped while loading.
unsafe impl Sync for Loading {}

/// An index that one thread builds as a whole.
struct Small(TableRef, IndexRef, Mutex<Option<Harvest>>);

// SAFETY: as for `Loading`.
unsafe impl Sync for Small {}

/// While it lives, the arena gets its pages many at a time.
struct PrefaultsSpans(Memory);

impl PrefaultsSpans {
    fn begin(memory: Memory) -> Self {
        memory.prefault_spans(true);
        PrefaultsSpans(memory)
    }
}

impl Drop for PrefaultsSpans {
    fn drop(&mut self) {
        self.0.prefault_spans(false);
    }
}

/// Loads `manifest`'s checkpoint into an empty engine, without the rows of tables whose rows are
/// not logged: what changed of them behind the checkpoint is nowhere.
pub fn load(
    engine: Engine,
    disk: &dyn Disk,
    manifest: &Manifest,
    threads: usize,
) -> Result<Loaded, EngineError> {
    load_all(engine, disk, &manifest.without_unlogged_rows(), threads)
}

/// As [`load`], with the rows of tables whose rows are not logged, if the checkpoint is final and
/// so has them all. For a start that follows the clean shutdown which wrote it, and for no other:
/// nothing may have been changed since.
pub fn load_after_shutdown(
    engine: Engine,
    disk: &dyn Disk,
    manifest: &Manifest,
    threads: usize,
) -> Result<Loaded, EngineError> {
    match manifest.is_final {
        true => load_all(engine, disk, manifest, threads),
        false => load(engine, disk, manifest, threads),
    }
}

fn load_all(
    engine: Engine,
    disk: &dyn Disk,
    manifest: &Manifest,
    threads: usize,
) -> Result<Loaded, EngineError> {
    let session = engine.join_for_recovery()?;
    let _fills_ahead = PrefaultsSpans::begin(session.memory().memory());
    let progress = engine.progress();
    let (files, blocks) = blocks_of(disk, manifest)?;
    let rows_total: u64 = manifest.tables.iter().map(|table| table.rows).sum();
    let bytes_total: u64 = manifest.files.iter().map(|file| file.bytes).sum();
    let indexes_total: usize = manifest
        .tables
        .iter()
        .map(|table| table.indexes.len())
        .sum();
    progress.rows_total.store(rows_total, Ordering::Relaxed);
    progress.bytes_total.store(bytes_total, Ordering::Relaxed);
    progress
        .indexes_total
        .store(indexes_total as u64, Ordering::Relaxed);

    let entries_total = manifest
        .tables
        .iter()
        .map(|table| table.rows * table.indexes.len() as u64)
        .sum();
    progress
        .index_entries_total
        .store(entries_total, Ordering::Relaxed);

    let tables = make_tables(&session, manifest)?;
    raise_ids(&session, manifest.next_table, manifest.next_index);
    engine.set_defined(manifest.defined);

    let allowance = crate::index::gathering_allowance(&session);
    let known = Known(&manifest.committed);
    let (rows, read) = rows::load(engine, &files, &blocks, &tables, known, &allowance, threads)?;
    if read != manifest.rows_in_files() {
        return Err(EngineError::Damaged {
            file: crate::checkpoint::manifest_name(manifest.generation),
            what: "the files do not hold as many rows as it says".to_owned(),
        });
    }

    build_indexes(&session, tables, threads)?;
    for locks in &manifest.locks {
        session.keep_locks(locks.lsn, locks.xid, &locks.record)?;
    }
    resolve_definitions_below(&session, &known, Xid(u64::MAX), &mut Finished::default());
    // What is between the two is no record of ours; and if a crash lost it, other records may take
    // its place.
    let certain = manifest.redo.min(manifest.flushed);
    progress
        .replayed_lsn
        .fetch_max(certain.0, Ordering::Relaxed);
    // The next checkpoint need not write again what no session changes from here on.
    engine.set_base(manifest.generation, engine.round());
    Ok(Loaded {
        redo: manifest.redo,
        flushed: manifest.flushed,
        rows,
        bytes: bytes_total,
        tables: manifest.tables.len(),
        indexes: indexes_total,
    })
}

/// Makes the tables of the checkpoint, empty, with indexes to gather keys for. By id.
fn make_tables(session: &Session, manifest: &Manifest) -> Result<Vec<Loading>, EngineError> {
    let mut tables: Vec<Loading> = Vec::new();
    for entry in &manifest.tables {
        let table = allocate_table(
            session,
            NewTable {
                id: entry.id,
                key: entry.key,
                persistence: entry.persistence,
            },
            entry.creator,
            Urgency::Ordinary,
        )?;
        let storage = table.storage();
        storage.dropped.store(entry.dropper.0, Ordering::Relaxed);
        storage.created_lsn.store(DEFINITION_LSN, Ordering::Relaxed);
        storage.dropped_lsn.store(DEFINITION_LSN, Ordering::Relaxed);
        storage.lists_free.store(0, Ordering::Relaxed);
        // The transaction that made it still ran, and may have copied its rows: a snapshot can be
        // older than the end of that.
        storage.copied_by.store(entry.creator.0, Ordering::Relaxed);
        storage
            .row_ids_end
            .store(entry.row_ids_end.0, Ordering::Relaxed);
        let mut indexes = Vec::new();
        for index_entry in &entry.indexes {
            let index = IndexRef::allocate(
                &session.local,
                index_entry.id,
                table.0,
                &index_entry.definition,
                index_entry.creator.0,
                Urgency::Ordinary,
            )?;
            let storage = index.storage();
            storage
                .dropped
                .store(index_entry.dropper.0, Ordering::Relaxed);
            storage.created_lsn.store(DEFINITION_LSN, Ordering::Relaxed);
            storage.dropped_lsn.store(DEFINITION_LSN, Ordering::Relaxed);
            publish_index(session, table, index)?;
            indexes.push((index, Harvest::default()));
        }
        session.catalog().link(table);
        tables.push(Loading { table, indexes });
    }
    tables.sort_unstable_by_key(|loading| loading.table.id());
    Ok(tables)
}

/// Threads share small indexes as wholes and each large one among them.
fn build_indexes(
    session: &Session,
    tables: Vec<Loading>,
    threads: usize,
) -> Result<(), EngineError> {
    let engine = session.engine();
    let built = &engine.progress().indexes_built;
    let mut small = Vec::new();
    for Loading { table, indexes } in tables {
        for (index, harvest) in indexes {
            if crate::index::is_small(table) {
                small.push(Small(table, index, Mutex::new(Some(harvest))));
                continue;
            }
            crate::index::build_gathered(session, table, index, harvest, threads)?;
            built.fetch_add(1, Ordering::Relaxed);
        }
    }
    let small = &small;
    on_threads(threads, small.len(), |_, units| {
        let session = engine.join_for_recovery()?;
        while let Some(unit) = units.take() {
            let Small(table, index, harvest) = &small[unit];
            let harvest = harvest
                .lock()
                .unwrap_or_else(|lock| lock.into_inner())
                .take();
            let harvest = harvest.expect("a unit is taken once");
            crate::index::build_gathered(&session, *table, *index, harvest, 1)?;
            built.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    })?;
    Ok(())
}

/// New ids are above these.
pub(super) fn raise_ids(session: &Session, next_table: TableId, next_index: IndexId) {
    let catalog = session.catalog();
    catalog
        .next_table_id
        .fetch_max(next_table.0, Ordering::AcqRel);
    catalog
        .next_index_id
        .fetch_max(next_index.0, Ordering::AcqRel);
}

/// A new version, unpublished; a tombstone if its flags say so.
pub(super) fn write_version(
    session: &Session,
    xid: Xid,
    body: &[u8],
    version_flags: u32,
) -> Result<VersionRef, EngineError> {
    if xid > Xid::MAX {
        return Err(EngineError::XidTooHigh { max: Xid::MAX.0 });
    }
    if body.len() < BODY_BYTES_MIN {
        return Err(EngineError::Corrupt {
            what: "a row is shorter than a tuple's header",
        });
    }
    let bytes = STAMP_BYTES + body.len();
    if bytes > ROW_BYTES_MAX {
        return Err(EngineError::RowTooLong {
            bytes,
            max: ROW_BYTES_MAX,
        });
    }
    let block =
        session
            .local
            .allocate(block_bytes(body.len()), Purpose::Rows, Urgency::Ordinary)?;
    // SAFETY: the block is fresh, aligned and large enough for the body.
    Ok(unsafe { VersionRef::write(block, body, xid, CommandId(0), version_flags) })
}
