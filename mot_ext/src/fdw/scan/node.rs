//! The scan as a node of a plan: core's callbacks, and the lock of rows for a statement with row triggers.

use super::Scan;
use crate::fdw::aggregate;
use crate::fdw::expressions::{Value, passes};
use crate::fdw::filter::Verdict;
use crate::fdw::lock_rows::{self, For, Outcome};
use crate::fdw::modify;
use crate::fdw::private::{Private, cells};
use crate::fdw::row_slot;
use crate::fdw::tuple;
use crate::fdw::write::Target;
use crate::pg::interrupts;
use crate::wait::WaitPolicy;
use mot_engine::{LockStrength, Slot, VersionRef};
use pgrx::PgMemoryContexts;
use pgrx::pg_sys;

/// For the target of an UPDATE or DELETE with row triggers: rows are locked as they are returned. The node's filter is taken over
/// from it, so that rows it drops are not locked and no condition is evaluated twice.
#[derive(Clone, Copy)]
pub(super) struct RowLock {
    target: Target,
    strength: LockStrength,
    filter: *mut pg_sys::ExprState,
    /// The target has columns that are to be computed behind the triggers.
    has_generated: bool,
}

impl RowLock {
    pub(super) unsafe fn new(
        node: *mut pg_sys::ForeignScanState,
        private: &Private,
        relation: pg_sys::Relation,
    ) -> Option<RowLock> {
        let strength = private.row_lock()?;
        // SAFETY: an initialized node. In a re-evaluation core hands the row in and filters it itself.
        unsafe {
            if !(*(*node).ss.ps.state).es_epq_active.is_null() {
                return None;
            }
            let filter = (*node).ss.ps.qual;
            (*node).ss.ps.qual = std::ptr::null_mut();
            let constraints = (*(*relation).rd_att).constr;
            Some(RowLock {
                target: Target::new(relation),
                strength,
                filter,
                has_generated: !constraints.is_null() && (*constraints).has_generated_stored,
            })
        }
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
            let is_returned = match (scan.row_lock, &scan.filter) {
                (Some(lock), _) => lock_row(node, scan, lock, row, version),
                (None, Some(filter)) if verdict == Verdict::Unsure => {
                    (*context).ecxt_scantuple = slot;
                    filter.ask(context)
                }
                _ => true,
            };
            if is_returned {
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

/// Locks the row in the scan slot if it passes the node's conditions, in its newest state if that passes too; that state is in
/// the slot then.
unsafe fn lock_row(
    node: *mut pg_sys::ForeignScanState,
    scan: &mut Scan,
    lock: RowLock,
    row: Slot,
    version: VersionRef,
) -> bool {
    // SAFETY: the node's own slot, context and conditions.
    unsafe {
        let slot = (*node).ss.ss_ScanTupleSlot;
        let context = (*node).ss.ps.ps_ExprContext;
        (*context).ecxt_scantuple = slot;
        if !passes(lock.filter, context) {
            return false;
        }
        if lock.has_generated {
            modify::hide_generated((*node).ss.ps.state, lock.target.oid());
        }
        let (strength, policy, purpose) = (lock.strength, WaitPolicy::Block, For::Changing);
        let outcome = lock_rows::lock(&lock.target, row, version, strength, policy, purpose);
        match outcome {
            Outcome::Locked(newest) if newest == version => true,
            Outcome::Locked(newest) => {
                scan.show(slot, row, newest);
                passes((*node).fdw_recheck_quals, context) && passes(lock.filter, context)
            }
            // The statement changed it already: it finds out again when it comes to change it.
            Outcome::SelfModified => true,
            Outcome::Lost => false,
        }
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
