//! Changed rows, with heapam's answers. The waiting loop is heapam's: first the row's queue, then
//! the owner.
use super::failure::{self, Refusal, by_own_command, is_too_young};
use super::slot::{self, Shown};
use super::statistics::RowChange;
use super::{lock, resolve, statistics, target};
use crate::decoding;
use crate::errors::{self, or_raise};
use crate::pg::argument::Out;
use crate::pg::node::Field;
use crate::pg::relation::Relation;
use crate::pg::snapshot::Snapshot;
use crate::pg::tuple_slot::TupleSlot;
use crate::pg::version::table_am as version;
use crate::rows::write::{Skipped, Target};
use crate::serializable;
use crate::shared_memory::test_switch::{self, Step};
use crate::storage;
use crate::transaction::clock::{PgClock, PgSnapshot};
use crate::transaction::wait::{Purpose, RowLockQueue, WaitPolicy};
use crate::transaction::{label_locks, xact};
use mot_engine::pause::{Point, reach};
use mot_engine::{
    CommandId, Entered, LockStrength, Newest, RowId, Transaction, VersionRef, Written,
};
use pgrx::pg_sys::{self, TM_Result::TM_Ok};

/// What a change is asked for with, beside the row.
#[derive(Clone, Copy)]
pub struct Asked<'p> {
    pub command: CommandId,
    /// A snapshot that has to see the version, too.
    pub crosscheck: Option<Snapshot<'p>>,
    pub policy: WaitPolicy,
}

impl<'p> Asked<'p> {
    /// What core asks for; without `wait` an unfinished change of another transaction is an answer.
    pub fn new(
        command: pg_sys::CommandId,
        crosscheck: Option<Snapshot<'p>>,
        wait: bool,
    ) -> Asked<'p> {
        Asked {
            command: target::command(command),
            crosscheck,
            policy: match wait {
                true => WaitPolicy::Block,
                false => WaitPolicy::SkipLocked,
            },
        }
    }
}

/// `tuple_update`.
///
/// # Safety
/// A table that is locked for writing, and a filled slot of its row type.
#[allow(clippy::too_many_arguments)]
pub unsafe fn update(
    relation: Relation<'_>,
    old: Field<'_, pg_sys::ItemPointerData>,
    slot: TupleSlot<'_>,
    command: pg_sys::CommandId,
    snapshot: Option<Snapshot<'_>>,
    crosscheck: Option<Snapshot<'_>>,
    wait: bool,
    failure: Out<'_, pg_sys::TM_FailureData>,
    mode: Out<'_, pg_sys::LockTupleMode::Type>,
    indexes: Out<'_, version::IndexesToUpdate>,
) -> pg_sys::TM_Result::Type {
    // The keys are entered here, and checked but for those that core checks.
    indexes.set(version::NO_INDEXES);
    let target = target::of(relation);
    // Ahead of the row lock, whose strength it may concern.
    let has_keys_of_core = storage::has_keys_of_core(relation);
    let asked = Asked::new(command, crosscheck, wait);
    // The version is looked up again behind the code of users that computes keys.
    let named = || resolve::named_by(relation, old.get(), snapshot);
    let replaced = || named().and_then(|(_, seen)| seen);
    let attempt = |body: &[u8]| {
        let (row, seen) = named().unwrap_or_else(|| errors::invisible_version("update"));
        let updated = match seen {
            None => {
                mode.set(pg_sys::LockTupleMode::LockTupleExclusive);
                Err(failure::unnamed(&target, row, asked.command))
            }
            Some(seen) => {
                mode.set(mode_of(strength_of(&target, seen, body)));
                change(&target, row, seen, body, asked)
            }
        };
        (updated != Err(Refusal::Waited)).then_some((row, updated))
    };
    // SAFETY: the caller's table and slot. The statement keeps what the tuple id names.
    let (row, updated) = unsafe { target::with_changed_body(relation, slot, replaced, attempt) };
    match updated {
        Ok(new) => {
            statistics::row_changed(relation, RowChange::update_to(new));
            if has_keys_of_core && new.changed_keys() {
                indexes.set(version::ALL_INDEXES);
            }
            // SAFETY: the caller's slot, whose values the version has.
            unsafe { show_updated(&target, row, new, slot) };
            TM_Ok
        }
        Err(Refusal::Invisible) => errors::invisible_version("update"),
        Err(refusal) => failure::report(refusal, &target, row, old.get(), failure),
    }
}

