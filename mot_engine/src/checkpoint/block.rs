//! Blocks of rows: the unit of reading, checking and parallel loading.
//!
//! ```text
//! header, 64 bytes
//!  0 u32 magic "MOTB"   32 u64 first row id
//!  4 u32 version = 1    40 u64 body bytes
//!  8 u64 generation     48 u32 rows
//! 16 u64 table id       52 u32 CRC32C of body
//! 24 u32 file number    56 u32 reserved = 0
//! 28 u32 block number   60 u32 CRC32C of 0..60
//!
//! body: rows, row ids ascending, each:
//!   varint row id - previous row id - 1 (first: row id - first row id)
//!   zigzag varint LSN - previous row's LSN (first: LSN)
//!   varint number of versions (0: only the LSN counts)
//!   versions, newest first, each:
//!     u8 flags, zigzag varint finished below - xid,
//!     varint body length (of a tombstone mostly 0), body
//! ```
//!
//! Contract: `BlockReader` is total. A header names its generation, file and place, so a block that
//! strayed there from elsewhere is noticed.

use super::{BlockPlace, Damage};
use crate::errors::EngineError;
use crate::ids::{Lsn, RowId, TableId, Xid};
use crate::limits::ROW_IDS_MAX;
use crate::log::{Cursor, put, unzigzag, zigzag};

/// Length of a block's header.
pub const BLOCK_HEADER_BYTES: usize = 64;

/// A block is closed once its body has this many bytes: large enough that a read is worth its
/// latency and the header does not count, small enough to share the work evenly.
pub const BLOCK_BYTES: usize = 1 << 20;

const BLOCK_MAGIC: u32 = u32::from_le_bytes(*b"MOTB");
const BLOCK_VERSION: u32 = 1;

const FLAG_COMMITTED: u8 = 1;
const FLAG_TOMBSTONE: u8 = 2;
const FLAG_ROLLED_BACK: u8 = 4;

/// One version of a row as a checkpoint holds it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct VersionEntry<'a> {
    /// The transaction that made it.
    pub xid: Xid,
    /// Known to be committed when it was written.
    pub committed: bool,
    /// Says that the row is deleted. Its body is empty, or has the tombstone's note
    /// (`row/ordinal.rs`).
    pub tombstone: bool,
    /// Of the newest version: the row's LSN is that of a later change, which was rolled back. So
    /// the next change is logged whole.
    pub rolled_back: bool,
    /// The image after its stamp.
    pub body: &'a [u8],
}

/// A block's header, checked.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct BlockHeader {
    /// Which checkpoint.
    pub generation: u64,
    /// Whose rows.
    pub table: TableId,
    /// Which file of the generation.
    pub file: u32,
    /// Which block of the file, from 0.
    pub block: u32,
    /// Row id of the first row.
    pub first_row_id: RowId,
    /// Length of the body.
    pub body_bytes: u64,
    /// Number of rows.
    pub rows: u32,
    /// CRC32C of the body.
    pub body_crc: u32,
}

