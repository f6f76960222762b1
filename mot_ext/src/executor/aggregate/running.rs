//! An aggregate that runs: FILTER and argument of rows, many at a time or, as core evaluates them,
//! one by one.
use super::call::argument_of;
use super::numeric::{Accumulator, Numeric};
use crate::executor::expressions::evaluate;
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
    pub unsafe fn new(
        call: Call,
        aggregate: &pg_sys::Aggref,
        compiled: impl Fn(*mut pg_sys::Expr) -> *mut pg_sys::ExprState,
    ) -> Running {
        Running {
            // SAFETY: the call's own node.
            general: General::of(&call, || compiled(unsafe { argument_of(aggregate) })),
            general_filter: compiled(aggregate.aggfilter),
            step: Step::new(call),
        }
    }

    /// Adds the row in the slot, as core evaluates FILTER and argument.
    pub unsafe fn add_row(
        &self,
        accumulator: &mut Accumulator,
        slot: *mut pg_sys::TupleTableSlot,
        context: *mut pg_sys::ExprContext,
    ) {
        // SAFETY: the slot has the row, and is the context's; what is evaluated lives until the
        // next row.
        unsafe {
            let old = pg_sys::MemoryContextSwitchTo((*context).ecxt_per_tuple_memory);
            let is_counted = self.general_filter.is_null() || {
                let (answer, is_null) = evaluate(self.general_filter, context);
                !is_null && answer.value() & 1 != 0
            };
            let value = match is_counted {
                true => self.general.value(slot, context),
                false => None,
            };
            if let Some(value) = value {
                match (&self.step.call.argument, self.step.call.input) {
                    (Argument::Numeric(_), _) => {
                        let flat = pg_sys::pg_detoast_datum(value.cast_mut_ptr());
                        let fixed = payload(flat.cast()).and_then(Fixed::read);
                        accumulator.add_numeric(Numeric::new(flat.into()), fixed);
                    }
                    (Argument::Number(_), Input::Number(kind)) => {
                        accumulator.add_number(kind.of_word(value.value() as u64));
                    }
                    _ => accumulator.add_rows(1),
                }
            }
            pg_sys::MemoryContextSwitchTo(old);
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
    pub unsafe fn value(
        &self,
        slot: *mut pg_sys::TupleTableSlot,
        context: *mut pg_sys::ExprContext,
    ) -> Option<pg_sys::Datum> {
        // SAFETY: as for `add_row`; a column is taken out of the row before it is read.
        unsafe {
            let (value, is_null) = match *self {
                General::Nothing => (pg_sys::Datum::from(0), false),
                General::Column(number) => {
                    if i32::from((*slot).tts_nvalid) < number {
                        pg_sys::slot_getsomeattrs_int(slot, number);
                    }
                    let at = number as usize - 1;
                    (*(*slot).tts_values.add(at), *(*slot).tts_isnull.add(at))
                }
                General::Expression(state) => evaluate(state, context),
            };
            (!is_null).then_some(value)
        }
    }
}
