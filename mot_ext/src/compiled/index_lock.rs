//! The lock on the index that an execution scans. As core's executor does, an execution takes it
//! when it starts, and it stays to the transaction's end.
//!
//! An execution that knows it to be held takes none. A lock goes early only with the subtransaction
//! it was taken in, or with a portal that has failed. Such a portal's subtransaction is aborted
//! before the portal is dropped, so an abort comes between. The relation cache may be asked as
//! before: sessions that the lock keeps out cannot have changed the index meanwhile.
use crate::pg;
use crate::pg::local::ProcessLocal;
use pgrx::pg_sys;
use std::cell::Cell;

/// Transactions and subtransactions of this process that were aborted.
static ABORTS: ProcessLocal<Cell<u64>> = ProcessLocal(Cell::new(0));

/// A transaction or subtransaction is being aborted.
pub fn note_abort() {
    ABORTS.0.set(ABORTS.0.get() + 1);
}

/// An index, and since when it is locked.
pub struct IndexLock {
    mode: pg_sys::LOCKMODE,
    /// Local transaction, subtransaction, and how many aborts there were before.
    held: Cell<Option<(u32, pg_sys::SubTransactionId, u64)>>,
}

impl IndexLock {
    /// Not held yet.
    pub fn new(mode: pg_sys::LOCKMODE) -> IndexLock {
        IndexLock {
            mode,
            held: Cell::new(None),
        }
    }

    /// Locks the index, always the same one, in the current subtransaction. May wait, and raise.
    #[inline]
    pub fn take(&self, index: pg_sys::Oid) {
        let now = (
            pg::local_transaction(),
            pg::subtransaction(),
            ABORTS.0.get(),
        );
        if self.held.get() == Some(now) {
            return;
        }
        // SAFETY: an index of a table that the statement has locked.
        unsafe { pg_sys::LockRelationOid(index, self.mode) };
        self.held.set(Some(now));
    }
}
