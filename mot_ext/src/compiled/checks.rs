//! CHECK conditions of a table that compiled statements write to.
//!
//! Compiled once with the statement: a relation whose conditions are others makes the form unfit
//! (`Frame::fits` compares them with the row type). Only whether a row passes is found out here;
//! when one does not, core finds the words.
use super::plain::{Scope, calls_functions, is_plain};
use crate::executor::expressions::evaluate;
use crate::pg::version::is_enforced;
use pgrx::pg_sys;

/// In a condition the row is the only table.
const ROW: Scope = Scope::Table(1);

/// The conditions of one table.
pub struct Checks {
    conditions: Vec<*mut pg_sys::ExprState>,
    /// Whether a condition calls functions.
    pub calls_functions: bool,
}

impl Checks {
    /// Whether every row passes.
    pub fn is_empty(&self) -> bool {
        self.conditions.is_empty()
    }

    /// Compiles the conditions of an open relation, in the current context; `None` if one is not
    /// plain.
    pub unsafe fn compile(relation: pg_sys::Relation) -> Option<Checks> {
        let mut conditions = Vec::new();
        let mut calls = false;
        // SAFETY: an open relation's constraints; the nodes made of their text are ours.
        unsafe {
            let constraints = (*(*relation).rd_att).constr;
            if constraints.is_null() {
                return Some(Checks {
                    conditions,
                    calls_functions: false,
                });
            }
            for at in 0..usize::from((*constraints).num_check) {
                let check = &*(*constraints).check.add(at);
                if !is_enforced(check) {
                    continue;
                }
                let condition = pg_sys::stringToNode(check.ccbin).cast::<pg_sys::Node>();
                // As stored an operator's function is not filled in.
                pg_sys::fix_opfuncids(condition);
                if !is_plain(condition, ROW) {
                    return None;
                }
                calls |= calls_functions(condition);
                let planned = pg_sys::expression_planner(condition.cast());
                conditions.push(pg_sys::ExecInitExpr(planned, std::ptr::null_mut()));
            }
        }
        Some(Checks {
            conditions,
            calls_functions: calls,
        })
    }

    /// Whether a row passes all of them; NULL passes. The row stays in the context.
    pub unsafe fn pass(
        &self,
        context: *mut pg_sys::ExprContext,
        row: *mut pg_sys::TupleTableSlot,
    ) -> bool {
        // SAFETY: conditions over the row alone; what they compute goes to the context's memory for
        // a row.
        unsafe {
            if self.conditions.is_empty() {
                return true;
            }
            (*context).ecxt_scantuple = row;
            let old = pg_sys::MemoryContextSwitchTo((*context).ecxt_per_tuple_memory);
            let passes = self.conditions.iter().all(|condition| {
                let (passes, is_null) = evaluate(*condition, context);
                is_null || passes.value() & 1 != 0
            });
            pg_sys::MemoryContextSwitchTo(old);
            passes
        }
    }
}
