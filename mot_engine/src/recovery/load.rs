//! Loads a checkpoint with several threads and builds every index.
//!
//! Threads take blocks (about 1 MiB of rows of one table), each with its own session, so that versions
//! come from its own chunks. Then indexes are built, each by all threads or many small ones at once:
//! see `../index/build.rs`.
//!
//! Contract: the engine has no tables yet. After an error it is unusable (the caller sets `Failed` or
//! ends the process).

use std::sync::atomic::Ordering;

use crate::checkpoint::{
    BlockReader, Damage, Manifest, VersionEntry, blocks_of, on_threads, read_block,
};
use crate::disk::Disk;
use crate::engine::Engine;
use crate::errors::EngineError;
use crate::ids::{CommandId, IndexId, Lsn, Slot, TableId, Xid};
use crate::limits::ROW_BYTES_MAX;
use crate::memory::{Purpose, Urgency};
use crate::row::{
    Head, IMAGE_BYTES_MIN, STAMP_BYTES, TOMBSTONE_IMAGE, VersionRef, block_bytes, flags,
};
use crate::session::Session;
use crate::table::{IndexRef, TableRef};
use crate::transaction::{allocate_table, publish_index};

/// What was loaded.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Loaded {
    /// Replay starts here; what ends at or before it is in.
    pub redo: Lsn,
    /// Readers must not run before replay has passed this: the checkpoint may already hold effects of
    /// WAL up to here.
    pub flushed: Lsn,
    /// Rows, entries of empty slots excepted.
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

/// A table or index handed to threads.
#[derive(Copy, Clone)]
struct Shared<T>(T);

// SAFETY: used for TableRef and IndexRef, pointers to storages of atomics that live as long as the
// arena here: nothing is dropped while loading.
unsafe impl<T> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Shared<T> {}

