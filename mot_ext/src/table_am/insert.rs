//! New rows. All keys are entered before the callback returns, and it raises 23505 itself for a
//! duplicate, but in COPY.
use super::slot::{self, Shown};
use super::statistics::RowChange;
use super::{statistics, target, transient};
use crate::errors::or_raise;
use crate::pg::{copy, interrupts};
use crate::rows::insert::Placed;
use crate::transaction::unconfirmed::{self, Entries, Unconfirmed};
use crate::transaction::{label_locks, xact};
use pgrx::pg_sys;
use std::ffi::c_int;

/// `tuple_insert`. One option has an effect, and only for REFRESH MATERIALIZED VIEW: with
/// TABLE_INSERT_FROZEN older snapshots see the row, too. A row of COPY FREEZE is an ordinary one.
/// There is no free space map, and changes are not decoded.
pub unsafe fn one(
    relation: pg_sys::Relation,
    slot: *mut pg_sys::TupleTableSlot,
    command: pg_sys::CommandId,
    options: c_int,
    _bulk: *mut pg_sys::BulkInsertStateData,
) {
    // SAFETY: as core calls it: an open, locked table and a filled slot of its row type.
    unsafe {
        // As heapam counts them: a row whose keys then fail has been inserted.
        statistics::row_changed(relation, RowChange::Insert);
        let is_frozen = options as u32 & pg_sys::TABLE_INSERT_FROZEN != 0;
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
pub unsafe fn many(
    relation: pg_sys::Relation,
    slots: *mut *mut pg_sys::TupleTableSlot,
    count: c_int,
    command: pg_sys::CommandId,
    _options: c_int,
    _bulk: *mut pg_sys::BulkInsertStateData,
) {
    // SAFETY: as core calls it, with so many slots.
    unsafe {
        refuse_unconfirmed(relation);
        pg_sys::pgstat_count_heap_insert(relation, i64::from(count));
        let slots = std::slice::from_raw_parts(slots, count as usize);
        let is_copy = copy::is_caller();
        for (at, &slot) in slots.iter().enumerate() {
            let placed = place(relation, slot, command);
            if let Some(index) = placed.refused_by {
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
                for &later in &slots[at + 1..] {
                    (*later).tts_tid = (*slot).tts_tid;
                }
                return;
            }
            if interrupts::is_pending() {
                interrupts::check_for_interrupts();
            }
        }
    }
}

/// Raises the duplicate for which no `aminsert` came: core did not know the index when COPY began.
unsafe fn refuse_unconfirmed(relation: pg_sys::Relation) {
    if let Some(pending) = unconfirmed::get()
        && let Entries::Refused(index) = pending.entered
    {
        // SAFETY: the caller's relation.
        let target = unsafe { target::of(relation) };
        if pending.table == target.table {
            target.duplicate(index, pending.row, None, pending.version);
        }
    }
}

/// Inserts a row into the table that REFRESH MATERIALIZED VIEW fills, which has no indexes yet.
unsafe fn insert_frozen(relation: pg_sys::Relation, slot: *mut pg_sys::TupleTableSlot) {
    // SAFETY: the caller's.
    unsafe {
        let target = target::of(relation);
        let made = target::with_body_once(relation, slot, |body| {
            xact::current().insert_frozen(target.session, target.table, body)
        });
        let (row, _) = or_raise(made);
        target::check_row_id(row);
    }
}

/// Inserts the row of a slot, and shows it there as inserted. A duplicate is an error.
unsafe fn insert(
    relation: pg_sys::Relation,
    slot: *mut pg_sys::TupleTableSlot,
    command: pg_sys::CommandId,
) {
    // SAFETY: the callers'.
    unsafe {
        let placed = place(relation, slot, command);
        if let Some(index) = placed.refused_by {
            target::of(relation).duplicate(index, placed.row, None, placed.version);
        }
    }
}

/// Puts the row of a slot in place, and shows it there.
unsafe fn place(
    relation: pg_sys::Relation,
    slot: *mut pg_sys::TupleTableSlot,
    command: pg_sys::CommandId,
) -> Placed {
    // SAFETY: the callers'. An own version stays until the transaction ends.
    unsafe {
        let target = target::of(relation);
        let command = target::command(command);
        let placed = target::with_body(relation, slot, |body| match label_locks::are_held() {
            true => target.place_or_retract(body, command),
            false => Some(target.place(body, command)),
        });
        target::check_row_id(placed.row);
        let shown = Shown {
            relation: target.oid(),
            table: target.table,
            row: placed.row,
            version: placed.version,
        };
        slot::show_written(slot, shown);
        placed
    }
}

/// `finish_bulk_insert`.
pub unsafe fn finish_many(relation: pg_sys::Relation, _options: c_int) {
    // SAFETY: as core calls it, with the table of the rows before.
    unsafe { refuse_unconfirmed(relation) };
}
