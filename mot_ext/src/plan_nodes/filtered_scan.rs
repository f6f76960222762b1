//! A scan of all rows of a table with conditions that are evaluated where the rows lie.
//!
//! The node is core's SeqScan, function by function (`nodeSeqscan.c`), but for one thing: rows that
//! the [`Filter`] drops are never put into the slot. Core's `ExecScan` is above it. So conditions
//! that the filter leaves to core, projections, and re-evaluations (EvalPlanQual), in which core
//! hands in the row that it has locked, are core's.
//!
//! - The rows are those of the access method's scan: snapshot, predicate lock, parts of a parallel
//!   scan, ids and system columns.
//! - They are evaluated by the group where the scan gives groups, and else one by one: in a
//!   SERIALIZABLE transaction, backward, and where a scan may outlive a savepoint.
//! - A plan that is older than ALTER TABLE ... SET ACCESS METHOD, as a SQL function's can be, meets
//!   a table that is none of ours. Then the node is SeqScan without more.
//! - What EXPLAIN and the statistics count is counted when a row is given, not when its group is
//!   read: a LIMIT may want no more.
mod explain;
mod shared;
mod source;

use crate::executor::expressions::clear;
use crate::executor::filter::{Filter, Group, Rows, Verdict};
use crate::pg::argument::Argument;
use crate::pg::executor::exec_scan;
use crate::pg::guard::guarded;
use crate::pg::local::ProcessLocal;
use crate::pg::relation::Relation;
use crate::pg::tuple_slot::TupleSlot;
use crate::pg::{interrupts, version};
use crate::storage;
use crate::table_am::{self, scan, slot};
use pgrx::PgMemoryContexts;
use pgrx::pg_sys;
use std::ffi::{CStr, c_int};
use std::sync::LazyLock;

/// The node's name, in EXPLAIN and for parallel workers.
pub const NAME: &CStr = c"MOT Scan";

/// By what core makes the plan's node a running one.
pub static METHODS: LazyLock<ProcessLocal<pg_sys::CustomScanMethods>> = LazyLock::new(|| {
    ProcessLocal(pg_sys::CustomScanMethods {
        CustomName: NAME.as_ptr(),
        CreateCustomScanState: Some(guarded!(create(plan))),
    })
});

static EXECUTION: LazyLock<ProcessLocal<pg_sys::CustomExecMethods>> = LazyLock::new(|| {
    ProcessLocal(pg_sys::CustomExecMethods {
        CustomName: NAME.as_ptr(),
        BeginCustomScan: Some(guarded!(begin(node, estate, flags))),
        ExecCustomScan: Some(execute),
        EndCustomScan: Some(guarded!(end(node))),
        ReScanCustomScan: Some(guarded!(rescan(node))),
        ExplainCustomScan: Some(guarded!(explain::explain(node, ancestors, state))),
        EstimateDSMCustomScan: Some(guarded!(shared::estimate(node, context))),
        InitializeDSMCustomScan: Some(guarded!(shared::initialize(node, context, shared))),
        ReInitializeDSMCustomScan: Some(guarded!(shared::reinitialize(node, context, shared))),
        InitializeWorkerCustomScan: Some(guarded!(shared::join(node, contents, shared))),
        ..Default::default()
    })
});

/// The node as core holds it: core's part first.
#[repr(C)]
struct Node {
    core: pg_sys::CustomScanState,
    /// NULL when the node was only initialized for EXPLAIN.
    state: *mut FilteredScan,
}

/// A running scan.
pub struct FilteredScan {
    node: *mut pg_sys::ScanState,
    /// NULL before the first row is asked for.
    rows: pg_sys::TableScanDesc,
    filter: Option<Filter>,
    group: Group,
    /// Of the group: the rows that pass, and those that core has to be asked about.
    passing: Rows,
    unsure: Rows,
    /// The place in the group behind the row that was given last.
    at: usize,
}

/// Whether a plan's node is one of these.
///
/// # Safety
/// A node whose tag is that of a custom scan.
pub unsafe fn is_plan(node: *const pg_sys::Plan) -> bool {
    // SAFETY: the caller's node.
    unsafe {
        std::ptr::eq(
            (*node.cast::<pg_sys::CustomScan>()).methods,
            &raw const METHODS.0,
        )
    }
}

/// The running scan of a node.
///
/// # Safety
/// A node of ours that was initialized, and not for EXPLAIN alone.
pub unsafe fn state<'a>(node: *mut pg_sys::ScanState) -> &'a mut FilteredScan {
    // SAFETY: Begin has put it there; it lives as long as the query's memory context.
    unsafe { &mut *(*node.cast::<Node>()).state }
}

