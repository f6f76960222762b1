//! Log records: what a transaction changed, as bytes for PostgreSQL's WAL.
//!
//! Contract:
//! - Pure encoding and decoding. Decoding is total: any bytes give records or an error, and no
//!   panic.
//! - A row occurs at most once in a record. All changes of a record, except Free and Keys, belong
//!   to the transaction id that the WAL gives with it. PostgreSQL's commit record decides.
//! - Records for logical decoding change nothing: replay passes over them.
//! - The bytes are stored for as long as WAL is: a change of form takes a new `LOG_VERSION`, and
//!   the old ones stay readable. Golden-bytes tests hold the forms still.
//! - No checksum: the WAL has its own.

mod definitions;
mod delta;
mod describe;
mod edits;
mod keys;
mod locks;
mod logical;
mod moved;
mod read;
mod runs;
mod varint;
mod wal_pages;
mod write;

#[cfg(test)]
mod tests;

pub use definitions::{DefinitionChange, DefinitionsReader, DefinitionsWriter};
pub use delta::apply as apply_delta;
pub use describe::{describe, identify};
pub(crate) use keys::KeysWriter;
pub use keys::{KeysReader, RowKey};
pub use locks::{LOCKS_PER_RECORD, LocksReader, RowLock, write_locks};
pub use logical::{FileLocator, LOGICAL_HEAD_BYTES, LogicalChange, LogicalKind, is_logical};
pub use read::{Change, Record, RowChange, RowIds, RowsReader};
pub use varint::{Cursor, put, unzigzag, zigzag};
pub use wal_pages::WalPages;
pub use write::{Base, RowsWriter};

use crate::ids::Lsn;

/// First two bytes of every record ("LM" in memory order).
pub const LOG_MAGIC: u16 = 0x4D4C;

/// The newest version of the form of everything after the header. Since version 2 there are tables
/// named by their file, and deletes that say more than that a row is gone. Since version 3 an
/// index's definition may hold values that older rows lack. Since version 4 there are tables whose
/// rows are not logged, and row locks of prepared transactions. Since version 5 there are keys that
/// rows get in an index that comes after them. Since version 6 there are records for logical
/// decoding. All else is as in version 1. A record bears the version that brought its kind's form.
pub const LOG_VERSION: u8 = 6;

/// The first version with records for logical decoding.
const LOG_VERSION_LOGICAL: u8 = 6;

/// The first version with keys of rows.
const LOG_VERSION_KEYS: u8 = 5;

/// The first version with row locks.
const LOG_VERSION_LOCKS: u8 = 4;

/// The first version whose index definitions may hold missing values.
const LOG_VERSION_MISSING_VALUES: u8 = 3;

/// The first version that knows tables whose rows are not logged.
const LOG_VERSION_UNLOGGED_TABLES: u8 = 4;

/// The oldest version that is read.
const LOG_VERSION_FIRST: u8 = 1;

pub use crate::limits::LOG_RECORD_BYTES_MAX;

/// Magic, version, kind.
pub const LOG_HEADER_BYTES: usize = 4;

/// What a record holds: the fourth byte.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum RecordKind {
    /// Changes of rows.
    Rows = 1,
    /// Changes of tables and indexes.
    Definitions = 2,
    /// Row locks of a prepared transaction.
    Locks = 3,
    /// Keys of rows in an index that came after them.
    Keys = 4,
    /// A change of a row for logical decoding alone.
    Logical = 5,
}

impl RecordKind {
    /// The version that records of this kind are written with.
    const fn version(self) -> u8 {
        match self {
            RecordKind::Rows => LOG_VERSION_MISSING_VALUES,
            RecordKind::Definitions => LOG_VERSION_UNLOGGED_TABLES,
            RecordKind::Locks => LOG_VERSION_LOCKS,
            RecordKind::Keys => LOG_VERSION_KEYS,
            RecordKind::Logical => LOG_VERSION_LOGICAL,
        }
    }
}

/// The lower half of a base's LSN, as an update names it: enough to notice any mistake about the
/// base (a row's successive LSNs would have to lie exactly 4 GiB apart), at half the bytes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct BaseLsn(pub u32);

impl BaseLsn {
    /// How an update names a base logged at `lsn`.
    pub const fn of(lsn: Lsn) -> Self {
        Self(lsn.0 as u32)
    }
}

fn header_of(kind: RecordKind) -> [u8; LOG_HEADER_BYTES] {
    let [low, high] = LOG_MAGIC.to_le_bytes();
    [low, high, kind.version(), kind as u8]
}

fn put_header(out: &mut Vec<u8>, kind: RecordKind) {
    out.extend_from_slice(&header_of(kind));
}
