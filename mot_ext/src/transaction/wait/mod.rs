//! Waiting for a row, as heapam waits: first the heavyweight tuple lock, so that waiters queue in
//! order, then the transaction that owns the row. Deadlock detection, `lock_timeout`, cancel and
//! `pg_locks` come with PostgreSQL's lock manager.
//!
//! The head of the queue watches the owner for some microseconds before it sleeps (`watch.rs`).
//!
//! A [`RowLockQueue`] belongs to one operation on one row at a time: the tuple lock is taken at the
//! first wait and kept over repeated waits (the row may change hands), until
//! [`RowLockQueue::release`]. An error in between needs no care: PostgreSQL's resource owner gives
//! the lock back.
mod watch;

use super::clock::narrow;
use super::relation::LockedRelation;
use super::{label_locks, session};
use crate::errors;
use crate::pg::interrupts;
use crate::pg::relation::{Relation, try_with};
use crate::pg::version;
use mot_engine::pause::{Point, reach};
use mot_engine::{LockStrength, Ordinal, RowId, Xid};
use pgrx::prelude::*;

/// What to do when the row is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitPolicy {
    /// Wait.
    Block,
    /// Give the row up.
    SkipLocked,
    /// Raise 55P03.
    NoWait,
}

/// What the waiter is about to do; it shows in the context line of an error ("while updating tuple
/// ...").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Update,
    Delete,
    Lock,
    /// Checking uniqueness.
    Insert,
}

/// One operation's place in the queue of a row.
pub struct RowLockQueue<'p> {
    relation: LockedRelation<'p>,
    purpose: Purpose,
    held: Option<(pg_sys::ItemPointerData, pg_sys::LOCKMODE)>,
    is_queueing: bool,
}

impl<'p> RowLockQueue<'p> {
    /// An empty queue place for rows of `relation`, which stays locked while this value lives.
    pub fn new(relation: LockedRelation<'p>) -> Self {
        RowLockQueue {
            relation,
            purpose: Purpose::Lock,
            held: None,
            is_queueing: true,
        }
    }

    /// Says what the waiter is about to do.
    pub fn purpose(mut self, purpose: Purpose) -> Self {
        self.purpose = purpose;
        self
    }

    /// Waits for transactions without queueing: for a transaction that holds a weaker lock on the
    /// row already, or has changed it. Those in the queue wait for it, so it would wait for itself.
    pub fn pass_queue(&mut self) {
        self.is_queueing = false;
    }

    /// Waits until `xid` no longer is in the way of locking a row with `strength`. An error names
    /// the state with this ordinal. False: the row is to be skipped.
    pub fn wait(
        &mut self,
        (row, ordinal): (RowId, Ordinal),
        xid: Xid,
        strength: LockStrength,
        policy: WaitPolicy,
    ) -> bool {
        reach(Point::WaitBeforeQueue);
        match policy {
            WaitPolicy::Block => {}
            // The engine has just found the owner running.
            WaitPolicy::SkipLocked => return false,
            WaitPolicy::NoWait => self.not_available(xid),
        }
        label_locks::release_to_wait();
        if self.is_queueing {
            // One tag for all states, so that all who want the row are in one queue.
            self.enter(tid_of(row, Ordinal(0)), heavyweight_mode(strength));
        }
        session::count_conflict(|conflicts| &conflicts.row_waits);
        reach(Point::WaitBeforeOwner);
        if watch::until_ended(xid) {
            // Else no code would, as long as owner follows owner.
            interrupts::check_for_interrupts();
        } else {
            self.wait_for_end(tid_of(row, ordinal), xid, self.purpose);
        }
        reach(Point::WaitAfterOwner);
        true
    }

    /// Waits for the outcome of a transaction whose row is in the way of a unique key that core
    /// looks for ahead of an insertion; no queue.
    pub fn wait_for_transaction(&mut self, row: RowId, xid: Xid) {
        self.wait_for_key(|| self.wait_for_end(tid_of(row, Ordinal(0)), xid, Purpose::Insert));
    }

    /// Waits for the outcome of a transaction whose row is in the way of a key that is being
    /// entered; no queue, as in nbtree, which names the index.
    pub fn wait_to_enter(&mut self, row: RowId, xid: Xid, index: u32) {
        let lock = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
        let tid = tid_of(row, Ordinal(0));
        let wait = |index: Option<Relation<'_>>| wait_for_end(index, tid, xid, Purpose::Insert);
        self.wait_for_key(|| {
            // The error has no such line of an index that is gone.
            try_with(index.into(), lock, |index| wait(Some(index))).unwrap_or_else(|| wait(None));
        });
    }

