//! Statements that run.
use pgrx::pg_sys;

/// `WCO_VIEW_CONFLICT_CHECK`: the row in the way of ON CONFLICT DO UPDATE has to be one of the view that the statement names. Minor releases of 2026
/// brought it, not all headers have it; where core does not, no check of a statement is of this kind.
pub const VIEW_CONFLICT_CHECK: pg_sys::WCOKind::Type =
    pg_sys::WCOKind::WCO_RLS_MERGE_DELETE_CHECK + 1;

/// Runs a plan to its end.
pub unsafe fn run_to_end(query: *mut pg_sys::QueryDesc) {
    // SAFETY: as there.
    unsafe { run_up_to(query, 0) }
}

/// Runs a plan, once, up to so many rows (0: all).
pub unsafe fn run_up_to(query: *mut pg_sys::QueryDesc, rows: u64) {
    let forward = pg_sys::ScanDirection::ForwardScanDirection;
    // SAFETY: a started query; may raise.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        pg_sys::ExecutorRun(query, forward, rows, true);
        #[cfg(feature = "pg18")]
        pg_sys::ExecutorRun(query, forward, rows);
    }
}

/// Fires BEFORE UPDATE row triggers of a foreign table, which may change the new row; false: they want nothing to be done.
pub unsafe fn before_update_triggers(
    estate: *mut pg_sys::EState,
    epq: *mut pg_sys::EPQState,
    info: *mut pg_sys::ResultRelInfo,
    old: pg_sys::HeapTuple,
    new: *mut pg_sys::TupleTableSlot,
) -> bool {
    // SAFETY: as core calls it for a foreign table (caller): the old row as a tuple, no tuple id, nobody to tell of a concurrent change.
    unsafe {
        pg_sys::ExecBRUpdateTriggers(
            estate,
            epq,
            info,
            std::ptr::null_mut(),
            old,
            new,
            std::ptr::null_mut(),
            #[cfg(not(feature = "pg15"))]
            std::ptr::null_mut(),
            #[cfg(feature = "pg18")]
            false,
        )
    }
}

/// Fires BEFORE DELETE row triggers of a foreign table; false: they want nothing to be done.
pub unsafe fn before_delete_triggers(
    estate: *mut pg_sys::EState,
    epq: *mut pg_sys::EPQState,
    info: *mut pg_sys::ResultRelInfo,
    old: pg_sys::HeapTuple,
) -> bool {
    // SAFETY: as core calls it for a foreign table (caller): the old row as a tuple, no tuple id, nobody to tell of a concurrent change.
    unsafe {
        pg_sys::ExecBRDeleteTriggers(
            estate,
            epq,
            info,
            std::ptr::null_mut(),
            old,
            std::ptr::null_mut(),
            #[cfg(not(feature = "pg15"))]
            std::ptr::null_mut(),
            #[cfg(not(feature = "pg15"))]
            std::ptr::null_mut(),
            #[cfg(feature = "pg18")]
            false,
        )
    }
}

/// Has every row pass the relation's CHECK conditions, of which there are so many: core takes those that it finds compiled, and lets a row pass one
/// that is empty.
pub unsafe fn pass_all_checks(
    info: *mut pg_sys::ResultRelInfo,
    context: pg_sys::MemoryContext,
    checks: usize,
) {
    // SAFETY: an initialized result relation that no row was judged by; the context is the query's (caller).
    unsafe {
        let empty =
            pg_sys::MemoryContextAllocZero(context, checks * size_of::<*mut pg_sys::ExprState>());
        #[cfg(not(feature = "pg18"))]
        {
            (*info).ri_ConstraintExprs = empty.cast();
        }
        #[cfg(feature = "pg18")]
        {
            (*info).ri_CheckConstraintExprs = empty.cast();
        }
    }
}

/// An execution begins: no row was processed.
pub unsafe fn count_from_zero(estate: *mut pg_sys::EState) {
    // SAFETY: a live executor state (caller).
    unsafe {
        (*estate).es_processed = 0;
        #[cfg(not(feature = "pg15"))]
        {
            (*estate).es_total_processed = 0;
        }
    }
}

/// A run of the execution has ended, with so many rows in `es_processed`. Since 16 a sum over all runs is kept, which pg_stat_statements reads.
#[cfg_attr(feature = "pg15", allow(unused_variables))]
pub unsafe fn sum_up(estate: *mut pg_sys::EState) {
    // SAFETY: a live executor state (caller).
    #[cfg(not(feature = "pg15"))]
    unsafe {
        (*estate).es_total_processed += (*estate).es_processed;
    }
}

/// Gives an executor state of ours its plan's list of rights, in which core's functions look up
/// which columns are changed.
pub unsafe fn give_permissions(estate: *mut pg_sys::EState) {
    // On 15 they are in the range table.
    #[cfg(feature = "pg15")]
    let _ = estate;
    #[cfg(not(feature = "pg15"))]
    // SAFETY: a state with its plan (caller).
    unsafe {
        (*estate).es_rteperminfos = (*(*estate).es_plannedstmt).permInfos;
    }
}

/// Asks for slots of a kind in the place of virtual ones, for a custom scan's node that core is about to initialize.
#[cfg_attr(feature = "pg15", allow(unused_variables))]
pub unsafe fn ask_for_slots(
    node: *mut pg_sys::CustomScanState,
    kind: *const pg_sys::TupleTableSlotOps,
) {
    // SAFETY: a fresh node of the caller's.
    #[cfg(not(feature = "pg15"))]
    unsafe {
        (*node).slotOps = kind;
    }
}

/// Gives such a node slots of the kind at its Begin, if it has others: what core has compiled for those is compiled anew. On 15 nobody can
/// ask for slots.
pub unsafe fn give_slots(
    node: *mut pg_sys::CustomScanState,
    kind: *const pg_sys::TupleTableSlotOps,
) {
    // SAFETY: a node that scans a table, in its Begin; the query's table of slots frees both slots.
    unsafe {
        let scan = &raw mut (*node).ss;
        let state = &mut (*scan).ps;
        let plan = state.plan.cast::<pg_sys::Scan>();
        let table = &raw mut (*state.state).es_tupleTable;
        if std::ptr::eq((*(*scan).ss_ScanTupleSlot).tts_ops, kind) {
            return;
        }
        let row_type = (*(*scan).ss_ScanTupleSlot).tts_tupleDescriptor;
        (*scan).ss_ScanTupleSlot = pg_sys::ExecAllocTableSlot(table, row_type, kind);
        state.scandesc = row_type;
        state.scanops = kind;
        state.scanopsfixed = true;
        state.scanopsset = true;
        // Compiling adds the subplans again.
        state.subPlan = std::ptr::null_mut();
        pg_sys::ExecAssignScanProjectionInfoWithVarno(scan, (*plan).scanrelid as i32);
        state.qual = pg_sys::ExecInitQual((*plan).plan.qual, state);
    }
}
