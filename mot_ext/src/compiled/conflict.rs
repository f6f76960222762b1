//! What an INSERT says of rows in the way: ON CONFLICT of a finished plan.
use super::plain::{Scope, calls_functions, is_plain};
use crate::pg::list::items;
use pgrx::pg_sys;

/// ON CONFLICT.
pub struct Conflict {
    /// The indexes that the statement names; empty: it asks all unique ones.
    pub arbiters: Vec<pg_sys::Oid>,
    /// SET and WHERE; `None`: DO NOTHING.
    pub update: Option<ConflictUpdate>,
}

/// What DO UPDATE does to the row in the way.
pub struct ConflictUpdate {
    /// Attribute numbers and their new values.
    pub assigned: Vec<(i16, *mut pg_sys::Expr)>,
    pub conditions: Vec<*mut pg_sys::Expr>,
}

impl Conflict {
    /// What is said of rows in the way; the outer `None`: nothing that can be compiled.
    pub unsafe fn of(node: &pg_sys::ModifyTable, relation: u32) -> Option<Option<Conflict>> {
        // SAFETY: a ModifyTable node of an INSERT.
        unsafe {
            if node.onConflictAction == pg_sys::OnConflictAction::ONCONFLICT_NONE {
                return Some(None);
            }
            let arbiters = pgrx::PgList::<pg_sys::Oid>::from_pg(node.arbiterIndexes);
            let arbiters = arbiters.iter_oid().collect();
            if node.onConflictAction == pg_sys::OnConflictAction::ONCONFLICT_NOTHING {
                let update = None;
                return Some(Some(Conflict { arbiters, update }));
            }
            let values = items::<pg_sys::TargetEntry>(node.onConflictSet);
            let columns = node.onConflictCols;
            let count = if columns.is_null() {
                0
            } else {
                (*columns).length as usize
            };
            if values.len() != count || values.iter().any(|value| (**value).resjunk) {
                return None;
            }
            let numbers = (0..count).map(|at| (*(*columns).elements.add(at)).int_value as i16);
            let values = values.iter().map(|value| (**value).expr);
            let assigned: Vec<_> = numbers.zip(values).collect();
            let conditions = items::<pg_sys::Expr>(node.onConflictWhere.cast());
            let scope = Scope::Conflict(relation);
            let parts = assigned.iter().map(|(_, value)| value).chain(&conditions);
            let mut parts = parts.map(|part| part.cast());
            parts.all(|part| is_plain(part, scope)).then_some(())?;
            let update = Some(ConflictUpdate {
                assigned,
                conditions,
            });
            Some(Some(Conflict { arbiters, update }))
        }
    }

    /// Whether SET or WHERE calls functions.
    pub unsafe fn calls_functions(&self) -> bool {
        let Some(update) = &self.update else {
            return false;
        };
        let assigned = update.assigned.iter().map(|(_, value)| value);
        // SAFETY: expressions of a finished plan.
        assigned
            .chain(&update.conditions)
            .any(|part| unsafe { calls_functions((*part).cast()) })
    }
}
