//! Finds and reads the blocks of a checkpoint.
//!
//! Contract: every byte that is used is covered by a checksum that is checked first: headers here
//! (and all of a range together by its digest), bodies by `BlockReader`. Bytes of a file that no
//! range names are of an older generation, and are not examined.

use super::Damage;
use super::block::{BLOCK_HEADER_BYTES, BlockHeader};
use super::files::{damaged, io_error, rows_name};
use super::manifest::{FileEntry, Manifest, RangeEntry};
use crate::disk::{Disk, DiskReader};
use crate::errors::EngineError;
use crate::ids::{TableId, Xid};

/// Where a block's body is.
#[derive(Copy, Clone, Debug)]
pub struct BlockPlace {
    /// Position of its file in the manifest.
    pub file: usize,
    /// Offset of the body in the file.
    pub offset: u64,
    /// Its header.
    pub header: BlockHeader,
    /// From what its xids are told.
    pub finished_below: Xid,
    /// It is put in after the block before it in the list, by the same thread.
    pub continues: bool,
    /// Rows that a block before it in the list had count for no more.
    pub is_older: bool,
}

/// A rows file opened for reading.
pub type OpenRows = (String, Box<dyn DiskReader>);

/// Opens all files of a checkpoint and reads their block headers: files that belong to it as a
/// whole, then the ranges of its tables, of each the newest part first.
pub fn blocks_of(
    disk: &dyn Disk,
    manifest: &Manifest,
) -> Result<(Vec<OpenRows>, Vec<BlockPlace>), EngineError> {
    let mut files = Vec::new();
    let mut blocks = Vec::new();
    for (position, entry) in manifest.files.iter().enumerate() {
        let file = open_rows(disk, entry)?;
        if let Some(whole) = entry.whole {
            let run = Run {
                position,
                entry,
                table: None,
                offset: 0,
                bytes: entry.bytes,
                first_block: 0,
                blocks: whole.blocks,
                digest: whole.digest,
            };
            run.read(&file, &mut blocks)?;
        }
        files.push(file);
    }
    for table in &manifest.tables {
        let parts = |one: &RangeEntry, next: &RangeEntry| one.number == next.number;
        for parts in table.ranges.chunk_by(parts) {
            let begin = blocks.len();
            for part in parts.iter().rev().filter(|part| part.blocks > 0) {
                let first = blocks.len();
                let position = part.file as usize;
                let Some(entry) = manifest.files.get(position) else {
                    let name = super::manifest_name(manifest.generation);
                    return Err(damaged(&name, Damage("a range lies in no file")));
                };
                let run = Run::of(part, position, entry, table.id);
                run.read(&files[position], &mut blocks)?;
                for place in &mut blocks[first..] {
                    place.is_older = first > begin;
                    place.continues = parts.len() > 1;
                }
            }
            if let Some(first) = blocks.get_mut(begin) {
                first.continues = false;
            }
        }
    }
    Ok((files, blocks))
}

/// The blocks that one thread puts in, one after the other.
pub fn units_of(blocks: &[BlockPlace]) -> Vec<&[BlockPlace]> {
    blocks.chunk_by(|_, next| next.continues).collect()
}

/// Opens a file and checks its length.
pub(super) fn open_rows(disk: &dyn Disk, entry: &FileEntry) -> Result<OpenRows, EngineError> {
    let name = rows_name(entry.generation, entry.number);
    let reader = disk.open(&name).map_err(|error| {
        if error.kind() == std::io::ErrorKind::NotFound {
            damaged(&name, Damage("the file is missing"))
        } else {
            io_error("could not open", &name)(error)
        }
    })?;
    let bytes = reader
        .bytes()
        .map_err(io_error("could not read the length of", &name))?;
    if bytes != entry.bytes {
        return Err(damaged(&name, Damage("the file has a wrong length")));
    }
    Ok((name, reader))
}

/// Consecutive blocks of a file.
struct Run<'a> {
    position: usize,
    entry: &'a FileEntry,
    /// Whose rows they have to be.
    table: Option<TableId>,
    offset: u64,
    bytes: u64,
    first_block: u32,
    blocks: u32,
    digest: u32,
}

impl<'a> Run<'a> {
    fn of(range: &RangeEntry, position: usize, entry: &'a FileEntry, table: TableId) -> Self {
        Run {
            position,
            entry,
            table: Some(table),
            offset: range.offset,
            bytes: range.bytes,
            first_block: range.first_block,
            blocks: range.blocks,
            digest: range.digest,
        }
    }

    fn read(&self, file: &OpenRows, blocks: &mut Vec<BlockPlace>) -> Result<(), EngineError> {
        let (name, reader) = file;
        let wrong = |what| damaged(name, Damage(what));
        let end = self.offset.checked_add(self.bytes);
        let Some(end) = end.filter(|end| *end <= self.entry.bytes) else {
            return Err(wrong("the file is cut"));
        };
        let mut offset = self.offset;
        let mut digest = 0;
        for number in 0..self.blocks {
            let mut header = [0; BLOCK_HEADER_BYTES];
            if end - offset < header.len() as u64 {
                return Err(wrong("the file is cut"));
            }
            reader
                .read_at(offset, &mut header)
                .map_err(io_error("could not read", name))?;
            digest = crc32c::crc32c_append(digest, &header);
            let header =
                BlockHeader::from_bytes(&header).map_err(|damage| damaged(name, damage))?;
            offset += BLOCK_HEADER_BYTES as u64;
            let block = self.first_block.wrapping_add(number);
            let expected = (self.entry.generation, self.entry.number, block);
            if (header.generation, header.file, header.block) != expected
                || self.table.is_some_and(|table| table != header.table)
            {
                return Err(wrong("a block of another place is in the file"));
            }
            if header.body_bytes > end - offset {
                return Err(wrong("a block is longer than its file"));
            }
            blocks
                .try_reserve(1)
                .map_err(|_| EngineError::OutOfProcessMemory)?;
            blocks.push(BlockPlace {
                file: self.position,
                offset,
                header,
                finished_below: self.entry.finished_below,
                continues: false,
                is_older: false,
            });
            offset += header.body_bytes;
        }
        if offset != end {
            return Err(wrong("the file has bytes after its last block"));
        }
        if digest != self.digest {
            return Err(wrong("the file's blocks are not those of its manifest"));
        }
        Ok(())
    }
}

/// Reads a block's body into `body`.
pub fn read_block(
    files: &[OpenRows],
    place: &BlockPlace,
    body: &mut Vec<u8>,
) -> Result<(), EngineError> {
    let (name, reader) = &files[place.file];
    // At most the file's length, as `blocks_of` has checked.
    let bytes =
        usize::try_from(place.header.body_bytes).map_err(|_| EngineError::OutOfProcessMemory)?;
    body.try_reserve(bytes.saturating_sub(body.len()))
        .map_err(|_| EngineError::OutOfProcessMemory)?;
    // All of it is read: what is there from the block before need not be zeroed.
    body.resize(bytes, 0);
    reader
        .read_at(place.offset, body)
        .map_err(io_error("could not read", name))
}
