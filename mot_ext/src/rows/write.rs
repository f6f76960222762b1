//! Changing one row: the loops that wait, as in heapam and nodeModifyTable.
//!
//! The second writer of a row queues on it, waits for the first one's transaction, and tries again.
//! If the row has changed by then, READ COMMITTED locks its newest state and hands it back for
//! re-checking ([`ChangeResult::Newer`]), and REPEATABLE READ raises 40001. A row that this very
//! command has changed is left alone. One that a trigger or function of this command has changed is
//! an error.
use super::{tid, tuple};
use crate::decoding;
use crate::errors::{self, or_raise};
use crate::pg::{self, catalog, index_row, version as pg_version};
use crate::serializable;
use crate::shared_memory::test_switch::{self, Step};
use crate::storage::{duplicate, long_key};
use crate::transaction::clock::PgClock;
use crate::transaction::relation::LockedRelation;
use crate::transaction::wait::{Purpose, RowLockQueue, WaitPolicy};
use crate::transaction::{session, xact};
use mot_engine::key::{KeyBuffer, encode_row};
use mot_engine::pause::{Point, reach};
use mot_engine::{
    CommandId, EngineError, Entered, IndexRef, KeysUnchanged, LockStrength, Locked, Newest,
    Ordinal, RowId, Session, TableRef, Transaction, VersionRef, Written, Xid,
};
use pgrx::pg_sys;
use pgrx::prelude::*;

/// The table a statement changes.
#[derive(Clone, Copy)]
pub struct Target<'p> {
    pub relation: LockedRelation<'p>,
    pub session: &'static Session,
    pub table: TableRef,
    /// SSI hears of each write, so that it finds readers of what is written.
    pub is_serializable: bool,
}

/// What an update or a deletion of a row did.
pub enum ChangeResult {
    /// Changed; for a deletion, the tombstone.
    Done(VersionRef),
    /// Another transaction changed it first: this is its newest state, locked; the caller checks
    /// its conditions again.
    Newer(VersionRef),
    /// Not to be changed: deleted, or changed by this command already.
    Skip,
}

