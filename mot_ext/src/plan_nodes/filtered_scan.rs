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

use crate::executor::filter::{Filter, Group, Rows, Verdict};
use crate::pg::argument::Argument;
use crate::pg::executor::exec_scan;
use crate::pg::guard::guarded;
use crate::pg::local::ProcessLocal;
use crate::pg::node::{Node, make_custom_scan};
use crate::pg::{interrupts, memory, version};
use crate::storage;
use crate::table_am::{self, scan, slot};
use mot_engine::{RowId, VersionRef};
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

/// A running scan.
pub struct FilteredScan {
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
/// A node of ours that was initialized, and not for EXPLAIN alone. Nobody else uses the running
/// scan in `'p`.
pub unsafe fn state(node: Node<'_, pg_sys::ScanState>) -> &'_ mut FilteredScan {
    // SAFETY: a node that `create` has made with this state, and that has begun (caller).
    unsafe { node.custom_state() }
}

/// `CreateCustomScanState`.
fn create(_plan: *mut pg_sys::CustomScan) -> *mut pg_sys::Node {
    // SAFETY: the callbacks take nodes with this state. The context is the query's.
    let node = unsafe { make_custom_scan::<FilteredScan>(&raw const EXECUTION.0) };
    // SAFETY: a fresh node.
    unsafe { version::ask_for_slots(node.as_ptr(), slot::kind(std::ptr::null_mut())) };
    node.any().as_ptr()
}

/// `BeginCustomScan`.
fn begin(node: Node<'_, pg_sys::CustomScanState>, _estate: *mut pg_sys::EState, flags: c_int) {
    let relation = node.ss().relation();
    // SAFETY: a node that scans this table, in its Begin.
    unsafe {
        let kind = pg_sys::table_slot_callbacks(relation.as_ptr());
        version::give_slots(node.as_ptr(), kind);
    }
    if flags as u32 & pg_sys::EXEC_FLAG_EXPLAIN_ONLY != 0 {
        return;
    }
    let state = FilteredScan {
        rows: std::ptr::null_mut(),
        filter: storage::is_table(relation)
            .then(|| Filter::of_node(node.ss()))
            .flatten(),
        group: Group::new(),
        passing: 0,
        unsure: 0,
        at: 0,
    };
    // SAFETY: `create` has made it with this state.
    unsafe { node.keep(state) };
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
fn recheck(_node: *mut pg_sys::ScanState, _slot: *mut pg_sys::TupleTableSlot) -> bool {
    true
}

/// The next row that the filter does not drop, in the scan's slot.
fn access(node: Node<'_, pg_sys::ScanState>) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: a node of ours that runs, whose state is used here alone.
    let running = unsafe { state(node) };
    running.begin(node);
    let direction = node.ps().estate().es_direction();
    if running.filter.is_none() {
        running.next_of_core(node, direction);
        return node.slot().as_ptr();
    }
    // SAFETY: it has a filter, so it scans a table of ours; it has begun, and is used here alone.
    let rows = unsafe { scan::state(running.rows) };
    if direction == pg_sys::ScanDirection::BackwardScanDirection || !rows.gives_groups() {
        running.next_alone(node, rows, direction);
    } else {
        running.next_of_group(node, rows);
    }
    node.slot().as_ptr()
}

impl FilteredScan {
    /// Begins, if it has not begun.
    #[inline]
    fn begin(&mut self, node: Node<'_, pg_sys::ScanState>) {
        if !self.rows.is_null() {
            return;
        }
        let (relation, estate) = (node.relation(), node.ps().estate());
        let (snapshot, no_keys) = (estate.es_snapshot(), std::ptr::null_mut());
        // SAFETY: an open relation, and the query's snapshot, which is registered until its end.
        let begin = || unsafe { pg_sys::table_beginscan(relation.as_ptr(), snapshot, 0, no_keys) };
        // SAFETY: the query's memory, which outlives the scan.
        self.rows = unsafe { memory::within(estate.es_query_cxt(), begin) };
    }

    /// Puts the next row into the slot, whatever the conditions.
    fn next_of_core(
        &mut self,
        node: Node<'_, pg_sys::ScanState>,
        direction: pg_sys::ScanDirection::Type,
    ) {
        let slot = node.slot();
        if storage::is_table(node.relation()) {
            // SAFETY: a table of ours, whose scan has begun, and is used here alone. The slot
            // shows its rows.
            unsafe { scan::next_slot(Argument::of(self.rows), direction, slot) };
            return;
        }
        // SAFETY: the table's own callback, which is meant for any slot of its rows.
        if !unsafe { pg_sys::table_scan_getnextslot(self.rows, direction, slot.as_ptr()) } {
            slot.clear();
        }
    }

    /// Forgets the group: the scan continues from its position.
    fn forget(&mut self) {
        self.group.clear();
        self.at = 0;
        (self.passing, self.unsure) = (0, 0);
    }

    /// Puts the next row of groups into the slot; an empty slot: there is none.
    fn next_of_group(&mut self, node: Node<'_, pg_sys::ScanState>, rows: &mut scan::Scan) {
        loop {
            let from = self.at;
            let behind = Rows::MAX.checked_shl(from as u32).unwrap_or(0);
            let left = (self.passing | self.unsure) & behind;
            if left == 0 {
                let dropped = (self.group.length() - from) as u64;
                node.ps().count_dropped(dropped);
                count_read(node, dropped);
                if interrupts::is_pending() {
                    interrupts::check_for_interrupts();
                }
                if !self.fill(node, rows) {
                    return slot::clear(node.slot());
                }
                continue;
            }
            let at = left.trailing_zeros() as usize;
            self.at = at + 1;
            node.ps().count_dropped((at - from) as u64);
            count_read(node, (self.at - from) as u64);
            let (row, version) = self.group.place(at);
            rows.stand_at(row);
            show(node, rows, (row, version));
            if self.passing & 1 << at != 0 || self.is_passed(node) {
                return;
            }
        }
    }

    /// Evaluates the next group; false: there is none.
    fn fill(&mut self, node: Node<'_, pg_sys::ScanState>, rows: &mut scan::Scan) -> bool {
        self.forget();
        let group = &mut self.group;
        if !rows.next_group(|row, version| group.push(row, version)) {
            return false;
        }
        let context = node.ps().context().as_ptr();
        // SAFETY: rows of the filter's table, which the scan's snapshot keeps, and its context.
        (self.passing, self.unsure) = unsafe { self.conditions().look_at(&self.group, context) };
        true
    }

    /// Puts the next row in a direction into the slot, looked up alone; an empty slot: there is
    /// none.
    fn next_alone(
        &mut self,
        node: Node<'_, pg_sys::ScanState>,
        rows: &mut scan::Scan,
        direction: pg_sys::ScanDirection::Type,
    ) {
        self.forget();
        let context = node.ps().context().as_ptr();
        let filter = self.conditions();
        loop {
            let found = match direction {
                pg_sys::ScanDirection::BackwardScanDirection => rows.back(),
                _ => rows.next(),
            };
            let Some((row, version)) = found else {
                return slot::clear(node.slot());
            };
            count_read(node, 1);
            // SAFETY: a row of the filter's table, which the snapshot keeps, and its context.
            let verdict = unsafe { filter.look(version, context) };
            if verdict == Verdict::Fails {
                node.ps().count_dropped(1);
                if interrupts::is_pending() {
                    interrupts::check_for_interrupts();
                }
                continue;
            }
            show(node, rows, (row, version));
            if verdict == Verdict::Passes || self.is_passed(node) {
                return;
            }
        }
    }

    /// Asks core about the row in the slot, of which the filter is not sure.
    fn is_passed(&self, node: Node<'_, pg_sys::ScanState>) -> bool {
        let context = node.ps().context();
        // SAFETY: nothing of the row before is in it any more.
        unsafe { context.empty() };
        context.show(node.slot());
        // SAFETY: the node's own conditions and context, which has the row.
        let is_passed = unsafe { self.conditions().ask(context.as_ptr()) };
        if !is_passed {
            node.ps().count_dropped(1);
            if interrupts::is_pending() {
                interrupts::check_for_interrupts();
            }
        }
        is_passed
    }

    /// The filter of a scan that has one.
    fn conditions(&self) -> &Filter {
        self.filter
            .as_ref()
            .expect("without one core's way is taken")
    }
}

/// Shows a row that the scan has found, in its slot.
#[inline]
fn show(node: Node<'_, pg_sys::ScanState>, rows: &scan::Scan, (row, version): (RowId, VersionRef)) {
    // SAFETY: the node's slot is of the table's row type.
    unsafe { rows.show(node.slot(), row, version) };
}

/// Counts rows that were read.
#[inline]
fn count_read(node: Node<'_, pg_sys::ScanState>, rows: u64) {
    table_am::rows_read(node.relation(), rows as i64);
}

/// `EndCustomScan`.
fn end(node: Node<'_, pg_sys::CustomScanState>) {
    // SAFETY: `create` has made the node with this state, which is used here alone.
    let running = unsafe { node.state::<FilteredScan>() };
    if let Some(running) = running
        && !running.rows.is_null()
    {
        let rows = std::mem::replace(&mut running.rows, std::ptr::null_mut());
        // SAFETY: the node's own scan.
        unsafe { pg_sys::table_endscan(rows) };
    }
}

/// `ReScanCustomScan`: parameters may have other values.
fn rescan(node: Node<'_, pg_sys::CustomScanState>) {
    // SAFETY: a node of ours that runs, whose state is used here alone.
    let running = unsafe { state(node.ss()) };
    running.forget();
    if let Some(filter) = &mut running.filter {
        filter.rewind();
    }
    if !running.rows.is_null() {
        // SAFETY: the node's own scan, which has begun.
        unsafe { pg_sys::table_rescan(running.rows, std::ptr::null_mut()) };
    }
    node.ss().begin_anew();
}
