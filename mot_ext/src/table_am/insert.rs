//! New rows. All keys are entered before the callback returns, and it raises 23505 itself for a
//! duplicate, but in COPY.
use super::slot::{self, Shown};
use super::statistics::RowChange;
use super::{statistics, target, transient};
use crate::errors::or_raise;
use crate::pg::relation::Relation;
use crate::pg::tuple_slot::TupleSlot;
use crate::pg::{copy, interrupts};
use crate::rows::insert::Placed;
use crate::transaction::unconfirmed::{self, Entries, Unconfirmed};
use crate::transaction::{label_locks, xact};
use mot_engine::IndexRef;
use pgrx::pg_sys;
use std::ffi::c_int;

/// `tuple_insert`. One option has an effect, and only for REFRESH MATERIALIZED VIEW: with
/// TABLE_INSERT_FROZEN older snapshots see the row, too. A row of COPY FREEZE is an ordinary one.
/// There is no free space map.
///
/// # Safety
/// A table that is locked for writing, and a filled slot of its row type.
pub unsafe fn one(
    relation: Relation<'_>,
    slot: TupleSlot<'_>,
    command: pg_sys::CommandId,
    options: c_int,
    _bulk: *mut pg_sys::BulkInsertStateData,
) {
    // As heapam counts them: a row whose keys then fail has been inserted.
    statistics::row_changed(relation, RowChange::Insert);
    let is_frozen = options as u32 & pg_sys::TABLE_INSERT_FROZEN != 0;
    // SAFETY: the caller's table and slot.
    unsafe {
        if is_frozen && transient::is_filled_by_refresh(relation) {
            insert_frozen(relation, slot);
        } else {
            insert(relation, slot, command);
        }
    }
}

/// `multi_insert`. Core's COPY then calls `aminsert` for one row after the other, and knows the
/// line of each. So a duplicate is an error there: the row stays in place for it, and no later row
/// is inserted. The tuple ids of those name it, too.
///
/// # Safety
/// As for [`one`], with so many slots.
pub unsafe fn many(
    relation: Relation<'_>,
    slots: *mut *mut pg_sys::TupleTableSlot,
    count: c_int,
    command: pg_sys::CommandId,
    _options: c_int,
    _bulk: *mut pg_sys::BulkInsertStateData,
) {
    refuse_unconfirmed(relation);
    statistics::rows_inserted(relation, i64::from(count));
    // SAFETY: the caller's slots.
    let slots = unsafe { TupleSlot::enter_all(slots, count as usize) };
    let is_copy = copy::is_caller();
    for (at, &slot) in slots.iter().enumerate() {
        // SAFETY: the caller's table and slots.
        let placed = unsafe { place(relation, slot, command) };
        if let Some(index) = placed.refused_by {
            refuse_rest(relation, &placed, index, is_copy);
            for later in &slots[at + 1..] {
                later.set_tid(slot.tid());
            }
            return;
        }
        if interrupts::is_pending() {
            interrupts::check_for_interrupts();
        }
    }
}

/// Keeps a row in place that has the key of another one: for `aminsert`, which raises the error
/// with the line of COPY. Raises it where no COPY calls.
fn refuse_rest(relation: Relation<'_>, placed: &Placed, index: IndexRef, is_copy: bool) {
    let target = target::of(relation);
    if !is_copy {
        target.duplicate(index, placed.row, None, placed.version);
    }
    unconfirmed::begin(Unconfirmed {
        table: target.table,
        row: placed.row,
        version: placed.version,
        entered: Entries::Refused(index),
    });
}

/// Raises the duplicate for which no `aminsert` came: core did not know the index when COPY began.
fn refuse_unconfirmed(relation: Relation<'_>) {
    if let Some(pending) = unconfirmed::get()
        && let Entries::Refused(index) = pending.entered
    {
        let target = target::of(relation);
        if pending.table == target.table {
            target.duplicate(index, pending.row, None, pending.version);
        }
    }
}

/// Inserts a row into the table that REFRESH MATERIALIZED VIEW fills, which has no indexes yet.
///
/// # Safety
/// As for [`one`].
unsafe fn insert_frozen(relation: Relation<'_>, slot: TupleSlot<'_>) {
    // SAFETY: the caller's table and slot.
    let made = unsafe {
        let target = target::of(relation);
        target::with_body_once(relation, slot, |body| {
            xact::current().insert_frozen(target.session, target.table, body)
        })
    };
    let (row, _) = or_raise(made);
    target::check_row_id(row);
}

/// Inserts the row of a slot, and shows it there as inserted. A duplicate is an error.
///
/// # Safety
/// As for [`one`].
unsafe fn insert(relation: Relation<'_>, slot: TupleSlot<'_>, command: pg_sys::CommandId) {
    // SAFETY: the caller's table and slot.
    unsafe {
        let placed = place(relation, slot, command);
        if let Some(index) = placed.refused_by {
            target::of(relation).duplicate(index, placed.row, None, placed.version);
        }
    }
}

/// Puts the row of a slot in place, and shows it there.
///
/// # Safety
/// As for [`one`].
unsafe fn place(relation: Relation<'_>, slot: TupleSlot<'_>, command: pg_sys::CommandId) -> Placed {
    let command = target::command(command);
    let target = target::of(relation);
    let put = |body: &[u8]| match label_locks::are_held() {
        true => target.place_or_retract(body, command),
        false => Some(target.place(body, command)),
    };
    // SAFETY: the caller's table and slot.
    let placed = unsafe { target::with_body(relation, slot, put) };
    target::check_row_id(placed.row);
    let shown = Shown {
        relation: target.oid(),
        table: target.table,
        row: placed.row,
        version: placed.version,
    };
    // SAFETY: the caller's slot. An own version stays until the transaction ends.
    unsafe { slot::show_written(slot, shown) };
    placed
}

/// `finish_bulk_insert`, of the table of the rows before.
pub fn finish_many(relation: Relation<'_>, _options: c_int) {
    refuse_unconfirmed(relation);
}
