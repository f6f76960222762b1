//! ON CONFLICT of one inserted row: look first, then insert. If a rival was quicker, the row is
//! taken back, and the look repeated.
//!
//! DO UPDATE locks the row in the way in its newest state, whether the statement's snapshot sees it
//! or not (READ COMMITTED), and changes it as UPDATE does. The answers are those of core's
//! ExecInsert on a table: 21000 for a row of the same command, 40001 under an older snapshot.
use super::arbiters::{Arbiter, Arbiters};
use super::conflict::{Conflict, ConflictUpdate};
use super::frame::{Frame, Row};
use super::row_change::{self, Changer};
use crate::access::scan::Scan;
use crate::access::search::Search;
use crate::errors::or_raise;
use crate::pg::interrupts;
use crate::pg::snapshot::Snapshot;
use crate::rows::insert::Inserted;
use crate::rows::tuple;
use crate::rows::write::{Target, refuse_under_old_snapshot};
use crate::table_am::RowChange;
use crate::transaction::clock::{PgClock, PgSnapshot};
use crate::transaction::relation::LockedRelation;
use crate::transaction::wait::{Purpose, RowLockQueue, WaitPolicy};
use crate::transaction::xact;
use mot_engine::key::{KeyBuffer, encode_row};
use mot_engine::{
    Clock, CommandId, Entered, IndexRef, IndexScan, LockStrength, Locked, Now, RowId, TableRef,
    VersionRef, Xid,
};
use pgrx::pg_sys;
use pgrx::prelude::*;

/// What a statement says of a row in the way.
pub struct Upsert {
    pub(super) arbiters: Arbiters,
    update: Option<Update>,
    /// The execution's snapshot; `None`: between two.
    snapshot: Option<Snapshot<'static>>,
}

/// DO UPDATE.
struct Update {
    /// Shows rows.
    scan: Scan,
    change: row_change::Change,
    /// The lock taken ahead: by the columns that SET names, as core does.
    strength: LockStrength,
}

/// What became of the row to be inserted.
pub enum Outcome {
    Inserted(RowId, VersionRef),
    /// The row in the way was changed to this; the old slot has what it was.
    Updated(RowId, VersionRef),
    Nothing,
}

impl Upsert {
    /// `None`: core has to do it.
    ///
    /// # Safety
    /// The current memory context is the frame's, and lives as long as the value.
    pub unsafe fn new(
        frame: &Frame,
        conflict: &Conflict<'_>,
        table: TableRef,
        snapshot: PgSnapshot<'static>,
    ) -> Option<Upsert> {
        let arbiters = Arbiters::of(frame.relation, &conflict.arbiters, table)?;
        let update = conflict.update.as_ref();
        // SAFETY: the caller's memory context.
        let update = update.map(|update| unsafe { Update::new(frame, update, table, snapshot) });
        Some(Upsert {
            arbiters,
            update,
            snapshot: None,
        })
    }

    /// Begins an execution.
    pub fn start(&mut self, snapshot: Snapshot<'static>) {
        self.snapshot = Some(snapshot);
    }

    pub fn end(&mut self) {
        self.snapshot = None;
    }

    /// Follows the table to another storage; false: core has to do it.
    pub fn move_to(&mut self, table: TableRef, frame: &Frame) -> bool {
        if !self.arbiters.move_to(frame.relation, table) {
            return false;
        }
        if let Some(update) = &mut self.update {
            update.scan.move_to(table);
            update.change.target.table = table;
            update.strength = strength(frame.relation, &update.change);
        }
        true
    }

