//! The engine's transaction beside PostgreSQL's.
//!
//! | event | what happens | may raise |
//! |---|---|---|
//! | PRE_COMMIT | storages that go at commit are dropped; the write set goes to the WAL | yes |
//! | COMMIT | versions get COMMITTED, locks are unlinked, dropped storages freed or listed | no |
//! | ABORT | own versions, entries, locks and definitions are unlinked | no |
//! | sub COMMIT | operations of the level belong to the level above | no |
//! | sub ABORT | operations of the level and deeper are undone | no |
//! | PRE_PREPARE | row locks without a change are logged; else as PRE_COMMIT | yes |
//! | PREPARE | the session gives the transaction up: its work stays, under its xid | no |
//! | PARALLEL_* | as COMMIT and ABORT without a write: parallel workers only read | no |
//!
//! - **Order of callbacks.** Ours are registered when the server preloads the library. So they run
//!   after those that others register later, or at first use: what such a callback writes at
//!   PRE_COMMIT is logged, too. A callback of a library preloaded before this one runs after ours.
//!   What it writes is refused, even as the first write of this process.
//! - A transaction without work here costs a test or two for each event.
//! - DELAY_CHKPT_START is up while a record is appended and its rows are marked (`wal_log.rs`).
//! - After PRE_COMMIT only temporary tables may be written (ON COMMIT).
//! - From its first write until COMMIT, ABORT or PREPARE is through, a transaction is marked as one
//!   whose outcome is still needed (`mot_engine/src/reclaim/unresolved.rs`). The server's last
//!   checkpoint waits for it, also if a WAL sender runs it (`session::join_to_write`).
//! - COMMIT and ABORT run when PostgreSQL has decided. They call no PostgreSQL function that can
//!   raise, allocate nothing that can fail, and never panic: a panic there would take the server
//!   down.
//! - At COMMIT and ABORT the transaction's xid is already out of the ProcArray, and its locks are
//!   still held. So a session that sleeps on our row wakes after the callback. Newcomers, and a
//!   waiter that watches us (`wait/watch.rs`), may come before it.
//! - ABORT may come after PRE_COMMIT or PRE_PREPARE has logged: ON COMMIT actions, NOTIFY, SSI's
//!   last check (40001) or another extension's callback may raise. Deferred triggers ran before.
//!   The engine then marks the rows, so that their next change is logged whole.
//!
//! **Prepared transactions.** PostgreSQL counts one as running from before PREPARE until COMMIT
//! PREPARED or ROLLBACK PREPARED, by whichever session, has written the outcome to the commit log.
//! Its dummy process is in the ProcArray, with the locks of relations and of the xid. At its end
//! no code of ours is called, and none needs to be. As for a crashed or a replayed transaction, the
//! commit log says the outcome, the rows are marked for the sweeper, and the reclaimer resolves the
//! definitions. No session can end it before PREPARE is through, because PostgreSQL keeps it locked
//! that long.
//!
//! At a restart it comes back with its state file or its WAL record, and its rows, row locks and
//! definitions with ours (`recovery::load`). The engine's part is
//! `mot_engine/src/transaction/prepare.rs`.
use super::wal_log::WalLog;
use super::{dropped_database, label_locks, relation, session, temporary_drops, unconfirmed, wake};
use crate::errors;
use crate::pg::local::ProcessLocal;
use crate::pg::{self, interrupts};
use mot_engine::{Alias, CommandId, OwnRow, RowId, State, TableRef, Transaction, VersionRef, Xid};
use pgrx::prelude::*;
use std::cell::{Cell, UnsafeCell};
use std::ffi::c_void;

static CURRENT: ProcessLocal<UnsafeCell<Option<Transaction>>> = ProcessLocal(UnsafeCell::new(None));

/// The current transaction's work. What it does from here on is of the current nesting level.
///
/// The reference must not be kept across a call that may start or end a (sub)transaction.
pub fn current() -> &'static mut Transaction {
    let transaction = match existing() {
        Some(transaction) => transaction,
        None => begin_to_work(),
    };
    if let Err(error) = transaction.set_level(pg::nest_level()) {
        errors::raise(error);
    }
    transaction
}

/// The transaction if this process ever had one. Calls nothing.
fn existing() -> Option<&'static mut Transaction> {
    // SAFETY: one thread; callers of `current` give the reference up before any callback below
    // runs.
    unsafe { (*CURRENT.0.get()).as_mut() }
}

/// The alias that a version of a row has as a state of the current transaction.
#[inline]
pub fn alias(table: TableRef, row: RowId, version: VersionRef) -> Option<Alias> {
    existing()?.alias(table, row, version)
}

/// Whether any version has an alias.
pub fn has_aliases() -> bool {
    existing().is_some_and(|transaction| transaction.has_aliases())
}

/// The state of the current transaction that has this alias.
pub fn aliased(alias: Alias) -> Option<(TableRef, RowId, VersionRef)> {
    existing()?.aliased(alias)
}