/// Loads `manifest`'s checkpoint into an empty engine.
pub fn load(
    engine: Engine,
    disk: &dyn Disk,
    manifest: &Manifest,
    threads: usize,
) -> Result<Loaded, EngineError> {
    let session = engine.join_for_recovery()?;
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

    let mut tables: Vec<(TableId, Shared<TableRef>)> = Vec::new();
    let mut indexes: Vec<Shared<(TableRef, IndexRef)>> = Vec::new();
    for entry in &manifest.tables {
        let table = allocate_table(&session, entry.id, entry.key, entry.creator)?;
        let storage = table.storage();
        storage.dropped.store(entry.dropper.0, Ordering::Relaxed);
        storage.created_lsn.store(DEFINITION_LSN, Ordering::Relaxed);
        storage.dropped_lsn.store(DEFINITION_LSN, Ordering::Relaxed);
        storage
            .slots_end
            .store(entry.slots_end.0, Ordering::Relaxed);
        for index_entry in &entry.indexes {
            let index = IndexRef::allocate(
                &session.local,
                index_entry.id,
                table.0,
                &index_entry.definition,
                index_entry.creator.0,
            )?;
            let storage = index.storage();
            storage
                .dropped
                .store(index_entry.dropper.0, Ordering::Relaxed);
            storage.created_lsn.store(DEFINITION_LSN, Ordering::Relaxed);
            storage.dropped_lsn.store(DEFINITION_LSN, Ordering::Relaxed);
            publish_index(table, index)?;
            indexes.push(Shared((table, index)));
        }
        session.catalog().link(table);
        tables.push((entry.id, Shared(table)));
    }
    tables.sort_unstable_by_key(|(id, _)| *id);
    raise_ids(&session, manifest.next_table, manifest.next_index);

    let results = on_threads(threads, blocks.len(), |_, units| {
        let mut loader = Loader {
            session: engine.join_for_recovery()?,
            rows: 0,
        };
        let mut body = Vec::new();
        while let Some(unit) = units.take() {
            if progress.load_is_unwanted.load(Ordering::Relaxed) != 0 {
                return Err(EngineError::Cancelled);
            }
            let place = &blocks[unit];
            read_block(&files, place, &mut body)?;
            let damaged = |damage: Damage| EngineError::Damaged {
                file: files[place.file].0.clone(),
                what: damage.0.to_owned(),
            };
            let mut reader = BlockReader::new(place, &body).map_err(damaged)?;
            let position = tables
                .binary_search_by_key(&place.header.table, |(id, _)| *id)
                .map_err(|_| damaged(Damage("a block is of a table the manifest does not name")))?;
            let table = tables[position].1.0;
            let before = loader.rows;
            let mut versions = Vec::new();
            while let Some((slot, lsn)) = reader.next(&mut versions).map_err(damaged)? {
                loader
                    .row(table, slot, lsn, &versions)
                    .map_err(|error| match error {
                        RowError::Engine(error) => error,
                        RowError::Damaged(damage) => damaged(damage),
                    })?;
            }
            progress
                .rows_loaded
                .fetch_add(loader.rows - before, Ordering::Relaxed);
            progress
                .bytes_loaded
                .fetch_add(place.header.body_bytes, Ordering::Relaxed);
        }
        Ok(loader.rows)
    })?;
    let rows: u64 = results.iter().sum();
    if rows != rows_total {
        return Err(EngineError::Damaged {
            file: crate::checkpoint::manifest_name(manifest.generation),
            what: "the files do not hold as many rows as it says".to_owned(),
        });
    }

    // Threads share small indexes as wholes and each large one among them.
    let (small, large): (Vec<_>, Vec<_>) = indexes
        .into_iter()
        .partition(|index| crate::index::is_small(index.0.0));
    for Shared((table, index)) in large {
        crate::index::build_unjudged(&session, table, index, threads)?;
        progress.indexes_built.fetch_add(1, Ordering::Relaxed);
    }
    on_threads(threads, small.len(), |_, units| {
        let session = engine.join_for_recovery()?;
        while let Some(unit) = units.take() {
            let (table, index) = small[unit].0;
            crate::index::build_unjudged(&session, table, index, 1)?;
            progress.indexes_built.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    })?;
    // What is between the two is no record of ours; and if a crash lost it, other records may take its place.
    let certain = manifest.redo.min(manifest.flushed);
    progress
        .replayed_lsn
        .fetch_max(certain.0, Ordering::Relaxed);
    // The next checkpoint need not write again what nobody changes from here on.
    engine.set_base(manifest.generation, engine.round());
    Ok(Loaded {
        redo: manifest.redo,
        flushed: manifest.flushed,
        rows,
        bytes: bytes_total,
        tables: tables.len(),
        indexes: indexes_total,
    })
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

enum RowError {
    Engine(EngineError),
    Damaged(Damage),
}

impl From<EngineError> for RowError {
    fn from(error: EngineError) -> Self {
        RowError::Engine(error)
    }
}

struct Loader {
    session: Session,
    rows: u64,
}

impl Loader {
    fn row(
        &mut self,
        table: TableRef,
        slot: Slot,
        lsn: Lsn,
        versions: &[VersionEntry<'_>],
    ) -> Result<(), RowError> {
        if slot >= table.slots_end() {
            return Err(RowError::Damaged(Damage(
                "a row lies beyond its table's end",
            )));
        }
        let anchor = match table.anchor(slot) {
            Some(anchor) => anchor,
            None => {
                let directory = &table.storage().directory;
                directory.ensure(&self.session.local, slot, Urgency::Ordinary)?;
                table.anchor(slot).expect("just ensured")
            }
        };
        let empty = anchor.head();
        if !empty.is_empty() || anchor.lsn() != Lsn::NONE {
            return Err(RowError::Damaged(Damage("a row occurs twice")));
        }
        let mut head = empty;
        for entry in versions.iter().rev() {
            let version = write_version(
                &self.session,
                slot,
                entry.xid,
                if entry.tombstone {
                    None
                } else {
                    Some(entry.body)
                },
                flags::LOGGED
                    | flags::KEYS_CHANGED
                    | if entry.committed { flags::COMMITTED } else { 0 },
            )?;
            version.set_next(head);
            head = head.with_address(version.address());
        }
        if versions.len() > 1 {
            head = head.with_flags(Head::KEYS_MOVED);
        }
        if versions.first().is_some_and(|newest| newest.rolled_back) {
            head = head.with_flags(Head::FULL_IMAGE_NEXT);
        }
        anchor.set_lsn(lsn);
        if !anchor.publish(empty, head) {
            return Err(RowError::Damaged(Damage("a row occurs twice")));
        }
        if let Some(newest) = versions.first().filter(|newest| !newest.tombstone) {
            self.rows += 1;
            let counters = table.counters();
            counters.rows.fetch_add(1, Ordering::Relaxed);
            let bytes = (newest.body.len() + STAMP_BYTES) as i64;
            counters.row_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// A new version, unpublished: a tombstone without body.
pub(super) fn write_version(
    session: &Session,
    slot: Slot,
    xid: Xid,
    body: Option<&[u8]>,
    version_flags: u32,
) -> Result<VersionRef, EngineError> {
    let bytes = match body {
        None => TOMBSTONE_IMAGE.len(),
        Some(body) => STAMP_BYTES + body.len(),
    };
    if bytes < IMAGE_BYTES_MIN {
        return Err(EngineError::Corrupt {
            what: "a row is shorter than a tuple's header",
        });
    }
    if bytes > ROW_BYTES_MAX {
        return Err(EngineError::RowTooLong {
            bytes,
            max: ROW_BYTES_MAX,
        });
    }
    let kind = if body.is_none() { flags::TOMBSTONE } else { 0 };
    let block = session
        .local
        .allocate(block_bytes(bytes), Purpose::Rows, Urgency::Ordinary)?;
    // SAFETY: the block is fresh, aligned and large enough for the image.
    Ok(unsafe {
        VersionRef::write_body(block, body, xid, CommandId(0), slot, version_flags | kind)
    })
}
