//! Computed keys of rows that were there before their index, when that is built.
//!
//! A row is formed with its computed keys behind it. These rows were formed before the index was.
//!
//! - **In a new index** each committed row gets its key in place (engine `transaction/reform.rs`).
//!   It stays the same state for every snapshot, and writers and row lockers continue beside
//!   it. They form rows with keys of this index, because core has waited for all that do not know
//!   it. The build waits for a row with unfinished work on top, unless the committed state below
//!   has its key. So it waits once for a row at most, unless functions are not immutable.
//! - **Own uncommitted rows** get another image, with the same command and tuple id: queued checks
//!   of foreign keys and open cursors find it (`Transaction::replace_own`).
//! - **In an index that is rebuilt** (REINDEX) rows have their keys. If a key differs now, because
//!   a function is not immutable, the row gets a new state: a rollback brings the former index
//!   back, and with it the former key. This takes an EXCLUSIVE lock (`ddl/tables/index_locks.rs`),
//!   and snapshots from before do not use the index (`indcheckxmin`). Without that lock such a row
//!   is an error.
//! - **Labels** are given anew to all rows at once (`labels/rank.rs`).
use super::computed_keys::Evaluator;
use super::definition::index_definition;
use super::labels::rank::{LabelsByRow, Ranked};
use super::labels::{Label, LabelSource};
use crate::errors::or_raise;
use crate::errors::refuse::unsupported;
use crate::pg::relation::Relation;
use crate::pg::tuple_slot::TupleSlot;
use crate::pg::{self, interrupts, predicate};
use crate::transaction::clock::{PgClock, narrow};
use crate::transaction::wal_log::WalLog;
use crate::transaction::{session, xact};
use mot_engine::key::{IndexDefinition, labels_in_tail, without_tail};
use mot_engine::row::STAMP_BYTES;
use mot_engine::{
    Clock, CommandId, Newest, Reforms, RowId, Standing, TableRef, VersionRef, Written, Xid,
};
use pgrx::pg_sys;
use std::collections::HashMap;

/// Gives every row its key in an index that is new: the table's storage has none of it. Both
/// relations are locked as `ambuild` finds them, a snapshot is active, and all writers know the
/// index.
pub fn put_keys_of_rows(table: Relation<'_>, index: Relation<'_>) {
    // For checks that a writer makes before it logs anything.
    xact::write_xid();
    let Some(mut rows) = Rows::open(table, index) else {
        return;
    };
    rows.kept = keeps_builds_out(table).then(|| rows.other_numbers(table));
    let mut given = Given {
        reforms: Reforms::new(rows.number, rows.kept.clone()),
        left: Vec::new(),
        labels: HashMap::new(),
    };
    match rows.new_labels(table, index) {
        None => {
            let end = rows.storage.row_ids_end().0;
            (0..end).for_each(|row| rows.put_next(RowId(row), &mut given));
        }
        Some(mut labels) => {
            while let Some((row, of_row)) = labels.next() {
                given.labels.insert(row.0, of_row);
                rows.put_next(row, &mut given);
            }
            labels.close();
        }
    }
    loop {
        rows.reform(&mut given);
        if given.left.is_empty() {
            break;
        }
        // Others have changed them, so they have their keys. Or that was rolled back.
        for row in std::mem::take(&mut given.left) {
            rows.put_key(row, &mut given);
            pause();
        }
    }
    rows.close();
}

/// Rows that are given keys.
struct Given {
    reforms: Reforms,
    /// Rows that others have changed.
    left: Vec<RowId>,
    /// The labels of those whose turn it is.
    labels: HashMap<u64, Vec<Label>>,
}

/// Whether this session keeps all other index builds from an open table, as CONCURRENTLY does.
/// CREATE INDEX does not: its SHARE lock lets others build beside it. No session sees their
/// indexes before they have given all rows their keys.
fn keeps_builds_out(table: Relation<'_>) -> bool {
    let locks = [
        pg_sys::ShareUpdateExclusiveLock,
        pg_sys::ShareRowExclusiveLock,
        pg_sys::ExclusiveLock,
        pg_sys::AccessExclusiveLock,
    ];
    let mut locks = locks.into_iter();
    locks.any(|lock| table.is_locked(lock as pg_sys::LOCKMODE))
}

/// Gives every row its key in an index that is rebuilt, before it is. Writers are locked out. Not
/// where values have labels: a build gives all rows new ones.
///
/// True: a state that others see was replaced.
pub fn compute_keys_of_rows(table: Relation<'_>, index: Relation<'_>) -> bool {
    let mut has_changed = false;
    let mut has_replaced = false;
    let mut compute = |rows: &mut Rows, row| match rows.look_at(row) {
        Looked::Fits => true,
        Looked::Differs(seen) => {
            if !has_changed {
                refuse_without_lock(table);
            }
            has_changed = true;
            has_replaced |= seen.is_known_committed();
            rows.change(row, seen)
        }
        Looked::Busy(xid) => {
            wait_for(xid);
            false
        }
    };
    walk(table, index, &mut compute);
    if has_changed {
        // A state that follows another one with the same columns is a row that was read.
        predicate::move_to_table(table);
    }
    has_replaced
}

