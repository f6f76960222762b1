//! SELECT, with or without FOR UPDATE and the like, and LIMIT.
use super::access::Access;
use super::client::Client;
use super::frame::{Frame, compile_conditions, compile_values, empty};
use crate::access::scan::Scan;
use crate::executor::expressions::{passes, project};
use crate::executor::filter::{Filter, Verdict};
use crate::pg::interrupts;
use crate::pg::list::list;
use crate::rows::lock_rows::{Outcome as LockOutcome, lock as lock_row};
use crate::rows::tuple;
use crate::rows::write::Target;
use crate::table_am::note_locked;
use crate::table_am::view::refuse_older_than_copy;
use crate::transaction::clock::PgSnapshot;
use crate::transaction::wait::{WaitPolicy, tid_of};
use mot_engine::{LockStrength, Slot, TableRef, VersionRef};
use pgrx::pg_sys;

pub struct Select {
    scan: Scan,
    slot: *mut pg_sys::TupleTableSlot,
    conditions: *mut pg_sys::ExprState,
    /// The scan's filter evaluates all of them.
    is_filter_whole: bool,
    /// Conditions the scan answers, for a state of the row that it did not find.
    rechecks: *mut pg_sys::ExprState,
    lock: Option<(Target, LockStrength, WaitPolicy)>,
    /// LIMIT, and what is left of it.
    rows_max: u64,
    rows_left: u64,
    is_done: bool,
    /// The row last sent, for WHERE CURRENT OF.
    pub current: Option<pg_sys::ItemPointerData>,
}

/// What became of a row that the statement wants.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Locked {
    /// Locked, where locks are asked for, in the state that was seen.
    AsSeen,
    /// Locked in a newer state, which the slot shows.
    Newer,
    /// Not to be returned.
    Lost,
}

impl Select {
    pub unsafe fn new(
        frame: &Frame,
        access: &Access,
        lock: Option<(LockStrength, WaitPolicy)>,
        rows_max: u64,
        table: TableRef,
        snapshot: PgSnapshot<'static>,
    ) -> Select {
        // SAFETY: a scan of a finished plan; the current context is the statement's.
        unsafe {
            let arguments = compile_values(&access.arguments);
            let target = |(strength, policy)| {
                let target = Target::closed(frame.relation, table);
                (target, strength, policy)
            };
            let mut rows =
                Scan::of_table(frame.relation, table, &access.search, &arguments, snapshot);
            let conditions = list(&access.conditions);
            let filter = match frame.has_missing_values {
                false => Filter::new(conditions, frame.position, frame.row_type),
                true => None,
            };
            let is_filter_whole = filter.as_ref().is_some_and(Filter::is_whole);
            rows.set_filter(filter);
            rows.evaluate_ahead(compile_values(&access.computed));
            Select {
                scan: rows,
                is_filter_whole,
                slot: frame.row_slot(),
                conditions: compile_conditions(&access.conditions),
                rechecks: compile_conditions(&access.rechecks),
                lock: lock.map(target),
                rows_max,
                rows_left: 0,
                is_done: true,
                current: None,
            }
        }
    }

    pub fn start(&mut self, snapshot: PgSnapshot<'static>) {
        refuse_older_than_copy(self.scan.table, &snapshot);
        self.scan.rewind_under(snapshot);
        self.rows_left = self.rows_max;
        self.is_done = self.rows_max == 0;
        self.current = None;
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
        if let Some((target, _, _)) = &mut self.lock {
            target.table = table;
        }
    }

    /// Looks for the row, if there can be but one, before the caller asks for it.
    pub unsafe fn seek(&mut self, frame: &Frame) {
        if !self.is_done {
            // SAFETY: the statement's own context.
            unsafe { self.scan.seek(frame.values) };
        }
    }

    /// Sends up to `rows_max` rows.
    pub unsafe fn run(&mut self, frame: &Frame, client: &mut Client<'_>, rows_max: u64) {
        let mut rows = 0;
        // SAFETY: the statement's own slots and contexts; the snapshot is the running query's.
        unsafe {
            while !self.is_done && rows < rows_max {
                interrupts::check_for_interrupts();
                empty(frame.per_row());
                let Some((row, version, verdict)) =
                    self.scan.next_passing(frame.values, std::ptr::null_mut())
                else {
                    self.is_done = true;
                    break;
                };
                self.scan.show(self.slot, row, version);
                (*frame.values).ecxt_scantuple = self.slot;
                let is_sure = self.is_filter_whole && verdict == Verdict::Passes;
                if !is_sure && !passes(self.conditions, frame.values) {
                    continue;
                }
                // Core's scan computes its columns before the node above locks the row.
                let computes = self.lock.is_some() && frame.computes_columns;
                let computed = computes.then(|| project(frame.projection));
                let locked = self.locks(frame, row, version);
                if locked == Locked::Lost {
                    continue;
                }
                rows += 1;
                self.current = Some(tid_of(row, version.ordinal()));
                (*frame.estate).es_processed += 1;
                self.rows_left -= 1;
                self.is_done = self.rows_left == 0;
                let goes_on = match computed {
                    _ if frame.sends_row_itself => client.send_row(frame, self.slot),
                    Some(slot) if locked == Locked::AsSeen => client.send_projected(frame, slot),
                    _ => client.send(frame),
                };
                if !goes_on {
                    break;
                }
            }
            tuple::clear(self.slot);
        }
    }

    /// Locks the row in the slot, as nodeLockRows does: if it changed meanwhile, its newest state
    /// has to pass, and is shown.
    unsafe fn locks(&mut self, frame: &Frame, row: Slot, version: VersionRef) -> Locked {
        let Some((target, strength, policy)) = self.lock else {
            return Locked::AsSeen;
        };
        match lock_row(&target, row, version, strength, policy) {
            LockOutcome::Locked(newest) if newest == version => {
                note_locked(target.table, row);
                Locked::AsSeen
            }
            LockOutcome::Locked(newest) => {
                note_locked(target.table, row);
                // SAFETY: as in `run`.
                let is_wanted = unsafe {
                    self.scan.show(self.slot, row, newest);
                    passes(self.rechecks, frame.values) && passes(self.conditions, frame.values)
                };
                match is_wanted {
                    true => Locked::Newer,
                    false => Locked::Lost,
                }
            }
            // Changed by this command, or gone: not returned.
            LockOutcome::SelfModified | LockOutcome::Lost => Locked::Lost,
        }
    }
}
