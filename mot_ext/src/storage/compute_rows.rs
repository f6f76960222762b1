//! The keys of rows that are there already, in an index with computed keys that is being built.
//!
//! A row is formed with its computed keys behind it, and these were formed before the index was. So
//! each row gets a new state that differs in its tail alone: a change of this transaction, logged,
//! replicated and undone as any. Older states stay as they are. They have no entry in the index,
//! and core keeps it from snapshots that see them (`indcheckxmin`), as after a broken HOT chain.
//!
//! The table is locked in EXCLUSIVE mode or a stronger one (`ddl/tables/index_locks.rs`): nobody else
//! changes rows, locks them, or builds an index over rows that are being changed. Where nobody has
//! taken that lock, a row that has to be changed is an error.
use super::computed_keys::Evaluator;
use crate::errors::or_raise;
use crate::errors::refuse::unsupported;
use crate::pg::{interrupts, predicate};
use crate::transaction::clock::{PgClock, narrow};
use crate::transaction::{session, xact};
use mot_engine::key::without_tail;
use mot_engine::row::STAMP_BYTES;
use mot_engine::{CommandId, Newest, Slot, TableRef, VersionRef, Written, Xid};
use pgrx::pg_sys;

/// Gives every row its key in an open index with computed keys, before the index is built.
///
/// True: a state that others see was replaced.
///
/// # Safety
/// Both relations are open, and locked as `ambuild` finds them.
pub unsafe fn compute_keys_of_rows(table: pg_sys::Relation, index: pg_sys::Relation) -> bool {
    let mut has_changed = false;
    let mut has_replaced = false;
    // SAFETY: the caller's relations.
    unsafe {
        walk(table, index, |rows, row| match rows.look_at(row) {
            Looked::Fits => true,
            Looked::Differs(seen) => {
                if !has_changed {
                    refuse_without_lock(table);
                }
                has_changed = true;
                has_replaced |= seen.is_known_committed();
                rows.put(row, seen)
            }
            Looked::Busy(xid) => {
                wait_for(xid);
                false
            }
        });
        if has_changed {
            // A state that follows another one with the same columns is a row that was read.
            predicate::move_to_table(table);
        }
    }
    has_replaced
}

/// Raises where others may change rows, or read them for an index.
unsafe fn refuse_without_lock(table: pg_sys::Relation) {
    let lock = pg_sys::ExclusiveLock as pg_sys::LOCKMODE;
    // SAFETY: the caller's open table.
    if unsafe { !pg_sys::CheckRelationLockedByMe(table, lock, true) } {
        let name = super::name_of(table);
        unsupported(
            format!(
                "rows of memory-optimized table \"{name}\" cannot be given keys beside other sessions"
            ),
            "LOCK TABLE ... IN EXCLUSIVE MODE in the same transaction, or REINDEX the table or the index by its name.",
        );
    }
}

/// How many rows have another key in an open index than their columns give: a function of it is
/// not immutable. Rows that a transaction is changing are passed over.
///
/// # Safety
/// Both relations are open, and the index has computed keys. Its functions run as the current user.
pub unsafe fn rows_with_other_keys(table: pg_sys::Relation, index: pg_sys::Relation) -> u64 {
    let mut count = 0;
    // SAFETY: the caller's relations.
    unsafe {
        walk(table, index, |rows, row| {
            count += u64::from(matches!(rows.look_at(row), Looked::Differs(_)));
            true
        });
    }
    count
}