    /// The row in the way as it was, after [`Outcome::Updated`].
    pub fn old(&self) -> Option<Row<'_>> {
        let update = self.update.as_ref();
        update.map(|update| update.change.old.view())
    }

    /// Inserts the row whose values `inserted` has, or does what the statement says about the row
    /// that has its key.
    ///
    /// # Safety
    /// A filled slot of the table's row type, in an execution.
    pub unsafe fn run(&mut self, frame: &Frame, target: &Target<'_>, inserted: Row<'_>) -> Outcome {
        let command = frame.command();
        // SAFETY: the caller's slot. The row is used before its memory is emptied.
        let row = unsafe { frame.within_row(|| tuple::form(inserted.as_ptr())) };
        let mut queue = RowLockQueue::new(target.relation).purpose(Purpose::Insert);
        loop {
            if interrupts::is_pending() {
                interrupts::check_for_interrupts();
            }
            // SAFETY: the slot that the row was formed of.
            let looked = unsafe { self.look(frame, target, inserted, row) };
            let (arbiter, row, version) = match looked {
                Look::Busy(xid) => {
                    queue.wait_for_transaction(RowId(0), xid);
                    continue;
                }
                Look::Gone => continue,
                Look::Found(arbiter, row, version) => (arbiter, row, version),
                Look::Nothing => {
                    // SAFETY: the statement has locked its table.
                    let count = |change| unsafe { frame.count_change(change) };
                    count(RowChange::Insert);
                    // SAFETY: as above.
                    let body = unsafe { frame.within_row(|| frame.add_keys(row, inserted, None)) };
                    let is_arbiter = |index: u32| self.arbiters.contains(index);
                    match target.insert_unless(body, command, &is_arbiter) {
                        Inserted::Done(row, version) => {
                            return Outcome::Inserted(row, version);
                        }
                        Inserted::Duplicate => {
                            count(RowChange::Delete);
                            continue;
                        }
                    }
                }
            };
            arbiter.opened.count_found(1);
            self.refuse_unseen(target, row, version);
            let Some(update) = &mut self.update else {
                return Outcome::Nothing;
            };
            refuse_second_change(version, command);
            if !lock(target, row, version, update.strength, &mut queue) {
                continue;
            }
            // SAFETY: the row is locked in this state, so it stays; both rows are of the table's
            // row type.
            let changed = unsafe { update.apply(frame, inserted, row, version) };
            return match changed {
                Some(new) => Outcome::Updated(row, new),
                None => Outcome::Nothing,
            };
        }
    }

    /// Asks the indexes, up to the first that has the key of a row. As core does, it computes the
    /// key of an index when that is asked, and no key behind a conflict: computing may raise.
    ///
    /// # Safety
    /// As for [`Upsert::run`]; `row` was formed of the slot.
    unsafe fn look(
        &self,
        frame: &Frame,
        target: &Target<'_>,
        inserted: Row<'_>,
        row: &[u8],
    ) -> Look<'_> {
        let (session, table) = (target.session, target.table);
        for arbiter in self.arbiters.iter() {
            // SAFETY: the slot that the row was formed of.
            let add_key = || unsafe { frame.add_key(row, inserted, arbiter.oid) };
            let body = match arbiter.is_computed {
                // SAFETY: the statement's own context.
                true => unsafe { frame.within_row(add_key) },
                false => row,
            };
            arbiter.opened.count_scan();
            let only = Some(arbiter.index);
            let probed = xact::current().probe(session, &PgClock, table, only, body);
            match or_raise(probed) {
                Entered::Done => {}
                Entered::Busy(xid, _) => return Look::Busy(xid),
                Entered::Duplicate(index) => {
                    return match find(target, index, body) {
                        Some((row, version)) => Look::Found(arbiter, row, version),
                        None => Look::Gone,
                    };
                }
            }
        }
        Look::Nothing
    }

    /// Under REPEATABLE READ a state that the snapshot does not see may not decide anything.
    fn refuse_unseen(&self, target: &Target<'_>, row: RowId, version: VersionRef) {
        // SAFETY: a variable of this process.
        if unsafe { pg_sys::XactIsoLevel } < pg_sys::XACT_REPEATABLE_READ as i32 {
            return;
        }
        let (session, table) = (target.session, target.table);
        let snapshot = self
            .snapshot
            .expect("an execution begins with its snapshot");
        let seen = session.visible(table, row, &PgSnapshot::new(snapshot));
        if seen != Some(version) && !session.is_own_state(&PgClock, table, row, version) {
            refuse_under_old_snapshot("concurrent update");
        }
    }
}