impl BlockHeader {
    /// The stored form.
    pub fn to_bytes(self) -> [u8; BLOCK_HEADER_BYTES] {
        let mut bytes = [0; BLOCK_HEADER_BYTES];
        bytes[0..4].copy_from_slice(&BLOCK_MAGIC.to_le_bytes());
        bytes[4..8].copy_from_slice(&BLOCK_VERSION.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.generation.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.table.0.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.file.to_le_bytes());
        bytes[28..32].copy_from_slice(&self.block.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.first_row_id.0.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.body_bytes.to_le_bytes());
        bytes[48..52].copy_from_slice(&self.rows.to_le_bytes());
        bytes[52..56].copy_from_slice(&self.body_crc.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..60]);
        bytes[60..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads and checks the stored form.
    pub fn from_bytes(bytes: &[u8; BLOCK_HEADER_BYTES]) -> Result<BlockHeader, Damage> {
        let mut cursor = Cursor::new(bytes);
        let mut read = || -> Result<_, EngineError> {
            let (magic, version) = (cursor.u32()?, cursor.u32()?);
            let header = BlockHeader {
                generation: cursor.u64()?,
                table: TableId(cursor.u64()?),
                file: cursor.u32()?,
                block: cursor.u32()?,
                first_row_id: RowId(cursor.u64()?),
                body_bytes: cursor.u64()?,
                rows: cursor.u32()?,
                body_crc: cursor.u32()?,
            };
            Ok((magic, version, header, cursor.u32()?, cursor.u32()?))
        };
        let (magic, version, header, reserved, crc) =
            read().map_err(|_| Damage("block header is cut"))?;
        if crc != crc32c::crc32c(&bytes[..60]) {
            return Err(Damage("block header has a wrong checksum"));
        }
        if magic != BLOCK_MAGIC || version != BLOCK_VERSION || reserved != 0 {
            return Err(Damage("block header has an unknown form"));
        }
        Ok(header)
    }
}

/// Collects rows of one table into a block's body.
pub struct BlockBuilder {
    finished_below: Xid,
    body: Vec<u8>,
    table: TableId,
    first_row_id: RowId,
    row_id_expected: u64,
    lsn_before: u64,
    rows: u32,
    /// The least LSN of a row since `begin` that has a version not known to be committed.
    open_from: Option<Lsn>,
    /// Makers of versions not known to be committed, since the builder was made; some more than
    /// once.
    open: Vec<Xid>,
    /// Largest LSN of any row since the builder was made.
    lsn_max: Lsn,
}

impl BlockBuilder {
    /// An empty builder. `finished_below` is the checkpoint's, from which xids are encoded.
    pub fn new(finished_below: Xid) -> Self {
        Self {
            finished_below,
            body: Vec::new(),
            table: TableId(0),
            first_row_id: RowId(0),
            row_id_expected: 0,
            lsn_before: 0,
            rows: 0,
            open_from: None,
            open: Vec::new(),
            lsn_max: Lsn(0),
        }
    }

    /// Begins a block of `table`'s rows.
    pub fn begin(&mut self, table: TableId) {
        self.body.clear();
        self.body.shrink_to(2 * BLOCK_BYTES);
        self.table = table;
        self.rows = 0;
        self.open_from = None;
        self.lsn_before = 0;
    }

    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Whether the block is long enough.
    pub fn is_full(&self) -> bool {
        self.body.len() >= BLOCK_BYTES || self.rows == u32::MAX
    }

    /// Rows so far.
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// The least LSN of a row of the block that has a version not known to be committed.
    pub fn open_from(&self) -> Option<Lsn> {
        self.open_from
    }

    /// The makers of versions of any block so far that are not known to be committed; some are
    /// named more than once.
    pub fn take_open(&mut self) -> Vec<Xid> {
        std::mem::take(&mut self.open)
    }

    fn note_open(&mut self, xid: Xid) -> Result<(), EngineError> {
        if self.open.last() == Some(&xid) {
            return Ok(());
        }
        if self.open.len() == self.open.capacity() {
            self.open.sort_unstable();
            self.open.dedup();
            self.open
                .try_reserve(self.open.len().max(64))
                .map_err(|_| EngineError::OutOfProcessMemory)?;
        }
        self.open.push(xid);
        Ok(())
    }

    /// Largest LSN of any row of any block so far.
    pub fn lsn_max(&self) -> Lsn {
        self.lsn_max
    }