/// Calls `each` with every row, again until it says that it is done with the row.
unsafe fn walk(
    table: pg_sys::Relation,
    index: pg_sys::Relation,
    mut each: impl FnMut(&mut Rows, Slot) -> bool,
) {
    let storage = super::described(table);
    if storage.slots_end() == Slot(0) {
        return;
    }
    // SAFETY: the caller's relations. What is made here goes with the statement after an error.
    unsafe {
        let kind = &raw const pg_sys::TTSOpsHeapTuple;
        let mut rows = Rows {
            storage,
            number: (*index).rd_id.to_u32(),
            evaluator: Evaluator::of_index(table, index),
            slot: pg_sys::MakeSingleTupleTableSlot((*table).rd_att, kind),
            table: (*table).rd_id,
            old: Vec::new(),
            new: Vec::new(),
        };
        for row in 0..storage.slots_end().0 {
            while !each(&mut rows, Slot(row)) {}
            if interrupts::is_pending() {
                interrupts::check_for_interrupts();
            }
        }
        pg_sys::ExecDropSingleTupleTableSlot(rows.slot);
    }
}

/// What a row's key is found to be.
enum Looked {
    /// It has it, or is not there.
    Fits,
    /// This state has another one, or none. The body with the right one is made.
    Differs(VersionRef),
    /// A transaction is changing the row.
    Busy(Xid),
}

/// A walk over all rows.
struct Rows {
    storage: TableRef,
    /// The index's number in rows' tails.
    number: u32,
    evaluator: Evaluator,
    /// The row whose keys are computed.
    slot: *mut pg_sys::TupleTableSlot,
    table: pg_sys::Oid,
    /// Its tuple, and its body with another tail.
    old: Vec<u8>,
    new: Vec<u8>,
}

impl Rows {
    /// Computes the key of a row, and compares it with the one that the row has.
    fn look_at(&mut self, row: Slot) -> Looked {
        let session = session::session();
        let seen = match session.newest(&PgClock, self.storage, row) {
            Newest::None | Newest::Gone => return Looked::Fits,
            Newest::Busy(xid) => return Looked::Busy(xid),
            Newest::Live(version) => version,
        };
        // Ahead of code of users, which may change the row.
        self.old.clear();
        self.old.resize(STAMP_BYTES, 0);
        self.old.extend_from_slice(seen.body());
        let body = &self.old[STAMP_BYTES..];
        or_raise(self.evaluator.tail.take_others(body, self.number));
        let mut tuple = pg_sys::HeapTupleData {
            t_len: (STAMP_BYTES + without_tail(body).len()) as u32,
            t_data: self.old.as_mut_ptr().cast(),
            t_tableOid: self.table,
            ..Default::default()
        };
        // SAFETY: the tuple is of the table's row type, and stays while the slot shows it.
        unsafe {
            pg_sys::ExecStoreHeapTuple(&raw mut tuple, self.slot, false);
            self.evaluator.compute(self.slot);
            pg_sys::ExecClearTuple(self.slot);
        }
        let body = &self.old[STAMP_BYTES..];
        let tail = &self.evaluator.tail;
        if or_raise(tail.is_last_in(body, self.number)) {
            return Looked::Fits;
        }
        self.new.clear();
        or_raise(tail.append_to(without_tail(body), &mut self.new));
        Looked::Differs(seen)
    }

    /// Puts the new state on the row; false: something else has become of it.
    fn put(&self, row: Slot, seen: VersionRef) -> bool {
        let is_newest = |newest| matches!(newest, Newest::Live(version) if version == seen);
        if !is_newest(session::session().newest(&PgClock, self.storage, row)) {
            return false;
        }
        let xid = xact::write_xid();
        // SAFETY: a counter of the transaction.
        let command = CommandId(unsafe { pg_sys::GetCurrentCommandId(true) });
        let (session, storage) = (session::session(), self.storage);
        let work = xact::current();
        let put = work.update(
            session, &PgClock, storage, row, seen, &self.new, xid, command,
        );
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

fn wait_for(xid: Xid) {
    let none = std::ptr::null_mut();
    // SAFETY: waits for a transaction, without a relation for the message.
    unsafe {
        pg_sys::XactLockTableWait(narrow(xid), none, none.cast(), pg_sys::XLTW_Oper::XLTW_None)
    };
}
