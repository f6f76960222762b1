//! Takes the rows of the scan below an aggregate's node: by the group, or one by one where core is
//! asked.
use super::node::{Aggregation, RowSource};
use super::running::Running;
use crate::errors;
use crate::executor::expressions::{clear, passes};
use crate::executor::filter::Filter;
use crate::pg::node::Node;
use crate::pg::{interrupts, memory};
use mot_programs::filter::{Groups, NoParameters, Rows, members};
use pgrx::pg_sys;

impl Aggregation {
    /// Takes all rows of the scan.
    ///
    /// # Safety
    /// The scan is the one that the aggregates are over, and runs.
    pub(super) unsafe fn run(&mut self, below: Node<'_, pg_sys::ScanState>) {
        below.ps().begin_anew_if_changed();
        below.ps().start_timing();
        let context = below.ps().context();
        let take_all = || {
            // SAFETY: the caller's scan, whose rows are used here alone until it begins anew.
            let rows = unsafe { (self.source)(below) };
            let mut passed = 0;
            loop {
                // SAFETY: what sums allocate goes with the group of rows.
                unsafe { context.empty() };
                let is_more = rows.fill(below, &mut self.group);
                // SAFETY: the scan's rows.
                passed += unsafe { self.take_group(below, rows) };
                if interrupts::is_pending() {
                    interrupts::check_for_interrupts();
                }
                if !is_more {
                    break passed;
                }
            }
        };
        // SAFETY: a live context's own memory.
        let passed = unsafe { memory::within(context.ecxt_per_tuple_memory(), take_all) };
        below.ps().stop_timing(passed);
    }

    /// Takes the group's rows; how many passed the conditions.
    ///
    /// # Safety
    /// The rows are the scan's, and fill the group.
    unsafe fn take_group(
        &mut self,
        below: Node<'_, pg_sys::ScanState>,
        rows: &mut dyn RowSource,
    ) -> u64 {
        if let Some(grouping) = &mut self.grouping
            && let Err(error) = grouping.groups.make_room()
        {
            errors::raise(error);
        }
        let context = below.ps().context();
        let all = self.group.all();
        let (passing, unsure) = match rows.filter() {
            // SAFETY: the scan's rows, which its snapshot keeps, and its node's context.
            Some(filter) => unsafe { filter.look_at(&self.group, context.as_ptr()) },
            None => (all, 0),
        };
        // What the filter leaves to core: rows that pass its part of the conditions, or those that
        // it is not sure of.
        let asked = match below.ps().qual() {
            None => unsure,
            Some(_) => passing | unsure,
        };
        // SAFETY: the scan's rows.
        if asked != 0 || self.is_general || !unsafe { self.evaluate(passing) } {
            // SAFETY: the same.
            return unsafe { self.take_each(below, rows, (passing | unsure, asked)) };
        }
        match &mut self.grouping {
            Some(grouping) => grouping.add_group(passing, &self.calls),
            None => {
                for (running, accumulator) in self.calls.iter().zip(&mut self.accumulators) {
                    running.step.add_group(accumulator);
                }
            }
        }
        let passed = passing.count_ones();
        below.ps().count_dropped((all.count_ones() - passed).into());
        passed.into()
    }

    /// Evaluates arguments and FILTERs for rows of the group; false: core has to be asked about
    /// one.
    ///
    /// # Safety
    /// The rows are those of the layout's table.
    unsafe fn evaluate(&mut self, rows: Rows) -> bool {
        // Compiled aggregates and keys have none (`call`).
        let parameters = &NoParameters;
        let groups = Groups {
            rows: self.group.rows(),
            layout: &self.layout,
            parameters,
        };
        let is_sure = match &mut self.grouping {
            // SAFETY: the caller's rows.
            Some(grouping) => unsafe { grouping.evaluate(&groups, rows) },
            None => true,
        };
        // SAFETY: the caller's rows.
        let is_sure_of = |running: &mut Running| unsafe { running.step.evaluate(&groups, rows) };
        is_sure && self.calls.iter_mut().all(is_sure_of)
    }

    /// Takes some of the group's rows one by one, those that core is asked about when it was; how
    /// many passed the conditions.
    ///
    /// # Safety
    /// The rows are the scan's, and fill the group.
    unsafe fn take_each(
        &mut self,
        below: Node<'_, pg_sys::ScanState>,
        source: &mut dyn RowSource,
        (rows, asked): (Rows, Rows),
    ) -> u64 {
        let (slot, context) = (below.slot(), below.ps().context());
        let mut passed = 0;
        for at in members(rows) {
            // SAFETY: nothing of the row before is used any more.
            unsafe { context.empty() };
            let (row, version) = self.group.place(at);
            // SAFETY: a row of the group, which was filled last.
            unsafe { source.show(below, row, version) };
            context.show(slot);
            // SAFETY: the slot has the row.
            if asked & 1 << at == 0 || unsafe { is_passed(below, source.filter()) } {
                passed += 1;
                // SAFETY: the same.
                unsafe { self.add_row(slot, context) };
            }
            if interrupts::is_pending() {
                interrupts::check_for_interrupts();
            }
        }
        // SAFETY: a live slot.
        unsafe { clear(slot.as_ptr()) };
        below
            .ps()
            .count_dropped(self.group.length() as u64 - passed);
        passed
    }

    /// Adds the row in the slot to what it belongs to.
    ///
    /// # Safety
    /// The slot has a row of the scan's, and is the context's, which is the scan's node's.
    unsafe fn add_row(
        &mut self,
        slot: Node<'_, pg_sys::TupleTableSlot>,
        context: Node<'_, pg_sys::ExprContext>,
    ) {
        let group = match &mut self.grouping {
            // SAFETY: the caller's row.
            Some(grouping) => unsafe { grouping.find(slot, context, &self.calls) },
            None => Some(&mut self.accumulators[..]),
        };
        for (running, accumulator) in self.calls.iter().zip(group.into_iter().flatten()) {
            // SAFETY: the caller's row.
            unsafe { running.add_row(accumulator, slot, context) };
        }
    }
}

/// Whether core lets the row pass that its slot has.
///
/// # Safety
/// A running scan whose slot has a row, and its filter.
unsafe fn is_passed(below: Node<'_, pg_sys::ScanState>, filter: Option<&Filter>) -> bool {
    let context = below.ps().context().as_ptr();
    let conditions = below.ps().qual().map_or(std::ptr::null_mut(), Node::as_ptr);
    // SAFETY: the node's own conditions and context, which has the row (caller).
    unsafe { filter.is_none_or(|filter| filter.ask(context)) && passes(conditions, context) }
}
