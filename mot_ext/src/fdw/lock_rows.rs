//! SELECT ... FOR UPDATE, NO KEY UPDATE, SHARE, KEY SHARE, as nodeLockRows wants it from a wrapper.
//!
//! Rows are locked late: the LockRows node asks for each row that passed everything below it. A row that changed meanwhile is
//! locked in its newest state and handed back with `updated`, so that core evaluates the query again over it.
//! ROW_MARK_REFERENCE asks for the row as the statement saw it: the tables an UPDATE joins with, during re-evaluation.
use super::tuple;
use super::write::{Skipped, Target, refuse_under_old_snapshot};
use crate::clock::PgSnapshot;
use crate::test_switch::{self, Step};
use crate::wait::{Purpose, RowLockQueue, WaitPolicy};
use mot_engine::pause::{Point, reach};
use mot_engine::{CommandId, LockStrength, Locked, Slot, VersionRef};
use pgrx::pg_sys;

pub unsafe fn get_foreign_row_mark_type(
    _entry: *mut pg_sys::RangeTblEntry,
    strength: pg_sys::LockClauseStrength::Type,
) -> pg_sys::RowMarkType::Type {
    match strength {
        pg_sys::LockClauseStrength::LCS_FORKEYSHARE => pg_sys::RowMarkType::ROW_MARK_KEYSHARE,
        pg_sys::LockClauseStrength::LCS_FORSHARE => pg_sys::RowMarkType::ROW_MARK_SHARE,
        pg_sys::LockClauseStrength::LCS_FORNOKEYUPDATE => {
            pg_sys::RowMarkType::ROW_MARK_NOKEYEXCLUSIVE
        }
        pg_sys::LockClauseStrength::LCS_FORUPDATE => pg_sys::RowMarkType::ROW_MARK_EXCLUSIVE,
        _ => pg_sys::RowMarkType::ROW_MARK_REFERENCE,
    }
}

/// The row lock of a row mark; `None` for one that locks nothing.
pub fn strength(mark: pg_sys::RowMarkType::Type) -> Option<LockStrength> {
    match mark {
        pg_sys::RowMarkType::ROW_MARK_EXCLUSIVE => Some(LockStrength::Update),
        pg_sys::RowMarkType::ROW_MARK_NOKEYEXCLUSIVE => Some(LockStrength::NoKeyUpdate),
        pg_sys::RowMarkType::ROW_MARK_SHARE => Some(LockStrength::Share),
        pg_sys::RowMarkType::ROW_MARK_KEYSHARE => Some(LockStrength::KeyShare),
        _ => None,
    }
}

/// What the clause says about rows that are taken.
pub fn policy(policy: pg_sys::LockWaitPolicy::Type) -> WaitPolicy {
    match policy {
        pg_sys::LockWaitPolicy::LockWaitSkip => WaitPolicy::SkipLocked,
        pg_sys::LockWaitPolicy::LockWaitError => WaitPolicy::NoWait,
        _ => WaitPolicy::Block,
    }
}

pub unsafe fn refetch_foreign_row(
    estate: *mut pg_sys::EState,
    mark: *mut pg_sys::ExecRowMark,
    identity: pg_sys::Datum,
    slot: *mut pg_sys::TupleTableSlot,
    updated: *mut bool,
) {
    // SAFETY: as core calls it: an open relation, a tuple id, and a slot for that relation: a table slot, or in a re-evaluation the scan's own.
    unsafe {
        *updated = false;
        tuple::clear(slot);
        let target = Target::new((*mark).relation);
        let snapshot = PgSnapshot::new((*estate).es_snapshot);
        let tid = *identity.cast_mut_ptr::<pg_sys::ItemPointerData>();
        let Some(row) = tuple::slot_of(tid) else {
            return;
        };
        let Some(seen) = target.session.visible(target.table, row, &snapshot) else {
            return;
        };
        let Some(strength) = strength((*mark).markType) else {
            tuple::store_copy(slot, row, seen, target.oid());
            return;
        };
        // A row that this command, or a function it called, changed is not returned, as in nodeLockRows.
        let policy = policy((*mark).waitPolicy);
        let outcome = lock(&target, row, seen, strength, policy, For::Reading);
        if let Outcome::Locked(version) = outcome {
            *updated = version != seen;
            // What nodeLockRows notes for its own tables: WHERE CURRENT OF looks here.
            (*mark).curCtid = tid;
            tuple::store_copy(slot, row, version, target.oid());
        }
    }
}

/// What became of a row to lock.
pub enum Outcome {
    /// Locked, in this state.
    Locked(VersionRef),
    /// Deleted, or to be passed over.
    Lost,
    /// Changed by the transaction itself after what was seen, by this command last.
    SelfModified(CommandId),
}

/// What a row is locked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum For {
    /// Its reader. To one with an older snapshot a deletion is a "concurrent update", as nodeLockRows has it.
    Reading,
    /// A change with triggers. A deletion is a "concurrent delete", as trigger.c has it.
    Changing,
}

/// Locks a row that the statement saw in the state `seen`.
pub fn lock(
    target: &Target,
    row: Slot,
    seen: VersionRef,
    strength: LockStrength,
    policy: WaitPolicy,
    purpose: For,
) -> Outcome {
    if test_switch::skips(Step::RowLocks) {
        return Outcome::Locked(seen);
    }
    let mut queue = RowLockQueue::new(target.relation).purpose(Purpose::Lock);
    let outcome = loop {
        match target.lock(row, seen, strength) {
            Locked::Done => break Outcome::Locked(seen),
            Locked::Busy(xid) => {
                if !target.wait(row, xid, strength, policy, &mut queue) {
                    break Outcome::Lost;
                }
            }
            Locked::Changed => {
                refuse_under_old_snapshot("concurrent update");
                reach(Point::RecheckBeforeLock);
                break match target.lock_newest(row, strength, policy, &mut queue) {
                    Ok(Some(newest)) => Outcome::Locked(newest),
                    Ok(None) | Err(Skipped) => Outcome::Lost,
                };
            }
            Locked::Gone => {
                refuse_under_old_snapshot(match purpose {
                    For::Reading => "concurrent update",
                    For::Changing => "concurrent delete",
                });
                break Outcome::Lost;
            }
            Locked::SelfModified(by) => break Outcome::SelfModified(by),
        }
    };
    queue.release();
    outcome
}
