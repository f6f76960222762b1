//! Statements that run.
use crate::pg::node::Node;
use pgrx::pg_sys;

/// How far a run of an execution goes, as core says it.
#[derive(Clone, Copy)]
pub struct Extent {
    pub direction: pg_sys::ScanDirection::Type,
    /// Rows at most; 0: all.
    pub count: u64,
    /// The execution is run no second time.
    #[cfg(not(feature = "pg18"))]
    pub is_once: bool,
}

/// Makes a function of `ExecutorRun_hook`: `run_hook!(name, function)`, where the function takes a
/// query and an [`Extent`]. Its frame has nothing to drop.
macro_rules! run_hook {
    ($name:ident, $function:ident) => {
        unsafe extern "C-unwind" fn $name(
            query: *mut pgrx::pg_sys::QueryDesc,
            direction: pgrx::pg_sys::ScanDirection::Type,
            count: u64,
            #[cfg(not(feature = "pg18"))] is_once: bool,
        ) {
            let extent = $crate::pg::version::Extent {
                direction,
                count,
                #[cfg(not(feature = "pg18"))]
                is_once,
            };
            // SAFETY: as core calls it.
            unsafe { $function(query, extent) }
        }
    };
}
pub(crate) use run_hook;

/// Runs a query by the next hook, or by core's executor.
///
/// # Safety
/// As core calls a hook. The caller is a plain frame: no guard is between it and core.
#[inline]
#[allow(ffi_unwind_calls)]
pub unsafe fn run_query(
    next: pg_sys::ExecutorRun_hook_type,
    query: *mut pg_sys::QueryDesc,
    extent: Extent,
) {
    unsafe extern "C-unwind" {
        #[link_name = "standard_ExecutorRun"]
        fn standard_run(
            query: *mut pg_sys::QueryDesc,
            direction: pg_sys::ScanDirection::Type,
            count: u64,
            #[cfg(not(feature = "pg18"))] is_once: bool,
        );
    }
    // SAFETY: the caller's.
    unsafe {
        match next {
            Some(next) => next(
                query,
                extent.direction,
                extent.count,
                #[cfg(not(feature = "pg18"))]
                extent.is_once,
            ),
            None => standard_run(
                query,
                extent.direction,
                extent.count,
                #[cfg(not(feature = "pg18"))]
                extent.is_once,
            ),
        }
    }
}

/// An execution begins: no row was processed.
pub fn count_from_zero(estate: Node<'_, pg_sys::EState>) {
    estate.set_processed(0);
    // SAFETY: a live executor state.
    #[cfg(not(feature = "pg15"))]
    unsafe {
        (*estate.as_ptr()).es_total_processed = 0;
    }
}

/// A run of the execution has ended, with so many rows in `es_processed`. Since 16 a sum over all
/// runs is kept, which pg_stat_statements reads.
#[cfg_attr(feature = "pg15", allow(unused_variables))]
pub fn sum_up(estate: Node<'_, pg_sys::EState>) {
    // SAFETY: a live executor state.
    #[cfg(not(feature = "pg15"))]
    unsafe {
        (*estate.as_ptr()).es_total_processed += estate.es_processed();
    }
}

/// Raises 42501 if the current user may not do what the plan does.
pub fn check_permissions(plan: Node<'_, pg_sys::PlannedStmt>) {
    let entries = plan.rtable().as_ptr();
    // SAFETY: a finished plan; may raise.
    unsafe {
        #[cfg(feature = "pg15")]
        pg_sys::ExecCheckRTPerms(entries, true);
        #[cfg(not(feature = "pg15"))]
        pg_sys::ExecCheckPermissions(entries, (*plan.as_ptr()).permInfos, true);
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

/// Asks for slots of a kind in the place of virtual ones, for a custom scan's node that core is
/// about to initialize.
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

/// Gives such a node slots of the kind at its Begin, if it has others: what core has compiled for
/// those is compiled anew. On 15 no caller can ask for slots.
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
