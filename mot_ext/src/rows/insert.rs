//! New rows: the loops that wait for the holder of a row's key, and may take the row back.
use super::write::Target;
use crate::decoding;
use crate::errors::or_raise;
use crate::serializable;
use crate::transaction::wait::{Purpose, RowLockQueue};
use crate::transaction::xact;
use mot_engine::{CommandId, Entered, IndexRef, RowId, VersionRef};

/// What became of a new row that gives way to others.
pub enum Inserted {
    Done(RowId, VersionRef),
    /// Another row has the key; the new one was taken back.
    Duplicate,
}

/// A new row that is in place, to stay or to be the row of an error.
pub struct Placed {
    pub row: RowId,
    pub version: VersionRef,
    /// Another row has its key in this index.
    pub refused_by: Option<IndexRef>,
}

impl Target<'_> {
    /// Inserts a row. A duplicate is an error.
    pub fn insert(&self, body: &[u8], command: CommandId) -> (RowId, VersionRef) {
        let placed = self.place(body, command);
        if let Some(index) = placed.refused_by {
            self.duplicate(index, placed.row, None, placed.version);
        }
        (placed.row, placed.version)
    }

    /// Inserts a row. A duplicate in an arbiter, which is named by its oid, takes the row back and
    /// is reported; any other duplicate is an error.
    pub fn insert_unless(
        &self,
        body: &[u8],
        command: CommandId,
        is_arbiter: &dyn Fn(u32) -> bool,
    ) -> Inserted {
        let mut queue = RowLockQueue::new(self.relation).purpose(Purpose::Insert);
        loop {
            let (row, version) = self.put(body, command);
            match self.enter_without_waiting(row, version) {
                Entered::Done => {
                    self.inserted(version);
                    return Inserted::Done(row, version);
                }
                Entered::Busy(xid, index) => {
                    // Not waiting with the row in place: two such statements would wait for each
                    // other.
                    xact::current().retract(self.session);
                    if is_arbiter(index) {
                        queue.wait_for_transaction(row, xid);
                    } else {
                        queue.wait_to_enter(row, xid, index);
                    }
                }
                Entered::Duplicate(index) if is_arbiter(index.relation_oid()) => {
                    xact::current().retract(self.session);
                    return Inserted::Duplicate;
                }
                Entered::Duplicate(index) => self.duplicate(index, row, None, version),
            }
        }
    }

    /// Puts a row in place, and enters it. It may wait with the row in place: nothing leads to it
    /// but the entries that it has made so far, as in a heap table.
    pub fn place(&self, body: &[u8], command: CommandId) -> Placed {
        let mut queue = RowLockQueue::new(self.relation).purpose(Purpose::Insert);
        let (row, version) = self.put(body, command);
        loop {
            match self.enter_without_waiting(row, version) {
                Entered::Done => return self.placed(row, version, None),
                Entered::Busy(xid, index) => queue.wait_to_enter(row, xid, index),
                Entered::Duplicate(index) => return self.placed(row, version, Some(index)),
            }
        }
    }

    /// The same of a row whose labels no other writer can put others beside. `None`: the session
    /// had to wait, and took the row back before it waited.
    pub fn place_or_retract(&self, body: &[u8], command: CommandId) -> Option<Placed> {
        let (row, version) = self.put(body, command);
        match self.enter_without_waiting(row, version) {
            Entered::Done => Some(self.placed(row, version, None)),
            Entered::Busy(by, index) => {
                xact::current().retract(self.session);
                let mut queue = RowLockQueue::new(self.relation).purpose(Purpose::Insert);
                queue.wait_to_enter(row, by, index);
                None
            }
            Entered::Duplicate(index) => Some(self.placed(row, version, Some(index))),
        }
    }

    /// Puts a row in place, without entries.
    pub fn put(&self, body: &[u8], command: CommandId) -> (RowId, VersionRef) {
        let xid = xact::write_xid();
        or_raise(xact::current().insert(self.session, self.table, body, xid, command))
    }

    fn placed(&self, row: RowId, version: VersionRef, refused_by: Option<IndexRef>) -> Placed {
        if refused_by.is_none() {
            self.inserted(version);
        }
        Placed {
            row,
            version,
            refused_by,
        }
    }

    /// A new row is in place, to stay.
    pub fn inserted(&self, version: VersionRef) {
        if self.is_serializable {
            serializable::inserted(self.oid(), self.table, version);
        }
        decoding::inserted(self.relation, version);
    }
}
