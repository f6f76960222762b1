//! What an INSERT says of rows in the way: ON CONFLICT of a finished plan.
use super::plain::{Scope, calls_functions, is_plain};
use super::shape::{Assignment, assignments};
use crate::pg::node::{Any, Node};
use pgrx::pg_sys;

/// ON CONFLICT.
pub struct Conflict<'p> {
    /// The indexes that the statement names; empty: it asks all unique ones.
    pub arbiters: Vec<pg_sys::Oid>,
    /// SET and WHERE; `None`: DO NOTHING.
    pub update: Option<ConflictUpdate<'p>>,
}

/// What DO UPDATE does to the row in the way.
pub struct ConflictUpdate<'p> {
    /// Attribute numbers and their new values.
    pub assigned: Vec<Assignment<'p>>,
    pub conditions: Vec<Any<'p>>,
}

impl<'p> Conflict<'p> {
    /// What is said of rows in the way; the outer `None`: nothing that can be compiled.
    pub fn of(node: Node<'p, pg_sys::ModifyTable>, relation: u32) -> Option<Option<Conflict<'p>>> {
        let action = node.onConflictAction();
        if action == pg_sys::OnConflictAction::ONCONFLICT_NONE {
            return Some(None);
        }
        let arbiters = node.arbiterIndexes().oids().collect();
        if action == pg_sys::OnConflictAction::ONCONFLICT_NOTHING {
            let update = None;
            return Some(Some(Conflict { arbiters, update }));
        }
        let values: Vec<_> = node.onConflictSet().iter().collect();
        if values.iter().any(|value| value.resjunk()) {
            return None;
        }
        let update = ConflictUpdate {
            assigned: assignments(node.onConflictCols(), &values)?,
            conditions: node.conflict_conditions().iter().collect(),
        };
        let scope = Scope::Conflict(relation);
        let are_plain = update.expressions().all(|part| is_plain(part, scope));
        are_plain.then_some(())?;
        let update = Some(update);
        Some(Some(Conflict { arbiters, update }))
    }

    /// Whether SET or WHERE calls functions.
    pub fn calls_functions(&self) -> bool {
        let update = self.update.as_ref();
        update.is_some_and(|update| update.expressions().any(calls_functions))
    }
}

impl<'p> ConflictUpdate<'p> {
    /// What SET and WHERE compute.
    fn expressions(&self) -> impl Iterator<Item = Any<'p>> {
        let assigned = self.assigned.iter().map(|(_, value)| *value);
        assigned.chain(self.conditions.iter().copied())
    }
}