/// What the current transaction has made of a row, if it has changed it often.
#[inline]
pub fn own_row(table: TableRef, row: RowId) -> Option<&'static OwnRow> {
    existing()?.own_row(table, row)
}

/// Registers the callbacks, for every process; called once, while the server preloads libraries.
pub fn init() {
    // SAFETY: plain variables; called before any fork; the callbacks live as long as the library,
    // which PostgreSQL never unloads.
    unsafe {
        if pg_sys::process_shared_preload_libraries_in_progress {
            #[cfg(debug_assertions)]
            crate::transaction::pauses::register_behind();
            pg_sys::RegisterXactCallback(Some(on_transaction), std::ptr::null_mut());
            pg_sys::RegisterSubXactCallback(Some(on_subtransaction), std::ptr::null_mut());
        }
    }
}

#[cold]
fn begin_to_work() -> &'static mut Transaction {
    session::join();
    // SAFETY: one thread, and no code holds a reference into the empty cell.
    let transaction = unsafe { (*CURRENT.0.get()).insert(Transaction::new()) };
    if IS_ENDING.0.get() {
        transaction.seal();
    }
    transaction
}

/// The full id of the current (sub)transaction, for what it writes. Assigns one if there is none.
/// The first call waits until the tables may be written, and marks the transaction as one whose
/// outcome is still needed. May raise.
pub fn write_xid() -> Xid {
    wait_until_writable();
    let xid = match pg::full_xid_if_any() {
        Some(assigned) => assigned,
        // SAFETY: inside a transaction; may raise (on a standby, in a parallel worker).
        None => unsafe { pg_sys::GetCurrentFullTransactionId() }.value,
    };
    if !IS_MARKED.0.get() {
        mark_unresolved();
    }
    Xid(xid)
}

/// Waits until the tables are ready for writers: before this process writes, locks a row, or looks
/// what keeps it from that. May raise.
#[inline]
pub fn wait_until_writable() {
    if !MAY_WRITE.0.get() {
        begin_to_write();
    }
}

/// The tables have been seen ready for writers; they stay so as long as this process lives.
static MAY_WRITE: ProcessLocal<Cell<bool>> = ProcessLocal(Cell::new(false));

/// Nothing more is logged of this process's transaction, also where it has none of ours yet:
/// between PRE_COMMIT, or PRE_PREPARE, and its end, by whichever event.
static IS_ENDING: ProcessLocal<Cell<bool>> = ProcessLocal(Cell::new(false));

/// This process's transaction is marked as unresolved.
static IS_MARKED: ProcessLocal<Cell<bool>> = ProcessLocal(Cell::new(false));

/// How often a writer looks whether the tables are ready, in milliseconds.
const READY_POLL_MS: i64 = 5;

/// Before this process's first write, or row lock. A session that has read on a standby may come
/// here when the recovery is over and the tables are not yet ready for writers (`recovery::load`):
/// it waits, interruptibly.
#[cold]
fn begin_to_write() {
    if !pg::is_under_postmaster() {
        errors::single_user();
    }
    // What a worker locked or wrote its leader would not know of. Core refuses both; not each
    // version in each build, for a function that is wrongly marked safe.
    if pg::is_parallel_worker() {
        errors::parallel_worker();
    }
    // SAFETY: reads shared state; never raises. In recovery PostgreSQL itself refuses to give an
    // id.
    if unsafe { pg_sys::RecoveryInProgress() } {
        return;
    }
    let engine = crate::shared_memory::engine().unwrap_or_else(|| errors::not_preloaded());
    loop {
        match engine.state() {
            State::Ready => break,
            State::Failed => errors::load_failed(&crate::shared_memory::control().failure()),
            State::Empty | State::Loading | State::Replaying => {}
        }
        interrupts::sleep_ms(READY_POLL_MS);
        interrupts::check_for_interrupts();
    }
    MAY_WRITE.0.set(true);
}

/// The current command id, marked as used, for what the command writes.
#[inline]
pub fn command_id() -> CommandId {
    CommandId(pg::use_command_id())
}

#[pg_guard]
unsafe extern "C-unwind" fn on_transaction(event: pg_sys::XactEvent::Type, _arg: *mut c_void) {
    handle_event(event);
    let is_through = matches!(
        event,
        pg_sys::XactEvent::XACT_EVENT_COMMIT
            | pg_sys::XactEvent::XACT_EVENT_ABORT
            | pg_sys::XactEvent::XACT_EVENT_PREPARE
    );
    if is_through
        && IS_MARKED.0.replace(false)
        && let Some(session) = session::existing()
    {
        session.end_unresolved();
        session::end_write();
    }
}

fn handle_event(event: pg_sys::XactEvent::Type) {
    // First, because the storages of a dropped database become changes of this transaction.
    update_process_state(event);
    apply_to_transaction(event);
}

