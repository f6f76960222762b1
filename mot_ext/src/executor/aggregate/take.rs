//! Takes the rows of the scan below an aggregate's node: by the group, or one by one where core is
//! asked.
use super::node::Aggregation;
use crate::errors;
use crate::executor::expressions::{clear, passes};
use crate::pg::interrupts;
use mot_programs::filter::{Groups, NoParameters, Rows, members};
use pgrx::pg_sys;

impl Aggregation {
    /// Takes all rows of the scan.
    pub(super) unsafe fn run(&mut self) {
        // SAFETY: the node below went through Begin.
        unsafe {
            let below = self.below.cast::<pg_sys::PlanState>();
            // What core does before it asks a node for a row.
            if !(*below).chgParam.is_null() {
                pg_sys::ExecReScan(below);
            }
            let instrument = (*below).instrument;
            if !instrument.is_null() {
                pg_sys::InstrStartNode(instrument);
            }
            let mut passed = 0;
            let scan = (self.source)(self.below);
            let context = (*below).ps_ExprContext;
            // What sums allocate goes with the group of rows.
            let memory = (*context).ecxt_per_tuple_memory;
            let old = pg_sys::MemoryContextSwitchTo(memory);
            loop {
                pg_sys::MemoryContextReset(memory);
                let is_more = scan.fill(&mut self.group, context);
                passed += self.take_group();
                if interrupts::is_pending() {
                    interrupts::check_for_interrupts();
                }
                if !is_more {
                    break;
                }
            }
            pg_sys::MemoryContextSwitchTo(old);
            if !instrument.is_null() {
                pg_sys::InstrStopNode(instrument, passed as f64);
            }
        }
    }

    /// Takes the group's rows; how many passed the conditions.
    unsafe fn take_group(&mut self) -> u64 {
        // SAFETY: the rows are the scan's, whose snapshot keeps them; context and conditions are
        // its node's.
        unsafe {
            if let Some(grouping) = &mut self.grouping
                && let Err(error) = grouping.groups.make_room()
            {
                errors::raise(error);
            }
            let below = &mut (*self.below).ps;
            let context = below.ps_ExprContext;
            let all = self.group.all();
            let (passing, unsure) = match (self.source)(self.below).filter() {
                Some(filter) => filter.look_at(&self.group, context),
                None => (all, 0),
            };
            // What the filter leaves to core: rows that pass its part of the conditions, or those
            // that it is not sure of.
            let asked = match below.qual.is_null() {
                true => unsure,
                false => passing | unsure,
            };
            if asked != 0 || self.is_general || !self.evaluate(passing) {
                return self.take_each(passing | unsure, asked);
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
            if !below.instrument.is_null() {
                (*below.instrument).nfiltered1 += f64::from(all.count_ones() - passed);
            }
            passed.into()
        }
    }

    /// Evaluates arguments and FILTERs for rows of the group; false: core has to be asked about
    /// one.
    unsafe fn evaluate(&mut self, rows: Rows) -> bool {
        // Compiled aggregates and keys have none (`call`).
        let parameters = &NoParameters;
        let groups = Groups {
            rows: self.group.rows(),
            layout: &self.layout,
            parameters,
        };
        // SAFETY: rows of the layout's table.
        unsafe {
            let is_sure = self
                .grouping
                .as_mut()
                .is_none_or(|grouping| grouping.evaluate(&groups, rows));
            is_sure
                && self
                    .calls
                    .iter_mut()
                    .all(|running| running.step.evaluate(&groups, rows))
        }
    }

    /// Takes some of the group's rows one by one, those that core is asked about when it was; how
    /// many passed the conditions.
    unsafe fn take_each(&mut self, rows: Rows, asked: Rows) -> u64 {
        // SAFETY: as for `take_group`.
        unsafe {
            let scan = (self.source)(self.below);
            let below = &mut (*self.below).ps;
            let (slot, context) = ((*self.below).ss_ScanTupleSlot, below.ps_ExprContext);
            let mut passed = 0;
            for at in members(rows) {
                pg_sys::MemoryContextReset((*context).ecxt_per_tuple_memory);
                let (row, version) = self.group.place(at);
                scan.show(slot, row, version);
                (*context).ecxt_scantuple = slot;
                let is_passed = asked & 1 << at == 0
                    || (scan.filter().is_none_or(|filter| filter.ask(context))
                        && passes(below.qual, context));
                if is_passed {
                    passed += 1;
                    let group = match &mut self.grouping {
                        Some(grouping) => grouping.find(slot, context, &self.calls),
                        None => Some(&mut self.accumulators[..]),
                    };
                    if let Some(group) = group {
                        for (running, accumulator) in self.calls.iter().zip(group) {
                            running.add_row(accumulator, slot, context);
                        }
                    }
                }
                if interrupts::is_pending() {
                    interrupts::check_for_interrupts();
                }
            }
            clear(slot);
            if !below.instrument.is_null() {
                let looked_at = self.group.length() as u64;
                (*below.instrument).nfiltered1 += (looked_at - passed) as f64;
            }
            passed
        }
    }
}