/// Shows the new version of a row, and who had locked it before.
///
/// # Safety
/// A filled slot of the table's row type, whose values the version has; it is the transaction's
/// own.
unsafe fn show_updated(target: &Target<'_>, row: RowId, version: VersionRef, slot: TupleSlot<'_>) {
    let shown = Shown {
        relation: target.oid(),
        table: target.table,
        row,
        version,
    };
    let locker = lock::locker_of(target.table, row);
    // SAFETY: the caller's slot.
    unsafe {
        match locker {
            None => slot::show_written(slot, shown),
            Some(_) => slot::show_copy(slot, shown),
        }
    }
    if let Some(xid) = locker {
        slot::set_xmax(slot, xid);
    }
}

/// The row lock that an update takes.
fn strength_of(target: &Target<'_>, seen: VersionRef, body: &[u8]) -> LockStrength {
    let (session, table) = (target.session, target.table);
    target.attempt(body, || {
        Transaction::strength_of_update(session, table, seen, body)
    })
}

/// heapam's lock mode of an update that takes a row lock of this strength.
fn mode_of(strength: LockStrength) -> pg_sys::LockTupleMode::Type {
    match strength {
        LockStrength::Update => pg_sys::LockTupleMode::LockTupleExclusive,
        _ => pg_sys::LockTupleMode::LockTupleNoKeyExclusive,
    }
}

/// Puts a new version on a row and enters its keys, waiting as asked.
fn change(
    target: &Target<'_>,
    row: RowId,
    mut seen: VersionRef,
    body: &[u8],
    asked: Asked<'_>,
) -> Result<VersionRef, Refusal> {
    let mut queue = RowLockQueue::new(target.relation).purpose(Purpose::Update);
    let (session, table) = (target.session, target.table);
    loop {
        check(target, row, seen, asked)?;
        let xid = xact::write_xid();
        let written = target.attempt(body, || {
            xact::current().update(
                session,
                &PgClock,
                table,
                row,
                seen,
                body,
                xid,
                asked.command,
            )
        });
        let Written::Done(version) = written else {
            if test_switch::skips(Step::UpdateRecheck)
                && let Written::Changed = written
                && let Newest::Live(newest) = session.newest(&PgClock, table, row)
            {
                seen = newest;
                continue;
            }
            let strength = strength_of(target, seen, body);
            if !target.is_held_by_dead(written, strength) {
                wait_or_refuse(target, row, written, strength, asked, &mut queue)?;
            }
            if label_locks::were_released() {
                // A session that waits behind comes first: the row's place in the queue goes.
                queue.release();
                return Err(Refusal::Waited);
            }
            continue;
        };
        queue.release();
        match target.enter_without_waiting(row, version) {
            Entered::Done => {}
            Entered::Duplicate(index) => target.duplicate(index, row, Some(seen), version),
            Entered::Busy(by, index) => {
                target.wait_for_key(row, seen, (by, index), &mut queue);
                if label_locks::were_released() {
                    return Err(Refusal::Waited);
                }
                continue;
            }
        }
        if target.is_serializable {
            serializable::updated(target.oid(), table, row, seen, version);
        }
        decoding::updated(target.relation, seen, version);
        return Ok(version);
    }
}

/// `tuple_delete`.
#[allow(clippy::too_many_arguments)]
pub fn delete(
    relation: Relation<'_>,
    old: Field<'_, pg_sys::ItemPointerData>,
    command: pg_sys::CommandId,
    snapshot: Option<Snapshot<'_>>,
    crosscheck: Option<Snapshot<'_>>,
    wait: bool,
    failure: Out<'_, pg_sys::TM_FailureData>,
    moves_away: bool,
) -> pg_sys::TM_Result::Type {
    let target = target::of(relation);
    let named = resolve::named_by(relation, old.get(), snapshot);
    let (row, seen) = named.unwrap_or_else(|| errors::invisible_version("delete"));
    let asked = Asked::new(command, crosscheck, wait);
    let deletion = match moves_away {
        true => Transaction::delete_moved_away,
        false => Transaction::delete,
    };
    let removed = match seen {
        None => Err(failure::unnamed(&target, row, asked.command)),
        Some(seen) => remove(&target, row, seen, asked, deletion),
    };
    match removed {
        Ok(()) => {
            statistics::row_changed(relation, RowChange::Delete);
            TM_Ok
        }
        Err(Refusal::Invisible) => errors::invisible_version("delete"),
        Err(refusal) => failure::report(refusal, &target, row, old.get(), failure),
    }
}

