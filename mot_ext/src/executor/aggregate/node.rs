//! The node that runs: takes the rows of the scan below it by the group, adds them up, and gives
//! what comes of them.
use super::accumulate::{Accumulator, Kept};
use super::call::Call;
use super::grouped::Grouping;
use super::grouping::{self, Key};
use super::rights;
use super::running::{General, Running};
use crate::errors;
use crate::executor::expressions::{clear, passes};
use crate::executor::filter::{
    Compiler, Filter, Group, Groups as RowGroup, Layout, Parameters, Rows, members,
};
use crate::pg::list::items;
use crate::pg::{interrupts, version};
use crate::shared_memory::settings::{COMPILED_STATEMENTS, CompiledStatements};
use mot_engine::{Slot, VersionRef};
use pgrx::pg_sys;
use pgrx::pg_sys::NodeTag::T_Aggref;

/// The aggregates of a node.
pub struct Aggregation {
    /// The scan's node.
    below: *mut pg_sys::ScanState,
    source: SourceOf,
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
    /// Arguments are core's to evaluate, as conditions are: under a plan from before
    /// `mot.compiled_statements` became `off`.
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

/// Raises for what was planned as computed here and no longer is: the plan, a SQL function's, is
/// older than a change of one of its columns.
///
/// # Safety
/// An aggregate or key of a plan of ours, and the row type of its table.
unsafe fn column_changed(node: *mut pg_sys::Node, row_type: pg_sys::TupleDesc) -> ! {
    // SAFETY: the caller's promise. The columns are the table's own (`Compiler::column`), and no
    // number of one is ever taken away.
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

/// Where the rows come from that are added up.
pub trait RowSource {
    /// Fills a group with the next rows the snapshot sees, whatever the filter says of them; false:
    /// there are no more behind these.
    ///
    /// # Safety
    /// The context is the one of the node that scans.
    unsafe fn fill(&mut self, group: &mut Group, context: *mut pg_sys::ExprContext) -> bool;

    /// Shows a row of the group in the scan's slot, until the next one.
    ///
    /// # Safety
    /// The slot is the scan's, and the group was filled last.
    unsafe fn show(&mut self, slot: *mut pg_sys::TupleTableSlot, row: Slot, version: VersionRef);

    /// The filter, if rows are dropped by one.
    fn filter(&self) -> Option<&Filter>;
}

/// How to get at a scan's rows from its node.
pub type SourceOf = unsafe fn(*mut pg_sys::ScanState) -> &'static mut dyn RowSource;

/// Asks whether the user may run the aggregates of a node's targets, as core's Agg node asks.
///
/// # Safety
/// The targets of a plan that [`Aggregation::new`] takes.
pub unsafe fn check_rights(targets: *mut pg_sys::List) {
    // SAFETY: the caller's.
    unsafe {
        for expression in expressions(targets) {
            if (*expression).type_ == T_Aggref {
                rights::check((*expression.cast::<pg_sys::Aggref>()).aggfnoid);
            }
        }
    }
}

unsafe fn expressions(targets: *mut pg_sys::List) -> impl Iterator<Item = *mut pg_sys::Node> {
    // SAFETY: a target list (caller).
    unsafe {
        items::<pg_sys::TargetEntry>(targets)
            .into_iter()
            .map(|target| (*target).expr.cast::<pg_sys::Node>())
    }
}

impl Aggregation {
    /// What the targets say, over the rows of a scan.
    ///
    /// # Safety
    /// The scan's node is initialized, and outlives this; the current memory context is the
    /// query's.
    pub unsafe fn new(
        below: *mut pg_sys::ScanState,
        source: SourceOf,
        targets: *mut pg_sys::List,
    ) -> Aggregation {
        // SAFETY: the caller's.
        unsafe {
            let (aggregates, keys): (Vec<_>, Vec<_>) =
                expressions(targets).partition(|node| (**node).type_ == T_Aggref);
            let scanned = (*(*below).ps.plan.cast::<pg_sys::Scan>()).scanrelid;
            let row_type = (*(*below).ss_currentRelation).rd_att;
            let mut compiler = Compiler::new(scanned, row_type);
            let kept = Kept::new((*(*below).ps.state).es_query_cxt);
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
                    let key = Key::of(&mut compiler, node)
                        .unwrap_or_else(|| column_changed(node, row_type));
                    let general = General::of_number(&key.number, || compiled(node.cast()));
                    (key, general)
                })
                .collect();
            let grouping = (!keys.is_empty()).then(|| Grouping::new(keys, calls.len(), kept));
            let (mut keys, mut aggregates) = (0.., 0..);
            let outputs = expressions(targets)
                .filter_map(|expression| match (*expression).type_ {
                    T_Aggref => aggregates.next().map(Output::Aggregate),
                    _ => keys.next().map(Output::Key),
                })
                .collect();
            Aggregation {
                below,
                source,
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
            }
        }
    }

    /// Begins anew. The scan below does so by itself, or when it is asked for rows.
    pub fn rewind(&mut self) {
        self.phase = Phase::Start;
    }

    /// How many passes over the rows GROUP BY took at most in an execution; 0: no GROUP BY.
    pub fn passes_over_rows(&self) -> u32 {
        self.grouping.as_ref().map_or(0, |it| it.passes)
    }

    /// Ends an execution, before another begins anew: groups that were not given are not kept.
    pub unsafe fn end(&mut self) {
        if let Some(grouping) = &mut self.grouping {
            // SAFETY: as there.
            unsafe { grouping.begin() };
        }
    }

    /// Puts the next row into a slot, which is empty behind the last one.
    ///
    /// # Safety
    /// The slot has a column for each target; the current memory context is the node's for a row.
    pub unsafe fn iterate(
        &mut self,
        slot: *mut pg_sys::TupleTableSlot,
    ) -> *mut pg_sys::TupleTableSlot {
        // SAFETY: the caller's.
        unsafe {
            clear(slot);
            match self.next() {
                Some((values, group)) => self.put(slot, values, group),
                None => slot,
            }
        }
    }

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
            if let Some(grouping) = &mut self.grouping {
                grouping.groups.make_room();
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

    /// Evaluates arguments and FILTERs for rows of the group; false: core has to be asked about
    /// one.
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
