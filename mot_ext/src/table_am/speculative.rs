//! INSERT ... ON CONFLICT: a row that is there before it is known whether it may be.
//!
//! Core looks for a row in the way, then inserts speculatively. `aminsert` enters one index after
//! the other, and then core confirms the row or takes it back. Between the two nothing else runs in
//! this process but the waits of indexes that are no arbiters. So the row is the transaction's last
//! operation, and one place for it is enough.
//!
//! A rival's speculative row is not told from any unfinished one: who meets it takes its own row
//! back and waits for the rival's transaction. Nobody waits with a speculative row in an arbiter,
//! so two rivals do not wait for each other.
use super::slot::{self, Shown};
use super::statistics::RowChange;
use super::{statistics, target};
use crate::errors::or_raise;
use crate::rows::write::Target;
use crate::serializable;
use crate::storage::computed_keys::Locks;
use crate::transaction::clock::PgClock;
use crate::transaction::unconfirmed::{self, Unconfirmed};
use crate::transaction::wait::{Purpose, RowLockQueue};
use crate::transaction::{label_locks, xact};
use mot_engine::{CommandId, Entered, IndexRef, Slot, VersionRef};
use pgrx::pg_sys;
use std::ffi::c_int;

/// `tuple_insert_speculative`.
pub unsafe fn insert(
    relation: pg_sys::Relation,
    slot: *mut pg_sys::TupleTableSlot,
    command: pg_sys::CommandId,
    _options: c_int,
    _bulk: *mut pg_sys::BulkInsertStateData,
    _token: u32,
) {
    // SAFETY: as core calls it: an open, locked table and a filled slot of its row type.
    unsafe {
        // As heapam counts them: a row whose keys then fail has been inserted.
        statistics::row_changed(relation, RowChange::Insert);
        let target = target::of(relation);
        let command = target::command(command);
        let (row, version, entered) = loop {
            let made = target::with_body_once(relation, slot, Locks::Kept, |body| {
                make(&target, body, command)
            });
            if let Some(made) = made {
                break made;
            }
        };
        target::check_row_id(row);
        unconfirmed::set(Unconfirmed {
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
        slot::show_written(slot, shown);
    }
}

/// Makes a row, and says in how many indexes it is. One that has labels is entered in all at once,
/// for nobody waits with the locks of labels; `None`: somebody was waited for, and the row is to be
/// formed again. Where another row has a key, core finds out, index by index.
fn make(target: &Target, body: &[u8], command: CommandId) -> Option<(Slot, VersionRef, usize)> {
    let make = || {
        let xid = xact::write_xid();
        or_raise(xact::current().insert(target.session, target.table, body, xid, command))
    };
    let (row, version) = make();
    if !label_locks::are_held() {
        return Some((row, version, 0));
    }
    match target.enter_once(row, version) {
        Entered::Done => {
            label_locks::release_held();
            Some((row, version, ENTERED_IN_ALL))
        }
        Entered::Busy(by, index) => {
            xact::current().retract(target.session);
            let mut queue = RowLockQueue::new(target.relation).purpose(Purpose::Insert);
            queue.wait_to_enter(row, by, index);
            None
        }
        Entered::Duplicate(_) => {
            xact::current().retract(target.session);
            let (row, version) = make();
            Some((row, version, 0))
        }
    }
}

/// The number of indexes of a row that is entered in all.
const ENTERED_IN_ALL: usize = usize::MAX;

/// `tuple_complete_speculative`.
pub unsafe fn complete(
    relation: pg_sys::Relation,
    slot: *mut pg_sys::TupleTableSlot,
    _token: u32,
    succeeded: bool,
) {
    // SAFETY: as core calls it, for the row inserted last.
    unsafe {
        let target = target::of(relation);
        let Some(pending) = unconfirmed::take() else {
            unreachable!("a row is completed once, after it was inserted");
        };
        debug_assert!(pending.table == target.table);
        if succeeded && pending.entered < ENTERED_IN_ALL {
            // Core passes over indexes that are not ready, or were not when the statement began.
            let rest = xact::current().enter_rest(
                target.session,
                target.table,
                pending.row,
                pending.version,
                pending.entered,
            );
            or_raise(rest);
        }
        label_locks::release_kept();
        if succeeded {
            if target.is_serializable {
                serializable::inserted(target.oid(), target.table, pending.version);
            }
            return;
        }
        // What the slot shows lies in the version that goes.
        slot::own_values(slot);
        let taken_back = xact::current().retract_insert(
            target.session,
            target.table,
            pending.row,
            pending.version,
        );
        or_raise(taken_back);
        statistics::row_changed(relation, RowChange::Delete);
    }
}

/// How a duplicate of a speculative row's key is answered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Duplicates {
    /// By "no": the index is an arbiter.
    Reported,
    /// By 23505, after a wait for who is not done.
    Refused,
}

/// `aminsert` of a row that is not confirmed: enters it in one index. False: another row has the
/// key, or may come to have it. Of any other row nothing is to be done, and the answer is true.
///
/// # Safety
/// The relation is open and locked for writing.
pub unsafe fn enter(
    relation: pg_sys::Relation,
    index: impl FnOnce(mot_engine::TableRef) -> IndexRef,
    duplicates: Duplicates,
) -> bool {
    let Some(pending) = unconfirmed::get() else {
        return true;
    };
    // SAFETY: the caller's relation.
    let target = unsafe { target::of(relation) };
    if pending.table != target.table || pending.entered == ENTERED_IN_ALL {
        return true;
    }
    let index = index(target.table);
    let mut queue = RowLockQueue::new(target.relation).purpose(Purpose::Insert);
    loop {
        match (enter_once(&target, pending, index), duplicates) {
            (Entered::Done, _) => {
                let entered = pending.entered + 1;
                unconfirmed::set(Unconfirmed { entered, ..pending });
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

fn enter_once(target: &Target, pending: Unconfirmed, index: IndexRef) -> Entered {
    or_raise(xact::current().enter_index(
        target.session,
        &PgClock,
        target.table,
        pending.row,
        pending.version,
        index,
    ))
}
