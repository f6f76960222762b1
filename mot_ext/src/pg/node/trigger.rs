//! Fields of triggers, and of what core asks about a table that is written to.
use super::{Node, views};
use pgrx::pg_sys::{self, Oid};

views! {
    ResultRelInfo = T_ResultRelInfo {
        node ri_TrigDesc: pg_sys::TriggerDesc,
    }
    TriggerData = T_TriggerData {
        value tg_event: pg_sys::TriggerEvent,
        value tg_relation: pg_sys::Relation,
        node tg_trigger: pg_sys::Trigger,
        node tg_trigslot: pg_sys::TupleTableSlot,
        node tg_newslot: pg_sys::TupleTableSlot,
    }
    TriggerDesc {
        value trig_insert_after_row: bool,
        value trig_update_after_row: bool,
        value trig_delete_after_row: bool,
    }
    Trigger {
        value tgfoid: Oid,
        value tgtype: i16,
        value tgisinternal: bool,
        value tgconstrindid: Oid,
        value tgconstraint: Oid,
        has tgqual,
    }
}

impl Node<'_, pg_sys::ResultRelInfo> {
    /// Gives a trigger a function to be called in the place of core's own one, as `fmgr_info` fills
    /// in one of the server's, unless it has one.
    ///
    /// # Safety
    /// The table has so many triggers. The function does what the one with this oid does. The
    /// current memory context lives as long as what is filled in.
    pub unsafe fn fill_function(self, at: usize, oid: Oid, function: pg_sys::PGFunction) {
        // SAFETY: a live structure with a place for a function of each trigger.
        unsafe {
            let place = &mut *(*self.as_ptr()).ri_TrigFunctions.add(at);
            if place.fn_oid != pg_sys::InvalidOid {
                return;
            }
            place.fn_addr = function;
            place.fn_oid = oid;
            place.fn_stats = pg_sys::TrackFunctionsLevel::TRACK_FUNC_ALL as u8;
            place.fn_mcxt = pg_sys::CurrentMemoryContext;
        }
    }
}

impl<'p> Node<'p, pg_sys::TriggerDesc> {
    /// The triggers.
    pub fn all(self) -> impl Iterator<Item = Node<'p, pg_sys::Trigger>> {
        let (first, count) = (self.fields().triggers, self.fields().numtriggers as usize);
        // SAFETY: an array with its length, as live as this.
        (0..count).map(move |at| unsafe { Node::enter(first.add(at)) })
    }
}
