//! INSERT ... ON CONFLICT: a row that is inserted before it is known whether it may stay.
//!
//! Core looks for a row in the way, then inserts speculatively. `aminsert` enters one index after
//! the other, and then core confirms the row or takes it back. Between the two core computes keys
//! of expressions, whose functions may write rows and catch errors (`transaction/unconfirmed.rs`).
//!
//! A rival's speculative row looks like any unfinished one. A session that meets it takes its own
//! row back and waits for the rival's transaction. No session waits with a speculative row in an
//! arbiter, so two rivals do not wait for each other. A row that has to go is taken back, and the
//! rival continues. If a function of an index has written something since, the row is deleted, and
//! the rival waits for the end of the transaction.
//!
//! A row under label locks is entered in all indexes at once, because no session waits while it
//! holds these locks.
use super::slot::{self, Shown};
use super::statistics::RowChange;
use super::{statistics, target};
use crate::errors::or_raise;
use crate::pg::relation::Relation;
use crate::pg::tuple_slot::TupleSlot;
use crate::rows::tid;
use crate::rows::write::{ChangeResult, Target};
use crate::storage;
use crate::transaction::clock::PgClock;
use crate::transaction::unconfirmed::{self, Entries, Unconfirmed};
use crate::transaction::wait::{Purpose, RowLockQueue};
use crate::transaction::{label_locks, xact};
use mot_engine::{CommandId, EngineError, Entered, IndexRef, RowId, VersionRef};
use pgrx::pg_sys;
use std::ffi::c_int;

/// `tuple_insert_speculative`.
///
/// # Safety
/// A table that is locked for writing, and a filled slot of its row type.
pub unsafe fn insert(
    relation: Relation<'_>,
    slot: TupleSlot<'_>,
    command: pg_sys::CommandId,
    _options: c_int,
    _bulk: *mut pg_sys::BulkInsertStateData,
    _token: u32,
) {
    // As heapam counts them: a row whose keys then fail has been inserted.
    statistics::row_changed(relation, RowChange::Insert);
    let target = target::of(relation);
    let command = target::command(command);
    let made = |body: &[u8]| make(&target, body, command);
    // SAFETY: the caller's table and slot.
    let (row, version, entered) = unsafe { target::with_body(relation, slot, made) };
    target::check_row_id(row);
    unconfirmed::begin(Unconfirmed {
        table: target.table,
        row,
        version,
        entered,
    });
    let shown = Shown {
        relation: target.oid(),
        table: target.table,
        row,
        version,
    };
    // SAFETY: the caller's slot. An own version stays until the transaction ends.
    unsafe { slot::show_written(slot, shown) };
}

/// Makes a row, and says in which indexes it is. One that has labels is entered in all at once, for
/// no session waits with the locks of labels; `None`: a transaction was waited for, and the row is
/// to be formed again.
fn make(
    target: &Target<'_>,
    body: &[u8],
    command: CommandId,
) -> Option<(RowId, VersionRef, Entries)> {
    let (row, version) = target.put(body, command);
    if !label_locks::are_held() {
        return Some((row, version, Entries::Some(0)));
    }
    match target.enter_without_waiting(row, version) {
        Entered::Done => Some((row, version, Entries::All)),
        Entered::Busy(by, index) => {
            xact::current().retract(target.session);
            let mut queue = RowLockQueue::new(target.relation).purpose(Purpose::Insert);
            queue.wait_to_enter(row, by, index);
            None
        }
        Entered::Duplicate(index) => {
            xact::current().retract(target.session);
            let (row, version) = target.put(body, command);
            Some((row, version, Entries::Refused(index)))
        }
    }
}

/// `tuple_complete_speculative`, of the row inserted last.
///
/// # Safety
/// The slot is filled.
pub unsafe fn complete(relation: Relation<'_>, slot: TupleSlot<'_>, _token: u32, succeeded: bool) {
    let target = target::of(relation);
    let Some(pending) = unconfirmed::take() else {
        unreachable!("a row is completed once, after it was inserted");
    };
    debug_assert!(pending.table == target.table);
    if succeeded {
        return confirm(&target, pending);
    }
    // What the slot shows is in the version that goes.
    // SAFETY: the caller's slot.
    unsafe { slot.materialize() };
    take_back(&target, pending);
    statistics::row_changed(relation, RowChange::Delete);
}

/// Enters a row that stays in the indexes that are left.
fn confirm(target: &Target<'_>, pending: Unconfirmed) {
    match pending.entered {
        Entries::All => {}
        // Core passes over indexes that are not ready, or were not when the statement began.
        Entries::Refused(index) => target.duplicate(index, pending.row, None, pending.version),
        Entries::Some(entered) => or_raise(xact::current().enter_rest(
            target.session,
            target.table,
            pending.row,
            pending.version,
            entered,
        )),
    }
    target.inserted(pending.version);
}

/// Takes a row back, or deletes it if a function of an index has written something since.
fn take_back(target: &Target<'_>, pending: Unconfirmed) {
    let (row, version) = (pending.row, pending.version);
    let work = xact::current();
    if work.retract_insert(target.session, target.table, row, version) {
        return;
    }
    let deleted = target.delete_unlogged(row, version, xact::command_id());
    if !matches!(deleted, ChangeResult::Done(_)) {
        or_raise::<()>(Err(EngineError::Corrupt {
            what: "a row that has to go was changed before",
        }));
    }
}

/// How a duplicate of a speculative row's key is answered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Duplicates {
    /// By "no": the index is an arbiter.
    Reported,
    /// By 23505, after a wait for a transaction that is not done.
    Refused,
}

/// `aminsert` of a row that is not confirmed: enters it in one index. False: another row has the
/// key, or may get it. Of any other row nothing is to be done, and the answer is true.
pub fn enter(
    relation: Relation<'_>,
    tid: pg_sys::ItemPointerData,
    index: Relation<'_>,
    duplicates: Duplicates,
) -> bool {
    let Some(pending) = unconfirmed::get() else {
        return true;
    };
    let target = target::of(relation);
    let is_it = |named: tid::Name| named.row == pending.row;
    if pending.table != target.table || !tid::name(target.table, tid).is_some_and(is_it) {
        return true;
    }
    let index = storage::index(target.table, index);
    let entered = match (pending.entered, duplicates) {
        (Entries::Some(entered), _) => entered,
        (Entries::Refused(refuses), Duplicates::Reported) if refuses == index => return false,
        (Entries::Refused(refuses), Duplicates::Refused) if refuses == index => {
            target.duplicate(index, pending.row, None, pending.version)
        }
        _ => return true,
    };
    let mut queue = RowLockQueue::new(target.relation).purpose(Purpose::Insert);
    loop {
        match (enter_once(&target, pending, index), duplicates) {
            (Entered::Done, _) => {
                unconfirmed::set_entered(Entries::Some(entered + 1));
                return true;
            }
            (_, Duplicates::Reported) => return false,
            (Entered::Busy(xid, index), Duplicates::Refused) => {
                queue.wait_to_enter(pending.row, xid, index);
            }
            (Entered::Duplicate(index), Duplicates::Refused) => {
                target.duplicate(index, pending.row, None, pending.version)
            }
        }
    }
}

fn enter_once(target: &Target<'_>, pending: Unconfirmed, index: IndexRef) -> Entered {
    or_raise(xact::current().enter_index(
        target.session,
        &PgClock,
        target.table,
        pending.row,
        pending.version,
        index,
    ))
}
