//! Row locks of prepared transactions that a restart must bring back.
//!
//! A lock on a row that its transaction did not change is an entry in the row's chain, which
//! neither rows in the log nor checkpoints have. So PREPARE logs such locks in records of their own
//! (`log/locks.rs`), and the records are kept in a list of the engine's root until their
//! transaction has ended.
//!
//! | moment | what happens |
//! |---|---|
//! | PRE_PREPARE | each record is appended, then listed, under the session's `logging` flag |
//! | a checkpoint | its manifest has all that is listed, once no session logs any more |
//! | load, replay | the records are listed again; the LSN shows which is there already |
//! | end of recovery | entries are put back, before the first writer; what has ended is dropped |
//! | afterwards | the reclaimer drops the records of transactions that have ended |
//!
//! - Load and replay leave out locks of rows of unlogged tables that are not there.
//! - A record is needed as long as its transaction may be prepared. Whether it committed does not
//!   matter, so the commit log is not asked for it. A dropper's `is_over` is a proof.
//! - On a standby the list is all there is: no session there asks for row locks.
//! - A record older than a checkpoint's redo position is marked as listed when that looks, as a
//!   row's record is (log.rs). So it is in the manifest or behind the redo position, or in both.
//! - The list is changed under its latch, and read by pinned processes. A record never changes.
//!   The process that takes one out of the list retires it.

use super::prepare::put_back;
use crate::engine::{KeptRecord, kept_block_bytes};
use crate::errors::EngineError;
use crate::ids::{Lsn, RowId, Xid};
use crate::log::{Record, RowLock, write_locks};
use crate::memory::{Purpose, Urgency};
use crate::session::Session;
use crate::sync::is_broken;
use crate::table::{TableRef, Walk};
use std::borrow::Cow;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// A record of row locks, out of the arena.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LocksOf {
    /// The transaction, at top level.
    pub xid: Xid,
    /// Where the record ends in the log.
    pub lsn: Lsn,
    /// The record.
    pub record: Vec<u8>,
}

/// A record that is not in the list yet: freed again unless it gets there.
pub(super) struct Unlisted<'a> {
    session: &'a Session,
    record: NonNull<KeptRecord>,
}

impl<'a> Unlisted<'a> {
    /// Room for a record, with its bytes.
    pub(super) fn new(
        session: &'a Session,
        record: &[u8],
        urgency: Urgency,
    ) -> Result<Self, EngineError> {
        let bytes = kept_block_bytes(record.len());
        let block = session.local.allocate(bytes, Purpose::Catalog, urgency)?;
        let header = block.cast::<KeptRecord>();
        // SAFETY: the block is ours, aligned, and large enough for the header and the bytes.
        unsafe {
            header.write(KeptRecord {
                next: AtomicU64::new(0),
                xid: Xid::NONE,
                lsn: Lsn::NONE,
                length: record.len(),
            });
            let at = header.add(1).cast::<u8>();
            at.copy_from_nonoverlapping(NonNull::from(record).cast(), record.len());
        }
        Ok(Unlisted {
            session,
            record: header,
        })
    }

    /// It is in the log.
    pub(super) fn list(mut self, lsn: Lsn, xid: Xid) {
        let kept = &self.session.engine().root().kept_locks;
        // SAFETY: nothing else has it yet.
        let record = unsafe { self.record.as_mut() };
        (record.lsn, record.xid) = (lsn, xid);
        let latched = kept.latch.lock();
        record
            .next
            .store(kept.first.load(Ordering::Relaxed), Ordering::Relaxed);
        kept.first.store(record.address(), Ordering::Release);
        kept.newest.fetch_max(lsn.0, Ordering::Relaxed);
        kept.count.fetch_add(1, Ordering::Relaxed);
        drop(latched);
        std::mem::forget(self);
    }
}

impl Drop for Unlisted<'_> {
    fn drop(&mut self) {
        // SAFETY: never listed; the header has the length that it was allocated with.
        unsafe {
            let bytes = kept_block_bytes(self.record.as_ref().length);
            let local = &self.session.local;
            local.free(self.record.cast(), bytes, Purpose::Catalog);
        }
    }
}

/// The caller is pinned.
fn has_row(table: TableRef, row_id: RowId) -> bool {
    let anchor = table.anchor(row_id);
    anchor.is_some_and(|anchor| anchor.head().newest_data().is_some())
}

