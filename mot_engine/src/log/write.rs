//! Builds records of row changes.
//!
//! ```text
//! record = magic u16, version u8, kind u8 = 1, then operations to the end
//! operation byte: kind in bits 0..3, number of edits in bits 3..8
//!   0 Table        varint table id: what follows concerns this table
//!   1 Insert       row id, varint length, body
//!   2 Delete       row id
//!   3 Replace      row id, varint length, body   (update, whole)
//!   4 Change       row id, base LSN u32, edits   (update, difference to the row's last logged
//!                                                 version)
//!   5 InsertLike   row id, edits                 (difference to the body inserted before it into
//!                                                 this table, in this record)
//!   6 DeleteNoted  row id, varint note           (what its tombstone says more, since version 2:
//!                                                 `row/ordinal.rs`)
//! A row id is written as the zigzag varint of (row id - previous row id of this table - 1): one
//! byte for the next one.
//! ```
//!
//! Contract: the caller closes a record (takes `record`, appends it, marks its rows, calls `clear`)
//! when `has_room` says no. A body is everything of the image after the stamp.

use super::delta;
use super::edits::ROOM_BEYOND;
use super::varint::{put, zigzag};
use super::{BaseLsn, LOG_HEADER_BYTES, LOG_RECORD_BYTES_MAX, RecordKind, put_header};
use crate::errors::EngineError;
use crate::ids::{Lsn, RowId, TableId};
use crate::limits::{LOG_RECORD_BYTES_OF_LONG_ROW_MAX, ROW_BYTES_MAX};
use crate::row::TombstoneNote;

pub(super) const OPERATION_TABLE: u8 = 0;
pub(super) const OPERATION_INSERT: u8 = 1;
pub(super) const OPERATION_DELETE: u8 = 2;
pub(super) const OPERATION_REPLACE: u8 = 3;
pub(super) const OPERATION_CHANGE: u8 = 4;
pub(super) const OPERATION_INSERT_LIKE: u8 = 5;
pub(super) const OPERATION_DELETE_NOTED: u8 = 6;
pub(super) const OPERATION_MASK: u8 = 7;
pub(super) const EDITS_SHIFT: u32 = 3;

/// Bytes an operation can take besides its body: operation byte, table, row id, length.
const OPERATION_BYTES_MAX: usize = 40;

const _: () = assert!(
    LOG_HEADER_BYTES + OPERATION_BYTES_MAX + ROW_BYTES_MAX <= LOG_RECORD_BYTES_OF_LONG_ROW_MAX
);

/// Longest body kept for the next insert to be compared with, and longest logged by its difference:
/// long rows gain little and cost a copy. Readers hold records to it, or few bytes could name
/// many long bodies.
pub(super) const LIKE_BYTES_MAX: usize = 2048;

/// The row's last logged version, for the difference.
#[derive(Copy, Clone, Debug)]
pub struct Base<'a> {
    /// End of the record that logged it: the anchor's `lsn`.
    pub lsn: Lsn,
    /// Its body.
    pub body: &'a [u8],
}

/// A record of row changes under construction. Reusable.
#[derive(Default)]
pub struct RowsWriter {
    bytes: Vec<u8>,
    table: Option<TableId>,
    /// Previous row id + 1.
    row_id_expected: u64,
    /// The body inserted last into `table`; empty when there is none.
    inserted: Vec<u8>,
}

impl RowsWriter {
    /// A writer without memory.
    pub const fn new() -> Self {
        Self {
            bytes: Vec::new(),
            table: None,
            row_id_expected: 0,
            inserted: Vec::new(),
        }
    }

    /// Whether nothing was written since `clear`.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Whether a change with a body of this length still belongs into this record.
    pub fn has_room(&self, body_bytes: usize) -> bool {
        self.bytes.is_empty()
            || self.bytes.len() + OPERATION_BYTES_MAX + body_bytes <= LOG_RECORD_BYTES_MAX
    }

