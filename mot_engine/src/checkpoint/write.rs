//! Writes a checkpoint with several threads.
//!
//! Each thread takes slot ranges of tables and appends blocks to a file of its own, so the number of
//! files is the number of threads, however many tables there are. Order of durability: rows files
//! (sync each), directory, WAL (`flush`), manifest draft (sync), rename, directory.
//!
//! Contract: `Ok` means the generation is complete and durable. After an error the generation does
//! not exist; its files are leftovers that `remove_old` takes away.

use std::ops::Range;

use super::block::{BLOCK_HEADER_BYTES, BlockBuilder};
use super::files::{io_error, manifest_draft_name, manifest_name, rows_name};
use super::manifest::{FileEntry, Manifest, TableEntry};
use super::threads::on_threads;
use crate::disk::{Disk, DiskWriter};
use crate::errors::EngineError;
use crate::ids::{IndexId, Lsn, Slot, TableId, Xid};

/// Slots a thread takes at a time: a few MiB of rows, so large tables are shared evenly.
pub const WALK_UNIT_SLOTS: u64 = 1 << 16;

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
    pub settled: Xid,
    /// Nothing will be logged after this checkpoint (shutdown).
    pub is_final: bool,
    /// Threads to write with.
    pub threads: usize,
    /// Called once, after all rows are durable and before the manifest is: makes durable all WAL
    /// inserted so far (at least up to the LSN given) and tells up to where. In recovery: tells the
    /// replay position. WAL inserted so far, not only the rows' records: commit records that made
    /// a version "known to be committed" must be durable too, or after a crash the xid could be
    /// used again by a transaction that then appears to have written the row.
    pub flush: &'a mut dyn FnMut(Lsn) -> Result<Lsn, EngineError>,
}

/// What was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Written {
    /// The generation.
    pub generation: u64,
    /// WAL is durable and needed up to here.
    pub flushed: Lsn,
    /// Rows in all tables.
    pub rows: u64,
    /// Bytes of all files but the manifest.
    pub bytes: u64,
    /// Number of rows files.
    pub files: usize,
}

/// Where the rows come from: the engine, or a test.
pub trait RowSource: Sync {
    /// What a thread needs to walk rows, made in the thread.
    type Walker<'a>
    where
        Self: 'a;
    /// Called once: the tables with logged definitions, and the next ids.
    fn tables(&self) -> Result<(Vec<TableEntry>, TableId, IndexId), EngineError>;
    /// Makes a thread's walker.
    fn walker(&self) -> Result<Self::Walker<'_>, EngineError>;
    /// Walks on from `slots.start` until the end of `slots` or until `block` is full, and gives the
    /// slot to go on from and how many rows it met.
    fn walk(
        &self,
        walker: &mut Self::Walker<'_>,
        table: TableId,
        slots: Range<Slot>,
        block: &mut BlockBuilder,
    ) -> Result<(Slot, u64), EngineError>;
}

struct ThreadResult {
    file: Option<FileEntry>,
    lsn_max: Lsn,
    /// Rows per table position.
    rows: Vec<(usize, u64)>,
}

