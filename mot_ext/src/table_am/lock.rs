//! Row locks, as heapam_tuple_lock gives them: of the version asked for, or of the row's last one.
use super::failure::{self, Refusal, by_own_command, is_too_young};
use super::slot::{self, Shown};
use super::{resolve, target};
use crate::pg::argument::Out;
use crate::pg::local::ProcessLocal;
use crate::pg::node::Field;
use crate::pg::relation::Relation;
use crate::pg::snapshot::Snapshot;
use crate::pg::tuple_slot::TupleSlot;
use crate::rows::lock_rows::policy;
use crate::rows::tid;
use crate::rows::write::{Skipped, Target};
use crate::shared_memory::test_switch::{self, Step};
use crate::transaction::clock::{PgClock, narrow};
use crate::transaction::wait::{Purpose, RowLockQueue, WaitPolicy};
use crate::{errors, pg};
use mot_engine::pause::{Point, reach};
use mot_engine::{CommandId, LockStrength, Locked, RowId, TableRef, VersionRef, Xid};
use pgrx::pg_sys::{self, TM_Result::TM_Ok};
use std::cell::Cell;

/// The row locked last by this process's transaction: what is updated next is most often it (ON
/// CONFLICT DO UPDATE).
static LAST_LOCKED: ProcessLocal<Cell<Option<(TableRef, RowId, pg_sys::TransactionId)>>> =
    ProcessLocal(Cell::new(None));

/// The transaction that `xmax` of an updated row names, if it is the one that was locked just
/// before.
pub fn locker_of(table: TableRef, row: RowId) -> Option<pg_sys::TransactionId> {
    let (last_table, last_row, xid) = LAST_LOCKED.0.take()?;
    // SAFETY: the current transaction has an id, for it has changed the row.
    let own = unsafe { pg_sys::GetCurrentTransactionIdIfAny() };
    (last_table == table && last_row == row && xid == own).then_some(xid)
}

/// Notes a row that a compiled statement has locked.
#[inline]
pub fn note_locked(table: TableRef, row: RowId) {
    if let Some(xid) = pg::full_xid_if_any() {
        LAST_LOCKED.0.set(Some((table, row, narrow(Xid(xid)))));
    }
}

/// `tuple_lock`.
///
/// # Safety
/// The slot is of the table's row type, as core's are.
#[allow(clippy::too_many_arguments)]
pub unsafe fn lock(
    relation: Relation<'_>,
    id: Field<'_, pg_sys::ItemPointerData>,
    snapshot: Option<Snapshot<'_>>,
    slot: TupleSlot<'_>,
    command: pg_sys::CommandId,
    mode: pg_sys::LockTupleMode::Type,
    waits: pg_sys::LockWaitPolicy::Type,
    flags: u8,
    failure: Out<'_, pg_sys::TM_FailureData>,
) -> pg_sys::TM_Result::Type {
    let target = target::of(relation);
    let named = resolve::named_by(relation, id.get(), snapshot);
    let (row, seen) = named.unwrap_or_else(|| errors::invisible_version("lock"));
    let finds_last = u32::from(flags) & pg_sys::TUPLE_LOCK_FLAG_FIND_LAST_VERSION != 0;
    let wanted = Wanted::new(mode, waits, flags, command);
    // One place in the row's queue, until the newest version is locked: a waiter behind comes
    // after.
    let mut queue = RowLockQueue::new(target.relation).purpose(Purpose::Lock);
    let locked = match (seen, finds_last) {
        (None, false) => Err(failure::unnamed(&target, row, wanted.command)),
        (None, true) => lock_newest(&target, row, wanted, &mut queue),
        (Some(seen), false) => lock_seen(&target, row, seen, wanted, &mut queue),
        (Some(seen), true) => lock_last(&target, row, seen, wanted, &mut queue),
    };
    queue.release();
    let shown = |version| Shown {
        relation: target.oid(),
        table: target.table,
        row,
        version,
    };
    match locked {
        Ok(version) => {
            id.set(tid::of(target.table, row, version));
            failure.set(failure::none(id.get(), Some(version) != seen));
            // SAFETY: the caller's slot.
            unsafe { slot::show_copy(slot, shown(version)) };
            note_shown(&target, row, slot);
            TM_Ok
        }
        Err(refusal) => {
            if refusal == Refusal::Invisible
                && let Some(seen) = seen
            {
                // ON CONFLICT checks whose it is.
                // SAFETY: the caller's slot.
                unsafe { slot::show_copy(slot, shown(seen)) };
            }
            if finds_last
                && refusal == Refusal::Deleted
                && target.session.is_moved_away(&PgClock, target.table, row)
            {
                errors::moved_to_another_partition();
            }
            failure::report(refusal, &target, row, id.get(), failure)
        }
    }
}

