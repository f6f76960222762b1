//! INSERT of one row.
use super::arbiters::Arbiters;
use super::client::Client;
use super::frame::{Frame, copy_list, empty, within};
use super::upsert::{Outcome, Upsert};
use crate::executor::expressions::project;
use crate::pg::version;
use crate::rows::tuple;
use crate::rows::write::Target;
use crate::table_am::{RowChange, check_row_id};
use mot_engine::{Slot, TableRef, VersionRef};
use pgrx::pg_sys;

pub struct Insert {
    target: Target,
    /// Computes the row, into a virtual slot of the table's row type.
    values: *mut pg_sys::ProjectionInfo,
    /// ON CONFLICT.
    upsert: Option<Upsert>,
    counts_rows: bool,
    /// The new row, for foreign keys and RETURNING.
    slot: *mut pg_sys::TupleTableSlot,
    tuple: pg_sys::HeapTupleData,
}

impl Insert {
    /// `None` if the values are not the table's columns any more: core raises that.
    pub unsafe fn new(
        frame: &Frame,
        values: &[*mut pg_sys::TargetEntry],
        upsert: Option<Upsert>,
        counts_rows: bool,
        table: TableRef,
    ) -> Option<Insert> {
        // SAFETY: plain targets of a finished plan; the current context is the statement's.
        unsafe {
            let attributes = version::attributes(frame.row_type);
            let are_columns = values.len() == (*frame.row_type).natts as usize
                && values.iter().enumerate().all(|(position, value)| {
                    let attribute = &*attributes.add(position);
                    attribute.attisdropped
                        || pg_sys::exprType((**value).expr.cast()) == attribute.atttypid
                });
            if !are_columns {
                return None;
            }
            let row =
                pg_sys::MakeSingleTupleTableSlot(frame.row_type, &raw const pg_sys::TTSOpsVirtual);
            let values = pg_sys::ExecBuildProjectionInfo(
                copy_list(values),
                frame.values,
                row,
                std::ptr::null_mut(),
                std::ptr::null_mut(),
            );
            Some(Insert {
                target: Target::closed(frame.relation, table),
                values,
                upsert,
                counts_rows,
                slot: frame.row_slot(),
                tuple: tuple::empty(),
            })
        }
    }

    /// The indexes that ON CONFLICT asks.
    pub fn arbiters(&mut self) -> Option<&mut Arbiters> {
        self.upsert.as_mut().map(|upsert| &mut upsert.arbiters)
    }

    /// Begins an execution.
    pub fn start(&mut self, snapshot: pg_sys::Snapshot) {
        if let Some(upsert) = &mut self.upsert {
            upsert.start(snapshot);
        }
    }

    /// Follows the table to another storage; false: core has to run the statement.
    pub fn move_to(&mut self, table: TableRef, frame: &Frame) -> bool {
        self.target.table = table;
        let upsert = self.upsert.as_mut();
        upsert.is_none_or(|upsert| upsert.move_to(table, frame))
    }

    pub unsafe fn run(&mut self, frame: &Frame, client: &mut Client<'_>) {
        // SAFETY: the statement's own slots and contexts.
        unsafe {
            empty(frame.per_row());
            let row = project(self.values);
            frame.check(row);
            let outcome = match &mut self.upsert {
                Some(upsert) => upsert.run(frame, &self.target, row),
                None => {
                    // As heapam counts: a row whose keys then fail has been inserted.
                    frame.count_change(RowChange::Insert);
                    let body = within(frame.per_row(), || frame.form(row));
                    let (row, version) = self.target.insert(body, frame.command());
                    Outcome::Inserted(row, version)
                }
            };
            let (row, version) = match outcome {
                Outcome::Nothing => return,
                Outcome::Inserted(row, version) => {
                    check_row_id(row);
                    (row, version)
                }
                Outcome::Updated(row, version) => {
                    frame.count_change(RowChange::update_to(version));
                    (row, version)
                }
            };
            if self.counts_rows {
                (*frame.estate).es_processed += 1;
            }
            let is_shown = !frame.projection.is_null();
            if !is_shown && !frame.queue.is_used() {
                return;
            }
            self.show(frame, row, version);
            if frame.queue.is_used() {
                match (&outcome, &self.upsert) {
                    (Outcome::Updated(..), Some(upsert)) => {
                        frame.queue.updated(frame.queued(), upsert.old(), self.slot);
                    }
                    _ => frame.queue.inserted(frame.queued(), self.slot),
                }
            }
            if is_shown {
                (*frame.values).ecxt_scantuple = self.slot;
                client.send(frame);
            }
            tuple::clear(self.slot);
        }
    }

    /// Shows the new state of a row.
    unsafe fn show(&mut self, frame: &Frame, row: Slot, version: VersionRef) {
        // SAFETY: the statement's own slot; an own version stays while the statement runs.
        unsafe {
            frame.point(&mut self.tuple, self.target.table, row, version);
            tuple::store(self.slot, &raw mut self.tuple);
        }
    }
}
