//! An aggregate that runs: FILTER and argument of rows, many at a time or, as core evaluates them,
//! one by one.
use super::call::argument_of;
use super::numeric::{Accumulator, Numeric};
use crate::executor::expressions::evaluate;
use crate::pg::memory;
use crate::pg::node::{Any, Node};
use mot_programs::aggregate::{Argument, Call, Fixed, Input, Step};
use mot_programs::filter::Number;
use mot_programs::varlena::payload;
use pgrx::pg_sys;

/// An aggregate under way.
pub struct Running {
    /// What is evaluated of groups of rows.
    pub step: Step,
    general: General,
    /// Core's form of FILTER; NULL if there is none.
    general_filter: *mut pg_sys::ExprState,
}

/// How core computes an argument's value.
pub enum General {
    Nothing,
    Column(i32),
    Expression(*mut pg_sys::ExprState),
}

impl Running {
    /// An aggregate of the plan; `compiled` is how core compiles its expressions.
    pub fn new<'p>(
        call: Call,
        aggregate: Node<'p, pg_sys::Aggref>,
        compiled: impl Fn(Option<Any<'p>>) -> *mut pg_sys::ExprState,
    ) -> Running {
        Running {
            general: General::of(&call, || compiled(argument_of(aggregate))),
            general_filter: compiled(aggregate.aggfilter()),
            step: Step::new(call),
        }
    }

    /// Adds the row in the slot, as core evaluates FILTER and argument. What is evaluated lives
    /// until the next row.
    ///
    /// # Safety
    /// The slot has a row of the scan's, and is the context's, which is the scan's node's.
    pub unsafe fn add_row(
        &self,
        accumulator: &mut Accumulator,
        slot: Node<'_, pg_sys::TupleTableSlot>,
        context: Node<'_, pg_sys::ExprContext>,
    ) {
        let add = || {
            // SAFETY: the caller's context.
            if !unsafe { self.counts(context) } {
                return;
            }
            // SAFETY: the caller's row and context.
            if let Some(value) = unsafe { self.general.value(slot, context) } {
                self.add(accumulator, value);
            }
        };
        // SAFETY: a live context's own memory.
        unsafe { memory::within(context.ecxt_per_tuple_memory(), add) };
    }

    /// Whether FILTER counts the row.
    ///
    /// # Safety
    /// The context has a row of the scan's.
    unsafe fn counts(&self, context: Node<'_, pg_sys::ExprContext>) -> bool {
        if self.general_filter.is_null() {
            return true;
        }
        // SAFETY: the plan's own expression, and the caller's context.
        let (answer, is_null) = unsafe { evaluate(self.general_filter, context.as_ptr()) };
        !is_null && answer.value() & 1 != 0
    }

    /// Adds a value of the argument, in memory for one row.
    fn add(&self, accumulator: &mut Accumulator, value: pg_sys::Datum) {
        match (&self.step.call.argument, self.step.call.input) {
            (Argument::Numeric(_), _) => {
                // SAFETY: a value of the argument, which is a numeric.
                let (number, fixed) = unsafe {
                    let flat = pg_sys::pg_detoast_datum(value.cast_mut_ptr());
                    (Numeric::new(flat.into()), payload(flat.cast()))
                };
                accumulator.add_numeric(number, fixed.and_then(Fixed::read));
            }
            (Argument::Number(_), Input::Number(kind)) => {
                accumulator.add_number(kind.of_word(value.value() as u64));
            }
            _ => accumulator.add_rows(1),
        }
    }
}

impl General {
    pub fn of(call: &Call, compiled: impl FnOnce() -> *mut pg_sys::ExprState) -> General {
        match &call.argument {
            Argument::Nothing => General::Nothing,
            Argument::Presence(column) | Argument::Numeric(column) => General::column(*column),
            Argument::Number(number) => General::of_number(number, compiled),
        }
    }

    pub fn of_number(
        number: &Number,
        compiled: impl FnOnce() -> *mut pg_sys::ExprState,
    ) -> General {
        match number {
            Number::Column(column, _) => General::column(*column),
            _ => General::Expression(compiled()),
        }
    }

    pub fn column(column: usize) -> General {
        General::Column(column as i32 + 1)
    }

    /// The argument's value; `None`: NULL.
    ///
    /// # Safety
    /// As for [`Running::add_row`].
    pub unsafe fn value(
        &self,
        slot: Node<'_, pg_sys::TupleTableSlot>,
        context: Node<'_, pg_sys::ExprContext>,
    ) -> Option<pg_sys::Datum> {
        match *self {
            General::Nothing => Some(pg_sys::Datum::from(0)),
            // SAFETY: the caller's row, which has the table's columns.
            General::Column(number) => unsafe { slot.column(number) },
            General::Expression(state) => {
                // SAFETY: the plan's own expression, and the caller's context.
                let (value, is_null) = unsafe { evaluate(state, context.as_ptr()) };
                (!is_null).then_some(value)
            }
        }
    }
}
