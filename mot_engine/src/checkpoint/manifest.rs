//! The manifest: what makes a generation's files a checkpoint.
//!
//! ```text
//!  0 u32 magic "MOTM", u32 version = 1, u64 length of the whole file
//! 16 u64 system identifier, u64 redo LSN, u64 flushed LSN, u64 generation, u64 settled xid,
//! 56 u64 next table id, u64 next index id, u32 timeline, u32 flags (1: final), u32 tables, u32 files
//! 88 tables, each: u64 id, u32 database, u32 relation, u64 creator xid, u64 dropper xid,
//!        u64 slots end, u64 rows, u32 indexes, then indexes, each:
//!        u64 id, u64 creator xid, u64 dropper xid, u32 length, definition (key/README.md)
//!    files, each: u32 number, u32 blocks, u64 bytes, u32 digest (CRC32C of the block headers)
//!    u32 CRC32C of everything before
//! ```
//! Xids are 0 where the definition is settled (creator) or stands (dropper).
//!
//! Contract: total; `from_bytes` accepts exactly what `to_bytes` writes.

use super::Damage;
use crate::errors::EngineError;
use crate::ids::{IndexId, Lsn, RelationKey, Slot, TableId, Xid};
use crate::key::IndexDefinition;
use crate::log::Cursor;

const MANIFEST_MAGIC: u32 = u32::from_le_bytes(*b"MOTM");
const MANIFEST_VERSION: u32 = 1;
const FLAG_FINAL: u32 = 1;

/// A checkpoint's description.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Manifest {
    /// The cluster it belongs to.
    pub system_id: u64,
    /// The timeline that `redo` lies on.
    pub timeline: u32,
    /// Written at shutdown, with nothing logged after.
    pub is_final: bool,
    /// Everything logged up to here is in; replay starts here.
    pub redo: Lsn,
    /// Nothing later than this was seen while writing; WAL was durable up to here. Below `redo` only at the
    /// end of recovery, when the server has inserted records of its own that are not flushed yet.
    pub flushed: Lsn,
    /// Counts the checkpoints of this cluster.
    pub generation: u64,
    /// Every xid below was finished when the checkpoint began.
    pub settled: Xid,
    /// Counters to go on from.
    pub next_table: TableId,
    /// Counters to go on from.
    pub next_index: IndexId,
    /// Every table.
    pub tables: Vec<TableEntry>,
    /// Every file with rows.
    pub files: Vec<FileEntry>,
}

/// A table's storage.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableEntry {
    /// Its id.
    pub id: TableId,
    /// The relation it stores.
    pub key: RelationKey,
    /// Who created it, or 0 when that is settled.
    pub creator: Xid,
    /// Who dropped it, or 0.
    pub dropper: Xid,
    /// One above the last slot ever used.
    pub slots_end: Slot,
    /// Rows in the checkpoint.
    pub rows: u64,
    /// Its indexes.
    pub indexes: Vec<IndexEntry>,
}

/// An index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IndexEntry {
    /// Its id.
    pub id: IndexId,
    /// Who created it, or 0 when that is settled.
    pub creator: Xid,
    /// Who dropped it, or 0.
    pub dropper: Xid,
    /// What it is made of.
    pub definition: IndexDefinition,
}

/// A file of rows.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct FileEntry {
    /// Its number in the generation.
    pub number: u32,
    /// Blocks in it.
    pub blocks: u32,
    /// Its length.
    pub bytes: u64,
    /// CRC32C over its block headers (which hold the CRCs of the bodies).
    pub digest: u32,
}

