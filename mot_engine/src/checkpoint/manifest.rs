//! The manifest: what makes a generation's files a checkpoint.
//!
//! ```text
//!   0 u32 magic "MOTM", u32 version = 7, u64 length of the whole file
//!  16 u64 system identifier, u64 redo LSN, u64 flushed LSN, u64 generation,
//!     u64 finished below (xid)
//!  56 u64 next table id, u64 next index id, u64 LSN of the definitions
//!  80 u32 timeline, u32 flags (1: final), u32 tables, u32 files
//!  96 u32 row ids of a range, u32 transactions known to have committed
//! 104 tables, each:
//!       u64 id, u32 database, u32 tablespace, u32 relation, u64 creator xid, u64 dropper xid,
//!       u64 end of the row ids, u64 rows, u32 indexes, u32 ranges,
//!       u32 persistence (0 logged, 1 unlogged)
//!       indexes, each: u64 id, u64 creator xid, u64 dropper xid, u32 length,
//!         definition (key/README.md)
//!       parts of ranges, each: u32 number, u32 position of its file below, u32 first block,
//!         u32 blocks, u64 offset, u64 bytes, u64 rows, u64 rows of the range, u64 since,
//!         u64 open from (all bits: nothing is open), u32 entries,
//!         u32 digest (CRC32C of its block headers)
//!     files, each: u64 generation, u32 number, u32 blocks, u64 bytes, u64 finished below (xid),
//!       u32 digest
//!     transactions known to have committed, ascending: u64 xid
//!     u32 records of row locks (log/locks.rs), each: u64 xid, u64 LSN, u32 length, the record
//!     u32 CRC32C of everything before
//! ```
//! Xids are 0 where the definition is resolved (creator) or stands (dropper). A file's blocks and
//! digest are 0 unless it comes from a manifest of version 1. Such a file belongs to the manifest
//! as a whole.
//!
//! Parts with one number are of one range, oldest first: the first has all its rows, each further
//! one those with an LSN above `since`.
//!
//! Version 1 has no ranges (neither their row ids nor their number), and says of a file: u32
//! number, u32 blocks, u64 bytes, u32 digest; all are of the manifest's generation. Version 2 has
//! one part for each range, and after its rows: u32 digest, u32 flags (1: something is open). Up to
//! version 3 there is no LSN of the definitions, up to version 4 no tablespace: every table is a
//! foreign one. Up to version 5 no definition holds missing values. Up to version 6 every table is
//! logged, and there are no row locks, nor their number. All of these are read, never written.
//!
//! Contract: total; `from_bytes` accepts exactly what `to_bytes` writes, and versions 1 to 6.

mod entries;

pub use entries::{IndexEntry, RangeEntry, TableEntry};

use super::Damage;
use crate::errors::EngineError;
use crate::ids::{IndexId, Lsn, TableId, Xid};
use crate::log::Cursor;
use crate::transaction::LocksOf;

const MANIFEST_MAGIC: u32 = u32::from_le_bytes(*b"MOTM");
pub(super) const MANIFEST_VERSION: u32 = 7;
/// The last version in which every table is logged, and without row locks of prepared transactions.
const MANIFEST_VERSION_ALL_LOGGED: u32 = 6;
/// The last version whose index definitions hold no missing values.
const MANIFEST_VERSION_NO_MISSING_VALUES: u32 = 5;
/// The last version in which every table is a foreign one.
const MANIFEST_VERSION_FOREIGN_TABLES: u32 = 4;
/// The last version without the LSN of the definitions.
const MANIFEST_VERSION_DEFINITIONS_ANY_TIME: u32 = 3;
/// The version whose ranges are always whole.
const MANIFEST_VERSION_WHOLE_RANGES: u32 = 2;
/// The version without ranges.
const MANIFEST_VERSION_WHOLE_FILES: u32 = 1;
const FLAG_FINAL: u32 = 1;
/// Version 2: a range has something open.
const RANGE_FLAG_OPEN: u32 = 1;
const NOTHING_OPEN: u64 = u64::MAX;

