//! Records of keys that rows got in an index that came after them.
//!
//! ```text
//! record = magic u16, version u8 = 5, kind u8 = 4, varint table id, u32 the index's number,
//!          varint how many, u32 the number of each other index whose entries stay; the index's own
//!          number alone: those of all others do,
//!          then for each row, in ascending order:
//!   row: varint row id - previous row id - 1 (first: row id), varint ordinal, u32 checksum,
//!        varint length, the entry of the row's tail without the number
//! ```
//! The row's state is the one with this ordinal, and with this checksum of all but its tail
//! (CRC32C). It keeps its transaction and its LSN. No transaction decides about it: the record's id
//! does not count.

use super::varint::{Cursor, put};
use super::{LOG_RECORD_BYTES_MAX, RecordKind, put_header};
use crate::errors::EngineError;
use crate::ids::{ORDINALS, Ordinal, RowId, TableId};
use crate::limits::ROW_ID_BITS;

/// Most bytes of a row besides its entry, and of what begins a record.
const ROW_BYTES_MAX: usize = 40;

/// A key that a state of a row got.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct RowKey<'a> {
    /// The row.
    pub row_id: RowId,
    /// Which of its states.
    pub ordinal: Ordinal,
    /// Of that state's body, without its tail.
    pub checksum: u32,
    /// The entry of the tail, without the index's number.
    pub entry: &'a [u8],
}

/// A record under construction.
#[derive(Default)]
pub(crate) struct KeysWriter {
    bytes: Vec<u8>,
    next: u64,
}

impl KeysWriter {
    /// Begins a record. Of other indexes than `kept` the rows' entries go; `None`: of none.
    pub(crate) fn begin(
        &mut self,
        table: TableId,
        number: u32,
        kept: Option<&[u32]>,
    ) -> Result<(), EngineError> {
        let kept = kept.unwrap_or(std::slice::from_ref(&number));
        self.bytes.clear();
        self.next = 0;
        self.reserve(size_of_val(kept))?;
        put_header(&mut self.bytes, RecordKind::Keys);
        put(&mut self.bytes, table.0);
        self.bytes.extend_from_slice(&number.to_le_bytes());
        put(&mut self.bytes, kept.len() as u64);
        for number in kept {
            self.bytes.extend_from_slice(&number.to_le_bytes());
        }
        Ok(())
    }

    /// Adds a row. Their row ids ascend.
    pub(crate) fn add(&mut self, row: RowKey<'_>) -> Result<(), EngineError> {
        debug_assert!(row.row_id.0 >= self.next);
        self.reserve(row.entry.len())?;
        put(&mut self.bytes, row.row_id.0 - self.next);
        put(&mut self.bytes, u64::from(row.ordinal.0));
        self.bytes.extend_from_slice(&row.checksum.to_le_bytes());
        put(&mut self.bytes, row.entry.len() as u64);
        self.bytes.extend_from_slice(row.entry);
        self.next = row.row_id.0 + 1;
        Ok(())
    }

    /// The record so far.
    pub(crate) fn record(&self) -> &[u8] {
        debug_assert!(self.bytes.len() <= LOG_RECORD_BYTES_MAX);
        &self.bytes
    }

    fn reserve(&mut self, bytes: usize) -> Result<(), EngineError> {
        self.bytes
            .try_reserve(ROW_BYTES_MAX + bytes)
            .map_err(|_| EngineError::OutOfProcessMemory)
    }
}

/// Iterates over the rows of a record; ends after an error.
pub struct KeysReader<'a> {
    cursor: Cursor<'a>,
    /// Whose rows.
    pub table: TableId,
    /// The index's number in their tails.
    pub number: u32,
    /// The numbers of other indexes whose entries stay.
    kept: &'a [u8],
    next: u64,
}

impl<'a> KeysReader<'a> {
    pub(super) fn new(body: &'a [u8]) -> Result<Self, EngineError> {
        let mut cursor = Cursor::new(body);
        let table = TableId(cursor.varint()?);
        let number = cursor.u32()?;
        let bytes = cursor.length()?.checked_mul(size_of::<u32>());
        let kept = cursor.take(bytes.unwrap_or(usize::MAX))?;
        Ok(KeysReader {
            cursor,
            table,
            number,
            kept,
            next: 0,
        })
    }