impl Session {
    /// Keeps a record that was replayed or loaded, unless it is there. By the one process that
    /// does.
    pub(crate) fn keep_locks(&self, lsn: Lsn, xid: Xid, record: &[u8]) -> Result<(), EngineError> {
        let pin = self.local.pin();
        let kept = &self.engine().root().kept_locks;
        // Records come in their order: behind the newest one none is looked for.
        let is_there = lsn.0 <= kept.newest.load(Ordering::Relaxed)
            && kept.iter().any(|it| it.lsn == lsn && it.xid == xid);
        drop(pin);
        if is_there {
            return Ok(());
        }
        if let Some(record) = self.without_gone_rows(record)? {
            Unlisted::new(self, &record, Urgency::Ordinary)?.list(lsn, xid);
        }
        Ok(())
    }

    /// A record without the locks of rows that a start has taken away: those of unlogged tables.
    /// Other rows will have their row ids. `None`: nothing is left of it.
    fn without_gone_rows<'r>(
        &self,
        record: &'r [u8],
    ) -> Result<Option<Cow<'r, [u8]>>, EngineError> {
        let Record::Locks(locks) = Record::parse(record)? else {
            return Err(EngineError::Corrupt {
                what: "a record of row locks is none",
            });
        };
        let locks = locks.collect::<Result<Vec<RowLock>, EngineError>>()?;
        let mut left = Vec::new();
        left.try_reserve_exact(locks.len())
            .map_err(|_| EngineError::OutOfProcessMemory)?;
        for run in locks.chunk_by(|one, other| one.table == other.table) {
            let walk = self.catalog().hold(run[0].table);
            let unlogged = walk
                .as_ref()
                .map(Walk::table)
                .filter(|table| !table.is_logged());
            let _pin = self.local.pin();
            let is_there =
                |lock: &&RowLock| unlogged.is_none_or(|table| has_row(table, lock.row_id));
            left.extend(run.iter().filter(is_there));
        }
        if left.is_empty() {
            return Ok(None);
        }
        if left.len() == locks.len() {
            return Ok(Some(Cow::Borrowed(record)));
        }
        let mut shorter = Vec::new();
        write_locks(&mut shorter, &left)?;
        Ok(Some(Cow::Owned(shorter)))
    }

    /// Copies of all that is kept, oldest first.
    pub(crate) fn copy_kept_locks(&self) -> Result<Vec<LocksOf>, EngineError> {
        let _pin = self.local.pin();
        let mut copies = Vec::new();
        let no_memory = |_| EngineError::OutOfProcessMemory;
        for kept in self.engine().root().kept_locks.iter() {
            let mut record = Vec::new();
            record.try_reserve(kept.length).map_err(no_memory)?;
            record.extend_from_slice(kept.bytes());
            copies.try_reserve(1).map_err(no_memory)?;
            copies.push(LocksOf {
                xid: kept.xid,
                lsn: kept.lsn,
                record,
            });
        }
        copies.sort_unstable_by_key(|copy| copy.lsn);
        if is_broken("checkpoint: row locks of prepared transactions") {
            copies.clear();
        }
        Ok(copies)
    }

    /// Drops the records of transactions that are over, which `is_over` knows: it may unwind.
    /// Returns how many are left.
    pub fn drop_ended_locks(&self, is_over: impl Fn(Xid) -> bool) -> Result<u64, EngineError> {
        let kept = &self.engine().root().kept_locks;
        if kept.first.load(Ordering::Acquire) == 0 {
            return Ok(0);
        }
        let _pin = self.local.pin();
        let mut ended = Vec::new();
        for record in kept.iter().filter(|record| is_over(record.xid)) {
            ended
                .try_reserve(1)
                .map_err(|_| EngineError::OutOfProcessMemory)?;
            ended.push((record.address(), false));
        }
        ended.sort_unstable();
        kept.unlink(&mut ended);
        for (address, _) in ended.into_iter().filter(|(_, is_ours)| *is_ours) {
            let record = NonNull::new(address as *mut KeptRecord).expect("a record's address");
            // SAFETY: just unlinked, by us alone; readers of the list are pinned.
            unsafe {
                let bytes = kept_block_bytes(record.as_ref().length);
                self.local.retire(record.cast(), bytes, Purpose::Catalog);
            }
        }
        Ok(kept.count.load(Ordering::Relaxed))
    }

    /// Puts the row locks of transactions that `may_be_prepared` back into their rows, and drops
    /// the records of all others. At the end of recovery, before any session writes.
    pub(crate) fn put_locks_back(
        &self,
        may_be_prepared: impl Fn(Xid) -> bool,
    ) -> Result<(), EngineError> {
        self.drop_ended_locks(|xid| !may_be_prepared(xid))?;
        for LocksOf { xid, record, .. } in self.copy_kept_locks()? {
            let Record::Locks(locks) = Record::parse(&record)? else {
                return Err(EngineError::Corrupt {
                    what: "row locks are kept in another record",
                });
            };
            let locks: Vec<RowLock> = locks.collect::<Result<_, _>>()?;
            put_back(self, &locks, xid)?;
        }
        Ok(())
    }
}
