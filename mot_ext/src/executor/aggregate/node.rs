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
use crate::pg::node::{Any, List, Node};
use crate::shared_memory::settings::{COMPILED_STATEMENTS, CompiledStatements};
use mot_engine::{RowId, VersionRef};
use mot_programs::aggregate::KeyValues;
use mot_programs::filter::Layout;
use pgrx::pg_sys;
use pgrx::pg_sys::NodeTag::T_Aggref;

/// The aggregates of a node.
pub struct Aggregation {
    /// How to get at the rows of the scan below.
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

/// Raises for what was planned as computed here and no longer is: an aggregate or key of a plan, a
/// SQL function's, that is older than a change of one of its columns. The columns are the table's
/// own (`Compiler::column`), and no number of one is ever taken away.
fn column_changed(expression: Any<'_>, row_type: Node<'_, pg_sys::TupleDescData>) -> ! {
    for column in expression.columns() {
        let attribute = &row_type.columns()[column.varattno() as usize - 1];
        if attribute.attisdropped || attribute.atttypid != column.vartype() {
            errors::planned_column_changed(attribute, row_type.row_type(), column.vartype());
        }
    }
    unreachable!("an aggregate that is planned here is computed here")
}

/// Where the rows come from that are added up.
pub trait RowSource {
    /// Fills a group with the next rows the snapshot sees, whatever the filter says of them; false:
    /// there are no more behind these.
    fn fill(&mut self, scan: Node<'_, pg_sys::ScanState>, group: &mut Group) -> bool;

    /// Shows a row of the group in the scan's slot, until the next one.
    ///
    /// # Safety
    /// The group was filled last.
    unsafe fn show(&mut self, scan: Node<'_, pg_sys::ScanState>, row: RowId, version: VersionRef);

    /// The filter, if rows are dropped by one.
    fn filter(&self) -> Option<&Filter>;
}

/// How to get at a scan's rows from its node. It is unsafe, for nobody else may use the rows
/// meanwhile, and the node must be one that has such rows, and runs.
pub type SourceOf = unsafe fn(Node<'_, pg_sys::ScanState>) -> &'_ mut dyn RowSource;

/// A target list.
type Targets<'p> = List<'p, pg_sys::TargetEntry>;

/// Asks whether the user may run the aggregates of a node's targets, as core's Agg node asks.
pub fn check_rights(targets: Targets<'_>) {
    for aggregate in aggregates(targets) {
        rights::check(aggregate.aggfnoid());
    }
}

fn aggregates<'p>(targets: Targets<'p>) -> impl Iterator<Item = Node<'p, pg_sys::Aggref>> {
    targets
        .iter()
        .filter_map(|target| target.expression().cast())
}

impl Aggregation {
    /// What the targets say, over the rows of a scan, whose node is initialized.
    ///
    /// # Safety
    /// The source is that of the scan's node. The current memory context is the query's.
    pub unsafe fn new(
        below: Node<'_, pg_sys::ScanState>,
        source: SourceOf,
        targets: Targets<'_>,
    ) -> Aggregation {
        let row_type = below.relation().description();
        let mut compiler = Compiler::new(below.position(), row_type);
        // SAFETY: the query's memory.
        let kept = unsafe { Kept::new(below.ps().estate().es_query_cxt()) };
        let compiled = |expression| below.ps().compiled(expression);
        let calls: Vec<_> = aggregates(targets)
            .map(|aggregate| {
                let call = call(&mut compiler, aggregate)
                    .unwrap_or_else(|| column_changed(aggregate.any(), row_type));
                Running::new(call, aggregate, compiled)
            })
            .collect();
        let mut keys = Vec::new();
        let mut outputs = Vec::with_capacity(targets.len());
        for target in targets {
            let expression = target.expression();
            if expression.tag() == T_Aggref {
                outputs.push(Output::Aggregate(outputs.len() - keys.len()));
                continue;
            }
            let key = key_of(&mut compiler, expression)
                .unwrap_or_else(|| column_changed(expression, row_type));
            let general = General::of_number(&key.number, || compiled(Some(expression)));
            outputs.push(Output::Key(keys.len()));
            keys.push((key, general));
        }
        let grouping = (!keys.is_empty()).then(|| Grouping::new(keys, calls.len(), kept));
        let accumulators = match grouping {
            Some(_) => Vec::new(),
            None => calls
                .iter()
                .map(|running| running.step.accumulator(kept))
                .collect(),
        };
        Aggregation {
            source,
            accumulators,
            grouping,
            outputs,
            calls,
            layout: layout(row_type, compiler.columns),
            group: Group::new(),
            is_general: COMPILED_STATEMENTS.get() == CompiledStatements::Off,
            phase: Phase::Start,
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
    /// The slot is virtual, with a column for each target. The scan is the one that the aggregates
    /// are over. The current memory context is the node's for a row.
    pub unsafe fn iterate(
        &mut self,
        below: Node<'_, pg_sys::ScanState>,
        slot: Node<'_, pg_sys::TupleTableSlot>,
    ) {
        // SAFETY: a live slot.
        unsafe { clear(slot.as_ptr()) };
        // SAFETY: the caller's scan.
        let Some((values, group)) = (unsafe { self.next(below) }) else {
            return;
        };
        let (grouping, accumulators) = (&mut self.grouping, &mut self.accumulators);
        let row = self
            .outputs
            .iter()
            .map(|output| match (*output, &mut *grouping) {
                (Output::Key(key), Some(grouping)) => grouping.key(key, &values),
                (Output::Aggregate(call), Some(grouping)) => {
                    result(grouping.groups.accumulator(group, call).result())
                }
                (Output::Aggregate(call) | Output::Key(call), None) => {
                    result(accumulators[call].result())
                }
            });
        // SAFETY: the caller's slot, empty by now.
        unsafe { slot.give_row(row) };
    }

    /// The next row to give: a group's values and number, or those of all rows.
    ///
    /// # Safety
    /// The scan is the one that the aggregates are over.
    unsafe fn next(&mut self, below: Node<'_, pg_sys::ScanState>) -> Option<(KeyValues, usize)> {
        if self.phase == Phase::Start {
            for accumulator in &mut self.accumulators {
                accumulator.clear();
            }
            if let Some(grouping) = &mut self.grouping {
                grouping.begin();
            }
            // SAFETY: the caller's scan.
            unsafe { self.run(below) };
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
                below.ps().begin_anew();
                // SAFETY: the caller's scan.
                unsafe { self.run(below) };
            } else {
                self.phase = Phase::End;
            }
        }
        None
    }
}
