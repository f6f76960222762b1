//! The scan as a node of a plan: core's callbacks.

use super::Scan;
use crate::executor::expressions::Value;
use crate::executor::filter::Verdict;
use crate::fdw::aggregate;
use crate::fdw::modify;
use crate::fdw::private::{Private, cells};
use crate::fdw::row_slot;
use crate::fdw::tuple;
use crate::pg::interrupts;
use pgrx::PgMemoryContexts;
use pgrx::pg_sys;

/// Whether the node scans a table with generated columns of which rows are changed by its statement.
pub(super) unsafe fn scans_generated_target(
    node: *mut pg_sys::ForeignScanState,
    relation: pg_sys::Relation,
) -> bool {
    // SAFETY: an initialized node over an open relation; a list of positions in the statement's range table.
    unsafe {
        let constraints = (*(*relation).rd_att).constr;
        if constraints.is_null() || !(*constraints).has_generated_stored {
            return false;
        }
        let estate = (*node).ss.ps.state;
        let statement = (*estate).es_plannedstmt;
        let position = (*(*node).ss.ps.plan.cast::<pg_sys::ForeignScan>())
            .scan
            .scanrelid;
        // A re-evaluation has no result relations of its own.
        (*estate).es_epq_active.is_null()
            && !statement.is_null()
            && pg_sys::list_member_int((*statement).resultRelations, position as i32)
    }
}

/// The node's scan; NULL when it was only initialized for EXPLAIN.
pub unsafe fn state<'a>(node: *mut pg_sys::ForeignScanState) -> &'a mut Scan {
    // SAFETY: Begin stored a Scan there, which lives as long as the query's memory context.
    unsafe { &mut *(*node).fdw_state.cast::<Scan>() }
}

pub unsafe fn begin_foreign_scan(node: *mut pg_sys::ForeignScanState, flags: std::ffi::c_int) {
    // SAFETY: an initialized node of a plan of ours.
    if unsafe { aggregate::is_aggregate(node) } {
        // SAFETY: as above.
        return unsafe { aggregate::begin(node, flags) };
    }
    if flags as u32 & pg_sys::EXEC_FLAG_EXPLAIN_ONLY != 0 {
        return;
    }
    // SAFETY: an initialized node of a plan of ours; the current memory context is the query's.
    unsafe {
        let plan = (*node).ss.ps.plan.cast::<pg_sys::ForeignScan>();
        let arguments = compile(cells((*plan).fdw_exprs), node);
        let private = Private::new((*plan).fdw_private);
        let scan = Scan::new(node, &private, &arguments);
        row_slot::give_to(node);
        (*node).fdw_state = keep(node, scan).cast();
    }
}

/// Compiles expressions of a node's plan.
pub unsafe fn compile(
    expressions: &[*mut pg_sys::Expr],
    node: *mut pg_sys::ForeignScanState,
) -> Vec<Value> {
    expressions
        .iter()
        // SAFETY: the node's own plan outlives its state.
        .map(|expression| unsafe { Value::new(*expression, node.cast()) })
        .collect()
}

/// Hangs a value on the query's memory context: it is dropped with it, after an error too.
pub unsafe fn keep<T>(node: *mut pg_sys::ForeignScanState, value: T) -> *mut T {
    // SAFETY: an initialized node.
    let context = unsafe { (*(*node).ss.ps.state).es_query_cxt };
    PgMemoryContexts::For(context).leak_and_drop_on_delete(value)
}

pub unsafe fn iterate_foreign_scan(
    node: *mut pg_sys::ForeignScanState,
) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: a node that went through Begin; its scan slot is of the heap kind.
    unsafe {
        if aggregate::is_aggregate(node) {
            return aggregate::iterate(node);
        }
        let slot = (*node).ss.ss_ScanTupleSlot;
        let scan = state(node);
        let context = (*node).ss.ps.ps_ExprContext;
        let instrument = (*node).ss.ps.instrument;
        while let Some((row, version, verdict)) = scan.next_passing(context, instrument) {
            scan.show(slot, row, version);
            let is_returned = match &scan.filter {
                Some(filter) if verdict == Verdict::Unsure => {
                    (*context).ecxt_scantuple = slot;
                    filter.ask(context)
                }
                _ => true,
            };
            if is_returned {
                if scan.hides_generated {
                    scan.hides_generated = false;
                    modify::hide_generated((*node).ss.ps.state, scan.relation);
                }
                return slot;
            }
            if !instrument.is_null() {
                (*instrument).nfiltered1 += 1.0;
            }
            pg_sys::MemoryContextReset((*context).ecxt_per_tuple_memory);
            if interrupts::is_pending() {
                interrupts::check_for_interrupts();
            }
        }
        tuple::clear(slot);
        slot
    }
}

pub unsafe fn rescan_foreign_scan(node: *mut pg_sys::ForeignScanState) {
    // SAFETY: a node that went through Begin.
    unsafe {
        if aggregate::is_aggregate(node) {
            aggregate::rewind(node);
        } else {
            state(node).rewind();
        }
    }
}

/// Nothing to do: the state goes with the query's memory context.
pub unsafe fn end_foreign_scan(_node: *mut pg_sys::ForeignScanState) {}
