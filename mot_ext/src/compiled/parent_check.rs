//! The check of a new row's foreign key: that its parent is there, and stays.
//!
//! Core queues the check as a trigger, and fires it. The code that fires it looks the trigger's
//! function up in the result relation's `ri_TrigFunctions`, where a function that is there already
//! is taken as it is. [`take_over`] puts ours there for the two triggers `RI_FKey_check_ins` and
//! `RI_FKey_check_upd`. Core's opens both tables and runs a query through SPI for each row. Ours
//! looks the parent's key up (`parent.rs`), and calls core's for all that is not simply right: a
//! NULL, a parent that is missing, has changed, is to be waited for or is no memory-optimized
//! table, a right that the owner does not have, an interrupt. So waits and errors are core's own,
//! and the functions are plain frames, which those errors pass as they were raised.
//!
//! Checks that core fires by itself, as deferred ones at COMMIT and those of COPY, are core's.
#![allow(ffi_unwind_calls)]
use super::entry::SerialHasher;
use super::frame::Row;
use super::hooks;
use super::parent::Parent;
use super::watch;
use crate::pg::local::ProcessLocal;
use crate::pg::memory::within;
use crate::pg::node::Node;
use crate::pg::relation::Relation;
use crate::pg::{guard, interrupts};
use crate::transaction::relation;
use pgrx::pg_sys;
use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;

/// Constraints that a process keeps; each takes some 10 kB.
const CONSTRAINTS_MAX: usize = 256;

/// What was found of a constraint.
struct CachedConstraint {
    /// `relation::generation` before it was looked up. A change of either table, of the constraint
    /// or of an index moves that on.
    generation: u64,
    /// `None`: core's query has to look.
    parent: Option<Parent>,
}

/// The constraints that this process has met, by oid. `None` before the first.
static CONSTRAINTS: ProcessLocal<RefCell<Option<Constraints>>> = ProcessLocal(RefCell::new(None));

type Constraints = HashMap<u64, CachedConstraint, BuildHasherDefault<SerialHasher>>;

/// Has the checks of new rows of a result relation made here, on the terms of compiled statements.
/// Raises nothing.
///
/// # Safety
/// A relation's `ri_TrigFunctions` that core has not filled yet; the current context lives as long.
pub unsafe fn take_over(info: Node<'_, pg_sys::ResultRelInfo>) {
    let Some(triggers) = info.ri_TrigDesc() else {
        return;
    };
    let may_check = triggers.trig_insert_after_row() || triggers.trig_update_after_row();
    if !may_check || !hooks::others_miss_no_query() {
        return;
    }
    for (at, trigger) in triggers.all().enumerate() {
        let function: pg_sys::PGFunction = match trigger.tgfoid().to_u32() {
            pg_sys::F_RI_FKEY_CHECK_INS => Some(check_inserted),
            pg_sys::F_RI_FKEY_CHECK_UPD => Some(check_updated),
            _ => continue,
        };
        if is_of_core(trigger) {
            // SAFETY: a place of the relation's functions; ours, as core calls this trigger's.
            unsafe { info.fill_function(at, trigger.tgfoid(), function) };
        }
    }
}

/// Whether a trigger is one that core made for a foreign key. Users may make others with these
/// functions, on views and before rows, too, which raise that.
fn is_of_core(trigger: Node<'_, pg_sys::Trigger>) -> bool {
    let timing = u32::from(trigger.tgtype() as u16);
    let is_after_row = timing & pg_sys::TRIGGER_TYPE_ROW != 0
        && timing & (pg_sys::TRIGGER_TYPE_BEFORE | pg_sys::TRIGGER_TYPE_INSTEAD) == 0;
    trigger.tgisinternal() && is_after_row && trigger.tgconstrindid() != pg_sys::InvalidOid
}

/// The same for the tables that a query of core's executor writes to.
///
/// # Safety
/// A query that was just started.
#[inline]
pub unsafe fn take_over_of(query: Node<'_, pg_sys::QueryDesc>) {
    let Some(estate) = query.estate() else {
        return;
    };
    let targets = estate.es_opened_result_relations();
    if targets.is_empty() {
        return;
    }
    // SAFETY: the started query's executor state; the functions go with it.
    unsafe {
        within(estate.es_query_cxt(), || {
            targets.iter().for_each(|target| take_over(target));
        });
    }
}