impl Manifest {
    /// The stored form.
    pub fn to_bytes(&self) -> Result<Vec<u8>, EngineError> {
        let mut out = Vec::new();
        let u32s = |out: &mut Vec<u8>, values: &[u32]| {
            values
                .iter()
                .for_each(|value| out.extend_from_slice(&value.to_le_bytes()));
        };
        let u64s = |out: &mut Vec<u8>, values: &[u64]| {
            values
                .iter()
                .for_each(|value| out.extend_from_slice(&value.to_le_bytes()));
        };
        u32s(&mut out, &[MANIFEST_MAGIC, MANIFEST_VERSION]);
        u64s(
            &mut out,
            &[
                0,
                self.system_id,
                self.redo.0,
                self.flushed.0,
                self.generation,
                self.settled.0,
                self.next_table.0,
                self.next_index.0,
            ],
        );
        let flags = if self.is_final { FLAG_FINAL } else { 0 };
        let (tables, files) = (self.tables.len() as u32, self.files.len() as u32);
        u32s(&mut out, &[self.timeline, flags, tables, files]);
        for table in &self.tables {
            u64s(&mut out, &[table.id.0]);
            u32s(&mut out, &[table.key.database, table.key.relation]);
            u64s(
                &mut out,
                &[
                    table.creator.0,
                    table.dropper.0,
                    table.slots_end.0,
                    table.rows,
                ],
            );
            u32s(&mut out, &[table.indexes.len() as u32]);
            for index in &table.indexes {
                u64s(&mut out, &[index.id.0, index.creator.0, index.dropper.0]);
                u32s(&mut out, &[index.definition.bytes_len() as u32]);
                index.definition.write_bytes(&mut out)?;
            }
        }
        for file in &self.files {
            u32s(&mut out, &[file.number, file.blocks]);
            u64s(&mut out, &[file.bytes]);
            u32s(&mut out, &[file.digest]);
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
        if cursor.u32().map_err(malformed)? != MANIFEST_MAGIC
            || cursor.u32().map_err(malformed)? != MANIFEST_VERSION
        {
            return Err(Damage("manifest has an unknown form"));
        }
        if cursor.u64().map_err(malformed)? != bytes.len() as u64 {
            return Err(Damage("manifest has a wrong length"));
        }
        let manifest = read(&mut cursor).map_err(malformed)?;
        if !cursor.is_empty() {
            return Err(Damage("manifest has bytes after its end"));
        }
        Ok(manifest)
    }
}

fn read(cursor: &mut Cursor<'_>) -> Result<Manifest, EngineError> {
    let mut manifest = Manifest {
        system_id: cursor.u64()?,
        redo: Lsn(cursor.u64()?),
        flushed: Lsn(cursor.u64()?),
        generation: cursor.u64()?,
        settled: Xid(cursor.u64()?),
        next_table: TableId(cursor.u64()?),
        next_index: IndexId(cursor.u64()?),
        timeline: cursor.u32()?,
        is_final: match cursor.u32()? {
            0 => false,
            FLAG_FINAL => true,
            _ => {
                return Err(EngineError::Corrupt {
                    what: "manifest has unknown flags",
                });
            }
        },
        tables: Vec::new(),
        files: Vec::new(),
    };
    let (tables, files) = (cursor.u32()?, cursor.u32()?);
    for _ in 0..tables {
        let mut table = TableEntry {
            id: TableId(cursor.u64()?),
            key: RelationKey {
                database: cursor.u32()?,
                relation: cursor.u32()?,
            },
            creator: Xid(cursor.u64()?),
            dropper: Xid(cursor.u64()?),
            slots_end: Slot(cursor.u64()?),
            rows: cursor.u64()?,
            indexes: Vec::new(),
        };
        for _ in 0..cursor.u32()? {
            let (id, creator, dropper) = (cursor.u64()?, cursor.u64()?, cursor.u64()?);
            let length = cursor.u32()? as usize;
            table.indexes.push(IndexEntry {
                id: IndexId(id),
                creator: Xid(creator),
                dropper: Xid(dropper),
                definition: IndexDefinition::from_bytes(cursor.take(length)?)?,
            });
        }
        manifest.tables.push(table);
    }
    for _ in 0..files {
        manifest.files.push(FileEntry {
            number: cursor.u32()?,
            blocks: cursor.u32()?,
            bytes: cursor.u64()?,
            digest: cursor.u32()?,
        });
    }
    Ok(manifest)
}
