//! The identities everything else speaks of. Plain numbers with names; no behaviour beyond
//! conversion.

use crate::errors::EngineError;

/// PostgreSQL's full 64-bit transaction id (epoch in the high half). 0 is none.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug, Default)]
#[repr(transparent)]
pub struct Xid(pub u64);

impl Xid {
    /// No transaction.
    pub const NONE: Xid = Xid(0);
    /// One before all others: PostgreSQL's FrozenTransactionId.
    pub const FROZEN: Xid = Xid(2);
    /// The highest one: a version's stamp has 48 bits for it. At a million transactions a second
    /// that is nine years, and an id more than 65,535 epochs old comes of `pg_resetwal` alone.
    pub const MAX: Xid = Xid((1 << 48) - 1);

    /// Whether this names a transaction.
    pub fn is_some(self) -> bool {
        self.0 != 0
    }
}

/// Number of a command within its transaction, as PostgreSQL counts them.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug, Default)]
#[repr(transparent)]
pub struct CommandId(pub u32);

/// A row's identity in its table, the same on primary, standby and after recovery.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug, Default)]
#[repr(transparent)]
pub struct RowId(pub u64);

/// Rows that share a block number in tuple ids (`ctid`). With the ordinals of each they take the
/// offsets 1 to 32,768.
pub const ROWS_PER_BLOCK: u64 = 4;

const _: () = assert!(ROWS_PER_BLOCK * ORDINALS as u64 <= 1 << 15);

impl RowId {
    /// The highest row id there can be.
    pub const MAX: RowId = RowId(crate::limits::ROW_IDS_MAX - 1);

    /// The tuple id of the row's state with this ordinal: block number and offset number (from 1).
    pub fn to_tid(self, ordinal: Ordinal) -> (u32, u16) {
        debug_assert!(self.0 / ROWS_PER_BLOCK <= u32::MAX.into() && ordinal.0 < ORDINALS);
        let offset = (self.0 % ROWS_PER_BLOCK) as u16 * ORDINALS + ordinal.0 + 1;
        ((self.0 / ROWS_PER_BLOCK) as u32, offset)
    }
}

/// Ordinals that distinguish the states of a row; they go round.
pub const ORDINALS: u16 = 1 << 13;

/// Which of its row's states a state is: the row's changes before it, modulo [`ORDINALS`].
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug, Default)]
#[repr(transparent)]
pub struct Ordinal(pub u16);

impl Ordinal {
    /// That of the state put upon one with this ordinal.
    pub const fn next(self) -> Ordinal {
        Ordinal((self.0 + 1) % ORDINALS)
    }
}

/// End position of a WAL record. 0 is before every record.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug, Default)]
#[repr(transparent)]
pub struct Lsn(pub u64);

/// A table's storage. TRUNCATE makes a new one; never reused.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug, Default)]
#[repr(transparent)]
pub struct TableId(pub u64);

/// An index's storage; never reused.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug, Default)]
#[repr(transparent)]
pub struct IndexId(pub u64);

/// Whose a table's storage is: that of a file of a table of the access method; or an earlier
/// build's, whose tables were foreign tables, by its oid. No server writes such a table, and only
/// what was stored has it.
///
/// Oids are unique per database only, and file numbers per tablespace of a database; those of
/// temporary tables per session, too. A table of the access method gets another file, and another
/// storage, whenever it is truncated or rewritten; its oid stays.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
#[repr(C)]
pub struct RelationKey {
    /// pg_database.oid
    pub database: u32,
    /// pg_class.reltablespace, 0 for the database's own; of an earlier build's
    /// table [`RelationKey::WRAPPER`].
    pub tablespace: u32,
    /// pg_class.relfilenode; of an earlier build's table pg_class.oid.
    pub relation: u32,
    /// Of a temporary table the number of its session among those of the server, from 1. 0: it is
    /// none. Such a key means nothing to another run of the server, so nothing writes it anywhere.
    pub backend: u32,
}

impl RelationKey {
    /// In place of a tablespace: the relation is a foreign table, which has no file. A tablespace
    /// could only have this number if it were made at the very moment at which the last of all oids
    /// is given out.
    pub const WRAPPER: u32 = u32::MAX;

    /// The key of an earlier build's table.
    pub const fn of_earlier_build(database: u32, oid: u32) -> RelationKey {
        RelationKey {
            database,
            tablespace: RelationKey::WRAPPER,
            relation: oid,
            backend: 0,
        }
    }

    /// The key of a table of the access method, by its file: reltablespace and relfilenode.
    pub const fn of_file(database: u32, tablespace: u32, relfilenode: u32) -> RelationKey {
        RelationKey {
            database,
            tablespace,
            relation: relfilenode,
            backend: 0,
        }
    }

    /// The key of a temporary table with such a file, of the session with this number from 1.
    pub const fn of_temporary(self, backend: u32) -> RelationKey {
        RelationKey { backend, ..self }
    }

    /// Whether it is a temporary table's.
    pub const fn is_temporary(self) -> bool {
        self.backend != 0
    }

    /// The database, the tablespace and the relation, as files and the log have them. No temporary
    /// table gets there.
    pub(crate) fn written(self) -> Result<[u32; 3], EngineError> {
        if self.is_temporary() {
            return Err(EngineError::Corrupt {
                what: "a temporary table is about to be written",
            });
        }
        Ok([self.database, self.tablespace, self.relation])
    }

    /// Whether it is an earlier build's table, a foreign one.
    pub const fn is_of_earlier_build(self) -> bool {
        self.tablespace == RelationKey::WRAPPER
    }
}

/// The file of an index of a table of the access method, by which the index is found in its table.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub struct FileKey {
    /// pg_class.reltablespace, 0 for the database's own.
    pub tablespace: u32,
    /// pg_class.relfilenode
    pub relation: u32,
}

impl FileKey {
    /// No file: an index of an earlier build's table has none, and is found by its oid. No file has
    /// the number 0.
    pub const NONE: FileKey = FileKey {
        tablespace: 0,
        relation: 0,
    };

    /// Whether there is a file.
    pub const fn is_some(self) -> bool {
        self.relation != 0
    }
}

/// One position of the WAL per record; higher is later.
impl Lsn {
    /// Before every record.
    pub const NONE: Lsn = Lsn(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_with_one_file_number_have_two_keys_that_nothing_writes() {
        let file = RelationKey::of_file(1, 2, 3);
        let (one, other) = (file.of_temporary(1), file.of_temporary(2));
        assert!(one != other && one != file && one.is_temporary() && !file.is_temporary());
        assert_eq!(file.written().expect("a permanent table"), [1, 2, 3]);
        assert!(one.written().is_err());
    }

    #[test]
    fn tuple_ids_differ_for_each_state_of_a_block_s_rows() {
        let ids = (0..2 * ROWS_PER_BLOCK)
            .flat_map(|row| (0..ORDINALS).map(move |ordinal| RowId(row).to_tid(Ordinal(ordinal))));
        let ids: Vec<_> = ids.collect();
        assert!(ids.is_sorted_by(|one, next| one < next));
        assert_eq!((ids[0], ids[ids.len() - 1]), ((0, 1), (1, 1 << 15)));
    }
}
