//! What core leaves to the wrapper of a new row, before it is stored: policies, NOT NULL, CHECK, partition bounds, and the generated columns that come
//! ahead of them.
use crate::pg::executor::compute_stored_generated;
use pgrx::pg_sys;

/// Computes the generated columns of a row's new state, which says its table already.
pub(super) unsafe fn compute_generated(
    estate: *mut pg_sys::EState,
    info: *mut pg_sys::ResultRelInfo,
    slot: *mut pg_sys::TupleTableSlot,
    command: pg_sys::CmdType::Type,
) {
    // SAFETY: an initialized result relation and a filled slot of its row type.
    unsafe {
        let constraints = (*(*slot).tts_tupleDescriptor).constr;
        if !constraints.is_null() && (*constraints).has_generated_stored {
            compute_stored_generated(info, estate, slot, command);
        }
    }
}

/// Raises if the new row is not one that the policies of the table named in the statement, which has row security, let in. (A view's CHECK OPTION is
/// core's task.) For an UPDATE of a partition by its name the bounds come before, as in core; `check` tests them once more, which changes nothing.
pub(super) unsafe fn check_policies(
    estate: *mut pg_sys::EState,
    info: *mut pg_sys::ResultRelInfo,
    slot: *mut pg_sys::TupleTableSlot,
    is_insert: bool,
) {
    // SAFETY: an initialized result relation and a filled slot of its row type.
    unsafe {
        if (*info).ri_WithCheckOptions.is_null() {
            return;
        }
        let kind = if is_insert {
            pg_sys::WCOKind::WCO_RLS_INSERT_CHECK
        } else {
            if is_named_partition(info) {
                (*slot).tts_tableOid = (*(*info).ri_RelationDesc).rd_id;
                pg_sys::ExecPartitionCheck(info, slot, estate, true);
            }
            pg_sys::WCOKind::WCO_RLS_UPDATE_CHECK
        };
        pg_sys::ExecWithCheckOptions(kind, info, slot, estate);
    }
}

/// Whether the statement names a partition itself: its rows have nowhere else to go, so an UPDATE tests the bounds before anything else, as core's does
/// (`ExecUpdateAct`).
unsafe fn is_named_partition(info: *mut pg_sys::ResultRelInfo) -> bool {
    // SAFETY: an initialized result relation.
    unsafe {
        (*(*(*info).ri_RelationDesc).rd_rel).relispartition
            && (*info).ri_RootResultRelInfo.is_null()
    }
}

/// Raises what the new row violates: NOT NULL, CHECK, partition bounds.
pub unsafe fn check(
    estate: *mut pg_sys::EState,
    info: *mut pg_sys::ResultRelInfo,
    slot: *mut pg_sys::TupleTableSlot,
    is_insert: bool,
) {
    // SAFETY: an initialized result relation and a filled slot of its row type.
    unsafe {
        let relation = (*info).ri_RelationDesc;
        (*slot).tts_tableOid = (*relation).rd_id;
        let bounds_first = !is_insert && is_named_partition(info);
        if bounds_first {
            pg_sys::ExecPartitionCheck(info, slot, estate, true);
        }
        if !(*(*relation).rd_att).constr.is_null() {
            pg_sys::ExecConstraints(info, slot, estate);
        }
        if (*(*relation).rd_rel).relispartition && !bounds_first {
            let triggers = (*info).ri_TrigDesc;
            let may_have_moved = !triggers.is_null() && (*triggers).trig_insert_before_row;
            let is_routed = is_insert && !(*info).ri_RootResultRelInfo.is_null();
            if !is_routed || may_have_moved {
                pg_sys::ExecPartitionCheck(info, slot, estate, true);
            }
        }
    }
}
