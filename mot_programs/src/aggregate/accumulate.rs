//! What an aggregate has seen so far, and its result.
//!
//! Sums of integers are kept in 128 bits, sums of numerics in a fixed point of as many ([`Fixed`]);
//! what does not fit there is added as [`Wide`] adds, which is exact, too, so that the order does
//! not matter. A sum that leaves the range of numeric on the way is no error in PostgreSQL, so
//! halves of the range are taken out and counted ([`Accumulator::take_halves_out`]).
use super::fixed::{Fixed, Fixeds};
use super::function::{Function, Input};
use super::wide::Wide;
use crate::filter::{Numbers, Rows, WordKind, members};

/// An aggregate's result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome<N> {
    /// There was no value.
    Null,
    /// A bigint.
    Integer(i64),
    /// A value of the kind.
    Number(WordKind, i64),
    /// A numeric.
    Numeric(N),
    /// A sum that is to be divided by the number of values, as PostgreSQL divides numerics.
    Quotient(N, i64),
}

/// Values that are not NULL, added up.
pub struct Accumulator<W: Wide> {
    function: Function,
    input: Input,
    /// Of values, or of rows.
    count: i64,
    /// Whether a numeric is in `number`.
    has_fixed: bool,
    /// The sum, or the smallest or largest value.
    number: Fixed,
    /// Halves of numeric's range that were taken out of `beyond`, where that is a sum.
    halves: i32,
    /// Beside it, of the numerics that do not fit there: no numeric is equal to one that does.
    beyond: Option<W::Kept>,
    /// Keeps and computes that.
    wide: W,
}

impl<W: Wide> Accumulator<W> {
    /// Without values.
    #[inline]
    pub fn new(function: Function, input: Input, wide: W) -> Accumulator<W> {
        Accumulator {
            function,
            input,
            count: 0,
            number: Fixed::default(),
            has_fixed: false,
            halves: 0,
            beyond: None,
            wide,
        }
    }

    /// Forgets what it has seen.
    pub fn clear(&mut self) {
        self.count = 0;
        self.number = Fixed::default();
        self.has_fixed = false;
        self.halves = 0;
        if let Some(beyond) = self.beyond.take() {
            self.wide.release(beyond);
        }
    }

    /// Values whose number does not matter.
    #[inline]
    pub fn add_rows(&mut self, count: u32) {
        self.count += i64::from(count);
    }

    /// The numbers of some rows.
    #[inline]
    pub fn add_numbers(&mut self, rows: Rows, values: &Numbers) {
        if rows == 0 {
            return;
        }
        let is_first = self.count == 0;
        self.count += i64::from(rows.count_ones());
        let known = self.number.value as i64;
        match self.function {
            Function::CountRows | Function::Count => {}
            Function::Smallest | Function::All => {
                let least = least(rows, values);
                self.number.value = if is_first { least } else { least.min(known) }.into();
            }
            Function::Largest | Function::Any => {
                let most = most(rows, values);
                self.number.value = if is_first { most } else { most.max(known) }.into();
            }
            _ if self.input == Input::Number(WordKind::Int8) => {
                for at in members(rows) {
                    self.number.value += i128::from(values[at]);
                }
            }
            // The sum of a group's cannot overflow.
            _ => {
                let sum: i64 = if rows == Rows::MAX {
                    values.iter().sum()
                } else {
                    members(rows).map(|at| values[at]).sum()
                };
                self.number.value += i128::from(sum);
            }
        }
    }

    /// One number.
    #[inline]
    pub fn add_number(&mut self, value: i64) {
        let is_first = self.count == 0;
        self.count += 1;
        let known = self.number.value;
        let value = i128::from(value);
        self.number.value = match self.function {
            Function::Smallest | Function::All if !is_first => known.min(value),
            Function::Largest | Function::Any if !is_first => known.max(value),
            Function::CountRows | Function::Count => return,
            _ => known + value,
        };
    }

    /// The numerics of some rows.
    #[inline]
    pub fn add_fixed(&mut self, rows: Rows, values: &Fixeds) {
        for at in members(rows) {
            self.add_one_fixed(values[at]);
        }
    }

    /// One numeric.
    #[inline]
    pub fn add_one_fixed(&mut self, new: Fixed) {
        let is_first = !self.has_fixed;
        self.count += 1;
        self.has_fixed = true;
        let known = self.number;
        let is_taken = match self.function {
            // Of equal ones PostgreSQL takes the later, which may show more digits.
            Function::Smallest => is_first || new.value <= known.value,
            Function::Largest => is_first || new.value >= known.value,
            _ => {
                let scale = known.scale.max(new.scale);
                match known.value.checked_add(new.value) {
                    Some(value) => self.number = Fixed { value, scale },
                    None => {
                        self.number = new;
                        self.put_beyond(self.wide.of_fixed(known));
                    }
                }
                return;
            }
        };
        if is_taken {
            self.number = new;
        }
    }

