//! SELECT, with or without FOR UPDATE and the like, and LIMIT.
use super::access::Access;
use super::client::Client;
use super::expression::{Conditions, compile_values};
use super::frame::{Frame, OwnSlot, Row};
use crate::access::scan::Scan;
use crate::executor::filter::{Filter, Verdict};
use crate::pg::interrupts;
use crate::pg::node::{Any, List};
use crate::rows::lock_rows::{Outcome as LockOutcome, lock as lock_row};
use crate::rows::tuple;
use crate::rows::write::Target;
use crate::table_am::note_locked;
use crate::table_am::view::refuse_older_than_copy;
use crate::transaction::clock::PgSnapshot;
use crate::transaction::wait::WaitPolicy;
use mot_engine::{LockStrength, RowId, TableRef, VersionRef};

pub struct Select {
    scan: Scan,
    slot: OwnSlot,
    conditions: Conditions,
    /// The scan's filter evaluates all of them.
    is_filter_whole: bool,
    /// Conditions the scan answers, for a state of the row that it did not find.
    rechecks: Conditions,
    lock: Option<(Target<'static>, LockStrength, WaitPolicy)>,
    /// LIMIT, and what is left of it.
    rows_max: u64,
    rows_left: u64,
    is_done: bool,
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

/// What drops rows before the scan gives them; `None`: the first condition takes core.
fn filter(frame: &Frame, conditions: &[Any<'_>]) -> Option<Filter> {
    if frame.has_missing_values {
        return None;
    }
    let conditions = List::of(conditions.iter().copied());
    // SAFETY: conditions of a finished plan over the table, whose row type this is.
    unsafe { Filter::new(conditions.as_ptr(), frame.position, frame.row_type.as_ptr()) }
}

impl Select {
    /// Of a scan of a finished plan.
    ///
    /// # Safety
    /// The current memory context is the frame's, and lives as long as the value.
    pub unsafe fn new(
        frame: &Frame,
        access: &Access<'_>,
        lock: Option<(LockStrength, WaitPolicy)>,
        rows_max: u64,
        table: TableRef,
        snapshot: PgSnapshot<'static>,
    ) -> Select {
        let target = |(strength, policy)| {
            let target = Target::closed(frame.relation, table);
            (target, strength, policy)
        };
        // SAFETY: the caller's memory context.
        let (arguments, computed) = unsafe {
            (
                compile_values(&access.arguments),
                compile_values(&access.computed),
            )
        };
        let mut rows = Scan::of_table(frame.relation, table, &access.search, &arguments, snapshot);
        let filter = filter(frame, &access.conditions);
        let is_filter_whole = filter.as_ref().is_some_and(Filter::is_whole);
        rows.set_filter(filter);
        rows.evaluate_ahead(computed);
        // SAFETY: as above.
        let (slot, conditions, rechecks) = unsafe {
            (
                frame.row_slot(),
                Conditions::compile(&access.conditions),
                Conditions::compile(&access.rechecks),
            )
        };
        Select {
            scan: rows,
            is_filter_whole,
            slot,
            conditions,
            rechecks,
            lock: lock.map(target),
            rows_max,
            rows_left: 0,
            is_done: true,
        }
    }

    pub fn start(&mut self, snapshot: PgSnapshot<'static>) {
        refuse_older_than_copy(self.scan.table, &snapshot);
        self.scan.rewind_under(snapshot);
        self.rows_left = self.rows_max;
        self.is_done = self.rows_max == 0;
    }

    /// Whether it may ask for a row: not with LIMIT 0.
    pub fn may_read(&self) -> bool {
        self.rows_max != 0
    }

    /// FOR UPDATE and the like.
    pub fn locks_rows(&self) -> bool {
        self.lock.is_some()
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
    ///
    /// # Safety
    /// In an execution, which has parameters and snapshot.
    pub unsafe fn seek(&mut self, frame: &Frame) {
        if !self.is_done {
            // SAFETY: the scan's arguments were compiled for these values.
            unsafe { self.scan.seek(frame.values().as_ptr()) };
        }
    }

    /// Sends up to `rows_max` rows.
    ///
    /// # Safety
    /// As for [`Select::seek`]. The snapshot keeps what the slot shows.
    pub unsafe fn run(&mut self, frame: &Frame, client: &mut Client<'_>, rows_max: u64) {
        let mut rows = 0;
        while !self.is_done && rows < rows_max {
            interrupts::check_for_interrupts();
            // SAFETY: the row before was sent.
            unsafe { frame.empty_row() };
            let (values, none) = (frame.values().as_ptr(), std::ptr::null_mut());
            // SAFETY: the scan's arguments were compiled for these values.
            let next = unsafe { self.scan.next_passing(values, none) };
            let Some((row, version, verdict)) = next else {
                self.is_done = true;
                break;
            };
            // SAFETY: the execution's snapshot keeps the version.
            unsafe { self.show(row, version) };
            frame.values().show(self.slot.view());
            let is_sure = self.is_filter_whole && verdict == Verdict::Passes;
            // SAFETY: the row is shown.
            if !is_sure && !unsafe { self.conditions.pass(frame.values()) } {
                continue;
            }
            // Core's scan computes its columns before the node above locks the row.
            let computes = self.lock.is_some() && frame.computes_columns;
            let projection = frame.projection.as_ref().filter(|_| computes);
            // SAFETY: as above.
            let computed = projection.map(|projection| unsafe { projection.project() });
            let locked = self.locks(frame, row, version);
            if locked == Locked::Lost {
                continue;
            }
            rows += 1;
            frame.count_processed();
            self.rows_left -= 1;
            self.is_done = self.rows_left == 0;
            let computed = computed.filter(|_| locked == Locked::AsSeen);
            // SAFETY: as above; what was computed is of the row as it was seen.
            if !unsafe { self.send(frame, client, computed) } {
                break;
            }
        }
        // SAFETY: the statement's own slot, of the access method's kind.
        unsafe { tuple::clear(self.slot.as_ptr()) };
    }

    /// Hands the row over that is shown, or what was computed of it; false: no more is wanted.
    ///
    /// # Safety
    /// The frame's values show the slot's row, which the snapshot or a lock keeps.
    #[inline]
    unsafe fn send(
        &self,
        frame: &Frame,
        client: &mut Client<'_>,
        computed: Option<Row<'_>>,
    ) -> bool {
        // SAFETY: the caller's.
        unsafe {
            match computed {
                _ if frame.sends_row_itself => client.send_row(frame, self.slot.view()),
                Some(row) => client.send_projected(frame, row),
                None => client.send(frame),
            }
        }
    }

    /// Shows a version of a row in the slot.
    ///
    /// # Safety
    /// A snapshot, or a row lock, keeps the version as long as the slot shows it.
    #[inline]
    unsafe fn show(&mut self, row: RowId, version: VersionRef) {
        // SAFETY: the slot is of the access method's kind; the caller's version.
        unsafe { self.scan.show(self.slot.as_ptr(), row, version) };
    }

    /// Locks the row in the slot, as nodeLockRows does: if it changed meanwhile, its newest state
    /// has to pass, and is shown.
    fn locks(&mut self, frame: &Frame, row: RowId, version: VersionRef) -> Locked {
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
                let values = frame.values();
                // SAFETY: the row is locked in its newest state, which is shown then.
                let is_wanted = unsafe {
                    self.show(row, newest);
                    self.rechecks.pass(values) && self.conditions.pass(values)
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
