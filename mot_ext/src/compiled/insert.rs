//! INSERT of one row.
use super::client::Client;
use super::frame::{Frame, Kind, copy_list, empty};
use crate::fdw::{Inserted, Target, project, tuple};
use crate::pg::version;
use crate::table_am::check_row_id;
use mot_engine::TableRef;
use pgrx::pg_sys;

pub struct Insert {
    target: Target,
    /// Computes the row, into a virtual slot of the table's row type.
    values: *mut pg_sys::ProjectionInfo,
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
                counts_rows,
                slot: frame.row_slot(),
                tuple: tuple::empty(),
            })
        }
    }

    pub fn move_to(&mut self, table: TableRef) {
        self.target.table = table;
    }

    pub unsafe fn run(&mut self, frame: &Frame, client: &mut Client<'_>) {
        // SAFETY: the statement's own slots and contexts.
        unsafe {
            empty(frame.per_row());
            let row = project(self.values);
            frame.check(row);
            let body = super::frame::within(frame.per_row(), || tuple::form(row));
            let inserted = self.target.insert(body, frame.command(), None);
            frame.count_insert();
            if self.counts_rows {
                (*frame.estate).es_processed += 1;
            }
            if let Inserted::Done(row, _) = inserted
                && frame.kind() == Kind::Method
            {
                check_row_id(row);
            }
            let is_shown = !frame.projection.is_null();
            if let Inserted::Done(row, version) = inserted
                && (is_shown || frame.queue.is_used())
            {
                frame.point(&mut self.tuple, self.target.table, row, version);
                tuple::store(self.slot, &raw mut self.tuple);
                if frame.queue.is_used() {
                    frame.queue.inserted(frame.queued(), self.slot);
                }
                if is_shown {
                    (*frame.values).ecxt_scantuple = self.slot;
                    client.send(frame);
                }
                tuple::clear(self.slot);
            }
        }
    }
}
