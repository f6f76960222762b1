//! The file that a thread writes its blocks to.
//!
//! Contract: it exists once it has a block, and is complete and durable after `finish`. What an
//! error leaves of it is the caller's to remove.

use super::block::{BLOCK_HEADER_BYTES, BlockBuilder};
use super::files::{io_error, rows_name};
use super::manifest::FileEntry;
use crate::disk::{Disk, DiskWriter};
use crate::errors::EngineError;
use crate::ids::Xid;
use crate::pause::{Point, allowed};

/// A thread's file, created with its first block.
pub(super) struct RowsFile<'a> {
    disk: &'a dyn Disk,
    open: Option<(String, Box<dyn DiskWriter>)>,
    /// What the manifest will say of it.
    pub(super) entry: FileEntry,
    /// Blocks so far.
    pub(super) blocks: u32,
}

impl<'a> RowsFile<'a> {
    pub(super) fn new(
        disk: &'a dyn Disk,
        generation: u64,
        number: u32,
        finished_below: Xid,
    ) -> Self {
        RowsFile {
            disk,
            open: None,
            entry: FileEntry {
                generation,
                number,
                bytes: 0,
                finished_below,
                whole: None,
            },
            blocks: 0,
        }
    }

    /// Appends a block; gives `digest` extended by its header.
    pub(super) fn append(&mut self, block: &BlockBuilder, digest: u32) -> Result<u32, EngineError> {
        let FileEntry {
            generation, number, ..
        } = self.entry;
        let (name, writer) = match &mut self.open {
            Some(open) => open,
            none => {
                let name = rows_name(generation, number);
                let writer = self
                    .disk
                    .create(&name)
                    .map_err(io_error("could not create", &name))?;
                none.insert((name, writer))
            }
        };
        let (header, body) = block.finish(generation, number, self.blocks);
        let header = header.to_bytes();
        for bytes in [&header[..], body] {
            writer
                .append(bytes)
                .map_err(io_error("could not write", name))?;
        }
        self.entry.bytes += (BLOCK_HEADER_BYTES + body.len()) as u64;
        self.blocks += 1;
        Ok(crc32c::crc32c_append(digest, &header))
    }

    /// Makes it durable; None if nothing was appended.
    pub(super) fn finish(self) -> Result<Option<FileEntry>, EngineError> {
        let Some((name, mut writer)) = self.open else {
            return Ok(None);
        };
        allowed(Point::CheckpointSyncRows)
            .and_then(|()| writer.sync())
            .map_err(io_error("could not sync", &name))?;
        Ok(Some(self.entry))
    }
}
