//! An aggregate of a query: FILTER and argument, evaluated over groups of rows.
use super::accumulate::Accumulator;
use super::fixed::{Fixed, Fixeds};
use super::function::{Function, Input};
use super::grouping::Groups as Grouped;
use super::wide::Wide;
use crate::filter::{
    Condition, Found, Groups, Lacking, Number, Numbers, ParameterValues, ROWS, Rows, members,
};
use crate::varlena::payload;

/// What is evaluated for each row.
pub enum Argument {
    /// Rows count, whatever is in them.
    Nothing,
    /// Whether a column is NULL.
    Presence(usize),
    /// An expression.
    Number(Number),
    /// A column of type numeric.
    Numeric(usize),
}

/// A call of an aggregate.
pub struct Call {
    /// The aggregate.
    pub function: Function,
    /// What it is of.
    pub input: Input,
    /// Where that comes from.
    pub argument: Argument,
    /// FILTER.
    pub filter: Option<Condition>,
}

/// The values of a group of rows.
pub enum Values {
    /// They do not matter.
    None,
    /// Numbers.
    Numbers(Box<Numbers>),
    /// Numerics that fit.
    Fixed(Box<Fixeds>),
}

/// A call, and what it gave for a group of rows.
pub struct Step {
    /// The call.
    pub call: Call,
    /// The rows that FILTER lets pass and whose value is not NULL.
    pub rows: Rows,
    /// Their values.
    pub values: Values,
}

impl Step {
    /// Of a call, with room for a group's values.
    pub fn new(call: Call) -> Step {
        Step {
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
    pub fn accumulator<W: Wide>(&self, wide: W) -> Accumulator<W> {
        Accumulator::new(self.call.function, self.call.input, wide)
    }

    /// Evaluates FILTER and argument for rows of a group; false: PostgreSQL has to be asked about
    /// one.
    ///
    /// # Safety
    /// The rows are of the layout's table, and columns are read as what they are.
    #[inline]
    pub unsafe fn evaluate<P: ParameterValues>(
        &mut self,
        groups: &Groups<'_, P>,
        rows: Rows,
    ) -> bool {
        let mut rows = rows;
        // SAFETY: the caller's promise.
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
    pub fn add_group<W: Wide>(&self, accumulator: &mut Accumulator<W>) {
        match &self.values {
            Values::None => accumulator.add_rows(self.rows.count_ones()),
            Values::Numbers(values) => accumulator.add_numbers(self.rows, values),
            Values::Fixed(values) => accumulator.add_fixed(self.rows, values),
        }
    }

    /// Adds what was evaluated of some of the rows, each to its group's accumulator of the
    /// aggregate with this number.
    #[inline]
    pub fn add_each<W: Wide>(
        &self,
        rows: Rows,
        found: &[usize; ROWS],
        groups: &mut Grouped<W>,
        number: usize,
    ) {
        let rows = members(self.rows & rows);
        match &self.values {
            Values::None => rows.for_each(|at| {
                groups.accumulator(found[at], number).add_rows(1);
            }),
            Values::Numbers(values) => rows.for_each(|at| {
                groups.accumulator(found[at], number).add_number(values[at]);
            }),
            Values::Fixed(values) => rows.for_each(|at| {
                groups
                    .accumulator(found[at], number)
                    .add_one_fixed(values[at]);
            }),
        }
    }
}

/// Of which rows a column is NULL.
unsafe fn presence<P: ParameterValues>(
    groups: &Groups<'_, P>,
    column: usize,
    rows: Rows,
) -> Lacking {
    let mut lacking = Lacking::default();
    for at in members(rows) {
        // SAFETY: a row of the layout's table.
        match unsafe { groups.layout.find(&groups.rows[at], column) } {
            Found::At(_) => {}
            Found::Null => lacking.null |= 1 << at,
        }
    }
    lacking
}

/// The values of a column of type numeric; PostgreSQL has to be asked about those that do not fit.
unsafe fn numerics<P: ParameterValues>(
    groups: &Groups<'_, P>,
    column: usize,
    rows: Rows,
    values: &mut Fixeds,
) -> Lacking {
    let mut lacking = Lacking::default();
    for at in members(rows) {
        // SAFETY: a row of the layout's table; the column is a varlena.
        match unsafe { groups.layout.find(&groups.rows[at], column) } {
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
