//! UPDATE and DELETE of the rows that a scan finds, for compiled statements.
//!
//! The conditions must hold for the row found, and again for its newest state after a wait, but not
//! for the row as changed. Assigned expressions are evaluated once per attempt.
use super::expression::{Conditions, compile_values};
use super::frame::{Frame, OwnSlot, Row};
use super::shape::Assignment;
use crate::access::scan::Scan;
use crate::errors;
use crate::executor::expressions::Value;
use crate::pg;
use crate::pg::node::{Any, Node};
#[cfg(debug_assertions)]
use crate::rows::tuple;
use crate::rows::write::{ChangeResult, Target};
use mot_engine::key::tail_bytes;
#[cfg(debug_assertions)]
use mot_engine::row::STAMP_BYTES;
use mot_engine::{CommandId, KeysUnchanged, RowId, TableRef, VersionRef};
use mot_programs::patch::Patch;
use pgrx::pg_sys;

/// What an UPDATE or DELETE does to each row its scan finds.
pub struct Change {
    pub target: Target<'static>,
    pub is_delete: bool,
    /// Conditions the scan does not answer.
    pub quals: Conditions,
    /// Conditions the scan does answer, for a state of the row that it did not find.
    pub rechecks: Conditions,
    /// Attribute numbers and their new values.
    pub assignments: Vec<(i16, Value)>,
    /// What they were evaluated to last.
    pub values: Vec<(pg_sys::Datum, bool)>,
    /// No index had an assigned column then.
    pub beside_keys: Option<KeysUnchanged>,
    /// Makes the new row out of the old one's bytes, where it can.
    pub patch: Option<Patch>,
    /// Whether other code reads the old row where it is still the one that the scan found.
    pub needs_old: bool,
    /// The old row, of the heap kind.
    pub old: OwnSlot,
    /// The new row, virtual.
    pub new: OwnSlot,
}

/// Raises what core raises where a column that is assigned to is gone, or of another type: a SQL
/// function keeps its plans until the calling query ends, whatever that query does meanwhile. The
/// row type of the plan's table never has fewer columns than before.
fn check_columns(row_type: Node<'_, pg_sys::TupleDescData>, assigned: &[i16], values: &[Any<'_>]) {
    let columns = row_type.columns();
    for (number, value) in assigned.iter().zip(values) {
        let column = &columns[*number as usize - 1];
        let expected = value.value_type();
        if column.attisdropped || column.atttypid != expected {
            errors::plan_of_other_columns(*number, column, expected);
        }
    }
}

/// How to write the assigned columns, by number, into a row's bytes; `None` if one has no fixed
/// place.
fn patch(row_type: Node<'_, pg_sys::TupleDescData>, assigned: &[i16]) -> Option<Patch> {
    let count = row_type.columns().len();
    // SAFETY: a live row type with so many columns.
    let layout = unsafe { pg::attribute_layouts(row_type.as_ptr(), count) };
    Patch::new(&layout, assigned.iter().copied())
}

/// What an execution changes rows with.
pub struct Changer<'a, F> {
    /// Shows the states of the row.
    pub scan: &'a mut Scan,
    pub values: Node<'a, pg_sys::ExprContext>,
    pub command: CommandId,
    /// Raises what a new row violates, and forms it, which replaces a version.
    pub form: F,
}

