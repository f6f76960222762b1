//! CHECK conditions of a table that compiled statements write to.
//!
//! Compiled once with the statement: a relation whose conditions are others makes the form unfit
//! (`Frame::fits` compares them with the row type). Only whether a row passes is found out here;
//! when one does not, core finds the words.
use super::expression::Check;
use super::plain::{Scope, calls_functions, is_plain};
use crate::pg::memory::within;
use crate::pg::node::{Any, Node};
use pgrx::pg_sys;
use std::ffi::CStr;

/// In a condition the row is the only table.
const ROW: Scope = Scope::Table(1);

/// The conditions of one table.
pub struct Checks {
    conditions: Vec<Check>,
    /// Whether a condition calls functions.
    pub calls_functions: bool,
}

/// A condition as an expression, in the current memory context.
fn parsed(text: &CStr) -> Any<'_> {
    // SAFETY: core reads its own text of a node, or raises. As stored an operator's function is not
    // filled in.
    unsafe {
        let condition = pg_sys::stringToNode(text.as_ptr()).cast();
        pg_sys::fix_opfuncids(condition);
        Node::enter(condition)
    }
}

impl Checks {
    /// Whether every row passes.
    pub fn is_empty(&self) -> bool {
        self.conditions.is_empty()
    }

    /// Compiles the conditions of a table's row type, in the current context; `None` if one is not
    /// plain.
    ///
    /// # Safety
    /// The current memory context lives as long as the value.
    pub unsafe fn compile(row_type: Node<'_, pg_sys::TupleDescData>) -> Option<Checks> {
        let mut checks = Checks {
            conditions: Vec::new(),
            calls_functions: false,
        };
        for text in row_type.checks() {
            let condition = parsed(text);
            if !is_plain(condition, ROW) {
                return None;
            }
            checks.calls_functions |= calls_functions(condition);
            // SAFETY: the caller's memory context, in which the condition was made.
            checks.conditions.push(unsafe { Check::compile(condition) });
        }
        Some(checks)
    }

    /// Whether a row passes all of them; NULL passes. The row stays in the context.
    ///
    /// # Safety
    /// A filled slot of the row type. Nothing else is in the context's memory for a row that is
    /// used after that.
    pub unsafe fn pass<'p>(
        &self,
        context: Node<'p, pg_sys::ExprContext>,
        row: Node<'p, pg_sys::TupleTableSlot>,
    ) -> bool {
        if self.conditions.is_empty() {
            return true;
        }
        context.show(row);
        let mut conditions = self.conditions.iter();
        // SAFETY: the row is shown, of the type that they are over (caller). Only whether it passes
        // is used of what they compute.
        unsafe {
            within(context.ecxt_per_tuple_memory(), || {
                conditions.all(|condition| condition.passes(context))
            })
        }
    }
}