/// Raises where others may change rows, or read them for an index.
fn refuse_without_lock(table: Relation<'_>) {
    if !table.is_locked_at_least(pg_sys::ExclusiveLock as pg_sys::LOCKMODE) {
        let name = table.name_text();
        unsupported(
            format!(
                "rows of memory-optimized table \"{name}\" cannot be given keys beside other sessions"
            ),
            "LOCK TABLE ... IN EXCLUSIVE MODE in the same transaction, or REINDEX the table or the index by its name.",
        );
    }
}

/// How many rows have another key in an index with computed keys than their columns give, or none:
/// a function of it is not immutable, or failed for a writer. Functions run as the current user.
/// Rows that a transaction is changing are passed over.
pub fn rows_with_other_keys(table: Relation<'_>, index: Relation<'_>) -> u64 {
    let mut count = 0;
    walk(table, index, |rows, row| {
        count += u64::from(matches!(rows.look_at(row), Looked::Differs(_)));
        true
    });
    count
}

/// Calls `each` with every row, again until it says that it is done with the row. Labels are those
/// that the index has.
fn walk(table: Relation<'_>, index: Relation<'_>, mut each: impl FnMut(&mut Rows, RowId) -> bool) {
    let Some(mut rows) = Rows::open(table, index) else {
        return;
    };
    rows.evaluator.set_label_source(|| LabelSource::Index);
    for row in 0..rows.storage.row_ids_end().0 {
        while !each(&mut rows, RowId(row)) {}
        pause();
    }
    rows.close();
}

fn pause() {
    if interrupts::is_pending() {
        interrupts::check_for_interrupts();
    }
}

/// What a row's key is found to be.
enum Looked {
    /// It has it, or is not there.
    Fits,
    /// This state has another one, or none. The tail with the right one is made.
    Differs(VersionRef),
    /// It has, and a transaction is changing the row.
    Busy(Xid),
}

/// A walk over all rows.
struct Rows {
    storage: TableRef,
    /// The index's number in rows' tails.
    number: u32,
    /// The numbers of the indexes whose entries stay; `None`: of all others.
    kept: Option<Vec<u32>>,
    evaluator: Evaluator,
    /// The row whose keys are computed.
    slot: TupleSlot<'static>,
    table: pg_sys::Oid,
    /// Its tuple.
    old: Vec<u8>,
    /// The index's definition, if rows keep the labels that they have.
    kept_labels: Option<IndexDefinition>,
}

impl Rows {
    /// `None`: the table has no rows. What is made here goes with the statement after an error.
    fn open(table: Relation<'_>, index: Relation<'_>) -> Option<Rows> {
        let storage = super::described(table);
        if storage.row_ids_end() == RowId(0) {
            return None;
        }
        let number = index_definition(table, index).computed;
        let kind = &raw const pg_sys::TTSOpsHeapTuple;
        // SAFETY: an open table's row type. The slot stays until `close`.
        let slot =
            unsafe { TupleSlot::enter(pg_sys::MakeSingleTupleTableSlot(table.row_type(), kind)) };
        Some(Rows {
            storage,
            number: number.unwrap_or_default(),
            kept: None,
            evaluator: Evaluator::of_index(table, index),
            slot,
            table: table.oid(),
            old: Vec::new(),
            kept_labels: None,
        })
    }

    /// The numbers of the table's other indexes: all that the catalog has, and all that are in
    /// memory, for a rollback may bring them back. Entries of others are of no use, and REINDEX
    /// CONCURRENTLY leaves one each time.
    fn other_numbers(&self, table: Relation<'_>) -> Vec<u32> {
        let mut numbers = or_raise(session::session().computed_numbers(self.storage));
        numbers.extend(table.indexes().into_iter().map(pg_sys::Oid::to_u32));
        numbers.sort_unstable();
        numbers.dedup();
        numbers.retain(|number| *number != self.number);
        numbers
    }

    fn close(self) {
        // SAFETY: made by `open`, and shown to no other code.
        unsafe { pg_sys::ExecDropSingleTupleTableSlot(self.slot.as_ptr()) };
    }

    /// The labels of all rows of an index that is built; `None`: it has none, or its rows have
    /// them.
    ///
    /// That is so where core uses the index's file again, which says that nothing about the index
    /// has changed. A label is never given anew under one number: older states of rows would have
    /// others under it. Where values have labels, writers are locked out.
    fn new_labels(&mut self, table: Relation<'_>, index: Relation<'_>) -> Option<LabelsByRow> {
        if !self.evaluator.has_labels() {
            return None;
        }
        let definition = index_definition(table, index);
        let numbers = or_raise(session::session().computed_numbers(self.storage));
        if numbers.contains(&self.number) {
            self.kept_labels = Some(definition);
            return None;
        }
        Some(Ranked::sort(table, index, definition).by_row())
    }

    fn set_labels(&mut self, labels: Vec<Label>) {
        let labels = &labels;
        self.evaluator
            .set_label_source(|| LabelSource::Caller(labels.clone()));
    }