/// A checkpoint's description.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Manifest {
    /// The cluster it belongs to.
    pub system_id: u64,
    /// The timeline that `redo` is on.
    pub timeline: u32,
    /// Written at shutdown, with nothing logged after.
    pub is_final: bool,
    /// Everything logged up to here is in; replay starts here.
    pub redo: Lsn,
    /// Nothing later than this was seen while writing; WAL was durable up to here. Below `redo`
    /// only at the end of recovery, when the server has inserted records of its own that are not
    /// flushed yet.
    pub flushed: Lsn,
    /// Counts the checkpoints of this cluster.
    pub generation: u64,
    /// Every xid below was finished when the checkpoint began.
    pub finished_below: Xid,
    /// Counters to continue from.
    pub next_table: TableId,
    /// Counters to continue from.
    pub next_index: IndexId,
    /// The tables and indexes are those of a moment behind this position, which may lie behind
    /// `redo`. What a record up to here has made and is not among them was gone, its drop committed
    /// or its maker rolled back. NONE: nothing is known of that.
    pub defined: Lsn,
    /// Row ids of a range; 0 if there are no ranges (version 1).
    pub range_row_ids: u32,
    /// Every table.
    pub tables: Vec<TableEntry>,
    /// Every file with rows.
    pub files: Vec<FileEntry>,
    /// Makers of versions that the files do not call committed, and of definitions, that have
    /// committed all the same, as became known behind the walk: at least those whose commit record
    /// is before `redo`. No later log names them, and the commit log may be cut off.
    /// Ascending.
    pub committed: Vec<Xid>,
    /// Row locks of transactions that may be prepared.
    pub locks: Vec<LocksOf>,
}

/// A file of rows.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct FileEntry {
    /// The generation that wrote it.
    pub generation: u64,
    /// Its number in that generation.
    pub number: u32,
    /// Its length.
    pub bytes: u64,
    /// From what its xids are told.
    pub finished_below: Xid,
    /// All its blocks belong to the checkpoint, without ranges (version 1).
    pub whole: Option<WholeFile>,
}

/// What version 1 says of a file.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct WholeFile {
    /// Blocks in it, at least one.
    pub blocks: u32,
    /// CRC32C over its block headers.
    pub digest: u32,
}

fn u32s(out: &mut Vec<u8>, values: &[u32]) {
    for value in values {
        out.extend_from_slice(&value.to_le_bytes());
    }
}

fn u64s(out: &mut Vec<u8>, values: &[u64]) {
    for value in values {
        out.extend_from_slice(&value.to_le_bytes());
    }
}

impl Manifest {
    /// Live rows that lie in the files, also those that newer parts of their range replace.
    pub fn rows_in_files(&self) -> u64 {
        let of = |table: &TableEntry| match self.range_row_ids {
            0 => table.rows,
            _ => table.ranges.iter().map(|part| part.rows).sum(),
        };
        self.tables.iter().map(of).sum()
    }

    /// As a start finds it that is not known to follow a clean shutdown: tables whose rows are not
    /// logged are empty.
    pub(crate) fn without_unlogged_rows(&self) -> Manifest {
        let mut manifest = self.clone();
        let is_unlogged = |table: &&mut TableEntry| !table.persistence.logs_rows();
        for table in manifest.tables.iter_mut().filter(is_unlogged) {
            table.forget_rows();
        }
        manifest
    }

    /// Whether it has work of transactions whose outcome it does not have, or has in `committed`
    /// alone.
    pub fn has_open(&self) -> bool {
        let is_open = |creator: Xid, dropper: Xid| creator.is_some() || dropper.is_some();
        self.tables.iter().any(|table| {
            let mut indexes = table.indexes.iter();
            is_open(table.creator, table.dropper)
                || indexes.any(|index| is_open(index.creator, index.dropper))
                || table.ranges.iter().any(|part| part.open_from.is_some())
        })
    }

    /// The stored form.
    pub fn to_bytes(&self) -> Result<Vec<u8>, EngineError> {
        let mut out = Vec::new();
        u32s(&mut out, &[MANIFEST_MAGIC, MANIFEST_VERSION]);
        u64s(
            &mut out,
            &[
                0,
                self.system_id,
                self.redo.0,
                self.flushed.0,
                self.generation,
                self.finished_below.0,
                self.next_table.0,
                self.next_index.0,
                self.defined.0,
            ],
        );
        let flags = if self.is_final { FLAG_FINAL } else { 0 };
        let (tables, files) = (self.tables.len() as u32, self.files.len() as u32);
        u32s(&mut out, &[self.timeline, flags, tables, files]);
        u32s(&mut out, &[self.range_row_ids, self.committed.len() as u32]);
        for table in &self.tables {
            table.write(&mut out)?;
        }
        for file in &self.files {
            let (blocks, digest) = file.whole.map_or((0, 0), |all| (all.blocks, all.digest));
            u64s(&mut out, &[file.generation]);
            u32s(&mut out, &[file.number, blocks]);
            u64s(&mut out, &[file.bytes, file.finished_below.0]);
            u32s(&mut out, &[digest]);
        }
        for xid in &self.committed {
            u64s(&mut out, &[xid.0]);
        }
        u32s(&mut out, &[self.locks.len() as u32]);
        for locks in &self.locks {
            u64s(&mut out, &[locks.xid.0, locks.lsn.0]);
            u32s(&mut out, &[locks.record.len() as u32]);
            out.extend_from_slice(&locks.record);
        }
        let length = out.len() as u64 + 4;
        out[8..16].copy_from_slice(&length.to_le_bytes());
        let crc = crc32c::crc32c(&out);
        u32s(&mut out, &[crc]);
        Ok(out)
    }