impl Change {
    /// Of an UPDATE of rows of the frame's table, or of a DELETE, which assigns nothing.
    ///
    /// # Safety
    /// The current memory context is the frame's, and lives as long as the value.
    pub unsafe fn new(
        frame: &Frame,
        table: TableRef,
        assigned: &[Assignment<'_>],
        conditions: &[Any<'_>],
    ) -> Change {
        let (columns, values): (Vec<i16>, Vec<_>) = assigned.iter().copied().unzip();
        let row_type = frame.row_type.view();
        check_columns(row_type, &columns, &values);
        let is_patched = frame.may_patch() && !columns.is_empty();
        let patch = match is_patched {
            true => patch(row_type, &columns),
            false => None,
        };
        // SAFETY: the caller's memory context.
        let (quals, values, old, new) = unsafe {
            (
                Conditions::compile(conditions),
                compile_values(&values),
                frame.row_slot(),
                frame.virtual_slot(),
            )
        };
        Change {
            target: Target::closed(frame.relation, table),
            is_delete: false,
            quals,
            rechecks: Conditions::NONE,
            values: Vec::with_capacity(columns.len()),
            assignments: columns.into_iter().zip(values).collect(),
            beside_keys: None,
            patch,
            needs_old: true,
            old,
            new,
        }
    }

    /// Changes one row if it passes. Returns what RETURNING speaks of: the new state, or the
    /// deleted one.
    ///
    /// # Safety
    /// In an execution, of which the expressions' values are. Snapshot, or row lock, keep the
    /// version. What `form` gives lives until the change is done.
    pub unsafe fn apply<F>(
        &mut self,
        changer: Changer<'_, F>,
        row: RowId,
        version: VersionRef,
    ) -> Option<VersionRef>
    where
        F: Fn(Row<'_>, VersionRef) -> &'static [u8],
    {
        let Changer {
            scan,
            values,
            command,
            form,
        } = changer;
        let mut seen = version;
        loop {
            if self.needs_old || seen != version {
                // SAFETY: a slot of the access method's kind; the version is kept (caller), or is
                // the newest one, after a wait.
                unsafe { scan.show(self.old.as_ptr(), row, seen) };
                values.show(self.old.view());
            }
            // SAFETY: the row is shown, where a condition is over it.
            let passes = unsafe {
                (seen == version || self.rechecks.pass(values)) && self.quals.pass(values)
            };
            if !passes {
                return None;
            }
            let result = if self.is_delete {
                self.target.delete(row, seen, command)
            } else {
                // SAFETY: as above.
                let is_patched = unsafe {
                    self.evaluate(values);
                    self.is_patched(seen)
                };
                let body = match &self.patch {
                    Some(patch) if is_patched => patch.body(),
                    _ => {
                        // SAFETY: as above.
                        unsafe { self.assign() };
                        form(self.new.view(), seen)
                    }
                };
                self.target
                    .update(row, seen, body, command, self.beside_keys)
            };
            match result {
                ChangeResult::Done(_) if self.is_delete => return Some(seen),
                ChangeResult::Done(new) => return Some(new),
                ChangeResult::Skip => return None,
                ChangeResult::Newer(newer) => seen = newer,
            }
        }
    }

    /// Writes what is assigned over the bytes of the state that was seen; false: the new row has to
    /// be formed.
    ///
    /// # Safety
    /// What is assigned was evaluated, and the old slot shows the state.
    #[inline]
    unsafe fn is_patched(&mut self, seen: VersionRef) -> bool {
        let Some(patch) = &mut self.patch else {
            return false;
        };
        // A tail would be the old row's: of an index that is gone, for a statement on a table with
        // computed keys patches nothing.
        if tail_bytes(seen.body()) > 0 {
            return false;
        }
        let values = self.values.iter();
        let word =
            |(datum, is_null): &(pg_sys::Datum, bool)| (!is_null).then(|| datum.value() as u64);
        let is_patched = patch.apply(seen.body(), values.map(word));
        #[cfg(debug_assertions)]
        if is_patched {
            // SAFETY: the caller's.
            unsafe { self.compare_with_formed() };
        }
        is_patched
    }

    /// Evaluates what is assigned, for the row in the old slot.
    ///
    /// # Safety
    /// The row is shown in the context, for which the values were compiled.
    #[inline]
    unsafe fn evaluate(&mut self, context: Node<'_, pg_sys::ExprContext>) {
        self.values.clear();
        for (_, value) in &self.assignments {
            // SAFETY: the caller's.
            self.values.push(unsafe { value.get(context.as_ptr()) });
        }
    }

    /// Fills the new row: the old values, and the assigned ones over it.
    ///
    /// # Safety
    /// The old slot shows a row; what is assigned was evaluated.
    unsafe fn assign(&self) {
        let (old, new) = (self.old.view(), self.new.view());
        let count = new.row_type().columns().len();
        // SAFETY: both slots have the relation's row type, the new one is virtual. Nobody else
        // changes them meanwhile.
        let (values, nulls) = unsafe {
            old.take_apart(count as i32);
            new.fill(old.columns())
        };
        for ((attribute, _), (datum, is_null)) in self.assignments.iter().zip(&self.values) {
            values[*attribute as usize - 1] = *datum;
            nulls[*attribute as usize - 1] = *is_null;
        }
    }

    /// A patched body is what forming the tuple gives. Both are formed anew: how long a header a
    /// text was given depends on its column's STORAGE, which may have changed since.
    ///
    /// # Safety
    /// As for [`Change::assign`].
    #[cfg(debug_assertions)]
    unsafe fn compare_with_formed(&self) {
        let patched = self.patch.as_ref().expect("just made").body();
        // SAFETY: the caller's.
        let formed = unsafe {
            self.assign();
            tuple::form(self.new.as_ptr())
        };
        let descriptor = self.new.view().row_type();
        let count = descriptor.columns().len();
        let mut values = vec![pg_sys::Datum::from(0); count];
        let mut nulls = vec![false; count];
        let mut image = vec![0_u64; (STAMP_BYTES + patched.len()).div_ceil(8)];
        let mut row = tuple::empty();
        row.t_len = (STAMP_BYTES + patched.len()) as u32;
        row.t_data = image.as_mut_ptr().cast();
        let (values, nulls) = (values.as_mut_ptr(), nulls.as_mut_ptr());
        // SAFETY: the image has room for the row behind the stamp, and the arrays a place for each
        // column.
        let formed_again = unsafe {
            let place = image.as_mut_ptr().cast::<u8>().add(STAMP_BYTES);
            place.copy_from_nonoverlapping(patched.as_ptr(), patched.len());
            pg_sys::heap_deform_tuple(&raw mut row, descriptor.as_ptr(), values, nulls);
            tuple::form_values(descriptor.as_ptr(), values, nulls)
        };
        assert_eq!(formed_again, formed);
    }
}
