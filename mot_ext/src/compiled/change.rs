//! UPDATE and DELETE of the rows a scan finds: the direct modification of the general path,
//! compiled.
use super::access::Access;
use super::client::Client;
use super::frame::{Frame, compile_conditions, compile_values, empty, within};
use super::row_change;
use crate::access::scan::Scan;
use crate::errors::or_raise;
use crate::pg::interrupts;
use crate::rows::tuple;
use crate::rows::write::Target;
use crate::table_am::RowChange;
use crate::table_am::view::refuse_older_than_copy;
use crate::transaction::clock::PgSnapshot;
use mot_engine::{Slot, TableRef, VersionRef};
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
    changed: *mut pg_sys::TupleTableSlot,
    tuple: pg_sys::HeapTupleData,
}

impl Change {
    pub unsafe fn new(
        frame: &Frame,
        access: &Access,
        assigned: &[(i16, *mut pg_sys::Expr)],
        is_delete: bool,
        inputs: ChangeInputs,
    ) -> Change {
        // SAFETY: a scan of a finished plan that changes rows; the current context is the
        // statement's.
        unsafe {
            let (columns, expressions): (Vec<i16>, Vec<_>) = assigned.iter().copied().unzip();
            row_change::check_columns(frame.row_type, &columns, &expressions);
            let arguments = compile_values(&access.arguments);
            let values = compile_values(&expressions);
            let is_patched = frame.may_patch();
            let patch = match is_patched && !columns.is_empty() {
                true => row_change::patch(frame.row_type, &columns),
                false => None,
            };
            let ChangeInputs {
                table,
                snapshot,
                counts_rows,
            } = inputs;
            let quals = compile_conditions(&access.conditions);
            let mut made = Change {
                scan: Scan::of_table(frame.relation, table, &access.search, &arguments, snapshot),
                change: row_change::Change {
                    target: Target::closed(frame.relation, table),
                    is_delete,
                    quals,
                    rechecks: compile_conditions(&access.rechecks),
                    values: Vec::with_capacity(columns.len()),
                    assignments: columns.into_iter().zip(values).collect(),
                    beside_keys: None,
                    patch,
                    needs_old: !is_delete || !quals.is_null() || frame.queue.is_used(),
                    old: frame.row_slot(),
                    new: pg_sys::MakeSingleTupleTableSlot(
                        frame.row_type,
                        &raw const pg_sys::TTSOpsVirtual,
                    ),
                },
                counts_rows,
                is_done: true,
                changed: frame.row_slot(),
                tuple: tuple::empty(),
            };
            let computed = compile_values(&access.computed);
            made.scan.evaluate_ahead(computed);
            made.look_at_keys();
            made
        }
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
    pub unsafe fn run(&mut self, frame: &Frame, client: &mut Client<'_>, rows_max: u64) {
        let mut rows = 0;
        // SAFETY: the statement's own slots and contexts.
        unsafe {
            let (values, command) = (frame.values, frame.command());
            while !self.is_done && rows < rows_max {
                interrupts::check_for_interrupts();
                empty(frame.per_row());
                frame.empty_checks();
                let Some((row, version)) = self.scan.next(values) else {
                    self.is_done = true;
                    break;
                };
                let changed = within(frame.per_row(), || {
                    self.change
                        .apply(&mut self.scan, values, command, row, version, |new| {
                            frame.check(new);
                            frame.form(new)
                        })
                });
                let Some(result) = changed else {
                    continue;
                };
                frame.count_change(match self.change.is_delete {
                    true => RowChange::Delete,
                    false => RowChange::update_to(result),
                });
                if frame.queue.is_used() {
                    self.queue(frame, row, result);
                }
                if self.counts_rows {
                    (*frame.estate).es_processed += 1;
                }
                if frame.projection.is_null() {
                    continue;
                }
                rows += 1;
                self.scan.show(self.change.old, row, result);
                (*values).ecxt_scantuple = self.change.old;
                if !client.send(frame) {
                    break;
                }
            }
            tuple::clear(self.change.old);
        }
    }

    /// Queues what foreign keys have to check. The old slot shows the state that was changed.
    unsafe fn queue(&mut self, frame: &Frame, row: Slot, result: VersionRef) {
        let old = self.change.old;
        // SAFETY: the statement's own slots; both versions stay while it runs.
        unsafe {
            if self.change.is_delete {
                return frame.queue.deleted(frame.queued(), old);
            }
            frame.point(&mut self.tuple, self.change.target.table, row, result);
            tuple::store(self.changed, &raw mut self.tuple);
            frame.queue.updated(frame.queued(), old, self.changed);
            tuple::clear(self.changed);
        }
    }
}
