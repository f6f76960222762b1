//! The identities everything else speaks of. Plain numbers with names; no behaviour beyond conversion.

/// PostgreSQL's full 64-bit transaction id (epoch in the high half). 0 is none.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug, Default)]
#[repr(transparent)]
pub struct Xid(pub u64);

impl Xid {
    /// No transaction.
    pub const NONE: Xid = Xid(0);

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
pub struct Slot(pub u64);

/// Slots that share a block number when a slot is shown as a `ctid`.
const SLOTS_PER_BLOCK: u64 = 1024;

impl Slot {
    /// The highest slot there can be.
    pub const MAX: Slot = Slot(crate::limits::SLOTS_MAX - 1);

    /// The slot as PostgreSQL's tuple id: block number and offset number (from 1).
    pub fn to_tid(self) -> (u32, u16) {
        debug_assert!(self.0 < crate::limits::SLOTS_MAX);
        (
            (self.0 / SLOTS_PER_BLOCK) as u32,
            (self.0 % SLOTS_PER_BLOCK) as u16 + 1,
        )
    }

    /// The slot of a tuple id; `None` for an offset no slot has.
    pub fn from_tid(block: u32, offset: u16) -> Option<Slot> {
        let offset = u64::from(offset);
        if offset == 0 || offset > SLOTS_PER_BLOCK {
            return None;
        }
        Some(Slot(u64::from(block) * SLOTS_PER_BLOCK + offset - 1))
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

/// Who owns a storage: oids are unique per database only.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug, Default)]
#[repr(C)]
pub struct RelationKey {
    /// pg_database.oid
    pub database: u32,
    /// pg_class.oid
    pub relation: u32,
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
    fn slots_and_tuple_ids_convert_both_ways() {
        for slot in [
            0,
            1,
            1023,
            1024,
            1025,
            123_456_789,
            crate::limits::SLOTS_MAX - 1,
        ] {
            let (block, offset) = Slot(slot).to_tid();
            assert!(offset >= 1);
            assert_eq!(Slot::from_tid(block, offset), Some(Slot(slot)));
        }
        assert_eq!(Slot::from_tid(0, 0), None);
        assert_eq!(Slot::from_tid(0, 1025), None);
    }
}
