//! Row triggers, where core needs help with them.
use crate::pg::version;
use pgrx::pg_sys;

/// Whether row triggers of an UPDATE or DELETE are shown the old row: then the plan's scan locks the rows, see plan.rs.
pub unsafe fn see_old_rows(
    plan: *mut pg_sys::ModifyTable,
    info: *mut pg_sys::ResultRelInfo,
) -> bool {
    // SAFETY: an initialized result relation; COPY has no plan.
    unsafe {
        let triggers = (*info).ri_TrigDesc;
        if plan.is_null() || triggers.is_null() {
            return false;
        }
        let triggers = &*triggers;
        match (*plan).operation {
            pg_sys::CmdType::CMD_UPDATE => {
                triggers.trig_update_before_row || triggers.trig_update_after_row
            }
            pg_sys::CmdType::CMD_DELETE => {
                triggers.trig_delete_before_row || triggers.trig_delete_after_row
            }
            _ => false,
        }
    }
}

/// AFTER INSERT row triggers of a result relation. Core fires them for each row it gets back from an INSERT, though ON CONFLICT DO
/// UPDATE may have updated it; so they are hidden for that row. The descriptor is the result relation's own copy.
pub struct InsertTriggers {
    are_hidden: bool,
}

impl InsertTriggers {
    /// Core fires them.
    pub fn new() -> Self {
        InsertTriggers { are_hidden: false }
    }

    /// The row that core gets back was not inserted.
    pub unsafe fn hide(&mut self, info: *mut pg_sys::ResultRelInfo) {
        // SAFETY: an initialized result relation with triggers.
        unsafe {
            let shown = &mut (*(*info).ri_TrigDesc).trig_insert_after_row;
            self.are_hidden |= std::mem::replace(shown, false);
        }
    }

    /// Another row comes.
    pub unsafe fn show(&mut self, info: *mut pg_sys::ResultRelInfo) {
        if std::mem::replace(&mut self.are_hidden, false) {
            // SAFETY: the result relation that `hide` was called with.
            unsafe { (*(*info).ri_TrigDesc).trig_insert_after_row = true };
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
