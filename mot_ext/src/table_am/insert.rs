//! New rows. All keys are entered before the callback returns, and it raises 23505 itself for a
//! duplicate.
use super::slot::{self, Shown};
use super::statistics::RowChange;
use super::{statistics, target, transient};
use crate::errors::or_raise;
use crate::pg::interrupts;
use crate::rows::write::Inserted;
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

/// `multi_insert`.
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
        pg_sys::pgstat_count_heap_insert(relation, i64::from(count));
        for at in 0..count as usize {
            insert(relation, *slots.add(at), command);
            if interrupts::is_pending() {
                interrupts::check_for_interrupts();
            }
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

/// Inserts the row of a slot, and shows the stored row in the slot.
unsafe fn insert(
    relation: pg_sys::Relation,
    slot: *mut pg_sys::TupleTableSlot,
    command: pg_sys::CommandId,
) {
    // SAFETY: the callers'. An own version stays until the transaction ends.
    unsafe {
        let target = target::of(relation);
        let command = target::command(command);
        let (row, version) = target::with_body(relation, slot, |body| {
            if label_locks::are_held() {
                return target.insert_without_wait(body, command);
            }
            match target.insert(body, command, None) {
                Inserted::Done(row, version) => Some((row, version)),
                Inserted::Duplicate => {
                    unreachable!("a duplicate is an error where no index is an arbiter")
                }
            }
        });
        target::check_row_id(row);
        let shown = Shown {
            relation: target.oid(),
            table: target.table,
            row,
            version,
        };
        slot::show_written(slot, shown);
    }
}

/// `finish_bulk_insert`: nothing is left to do.
pub unsafe fn finish_many(_relation: pg_sys::Relation, _options: c_int) {}