unsafe extern "C-unwind" {
    // Core's own functions without pgrx's guard: see the module header.
    #[link_name = "RI_FKey_check_ins"]
    fn check_inserted_by_query(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum;
    #[link_name = "RI_FKey_check_upd"]
    fn check_updated_by_query(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum;
}

unsafe extern "C-unwind" fn check_inserted(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    // SAFETY: as core calls a trigger's function; a frame with nothing to drop.
    unsafe {
        match may_look() && guard::run(|| is_right(call)) {
            true => pg_sys::Datum::null(),
            false => check_inserted_by_query(call),
        }
    }
}

unsafe extern "C-unwind" fn check_updated(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    // SAFETY: as above.
    unsafe {
        match may_look() && guard::run(|| is_right(call)) {
            true => pg_sys::Datum::null(),
            false => check_updated_by_query(call),
        }
    }
}

/// Whether the parent of the trigger's row was found, and is locked. False: core has to look.
///
/// # Safety
/// Core's call of a trigger's function.
unsafe fn is_right(call: pg_sys::FunctionCallInfo) -> bool {
    // SAFETY: the caller's; the table is open for the call.
    let (fired, table) = unsafe {
        let fired = Node::<pg_sys::TriggerData>::enter((*call).context.cast());
        (fired, Relation::enter(fired.tg_relation()))
    };
    let is_update = fired.tg_event() & pg_sys::TRIGGER_EVENT_OPMASK == pg_sys::TRIGGER_EVENT_UPDATE;
    let row = match is_update {
        true => fired.tg_newslot(),
        false => fired.tg_trigslot(),
    };
    let Some((trigger, row)) = fired.tg_trigger().zip(row) else {
        return false;
    };
    with_parent(table, trigger, |parent| {
        // SAFETY: core has put the row into the slot, of the table's kind.
        unsafe { is_newest(table, row) && parent.owner_may_look() && parent.holds(row) }
    })
}

/// Whether a check may be made here now. Interrupts are for core's query: the firing of triggers
/// does not check them.
fn may_look() -> bool {
    hooks::may_write() && !interrupts::is_pending()
}

/// Whether a row is still what core should check: one that the statement has changed again has a
/// check of its own.
///
/// # Safety
/// A row of the table in a slot of its kind.
unsafe fn is_newest(table: Relation<'_>, row: Row<'_>) -> bool {
    let (table, row) = (table.as_ptr(), row.as_ptr());
    // SAFETY: one guarded call of the table's own function, as core asks.
    unsafe {
        let asks = (*(*table).rd_tableam).tuple_satisfies_snapshot;
        let asks = asks.expect("a method's function");
        pg_sys::ffi::pg_guard_ffi_boundary(|| {
            #[allow(ffi_unwind_calls)]
            asks(table, row, &raw mut pg_sys::SnapshotSelfData)
        })
    }
}

/// Runs `look` with the parent of the constraint that a trigger of an open child checks. The parent
/// is locked. False: core has to look.
fn with_parent(
    child: Relation<'_>,
    trigger: Node<'_, pg_sys::Trigger>,
    look: impl FnOnce(&mut Parent) -> bool,
) -> bool {
    let Ok(mut kept) = CONSTRAINTS.0.try_borrow_mut() else {
        return false;
    };
    let all = kept.get_or_insert_with(|| {
        watch::begin();
        Constraints::default()
    });
    let number = u64::from(trigger.tgconstraint().to_u32());
    let cached = all.get_mut(&number).filter(|cached| {
        // What others have done to the tables is known after they are locked.
        cached.parent.as_ref().inspect(|parent| parent.lock());
        cached.generation == relation::generation()
    });
    let parent = match cached {
        Some(cached) => cached.parent.as_mut(),
        None => {
            all.remove(&number);
            if all.len() >= CONSTRAINTS_MAX
                && let Some(any) = all.keys().next().copied()
            {
                all.remove(&any);
            }
            let generation = relation::generation();
            let parent = Parent::of(child, trigger);
            let cached = CachedConstraint { generation, parent };
            all.entry(number).or_insert(cached).parent.as_mut()
        }
    };
    parent.is_some_and(look)
}
