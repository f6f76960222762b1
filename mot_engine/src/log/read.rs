//! Reads records.
//!
//! Contract: total, in time linear in the record (a difference of two bytes gives at most
//! `LIKE_BYTES_MAX`); after an error the reader gives nothing more. A body is borrowed from the
//! record or, for an InsertLike, from the reader: it lives until the next call.

use super::delta;
use super::varint::{Cursor, unzigzag};
use super::write::{
    EDITS_SHIFT, LIKE_BYTES_MAX, OPERATION_CHANGE, OPERATION_DELETE, OPERATION_DELETE_NOTED,
    OPERATION_INSERT, OPERATION_INSERT_LIKE, OPERATION_MASK, OPERATION_REPLACE, OPERATION_TABLE,
};
use super::{
    BaseLsn, DefinitionsReader, KeysReader, LOG_HEADER_BYTES, LOG_MAGIC, LOG_VERSION,
    LOG_VERSION_FIRST, LOG_VERSION_KEYS, LOG_VERSION_LOCKS, LOG_VERSION_LOGICAL, LocksReader,
    LogicalChange, RecordKind,
};
use crate::errors::EngineError;
use crate::ids::{RowId, TableId};
use crate::row::TombstoneNote;

/// A record with its header checked.
pub enum Record<'a> {
    /// Changes of rows.
    Rows(RowsReader<'a>),
    /// Changes of tables and indexes.
    Definitions(DefinitionsReader<'a>),
    /// Row locks of a prepared transaction.
    Locks(LocksReader<'a>),
    /// Keys of rows in an index that came after them.
    Keys(KeysReader<'a>),
    /// A change of a row for logical decoding alone.
    Logical(LogicalChange<'a>),
}

impl<'a> Record<'a> {
    /// Reads the header.
    pub fn parse(record: &'a [u8]) -> Result<Record<'a>, EngineError> {
        let (header, body) =
            record
                .split_first_chunk::<LOG_HEADER_BYTES>()
                .ok_or(EngineError::Corrupt {
                    what: "log record is shorter than its header",
                })?;
        if u16::from_le_bytes([header[0], header[1]]) != LOG_MAGIC {
            return Err(EngineError::Corrupt {
                what: "log record has a wrong magic number",
            });
        }
        let version = header[2];
        if !(LOG_VERSION_FIRST..=LOG_VERSION).contains(&version) {
            return Err(EngineError::Corrupt {
                what: "log record has an unknown version",
            });
        }
        const ROWS: u8 = RecordKind::Rows as u8;
        const DEFINITIONS: u8 = RecordKind::Definitions as u8;
        const LOCKS: u8 = RecordKind::Locks as u8;
        const KEYS: u8 = RecordKind::Keys as u8;
        const LOGICAL: u8 = RecordKind::Logical as u8;
        match header[3] {
            ROWS => Ok(Record::Rows(RowsReader::new(version, body))),
            DEFINITIONS => Ok(Record::Definitions(DefinitionsReader::new(version, body))),
            LOCKS if version >= LOG_VERSION_LOCKS => Ok(Record::Locks(LocksReader::new(body))),
            KEYS if version >= LOG_VERSION_KEYS => Ok(Record::Keys(KeysReader::new(body)?)),
            LOGICAL if version >= LOG_VERSION_LOGICAL => {
                Ok(Record::Logical(LogicalChange::parse(body)?))
            }
            _ => Err(EngineError::Corrupt {
                what: "log record has an unknown kind",
            }),
        }
    }
}

/// One row's change.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct RowChange<'a> {
    /// Where.
    pub table: TableId,
    /// Which row.
    pub row_id: RowId,
    /// What.
    pub change: Change<'a>,
}

/// What happened to a row.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Change<'a> {
    /// A new row.
    Insert {
        /// The image after its stamp.
        body: &'a [u8],
    },
    /// A new version, whole.
    Replace {
        /// The image after its stamp.
        body: &'a [u8],
    },
    /// A new version, by its difference to the row's last logged one (`apply_delta`).
    Change {
        /// Which version the difference is against.
        base: BaseLsn,
        /// Number of edits in `delta`.
        edits: usize,
        /// The edits.
        delta: &'a [u8],
    },
    /// The row is gone.
    Delete {
        /// What its tombstone says more.
        note: TombstoneNote,
    },
}

/// Where the body inserted last is.
enum Inserted<'a> {
    None,
    Record(&'a [u8]),
    Own,
}

/// What an operation begins with.
struct OperationHead {
    kind: u8,
    edits: usize,
    table: TableId,
    row_id: RowId,
    /// The first of its table, or of its table again.
    is_first: bool,
}

/// Goes from operation to operation; the reader of a head takes what belongs to it from the cursor.
#[derive(Clone)]
struct Heads<'a> {
    version: u8,
    cursor: Cursor<'a>,
    table: Option<TableId>,
    row_id_expected: u64,
}

impl<'a> Heads<'a> {
    #[inline]
    fn next(&mut self) -> Result<Option<OperationHead>, EngineError> {
        let mut is_first = false;
        loop {
            if self.cursor.is_empty() {
                return Ok(None);
            }
            let operation = self.cursor.byte()?;
            let edits = usize::from(operation >> EDITS_SHIFT);
            let kind = operation & OPERATION_MASK;
            if kind == OPERATION_TABLE && edits == 0 {
                self.table = Some(TableId(self.cursor.varint()?));
                self.row_id_expected = 0;
                is_first = true;
                continue;
            }
            let table = self.table.ok_or(EngineError::Corrupt {
                what: "log record changes a row of no table",
            })?;
            let row_id = self
                .row_id_expected
                .wrapping_add(unzigzag(self.cursor.varint()?) as u64);
            self.row_id_expected = row_id.wrapping_add(1);
            if row_id > RowId::MAX.0 {
                return Err(EngineError::Corrupt {
                    what: "log record has a row id out of range",
                });
            }
            return Ok(Some(OperationHead {
                kind,
                edits,
                table,
                row_id: RowId(row_id),
                is_first,
            }));
        }
    }

    fn body(&mut self) -> Result<&'a [u8], EngineError> {
        let length = self.cursor.length()?;
        self.cursor.take(length)
    }

    fn change(&mut self, edits: usize) -> Result<Change<'a>, EngineError> {
        let base = BaseLsn(self.cursor.u32()?);
        let delta = delta::skip(&mut self.cursor, edits)?;
        Ok(Change::Change { base, edits, delta })
    }

    fn note(&mut self) -> Result<TombstoneNote, EngineError> {
        let note = TombstoneNote::from_number(self.cursor.varint()?);
        note.filter(|note| *note != TombstoneNote::NONE)
            .ok_or(EngineError::Corrupt {
                what: "log record has a delete with an unknown note",
            })
    }

    /// Passes over what belongs to a head; false: the reader, too, ends here at the latest.
    fn pass(&mut self, head: &OperationHead) -> bool {
        match (head.kind, head.edits) {
            (OPERATION_INSERT | OPERATION_REPLACE, 0) => self.body().is_ok(),
            (OPERATION_INSERT_LIKE, edits) => delta::skip(&mut self.cursor, edits).is_ok(),
            (OPERATION_CHANGE, edits) => self.change(edits).is_ok(),
            (OPERATION_DELETE, 0) => true,
            (OPERATION_DELETE_NOTED, 0) if self.version >= 2 => self.note().is_ok(),
            _ => false,
        }
    }
}