/// `CreateCustomScanState`.
unsafe fn create(_plan: *mut pg_sys::CustomScan) -> *mut pg_sys::Node {
    // SAFETY: zeroed memory of the node's size, in the query's memory context.
    unsafe {
        let node = pg_sys::palloc0(size_of::<Node>()).cast::<Node>();
        (*node).core.ss.ps.type_ = pg_sys::NodeTag::T_CustomScanState;
        (*node).core.methods = &raw const EXECUTION.0;
        version::ask_for_slots(&raw mut (*node).core, slot::kind(std::ptr::null_mut()));
        node.cast()
    }
}

/// `BeginCustomScan`.
unsafe fn begin(node: *mut pg_sys::CustomScanState, _estate: *mut pg_sys::EState, flags: c_int) {
    // SAFETY: as core calls it; the current memory context is the query's.
    unsafe {
        let relation = (*node).ss.ss_currentRelation;
        version::give_slots(node, pg_sys::table_slot_callbacks(relation));
        if flags as u32 & pg_sys::EXEC_FLAG_EXPLAIN_ONLY != 0 {
            return;
        }
        let state = FilteredScan {
            node: node.cast(),
            rows: std::ptr::null_mut(),
            filter: storage::is_table(relation)
                .then(|| Filter::of_node(&raw mut (*node).ss))
                .flatten(),
            group: Group::new(),
            passing: 0,
            unsure: 0,
            at: 0,
        };
        let context = (*(*node).ss.ps.state).es_query_cxt;
        (*node.cast::<Node>()).state =
            PgMemoryContexts::For(context).leak_and_drop_on_delete(state);
    }
}

/// `ExecCustomScan`: a plain frame, for an error jumps over it.
unsafe extern "C-unwind" fn execute(
    node: *mut pg_sys::CustomScanState,
) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: as core calls it.
    unsafe {
        exec_scan(
            node.cast(),
            Some(guarded!(access(node))),
            Some(guarded!(recheck(node, slot))),
        )
    }
}

/// In a re-evaluation core has evaluated, or evaluates, all conditions itself.
unsafe fn recheck(_node: *mut pg_sys::ScanState, _slot: *mut pg_sys::TupleTableSlot) -> bool {
    true
}

/// The next row that the filter does not drop, in the scan's slot.
unsafe fn access(node: *mut pg_sys::ScanState) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: as core calls it: a node of ours that runs.
    unsafe {
        let slot = (*node).ss_ScanTupleSlot;
        let running = state(node);
        running.begin();
        let direction = (*(*node).ps.state).es_direction;
        if running.filter.is_none() {
            running.next_of_core(direction);
        } else if direction == pg_sys::ScanDirection::BackwardScanDirection
            || !scan::state(running.rows).gives_groups()
        {
            running.next_alone(direction);
        } else {
            running.next_of_group();
        }
        slot
    }
}

impl FilteredScan {
    /// Begins, if it has not begun.
    unsafe fn begin(&mut self) {
        if !self.rows.is_null() {
            return;
        }
        let node = self.node;
        // SAFETY: a node that runs; its relation is open, and the query's snapshot registered,
        // until its end.
        unsafe {
            let context = (*(*node).ps.state).es_query_cxt;
            let old = pg_sys::MemoryContextSwitchTo(context);
            let snapshot = (*(*node).ps.state).es_snapshot;
            let (relation, no_keys) = ((*node).ss_currentRelation, std::ptr::null_mut());
            self.rows = pg_sys::table_beginscan(relation, snapshot, 0, no_keys);
            pg_sys::MemoryContextSwitchTo(old);
        }
    }

    /// Puts the next row into the slot, whatever the conditions.
    unsafe fn next_of_core(&mut self, direction: pg_sys::ScanDirection::Type) {
        // SAFETY: a node that runs; the table's own callback is meant for any.
        unsafe {
            let (slot, relation) = (
                (*self.node).ss_ScanTupleSlot,
                (*self.node).ss_currentRelation,
            );
            if storage::is_table(relation) {
                let (rows, slot) = (Argument::of(self.rows), TupleSlot::enter(slot));
                scan::next_slot(rows, direction, slot);
            } else if !pg_sys::table_scan_getnextslot(self.rows, direction, slot) {
                clear(slot);
            }
        }
    }

    /// Forgets the group: the scan continues from its position.
    fn forget(&mut self) {
        self.group.clear();
        self.at = 0;
    }

