//! A scan's conditions, evaluated over rows as they lie in the arena, before core sees them.
//!
//! Core fills a slot for every row, takes its columns apart and runs an expression. For most rows
//! of a scan with a filter the answer is no. The filter answers the same question from the row's
//! bytes, for comparisons and arithmetic of integers, dates, times, booleans and texts with
//! constants, parameters and columns, and for LIKE.
//!
//! # What is the same
//!
//! - It takes the longest run of conditions from the first one on that it can do; the order of the
//!   planner (costs, security barriers) stays. If it can do all of them, core evaluates none; else
//!   core evaluates all over the rows that pass.
//! - It raises nothing: where core would raise an error (overflow, division by zero, a parameter
//!   that there is not), or needs more than the row's bytes (a text out of the row, a subquery's
//!   value not computed yet), the row is *unsure*, and core's own expression decides or raises.
//! - Functions are known by their oids, which is how fmgr finds the server's own; all of them are
//!   immutable and strict.
//! - Rows it drops are counted where EXPLAIN looks for those core drops, and interrupts are looked
//!   at as core does.
//! - Outside it: re-evaluations (EvalPlanQual), where core has the row.
//!
//! `mot.compiled_statements = off` leaves every condition to core.
//!
//! The programs and what runs them are in the crate `mot_programs`; here they are made of
//! PostgreSQL's expressions, and attached to nodes.
mod compile;
mod layout;
mod operators;
mod parameters;

use super::expressions::passes;
use crate::pg::node::{List, Node};
use crate::shared_memory::settings::{COMPILED_STATEMENTS, CompiledStatements};
pub use compile::Compiler;
pub use layout::layout;
use mot_engine::VersionRef;
use mot_programs::filter::{Condition, Groups, Layout, Place, Row, Unsure};
pub use mot_programs::filter::{Group, Rows};
pub use operators::{Function, function};
use parameters::Parameters;
use pgrx::pg_sys;

/// Conditions of a scan.
pub struct Filter {
    conditions: Vec<Condition>,
    layout: Layout,
    parameters: Parameters,
    /// There are no others.
    is_whole: bool,
    /// Core's form of all conditions, where it does not evaluate them itself.
    general: *mut pg_sys::ExprState,
}

/// What a filter says of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    Passes,
    Fails,
    /// Core's expression has to be asked.
    Unsure,
}

impl Filter {
    /// Of conditions over a table at a place of the range table; `None` if the first one takes
    /// core.
    ///
    /// # Safety
    /// Conditions of a finished plan over the table, whose row type this is.
    pub unsafe fn new(
        conditions: *mut pg_sys::List,
        table: u32,
        row_type: pg_sys::TupleDesc,
    ) -> Option<Filter> {
        // SAFETY: the caller's.
        let (conditions, row_type) = unsafe { (List::enter(conditions), Node::enter(row_type)) };
        Filter::of(conditions, table, row_type)
    }

    fn of(
        conditions: List<'_, pg_sys::Node>,
        table: u32,
        row_type: Node<'_, pg_sys::TupleDescData>,
    ) -> Option<Filter> {
        if conditions.is_empty() || COMPILED_STATEMENTS.get() == CompiledStatements::Off {
            return None;
        }
        let mut compiler = Compiler::new(table, row_type);
        let compiled: Vec<Condition> = conditions
            .iter()
            .map_while(|node| compiler.condition(node))
            .collect();
        if compiled.is_empty() {
            return None;
        }
        Some(Filter {
            is_whole: compiled.len() == conditions.len(),
            conditions: compiled,
            layout: layout(row_type, compiler.columns),
            parameters: compiler.parameters,
            general: std::ptr::null_mut(),
        })
    }

    /// How many of the conditions of a node that scans a table a filter takes, from the first one
    /// on.
    pub fn takes(node: Node<'_, pg_sys::ScanState>) -> usize {
        let row_type = node.relation().description();
        Filter::of(node.plan().qual(), node.position(), row_type)
            .map_or(0, |filter| filter.conditions.len())
    }

    /// Takes over the conditions of a node that scans a table, so that core evaluates none, or only
    /// those of rows that pass.
    pub fn of_node(node: Node<'_, pg_sys::ScanState>) -> Option<Filter> {
        // Nothing to take over: no conditions, or another caller did. In a re-evaluation core hands
        // the row in and filters it itself.
        if node.ps().qual().is_none() || node.ps().estate().es_epq_active() {
            return None;
        }
        let row_type = node.relation().description();
        let mut filter = Filter::of(node.plan().qual(), node.position(), row_type)?;
        if filter.is_whole {
            filter.general = node.ps().take_conditions();
        }
        Some(filter)
    }

    /// Whether rows that pass need no other look.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// The scan begins anew: parameters may have other values.
    pub fn rewind(&mut self) {
        self.parameters.forget();
    }

    /// Evaluates a row, which the caller's snapshot keeps.
    #[inline]
    pub unsafe fn look(&self, version: VersionRef, context: *mut pg_sys::ExprContext) -> Verdict {
        // SAFETY: a row of the filter's table, and the context of its node or statement.
        let passes = unsafe {
            let place = Place {
                row: Row::of(version),
                layout: &self.layout,
                parameters: &self.parameters.bound(context),
            };
            place.passes(&self.conditions)
        };
        match passes {
            Ok(true) => Verdict::Passes,
            Ok(false) => Verdict::Fails,
            Err(Unsure) => Verdict::Unsure,
        }
    }

    /// Evaluates a group of rows, which the caller's snapshot keeps: those that pass, and those
    /// that core has to be asked about.
    pub unsafe fn look_at(&self, group: &Group, context: *mut pg_sys::ExprContext) -> (Rows, Rows) {
        // SAFETY: rows of the filter's table, and the context of its node or statement.
        unsafe {
            let groups = Groups {
                rows: group.rows(),
                layout: &self.layout,
                parameters: &self.parameters.bound(context),
            };
            groups.passing(&self.conditions, group.all())
        }
    }

    /// Asks core's expression about an unsure row, which is in the context's slot. Where core
    /// evaluates the conditions itself it passes.
    pub unsafe fn ask(&self, context: *mut pg_sys::ExprContext) -> bool {
        // SAFETY: the node's own expression and context.
        unsafe { passes(self.general, context) }
    }
}
