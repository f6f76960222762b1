//! UPDATE and DELETE of the rows that a scan finds, for compiled statements.
//!
//! The conditions must hold for the row found, and again for its newest state after a wait, but not
//! for the row as changed. Assigned expressions are evaluated once per attempt.
use crate::access::scan::Scan;
use crate::errors;
use crate::executor::expressions::{Value, passes};
use crate::pg::{self, version};
#[cfg(debug_assertions)]
use crate::rows::tuple;
use crate::rows::write::{ChangeResult, Target};
use mot_engine::key::tail_bytes;
#[cfg(debug_assertions)]
use mot_engine::row::STAMP_BYTES;
use mot_engine::{CommandId, KeysUnchanged, Slot, VersionRef};
use mot_programs::patch::Patch;
use pgrx::pg_sys;

/// What an UPDATE or DELETE does to each row its scan finds.
pub struct Change {
    pub target: Target,
    pub is_delete: bool,
    /// Conditions the scan does not answer.
    pub quals: *mut pg_sys::ExprState,
    /// Conditions the scan does answer, for a state of the row that it did not find.
    pub rechecks: *mut pg_sys::ExprState,
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
    pub old: *mut pg_sys::TupleTableSlot,
    /// The new row, virtual.
    pub new: *mut pg_sys::TupleTableSlot,
}

/// Raises what core raises where a column that is assigned to is gone, or of another type: a SQL
/// function keeps its plans until the calling query ends, whatever that query does meanwhile.
pub unsafe fn check_columns(
    row_type: pg_sys::TupleDesc,
    assigned: &[i16],
    values: &[*mut pg_sys::Expr],
) {
    // SAFETY: the row type of the plan's table, which never has fewer attributes than before;
    // expressions of a finished plan.
    unsafe {
        let attributes = version::attributes(row_type);
        for (number, value) in assigned.iter().zip(values) {
            let attribute = &*attributes.add(*number as usize - 1);
            let expected = pg_sys::exprType(value.cast());
            if attribute.attisdropped || attribute.atttypid != expected {
                errors::plan_of_other_columns(*number, attribute, expected);
            }
        }
    }
}

/// How to write the assigned columns, by number, into a row's bytes; `None` if one has no fixed
/// place.
///
/// # Safety
/// A live row type that has the columns.
pub unsafe fn patch(row_type: pg_sys::TupleDesc, assigned: &[i16]) -> Option<Patch> {
    // SAFETY: the caller's promise.
    let layout = unsafe { pg::attribute_layouts(row_type, (*row_type).natts as usize) };
    Patch::new(&layout, assigned.iter().copied())
}

impl Change {
    /// Changes one row if it passes. Returns what RETURNING speaks of: the new state, or the
    /// deleted one. `form` raises what a new row violates, and forms it.
    pub unsafe fn apply(
        &mut self,
        scan: &mut Scan,
        context: *mut pg_sys::ExprContext,
        command: CommandId,
        row: Slot,
        version: VersionRef,
        form: impl Fn(*mut pg_sys::TupleTableSlot) -> &'static [u8],
    ) -> Option<VersionRef> {
        // SAFETY: see the caller; the slots hold the row's state only during this call.
        unsafe {
            let mut seen = version;
            loop {
                if self.needs_old || seen != version {
                    scan.show(self.old, row, seen);
                    (*context).ecxt_scantuple = self.old;
                }
                if seen != version && !passes(self.rechecks, context) {
                    return None;
                }
                if !passes(self.quals, context) {
                    return None;
                }
                let result = if self.is_delete {
                    self.target.delete(row, seen, command)
                } else {
                    self.evaluate(context);
                    // A tail would be the old row's: of an index that is gone, for a statement on
                    // a table with computed keys patches nothing.
                    let has_tail = tail_bytes(seen.body()) > 0;
                    let is_patched = match &mut self.patch {
                        Some(patch) if !has_tail => {
                            let values = self.values.iter();
                            let word = |(datum, is_null): &(pg_sys::Datum, bool)| {
                                (!is_null).then(|| datum.value() as u64)
                            };
                            patch.apply(seen.body(), values.map(word))
                        }
                        _ => false,
                    };
                    #[cfg(debug_assertions)]
                    if is_patched {
                        self.compare_with_formed();
                    }
                    let body = match &self.patch {
                        Some(patch) if is_patched => patch.body(),
                        _ => {
                            self.assign();
                            form(self.new)
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
    }

    /// Evaluates what is assigned, for the row in the old slot.
    #[inline]
    unsafe fn evaluate(&mut self, context: *mut pg_sys::ExprContext) {
        self.values.clear();
        for (_, value) in &self.assignments {
            // SAFETY: compiled for the node whose context this is.
            self.values.push(unsafe { value.get(context) });
        }
    }

    /// Fills the new row: the old values, and the assigned ones over it.
    unsafe fn assign(&self) {
        // SAFETY: both slots have the relation's row type; the virtual slot's arrays are written
        // between clearing and storing.
        unsafe {
            let (old, new) = (self.old, self.new);
            let count = (*(*new).tts_tupleDescriptor).natts;
            pg::take_row_apart(old, count);
            let count = count as usize;
            (*new).tts_flags |= pg_sys::TTS_FLAG_EMPTY as u16;
            (*new)
                .tts_values
                .copy_from_nonoverlapping((*old).tts_values, count);
            (*new)
                .tts_isnull
                .copy_from_nonoverlapping((*old).tts_isnull, count);
            for ((attribute, _), (datum, is_null)) in self.assignments.iter().zip(&self.values) {
                *(*new).tts_values.add(*attribute as usize - 1) = *datum;
                *(*new).tts_isnull.add(*attribute as usize - 1) = *is_null;
            }
            // ExecStoreVirtualTuple.
            (*new).tts_flags &= !(pg_sys::TTS_FLAG_EMPTY as u16);
            (*new).tts_nvalid = count as i16;
        }
    }

    /// A patched body is what forming the tuple gives. Both are formed anew: how long a header a
    /// text was given depends on its column's STORAGE, which may have changed since.
    #[cfg(debug_assertions)]
    unsafe fn compare_with_formed(&self) {
        // SAFETY: as for `assign`.
        unsafe {
            self.assign();
            let formed = tuple::form(self.new);
            let patched = self.patch.as_ref().expect("just made").body();
            let descriptor = (*self.new).tts_tupleDescriptor;
            let count = (*descriptor).natts as usize;
            let mut values = vec![pg_sys::Datum::from(0); count];
            let mut nulls = vec![false; count];
            let bytes = STAMP_BYTES + patched.len();
            let copy = pg_sys::palloc0(bytes).cast::<u8>();
            copy.add(STAMP_BYTES)
                .copy_from_nonoverlapping(patched.as_ptr(), patched.len());
            let mut row = tuple::empty();
            row.t_len = bytes as u32;
            row.t_data = copy.cast();
            pg_sys::heap_deform_tuple(
                &raw mut row,
                descriptor,
                values.as_mut_ptr(),
                nulls.as_mut_ptr(),
            );
            let patched = tuple::form_values(descriptor, values.as_mut_ptr(), nulls.as_mut_ptr());
            assert_eq!(patched, formed);
        }
    }
}
