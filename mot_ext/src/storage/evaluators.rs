//! The evaluators of computed keys that a transaction keeps.
//!
//! - One lives no longer than the transaction, and no longer than the next invalidation of any
//!   relation or function: as long as core would keep what it has prepared, or less.
//! - One in use is not in the cache: its expressions run code of users, which may write to the same
//!   table.
use super::computed_keys::{Evaluator, are_on};
use crate::pg::local::ProcessLocal;
use crate::pg::relation::Relation;
use crate::pg::tuple_slot::TupleSlot;
use crate::transaction::{label_locks, relation};
use mot_engine::VersionRef;
use mot_engine::key::Tail;
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;

/// Until when an evaluator is good.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Moment {
    /// The transaction.
    transaction: u64,
    invalidations: Invalidations,
}

/// How many invalidations there were, of relations and of functions.
type Invalidations = (u64, u64);

/// The evaluators of this transaction, by table.
#[derive(Default)]
struct Kept {
    moment: Moment,
    of_tables: HashMap<u32, Evaluator>,
}

struct Cache {
    kept: RefCell<Option<Kept>>,
    /// How many invalidations of functions this process has seen.
    functions: Cell<u64>,
}

static CACHE: ProcessLocal<Cache> = ProcessLocal(Cache {
    kept: RefCell::new(None),
    functions: Cell::new(0),
});

#[pg_guard]
unsafe extern "C-unwind" fn on_function(_arg: pg_sys::Datum, _cache: i32, _hash: u32) {
    CACHE.functions.set(CACHE.functions.get() + 1);
}

fn invalidations() -> Invalidations {
    (relation::generation(), CACHE.functions.get())
}

fn moment() -> Moment {
    Moment {
        // SAFETY: the caller is about to write, so it may have an id.
        transaction: unsafe { pg_sys::GetTopFullTransactionId() }.value,
        invalidations: invalidations(),
    }
}

/// Takes the evaluator of a table that is locked for writing out of the cache, or makes one.
fn take(table: Relation<'_>, now: Moment) -> Evaluator {
    let oid = table.oid().to_u32();
    let stale = {
        let mut kept = CACHE.kept.borrow_mut();
        let kept = kept.get_or_insert_with(|| {
            let functions = pg_sys::SysCacheIdentifier::PROCOID as i32;
            // SAFETY: once in a process; the callback only counts.
            unsafe {
                pg_sys::CacheRegisterSyscacheCallback(
                    functions,
                    Some(on_function),
                    pg_sys::Datum::null(),
                );
            }
            Kept::default()
        });
        if kept.moment == now {
            if let Some(evaluator) = kept.of_tables.remove(&oid) {
                return evaluator;
            }
            HashMap::new()
        } else {
            kept.moment = now;
            std::mem::take(&mut kept.of_tables)
        }
    };
    // Freed outside the cache: it calls core.
    drop(stale);
    Evaluator::of_table(table)
}

/// Puts an evaluator back that this transaction took at a moment, unless that is over.
fn put_back(table: u32, taken: Moment, evaluator: Evaluator) {
    let replaced = match CACHE.kept.borrow_mut().as_mut() {
        Some(kept) if kept.moment == taken && taken.invalidations == invalidations() => {
            kept.of_tables.insert(table, evaluator)
        }
        _ => Some(evaluator),
    };
    drop(replaced);
}

/// Calls `action` with the computed keys of the row in a slot; `None`: the table has no such
/// indexes. The action runs no code of users. Of a row that replaces one, `old` says which.
///
/// # Safety
/// The table is locked for writing, and the slot a filled one of its row type. The old version is
/// kept meanwhile.
pub unsafe fn with_tail<R>(
    table: Relation<'_>,
    slot: TupleSlot<'_>,
    old: impl FnOnce() -> Option<VersionRef>,
    action: impl FnOnce(Option<&Tail>) -> R,
) -> R {
    if !are_on(table) {
        return action(None);
    }
    let old = old();
    let taken = moment();
    let mut evaluator = take(table, taken);
    let outer = label_locks::begin();
    loop {
        evaluator.tail.clear();
        // SAFETY: the caller's slot and version.
        unsafe { evaluator.compute_changed(slot, old) };
        // Code of users has waited for another transaction, which no comparison should.
        if !label_locks::were_released() {
            break;
        }
        label_locks::begin_again();
    }
    let result = action(Some(&evaluator.tail));
    label_locks::end(outer);
    put_back(table.oid().to_u32(), taken, evaluator);
    result
}