/// Writes all rows of `source`.
pub fn write_from<S: RowSource>(
    source: &S,
    disk: &dyn Disk,
    context: &mut CheckpointContext<'_>,
) -> Result<Written, EngineError> {
    let generation = context.generation;
    let (mut tables, next_table, next_index) = source.tables()?;
    let mut units: Vec<(usize, Range<Slot>)> = Vec::new();
    for (position, table) in tables.iter().enumerate() {
        let mut start = 0;
        while start < table.slots_end.0 {
            let end = table.slots_end.0.min(start + WALK_UNIT_SLOTS);
            units.push((position, Slot(start)..Slot(end)));
            start = end;
        }
    }
    let settled = context.settled;
    let results = on_threads(context.threads, units.len(), |number, next| {
        let mut file = RowsFile {
            disk,
            generation,
            number: number as u32,
            open: None,
        };
        let mut walker = source.walker()?;
        let mut block = BlockBuilder::new(settled);
        let mut rows = Vec::new();
        while let Some(unit) = next.take() {
            let (position, slots) = &units[unit];
            let table = tables[*position].id;
            let mut start = slots.start;
            let mut count = 0;
            while start < slots.end && !next.is_stopped() {
                block.begin(table);
                let (reached, met) =
                    source.walk(&mut walker, table, start..slots.end, &mut block)?;
                start = reached;
                count += met;
                if !block.is_empty() {
                    file.append(&block)?;
                }
            }
            rows.push((*position, count));
        }
        Ok(ThreadResult {
            file: file.finish()?,
            lsn_max: block.lsn_max(),
            rows,
        })
    })?;

    let mut lsn_max = Lsn(0);
    let mut files = Vec::new();
    for result in results {
        lsn_max = lsn_max.max(result.lsn_max);
        files.extend(result.file);
        for (position, count) in result.rows {
            tables[position].rows += count;
        }
    }
    files.sort_unstable_by_key(|file| file.number);
    disk.sync_directory()
        .map_err(io_error("could not sync", "."))?;

    let flushed = (context.flush)(lsn_max)?;
    if flushed < lsn_max {
        return Err(EngineError::Corrupt {
            what: "WAL is not durable up to the checkpoint's newest row",
        });
    }
    let manifest = Manifest {
        system_id: context.system_id,
        timeline: context.timeline,
        is_final: context.is_final,
        redo: context.redo,
        flushed,
        generation,
        settled,
        next_table,
        next_index,
        tables,
        files,
    };
    seal(disk, &manifest)?;
    Ok(Written {
        generation,
        flushed,
        rows: manifest.tables.iter().map(|table| table.rows).sum(),
        bytes: manifest.files.iter().map(|file| file.bytes).sum(),
        files: manifest.files.len(),
    })
}

/// Puts the manifest in place. The caller may also replace one of the same generation: when nothing was
/// logged since that checkpoint began, its redo position moves on without writing a row.
pub fn seal(disk: &dyn Disk, manifest: &Manifest) -> Result<(), EngineError> {
    let name = manifest_name(manifest.generation);
    let draft = manifest_draft_name(manifest.generation);
    let mut writer = disk
        .create(&draft)
        .map_err(io_error("could not create", &draft))?;
    writer
        .append(&manifest.to_bytes()?)
        .map_err(io_error("could not write", &draft))?;
    writer.sync().map_err(io_error("could not sync", &draft))?;
    drop(writer);
    disk.rename(&draft, &name)
        .map_err(io_error("could not rename", &draft))?;
    disk.sync_directory()
        .map_err(io_error("could not sync", "."))
}

/// A thread's file, created with its first block.
struct RowsFile<'a> {
    disk: &'a dyn Disk,
    generation: u64,
    number: u32,
    open: Option<OpenFile>,
}

struct OpenFile {
    name: String,
    writer: Box<dyn DiskWriter>,
    entry: FileEntry,
}

impl RowsFile<'_> {
    fn append(&mut self, block: &BlockBuilder) -> Result<(), EngineError> {
        let open = match &mut self.open {
            Some(open) => open,
            none => {
                let name = rows_name(self.generation, self.number);
                let writer = self
                    .disk
                    .create(&name)
                    .map_err(io_error("could not create", &name))?;
                let entry = FileEntry {
                    number: self.number,
                    blocks: 0,
                    bytes: 0,
                    digest: 0,
                };
                none.insert(OpenFile {
                    name,
                    writer,
                    entry,
                })
            }
        };
        let (header, body) = block.finish(self.generation, self.number, open.entry.blocks);
        let header = header.to_bytes();
        open.writer
            .append(&header)
            .map_err(io_error("could not write", &open.name))?;
        open.writer
            .append(body)
            .map_err(io_error("could not write", &open.name))?;
        open.entry.digest = crc32c::crc32c_append(open.entry.digest, &header);
        open.entry.bytes += (BLOCK_HEADER_BYTES + body.len()) as u64;
        open.entry.blocks += 1;
        Ok(())
    }

    fn finish(self) -> Result<Option<FileEntry>, EngineError> {
        let Some(mut open) = self.open else {
            return Ok(None);
        };
        open.writer
            .sync()
            .map_err(io_error("could not sync", &open.name))?;
        Ok(Some(open.entry))
    }
}
