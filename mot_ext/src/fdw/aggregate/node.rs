//! The node that runs: takes the rows of the scan below it by the group, adds them up, and gives what comes of them.
use super::accumulate::{Accumulator, Kept};
use super::call::Call;
use super::grouped::Grouping;
use super::grouping::{self, Key};
use super::rights;
use super::running::{General, Running};
use crate::errors;
use crate::fdw::expressions::passes;
use crate::fdw::filter::{Compiler, Group, Groups as RowGroup, Layout, Parameters, Rows, members};
use crate::fdw::private::items;
use crate::fdw::scan::{keep, state as scan_state};
use crate::fdw::tuple;
use crate::pg::{interrupts, version};
use crate::settings::{COMPILED_STATEMENTS, CompiledStatements};
use pgrx::pg_sys;

/// The aggregates of a node.
struct Aggregation {
    /// The scan's node.
    below: *mut pg_sys::ForeignScanState,
    calls: Vec<Running>,
    /// What the calls have seen, where there is no GROUP BY.
    accumulators: Vec<Accumulator>,
    grouping: Option<Grouping>,
    /// What the node's columns are.
    outputs: Vec<Output>,
    layout: Layout,
    /// There are none: who compiles wants them.
    parameters: Parameters,
    group: Group,
    /// Arguments are core's to evaluate, as conditions are: under a plan from before `mot.compiled_statements` became `off`.
    is_general: bool,
    phase: Phase,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// No row was read.
    Start,
    /// Rows were read, and what they gave is given.
    Giving,
    End,
}

#[derive(Clone, Copy)]
enum Output {
    Key(usize),
    Aggregate(usize),
}

/// Whether a node computes aggregates. No other of ours is of no relation.
pub unsafe fn is_aggregate(node: *mut pg_sys::ForeignScanState) -> bool {
    // SAFETY: an initialized node.
    unsafe {
        (*(*node).ss.ps.plan.cast::<pg_sys::ForeignScan>())
            .scan
            .scanrelid
            == 0
    }
}

unsafe fn state<'a>(node: *mut pg_sys::ForeignScanState) -> &'a mut Aggregation {
    // SAFETY: Begin stored it there; it lives as long as the query's memory context.
    unsafe { &mut *(*node).fdw_state.cast::<Aggregation>() }
}

/// Raises for what was planned as computed here and no longer is: the plan, a SQL function's, is older than a change of one of its columns.
///
/// # Safety
/// An aggregate or key of a plan of ours, and the row type of its table.
unsafe fn column_changed(node: *mut pg_sys::Node, row_type: pg_sys::TupleDesc) -> ! {
    // SAFETY: the caller's promise. The columns are the table's own (`Compiler::column`), and no number of one is ever taken away.
    unsafe {
        let flags = pg_sys::PVC_RECURSE_AGGREGATES | pg_sys::PVC_RECURSE_PLACEHOLDERS;
        for column in items::<pg_sys::Var>(pg_sys::pull_var_clause(node, flags as i32)) {
            let position = (*column).varattno as usize - 1;
            let attribute = &*version::attributes(row_type).add(position);
            if attribute.attisdropped || attribute.atttypid != (*column).vartype {
                errors::planned_column_changed(attribute, (*row_type).tdtypeid, (*column).vartype);
            }
        }
    }
    unreachable!("an aggregate that is planned here is computed here")
}

