//! Computed keys of the rows that a compiled statement forms: those of indexes on expressions, and
//! of partial ones.
//!
//! What computes them is kept with the form. So expressions and predicates must be plain
//! (`plain.rs`): they run no SQL, and nothing that they remember changes under them. Which indexes
//! there are is looked up again when the relation cache reports a change (`Frame::fits`), after the
//! table is locked. A session that makes an index waits for earlier ones, as for core's list.
use super::frame::Row;
use super::plain::{Scope, are_plain, calls_functions};
use crate::pg::node::List;
use crate::pg::relation::Relation;
use crate::rows::tuple;
use crate::storage::computed_keys::{self, Evaluator};
use mot_engine::VersionRef;
use pgrx::pg_sys;
use std::cell::RefCell;

/// In an index's expression its table is the only one.
const ROW: Scope = Scope::Table(1);

/// What computes the keys of a table's rows.
pub struct ComputedKeys(RefCell<Evaluator>);

impl ComputedKeys {
    /// Of a table that is locked for writing. `Ok(None)`: it has no such indexes; an error:
    /// core's executor has to form its rows.
    pub fn of(table: Relation<'_>) -> Result<Option<ComputedKeys>, Unplain> {
        if !computed_keys::are_on(table) {
            return Ok(None);
        }
        let evaluator = Evaluator::of_table(table);
        let are_plain = expressions(&evaluator).all(|list| are_plain(list, ROW));
        let is_plain = are_plain && !evaluator.has_labels() && !evaluator.has_unready();
        match is_plain {
            true => Ok(Some(ComputedKeys(RefCell::new(evaluator)))),
            false => Err(Unplain),
        }
    }

    /// Whether an expression calls functions.
    pub fn call_functions(&self) -> bool {
        let evaluator = self.0.borrow();
        let lists = expressions(&evaluator);
        lists.filter_map(List::tree).any(calls_functions)
    }

    /// The row that was formed of a filled slot's values, with its keys, in the current memory
    /// context. It may replace an old one.
    ///
    /// # Safety
    /// A filled slot of the table's row type. The row is used no longer than the context is kept,
    /// and the old version is kept meanwhile.
    pub unsafe fn add<'a>(&self, formed: &[u8], row: Row<'_>, old: Option<VersionRef>) -> &'a [u8] {
        let mut evaluator = self.0.borrow_mut();
        evaluator.tail.clear();
        // SAFETY: the caller's slot and version. Plain expressions do not come back here.
        unsafe { evaluator.compute_changed(row, old) };
        tuple::extend(formed, &evaluator.tail)
    }

    /// The same with its key in one index alone: what the others compute may raise.
    ///
    /// # Safety
    /// As for [`ComputedKeys::add`].
    pub unsafe fn add_one<'a>(&self, formed: &[u8], row: Row<'_>, index: pg_sys::Oid) -> &'a [u8] {
        let mut evaluator = self.0.borrow_mut();
        evaluator.tail.clear();
        // SAFETY: the caller's slot.
        unsafe { evaluator.compute_one(row, index) };
        tuple::extend(formed, &evaluator.tail)
    }
}

/// What it computes.
fn expressions(evaluator: &Evaluator) -> impl Iterator<Item = List<'_, pg_sys::Node>> {
    let lists = evaluator.expressions();
    // SAFETY: lists of expressions, which live as long as the evaluator.
    lists.map(|list| unsafe { List::enter(list) })
}

/// An index of the table has an expression that is not plain, or labels, or is not ready.
pub struct Unplain;
