//! The node that runs: takes the rows of the scan below it by the group, adds them up, and gives
//! what comes of them.
use super::call::{call, key_of};
use super::grouped::Grouping;
use super::numeric::{Accumulator, Kept, result};
use super::rights;
use super::running::{General, Running};
use crate::errors;
use crate::executor::expressions::clear;
use crate::executor::filter::{Compiler, Filter, Group, layout};
use crate::pg::list::items;
use crate::pg::version;
use crate::shared_memory::settings::{COMPILED_STATEMENTS, CompiledStatements};
use mot_engine::{Slot, VersionRef};
use mot_programs::aggregate::KeyValues;
use mot_programs::filter::Layout;
use pgrx::pg_sys;
use pgrx::pg_sys::NodeTag::T_Aggref;

/// The aggregates of a node.
pub struct Aggregation {
    /// The scan's node.
    pub(super) below: *mut pg_sys::ScanState,
    pub(super) source: SourceOf,
    pub(super) calls: Vec<Running>,
    /// What the calls have seen, where there is no GROUP BY.
    pub(super) accumulators: Vec<Accumulator>,
    pub(super) grouping: Option<Grouping>,
    /// What the node's columns are.
    outputs: Vec<Output>,
    pub(super) layout: Layout,
    pub(super) group: Group,
    /// Arguments are core's to evaluate, as conditions are: under a plan from before
    /// `mot.compiled_statements` became `off`.
    pub(super) is_general: bool,
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
                let call = call(&mut compiler, &*aggregate)
                    .unwrap_or_else(|| column_changed(aggregate.cast(), row_type));
                calls.push(Running::new(call, &*aggregate, compiled));
            }
            let keys: Vec<_> = keys
                .into_iter()
                .map(|node| {
                    let key = key_of(&mut compiler, node)
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
                        .map(|running| running.step.accumulator(kept))
                        .collect(),
                },
                grouping,
                outputs,
                calls,
                layout: layout(row_type, compiler.columns),
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
    pub fn end(&mut self) {
        if let Some(grouping) = &mut self.grouping {
            grouping.begin();
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
    unsafe fn next(&mut self) -> Option<(KeyValues, usize)> {
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
                    return Some((KeyValues::default(), 0));
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
        values: KeyValues,
        group: usize,
    ) -> *mut pg_sys::TupleTableSlot {
        // SAFETY: the slot has as many columns as there are outputs.
        unsafe {
            for (at, output) in self.outputs.iter().enumerate() {
                let value = match (*output, &mut self.grouping) {
                    (Output::Key(key), Some(grouping)) => grouping.key(key, &values),
                    (Output::Aggregate(call), Some(grouping)) => {
                        result(grouping.groups.accumulator(group, call).result())
                    }
                    (Output::Aggregate(call) | Output::Key(call), None) => {
                        result(self.accumulators[call].result())
                    }
                };
                *(*slot).tts_values.add(at) = value.unwrap_or(pg_sys::Datum::from(0));
                *(*slot).tts_isnull.add(at) = value.is_none();
            }
            pg_sys::ExecStoreVirtualTuple(slot)
        }
    }
}
