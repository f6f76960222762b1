//! Row triggers, where core needs help with them.
use crate::errors;
use crate::pg::{text, version};
use pgrx::pg_sys;

/// Whether BEFORE row triggers run for each row that a command changes.
unsafe fn run_before(triggers: *const pg_sys::TriggerDesc, command: pg_sys::CmdType::Type) -> bool {
    // SAFETY: a relation's triggers, or none.
    let Some(triggers) = (unsafe { triggers.as_ref() }) else {
        return false;
    };
    match command {
        pg_sys::CmdType::CMD_UPDATE => triggers.trig_update_before_row,
        pg_sys::CmdType::CMD_DELETE => triggers.trig_delete_before_row,
        _ => false,
    }
}

/// Hides the BEFORE row triggers of a command from core for good, in the result relation's own copy of its triggers: `modify` fires them
/// (`modify/before.rs`). Whether there are any.
pub unsafe fn take_before(
    triggers: *mut pg_sys::TriggerDesc,
    command: pg_sys::CmdType::Type,
) -> bool {
    // SAFETY: an initialized result relation's triggers, or none.
    unsafe {
        if !run_before(triggers, command) {
            return false;
        }
        match command {
            pg_sys::CmdType::CMD_UPDATE => (*triggers).trig_update_before_row = false,
            _ => (*triggers).trig_delete_before_row = false,
        }
        true
    }
}

/// What a plan has to know of a table's row triggers: with any it gives the old row along.
#[derive(Clone, Copy)]
pub struct Planned {
    pub any: bool,
}

impl Planned {
    /// None that a plan has to know of, as for INSERT: there is no old row.
    pub fn none() -> Planned {
        Planned { any: false }
    }

    /// For a command on a relation as it is now.
    pub unsafe fn of(relation: pg_sys::Relation, command: pg_sys::CmdType::Type) -> Planned {
        // SAFETY: an open relation.
        unsafe {
            let triggers = (*relation).trigdesc;
            let before = run_before(triggers, command);
            let after = triggers.as_ref().is_some_and(|triggers| match command {
                pg_sys::CmdType::CMD_UPDATE => triggers.trig_update_after_row,
                pg_sys::CmdType::CMD_DELETE => triggers.trig_delete_after_row,
                _ => false,
            });
            Planned {
                any: before || after,
            }
        }
    }

    /// Raises an error if a plan made for this is to run with row triggers that it knows nothing of. A SQL function keeps its plans until the
    /// calling query ends, whatever that query does meanwhile; core would take an old row that there is not for one.
    pub unsafe fn check(self, relation: pg_sys::Relation, command: pg_sys::CmdType::Type) {
        // SAFETY: an open relation.
        let now = unsafe { Planned::of(relation, command) };
        if now.any && !self.any {
            // SAFETY: as above; a name ends with 0.
            let name = unsafe { text::from_c((*(*relation).rd_rel).relname.data.as_ptr()) };
            errors::plan_without_triggers(&name);
        }
    }
}

/// AFTER row triggers that core is not to fire for one row, as they were fired here: it would take a row that ON CONFLICT DO UPDATE updated for
/// a new one, and shows as OLD what the plan's scan saw, though the row was changed since. The flag is in the result relation's own copy of
/// its triggers.
pub struct Hidden {
    flag: *mut bool,
}

impl Hidden {
    /// Core fires all.
    pub fn none() -> Self {
        Hidden {
            flag: std::ptr::null_mut(),
        }
    }

    /// Core does not fire those of `flag` for the row that it gets back.
    pub unsafe fn hide(&mut self, flag: *mut bool) {
        // SAFETY: in the triggers of an initialized result relation, which live as long as this.
        if unsafe { flag.replace(false) } {
            self.flag = flag;
        }
    }

    /// Another row comes.
    pub unsafe fn show(&mut self) {
        let flag = std::mem::replace(&mut self.flag, std::ptr::null_mut());
        if !flag.is_null() {
            // SAFETY: as in `hide`.
            unsafe { *flag = true };
        }
    }
}

/// Fires BEFORE UPDATE row triggers, which may change the new row; false: they want nothing to be done.
pub unsafe fn fire_before_update(
    node: *mut pg_sys::ModifyTableState,
    estate: *mut pg_sys::EState,
    info: *mut pg_sys::ResultRelInfo,
    old: pg_sys::HeapTuple,
    new: *mut pg_sys::TupleTableSlot,
) -> bool {
    // SAFETY: as core calls it for a foreign table: the old row as a tuple, no tuple id.
    unsafe { version::before_update_triggers(estate, &raw mut (*node).mt_epqstate, info, old, new) }
}

/// Fires BEFORE DELETE row triggers; false: they want nothing to be done.
pub unsafe fn fire_before_delete(
    node: *mut pg_sys::ModifyTableState,
    estate: *mut pg_sys::EState,
    info: *mut pg_sys::ResultRelInfo,
    old: pg_sys::HeapTuple,
) -> bool {
    // SAFETY: as core calls it for a foreign table: the old row as a tuple, no tuple id.
    unsafe { version::before_delete_triggers(estate, &raw mut (*node).mt_epqstate, info, old) }
}

/// Queues AFTER UPDATE row triggers.
pub unsafe fn fire_after_update(
    estate: *mut pg_sys::EState,
    info: *mut pg_sys::ResultRelInfo,
    old: pg_sys::HeapTuple,
    new: *mut pg_sys::TupleTableSlot,
) {
    // SAFETY: as core calls it for a foreign table, which has no transition tables.
    unsafe {
        pg_sys::ExecARUpdateTriggers(
            estate,
            info,
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            old,
            new,
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            false,
        );
    }
}

/// Queues AFTER DELETE row triggers.
pub unsafe fn fire_after_delete(
    estate: *mut pg_sys::EState,
    info: *mut pg_sys::ResultRelInfo,
    old: pg_sys::HeapTuple,
) {
    // SAFETY: as core calls it for a foreign table, which has no transition tables.
    unsafe {
        pg_sys::ExecARDeleteTriggers(
            estate,
            info,
            std::ptr::null_mut(),
            old,
            std::ptr::null_mut(),
            false,
        );
    }
}