    /// Reads and checks the stored form.
    pub fn from_bytes(bytes: &[u8]) -> Result<Manifest, Damage> {
        let Some((content, crc)) = bytes.split_last_chunk::<4>() else {
            return Err(Damage("manifest is cut"));
        };
        if crc32c::crc32c(content) != u32::from_le_bytes(*crc) {
            return Err(Damage("manifest has a wrong checksum"));
        }
        let mut cursor = Cursor::new(content);
        let malformed = |_| Damage("manifest is malformed");
        let magic = cursor.u32().map_err(malformed)?;
        let version = cursor.u32().map_err(malformed)?;
        if magic != MANIFEST_MAGIC
            || !(MANIFEST_VERSION_WHOLE_FILES..=MANIFEST_VERSION).contains(&version)
        {
            return Err(Damage("manifest has an unknown form"));
        }
        if cursor.u64().map_err(malformed)? != bytes.len() as u64 {
            return Err(Damage("manifest has a wrong length"));
        }
        let manifest = read(&mut cursor, version).map_err(malformed)?;
        if !cursor.is_empty() {
            return Err(Damage("manifest has bytes after its end"));
        }
        Ok(manifest)
    }
}

fn unknown_flags() -> EngineError {
    EngineError::Corrupt {
        what: "manifest has unknown flags",
    }
}

/// What version 1 says of a file of its own generation.
fn read_whole_file(cursor: &mut Cursor<'_>, of: &Manifest) -> Result<FileEntry, EngineError> {
    let (number, blocks) = (cursor.u32()?, cursor.u32()?);
    Ok(FileEntry {
        generation: of.generation,
        number,
        bytes: cursor.u64()?,
        finished_below: of.finished_below,
        whole: Some(WholeFile {
            blocks,
            digest: cursor.u32()?,
        }),
    })
}

fn read_file(cursor: &mut Cursor<'_>) -> Result<FileEntry, EngineError> {
    let generation = cursor.u64()?;
    let (number, blocks) = (cursor.u32()?, cursor.u32()?);
    let (bytes, finished_below) = (cursor.u64()?, Xid(cursor.u64()?));
    let digest = cursor.u32()?;
    if blocks == 0 && digest != 0 {
        return Err(unknown_flags());
    }
    Ok(FileEntry {
        generation,
        number,
        bytes,
        finished_below,
        whole: (blocks != 0).then_some(WholeFile { blocks, digest }),
    })
}

fn read(cursor: &mut Cursor<'_>, version: u32) -> Result<Manifest, EngineError> {
    let mut manifest = Manifest {
        system_id: cursor.u64()?,
        redo: Lsn(cursor.u64()?),
        flushed: Lsn(cursor.u64()?),
        generation: cursor.u64()?,
        finished_below: Xid(cursor.u64()?),
        next_table: TableId(cursor.u64()?),
        next_index: IndexId(cursor.u64()?),
        defined: match version {
            ..=MANIFEST_VERSION_DEFINITIONS_ANY_TIME => Lsn::NONE,
            _ => Lsn(cursor.u64()?),
        },
        timeline: cursor.u32()?,
        is_final: match cursor.u32()? {
            0 => false,
            FLAG_FINAL => true,
            _ => return Err(unknown_flags()),
        },
        range_row_ids: 0,
        tables: Vec::new(),
        files: Vec::new(),
        committed: Vec::new(),
        locks: Vec::new(),
    };
    let (tables, files) = (cursor.u32()?, cursor.u32()?);
    let mut committed = 0;
    if version != MANIFEST_VERSION_WHOLE_FILES {
        manifest.range_row_ids = cursor.u32()?;
        committed = cursor.u32()?;
    }
    for _ in 0..tables {
        manifest.tables.push(TableEntry::read(cursor, version)?);
    }
    for _ in 0..files {
        let file = match version {
            MANIFEST_VERSION_WHOLE_FILES => read_whole_file(cursor, &manifest)?,
            _ => read_file(cursor)?,
        };
        manifest.files.push(file);
    }
    for _ in 0..committed {
        manifest.committed.push(Xid(cursor.u64()?));
    }
    if !manifest.committed.is_sorted() {
        return Err(EngineError::Corrupt {
            what: "manifest has transactions out of order",
        });
    }
    let locks = match version {
        ..=MANIFEST_VERSION_ALL_LOGGED => 0,
        _ => cursor.u32()?,
    };
    for _ in 0..locks {
        let (xid, lsn) = (Xid(cursor.u64()?), Lsn(cursor.u64()?));
        let length = cursor.u32()? as usize;
        let record = cursor.take(length)?.to_vec();
        manifest.locks.push(LocksOf { xid, lsn, record });
    }
    Ok(manifest)
}
