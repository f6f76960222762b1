//! The table that a callback changes: its storage, and how a row is formed for it.
use crate::pg::local::ProcessLocal;
use crate::pg::memory::within;
use crate::pg::relation::Relation;
use crate::pg::tuple_slot::TupleSlot;
use crate::rows::write::Target;
use crate::rows::{tid, tuple};
use crate::storage::evaluators::with_tail;
use crate::transaction::relation::LockedRelation;
use crate::transaction::session;
use crate::{errors, pg, serializable, storage};
use mot_engine::key::Tail;
use mot_engine::{CommandId, RowId, VersionRef};
use pgrx::pg_sys;
use std::cell::Cell;

/// A table that is locked for writing.
pub fn of(relation: Relation<'_>) -> Target<'_> {
    let table = storage::table(relation);
    Target {
        relation: LockedRelation::opened(relation),
        session: session::session(),
        table,
        is_serializable: serializable::is_on_for(table),
    }
}

/// Memory for the tuple of one row, from its forming until the engine has copied it.
static ROW_MEMORY: ProcessLocal<Cell<pg_sys::MemoryContext>> =
    ProcessLocal(Cell::new(std::ptr::null_mut()));

/// Forms the row of a slot, with its computed keys, in the process's memory for this. Hands its
/// body to `action`, which writes the row, enters it, and runs no code of users. If `action`
/// answers `None`, it has waited, and others may have made labels. Then the row is formed again.
///
/// # Safety
/// A table that is locked for writing, and a filled slot of its row type.
pub unsafe fn with_body<R>(
    relation: Relation<'_>,
    slot: TupleSlot<'_>,
    action: impl FnMut(&[u8]) -> Option<R>,
) -> R {
    // SAFETY: the caller's table and slot.
    unsafe { with_changed_body(relation, slot, || None, action) }
}

/// The same of a row that replaces one: `old` says which, for a table with computed keys.
///
/// # Safety
/// As for [`with_body`]. The old version is kept by the statement.
pub unsafe fn with_changed_body<R>(
    relation: Relation<'_>,
    slot: TupleSlot<'_>,
    old: impl Fn() -> Option<VersionRef>,
    mut action: impl FnMut(&[u8]) -> Option<R>,
) -> R {
    loop {
        // SAFETY: the caller's slot.
        let form = |tail: Option<&Tail>| action(unsafe { formed(slot, tail) });
        // SAFETY: the caller's table, slot and version.
        let done = unsafe { with_tail(relation, slot, &old, form) };
        if let Some(done) = done {
            return done;
        }
    }
}

/// The same of an action that does not wait.
///
/// # Safety
/// As for [`with_body`].
pub unsafe fn with_body_once<R>(
    relation: Relation<'_>,
    slot: TupleSlot<'_>,
    action: impl FnOnce(&[u8]) -> R,
) -> R {
    // SAFETY: the caller's table and slot.
    unsafe { with_tail(relation, slot, || None, |tail| action(formed(slot, tail))) }
}

/// The row of a slot with its tail, in the process's memory for this. It is formed behind the code
/// of users that computes keys: that may form rows, too.
///
/// # Safety
/// A filled slot. The row is used until the next one is formed.
unsafe fn formed<'a>(slot: TupleSlot<'_>, tail: Option<&Tail>) -> &'a [u8] {
    let memory = empty_row_memory();
    // SAFETY: the caller's slot, and memory that lives as long as the process.
    unsafe {
        within(memory, || {
            let row = tuple::form(slot.as_ptr());
            tail.map_or(row, |tail| tuple::extend(row, tail))
        })
    }
}

/// The memory for one row. What an error leaves in it goes at the next row.
fn empty_row_memory() -> pg_sys::MemoryContext {
    let mut memory = ROW_MEMORY.0.get();
    if memory.is_null() {
        // SAFETY: a variable of this process, of a context that lives as long.
        memory = unsafe { pg::small_context(pg_sys::TopMemoryContext, c"mot row") };
        ROW_MEMORY.0.set(memory);
    }
    // SAFETY: a context that has neither children nor callbacks.
    unsafe { pg::empty_bare_context(memory) };
    memory
}

/// Raises 54000 for a row that no tuple id could name.
pub fn check_row_id(row: RowId) {
    if row.0 >= tid::ROWS_MAX {
        errors::too_many_rows(tid::ROWS_MAX);
    }
}

/// The command that stamps a change.
pub fn command(command: pg_sys::CommandId) -> CommandId {
    CommandId(command)
}