/// Notes a row that was locked, and says in the slot that shows it who has locked it.
fn note_shown(target: &Target<'_>, row: RowId, slot: TupleSlot<'_>) {
    // SAFETY: the current transaction has an id, for it has locked the row.
    let xid = unsafe { pg_sys::GetCurrentTransactionIdIfAny() };
    slot::set_xmax(slot, xid);
    LAST_LOCKED.0.set(Some((target.table, row, xid)));
}

/// The row lock of a lock mode.
fn strength(mode: pg_sys::LockTupleMode::Type) -> LockStrength {
    match mode {
        pg_sys::LockTupleMode::LockTupleKeyShare => LockStrength::KeyShare,
        pg_sys::LockTupleMode::LockTupleShare => LockStrength::Share,
        pg_sys::LockTupleMode::LockTupleNoKeyExclusive => LockStrength::NoKeyUpdate,
        _ => LockStrength::Update,
    }
}

/// How a row is to be locked.
#[derive(Clone, Copy)]
struct Wanted {
    strength: LockStrength,
    policy: WaitPolicy,
    command: CommandId,
    purpose: For,
}

impl Wanted {
    /// As core says it.
    fn new(
        mode: pg_sys::LockTupleMode::Type,
        waits: pg_sys::LockWaitPolicy::Type,
        flags: u8,
        command: pg_sys::CommandId,
    ) -> Wanted {
        Wanted {
            strength: strength(mode),
            policy: policy(waits),
            command: target::command(command),
            purpose: purpose(flags),
        }
    }
}

/// What a lock is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum For {
    /// A statement asks for it: FOR UPDATE and its weaker kin.
    Statement,
    /// A change of the row comes next.
    Change,
}

/// By core's flags: its LockRows alone follows a row that is being changed.
fn purpose(flags: u8) -> For {
    match u32::from(flags) & pg_sys::TUPLE_LOCK_FLAG_LOCK_UPDATE_IN_PROGRESS {
        0 => For::Change,
        _ => For::Statement,
    }
}

/// Locks the version that the statement saw.
fn lock_seen(
    target: &Target<'_>,
    row: RowId,
    seen: VersionRef,
    wanted: Wanted,
    queue: &mut RowLockQueue<'_>,
) -> Result<VersionRef, Refusal> {
    if is_too_young(seen, wanted.command) {
        return Err(Refusal::Invisible);
    }
    if wanted.purpose == For::Statement && test_switch::skips(Step::RowLocks) {
        return Ok(seen);
    }
    loop {
        return match target.lock(row, seen, wanted.strength) {
            Locked::Done => Ok(seen),
            Locked::Busy(xid) => {
                if target.wait(row, xid, wanted.strength, wanted.policy, queue) {
                    continue;
                }
                Err(Refusal::WouldBlock)
            }
            Locked::Changed => Err(Refusal::Updated),
            Locked::Gone => Err(Refusal::Deleted),
            Locked::SelfModified(by) => Err(by_own_command(by, wanted.command)),
        };
    }
}

/// Locks the version that the statement saw, or where others have committed newer ones, the last of
/// them.
fn lock_last(
    target: &Target<'_>,
    row: RowId,
    seen: VersionRef,
    wanted: Wanted,
    queue: &mut RowLockQueue<'_>,
) -> Result<VersionRef, Refusal> {
    match lock_seen(target, row, seen, wanted, queue) {
        Err(Refusal::Updated) => {}
        answer => return answer,
    }
    let newest = lock_newest(target, row, wanted, queue)?;
    if newest.ordinal() == seen.ordinal() {
        // The id that core is given for the newest version is that of the one which the statement
        // saw.
        errors::overtaken_tuple_id();
    }
    failure::count_changed_meanwhile();
    Ok(newest)
}

/// Locks the last version of a row.
fn lock_newest(
    target: &Target<'_>,
    row: RowId,
    wanted: Wanted,
    queue: &mut RowLockQueue<'_>,
) -> Result<VersionRef, Refusal> {
    reach(Point::RecheckBeforeLock);
    match target.lock_newest(row, wanted.strength, wanted.policy, queue) {
        Ok(Some(newest)) if is_too_young(newest, wanted.command) => {
            Err(Refusal::SelfModified(newest.cid()))
        }
        Ok(Some(newest)) => Ok(newest),
        Ok(None) => Err(Refusal::Deleted),
        Err(Skipped) => Err(Refusal::WouldBlock),
    }
}
