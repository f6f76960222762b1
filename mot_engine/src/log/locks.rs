//! Records of the row locks of a prepared transaction.
//!
//! ```text
//! record = magic u16, version u8 = 4, kind u8 = 3, then runs to the end
//!   run: varint table id, u8 strength (0 KEY SHARE, 1 SHARE, 2 NO KEY UPDATE, 3 UPDATE),
//!        varint locks (at least 1), then for each:
//!        varint row id - previous row id - 1 (first: row id)
//! ```
//! The locks belong to the transaction id that the WAL gives with the record, and count from its
//! PREPARE until that transaction ends.

use super::varint::{Cursor, put};
use super::{RecordKind, put_header};
use crate::errors::EngineError;
use crate::ids::{RowId, TableId};
use crate::limits::ROW_ID_BITS;
use crate::row::LockStrength;

/// Locks of one record at most: some hundred kilobytes, far below what a record may have.
pub const LOCKS_PER_RECORD: usize = 1 << 16;

/// Most bytes of a lock's distance.
const DISTANCE_BYTES_MAX: usize = 10;
/// Most bytes of what begins a run.
const RUN_BYTES_MAX: usize = 21;

/// A lock on a row.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct RowLock {
    /// The row's table.
    pub table: TableId,
    /// How it is locked.
    pub strength: LockStrength,
    /// The row.
    pub row_id: RowId,
}

/// Replaces `out` by a record of these locks. They ascend, and none comes twice.
pub fn write_locks(out: &mut Vec<u8>, locks: &[RowLock]) -> Result<(), EngineError> {
    debug_assert!(locks.is_sorted_by(|one, other| one < other));
    out.clear();
    let room = |out: &mut Vec<u8>, bytes: usize| {
        out.try_reserve(bytes)
            .map_err(|_| EngineError::OutOfProcessMemory)
    };
    room(out, RUN_BYTES_MAX)?;
    put_header(out, RecordKind::Locks);
    let is_same_run =
        |one: &RowLock, other: &RowLock| one.table == other.table && one.strength == other.strength;
    for run in locks.chunk_by(is_same_run) {
        room(out, RUN_BYTES_MAX + run.len() * DISTANCE_BYTES_MAX)?;
        put(out, run[0].table.0);
        out.push(run[0].strength as u8);
        put(out, run.len() as u64);
        let mut next = 0;
        for lock in run {
            put(out, lock.row_id.0 - next);
            next = lock.row_id.0 + 1;
        }
    }
    Ok(())
}

/// Iterates over the locks of a record; ends after an error.
pub struct LocksReader<'a> {
    cursor: Cursor<'a>,
    table: TableId,
    strength: LockStrength,
    next: u64,
    left: u64,
}

impl<'a> LocksReader<'a> {
    pub(super) fn new(body: &'a [u8]) -> Self {
        LocksReader {
            cursor: Cursor::new(body),
            table: TableId(0),
            strength: LockStrength::KeyShare,
            next: 0,
            left: 0,
        }
    }

    fn read(&mut self) -> Result<RowLock, EngineError> {
        let damaged = |what| Err(EngineError::Corrupt { what });
        if self.left == 0 {
            self.table = TableId(self.cursor.varint()?);
            self.strength = match LockStrength::from_number(self.cursor.byte()?) {
                Some(strength) => strength,
                None => return damaged("log record has an unknown strength of a lock"),
            };
            self.left = self.cursor.varint()?;
            self.next = 0;
            if self.left == 0 {
                return damaged("log record has a run of no locks");
            }
        }
        let row_id = self.next.checked_add(self.cursor.varint()?);
        let Some(row_id) = row_id.filter(|row_id| *row_id < 1 << ROW_ID_BITS) else {
            return damaged("log record locks a row that cannot be");
        };
        self.left -= 1;
        self.next = row_id + 1;
        Ok(RowLock {
            table: self.table,
            strength: self.strength,
            row_id: RowId(row_id),
        })
    }
}

impl Iterator for LocksReader<'_> {
    type Item = Result<RowLock, EngineError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 && self.cursor.is_empty() {
            return None;
        }
        let result = self.read();
        if result.is_err() {
            self.cursor = Cursor::new(&[]);
            self.left = 0;
        }
        Some(result)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{LOG_VERSION, Record, describe};
    use super::*;

    fn lock(table: u64, strength: LockStrength, row_id: u64) -> RowLock {
        RowLock {
            table: TableId(table),
            strength,
            row_id: RowId(row_id),
        }
    }

    fn read(record: &[u8]) -> Result<Vec<RowLock>, EngineError> {
        match Record::parse(record)? {
            Record::Locks(locks) => locks.collect(),
            _ => panic!("locks"),
        }
    }

    /// Row locks came with version 4.
    #[test]
    fn golden_bytes_of_locks() {
        let locks = [
            lock(5, LockStrength::KeyShare, 0),
            lock(5, LockStrength::KeyShare, 1),
            lock(5, LockStrength::KeyShare, 300),
            lock(5, LockStrength::Update, 7),
            lock(300, LockStrength::Share, 1 << 30),
        ];
        let mut record = Vec::new();
        write_locks(&mut record, &locks).expect("memory");
        let expected = [
            &[0x4C, 0x4D, 4, 3][..],
            &[5, 0, 3, 0, 0, 0xAA, 2],
            &[5, 3, 1, 7],
            &[0xAC, 2, 1, 1, 0x80, 0x80, 0x80, 0x80, 4],
        ];
        assert_eq!(record, expected.concat());
        assert_eq!(read(&record).expect("is one"), locks);
        assert_eq!(
            describe(&record),
            "lock 4 rows of table 5; lock 1 rows of table 300"
        );
        for version in [1, 2, 3, LOG_VERSION + 1] {
            record[2] = version;
            assert!(read(&record).is_err());
        }
    }

    /// Any bytes end, in locks or an error.
    #[test]
    fn damage_is_an_error() {
        for wrong in [
            &[5][..],
            &[5, 4, 1, 0],
            &[5, 0, 0],
            &[5, 0, 2, 0],
            &[
                5, 0, 1, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1,
            ],
        ] {
            let record = [&[0x4C, 0x4D, 4, 3][..], wrong].concat();
            assert!(read(&record).is_err(), "{wrong:?}");
        }
    }
}