    /// The numbers of other indexes whose entries stay; `None`: those of all do.
    pub fn kept(&self) -> Option<impl Iterator<Item = u32> + use<'a>> {
        let (numbers, _) = self.kept.as_chunks();
        let numbers = numbers.iter().map(|number| u32::from_le_bytes(*number));
        (!numbers.clone().eq([self.number])).then_some(numbers)
    }

    fn read(&mut self) -> Result<RowKey<'a>, EngineError> {
        let damaged = |what| EngineError::Corrupt { what };
        let row_id = self.next.checked_add(self.cursor.varint()?);
        let row_id = row_id
            .filter(|row_id| *row_id < 1 << ROW_ID_BITS)
            .ok_or_else(|| damaged("log record has a key of a row that cannot be"))?;
        let ordinal = u16::try_from(self.cursor.varint()?).ok();
        let ordinal = ordinal
            .filter(|ordinal| *ordinal < ORDINALS)
            .ok_or_else(|| damaged("log record has a key of a state that cannot be"))?;
        let checksum = self.cursor.u32()?;
        let length = self.cursor.length()?;
        let entry = self.cursor.take(length)?;
        self.next = row_id + 1;
        Ok(RowKey {
            row_id: RowId(row_id),
            ordinal: Ordinal(ordinal),
            checksum,
            entry,
        })
    }
}

impl<'a> Iterator for KeysReader<'a> {
    type Item = Result<RowKey<'a>, EngineError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.cursor.is_empty() {
            return None;
        }
        let result = self.read();
        if result.is_err() {
            self.cursor = Cursor::new(&[]);
        }
        Some(result)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{LOG_VERSION, Record, describe};
    use super::*;

    fn key(row_id: u64, ordinal: u16, entry: &[u8]) -> RowKey<'_> {
        RowKey {
            row_id: RowId(row_id),
            ordinal: Ordinal(ordinal),
            checksum: 0x0403_0201,
            entry,
        }
    }

    /// The rows, if it is a record of this kind, and whether it is whole.
    fn read(record: &[u8]) -> (Vec<RowKey<'_>>, bool) {
        match Record::parse(record) {
            Ok(Record::Keys(keys)) => {
                let rows: Vec<_> = keys.collect();
                let is_whole = rows.iter().all(Result::is_ok);
                (rows.into_iter().flatten().collect(), is_whole)
            }
            _ => (Vec::new(), false),
        }
    }

    /// Keys of rows came with version 5.
    #[test]
    fn golden_bytes_of_keys() {
        let rows = [key(0, 7, &[1, 0, 2]), key(1, 0, &[]), key(300, 8191, &[9])];
        let mut writer = KeysWriter::default();
        let kept = [7, 0x0102_0304 - 1];
        writer
            .begin(TableId(300), 0x0102_0304, Some(&kept))
            .expect("memory");
        for row in rows {
            writer.add(row).expect("memory");
        }
        let expected = [
            &[0x4C, 0x4D, 5, 4, 0xAC, 2, 4, 3, 2, 1][..],
            &[2, 7, 0, 0, 0, 3, 3, 2, 1],
            &[0, 7, 1, 2, 3, 4, 3, 1, 0, 2],
            &[0, 0, 1, 2, 3, 4, 0],
            &[0xAA, 2, 0xFF, 0x3F, 1, 2, 3, 4, 1, 9],
        ];
        let mut record = expected.concat();
        assert_eq!(writer.record(), record);
        assert_eq!(read(&record), (rows.to_vec(), true));
        let Ok(Record::Keys(reader)) = Record::parse(&record) else {
            panic!("keys")
        };
        assert!(reader.kept().expect("not all").eq(kept));
        assert_eq!(
            describe(&record),
            "keys of 3 rows of table 300 in index 16909060"
        );
        for version in [1, 4, LOG_VERSION + 1] {
            record[2] = version;
            assert_eq!(read(&record), (Vec::new(), false));
        }
    }

    /// Any bytes end, in rows or an error.
    #[test]
    fn damage_is_an_error() {
        let start = [0x4C, 0x4D, 5, 4, 5, 0, 0, 0, 0, 0];
        for wrong in [
            &[0][..],
            &[0, 0, 1, 2, 3],
            &[0, 0, 1, 2, 3, 4, 2, 1],
            &[0, 0x80, 0x40, 1, 2, 3, 4, 0],
            &[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1, 0],
        ] {
            let record = [&start[..], wrong].concat();
            assert!(!read(&record).1, "{wrong:?}");
        }
        assert!(!read(&start[..start.len() - 1]).1);
        assert!(!read(&[0x4C, 0x4D, 5, 4, 5, 0, 0, 0, 0, 2, 1, 0, 0, 0, 2, 0, 0]).1);
    }
}
