//! Finds and reads the blocks of a checkpoint.
//!
//! Contract: every byte of every file named by the manifest is covered by a checksum that is checked
//! before it is used: headers here (and all together by the file's digest), bodies by `BlockReader`.

use super::Damage;
use super::block::{BLOCK_HEADER_BYTES, BlockHeader};
use super::files::{damaged, io_error, rows_name};
use super::manifest::Manifest;
use crate::disk::{Disk, DiskReader};
use crate::errors::EngineError;

/// Where a block's body is.
#[derive(Copy, Clone, Debug)]
pub struct BlockPlace {
    /// Position of its file in the manifest.
    pub file: usize,
    /// Offset of the body in the file.
    pub offset: u64,
    /// Its header.
    pub header: BlockHeader,
}

/// A rows file opened for reading.
pub type OpenRows = (String, Box<dyn DiskReader>);

/// Opens all files of a checkpoint and reads their block headers, in the order of the files.
pub fn blocks_of(
    disk: &dyn Disk,
    manifest: &Manifest,
) -> Result<(Vec<OpenRows>, Vec<BlockPlace>), EngineError> {
    let mut files = Vec::new();
    let mut blocks = Vec::new();
    for (position, entry) in manifest.files.iter().enumerate() {
        let name = rows_name(manifest.generation, entry.number);
        let reader = disk
            .open(&name)
            .map_err(io_error("could not open", &name))?;
        let bytes = reader
            .bytes()
            .map_err(io_error("could not read the length of", &name))?;
        if bytes != entry.bytes {
            return Err(damaged(&name, Damage("the file has a wrong length")));
        }
        let mut offset = 0_u64;
        let mut digest = 0;
        for block in 0..entry.blocks {
            let mut header = [0; BLOCK_HEADER_BYTES];
            if bytes - offset < header.len() as u64 {
                return Err(damaged(&name, Damage("the file is cut")));
            }
            reader
                .read_at(offset, &mut header)
                .map_err(io_error("could not read", &name))?;
            digest = crc32c::crc32c_append(digest, &header);
            let header =
                BlockHeader::from_bytes(&header).map_err(|damage| damaged(&name, damage))?;
            offset += BLOCK_HEADER_BYTES as u64;
            let expected = (manifest.generation, entry.number, block);
            if (header.generation, header.file, header.block) != expected {
                return Err(damaged(
                    &name,
                    Damage("a block of another place is in the file"),
                ));
            }
            if header.body_bytes > bytes - offset {
                return Err(damaged(&name, Damage("a block is longer than its file")));
            }
            blocks
                .try_reserve(1)
                .map_err(|_| EngineError::OutOfProcessMemory)?;
            blocks.push(BlockPlace {
                file: position,
                offset,
                header,
            });
            offset += header.body_bytes;
        }
        if offset != bytes {
            return Err(damaged(
                &name,
                Damage("the file has bytes after its last block"),
            ));
        }
        if digest != entry.digest {
            return Err(damaged(
                &name,
                Damage("the file's blocks are not those of its manifest"),
            ));
        }
        files.push((name, reader));
    }
    Ok((files, blocks))
}

/// Reads a block's body into `body`.
pub fn read_block(
    files: &[OpenRows],
    place: &BlockPlace,
    body: &mut Vec<u8>,
) -> Result<(), EngineError> {
    let (name, reader) = &files[place.file];
    body.clear();
    // At most the file's length, as `blocks_of` has checked.
    let bytes =
        usize::try_from(place.header.body_bytes).map_err(|_| EngineError::OutOfProcessMemory)?;
    body.try_reserve(bytes)
        .map_err(|_| EngineError::OutOfProcessMemory)?;
    body.resize(bytes, 0);
    reader
        .read_at(place.offset, body)
        .map_err(io_error("could not read", name))
}