impl<'p> Target<'p> {
    /// For a relation that is locked for writing, and not open; not for SERIALIZABLE.
    pub fn closed(relation: pg_sys::Oid, table: TableRef) -> Target<'p> {
        Target {
            relation: LockedRelation::closed(relation),
            session: session::session(),
            table,
            is_serializable: false,
        }
    }

    /// The relation's oid.
    pub fn oid(&self) -> pg_sys::Oid {
        self.relation.oid()
    }

    /// Makes all index entries of a version, or says what is in the way. Tries again only if an
    /// index that was in the way is dead.
    pub fn enter_without_waiting(&self, row: RowId, version: VersionRef) -> Entered {
        loop {
            let entered = self.attempt(version.body(), || {
                xact::current().enter(self.session, &PgClock, self.table, row, version)
            });
            match entered {
                Entered::Duplicate(index) if self.is_gone(index) => {}
                Entered::Duplicate(_) | Entered::Busy(..) if self.finds_dead() => {}
                entered => return entered,
            }
        }
    }

    /// Calls the engine about a row. It calls once more if a key could not be made, because the
    /// index may have been found dead or dropped since.
    pub fn attempt<T>(&self, body: &[u8], mut make: impl FnMut() -> Result<T, EngineError>) -> T {
        match make() {
            Err(
                EngineError::KeyTooLong { .. }
                | EngineError::KeyNotComputed
                | EngineError::NoOrder { .. }
                | EngineError::RowTypeChanged { .. },
            ) => {
                self.finds_dead();
                match make() {
                    Err(EngineError::KeyTooLong { bytes, max }) => {
                        self.key_too_long(body, bytes, max)
                    }
                    Err(EngineError::KeyNotComputed) => self.key_not_computed(body),
                    made => or_raise(made),
                }
            }
            made => or_raise(made),
        }
    }

    /// Raises 54000 for the first index in which a row's key is too long.
    fn key_too_long(&self, body: &[u8], bytes: usize, max: usize) -> ! {
        let is_meant = |error| matches!(error, EngineError::KeyTooLong { .. });
        let Some(index) = self.first_to_refuse(body, is_meant) else {
            errors::raise(EngineError::KeyTooLong { bytes, max })
        };
        self.relation
            .with(|relation| long_key::raise(relation, index, bytes, max))
    }

    /// Raises 55006: the row was formed before the engine knew an index (`computed_keys.rs`).
    fn key_not_computed(&self, body: &[u8]) -> ! {
        let is_meant = |error| matches!(error, EngineError::KeyNotComputed);
        let index = self.first_to_refuse(body, is_meant);
        match index.and_then(catalog::name) {
            Some(name) => errors::row_without_key(&name),
            None => errors::raise(EngineError::KeyNotComputed),
        }
    }

    /// The first index, by oid, that refuses a row by an error of this kind.
    fn first_to_refuse(
        &self,
        body: &[u8],
        is_meant: impl Fn(EngineError) -> bool,
    ) -> Option<pg_sys::Oid> {
        let mut key = KeyBuffer::new();
        let mut refuses = |index: &IndexRef| {
            let definition = self.session.definition(*index);
            definition.is_ok_and(|definition| {
                encode_row(definition, body, &mut key).is_err_and(&is_meant)
            })
        };
        let mut indexes = self.session.indexes(self.table, &PgClock);
        indexes.sort_by_key(|index| index.relation_oid());
        let index = indexes.into_iter().find(|index| refuses(index))?;
        Some(index.relation_oid().into())
    }

    /// Whether an index that has refused a row was dropped since, and freed.
    fn is_gone(&self, index: IndexRef) -> bool {
        self.session.index_oid(self.table, index).is_none()
    }

    /// Looks in the catalog for dead indexes, and marks them for all writers. DROP INDEX
    /// CONCURRENTLY marks an index as dead there, and calls no code of ours. Asked where an index
    /// refuses a row or makes it wait. Answers whether one was found.
    pub fn finds_dead(&self) -> bool {
        let mut found = false;
        for relation in self.session.index_oids(self.table, &PgClock) {
            if !is_live(relation.into()) {
                found |= self.session.index_is_dead(self.table, relation);
            }
        }
        found
    }

    /// Waits where a new state of a row has a key that a running transaction holds.
    ///
    /// The state is taken back before the wait. Left in place, it could be met by an entry of an
    /// earlier state that a snapshot still sees, under a key for which it has no entry yet. Others
    /// would then wait for us, and we maybe for them. The row is locked meanwhile, so that no
    /// other writer changes it. If another was faster, the next attempt finds out.
    pub fn wait_for_key(
        &self,
        row: RowId,
        seen: VersionRef,
        (by, index): (Xid, u32),
        queue: &mut RowLockQueue<'_>,
    ) {
        xact::current().retract(self.session);
        let _: Locked = self.lock(row, seen, LockStrength::Update);
        queue.wait_to_enter(row, by, index);
    }

    /// Raises 23505 for a new state that has the key of another row.
    pub fn duplicate(
        &self,
        index: IndexRef,
        row: RowId,
        seen: Option<VersionRef>,
        version: VersionRef,
    ) -> ! {
        if self.is_serializable {
            serializable::met_duplicate(self.oid(), self.table, row, seen, version);
        }
        let mut refused = tuple::empty();
        let tid = tid::of(self.table, row, version);
        tuple::point(&mut refused, tid, version, self.oid());
        // As in heapam, a changed row that then fails counts; an insert has counted.
        // SAFETY: our own uncommitted version stays until the abort that this leads to.
        self.relation.with(|relation| unsafe {
            if seen.is_some() {
                pg_version::table_am::count_update(relation.as_ptr());
            }
            duplicate::raise(relation, index.relation_oid().into(), &raw mut refused)
        })
    }

    /// Puts a new state on a row whose state `seen` the statement saw. `beside_keys`: it differs
    /// only in columns that no index had then.
    pub fn update(
        &self,
        row: RowId,
        mut seen: VersionRef,
        body: &[u8],
        command: CommandId,
        beside_keys: Option<KeysUnchanged>,
    ) -> ChangeResult {
        let mut queue = RowLockQueue::new(self.relation).purpose(Purpose::Update);
        loop {
            let xid = xact::write_xid();
            let session = self.session;
            let (table, transaction) = (self.table, xact::current());
            let written = self.attempt(body, || match beside_keys {
                None => transaction.update(session, &PgClock, table, row, seen, body, xid, command),
                Some(beside) => transaction.update_non_key(
                    session, &PgClock, table, row, seen, body, xid, command, beside,
                ),
            });
            if let Written::Done(version) = written {
                queue.release();
                match self.enter_without_waiting(row, version) {
                    Entered::Done => {}
                    Entered::Duplicate(index) => self.duplicate(index, row, Some(seen), version),
                    Entered::Busy(by, index) => {
                        self.wait_for_key(row, seen, (by, index), &mut queue);
                        continue;
                    }
                }
                if self.is_serializable {
                    serializable::updated(self.oid(), self.table, row, seen, version);
                }
                decoding::updated(self.relation, seen, version);
                return ChangeResult::Done(version);
            }
            if test_switch::skips(Step::UpdateRecheck)
                && let Written::Changed = written
                && let Newest::Live(newest) = self.session.newest(&PgClock, self.table, row)
            {
                seen = newest;
                continue;
            }
            // As `heap_update` has it: by the keys that differ. A weaker one could not be held on
            // to where another transaction holds the key.
            let strength = self.attempt(body, || {
                Transaction::strength_of_update(session, table, seen, body)
            });
            if self.is_held_by_dead(written, strength) {
                continue;
            }
            let result =
                self.wait_or_give_up(row, written, strength, command, "updated", &mut queue);
            if let Some(result) = result {
                return result;
            }
        }
    }

    /// Whether an update need not wait for the holder of the row, and tries again: the unique index
    /// because of which it takes the strong lock is found dead.
    pub fn is_held_by_dead(&self, written: Written, strength: LockStrength) -> bool {
        matches!(written, Written::Busy(_)) && strength == LockStrength::Update && self.finds_dead()
    }

    /// Deletes a row whose state `seen` the statement saw.
    pub fn delete(&self, row: RowId, seen: VersionRef, command: CommandId) -> ChangeResult {
        let result = self.delete_unlogged(row, seen, command);
        if let ChangeResult::Done(_) = result {
            decoding::deleted(self.relation, seen);
        }
        result
    }

    /// The same of a row that logical decoding has not heard of.
    pub fn delete_unlogged(
        &self,
        row: RowId,
        seen: VersionRef,
        command: CommandId,
    ) -> ChangeResult {
        let mut queue = RowLockQueue::new(self.relation).purpose(Purpose::Delete);
        loop {
            let xid = xact::write_xid();
            let written = or_raise(xact::current().delete(
                self.session,
                &PgClock,
                self.table,
                row,
                seen,
                xid,
                command,
            ));
            if let Written::Done(tombstone) = written {
                queue.release();
                if self.is_serializable {
                    serializable::deleted(self.oid(), row, seen);
                }
                return ChangeResult::Done(tombstone);
            }
            let strength = LockStrength::Update;
            let result =
                self.wait_or_give_up(row, written, strength, command, "deleted", &mut queue);
            if let Some(result) = result {
                return result;
            }
        }
    }

    /// After a write that was not done: waits and answers `None` (try again), or says what it did.
    fn wait_or_give_up(
        &self,
        row: RowId,
        written: Written,
        strength: LockStrength,
        command: CommandId,
        verb: &'static str,
        queue: &mut RowLockQueue<'_>,
    ) -> Option<ChangeResult> {
        let result = match written {
            Written::Busy(xid) => {
                self.wait(row, xid, strength, WaitPolicy::Block, queue);
                return None;
            }
            Written::Changed => {
                refuse_under_old_snapshot("concurrent update");
                reach(Point::RecheckBeforeLock);
                match self.lock_newest(row, strength, WaitPolicy::Block, queue) {
                    Ok(Some(version)) => ChangeResult::Newer(version),
                    Ok(None) | Err(Skipped) => ChangeResult::Skip,
                }
            }
            Written::Gone => {
                refuse_under_old_snapshot("concurrent delete");
                ChangeResult::Skip
            }
            Written::SelfModified(by) => {
                pass_over_own_change(by, command, verb);
                ChangeResult::Skip
            }
            Written::Done(version) => ChangeResult::Done(version),
        };
        queue.release();
        Some(result)
    }

    /// Locks the newest state of a row; `Ok(None)` if it is deleted.
    pub fn lock_newest(
        &self,
        row: RowId,
        strength: LockStrength,
        policy: WaitPolicy,
        queue: &mut RowLockQueue<'_>,
    ) -> Result<Option<VersionRef>, Skipped> {
        loop {
            let busy = match self.session.newest(&PgClock, self.table, row) {
                Newest::None | Newest::Gone => return Ok(None),
                Newest::Busy(xid) => xid,
                Newest::Live(version) => match self.lock(row, version, strength) {
                    Locked::Done => return Ok(Some(version)),
                    Locked::Busy(xid) => xid,
                    Locked::Changed | Locked::SelfModified(_) => continue,
                    Locked::Gone => return Ok(None),
                },
            };
            if !self.wait(row, busy, strength, policy, queue) {
                return Err(Skipped);
            }
        }
    }

    /// Waits for the transaction that is in the way; false: the row is to be passed over.
    pub fn wait(
        &self,
        row: RowId,
        busy: Xid,
        strength: LockStrength,
        policy: WaitPolicy,
        queue: &mut RowLockQueue<'_>,
    ) -> bool {
        if xact::current().holds(self.table, row) {
            queue.pass_queue();
        }
        // The state that the other transaction changes or has locked; only who waits names it.
        let ordinal = match policy {
            WaitPolicy::Block => self.session.newest_ordinal(&PgClock, self.table, row),
            _ => Ordinal(0),
        };
        queue.wait((row, ordinal), busy, strength, policy)
    }

    /// One attempt to lock a row in the state `seen`. The transaction gets an id with its first
    /// lock, as on heap tables: one that passes over locked rows has none.
    pub fn lock(&self, row: RowId, seen: VersionRef, strength: LockStrength) -> Locked {
        if pg::full_xid_if_any().is_none() {
            xact::wait_until_writable();
            let (session, table) = (self.session, self.table);
            let obstacle = xact::current().obstacle(session, &PgClock, table, row, seen, strength);
            if let Some(obstacle) = obstacle {
                return obstacle;
            }
        }
        let xid = xact::write_xid();
        or_raise(xact::current().lock(self.session, &PgClock, self.table, row, seen, strength, xid))
    }
}

