//! Records for logical decoding alone: one change of a row, with the row whole.
//!
//! ```text
//! record = magic u16, version u8 = 6, kind u8 = 5, u8 change (1 insert, 2 update, 3 delete),
//!          u32 database, u32 tablespace, u32 file, u32 bytes of the new row, the new row,
//!          the old row to the end
//! ```
//! Rows are bodies without tails. Of an old row the columns of the replica identity may be all that
//! is there, or nothing. The file is named as PostgreSQL's log names one: the database's own
//! tablespace by its oid. The change belongs to the transaction id that the WAL gives with it,
//! which may be a subtransaction's. Replay passes over such records: those of kind Rows say the
//! same.
use super::varint::Cursor;
use super::{LOG_HEADER_BYTES, RecordKind, header_of};
use crate::errors::EngineError;

/// What comes behind the header of every record, ahead of the rows.
const FIELDS_BYTES: usize = 1 + 4 * size_of::<u32>();

/// Bytes of a record without its rows.
pub const LOGICAL_HEAD_BYTES: usize = LOG_HEADER_BYTES + FIELDS_BYTES;

/// What was done to a row.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum LogicalKind {
    /// A new row.
    Insert = 1,
    /// A new state of a row.
    Update = 2,
    /// The row is gone.
    Delete = 3,
}

/// A relation's file, as PostgreSQL's log names it (`RelFileLocator`).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct FileLocator {
    /// pg_database.oid
    pub database: u32,
    /// pg_tablespace.oid, never 0.
    pub tablespace: u32,
    /// pg_class.relfilenode
    pub file: u32,
}

/// A change of one row.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct LogicalChange<'a> {
    /// What was done.
    pub kind: LogicalKind,
    /// The table's file then.
    pub table: FileLocator,
    /// The row's body; `None`: it was deleted.
    pub new: Option<&'a [u8]>,
    /// The old row's body, or its replica identity's columns.
    pub old: Option<&'a [u8]>,
}

/// Whether a record is for logical decoding alone.
pub fn is_logical(record: &[u8]) -> bool {
    record.starts_with(&header_of(RecordKind::Logical))
}

impl<'a> LogicalChange<'a> {
    /// The record up to its rows: the new one follows, then the old one.
    pub fn head(&self) -> [u8; LOGICAL_HEAD_BYTES] {
        debug_assert_eq!(self.new.is_none(), self.kind == LogicalKind::Delete);
        let mut out = [0; LOGICAL_HEAD_BYTES];
        let (header, fields) = out.split_at_mut(LOG_HEADER_BYTES);
        header.copy_from_slice(&header_of(RecordKind::Logical));
        fields[0] = self.kind as u8;
        let new_bytes = self.new.map_or(0, <[u8]>::len) as u32;
        let table = self.table;
        let values = [table.database, table.tablespace, table.file, new_bytes];
        for (place, value) in fields[1..].chunks_exact_mut(size_of::<u32>()).zip(values) {
            place.copy_from_slice(&value.to_le_bytes());
        }
        out
    }

    /// Of what is behind a record's header.
    pub(super) fn parse(body: &'a [u8]) -> Result<LogicalChange<'a>, EngineError> {
        let damaged = |what| EngineError::Corrupt { what };
        let mut cursor = Cursor::new(body);
        let kind = match cursor.byte()? {
            1 => LogicalKind::Insert,
            2 => LogicalKind::Update,
            3 => LogicalKind::Delete,
            _ => return Err(damaged("log record has an unknown change to decode")),
        };
        let table = FileLocator {
            database: cursor.u32()?,
            tablespace: cursor.u32()?,
            file: cursor.u32()?,
        };
        let new_bytes = cursor.u32()? as usize;
        let new = cursor.take(new_bytes)?;
        let old = cursor.rest();
        if new.is_empty() != (kind == LogicalKind::Delete) {
            return Err(damaged(
                "log record has another row to decode than its change",
            ));
        }
        let some = |row: &'a [u8]| (!row.is_empty()).then_some(row);
        Ok(LogicalChange {
            kind,
            table,
            new: some(new),
            old: some(old),
        })
    }
}