/// What the indexes have for a key.
enum Look<'a> {
    Nothing,
    /// A transaction that is running has changed a row of the key.
    Busy(Xid),
    /// The row went away meanwhile.
    Gone,
    Found(&'a Arbiter, RowId, VersionRef),
}

/// The live row that has the key of `body` in an index; `None` if it went away.
fn find(target: &Target<'_>, index: IndexRef, body: &[u8]) -> Option<(RowId, VersionRef)> {
    let (session, table) = (target.session, target.table);
    let definition = or_raise(session.definition(index));
    let mut key = KeyBuffer::new();
    or_raise(encode_row(definition, body, &mut key));
    let (key, now) = (key.as_slice(), Now(&PgClock));
    or_raise(IndexScan::new().find(session, table, index, key, &now))
}

impl Update {
    /// # Safety
    /// As for [`Upsert::new`].
    unsafe fn new(
        frame: &Frame,
        update: &ConflictUpdate<'_>,
        table: TableRef,
        snapshot: PgSnapshot<'static>,
    ) -> Update {
        let (assigned, conditions) = (&update.assigned, &update.conditions);
        // SAFETY: the caller's memory context.
        let change = unsafe { row_change::Change::new(frame, table, assigned, conditions) };
        let strength = strength(frame.relation, &change);
        Update {
            scan: Scan::of_table(frame.relation, table, &Search::ALL, &[], snapshot),
            change,
            strength,
        }
    }

    /// Changes the row in the way, locked in the state `version`; `None`: WHERE does not want it.
    ///
    /// # Safety
    /// In an execution; the row to be inserted is in a filled slot of the table's row type.
    unsafe fn apply(
        &mut self,
        frame: &Frame,
        inserted: Row<'_>,
        row: RowId,
        version: VersionRef,
    ) -> Option<VersionRef> {
        let values = frame.values();
        values.show_inserted(inserted);
        let changer = Changer {
            scan: &mut self.scan,
            values,
            command: frame.command(),
            // SAFETY: a filled slot of the table's row type; it is used before the row's memory is
            // emptied.
            form: |new: Row<'_>, seen| unsafe { frame.check_and_form(new, seen) },
        };
        // SAFETY: the row is locked in this state, so it stays.
        unsafe { frame.within_row(|| self.change.apply(changer, row, version)) }
    }
}

/// The row lock ahead of the update, as `ExecUpdateLockMode` has it: if SET names a column of a
/// key, no other transaction may hold it. The table is locked.
fn strength(relation: pg_sys::Oid, change: &row_change::Change) -> LockStrength {
    let assigned = change.assignments.iter().map(|(column, _)| *column);
    match LockedRelation::closed(relation).with(|table| table.has_any_in_keys(assigned)) {
        true => LockStrength::Update,
        false => LockStrength::NoKeyUpdate,
    }
}

/// Locks the row in the way in the state that was found, waiting for its holders; false: it
/// is in another one, and may be in no row's way any more.
fn lock(
    target: &Target<'_>,
    row: RowId,
    version: VersionRef,
    strength: LockStrength,
    queue: &mut RowLockQueue<'_>,
) -> bool {
    let locked = loop {
        match target.lock(row, version, strength) {
            Locked::Busy(xid) => target.wait(row, xid, strength, WaitPolicy::Block, queue),
            locked => break locked,
        };
    };
    queue.release();
    match locked {
        Locked::Done => return true,
        Locked::Changed => refuse_under_old_snapshot("concurrent update"),
        Locked::Gone => refuse_under_old_snapshot("concurrent delete"),
        Locked::SelfModified(_) | Locked::Busy(_) => {}
    }
    false
}

/// Raises 21000 of a row that this command has made or changed.
fn refuse_second_change(version: VersionRef, command: CommandId) {
    if PgClock.is_current(version.xid()) && version.cid() >= command {
        pg_sys::panic::ErrorReport::new(
            PgSqlErrorCode::ERRCODE_CARDINALITY_VIOLATION,
            "ON CONFLICT DO UPDATE command cannot affect row a second time",
            pgrx::function_name!(),
        )
        .set_hint(
            "Ensure that no rows proposed for insertion within the same command have duplicate constrained values.",
        )
        .report(PgLogLevel::ERROR);
    }
}