/// Updates what this process keeps beside its transaction, which it may not have.
fn update_process_state(event: pg_sys::XactEvent::Type) {
    match event {
        pg_sys::XactEvent::XACT_EVENT_PRE_COMMIT => {
            temporary_drops::act_ahead();
            dropped_database::drop_noted();
            IS_ENDING.0.set(true);
        }
        pg_sys::XactEvent::XACT_EVENT_PRE_PREPARE => IS_ENDING.0.set(true),
        pg_sys::XactEvent::XACT_EVENT_ABORT => {
            relation::next_generation();
            IS_ENDING.0.set(false);
            dropped_database::forget();
            temporary_drops::forget();
            unconfirmed::forget_all();
            label_locks::forget_all();
        }
        pg_sys::XactEvent::XACT_EVENT_COMMIT | pg_sys::XactEvent::XACT_EVENT_PREPARE => {
            IS_ENDING.0.set(false);
            temporary_drops::forget();
        }
        _ => {}
    }
}

/// Applies an event to the transaction of this process, if it has one.
fn apply_to_transaction(event: pg_sys::XactEvent::Type) {
    let Some(transaction) = existing() else {
        return;
    };
    match event {
        pg_sys::XactEvent::XACT_EVENT_PRE_COMMIT => {
            if transaction.has_changes() {
                log(transaction);
            }
            transaction.seal();
        }
        pg_sys::XactEvent::XACT_EVENT_PRE_PREPARE => {
            if !transaction.is_empty() {
                prepare(transaction);
            }
            transaction.seal();
        }
        pg_sys::XactEvent::XACT_EVENT_PREPARE => {
            if let Some(session) = session::existing()
                && !transaction.is_empty()
            {
                let has_defined = transaction.has_definitions();
                transaction.give_up(session);
                if has_defined {
                    // What it made may be gone before this process hears of it.
                    relation::forget_all();
                }
            }
            transaction.unseal();
        }
        pg_sys::XactEvent::XACT_EVENT_COMMIT => {
            if let Some(session) = session::existing()
                && !transaction.is_empty()
            {
                transaction.commit(session);
                wake::after_commit(session);
            }
            transaction.unseal();
        }
        pg_sys::XactEvent::XACT_EVENT_ABORT | pg_sys::XactEvent::XACT_EVENT_PARALLEL_ABORT => {
            if let Some(session) = session::existing() {
                session.reset();
                if !transaction.is_empty() {
                    transaction.abort(session);
                }
                relation::forget_all();
            }
            transaction.unseal();
        }
        _ => {}
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn on_subtransaction(
    event: pg_sys::SubXactEvent::Type,
    _id: pg_sys::SubTransactionId,
    _parent: pg_sys::SubTransactionId,
    _arg: *mut c_void,
) {
    if event == pg_sys::SubXactEvent::SUBXACT_EVENT_ABORT_SUB {
        relation::next_generation();
        unconfirmed::forget(pg::nest_level());
        label_locks::forget(pg::nest_level());
    }
    let Some(transaction) = existing() else {
        return;
    };
    match event {
        pg_sys::SubXactEvent::SUBXACT_EVENT_COMMIT_SUB if !transaction.is_empty() => {
            transaction.savepoint_commit(pg::nest_level());
        }
        pg_sys::SubXactEvent::SUBXACT_EVENT_ABORT_SUB => {
            if let Some(session) = session::existing() {
                session.reset();
                if !transaction.is_empty() {
                    transaction.savepoint_abort(session, pg::nest_level());
                }
                relation::forget_all();
            }
        }
        _ => {}
    }
}

/// Marks the transaction as unresolved from its oldest id on, which is the top one. It is called at
/// the first write, which has assigned an id.
fn mark_unresolved() {
    if let Some(top) = pg::top_full_xid_if_any() {
        session::join_to_write().begin_unresolved(Xid(top));
        IS_MARKED.0.set(true);
    }
}

/// Logs the row locks and the changes of a transaction that is being prepared.
fn prepare(transaction: &mut Transaction) {
    let Some(session) = session::existing() else {
        return;
    };
    if let Some(top) = pg::full_xid_if_any() {
        let logged = transaction.log_locks(session, Xid(top), &mut WalLog::default());
        if let Err(error) = logged {
            errors::raise(error);
        }
    }
    if transaction.has_changes() {
        log(transaction);
    }
}

/// Writes the surviving write set to the WAL, ahead of PostgreSQL's commit record.
fn log(transaction: &mut Transaction) {
    let Some(session) = session::existing() else {
        return;
    };
    // Here the current id is the top-level transaction's.
    let top = pg::full_xid_if_any().map(Xid);
    let newest = transaction.newest_xid().filter(|xid| Some(*xid) > top);
    let logged = transaction.log(session, &mut WalLog::naming(newest));
    if let Err(error) = logged {
        errors::raise(error);
    }
}
