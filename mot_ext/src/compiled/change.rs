//! UPDATE and DELETE of the rows a scan finds: the direct modification of the general path,
//! compiled.
use super::access::Access;
use super::client::Client;
use super::expression::{Conditions, compile_values};
use super::frame::{Frame, OwnSlot, Row};
use super::row_change::{self, Changer};
use super::shape::Assignment;
use crate::access::scan::Scan;
use crate::errors::or_raise;
use crate::pg::interrupts;
use crate::rows::tuple;
use crate::rows::write::Target;
use crate::table_am::RowChange;
use crate::table_am::view::refuse_older_than_copy;
use crate::transaction::clock::PgSnapshot;
use mot_engine::{RowId, TableRef, VersionRef};
use pgrx::pg_sys;

/// What an execution finds at its start, and the plan's word on counting.
pub struct ChangeInputs {
    pub table: TableRef,
    pub snapshot: PgSnapshot<'static>,
    pub counts_rows: bool,
}

pub struct Change {
    scan: Scan,
    change: row_change::Change,
    counts_rows: bool,
    is_done: bool,
    /// The row as changed, for foreign keys.
    changed: OwnSlot,
    tuple: pg_sys::HeapTupleData,
}

impl Change {
    /// Of a scan of a finished plan that changes rows.
    ///
    /// # Safety
    /// The current memory context is the frame's, and lives as long as the value.
    pub unsafe fn new(
        frame: &Frame,
        access: &Access<'_>,
        assigned: &[Assignment<'_>],
        is_delete: bool,
        inputs: ChangeInputs,
    ) -> Change {
        let ChangeInputs {
            table,
            snapshot,
            counts_rows,
        } = inputs;
        // SAFETY: the caller's memory context.
        let mut change =
            unsafe { row_change::Change::new(frame, table, assigned, &access.conditions) };
        // SAFETY: as above.
        let (arguments, computed, rechecks, changed) = unsafe {
            (
                compile_values(&access.arguments),
                compile_values(&access.computed),
                Conditions::compile(&access.rechecks),
                frame.row_slot(),
            )
        };
        change.is_delete = is_delete;
        change.rechecks = rechecks;
        change.needs_old = !is_delete || !change.quals.are_none() || frame.queue.is_used();
        let mut made = Change {
            scan: Scan::of_table(frame.relation, table, &access.search, &arguments, snapshot),
            change,
            counts_rows,
            is_done: true,
            changed,
            tuple: tuple::empty(),
        };
        made.scan.evaluate_ahead(computed);
        made.look_at_keys();
        made
    }

    /// Looks whether an index has an assigned column. One may come beside the statement
    /// (CONCURRENTLY): then the engine compares keys.
    fn look_at_keys(&mut self) {
        let change = &mut self.change;
        let is_assigned = |column| {
            let mut assigned = change.assignments.iter();
            assigned.any(|(number, _)| *number == column as i16)
        };
        let Target { session, table, .. } = change.target;
        change.beside_keys = or_raise(session.keys_unchanged(table, is_assigned));
    }

    pub fn start(&mut self, snapshot: PgSnapshot<'static>) {
        refuse_older_than_copy(self.scan.table, &snapshot);
        self.scan.rewind_under(snapshot);
        self.is_done = false;
    }

    pub fn end(&mut self) {
        self.scan.end();
    }

    /// The scan, which counts the rows that it gives.
    pub fn scan(&mut self) -> &mut Scan {
        &mut self.scan
    }

    pub fn move_to(&mut self, table: TableRef) {
        self.scan.move_to(table);
        self.change.target.table = table;
        self.look_at_keys();
    }

    /// Changes all rows; with RETURNING up to `rows_max`.
    ///
    /// # Safety
    /// In an execution, which has parameters and snapshot.
    pub unsafe fn run(&mut self, frame: &Frame, client: &mut Client<'_>, rows_max: u64) {
        let mut rows = 0;
        while !self.is_done && rows < rows_max {
            interrupts::check_for_interrupts();
            // SAFETY: the row before was changed, and sent.
            unsafe { frame.empty_row() };
            frame.empty_checks();
            // SAFETY: the scan's arguments were compiled for these values.
            let next = unsafe { self.scan.next(frame.values().as_ptr()) };
            let Some((row, version)) = next else {
                self.is_done = true;
                break;
            };
            // SAFETY: the execution's own snapshot keeps the version.
            let Some(result) = (unsafe { self.apply(frame, row, version) }) else {
                continue;
            };
            let change = match self.change.is_delete {
                true => RowChange::Delete,
                false => RowChange::update_to(result),
            };
            // SAFETY: the execution has the table locked.
            unsafe { frame.count_change(change) };
            if frame.queue.is_used() {
                // SAFETY: the old slot shows the state that was changed; own changes stay.
                unsafe { self.queue(frame, row, result) };
            }
            if self.counts_rows {
                frame.count_processed();
            }
            if frame.projection.is_none() {
                continue;
            }
            rows += 1;
            let shown = &self.change.old;
            // SAFETY: a slot of the access method's kind. A version of this transaction stays
            // while it runs, and so does one that it has deleted.
            unsafe { self.scan.show(shown.as_ptr(), row, result) };
            frame.values().show(shown.view());
            // SAFETY: the row is shown.
            if !unsafe { client.send(frame) } {
                break;
            }
        }
        // SAFETY: the statement's own slot, of the access method's kind.
        unsafe { tuple::clear(self.change.old.as_ptr()) };
    }

    /// Changes one row, if it passes.
    ///
    /// # Safety
    /// As for [`Change::run`]; the snapshot keeps the version.
    #[inline]
    unsafe fn apply(
        &mut self,
        frame: &Frame,
        row: RowId,
        version: VersionRef,
    ) -> Option<VersionRef> {
        let changer = Changer {
            scan: &mut self.scan,
            values: frame.values(),
            command: frame.command(),
            // SAFETY: a filled slot of the table's row type; it is used before the row's memory is
            // emptied.
            form: |new: Row<'_>, seen| unsafe { frame.check_and_form(new, seen) },
        };
        // SAFETY: the caller's.
        unsafe { frame.within_row(|| self.change.apply(changer, row, version)) }
    }

    /// Queues what foreign keys have to check.
    ///
    /// # Safety
    /// In an execution whose queue is used. The old slot shows the state that was changed; both
    /// versions stay while the statement runs.
    unsafe fn queue(&mut self, frame: &Frame, row: RowId, result: VersionRef) {
        let old = self.change.old.view();
        if self.change.is_delete {
            // SAFETY: the caller's.
            return unsafe { frame.queue.deleted(frame.queued(), old) };
        }
        frame.point(&mut self.tuple, self.change.target.table, row, result);
        let changed = self.changed.view();
        // SAFETY: slots of the access method's kind; the caller's versions.
        unsafe {
            tuple::store(changed.as_ptr(), &raw mut self.tuple);
            frame.queue.updated(frame.queued(), old, changed);
            tuple::clear(changed.as_ptr());
        }
    }
}
