//! New rows. All keys are entered before the callback returns, and a duplicate is its error.
use super::slot::{self, Shown};
use super::statistics::RowChange;
use super::{statistics, target};
use crate::pg::interrupts;
use crate::rows::write::Inserted;
use pgrx::pg_sys;
use std::ffi::c_int;

/// `tuple_insert`. The options mean nothing here. There is no free space map, a row of COPY FREEZE
/// is the transaction's own as any, and decoding is not there yet.
pub unsafe fn one(
    relation: pg_sys::Relation,
    slot: *mut pg_sys::TupleTableSlot,
    command: pg_sys::CommandId,
    _options: c_int,
    _bulk: *mut pg_sys::BulkInsertStateData,
) {
    // SAFETY: as core calls it: an open, locked table and a filled slot of its row type.
    unsafe {
        // As heapam counts them: a row whose keys then fail has been inserted.
        statistics::row_changed(relation, RowChange::Insert);
        insert(relation, slot, command);
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

/// Inserts the row of a slot, and shows it there as inserted.
unsafe fn insert(
    relation: pg_sys::Relation,
    slot: *mut pg_sys::TupleTableSlot,
    command: pg_sys::CommandId,
) {
    // SAFETY: the callers'. An own version stays until the transaction ends.
    unsafe {
        let target = target::of(relation);
        let command = target::command(command);
        let inserted = target::with_body(relation, slot, |body| target.insert(body, command, None));
        let Inserted::Done(row, version) = inserted else {
            unreachable!("a duplicate is an error where no index is an arbiter");
        };
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
