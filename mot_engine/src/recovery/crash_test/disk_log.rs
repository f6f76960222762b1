//! The log on the simulated disk.

use crate::disk::simulated::SimulatedDisk;
use crate::disk::{Disk, DiskWriter};
use crate::errors::EngineError;
use crate::recovery::tests::{Entry, Wal};

/// The log on the disk: segments, one for each start, of records with checksums.
pub(super) struct DiskLog {
    disk: SimulatedDisk,
    writer: Option<Box<dyn DiskWriter>>,
    pub(super) segment: u64,
    /// Entries of the log in memory that are on the disk, and up to where that is durable.
    written: usize,
    pub(super) flushed: u64,
}

const RECORD_HEADER_BYTES: usize = 16;

fn io(source: std::io::Error) -> EngineError {
    EngineError::Io {
        action: "could not use",
        file: "the log".into(),
        source,
    }
}

fn segment_name(segment: u64) -> String {
    format!("wal-{segment:08}")
}

impl DiskLog {
    /// Goes on behind `entries` entries, which end at `end`.
    pub(super) fn new(disk: &SimulatedDisk, segment: u64, entries: usize, end: u64) -> DiskLog {
        DiskLog {
            disk: disk.clone(),
            writer: None,
            segment,
            written: entries,
            flushed: end,
        }
    }

    /// Makes everything that is in the log durable.
    pub(super) fn flush(&mut self, wal: &Wal) -> Result<u64, EngineError> {
        let writer = match &mut self.writer {
            Some(writer) => writer,
            none => {
                let mut writer = self.disk.create(&segment_name(self.segment)).map_err(io)?;
                // Which segments are older, and where this one goes on.
                writer.append(&self.flushed.to_le_bytes()).map_err(io)?;
                writer.sync().map_err(io)?;
                self.disk.sync_directory().map_err(io)?;
                none.insert(writer)
            }
        };
        for (lsn, entry) in &wal.entries[self.written..] {
            writer.append(&stored(*lsn, entry)).map_err(io)?;
        }
        self.written = wal.entries.len();
        writer.sync().map_err(io)?;
        self.flushed = wal.entries.last().map_or(self.flushed, |(lsn, _)| *lsn);
        Ok(self.flushed)
    }
}

/// u32 length, u32 CRC32C of what follows, u64 LSN, the record or the xid.
fn stored(lsn: u64, entry: &Entry) -> Vec<u8> {
    let mut content = lsn.to_le_bytes().to_vec();
    match entry {
        Entry::Record { bytes, .. } => content.extend_from_slice(bytes),
        Entry::Commit { xid } | Entry::Prepare { xid } | Entry::Abort { xid } => {
            content.extend_from_slice(&xid.to_le_bytes());
        }
    }
    let mut out = (content.len() as u32).to_le_bytes().to_vec();
    out.extend_from_slice(&crc32c::crc32c(&content).to_le_bytes());
    out.extend_from_slice(&content);
    out
}

/// Where the log that can be read ends. The machine may have gone down before a segment had
/// anything.
pub(super) fn end_of_log(disk: &SimulatedDisk, segments: u64) -> u64 {
    let mut end = 0;
    for segment in 0..=segments {
        let bytes = disk.contents(&segment_name(segment)).unwrap_or_default();
        let Some((first, mut rest)) = bytes.split_at_checked(8) else {
            continue;
        };
        if u64::from_le_bytes(first.try_into().expect("8 bytes")) != end {
            continue;
        }
        while let Some((lsn, next)) = read(rest) {
            end = lsn;
            rest = next;
        }
    }
    end
}

fn read(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (header, rest) = bytes.split_at_checked(RECORD_HEADER_BYTES - 8)?;
    let length = u32::from_le_bytes(header[..4].try_into().ok()?) as usize;
    let crc = u32::from_le_bytes(header[4..].try_into().ok()?);
    let (content, rest) = rest.split_at_checked(length)?;
    let lsn = content.get(..8)?.try_into().ok()?;
    (crc32c::crc32c(content) == crc).then_some((u64::from_le_bytes(lsn), rest))
}