    /// Gives a row its key, and makes room for the next.
    fn put_next(&mut self, row: RowId, given: &mut Given) {
        if !self.put_key(row, given) {
            given.labels.remove(&row.0);
        }
        if given.reforms.are_many() {
            self.reform(given);
        }
        pause();
    }

    /// Gives a row its key: at once, or (true) by adding it to those that get one.
    fn put_key(&mut self, row: RowId, given: &mut Given) -> bool {
        if let Some(labels) = given.labels.get(&row.0) {
            self.set_labels(labels.clone());
        }
        let reforms = &mut given.reforms;
        loop {
            match self.look_at(row) {
                Looked::Fits => return false,
                Looked::Busy(xid) => wait_for(xid),
                Looked::Differs(seen) if seen.is_known_committed() => {
                    or_raise(reforms.add(row, seen, &self.evaluator.tail));
                    return true;
                }
                Looked::Differs(seen) => {
                    if self.change(row, seen) {
                        return false;
                    }
                }
            }
        }
    }

    /// Puts keys behind rows in place. `left` gets those that others have changed meanwhile.
    fn reform(&self, given: &mut Given) {
        let Given { reforms, left, .. } = given;
        let next = || Xid(pg::next_full_xid());
        let mut log = WalLog::default();
        let session = session::session();
        or_raise(session.reform(&PgClock, self.storage, reforms, &mut log, next));
        left.extend(reforms.take_left());
        given.labels.retain(|row, _| left.contains(&RowId(*row)));
    }

    /// Computes the key of a row, and compares it with the one that the row has.
    fn look_at(&mut self, row: RowId) -> Looked {
        let session = session::session();
        let (seen, beside) = match session.standing(&PgClock, self.storage, row) {
            Standing::Gone => return Looked::Fits,
            Standing::Own(version) | Standing::Committed(version) => (version, None),
            Standing::Under(version, xid) => (version, Some(xid)),
        };
        // Ahead of code of users, which may change the row.
        self.old.clear();
        self.old.resize(STAMP_BYTES, 0);
        self.old.extend_from_slice(seen.body());
        let body = &self.old[STAMP_BYTES..];
        if let Some(definition) = &self.kept_labels {
            let labels = or_raise(labels_in_tail(definition, body)).unwrap_or_default();
            let labels: Vec<_> = labels.into_iter().map(Option::unwrap_or_default).collect();
            self.evaluator
                .set_label_source(|| LabelSource::Caller(labels.clone()));
        }
        let tail = &mut self.evaluator.tail;
        or_raise(match &self.kept {
            Some(kept) => tail.take_some(body, kept),
            None => tail.take_others(body, self.number),
        });
        let mut tuple = pg_sys::HeapTupleData {
            t_len: (STAMP_BYTES + without_tail(body).len()) as u32,
            t_data: self.old.as_mut_ptr().cast(),
            t_tableOid: self.table,
            ..Default::default()
        };
        // SAFETY: the tuple is of the table's row type, and stays while the slot shows it.
        unsafe {
            pg_sys::ExecStoreHeapTuple(&raw mut tuple, self.slot.as_ptr(), false);
            self.evaluator.compute(self.slot);
            pg_sys::ExecClearTuple(self.slot.as_ptr());
        }
        let body = &self.old[STAMP_BYTES..];
        let tail = &self.evaluator.tail;
        if or_raise(tail.is_last_in(body, self.number)) {
            return Looked::Fits;
        }
        match beside {
            Some(xid) => Looked::Busy(xid),
            None => Looked::Differs(seen),
        }
    }

    /// Puts a new state on the row; false: something else has become of it.
    fn change(&self, row: RowId, seen: VersionRef) -> bool {
        let is_newest = |newest| matches!(newest, Newest::Live(version) if version == seen);
        if !is_newest(session::session().newest(&PgClock, self.storage, row)) {
            return false;
        }
        let mut body = Vec::new();
        let tail = &self.evaluator.tail;
        or_raise(tail.append_to(without_tail(seen.body()), &mut body));
        let xid = xact::write_xid();
        // SAFETY: a counter of the transaction.
        let command = CommandId(unsafe { pg_sys::GetCurrentCommandId(true) });
        let (session, storage) = (session::session(), self.storage);
        let work = xact::current();
        let put = match is_own(seen) {
            true => work.replace_own(session, &PgClock, (storage, row), (seen, &body), xid),
            false => work.update(session, &PgClock, storage, row, seen, &body, xid, command),
        };
        match or_raise(put) {
            Written::Done(_) => true,
            Written::Busy(xid) => {
                wait_for(xid);
                false
            }
            Written::Changed | Written::Gone | Written::SelfModified(_) => false,
        }
    }
}

/// Whether this transaction has made a state.
fn is_own(version: VersionRef) -> bool {
    !version.is_known_committed() && PgClock.is_current(version.xid())
}

fn wait_for(xid: Xid) {
    let none = std::ptr::null_mut();
    // SAFETY: waits for a transaction, without a relation for the message.
    unsafe {
        pg_sys::XactLockTableWait(narrow(xid), none, none.cast(), pg_sys::XLTW_Oper::XLTW_None)
    };
}
