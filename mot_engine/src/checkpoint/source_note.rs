//! Where the rows of the old cluster of a `pg_upgrade` are. Its server leaves this in the files of
//! its tables, which `pg_upgrade` brings to the new one.
//!
//! ```text
//! 0 u32 magic "MOTU", u32 version = 1, u32 length of the whole
//! 12 u64 system identifier, u64 generation of its newest checkpoint
//! 28 path of the data directory, then u32 CRC32C of everything before
//! ```
//!
//! Contract: `from_bytes` is total, accepts what `to_bytes` writes, and passes over bytes behind.

use super::Damage;
use crate::errors::EngineError;
use crate::log::Cursor;

const NOTE_MAGIC: u32 = u32::from_le_bytes(*b"MOTU");
const NOTE_VERSION: u32 = 1;
/// Bytes of a note but its path.
const FIXED_BYTES: usize = 28 + size_of::<u32>();

/// The cluster that rows come from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceNote {
    /// Its system identifier.
    pub system_id: u64,
    /// Its newest checkpoint.
    pub generation: u64,
    /// Its data directory, an absolute path.
    pub directory: Vec<u8>,
}

impl SourceNote {
    /// The stored form.
    pub fn to_bytes(&self) -> Vec<u8> {
        let length = FIXED_BYTES + self.directory.len();
        let mut out = Vec::with_capacity(length);
        for word in [NOTE_MAGIC, NOTE_VERSION, length as u32] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        for number in [self.system_id, self.generation] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&self.directory);
        let crc = crc32c::crc32c(&out);
        out.extend_from_slice(&crc.to_le_bytes());
        debug_assert_eq!(out.len(), length);
        out
    }

    /// Reads and checks the stored form at the beginning of `bytes`.
    pub fn from_bytes(bytes: &[u8]) -> Result<SourceNote, Damage> {
        let mut cursor = Cursor::new(bytes);
        let mut read = || -> Result<_, EngineError> {
            let (magic, version, length) = (cursor.u32()?, cursor.u32()?, cursor.u32()? as usize);
            let (system_id, generation) = (cursor.u64()?, cursor.u64()?);
            let directory = cursor.take(length.saturating_sub(FIXED_BYTES))?.to_vec();
            let note = SourceNote {
                system_id,
                generation,
                directory,
            };
            Ok((magic, version, length, note, cursor.u32()?))
        };
        let (magic, version, length, note, crc) =
            read().map_err(|_| Damage("note of an upgrade is cut"))?;
        if magic != NOTE_MAGIC || version != NOTE_VERSION || length < FIXED_BYTES {
            return Err(Damage("note of an upgrade has an unknown form"));
        }
        let content = bytes.get(..length - size_of::<u32>());
        match content.is_some_and(|content| crc32c::crc32c(content) == crc) {
            true => Ok(note),
            false => Err(Damage("note of an upgrade has a wrong checksum")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As version 1 wrote it.
    const GOLDEN: &[u8] =
        b"MOTU\x01\0\0\0\x25\0\0\0\x08\x07\x06\x05\x04\x03\x02\x01\x2a\0\0\0\0\0\0\0/data\
        \x4a\x61\x18\x99";

    fn note() -> SourceNote {
        SourceNote {
            system_id: 0x0102_0304_0506_0708,
            generation: 42,
            directory: b"/data".to_vec(),
        }
    }

    #[test]
    fn the_golden_note_is_read_and_written() {
        assert_eq!(note().to_bytes(), GOLDEN);
        assert_eq!(SourceNote::from_bytes(GOLDEN), Ok(note()));
    }

    #[test]
    fn an_empty_file_is_no_note() {
        assert!(SourceNote::from_bytes(&[]).is_err());
        assert!(SourceNote::from_bytes(&[0; 8192]).is_err());
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            system_id: u64,
            generation: u64,
            directory: Vec<u8>,
            behind: Vec<u8>,
        ) {
            let note = SourceNote { system_id, generation, directory };
            let mut bytes = note.to_bytes();
            bytes.extend(behind);
            prop_assert_eq!(SourceNote::from_bytes(&bytes), Ok(note));
        }

        #[test]
        fn damage_is_an_error(at: prop::sample::Index, by in 1..=u8::MAX) {
            let mut bytes = note().to_bytes();
            bytes[at.index(GOLDEN.len())] ^= by;
            prop_assert!(SourceNote::from_bytes(&bytes).is_err());
        }

        #[test]
        fn anything_is_read_or_refused(bytes: Vec<u8>) {
            let _ = SourceNote::from_bytes(&bytes);
        }
    }
}
