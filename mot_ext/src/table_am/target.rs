//! The table that a callback changes: its storage, and how a row is formed for it.
use crate::pg::local::ProcessLocal;
use crate::rows::write::Target;
use crate::rows::{tid, tuple};
use crate::storage::computed_keys::with_tail;
use crate::transaction::relation::Relation;
use crate::transaction::session;
use crate::{errors, pg, serializable, storage};
use mot_engine::{CommandId, Slot};
use pgrx::pg_sys;
use std::cell::Cell;

/// An open table, locked for writing.
///
/// # Safety
/// The relation stays open as long as the value is used.
pub unsafe fn of(relation: pg_sys::Relation) -> Target {
    let table = storage::table(relation);
    Target {
        // SAFETY: the caller's open relation.
        relation: unsafe { Relation::opened(relation) },
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
/// An open table, locked for writing, and a filled slot of its row type.
pub unsafe fn with_body<R>(
    relation: pg_sys::Relation,
    slot: *mut pg_sys::TupleTableSlot,
    mut action: impl FnMut(&[u8]) -> Option<R>,
) -> R {
    loop {
        // SAFETY: the caller's table and slot.
        let done = unsafe { with_body_once(relation, slot, &mut action) };
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
    relation: pg_sys::Relation,
    slot: *mut pg_sys::TupleTableSlot,
    action: impl FnOnce(&[u8]) -> R,
) -> R {
    // Computing keys runs code of users, which may form rows, too: so it comes first.
    // SAFETY: the caller's table and slot. The context lives as long as the process, and has
    // neither children nor callbacks. What an error leaves in it goes at the next row.
    unsafe {
        with_tail(relation, slot, |tail| {
            let mut memory = ROW_MEMORY.0.get();
            if memory.is_null() {
                memory = pg::small_context(pg_sys::TopMemoryContext, c"mot row");
                ROW_MEMORY.0.set(memory);
            }
            pg::empty_bare_context(memory);
            let old = pg_sys::MemoryContextSwitchTo(memory);
            let row = tuple::form(slot);
            let body = tail.map_or(row, |tail| tuple::extend(row, tail));
            pg_sys::MemoryContextSwitchTo(old);
            action(body)
        })
    }
}

/// Raises 54000 for a row that no tuple id could name.
pub fn check_row_id(row: Slot) {
    if row.0 >= tid::ROWS_MAX {
        errors::too_many_rows(tid::ROWS_MAX);
    }
}

/// The command that stamps a change.
pub fn command(command: pg_sys::CommandId) -> CommandId {
    CommandId(command)
}