    /// Appends a row; its row id is above the previous one's.
    pub fn row(
        &mut self,
        row_id: RowId,
        lsn: Lsn,
        versions: &[VersionEntry<'_>],
    ) -> Result<(), EngineError> {
        // Numbers: at most 10 bytes each, two per row and three per version, and the flags.
        let bytes: usize = versions.iter().map(|version| version.body.len() + 31).sum();
        self.body
            .try_reserve(bytes + 30)
            .map_err(|_| EngineError::OutOfProcessMemory)?;
        if self.rows == 0 {
            self.first_row_id = row_id;
            self.row_id_expected = row_id.0;
        }
        put(&mut self.body, row_id.0.wrapping_sub(self.row_id_expected));
        put(
            &mut self.body,
            zigzag(lsn.0.wrapping_sub(self.lsn_before) as i64),
        );
        put(&mut self.body, versions.len() as u64);
        for version in versions {
            if !version.committed {
                self.open_from = Some(self.open_from.map_or(lsn, |least| least.min(lsn)));
                self.note_open(version.xid)?;
            }
            self.body.push(
                if version.committed { FLAG_COMMITTED } else { 0 }
                    | if version.tombstone { FLAG_TOMBSTONE } else { 0 }
                    | if version.rolled_back {
                        FLAG_ROLLED_BACK
                    } else {
                        0
                    },
            );
            put(
                &mut self.body,
                zigzag(self.finished_below.0.wrapping_sub(version.xid.0) as i64),
            );
            put(&mut self.body, version.body.len() as u64);
            self.body.extend_from_slice(version.body);
        }
        self.row_id_expected = row_id.0 + 1;
        self.lsn_before = lsn.0;
        self.lsn_max = self.lsn_max.max(lsn);
        self.rows += 1;
        Ok(())
    }

    /// The block's header and body, to be written at this place.
    pub fn finish(&self, generation: u64, file: u32, block: u32) -> (BlockHeader, &[u8]) {
        let header = BlockHeader {
            generation,
            table: self.table,
            file,
            block,
            first_row_id: self.first_row_id,
            body_bytes: self.body.len() as u64,
            rows: self.rows,
            body_crc: crc32c::crc32c(&self.body),
        };
        (header, &self.body)
    }
}

/// Reads the rows of a block.
pub struct BlockReader<'a> {
    finished_below: Xid,
    cursor: Cursor<'a>,
    row_id_expected: u64,
    lsn_before: u64,
    rows_left: u32,
}

impl<'a> BlockReader<'a> {
    /// Checks the body against the header of its place.
    pub fn new(place: &BlockPlace, body: &'a [u8]) -> Result<Self, Damage> {
        Self::of(&place.header, body, place.finished_below)
    }

    /// As `new`, for a block that is nowhere.
    pub(super) fn of(
        header: &BlockHeader,
        body: &'a [u8],
        finished_below: Xid,
    ) -> Result<Self, Damage> {
        if body.len() as u64 != header.body_bytes {
            return Err(Damage("block is cut"));
        }
        if crc32c::crc32c(body) != header.body_crc {
            return Err(Damage("block has a wrong checksum"));
        }
        Ok(Self {
            finished_below,
            cursor: Cursor::new(body),
            row_id_expected: header.first_row_id.0,
            lsn_before: 0,
            rows_left: header.rows,
        })
    }

    /// The next row; its versions go into `versions`, newest first.
    pub fn next(
        &mut self,
        versions: &mut Vec<VersionEntry<'a>>,
    ) -> Result<Option<(RowId, Lsn)>, Damage> {
        versions.clear();
        if self.rows_left == 0 {
            return if self.cursor.is_empty() {
                Ok(None)
            } else {
                Err(Damage("block has bytes after its last row"))
            };
        }
        self.rows_left -= 1;
        self.read(versions)
            .map(Some)
            .map_err(|_| Damage("block has a malformed row"))
    }

    fn read(&mut self, versions: &mut Vec<VersionEntry<'a>>) -> Result<(RowId, Lsn), EngineError> {
        let malformed = EngineError::Corrupt {
            what: "row of a checkpoint is malformed",
        };
        let cursor = &mut self.cursor;
        let row_id = self.row_id_expected.wrapping_add(cursor.varint()?);
        if row_id < self.row_id_expected || row_id >= ROW_IDS_MAX {
            return Err(malformed);
        }
        let lsn = self
            .lsn_before
            .wrapping_add(unzigzag(cursor.varint()?) as u64);
        self.row_id_expected = row_id + 1;
        self.lsn_before = lsn;
        // A version has at least three bytes, so this bounds the loop.
        let count = cursor.length()?;
        for _ in 0..count {
            let flags = cursor.byte()?;
            if flags & !(FLAG_COMMITTED | FLAG_TOMBSTONE | FLAG_ROLLED_BACK) != 0 {
                return Err(malformed);
            }
            let xid = self
                .finished_below
                .0
                .wrapping_sub(unzigzag(cursor.varint()?) as u64);
            let length = cursor.length()?;
            versions.push(VersionEntry {
                xid: Xid(xid),
                committed: flags & FLAG_COMMITTED != 0,
                tombstone: flags & FLAG_TOMBSTONE != 0,
                rolled_back: flags & FLAG_ROLLED_BACK != 0,
                body: cursor.take(length)?,
            });
        }
        Ok((RowId(row_id), Lsn(lsn)))
    }
}