    /// A numeric, which fits or does not.
    pub fn add_numeric(&mut self, value: W::Numeric, fixed: Option<Fixed>) {
        if let Some(fixed) = fixed {
            return self.add_one_fixed(fixed);
        }
        self.count += 1;
        self.put_beyond(value);
    }

    /// Two numerics combined: added, or the one that is chosen.
    fn combined(&self, left: W::Numeric, right: W::Numeric) -> W::Numeric {
        match self.function {
            Function::Smallest => self.wide.smaller(left, right),
            Function::Largest => self.wide.larger(left, right),
            _ => self.wide.add(left, right),
        }
    }

    /// Combines the numeric beyond with another one.
    fn put_beyond(&mut self, value: W::Numeric) {
        let is_sum = !matches!(self.function, Function::Smallest | Function::Largest);
        let value = if is_sum {
            self.take_halves_out(value)
        } else {
            value
        };
        let Some(known) = &self.beyond else {
            self.beyond = Some(self.wide.keep(value));
            return;
        };
        let combined = self.combined(self.wide.kept(known), value);
        let combined = if is_sum {
            self.take_halves_out(combined)
        } else {
            combined
        };
        // A copy first: what is combined may be what was kept.
        let kept = self.wide.keep(combined);
        if let Some(known) = self.beyond.replace(kept) {
            self.wide.release(known);
        }
    }

    /// What is left of a part of a sum: below half of the range, so that the sum of two such parts
    /// is in range.
    fn take_halves_out(&mut self, value: W::Numeric) -> W::Numeric {
        let wide = self.wide;
        if !wide.is_at_the_end(value) {
            return value;
        }
        let half = wide.half_of_range();
        let zero = wide.of_integer(0);
        if !wide.is_at_most(zero, value) {
            let left = wide.add(value, half);
            if wide.is_at_most(left, zero) {
                self.halves -= 1;
                return left;
            }
        } else if wide.is_at_most(half, value) {
            self.halves += 1;
            return wide.subtract(value, half);
        }
        value
    }

    /// Puts the halves back that were taken out of a sum; unwinds if it is beyond the range.
    fn put_halves_back(&self, sum: W::Numeric) -> W::Numeric {
        if self.halves == 0 {
            return sum;
        }
        let half = self.wide.half_of_range();
        // A few are beyond the range, whatever else there is.
        (0..self.halves.unsigned_abs().min(4)).fold(sum, |sum, _| {
            if self.halves > 0 {
                self.wide.add(sum, half)
            } else {
                self.wide.subtract(sum, half)
            }
        })
    }

    /// The sum of numerics, or the smallest or largest one.
    fn numeric(&self) -> W::Numeric {
        let wide = self.wide;
        match &self.beyond {
            None => wide.of_fixed(self.number),
            Some(beyond) if !self.has_fixed => self.put_halves_back(wide.copied(wide.kept(beyond))),
            Some(beyond) => {
                let number = wide.of_fixed(self.number);
                // It may be `beyond` itself.
                let all = wide.copied(self.combined(wide.kept(beyond), number));
                self.put_halves_back(all)
            }
        }
    }

    /// The aggregate's result.
    pub fn result(&self) -> Outcome<W::Numeric> {
        let is_count = matches!(self.function, Function::CountRows | Function::Count);
        if self.count == 0 && !is_count {
            return Outcome::Null;
        }
        let value = self.number.value;
        match (self.function, self.input) {
            (Function::CountRows | Function::Count, _) => Outcome::Integer(self.count),
            (Function::Sum, _) => Outcome::Integer(value as i64),
            (Function::SumExact, Input::Numeric) => Outcome::Numeric(self.numeric()),
            (Function::SumExact, _) => Outcome::Numeric(self.wide.of_integer(value)),
            (Function::Average, input) => {
                let sum = match input {
                    Input::Numeric => self.numeric(),
                    Input::Number(WordKind::Int8) => self.wide.of_integer(value),
                    // PostgreSQL adds these up in 64 bits.
                    _ => self.wide.of_integer((value as i64).into()),
                };
                Outcome::Quotient(sum, self.count)
            }
            (_, Input::Numeric) => Outcome::Numeric(self.numeric()),
            (_, Input::Number(kind)) => Outcome::Number(kind, value as i64),
            (_, Input::Anything) => unreachable!("only counts have no value"),
        }
    }
}

#[inline]
fn least(rows: Rows, values: &Numbers) -> i64 {
    if rows == Rows::MAX {
        return values.iter().copied().fold(i64::MAX, i64::min);
    }
    members(rows).fold(i64::MAX, |known, at| known.min(values[at]))
}

#[inline]
fn most(rows: Rows, values: &Numbers) -> i64 {
    if rows == Rows::MAX {
        return values.iter().copied().fold(i64::MIN, i64::max);
    }
    members(rows).fold(i64::MIN, |known, at| known.max(values[at]))
}