    fn wait_for_key(&self, wait: impl FnOnce()) {
        label_locks::release_to_wait();
        session::count_conflict(|conflicts| &conflicts.key_waits);
        reach(Point::WaitBeforeOwner);
        wait();
        reach(Point::WaitAfterOwner);
    }

    fn wait_for_end(&self, tid: pg_sys::ItemPointerData, xid: Xid, purpose: Purpose) {
        self.relation
            .with(|relation| wait_for_end(Some(relation), tid, xid, purpose));
    }

    /// Whether others of the row's queue wait behind this place.
    pub fn is_held(&self) -> bool {
        self.held.is_some()
    }

    /// Leaves the queue; the row itself is now marked as ours, or given up.
    pub fn release(&mut self) {
        if let Some((mut tid, mode)) = self.held.take() {
            // SAFETY: the lock was taken in `enter` with the same tag and mode.
            self.relation.with(|relation| unsafe {
                pg_sys::UnlockTuple(relation.as_ptr(), &mut tid, mode);
            });
        }
    }

    fn enter(&mut self, mut tid: pg_sys::ItemPointerData, mode: pg_sys::LOCKMODE) {
        if let Some((held, held_mode)) = self.held {
            if same_tid(held, tid) && held_mode == mode {
                return;
            }
            self.release();
        }
        // SAFETY: the relation is open and `tid` lives for the call; may raise.
        self.relation.with(|relation| unsafe {
            pg_sys::LockTuple(relation.as_ptr(), &mut tid, mode);
        });
        self.held = Some((tid, mode));
    }

    fn not_available(&self, xid: Xid) -> ! {
        version::log_lock_failure(narrow(xid));
        self.relation
            .with(|relation| errors::row_not_available(&relation.name_text()))
    }
}

/// Sleeps until a transaction has ended. An error names the relation, if one is given, and the
/// tuple.
fn wait_for_end(
    relation: Option<Relation<'_>>,
    mut tid: pg_sys::ItemPointerData,
    xid: Xid,
    purpose: Purpose,
) {
    let (relation, operation) = match relation {
        None => (std::ptr::null_mut(), pg_sys::XLTW_Oper::XLTW_None),
        Some(relation) => (relation.as_ptr(), purpose.operation()),
    };
    // SAFETY: an open relation, or NULL; `tid` lives for the call; may raise.
    unsafe {
        pg_sys::XactLockTableWait(narrow(xid), relation, &mut tid, operation);
    }
}

impl Purpose {
    fn operation(self) -> pg_sys::XLTW_Oper::Type {
        match self {
            Purpose::Update => pg_sys::XLTW_Oper::XLTW_Update,
            Purpose::Delete => pg_sys::XLTW_Oper::XLTW_Delete,
            Purpose::Lock => pg_sys::XLTW_Oper::XLTW_Lock,
            Purpose::Insert => pg_sys::XLTW_Oper::XLTW_InsertIndex,
        }
    }
}

/// heapam's `tupleLockExtraInfo[].hwlock`.
pub fn heavyweight_mode(strength: LockStrength) -> pg_sys::LOCKMODE {
    (match strength {
        LockStrength::KeyShare => pg_sys::AccessShareLock,
        LockStrength::Share => pg_sys::RowShareLock,
        LockStrength::NoKeyUpdate => pg_sys::ExclusiveLock,
        LockStrength::Update => pg_sys::AccessExclusiveLock,
    }) as pg_sys::LOCKMODE
}

/// The tuple id of a row's state with this ordinal.
#[inline]
pub fn tid_of(row: RowId, ordinal: Ordinal) -> pg_sys::ItemPointerData {
    let (block, offset) = row.to_tid(ordinal);
    pg_sys::ItemPointerData {
        ip_blkid: pg_sys::BlockIdData {
            bi_hi: (block >> 16) as u16,
            bi_lo: block as u16,
        },
        ip_posid: offset,
    }
}

fn same_tid(a: pg_sys::ItemPointerData, b: pg_sys::ItemPointerData) -> bool {
    a.ip_blkid.bi_hi == b.ip_blkid.bi_hi
        && a.ip_blkid.bi_lo == b.ip_blkid.bi_lo
        && a.ip_posid == b.ip_posid
}