/// The engine's deletions: of a row that goes, and of one that goes to another partition.
type Deletion = fn(
    &mut Transaction,
    &mot_engine::Session,
    &PgClock,
    mot_engine::TableRef,
    RowId,
    VersionRef,
    mot_engine::Xid,
    CommandId,
) -> Result<Written, mot_engine::EngineError>;

/// Puts a tombstone on a row, waiting as asked.
fn remove(
    target: &Target<'_>,
    row: RowId,
    seen: VersionRef,
    asked: Asked<'_>,
    deletion: Deletion,
) -> Result<(), Refusal> {
    let mut queue = RowLockQueue::new(target.relation).purpose(Purpose::Delete);
    loop {
        check(target, row, seen, asked)?;
        let xid = xact::write_xid();
        let written = or_raise(deletion(
            xact::current(),
            target.session,
            &PgClock,
            target.table,
            row,
            seen,
            xid,
            asked.command,
        ));
        if let Written::Done(_) = written {
            queue.release();
            if target.is_serializable {
                serializable::deleted(target.oid(), row, seen);
            }
            decoding::deleted(target.relation, seen);
            return Ok(());
        }
        let strength = LockStrength::Update;
        wait_or_refuse(target, row, written, strength, asked, &mut queue)?;
    }
}

/// What is asked before each attempt: whether the command may see the version, and so may the
/// crosscheck snapshot.
fn check(
    target: &Target<'_>,
    row: RowId,
    seen: VersionRef,
    asked: Asked<'_>,
) -> Result<(), Refusal> {
    if is_too_young(seen, asked.command) {
        return Err(Refusal::Invisible);
    }
    if let Some(crosscheck) = asked.crosscheck {
        let crosscheck = PgSnapshot::new(crosscheck);
        if target.session.visible(target.table, row, &crosscheck) != Some(seen) {
            return Err(Refusal::Updated);
        }
    }
    Ok(())
}

/// Locks what is newest of a row that has changed, for a session that has waited in its queue. Core
/// asks for that lock next, under READ COMMITTED; by then a waiter behind would have it.
fn keep_turn(
    target: &Target<'_>,
    row: RowId,
    strength: LockStrength,
    asked: Asked<'_>,
    queue: &mut RowLockQueue<'_>,
) {
    // SAFETY: a plain variable of this process.
    let looks_again = unsafe { pg_sys::XactIsoLevel } < pg_sys::XACT_REPEATABLE_READ as i32;
    if looks_again && queue.is_held() {
        reach(Point::RecheckBeforeLock);
        // A row that is gone is core's to find.
        let _: Result<Option<VersionRef>, Skipped> =
            target.lock_newest(row, strength, asked.policy, queue);
    }
}

/// After an attempt that was not made: waits, so that it is made again, or says why it is not to
/// be.
fn wait_or_refuse(
    target: &Target<'_>,
    row: RowId,
    written: Written,
    strength: LockStrength,
    asked: Asked<'_>,
    queue: &mut RowLockQueue<'_>,
) -> Result<(), Refusal> {
    let refusal = match written {
        Written::Busy(xid) => {
            if target.wait(row, xid, strength, asked.policy, queue) {
                return Ok(());
            }
            Refusal::BeingModified(xid)
        }
        Written::Changed => {
            keep_turn(target, row, strength, asked, queue);
            Refusal::Updated
        }
        Written::Gone => Refusal::Deleted,
        Written::SelfModified(by) => by_own_command(by, asked.command),
        Written::Done(_) => unreachable!("an attempt that was made is not waited for"),
    };
    queue.release();
    Err(refusal)
}