/// Whether the catalog has an index whose keys writers maintain.
fn is_live(index: pg_sys::Oid) -> bool {
    index_row::read(index, |_, form| form.indislive).unwrap_or(false)
}

/// The row is locked and the statement passes over such rows.
pub struct Skipped;

/// The statement met a row that changed after its snapshot: counts it, and raises 40001 where the
/// transaction's snapshot is older than the statement: REPEATABLE READ.
pub fn refuse_under_old_snapshot(what: &str) {
    session::count_conflict(|conflicts| &conflicts.rows_changed_meanwhile);
    // SAFETY: a plain variable of this process.
    if unsafe { pg_sys::XactIsoLevel } >= pg_sys::XACT_REPEATABLE_READ as i32 {
        ereport!(
            ERROR,
            PgSqlErrorCode::ERRCODE_T_R_SERIALIZATION_FAILURE,
            format!("could not serialize access due to {what}")
        );
    }
}

/// A row that the transaction itself has changed since the statement saw it is passed over if this
/// command did; if one that it ran did, 27000 is raised.
pub fn pass_over_own_change(by: CommandId, command: CommandId, verb: &str) {
    if by == command {
        return;
    }
    pg_sys::panic::ErrorReport::new(
        PgSqlErrorCode::ERRCODE_TRIGGERED_DATA_CHANGE_VIOLATION,
        format!("tuple to be {verb} was already modified by an operation triggered by the current command"),
        pgrx::function_name!(),
    )
    .set_hint(
        "Consider using an AFTER trigger instead of a BEFORE trigger to propagate changes to other rows.",
    )
    .report(PgLogLevel::ERROR);
}
