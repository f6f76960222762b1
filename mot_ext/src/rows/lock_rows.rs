//! The row locks of compiled statements: SELECT ... FOR UPDATE, NO KEY UPDATE, SHARE, KEY SHARE, as
//! nodeLockRows takes them. A row that changed meanwhile is locked in its newest state, and the
//! caller checks its conditions again.
use super::write::{Skipped, Target, refuse_under_old_snapshot};
use crate::shared_memory::test_switch::{self, Step};
use crate::transaction::wait::{Purpose, RowLockQueue, WaitPolicy};
use mot_engine::pause::{Point, reach};
use mot_engine::{LockStrength, Locked, RowId, VersionRef};
use pgrx::pg_sys;

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

/// What became of a row to lock.
pub enum Outcome {
    /// Locked, in this state.
    Locked(VersionRef),
    /// Deleted, or to be passed over.
    Lost,
    /// Changed by the transaction itself after what was seen.
    SelfModified,
}

/// Locks a row in the state `seen`, if that is its newest one and there is nothing to wait for.
pub fn lock_at_once(
    target: &Target<'_>,
    row: RowId,
    seen: VersionRef,
    strength: LockStrength,
) -> bool {
    test_switch::skips(Step::RowLocks) || matches!(target.lock(row, seen, strength), Locked::Done)
}

/// Locks a row that the statement saw in the state `seen`.
pub fn lock(
    target: &Target<'_>,
    row: RowId,
    seen: VersionRef,
    strength: LockStrength,
    policy: WaitPolicy,
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
                // As nodeLockRows has it.
                refuse_under_old_snapshot("concurrent update");
                break Outcome::Lost;
            }
            Locked::SelfModified(_) => break Outcome::SelfModified,
        }
    };
    queue.release();
    outcome
}