pub unsafe fn begin(node: *mut pg_sys::ForeignScanState, flags: std::ffi::c_int) {
    // SAFETY: an initialized node of a plan of ours, as is the one below it; the current memory context is the query's.
    unsafe {
        let plan = (*node).ss.ps.plan.cast::<pg_sys::ForeignScan>();
        let (aggregates, keys): (Vec<_>, Vec<_>) =
            items::<pg_sys::TargetEntry>((*plan).fdw_scan_tlist)
                .into_iter()
                .map(|target| (*target).expr.cast::<pg_sys::Node>())
                .partition(|node| (**node).type_ == pg_sys::NodeTag::T_Aggref);
        for aggregate in &aggregates {
            rights::check((*aggregate.cast::<pg_sys::Aggref>()).aggfnoid);
        }
        if flags as u32 & pg_sys::EXEC_FLAG_EXPLAIN_ONLY != 0 {
            return;
        }
        let below = (*node).ss.ps.lefttree.cast::<pg_sys::ForeignScanState>();
        let scanned = (*(*below).ss.ps.plan.cast::<pg_sys::ForeignScan>())
            .scan
            .scanrelid;
        let row_type = (*(*below).ss.ss_currentRelation).rd_att;
        let mut compiler = Compiler::new(scanned, row_type);
        let kept = Kept::new((*(*node).ss.ps.state).es_query_cxt);
        let mut calls = Vec::with_capacity(aggregates.len());
        let parent = below.cast();
        let compiled = |expression| pg_sys::ExecInitExpr(expression, parent);
        for aggregate in aggregates {
            let aggregate = aggregate.cast::<pg_sys::Aggref>();
            let call = Call::new(&mut compiler, &*aggregate)
                .unwrap_or_else(|| column_changed(aggregate.cast(), row_type));
            calls.push(Running::new(call, &*aggregate, compiled));
        }
        let keys: Vec<_> = keys
            .into_iter()
            .map(|node| {
                let key =
                    Key::of(&mut compiler, node).unwrap_or_else(|| column_changed(node, row_type));
                let general = General::of_number(&key.number, || compiled(node.cast()));
                (key, general)
            })
            .collect();
        let grouping = (!keys.is_empty()).then(|| Grouping::new(keys, calls.len(), kept));
        let (mut keys, mut aggregates) = (0.., 0..);
        let outputs = items::<pg_sys::TargetEntry>((*plan).fdw_scan_tlist)
            .into_iter()
            .filter_map(
                |target| match (*(*target).expr.cast::<pg_sys::Node>()).type_ {
                    pg_sys::NodeTag::T_Aggref => aggregates.next().map(Output::Aggregate),
                    _ => keys.next().map(Output::Key),
                },
            )
            .collect();
        let aggregation = Aggregation {
            below,
            accumulators: match grouping {
                Some(_) => Vec::new(),
                None => calls
                    .iter()
                    .map(|running| running.accumulator(kept))
                    .collect(),
            },
            grouping,
            outputs,
            calls,
            layout: Layout::new(row_type, compiler.columns),
            parameters: compiler.parameters,
            group: Group::new(),
            is_general: COMPILED_STATEMENTS.get() == CompiledStatements::Off,
            phase: Phase::Start,
        };
        (*node).fdw_state = keep(node, aggregation).cast();
    }
}

/// Begins anew. The scan below does so by itself, or when it is asked for rows.
pub unsafe fn rewind(node: *mut pg_sys::ForeignScanState) {
    // SAFETY: a node that went through Begin.
    unsafe { state(node) }.phase = Phase::Start;
}

/// How many passes over the rows GROUP BY took at most in an execution; 0: none, or no GROUP BY.
pub unsafe fn passes_over_rows(node: *mut pg_sys::ForeignScanState) -> u32 {
    // SAFETY: a node that went through Begin, which makes no state for EXPLAIN alone.
    unsafe {
        match (*node).fdw_state.is_null() {
            true => 0,
            false => state(node).grouping.as_ref().map_or(0, |it| it.passes),
        }
    }
}

/// Ends an execution, before another begins anew: groups that were not given are not kept for it.
pub unsafe fn end(node: *mut pg_sys::ForeignScanState) {
    // SAFETY: a node that went through Begin.
    unsafe {
        if let Some(grouping) = &mut state(node).grouping {
            grouping.begin();
        }
    }
}

/// The next row; the current memory context is the node's for a row.
pub unsafe fn iterate(node: *mut pg_sys::ForeignScanState) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: a node that went through Begin; its scan slot has a column for each aggregate and each column of GROUP BY.
    unsafe {
        let slot = (*node).ss.ss_ScanTupleSlot;
        let aggregation = state(node);
        tuple::clear(slot);
        match aggregation.next() {
            Some((values, group)) => aggregation.put(slot, values, group),
            None => slot,
        }
    }
}

/// In a re-evaluation (EvalPlanQual) core asks here for a node of no relation: a subquery's, whose rows are those of the first evaluation.
pub unsafe fn recheck(
    node: *mut pg_sys::ForeignScanState,
    _slot: *mut pg_sys::TupleTableSlot,
) -> bool {
    // SAFETY: a node of ours; the slot is its scan slot.
    unsafe {
        if !is_aggregate(node) {
            return true;
        }
        let memory = (*(*node).ss.ps.ps_ExprContext).ecxt_per_tuple_memory;
        let old = pg_sys::MemoryContextSwitchTo(memory);
        let slot = iterate(node);
        pg_sys::MemoryContextSwitchTo(old);
        (*slot).tts_flags & pg_sys::TTS_FLAG_EMPTY as u16 == 0
    }
}

