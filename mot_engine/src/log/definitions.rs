//! Records of created and dropped tables and indexes, and of those whose memory was given back.
//!
//! ```text
//! record = magic u16, version u8, kind u8 = 2, then operations to the end
//!   1 CreateTable  varint table id, u32 database, u32 oid of a foreign table
//!   2 DropTable    varint table id
//!   3 CreateIndex  varint index id, varint table id, varint length, definition (key/README.md;
//!                  with missing values since version 3)
//!   4 DropIndex    varint index id, varint table id
//!   5 FreeTable    varint table id
//!   6 FreeIndex    varint index id, varint table id
//!   7 CreateTableOfFile  varint table id, u32 database, u32 tablespace, u32 file; since version 2
//!   9 CreateUnloggedTable  as 7; since version 4
//!   8 HoldsCopies  varint table id; since version 3, behind the table's creation
//! ```
//! A truncated table is a new table with the same key and new indexes, and a dropped one. Free is
//! logged by the reclaimer, after the transaction that dropped (or created and rolled back) has
//! ended and before the memory is used again.

use super::varint::{Cursor, put};
use super::{LOG_VERSION_MISSING_VALUES, LOG_VERSION_UNLOGGED_TABLES, RecordKind, put_header};
use crate::errors::EngineError;
use crate::ids::{IndexId, RelationKey, TableId};
use crate::key::IndexDefinition;
use crate::table::Persistence;

const CREATE_TABLE: u8 = 1;
const DROP_TABLE: u8 = 2;
const CREATE_INDEX: u8 = 3;
const DROP_INDEX: u8 = 4;
const FREE_TABLE: u8 = 5;
const FREE_INDEX: u8 = 6;
const CREATE_TABLE_OF_FILE: u8 = 7;
const HOLDS_COPIES: u8 = 8;
const CREATE_UNLOGGED_TABLE: u8 = 9;

/// One definition's change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DefinitionChange {
    /// A new, empty table storage for a relation.
    CreateTable {
        /// Its id.
        table: TableId,
        /// The relation it stores.
        key: RelationKey,
        /// Whether its rows are logged.
        persistence: Persistence,
    },
    /// A table storage is gone, with its indexes.
    DropTable {
        /// Its id.
        table: TableId,
    },
    /// A new index of a table.
    CreateIndex {
        /// Its id.
        index: IndexId,
        /// The table's id.
        table: TableId,
        /// What it is made of.
        definition: IndexDefinition,
    },
    /// An index is gone.
    DropIndex {
        /// Its id.
        index: IndexId,
        /// The table's id.
        table: TableId,
    },
    /// The transaction that dropped a table, or that created it and was rolled back, has ended, and
    /// the server that wrote this freed it.
    FreeTable {
        /// Its id.
        table: TableId,
    },
    /// The rows of a table that this transaction created are copies from an older storage of its
    /// relation.
    HoldsCopies {
        /// Its id.
        table: TableId,
    },
    /// As FreeTable, for an index of a table that stays.
    FreeIndex {
        /// Its id.
        index: IndexId,
        /// The table's id.
        table: TableId,
    },
}

/// A record of definition changes under construction.
#[derive(Default)]
pub struct DefinitionsWriter {
    bytes: Vec<u8>,
}

impl DefinitionsWriter {
    /// A writer without memory.
    pub const fn new() -> Self {
        Self { bytes: Vec::new() }
    }

    /// Whether nothing was written since `clear`.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The record so far; empty if there is none.
    pub fn record(&self) -> &[u8] {
        &self.bytes
    }

    /// Starts the next record.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// A created table. The log has no form for a temporary one, nor for a foreign one whose rows
    /// are not logged.
    pub fn create_table(
        &mut self,
        table: TableId,
        key: RelationKey,
        persistence: Persistence,
    ) -> Result<(), EngineError> {
        let is_foreign = key.is_of_earlier_build();
        let [database, tablespace, relation] = key.written()?;
        self.begin(match (persistence, is_foreign) {
            (Persistence::Logged, true) => CREATE_TABLE,
            (Persistence::Logged, false) => CREATE_TABLE_OF_FILE,
            (Persistence::Unlogged, false) => CREATE_UNLOGGED_TABLE,
            _ => {
                return Err(EngineError::Corrupt {
                    what: "a table that is not logged reaches the log",
                });
            }
        })?;
        put(&mut self.bytes, table.0);
        self.bytes.extend_from_slice(&database.to_le_bytes());
        if !is_foreign {
            self.bytes.extend_from_slice(&tablespace.to_le_bytes());
        }
        self.bytes.extend_from_slice(&relation.to_le_bytes());
        Ok(())
    }

    /// A created table whose rows are copies.
    pub fn holds_copies(&mut self, table: TableId) -> Result<(), EngineError> {
        self.begin(HOLDS_COPIES)?;
        put(&mut self.bytes, table.0);
        Ok(())
    }

