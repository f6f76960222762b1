//! INSERT of one row.
use super::arbiters::Arbiters;
use super::client::Client;
use super::expression::Projection;
use super::frame::{Frame, OwnSlot, Row};
use super::shape::Target as Value;
use super::upsert::{Outcome, Upsert};
use crate::pg::snapshot::Snapshot;
use crate::rows::tuple;
use crate::rows::write::Target;
use crate::table_am::{RowChange, check_row_id};
use mot_engine::{RowId, TableRef, VersionRef};
use pgrx::pg_sys;

pub struct Insert {
    target: Target<'static>,
    /// Computes the row, into a virtual slot of the table's row type.
    values: Projection,
    /// ON CONFLICT.
    upsert: Option<Upsert>,
    counts_rows: bool,
    /// The new row, for foreign keys and RETURNING.
    slot: OwnSlot,
    tuple: pg_sys::HeapTupleData,
}

impl Insert {
    /// `None` if the values are not the table's columns any more: core raises that.
    ///
    /// # Safety
    /// The current memory context is the frame's, and lives as long as the value.
    pub unsafe fn new(
        frame: &Frame,
        values: &[Value<'_>],
        upsert: Option<Upsert>,
        counts_rows: bool,
        table: TableRef,
    ) -> Option<Insert> {
        let row_type = frame.row_type.view();
        let columns = row_type.columns();
        let are_columns = values.len() == columns.len()
            && values.iter().zip(columns).all(|(value, column)| {
                column.attisdropped || value.expression().value_type() == column.atttypid
            });
        if !are_columns {
            return None;
        }
        // SAFETY: the caller's memory context; values of the table's columns.
        let (values, slot) = unsafe {
            (
                Projection::compile_into(values, frame.values(), row_type),
                frame.row_slot(),
            )
        };
        Some(Insert {
            target: Target::closed(frame.relation, table),
            values,
            upsert,
            counts_rows,
            slot,
            tuple: tuple::empty(),
        })
    }

    /// The indexes that ON CONFLICT asks.
    pub fn arbiters(&mut self) -> Option<&mut Arbiters> {
        self.upsert.as_mut().map(|upsert| &mut upsert.arbiters)
    }

    /// Begins an execution.
    pub fn start(&mut self, snapshot: Snapshot<'static>) {
        if let Some(upsert) = &mut self.upsert {
            upsert.start(snapshot);
        }
    }

    pub fn end(&mut self) {
        if let Some(upsert) = &mut self.upsert {
            upsert.end();
        }
    }

    /// Follows the table to another storage; false: core has to run the statement.
    pub fn move_to(&mut self, table: TableRef, frame: &Frame) -> bool {
        self.target.table = table;
        let upsert = self.upsert.as_mut();
        upsert.is_none_or(|upsert| upsert.move_to(table, frame))
    }

    /// Inserts the row, or does what the statement says about the row in its way.
    ///
    /// # Safety
    /// In an execution, which has parameters and snapshot.
    pub unsafe fn run(&mut self, frame: &Frame, client: &mut Client<'_>) {
        // SAFETY: the execution begins. Values of an INSERT are over no row.
        let row = unsafe {
            frame.empty_row();
            self.values.project()
        };
        // SAFETY: the projection's filled slot, of the table's row type.
        let outcome = unsafe {
            frame.check(row);
            match &mut self.upsert {
                Some(upsert) => upsert.run(frame, &self.target, row),
                None => insert(frame, &self.target, row),
            }
        };
        let (row, version) = match outcome {
            Outcome::Nothing => return,
            Outcome::Inserted(row, version) => {
                check_row_id(row);
                (row, version)
            }
            Outcome::Updated(row, version) => {
                // SAFETY: the execution has the table locked.
                unsafe { frame.count_change(RowChange::update_to(version)) };
                (row, version)
            }
        };
        if self.counts_rows {
            frame.count_processed();
        }
        let is_shown = frame.projection.is_some();
        if !is_shown && !frame.queue.is_used() {
            return;
        }
        // SAFETY: an own version stays while the statement runs.
        unsafe { self.show(frame, row, version) };
        if frame.queue.is_used() {
            // SAFETY: the slot shows the row.
            unsafe { self.queue(frame, &outcome) };
        }
        if is_shown {
            frame.values().show(self.slot.view());
            // SAFETY: the row is shown.
            unsafe { client.send(frame) };
        }
        // SAFETY: the statement's own slot, of the access method's kind.
        unsafe { tuple::clear(self.slot.as_ptr()) };
    }

    /// Queues what foreign keys have to check.
    ///
    /// # Safety
    /// In an execution whose queue is used. The slot shows the new state of the row.
    unsafe fn queue(&self, frame: &Frame, outcome: &Outcome) {
        let old = self.upsert.as_ref().and_then(Upsert::old);
        // SAFETY: the caller's; the row in the way is shown as it was.
        unsafe {
            let (of, new) = (frame.queued(), self.slot.view());
            match (outcome, old) {
                (Outcome::Updated(..), Some(old)) => frame.queue.updated(of, old, new),
                _ => frame.queue.inserted(of, new),
            }
        }
    }

    /// Shows the new state of a row.
    ///
    /// # Safety
    /// The version stays as long as the slot shows it.
    unsafe fn show(&mut self, frame: &Frame, row: RowId, version: VersionRef) {
        frame.point(&mut self.tuple, self.target.table, row, version);
        // SAFETY: a slot of the access method's kind; the caller's version.
        unsafe { tuple::store(self.slot.as_ptr(), &raw mut self.tuple) };
    }
}

/// Inserts a row.
///
/// # Safety
/// A filled slot of the table's row type, in an execution.
#[inline]
unsafe fn insert(frame: &Frame, target: &Target<'_>, row: Row<'_>) -> Outcome {
    // SAFETY: the caller's. The row is used before its memory is emptied.
    let body = unsafe {
        // As heapam counts: a row whose keys then fail has been inserted.
        frame.count_change(RowChange::Insert);
        frame.within_row(|| frame.add_keys(tuple::form(row.as_ptr()), row, None))
    };
    let (row, version) = target.insert(body, frame.command());
    Outcome::Inserted(row, version)
}
