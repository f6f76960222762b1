//! An aggregate that runs: FILTER and argument of rows, many at a time or one by one.
use super::accumulate::{Accumulator, Fixeds, Kept};
use super::call::{Argument, Call, argument_of};
use super::functions::Input;
use super::numeric::Fixed;
use crate::executor::expressions::evaluate;
use crate::executor::filter::{
    Found, Groups as RowGroup, Lacking, Number, Numbers, ROWS, Rows, members, payload,
};
use pgrx::pg_sys;

/// An aggregate under way.
pub struct Running {
    call: Call,
    general: General,
    /// Core's form of FILTER; NULL if there is none.
    general_filter: *mut pg_sys::ExprState,
    /// Of the group: the rows that FILTER lets pass and whose value is not NULL, and their values.
    pub rows: Rows,
    pub values: Values,
}

/// The values of a group of rows.
pub enum Values {
    None,
    Numbers(Box<Numbers>),
    Fixed(Box<Fixeds>),
}

/// How core comes to an argument's value.
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
            rows: 0,
            values: match call.argument {
                Argument::Number(_) => Values::Numbers(Box::new([0; ROWS])),
                Argument::Numeric(_) => Values::Fixed(Box::new([Fixed::default(); ROWS])),
                Argument::Nothing | Argument::Presence(_) => Values::None,
            },
            call,
        }
    }

    /// A new accumulator.
    pub fn accumulator(&self, kept: *mut Kept) -> Accumulator {
        Accumulator::new(self.call.function, self.call.input, kept)
    }

    /// Evaluates FILTER and argument for rows of a group; false: core has to be asked about one.
    #[inline]
    pub unsafe fn evaluate(&mut self, groups: &RowGroup<'_>, rows: Rows) -> bool {
        let mut rows = rows;
        // SAFETY: rows of the layout's table.
        unsafe {
            if let Some(filter) = &self.call.filter {
                let answer = groups.condition(filter, rows);
                if answer.unsure != 0 {
                    return false;
                }
                rows = answer.yes;
            }
            let lacking = match (&self.call.argument, &mut self.values) {
                (Argument::Number(number), Values::Numbers(values)) => {
                    groups.numbers(number, rows, values)
                }
                (Argument::Numeric(column), Values::Fixed(values)) => {
                    numerics(groups, *column, rows, values)
                }
                (Argument::Presence(column), _) => presence(groups, *column, rows),
                _ => Lacking::default(),
            };
            self.rows = rows & !lacking.null;
            lacking.unsure == 0
        }
    }

    /// Adds what was evaluated of the group.
    #[inline]
    pub unsafe fn add_group(&self, accumulator: &mut Accumulator) {
        match &self.values {
            Values::None => accumulator.add_rows(self.rows.count_ones()),
            Values::Numbers(values) => accumulator.add_numbers(self.rows, values),
            // SAFETY: numbers of the rows.
            Values::Fixed(values) => unsafe { accumulator.add_fixed(self.rows, values) },
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
                match (&self.call.argument, self.call.input) {
                    (Argument::Numeric(_), _) => {
                        let flat = pg_sys::pg_detoast_datum(value.cast_mut_ptr());
                        let fixed = payload(flat.cast()).and_then(Fixed::read);
                        accumulator.add_numeric(flat.into(), fixed);
                    }
                    (Argument::Number(_), Input::Number(kind)) => {
                        accumulator.add_number(kind.of_datum(value));
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

/// Of which rows a column is NULL.
unsafe fn presence(groups: &RowGroup<'_>, column: usize, rows: Rows) -> Lacking {
    let mut lacking = Lacking::default();
    for at in members(rows) {
        // SAFETY: a row of the layout's table.
        match unsafe { groups.layout.find(&groups.group.row(at), column) } {
            Found::At(_) => {}
            Found::Null => lacking.null |= 1 << at,
        }
    }
    lacking
}

/// The values of a column of type numeric; core has to be asked about those that do not fit.
unsafe fn numerics(
    groups: &RowGroup<'_>,
    column: usize,
    rows: Rows,
    values: &mut Fixeds,
) -> Lacking {
    let mut lacking = Lacking::default();
    for at in members(rows) {
        // SAFETY: a row of the layout's table; the column is a varlena.
        match unsafe { groups.layout.find(&groups.group.row(at), column) } {
            // SAFETY: as above.
            Found::At(place) => match unsafe { payload(place) }.and_then(Fixed::read) {
                Some(value) => values[at] = value,
                None => lacking.unsure |= 1 << at,
            },
            Found::Null => lacking.null |= 1 << at,
        }
    }
    lacking
}
