//! What a manifest has of a table: its indexes, and where its rows are. The form: `manifest.rs`.

use super::{
    MANIFEST_VERSION_ALL_LOGGED, MANIFEST_VERSION_FOREIGN_TABLES,
    MANIFEST_VERSION_NO_MISSING_VALUES, MANIFEST_VERSION_WHOLE_FILES,
    MANIFEST_VERSION_WHOLE_RANGES, NOTHING_OPEN, RANGE_FLAG_OPEN, u32s, u64s, unknown_flags,
};
use crate::errors::EngineError;
use crate::ids::{IndexId, Lsn, RelationKey, RowId, TableId, Xid};
use crate::key::IndexDefinition;
use crate::log::Cursor;
use crate::table::Persistence;

/// A table's storage.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableEntry {
    /// Its id.
    pub id: TableId,
    /// The relation it stores.
    pub key: RelationKey,
    /// Whether its rows are logged; of one whose rows are not, only a final checkpoint has rows.
    pub persistence: Persistence,
    /// The creator, or 0 when that is resolved.
    pub creator: Xid,
    /// The dropper, or 0.
    pub dropper: Xid,
    /// One above the last row id ever used.
    pub row_ids_end: RowId,
    /// Rows in the checkpoint, about: deleted ones may count for a while.
    pub rows: u64,
    /// Its indexes.
    pub indexes: Vec<IndexEntry>,
    /// Its rows, by number of the range, then by age, oldest first; also ranges without any.
    pub ranges: Vec<RangeEntry>,
}

/// An index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IndexEntry {
    /// Its id.
    pub id: IndexId,
    /// The creator, or 0 when that is resolved.
    pub creator: Xid,
    /// The dropper, or 0.
    pub dropper: Xid,
    /// What it is made of.
    pub definition: IndexDefinition,
}

/// Rows of consecutive row ids, a run of blocks in one file: all rows of a range, or those that
/// were changed after `since`, which count instead of those in older parts of the range.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct RangeEntry {
    /// The range: its first row id divided by the row ids of a range.
    pub number: u32,
    /// Position of its file in the manifest; of no meaning without blocks.
    pub file: u32,
    /// Number of its first block in the file.
    pub first_block: u32,
    /// Blocks.
    pub blocks: u32,
    /// Where the first block's header begins.
    pub offset: u64,
    /// Bytes of the blocks, headers included.
    pub bytes: u64,
    /// Live rows in these blocks.
    pub rows: u64,
    /// Live rows of the range once these are in, about.
    pub range_rows: u64,
    /// It has every row whose LSN was above; NONE: it has all.
    pub since: Lsn,
    /// The least LSN of a row with a version that was not known to be committed. Such rows must be
    /// written again before the commit log is cut off.
    pub open_from: Option<Lsn>,
    /// Rows in these blocks, also those that only say that there is none.
    pub entries: u32,
    /// CRC32C over the block headers (which hold the CRCs of the bodies).
    pub digest: u32,
}

impl TableEntry {
    /// Leaves an empty table.
    pub(in crate::checkpoint) fn forget_rows(&mut self) {
        self.row_ids_end = RowId(0);
        self.rows = 0;
        self.ranges.clear();
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) -> Result<(), EngineError> {
        u64s(out, &[self.id.0]);
        u32s(out, &self.key.written()?);
        u64s(
            out,
            &[
                self.creator.0,
                self.dropper.0,
                self.row_ids_end.0,
                self.rows,
            ],
        );
        u32s(out, &[self.indexes.len() as u32, self.ranges.len() as u32]);
        u32s(out, &[self.persistence.to_word()]);
        for index in &self.indexes {
            u64s(out, &[index.id.0, index.creator.0, index.dropper.0]);
            u32s(out, &[index.definition.bytes_len() as u32]);
            index.definition.write_bytes(out)?;
        }
        for range in &self.ranges {
            let (first, open_from) = (range.first_block, range.open_from);
            u32s(out, &[range.number, range.file, first, range.blocks]);
            u64s(out, &[range.offset, range.bytes, range.rows]);
            u64s(out, &[range.range_rows, range.since.0]);
            u64s(out, &[open_from.map_or(NOTHING_OPEN, |lsn| lsn.0)]);
            u32s(out, &[range.entries, range.digest]);
        }
        Ok(())
    }

    pub(super) fn read(cursor: &mut Cursor<'_>, version: u32) -> Result<TableEntry, EngineError> {
        let mut table = TableEntry {
            id: TableId(cursor.u64()?),
            key: match version {
                ..=MANIFEST_VERSION_FOREIGN_TABLES => {
                    RelationKey::of_earlier_build(cursor.u32()?, cursor.u32()?)
                }
                _ => RelationKey::of_file(cursor.u32()?, cursor.u32()?, cursor.u32()?),
            },
            persistence: Persistence::Logged,
            creator: Xid(cursor.u64()?),
            dropper: Xid(cursor.u64()?),
            row_ids_end: RowId(cursor.u64()?),
            rows: cursor.u64()?,
            indexes: Vec::new(),
            ranges: Vec::new(),
        };
        let indexes = cursor.u32()?;
        let ranges = match version {
            MANIFEST_VERSION_WHOLE_FILES => 0,
            _ => cursor.u32()?,
        };
        if version > MANIFEST_VERSION_ALL_LOGGED {
            table.persistence =
                Persistence::from_word(cursor.u32()?).ok_or(EngineError::Corrupt {
                    what: "manifest has an unknown kind of table",
                })?;
        }
        for _ in 0..indexes {
            let (id, creator, dropper) = (cursor.u64()?, cursor.u64()?, cursor.u64()?);
            let length = cursor.u32()? as usize;
            let definition = IndexDefinition::from_bytes(cursor.take(length)?)?;
            if version <= MANIFEST_VERSION_NO_MISSING_VALUES && !definition.missing.is_empty() {
                return Err(EngineError::Corrupt {
                    what: "manifest holds a definition of a later version",
                });
            }
            table.indexes.push(IndexEntry {
                id: IndexId(id),
                creator: Xid(creator),
                dropper: Xid(dropper),
                definition,
            });
        }
        for _ in 0..ranges {
            table.ranges.push(RangeEntry::read(cursor, version)?);
        }
        Ok(table)
    }
}

impl RangeEntry {
    fn read(cursor: &mut Cursor<'_>, version: u32) -> Result<RangeEntry, EngineError> {
        let mut range = RangeEntry {
            number: cursor.u32()?,
            file: cursor.u32()?,
            first_block: cursor.u32()?,
            blocks: cursor.u32()?,
            offset: cursor.u64()?,
            bytes: cursor.u64()?,
            rows: cursor.u64()?,
            range_rows: 0,
            since: Lsn::NONE,
            open_from: None,
            entries: 0,
            digest: 0,
        };
        if version == MANIFEST_VERSION_WHOLE_RANGES {
            range.range_rows = range.rows;
            range.entries = u32::try_from(range.rows).unwrap_or(u32::MAX);
            range.digest = cursor.u32()?;
            range.open_from = match cursor.u32()? {
                0 => None,
                // Which row it is was not said.
                RANGE_FLAG_OPEN => Some(Lsn::NONE),
                _ => return Err(unknown_flags()),
            };
            return Ok(range);
        }
        range.range_rows = cursor.u64()?;
        range.since = Lsn(cursor.u64()?);
        range.open_from = Some(cursor.u64()?)
            .filter(|lsn| *lsn != NOTHING_OPEN)
            .map(Lsn);
        range.entries = cursor.u32()?;
        range.digest = cursor.u32()?;
        Ok(range)
    }
}