impl Aggregation {
    /// The next row to give: a group's values and number, or those of all rows.
    unsafe fn next(&mut self) -> Option<(grouping::Values, usize)> {
        // SAFETY: the node below went through Begin.
        unsafe {
            if self.phase == Phase::Start {
                for accumulator in &mut self.accumulators {
                    accumulator.clear();
                }
                if let Some(grouping) = &mut self.grouping {
                    grouping.begin();
                }
                self.run();
                self.phase = Phase::Giving;
            }
            while self.phase == Phase::Giving {
                let Some(grouping) = &mut self.grouping else {
                    self.phase = Phase::End;
                    return Some((grouping::Values::default(), 0));
                };
                if let Some(found) = grouping.groups.next() {
                    return Some(found);
                }
                if grouping.begin_next() {
                    pg_sys::ExecReScan(self.below.cast());
                    self.run();
                } else {
                    self.phase = Phase::End;
                }
            }
            None
        }
    }

    /// Puts a row into the node's slot.
    unsafe fn put(
        &mut self,
        slot: *mut pg_sys::TupleTableSlot,
        values: grouping::Values,
        group: usize,
    ) -> *mut pg_sys::TupleTableSlot {
        // SAFETY: the slot has as many columns as there are outputs.
        unsafe {
            for (at, output) in self.outputs.iter().enumerate() {
                let result = match (*output, &mut self.grouping) {
                    (Output::Key(key), Some(grouping)) => grouping.key(key, &values),
                    (Output::Aggregate(call), Some(grouping)) => {
                        grouping.groups.accumulator(group, call).result()
                    }
                    (Output::Aggregate(call) | Output::Key(call), None) => {
                        self.accumulators[call].result()
                    }
                };
                *(*slot).tts_values.add(at) = result.unwrap_or(pg_sys::Datum::from(0));
                *(*slot).tts_isnull.add(at) = result.is_none();
            }
            pg_sys::ExecStoreVirtualTuple(slot)
        }
    }

    /// Takes all rows of the scan.
    unsafe fn run(&mut self) {
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
            let scan = scan_state(self.below);
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
        // SAFETY: the rows are the scan's, whose snapshot keeps them; context and conditions are its node's.
        unsafe {
            if let Some(grouping) = &mut self.grouping {
                grouping.groups.make_room();
            }
            let below = &mut (*self.below).ss.ps;
            let context = below.ps_ExprContext;
            let all = self.group.all();
            let (passing, unsure) = match scan_state(self.below).filter() {
                Some(filter) => filter.look_at(&self.group, context),
                None => (all, 0),
            };
            // What the filter leaves to core: rows that pass its part of the conditions, or those that it is not sure of.
            let asked = match below.qual.is_null() {
                true => unsure,
                false => passing | unsure,
            };
            if asked != 0 || self.is_general || !self.evaluate(passing, context) {
                return self.take_each(passing | unsure, asked);
            }
            match &mut self.grouping {
                Some(grouping) => grouping.add_group(passing, &self.calls),
                None => {
                    for (running, accumulator) in self.calls.iter().zip(&mut self.accumulators) {
                        running.add_group(accumulator);
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

    /// Evaluates arguments and FILTERs for rows of the group; false: core has to be asked about one.
    unsafe fn evaluate(&mut self, rows: Rows, context: *mut pg_sys::ExprContext) -> bool {
        let groups = RowGroup {
            group: &self.group,
            layout: &self.layout,
            parameters: &self.parameters,
            context,
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
                    .all(|running| running.evaluate(&groups, rows))
        }
    }

    /// Takes some of the group's rows one by one, those that core is asked about when it was; how many passed the conditions.
    unsafe fn take_each(&mut self, rows: Rows, asked: Rows) -> u64 {
        // SAFETY: as for `take_group`.
        unsafe {
            let scan = scan_state(self.below);
            let below = &mut (*self.below).ss.ps;
            let (slot, context) = ((*self.below).ss.ss_ScanTupleSlot, below.ps_ExprContext);
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
            tuple::clear(slot);
            if !below.instrument.is_null() {
                let looked_at = self.group.length() as u64;
                (*below.instrument).nfiltered1 += (looked_at - passed) as f64;
            }
            passed
        }
    }
}