    /// Puts the next row of groups into the slot; an empty slot: there is none.
    unsafe fn next_of_group(&mut self) {
        let node = self.node;
        // SAFETY: a node that runs, with a filter.
        unsafe {
            let slot = TupleSlot::enter((*node).ss_ScanTupleSlot);
            let context = (*node).ps.ps_ExprContext;
            let relation = Relation::enter((*node).ss_currentRelation);
            loop {
                let from = self.at;
                let behind = Rows::MAX.checked_shl(from as u32).unwrap_or(0);
                let left = (self.passing | self.unsure) & behind;
                if left == 0 {
                    let dropped = self.group.length() - from;
                    count_dropped(node, dropped);
                    table_am::rows_read(relation, dropped as i64);
                    if interrupts::is_pending() {
                        interrupts::check_for_interrupts();
                    }
                    if !self.fill(context) {
                        return slot::clear(slot);
                    }
                    continue;
                }
                let at = left.trailing_zeros() as usize;
                self.at = at + 1;
                count_dropped(node, at - from);
                let read = (self.at - from) as i64;
                table_am::rows_read(relation, read);
                let (row, version) = self.group.place(at);
                let rows = scan::state(self.rows);
                rows.stand_at(row);
                rows.show(slot, row, version);
                if self.passing & 1 << at != 0 || self.is_passed() {
                    return;
                }
            }
        }
    }

    /// Evaluates the next group; false: there is none.
    unsafe fn fill(&mut self, context: *mut pg_sys::ExprContext) -> bool {
        self.forget();
        (self.passing, self.unsure) = (0, 0);
        // SAFETY: the scan has begun; its snapshot keeps the group's rows.
        unsafe {
            let group = &mut self.group;
            if !scan::state(self.rows).next_group(|row, version| group.push(row, version)) {
                return false;
            }
            let filter = self.conditions();
            (self.passing, self.unsure) = filter.look_at(&self.group, context);
            true
        }
    }

    /// Puts the next row in a direction into the slot, looked up alone; an empty slot: there is
    /// none.
    unsafe fn next_alone(&mut self, direction: pg_sys::ScanDirection::Type) {
        let node = self.node;
        self.forget();
        (self.passing, self.unsure) = (0, 0);
        // SAFETY: a node that runs, with a filter.
        unsafe {
            let slot = TupleSlot::enter((*node).ss_ScanTupleSlot);
            let context = (*node).ps.ps_ExprContext;
            let relation = Relation::enter((*node).ss_currentRelation);
            let filter = self.conditions();
            let rows = scan::state(self.rows);
            loop {
                let found = match direction {
                    pg_sys::ScanDirection::BackwardScanDirection => rows.back(),
                    _ => rows.next(),
                };
                let Some((row, version)) = found else {
                    return slot::clear(slot);
                };
                table_am::rows_read(relation, 1);
                let verdict = filter.look(version, context);
                if verdict == Verdict::Fails {
                    count_dropped(node, 1);
                    if interrupts::is_pending() {
                        interrupts::check_for_interrupts();
                    }
                    continue;
                }
                rows.show(slot, row, version);
                if verdict == Verdict::Passes || self.is_passed() {
                    return;
                }
            }
        }
    }

    /// Asks core about the row in the slot, of which the filter is not sure.
    unsafe fn is_passed(&self) -> bool {
        let node = self.node;
        // SAFETY: a node that runs; nothing of the row before is in its memory any more.
        unsafe {
            let context = (*node).ps.ps_ExprContext;
            pg_sys::MemoryContextReset((*context).ecxt_per_tuple_memory);
            (*context).ecxt_scantuple = (*node).ss_ScanTupleSlot;
            let is_passed = self.conditions().ask(context);
            if !is_passed {
                count_dropped(node, 1);
                if interrupts::is_pending() {
                    interrupts::check_for_interrupts();
                }
            }
            is_passed
        }
    }

    /// The filter of a scan that has one.
    fn conditions(&self) -> &Filter {
        self.filter
            .as_ref()
            .expect("without one core's way is taken")
    }
}

/// Counts rows that the filter has dropped where EXPLAIN looks for those that core drops.
#[inline]
unsafe fn count_dropped(node: *mut pg_sys::ScanState, rows: usize) {
    // SAFETY: a node that runs.
    unsafe {
        let instrument = (*node).ps.instrument;
        if !instrument.is_null() {
            (*instrument).nfiltered1 += rows as f64;
        }
    }
}

/// `EndCustomScan`.
unsafe fn end(node: *mut pg_sys::CustomScanState) {
    // SAFETY: as core calls it.
    unsafe {
        let running = (*node.cast::<Node>()).state;
        if !running.is_null() && !(*running).rows.is_null() {
            pg_sys::table_endscan((*running).rows);
            (*running).rows = std::ptr::null_mut();
        }
    }
}

/// `ReScanCustomScan`: parameters may have other values.
unsafe fn rescan(node: *mut pg_sys::CustomScanState) {
    // SAFETY: as core calls it, for a node that runs.
    unsafe {
        let running = state(node.cast());
        running.forget();
        (running.passing, running.unsure) = (0, 0);
        if let Some(filter) = &mut running.filter {
            filter.rewind();
        }
        if !running.rows.is_null() {
            pg_sys::table_rescan(running.rows, std::ptr::null_mut());
        }
        pg_sys::ExecScanReScan(&raw mut (*node).ss);
    }
}