    /// A dropped table.
    pub fn drop_table(&mut self, table: TableId) -> Result<(), EngineError> {
        self.begin(DROP_TABLE)?;
        put(&mut self.bytes, table.0);
        Ok(())
    }

    /// A created index.
    pub fn create_index(
        &mut self,
        index: IndexId,
        table: TableId,
        definition: &IndexDefinition,
    ) -> Result<(), EngineError> {
        definition.validate()?;
        self.begin(CREATE_INDEX)?;
        put(&mut self.bytes, index.0);
        put(&mut self.bytes, table.0);
        put(&mut self.bytes, definition.bytes_len() as u64);
        definition.write_bytes(&mut self.bytes)
    }

    /// A dropped index.
    pub fn drop_index(&mut self, index: IndexId, table: TableId) -> Result<(), EngineError> {
        self.begin(DROP_INDEX)?;
        put(&mut self.bytes, index.0);
        put(&mut self.bytes, table.0);
        Ok(())
    }

    /// A table whose memory is about to be given back.
    pub fn free_table(&mut self, table: TableId) -> Result<(), EngineError> {
        self.begin(FREE_TABLE)?;
        put(&mut self.bytes, table.0);
        Ok(())
    }

    /// An index whose memory is about to be given back.
    pub fn free_index(&mut self, index: IndexId, table: TableId) -> Result<(), EngineError> {
        self.begin(FREE_INDEX)?;
        put(&mut self.bytes, index.0);
        put(&mut self.bytes, table.0);
        Ok(())
    }

    fn begin(&mut self, operation: u8) -> Result<(), EngineError> {
        // Room for the header and for any operation's numbers.
        self.bytes
            .try_reserve(64)
            .map_err(|_| EngineError::OutOfProcessMemory)?;
        if self.bytes.is_empty() {
            put_header(&mut self.bytes, RecordKind::Definitions);
        }
        self.bytes.push(operation);
        Ok(())
    }
}

/// Iterates over the changes of a Definitions record; ends after an error.
pub struct DefinitionsReader<'a> {
    version: u8,
    cursor: Cursor<'a>,
}

impl<'a> DefinitionsReader<'a> {
    pub(super) fn new(version: u8, body: &'a [u8]) -> Self {
        Self {
            version,
            cursor: Cursor::new(body),
        }
    }

    fn read(&mut self) -> Result<DefinitionChange, EngineError> {
        let cursor = &mut self.cursor;
        Ok(match cursor.byte()? {
            CREATE_TABLE => DefinitionChange::CreateTable {
                table: TableId(cursor.varint()?),
                key: RelationKey::of_earlier_build(cursor.u32()?, cursor.u32()?),
                persistence: Persistence::Logged,
            },
            CREATE_TABLE_OF_FILE if self.version >= 2 => DefinitionChange::CreateTable {
                table: TableId(cursor.varint()?),
                key: RelationKey::of_file(cursor.u32()?, cursor.u32()?, cursor.u32()?),
                persistence: Persistence::Logged,
            },
            CREATE_UNLOGGED_TABLE if self.version >= LOG_VERSION_UNLOGGED_TABLES => {
                DefinitionChange::CreateTable {
                    table: TableId(cursor.varint()?),
                    key: RelationKey::of_file(cursor.u32()?, cursor.u32()?, cursor.u32()?),
                    persistence: Persistence::Unlogged,
                }
            }
            HOLDS_COPIES if self.version >= 3 => DefinitionChange::HoldsCopies {
                table: TableId(cursor.varint()?),
            },
            DROP_TABLE => DefinitionChange::DropTable {
                table: TableId(cursor.varint()?),
            },
            CREATE_INDEX => {
                let index = IndexId(cursor.varint()?);
                let table = TableId(cursor.varint()?);
                let length = cursor.length()?;
                let definition = IndexDefinition::from_bytes(cursor.take(length)?)?;
                if self.version < LOG_VERSION_MISSING_VALUES && !definition.missing.is_empty() {
                    return Err(EngineError::Corrupt {
                        what: "log record holds a definition of a later version",
                    });
                }
                DefinitionChange::CreateIndex {
                    index,
                    table,
                    definition,
                }
            }
            DROP_INDEX => DefinitionChange::DropIndex {
                index: IndexId(cursor.varint()?),
                table: TableId(cursor.varint()?),
            },
            FREE_TABLE => DefinitionChange::FreeTable {
                table: TableId(cursor.varint()?),
            },
            FREE_INDEX => DefinitionChange::FreeIndex {
                index: IndexId(cursor.varint()?),
                table: TableId(cursor.varint()?),
            },
            _ => {
                return Err(EngineError::Corrupt {
                    what: "log record has an unknown operation",
                });
            }
        })
    }
}

impl Iterator for DefinitionsReader<'_> {
    type Item = Result<DefinitionChange, EngineError>;

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