/// The rows that a reader has yet to reach, in the order of its changes, without these. Where the
/// reader would meet damage they end: that is for it to report.
pub struct RowIds<'a>(Heads<'a>);

impl Iterator for RowIds<'_> {
    type Item = (TableId, RowId);

    #[inline]
    fn next(&mut self) -> Option<(TableId, RowId)> {
        if let Ok(Some(head)) = self.0.next()
            && self.0.pass(&head)
        {
            return Some((head.table, head.row_id));
        }
        self.0.cursor = Cursor::new(&[]);
        None
    }
}

/// Iterates over the changes of a Rows record.
pub struct RowsReader<'a> {
    heads: Heads<'a>,
    inserted: Inserted<'a>,
    own: Vec<u8>,
    spare: Vec<u8>,
}

impl<'a> RowsReader<'a> {
    fn new(version: u8, body: &'a [u8]) -> Self {
        Self {
            heads: Heads {
                version,
                cursor: Cursor::new(body),
                table: None,
                row_id_expected: 0,
            },
            inserted: Inserted::None,
            own: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// The rows to come.
    pub fn row_ids(&self) -> RowIds<'a> {
        RowIds(self.heads.clone())
    }

    /// The next change, or None at the end.
    #[expect(
        clippy::should_implement_trait,
        reason = "lends from itself, as no Iterator can"
    )]
    pub fn next(&mut self) -> Result<Option<RowChange<'_>>, EngineError> {
        match self.advance() {
            Ok(Some((table, row_id, step))) => {
                let change = match step {
                    Step::Inserted => match self.inserted {
                        Inserted::Record(body) => Change::Insert { body },
                        Inserted::Own => Change::Insert { body: &self.own },
                        Inserted::None => Change::Insert { body: &[] },
                    },
                    Step::Other(change) => change,
                };
                Ok(Some(RowChange {
                    table,
                    row_id,
                    change,
                }))
            }
            Ok(None) => Ok(None),
            Err(error) => {
                self.heads.cursor = Cursor::new(&[]);
                Err(error)
            }
        }
    }

    fn advance(&mut self) -> Result<Option<(TableId, RowId, Step<'a>)>, EngineError> {
        let Some(head) = self.heads.next()? else {
            return Ok(None);
        };
        if head.is_first {
            self.inserted = Inserted::None;
        }
        let step = match (head.kind, head.edits) {
            (OPERATION_INSERT, 0) => {
                self.inserted = Inserted::Record(self.heads.body()?);
                Step::Inserted
            }
            (OPERATION_INSERT_LIKE, edits) => {
                self.insert_like(edits)?;
                Step::Inserted
            }
            (OPERATION_DELETE, 0) => Step::Other(Change::Delete {
                note: TombstoneNote::NONE,
            }),
            (OPERATION_DELETE_NOTED, 0) if self.heads.version >= 2 => {
                let note = self.heads.note()?;
                Step::Other(Change::Delete { note })
            }
            (OPERATION_REPLACE, 0) => Step::Other(Change::Replace {
                body: self.heads.body()?,
            }),
            (OPERATION_CHANGE, edits) => Step::Other(self.heads.change(edits)?),
            _ => {
                return Err(EngineError::Corrupt {
                    what: "log record has an unknown operation",
                });
            }
        };
        Ok(Some((head.table, head.row_id, step)))
    }

    fn insert_like(&mut self, edits: usize) -> Result<(), EngineError> {
        let delta = delta::skip(&mut self.heads.cursor, edits)?;
        let base = match self.inserted {
            Inserted::None => {
                return Err(EngineError::Corrupt {
                    what: "log record has no row to be like",
                });
            }
            Inserted::Record(body) => body,
            Inserted::Own => &self.own,
        };
        if base.len() > LIKE_BYTES_MAX {
            return Err(too_long());
        }
        self.spare.clear();
        delta::apply(base, delta, edits, &mut self.spare)?;
        if self.spare.len() > LIKE_BYTES_MAX {
            return Err(too_long());
        }
        std::mem::swap(&mut self.own, &mut self.spare);
        self.inserted = Inserted::Own;
        Ok(())
    }
}

#[cold]
fn too_long() -> EngineError {
    EngineError::Corrupt {
        what: "log record tells of a long row by a difference",
    }
}

/// What `advance` met; an inserted body is where `inserted` says.
enum Step<'a> {
    Inserted,
    Other(Change<'a>),
}