    /// The record so far; empty if there is none.
    pub fn record(&self) -> &[u8] {
        &self.bytes
    }

    /// Starts the next record. Keeps at most one record's worth of memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(LOG_RECORD_BYTES_MAX);
        self.table = None;
        self.inserted.clear();
    }

    /// A new row.
    pub fn insert(
        &mut self,
        table: TableId,
        row_id: RowId,
        body: &[u8],
    ) -> Result<(), EngineError> {
        self.reserve(body.len())?;
        self.enter_table(table);
        let operation = self.bytes.len();
        self.operation(OPERATION_INSERT, row_id);
        let like = if self.inserted.is_empty() || body.len() > LIKE_BYTES_MAX {
            None
        } else {
            delta::encode(&self.inserted, body, &mut self.bytes)
        };
        if let Some(edits) = like {
            self.bytes[operation] = OPERATION_INSERT_LIKE | (edits as u8) << EDITS_SHIFT;
        } else {
            self.body(body);
        }
        self.inserted.clear();
        if body.len() <= LIKE_BYTES_MAX {
            self.inserted
                .try_reserve(body.len())
                .map_err(|_| EngineError::OutOfProcessMemory)?;
            self.inserted.extend_from_slice(body);
        }
        Ok(())
    }

    /// A changed row. Without `base` the whole body is logged.
    pub fn update(
        &mut self,
        table: TableId,
        row_id: RowId,
        base: Option<Base<'_>>,
        body: &[u8],
    ) -> Result<(), EngineError> {
        self.reserve(body.len())?;
        self.enter_table(table);
        let operation = self.bytes.len();
        self.operation(OPERATION_CHANGE, row_id);
        if let Some(base) = base {
            let start = self.bytes.len();
            self.bytes
                .extend_from_slice(&BaseLsn::of(base.lsn).0.to_le_bytes());
            if let Some(edits) = delta::encode_update(base.body, body, &mut self.bytes) {
                self.bytes[operation] |= (edits as u8) << EDITS_SHIFT;
                return Ok(());
            }
            self.bytes.truncate(start);
        }
        self.bytes[operation] = OPERATION_REPLACE;
        self.body(body);
        Ok(())
    }

    /// A deleted row.
    pub fn delete(
        &mut self,
        table: TableId,
        row_id: RowId,
        note: TombstoneNote,
    ) -> Result<(), EngineError> {
        self.reserve(0)?;
        self.enter_table(table);
        if note == TombstoneNote::NONE {
            self.operation(OPERATION_DELETE, row_id);
        } else {
            self.operation(OPERATION_DELETE_NOTED, row_id);
            put(&mut self.bytes, note.number());
        }
        Ok(())
    }

    fn reserve(&mut self, body_bytes: usize) -> Result<(), EngineError> {
        // An unfinished difference can be half as long again as its body before it is given up; a
        // second one stays below its body.
        self.bytes
            .try_reserve(OPERATION_BYTES_MAX + ROOM_BEYOND + 3 * body_bytes)
            .map_err(|_| EngineError::OutOfProcessMemory)
    }

    fn enter_table(&mut self, table: TableId) {
        if self.bytes.is_empty() {
            put_header(&mut self.bytes, RecordKind::Rows);
        }
        if self.table != Some(table) {
            self.bytes.push(OPERATION_TABLE);
            put(&mut self.bytes, table.0);
            self.table = Some(table);
            self.row_id_expected = 0;
            self.inserted.clear();
        }
    }

    fn operation(&mut self, operation: u8, row_id: RowId) {
        self.bytes.push(operation);
        put(
            &mut self.bytes,
            zigzag(row_id.0.wrapping_sub(self.row_id_expected) as i64),
        );
        self.row_id_expected = row_id.0.wrapping_add(1);
    }

    fn body(&mut self, body: &[u8]) {
        put(&mut self.bytes, body.len() as u64);
        self.bytes.extend_from_slice(body);
    }
}
