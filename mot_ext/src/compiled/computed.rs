//! Computed keys of the rows that a compiled statement forms: those of indexes on expressions, and
//! of partial ones.
//!
//! What computes them is kept with the form. So expressions and predicates must be plain
//! (`plain.rs`): they run no SQL, and nothing that they remember changes under them. Which indexes
//! there are is looked up again when the relation cache reports a change (`Frame::fits`), after the
//! table is locked. A session that makes an index waits for earlier ones, as for core's list.
use super::plain::{Scope, are_plain, calls_functions};
use crate::rows::tuple;
use crate::storage::computed_keys::{self, Evaluator};
use pgrx::pg_sys;
use std::cell::RefCell;

/// In an index's expression its table is the only one.
const ROW: Scope = Scope::Table(1);

/// What computes the keys of a table's rows.
pub struct ComputedKeys(RefCell<Evaluator>);

impl ComputedKeys {
    /// Of an open table that is locked for writing. `Ok(None)`: it has no such indexes; an error:
    /// core's executor has to form its rows.
    pub unsafe fn of(table: pg_sys::Relation) -> Result<Option<ComputedKeys>, Unplain> {
        if !computed_keys::are_on(table) {
            return Ok(None);
        }
        // SAFETY: the caller's table; lists of expressions that the evaluator holds.
        unsafe {
            let evaluator = Evaluator::of_table(table);
            let are_plain = evaluator.expressions().all(|list| are_plain(list, ROW));
            let is_plain = are_plain && !evaluator.has_labels();
            match is_plain {
                true => Ok(Some(ComputedKeys(RefCell::new(evaluator)))),
                false => Err(Unplain),
            }
        }
    }

    /// Whether an expression calls functions.
    pub fn call_functions(&self) -> bool {
        let evaluator = self.0.borrow();
        let mut lists = evaluator.expressions();
        // SAFETY: lists of expressions that the evaluator holds.
        lists.any(|list| unsafe { calls_functions(list.cast()) })
    }

    /// The row that was formed of a filled slot's values, with its keys, in the current memory
    /// context.
    pub unsafe fn add<'a>(&self, row: &[u8], slot: *mut pg_sys::TupleTableSlot) -> &'a [u8] {
        let mut evaluator = self.0.borrow_mut();
        evaluator.tail.clear();
        // SAFETY: a slot of the table's row type. Plain expressions do not come back here.
        unsafe { evaluator.compute(slot) };
        tuple::extend(row, &evaluator.tail)
    }

    /// The same with its key in one index alone: what the others compute may raise.
    pub unsafe fn add_one<'a>(
        &self,
        row: &[u8],
        slot: *mut pg_sys::TupleTableSlot,
        index: pg_sys::Oid,
    ) -> &'a [u8] {
        let mut evaluator = self.0.borrow_mut();
        evaluator.tail.clear();
        // SAFETY: as for `add`.
        unsafe { evaluator.compute_one(slot, index) };
        tuple::extend(row, &evaluator.tail)
    }
}

/// An index of the table has an expression that is not plain, or values with labels.
pub struct Unplain;
